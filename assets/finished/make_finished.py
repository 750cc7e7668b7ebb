"""Compute the results that come with Relscope, so that Compare, Stitch, Bootstrap, Migrate and Studies open
with a picture.

    python assets/finished/make_finished.py [GROUP …] [--output relcore/data/finished] [--only-texts]

Groups: digits, sentences, study-encoders, bootstrap, explain, migration-example, and the names of
studies; default: all that are there. A group contains what its page computes with default settings. A group
takes from 10 s to an hour on one core. Commit first, because the date and the commit are stored with the
results. Afterwards, the findings in docs/places.md are updated from the bundled runs. With --only-texts, only
these findings are updated.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from relcore.base.names import STUDIES
from relcore.catalog.catalog import SpaceSpec, held_out_ids, load, stored_encoding_spec
from relcore.catalog.encodings import encode, encoding_key, key_of, space_of
from relcore.catalog.naming import EXAMPLES, example_spaces
from relcore.catalog.task import Task
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import TrainedEncoder
from relcore.encoders.words import BUNDLED, load_words
from relcore.explain.explanation import Explain
from relcore.linking.link import BootstrapSpec
from relcore.migrate import migration
from relcore.migrate.thresholds import ThresholdChange
from relcore.runs.entries import FOLDER, bundled_results
from relcore.runs.store import Store
from relcore.runs.work import Context
from relcore.spaces.space import LatentSpace
from relcore.stitch.shared_rows import share_rows
from relcore.stitch.stitching import StitchSpec
from relcore.studies.data import dataset_of, encoders_of
from relcore.studies.paper_runs import commit_of
from relcore.studies.runs import StudyRuns, finished_run
from relcore.studies.study import StudySpec, study_of

_LARGEST = 6_000_000  # maximum number of bytes of a file
_LONG = 20_000  # number of characters of metadata above which an entry has its own file
PLACES = Path(__file__).parents[2] / "docs" / "places.md"


def example_keys(name: str, store: Store) -> list[str]:
    """Encode an example and stitch it. Returns the keys of encodings, trained weights and stitching."""
    example = EXAMPLES[name]
    dataset = load_dataset(example.dataset, store)
    encodings = []
    trained = []
    spaces = []
    for encoder in example.encoders:
        spaces += encode(example.dataset, encoder, store)
        encodings += [encoding_key(dataset.digest, encoder, output) for output in encoder.outputs]
        if isinstance(encoder, TrainedEncoder):
            trained.append(key_of("trained", dataset.digest, encoder))
    specs = [stored_encoding_spec(store.summary(key)) for key in encodings]
    rows = share_rows(spaces)
    test_ids = held_out_ids(specs, spaces, rows.ids)
    if test_ids:
        n_train = len(rows.targets) - len(test_ids)
    else:
        n_train = int(0.8 * len(rows.targets))
    widest = max(space.dimension for space in spaces)
    return [
        *encodings,
        *trained,
        finish(StitchSpec(n_anchors=min(2 * widest, n_train // 2), test_ids=test_ids), spaces, store),
    ]


def migration_keys(store: Store) -> list[str]:
    """Compute the example of the Migrate page. Returns the keys of the old model's encoding and of the
    results of the first tabs. The new model's encoding is in the group "sentences".
    """
    old = encode(migration.DATASET, migration.OLD, store)[0]
    sentences, _ = example_spaces("sentences", bundled_results())
    (spec,) = (spec for spec in sentences if spec.encoder == migration.NEW)
    new = space_of(bundled_results().get(spec.option("key")))
    spaces = (old, new)
    keys = [
        encoding_key(load_dataset(migration.DATASET, store).digest, migration.OLD),
        finish(migration.TASK, spaces, store),
    ]
    result = migration.TASK.read(store.get(keys[1]))
    settings = {"migration": migration.TASK, "adapter": result.adapter, "keep": "precision"}
    return [*keys, finish(ThresholdChange(**settings), spaces, store)]


def finish(task: Task, spaces: Sequence[LatentSpace], store: Store) -> str:
    """Run a task. Returns its key."""
    key = task.key(spaces)
    task.finish(Context(key, store), spaces)
    return key


def keys_of(group: str, store: Store) -> list[str]:
    """Compute the results of a group. Returns their keys."""
    if group in EXAMPLES:
        return example_keys(group, store)
    if group == "study-encoders":
        dataset = load_dataset(dataset_of("digits"), store)
        encoders = encoders_of("digits")
        for encoder in encoders:
            encode(dataset_of("digits"), encoder, store)
        return [encoding_key(dataset.digest, encoder) for encoder in encoders]
    if group == "bootstrap":
        return [finish(BootstrapSpec(), [load_words(name) for name in BUNDLED], store)]
    if group == "explain":
        specs = tuple(SpaceSpec("bundled", name) for name in BUNDLED)
        return [finish(Explain(items=specs), [load(spec) for spec in specs], store)]
    if group == migration.GROUP:
        return migration_keys(store)
    study = study_of(group)
    runs = StudyRuns(study, StudySpec.of(study))
    for number, settings in enumerate(runs.settings, start=1):
        print(f"{group}: run {number} of {len(runs)}", end="\r", flush=True)
        finished_run(study, settings, store, lambda *told: None)
    return runs.keys


def write(group: str, keys: Sequence[str], store: Store, output: Path, commit: str) -> None:
    """Copy the entries of these keys into the folder, and list them in GROUP.json. Files that this list named
    before are removed first.
    """
    listed = output / f"{group}.json"
    for key in json.loads(listed.read_text(encoding="utf-8"))["files"] if listed.is_file() else ():
        (output / f"{key}.safetensors").unlink(missing_ok=True)
    files = []
    entries = {}
    for key in keys:
        entry = store.get(key)
        if entry.arrays or len(json.dumps(entry.metadata)) > _LONG:
            path = output / f"{key}.safetensors"
            path.write_bytes((store.root / "entries" / key[:2] / path.name).read_bytes())
            assert path.stat().st_size <= _LARGEST, (group, path.stat().st_size)
            files.append(key)
        else:
            entries[key] = entry.metadata
    record = {"date": date.today().isoformat(), "commit": commit, "files": files, "entries": entries}
    listed.write_text(to_text(record), encoding="utf-8")
    print(f"{group}: {len(keys)} results")


def to_text(record: dict[str, Any]) -> str:
    """The record as JSON, with one line per entry."""
    entries = ",\n".join(f"{json.dumps(key)}: {_line(entry)}" for key, entry in record["entries"].items())
    head = ", ".join(f'"{name}": {_line(record[name])}' for name in ("date", "commit", "files"))
    return f'{{{head}, "entries": {{\n{entries}\n}}}}\n'


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def with_findings(text: str) -> str:
    """The text of docs/places.md with the conclusion of each study that its table names."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, finished=True)
        known = lambda row: finding(row[1], store) if row[1] in STUDIES else row[0]  # noqa: E731
        return re.sub(r"(?m)^\| `([a-z-]+)`: .*$", known, text)


def finding(kind: str, store: Store) -> str:
    study = study_of(kind)
    spec = StudySpec.of(study)
    conclusion = study.conclusion(spec.settings, StudyRuns(study, spec).table(store))
    return f"| `{kind}`: {study.question} | {conclusion.replace('(95 %: ', '(')} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", default=sorted(path.stem for path in FOLDER.glob("*.json")))
    parser.add_argument("--output", type=Path, default=FOLDER)
    parser.add_argument("--only-texts", action="store_true")
    arguments = parser.parse_args()
    commit = commit_of()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        for group in arguments.groups if not arguments.only_texts else ():
            write(group, keys_of(group, store), store, arguments.output, commit)
    PLACES.write_text(with_findings(PLACES.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
