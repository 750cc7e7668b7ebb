"""Hostile specs of spaces, datasets, encoders, studies and stitching; what is accepted is written again as
it was given.
"""

import json
from pathlib import Path

from relcore.base import records as record
from relcore.base.earlier import FORMER_DATA, FORMER_STUDIES
from relcore.base.names import PLUGIN_STUDIES
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.naming import space_spec
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import encoder_from_json
from relcore.stitch.stitching import StitchSpec
from relcore.studies.study import StudySpec
from tests.hostile.cases import Case, places, spoiled
from tests.hostile.json_values import EARLIER, changed, differences, text

KINDS = ("space", "dataset", "encoder", "study", "stitching")


def reader(kind):
    if kind == "encoder":
        return lambda given: encoder_from_json(given).to_record()
    if kind == "stitching":
        return lambda given: record.to_json(record.from_json(StitchSpec, given))
    one = {"space": SpaceSpec, "dataset": DatasetSpec, "study": StudySpec}[kind]
    return lambda given: one.from_json(given).to_json()


def case(name, kind, given, accept=False):
    def read(folder):
        return differences(given, json.loads(json.dumps(reader(kind)(given))))

    keys = ()
    if isinstance(given, dict):
        keys = tuple(map(str, given))
    names = (kind, "settings", "source", "options", *keys)
    return Case(f"{kind}: {name}", read, {}, [], accept=accept, names=names, remedy=False)


def named(name, content, truth=None):

    def read(folder):
        found = record.to_json(space_spec(str(folder / "one.json")))
        return differences(json.loads((folder / "one.json").read_bytes()), found)

    names = ("one.json", "space", "source", "name")
    return Case(f"file: {name}", read, {"one.json": content}, truth, names=names, remedy=False)


def cases():
    specs = json.loads(Path(EARLIER, "specs.json").read_text(encoding="utf-8"))
    for kind in KINDS:
        for number, given in enumerate(specs[kind]):
            if {given.get("source"), given.get("encoder")} & {*FORMER_DATA}:
                continue  # tests/test_earlier_files.py
            former = kind == "study" and given["study"] in (*FORMER_STUDIES, *PLUGIN_STUDIES)
            yield case(f"{number}: control", kind, given, accept=not former)
            found = list(changed(given, each=2 if number else 4))
            for name, value in found[:: 1 if number == 0 else 4]:
                yield case(f"{number}: {name}", kind, value)
    space = text(specs["space"][0])
    yield named("control", space, [])
    for name, content in spoiled(space):
        yield named(name, content, [])
    for name, content in {
        "nested 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
        "a number": b"7",
        "NaN": b"NaN",
        "UTF-16": space.decode().encode("utf-16"),
        "a BOM": b"\xef\xbb\xbf" + space,
        "a name twice": space[:-1] + b', "name": "other"}',
    }.items():
        yield named(name, content, [] if name in ("UTF-16", "a BOM") else None)
    for one in places("one.json", named("", b"").read):
        yield Case(f"file: {one.name}", one.read, one.files, names=("one.json",), remedy=False)
