"""Results that come with Relscope: found where the store has none of its own, and computed again the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relcore.base.names import STUDIES
from relcore.catalog.catalog import load
from relcore.catalog.encodings import encode
from relcore.catalog.naming import EXAMPLES, example_spaces
from relcore.runs.entries import BundledResults, digest_of
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec, study_of

WITH_ARRAY = digest_of("with")
WITHOUT = digest_of("without")


@pytest.fixture
def folder(tmp_path) -> Path:
    source = Store(tmp_path / "source")
    folder = tmp_path / "finished"
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
    return Store(tmp_path / "own", finished=BundledResults(folder))


def test_finished_result_is_found_where_store_has_none(store):
    assert store.get(WITH_ARRAY).arrays["x"].tolist() == [0, 1, 2]
    assert (store.get(WITHOUT).arrays, store.get(WITHOUT).metadata) == ({}, {"n": 3})
    assert store.summary(WITH_ARRAY).shapes == {"x": (3,)}
    assert store.summary(WITHOUT).metadata == {"n": 3}
    for key in (WITH_ARRAY, WITHOUT):
        assert store.has(key)
        assert not store.has(key, own=True)
        group = store.bundled_group(key)
        assert (group.date, group.commit, group.name) == ("2026-11-22", "3266a07", "group")
        assert group.in_words == "Computed on 2026-11-22."
    assert (store.entries(), store.size()) == ([], 0)


def test_stores_own_result_comes_first_and_finished_one_again_when_it_is_removed(store, folder):
    path = folder / f"{WITH_ARRAY}.safetensors"
    before = path.read_bytes()
    store.put(WITH_ARRAY, {"x": np.zeros(2)}, {"from": "here"})
    assert store.get(WITH_ARRAY).metadata == {"from": "here"}
    assert store.summary(WITH_ARRAY).shapes == {"x": (2,)}
    assert store.bundled_group(WITH_ARRAY) is None
    store.remove(WITH_ARRAY)
    assert store.get(WITH_ARRAY).metadata == {"from": "finished"}
    assert path.read_bytes() == before
    path.write_bytes(before[:-1])  # a damaged file counts as missing, and is kept
    assert store.get(WITH_ARRAY) is None
    assert path.is_file()


# The content of the folder.


@pytest.mark.parametrize("kind", sorted(STUDIES))
def test_study_opens_on_finished_runs_and_its_conclusion(kind, tmp_path):
    study = study_of(kind)
    store = Store(tmp_path, finished=True)
    spec = StudySpec.of(study)
    runs = StudyRuns(study, spec)
    assert runs.missing(store) == []
    assert store.bundled_group(runs.keys[0]).name == kind
    assert len(runs.table(store)) == len(runs)
    assert study.charts(spec.settings, runs.table(store))
    assert study.conclusion(spec.settings, runs.table(store))


def test_an_encoder_gives_the_finished_space_again(tmp_path):
    """The vectors are equal to the bit on the processor that computed them. On others, sums are computed in
    another order and differ in their last bits, and training amplifies this.
    """
    example = EXAMPLES["sentences"]
    finished = BundledResults()
    (space,) = encode(example.dataset, example.encoders[0], Store(tmp_path))
    specs, _ = example_spaces("sentences", finished)
    known = load(specs[0], Store(tmp_path / "other", finished=finished))
    assert space.ids.tolist() == known.ids.tolist()
    assert space.labels.tolist() == known.labels.tolist()
    scale = np.linalg.norm(known.vectors, axis=1).mean()
    assert np.linalg.norm(space.vectors - known.vectors, axis=1).mean() < 0.05 * scale
