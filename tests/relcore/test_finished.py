"""Results that come with Relscope: found where the store has none of its own, never written, computed
again to the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relcore.base.names import STUDIES
from relcore.catalog.catalog import load, load_encoding
from relcore.catalog.encoding import EXAMPLES, encode, example_spaces
from relcore.runs.digest import digest_of
from relcore.runs.finished import FOLDER, Finished
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec, study_of
from relcore.tasks.task import inputs_of

WITH_ARRAY, WITHOUT = digest_of("with"), digest_of("without")
LARGEST_FILE, LARGEST_FOLDER = 6_000_000, 9_000_000


@pytest.fixture
def folder(tmp_path) -> Path:
    """One group of two entries, as make_finished writes them."""
    source, folder = Store(tmp_path / "source"), tmp_path / "finished"
    source.put(WITH_ARRAY, {"x": np.arange(3.0)}, {"from": "finished"})
    folder.mkdir()
    path = next(source.root.glob("entries/*/*.safetensors"))
    (folder / path.name).write_bytes(path.read_bytes())
    record = {
        "date": "2026-11-22",
        "commit": "3266a07",
        "files": [WITH_ARRAY],
        "entries": {WITHOUT: {"n": 3}},
    }
    (folder / "group.json").write_text(json.dumps(record))
    return folder


@pytest.fixture
def store(tmp_path, folder) -> Store:
    return Store(tmp_path / "own", finished=Finished(folder))


def test_a_finished_result_is_found_where_the_store_has_none(store):
    assert store.get(WITH_ARRAY).arrays["x"].tolist() == [0, 1, 2]
    assert (store.get(WITHOUT).arrays, store.get(WITHOUT).metadata) == ({}, {"n": 3})
    assert store.summary(WITH_ARRAY).shapes == {"x": (3,)}
    assert store.summary(WITHOUT).metadata == {"n": 3}
    for key in (WITH_ARRAY, WITHOUT):
        assert store.has(key)
        assert not store.has(key, own=True)
        assert (store.made(key).date, store.made(key).commit, store.made(key).group) == (
            "2026-11-22",
            "3266a07",
            "group",
        )
    assert (store.entries(), store.size()) == ([], 0)


def test_the_stores_own_result_comes_first_and_the_finished_one_again_when_it_is_removed(store, folder):
    before = (folder / f"{WITH_ARRAY}.safetensors").read_bytes()
    store.put(WITH_ARRAY, {"x": np.zeros(2)}, {"from": "here"})
    assert store.get(WITH_ARRAY).metadata == {"from": "here"}
    assert store.summary(WITH_ARRAY).shapes == {"x": (2,)}
    assert store.made(WITH_ARRAY) is None
    store.clear()
    assert store.get(WITH_ARRAY).metadata == {"from": "finished"}
    assert (folder / f"{WITH_ARRAY}.safetensors").read_bytes() == before


def test_a_damaged_finished_file_counts_as_missing_and_is_kept(store, folder):
    path = folder / f"{WITH_ARRAY}.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert store.get(WITH_ARRAY) is None
    assert path.is_file()


def test_a_store_in_a_folder_of_ones_own_holds_only_what_was_computed_for_it(tmp_path, monkeypatch):
    assert Store(tmp_path).finished is None
    assert Store(tmp_path, finished=True).finished is not None
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path))
    assert Store().finished.folder == FOLDER


def test_a_job_gets_copies_of_finished_spaces(tmp_path):
    """A worker on another machine, or one that computes all itself, does not see what came with this
    installation.
    """
    store = Store(tmp_path, finished=True)
    specs, _ = example_spaces("digits", store.finished)
    spaces = [load_encoding(store, spec.option("key")) for spec in specs]
    found = [load_encoding(Store(tmp_path), key) for key in inputs_of(store, specs, spaces)]
    assert [space.digest for space in found] == [space.digest for space in spaces]


# What is in the folder.


def test_every_group_says_when_and_with_which_code_it_was_computed():
    groups = Finished().groups
    assert {"digits", "sentences"} <= set(groups)
    for group in groups.values():
        assert group.date > "2026-11-01"
        assert group.commit
        assert not group.commit.endswith("+"), group.name
        assert group.files or group.entries


UNFINISHED = {"across-languages", "reconstruction"}  # they take a quarter of an hour, and ask to be run


@pytest.mark.parametrize("kind", sorted(set(STUDIES) - UNFINISHED))
def test_a_study_opens_on_finished_runs_and_its_conclusion(kind, tmp_path):
    study, store = study_of(kind), Store(tmp_path, finished=True)
    spec = StudySpec.of(study)
    runs = StudyRuns(study, spec)
    assert runs.missing(store) == []
    assert store.made(runs.keys[0]).group == kind
    assert len(runs.table(store)) == len(runs)
    assert study.charts(spec.settings, runs.table(store))
    assert study.conclusion(spec.settings, runs.table(store))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_spaces_of_an_example_are_those_of_its_encoders_over_its_rows(name, tmp_path):
    example, store = EXAMPLES[name], Store(tmp_path, finished=True)
    specs, made = example_spaces(name, store.finished)
    assert made.group == name
    assert [spec.encoder for spec in specs] == list(example.encoders)
    assert {spec.dataset for spec in specs} == {example.dataset}
    spaces = [load(spec, store) for spec in specs]
    assert {len(space) for space in spaces} == {example.n}
    assert all(space.labels is not None for space in spaces)


@pytest.mark.parametrize(("name", "number"), [("digits", 0), ("sentences", 0)])
def test_an_encoder_gives_the_finished_space_again(name, number, tmp_path):
    """To the bit on one processor. On others the order of sums differs in the last bits, which training
    widens.
    """
    example, finished = EXAMPLES[name], Finished()
    (space,) = encode(example.dataset, example.encoders[number], Store(tmp_path))
    specs, _ = example_spaces(name, finished)
    known = load(specs[number], Store(tmp_path / "other", finished=finished))
    assert space.ids.tolist() == known.ids.tolist()
    assert space.labels.tolist() == known.labels.tolist()
    scale = np.linalg.norm(known.vectors, axis=1).mean()
    assert np.linalg.norm(space.vectors - known.vectors, axis=1).mean() < 0.05 * scale
