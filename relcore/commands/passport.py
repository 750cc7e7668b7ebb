"""The commands that make a passport or check vectors against one, and that find the models of a collection.
Their exit codes decide in CI.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, quote
from relcore.base.report import Report, delimited_text
from relcore.base.settings import setting
from relcore.base.text import read_lines
from relcore.base.writing import write
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.naming import SPACE_HELP, space_spec
from relcore.commands.running import Results, command, values_of, written
from relcore.files.saving import SPACE_KINDS, write_space
from relcore.passport.charts import CheckChart
from relcore.passport.check import MARKS, Checked, CheckRows, check
from relcore.passport.passport import (
    ANCHORS,
    CHANGES,
    SUFFIX,
    UNCHANGED,
    Passport,
    PassportCard,
    encode_texts,
    latest,
    model_at_hand,
    name_recipe,
    paired_anchors,
    picture_anchors,
)
from relcore.passport.repair import repair
from relcore.runs.store import Store
from relcore.spaces.ids import RowNumbers
from relcore.spaces.space import LatentSpace, ids_of
from relcore.stores.index import find_rows, parse_place

BUNDLED = "bundled"  # the bundled anchor texts
VERBS = {"make": 1, "check": 2}
ACCEPTED = (*UNCHANGED, "rotated")


@dataclass
class PassportOptions:
    verb: str = setting(choices=tuple(VERBS), help="what to do")
    files: tuple[str, ...] = setting(metavar="FILE", nargs="+", help=f"a passport; or {SPACE_HELP}")
    vectors: str = setting(
        None,
        metavar="FILE",
        help="Of make: FILE has a text per line, and this their vectors, in the same order.",
    )
    ids: Path = setting(
        None,
        metavar="FILE",
        help="Ids of the anchors in a store, one per line. Of make: the rows to take. Of check: in the"
        " passport's order, if the store has ids of its own.",
    )
    pictures: bool = setting(
        False,
        help="Of make: FILE is a dataset of pictures, such as a folder or digits. The anchors are digests of"
        " their pixels; the vectors come from --vectors, by the dataset's ids or in its order, or from an"
        " encoder of pictures.",
    )
    fingerprint: tuple[str, ...] = setting(
        (),
        metavar="SPACE,SPACE,SPACE",
        help="Of make: vectors of three domains or more by the same model, by which check --known names it.",
    )
    encoder: str = setting(
        None,
        metavar="MODEL",
        help="Of make: FILE has one text per line, and this model makes the vectors (minilm, or a folder of"
        " transformers). Of check: try likely prompts, poolings and layers of this model, and name the"
        " one that makes the new vectors.",
    )
    gate: str = setting(
        "rounded",
        choices=ACCEPTED,
        help="Of check: the largest change for which the exit code is 0: same, rounded, rescaled or rotated.",
    )


@command(
    (PassportOptions, PassportCard, Results),
    "“make SPACE” publishes all rows of a space as anchors, with a card of their model; “make bundled"
    " --encoder …” takes the 300 texts that come with Relscope, “make FOLDER --pictures” the digests of"
    f" pictures. “check FILE NEW” says what became of them: {', '.join(CHANGES)}; NEW is another"
    " passport, or a space or store that has their ids. The exit code of a check is 1 beyond --gate, 2"
    " after an error.",
    (
        "make anchors.txt --encoder minilm -o minilm.safetensors",
        "check minilm.safetensors lancedb:store#notes --gate rounded",
    ),
    output=f"Of make: the passport to write, {SUFFIX}.",
    suffixes={"output": [SUFFIX]},
)
def run_passport(options: argparse.Namespace) -> Report:
    if len(options.files) != VERBS[options.verb]:
        expected = "one file" if VERBS[options.verb] == 1 else "two files"
        raise SpaceError(f"{options.verb}: expected {expected}, got {quote(options.files)}")
    if options.verb == "check":
        return _checked_passport(options)
    if options.output is None:
        raise SpaceError(f"{options.verb}: expected where to write, got no -o; name a file or a folder")
    passport = _make_passport(options)
    if options.fingerprint:
        domains = [load(space_spec(name), again=True).vectors for name in options.fingerprint]
        passport = passport.with_fingerprint(domains)
    passport.save(options.output)
    n, d = passport.vectors.shape
    model = passport.card.model or "a model without name"
    line = f"{n:,} anchors × {d:,} numbers, of {model}"
    facts = {"passport": asdict(passport.card)}
    return written(line, facts=facts, n=n, dimension=d, model=passport.card.model)


def _make_passport(options: argparse.Namespace) -> Passport:
    card, [source], ids = PassportCard(**values_of(options, PassportCard)), options.files, _ids(options)
    if options.pictures:
        space = _of_pictures(options, source)
        return Passport.of(space, replace(card, model=card.model or space.name))
    if options.encoder is None and options.vectors is None:
        if source == BUNDLED or (not ids and Path(source).suffix == ".txt"):
            raise SpaceError(
                f"make {source}: expected vectors of these texts, got none; give --encoder or --vectors"
            )
        space = _rows(source, ids)
        return Passport.of(space, replace(card, model=card.model or space.name))
    texts = read_lines(ANCHORS if source == BUNDLED else expand_home(source), "one text per line")
    if twice := [text for text, n in Counter(texts).items() if n > 1]:
        raise SpaceError(f"{source}: expected distinct texts, got {quote(twice[:3])} again; remove one")
    if options.vectors is not None:
        rows = _rows(options.vectors, ids)
        if len(rows) != len(texts):
            raise SpaceError(
                f"{options.vectors}: expected {len(texts):,} rows, one per text, got {len(rows):,}; embed the"
                " texts again"
            )
        return Passport.of(rows.with_columns(ids=texts), replace(card, model=card.model or rows.name))
    encoder = latest(options.encoder)
    if card.pooling:
        encoder = replace(encoder, pooling=card.pooling)
    [rows] = encode_texts(encoder, texts, card.prompt).values()
    name = card.model or Path(options.encoder).name
    space = LatentSpace(rows, texts, name=name)
    return Passport.of(space, replace(card, model=name, pooling=encoder.pooling))


def _of_pictures(options: argparse.Namespace, source: str) -> LatentSpace:
    """The vectors of a dataset's pictures, with digests of their pixels as ids; of equal pictures only the
    first."""
    from relcore.catalog.catalog import encode
    from relcore.catalog.naming import encoder_named
    from relcore.commands.encode import dataset_spec
    from relcore.encoders.datasets import load_dataset

    dataset = load_dataset(dataset_spec(argparse.Namespace(dataset=source, config="", id_column=None)))
    if dataset.kind != "images":
        raise SpaceError(f"{source}: expected pictures, got {dataset.kind}; leave out --pictures")
    if options.vectors is not None:
        space = load(space_spec(options.vectors), again=True)
        if len(space) != len(dataset) or not isinstance(ids_of(space), RowNumbers):
            space = space.take(space.rows(dataset.ids))
    elif options.encoder is not None:
        space = encode(dataset, encoder_named(options.encoder, {}, dataset, set()), Store())[-1]
    else:
        raise SpaceError(
            "make --pictures: expected vectors, got none; give --vectors, or --encoder, such as pixels"
        )
    anchors = [one for _, images in dataset.blocks() for one in picture_anchors(images)]
    first = np.flatnonzero(~pd.Index(anchors).duplicated())
    return space.take(first).with_columns(ids=[anchors[row] for row in first])


def _ids(options: argparse.Namespace) -> list[str]:
    return read_lines(options.ids, "one id per line") if options.ids else []


def _space_of(source: str, ids: Sequence[str]) -> LatentSpace:
    """The space of this name; for a store, only its rows with these ids."""
    place = parse_place(source)
    if ids and place is not None and place.kind != "npy":
        try:
            return find_rows(place, ids)
        except SpaceError:
            if place.where != source:
                raise  # otherwise a table, which `load` can read
    return load(space_spec(source), again=True)


def _rows(source: str, ids: Sequence[str]) -> LatentSpace:
    space = _space_of(source, ids)
    return space.take(space.rows(ids)) if ids else space


def _checked_passport(options: argparse.Namespace) -> Report:
    passport, ids = Passport.load(options.files[0]), _ids(options)
    if ids and len(ids) != len(passport.ids):
        raise SpaceError(
            f"{options.ids}: expected {len(passport.ids):,} ids, one per anchor, got {len(ids):,}; write them"
            " in the passport's order"
        )
    new = _space_of(options.files[1], ids or passport.ids)
    new = new.take(new.rows(ids)).with_columns(ids=passport.ids) if ids else new
    texts, _, rows = paired_anchors(passport, new)
    found = check(LatentSpace(rows, texts, name=new.name), passport)  # of a large file only the anchors
    change = found.change
    if options.encoder is not None:
        change = replace(change, named=name_recipe(model_at_hand(options.encoder), texts, rows))
    fine = change.kind in ACCEPTED[: ACCEPTED.index(options.gate) + 1]
    report = change.report(passport=asdict(passport.card), alarm=not fine)
    marks = [
        f"{len(rows):,} of {found.n:,} rows have {MARKS[name]}." for name, rows in found.partial_marks.items()
    ]
    alarm = [] if fine else [f"An alarm: more than --gate {options.gate} accepts."]
    return replace(report, notes=[*report.notes, *marks, *alarm])


@dataclass
class CheckOptions:
    space: str = setting(metavar="SPACE", help=SPACE_HELP)
    trusted: str = setting(
        None,
        metavar="ROWS",
        help="Rows of the model that should have made all, 100 or more, of any texts; or its passport.",
    )
    known: tuple[Path, ...] = setting(
        (),
        metavar="PASSPORT,PASSPORT",
        help="Passports with fingerprints: which of these models made the larger part.",
    )
    repair: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write the collection with the smaller part mapped into the space of the larger one"
        f" ({', '.join(SPACE_KINDS)}).",
    )
    again: str = setting(
        None,
        metavar="ROWS",
        help="Of --repair: some rows of the smaller part, 10 or more, embedded again with the model of the"
        " larger part, under their ids. Without them the parts are linked without pairs.",
    )
    plan: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write what to do with a store (.json): ids to embed again, and commands.",
    )


@command(
    (CheckOptions, CheckRows, Results),
    "Exact marks tell how numbers were stored; --trusted ranks rows by the axes that the right model hardly"
    " uses; and without any reference parts of the collection are compared by these axes. Each level says"
    " what it cannot see. The exit code is 1 if two models were found, if rows were stored"
    " differently, or if a trusted passport's anchors have other vectors; 2 after an error.",
    (
        "lancedb:store#notes --trusted minilm.safetensors -o rows.csv",
        "vectors.npz --again embedded.npz --repair repaired.npz",
    ),
    suffixes={"output": [".csv"], "repair": SPACE_KINDS, "plan": [".json"]},
    output="Write all rows (.csv), ranked, with the evidence for each.",
)
def run_check(options: argparse.Namespace) -> Report:
    spec, task = space_spec(options.space), CheckRows(**values_of(options, CheckRows))
    space = load(spec, again=True)
    trusted, trusted_spec = _trusted_rows(options.trusted)
    known = [Passport.load(file) for file in options.known]
    found = check(space, trusted, known, random_state=task.random_state)
    if options.output:
        write(options.output, delimited_text(found.rows(space.ids)).encode())
    spaces = (space, *([load(trusted_spec)] if trusted_spec else []))
    recipe = {"space": spec, "trusted": trusted_spec, "digests": tuple(one.digest for one in spaces)}
    report = found.report(space.ids, check=lambda: CheckChart(**recipe, check=task).draw((space, found)))
    notes = [*report.notes]
    if options.repair:
        again = load(space_spec(options.again), again=True) if options.again else None
        whole, told = repair(space, found, again, task.random_state)
        write_space(whole, options.repair)
        notes.append(told)
    if options.plan:
        write(options.plan, (json.dumps(_plan(options.space, space, found), indent=2) + "\n").encode())
    return replace(report, notes=notes)


def _trusted_rows(name: str | None) -> tuple[LatentSpace | Passport | None, SpaceSpec | None]:
    """Trusted rows, or a passport, with the spec of the space."""
    if name is None:
        return None, None
    spec = space_spec(name)
    if Path(name).suffix.lower() == SUFFIX:
        try:
            return Passport.load(name), spec
        except SpaceError:  # vectors as safetensors, or a damaged passport, which the next line refuses
            pass
    return load(spec, again=True), spec


def _plan(place: str, space: LatentSpace, found: Checked) -> dict[str, Any]:
    """The plan for a store: the ids to embed again, the likeliest first, or how to map the rows."""
    steps = [
        "Embed some of the ids again with the model of the other rows; 300 are enough to map the rest:"
        f" relscope check {place} --again ROWS --repair FILE.npz",
        "Or embed all of the ids again.",
        f"Write these rows to the store under their ids, and check again: relscope check {place}",
    ]
    rows = np.argsort(-found.ranks, kind="stable")[: found.suspected_rows.sum() * bool(len(found.ranks))]
    told = {"store": place, "verdict": found.verdict, "rows": found.n, "estimated": found.count}
    told |= {"not seen": found.limits, "steps": steps * bool(len(rows)), "ids": [*map(str, space.ids[rows])]}
    return told
