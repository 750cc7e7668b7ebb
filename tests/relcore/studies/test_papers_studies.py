"""The studies themselves, on a rotated copy of a space."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import STUDIES
from relcore.catalog.catalog import SpaceSpec
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.studies import networks, study
from relcore.studies.study import StudySpec, study_of


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def copies(rng):
    """Two labelled spaces, the second the first one rotated and scaled; four classes that lie apart."""
    classes = np.repeat(np.arange(4), 60)
    vectors = rng.normal(size=(240, 8)) + 3 * np.eye(8)[classes]
    rotation, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    ids, labels = [f"r{i}" for i in range(240)], [f"c{one}" for one in classes]
    return [
        LatentSpace(X, ids, name=name, labels=labels)
        for name, X in (("a", vectors), ("b", 2 * vectors @ rotation))
    ]


@pytest.fixture
def encoders(monkeypatch, copies):
    monkeypatch.setattr(networks, "labelled_spaces", lambda data, store, report: copies)
    monkeypatch.setattr(networks, "test_ids_of", lambda data, space: ())


def table_of(study, settings, store, keep):
    runs = [one for one in study.runs(settings) if keep(one)]
    rows = [
        {**one, **study.measure(one, store, lambda *told: None).values, "seconds": 1.0, "key": "0" * 32}
        for one in runs
    ]
    return pd.DataFrame(rows)


def answers(study, settings, table):
    charts, findings = study.charts(settings, table), study.findings(settings, table)
    assert charts
    assert len(findings)
    assert (findings.dropna().low <= findings.dropna().value + 1e-12).all()
    told = study.conclusion(settings, table)
    assert (told == "") == (table.random_state.nunique() < 2), "one random state has no interval"
    assert told == "" or (told.endswith(".") and "(95 %: " in told)
    return charts, findings


def options_of(kind, **options):
    return StudySpec.of(study_of(kind), options).settings


@pytest.mark.parametrize("kind", STUDIES)
def test_every_study_lists_distinct_runs(kind):
    study, settings = study_of(kind), options_of(kind)
    runs = study.runs(settings)
    assert max(Counter(map(str, runs)).values()) == 1
    assert all("random_state" in one and study.seconds(one) > 0 for one in runs)
    assert StudySpec.from_json(StudySpec.of(study).to_json()).settings == settings


def test_anchor_count_on_a_rotated_copy_stitches_as_well_as_it_stays(encoders, store):
    study, settings = study_of("anchor-count"), options_of("anchor-count", n_states=3)
    table = table_of(
        study, settings, store, lambda one: one["n_anchors"] in (2, 10, 50) and one["random_state"] < 2
    )
    for form in ("relative", "whitened"):
        np.testing.assert_allclose(table[f"{form}, stitched"], table[f"{form}, same space"])
    enough = table[table.n_anchors == 50]
    assert (enough["relative, stitched"] > 0.9).all()
    assert (enough["absolute, stitched"] < 0.8).all()
    charts, _ = answers(study, settings, table)
    assert list(charts["accuracy"].lines[0].x) == [2, 10, 50]
    # Four classes as frequent, test rows drawn by their ids: within 3.5 standard errors of the mean over two
    # draws.
    error = np.sqrt(0.25 * 0.75 / (2 * table["test rows"].min()))
    assert dict(charts["accuracy"].baselines)["chance"] == pytest.approx(0.25, abs=3.5 * error)


def test_spaces_of_a_session_travel_as_json(tmp_path, copies, store):
    import json

    specs = []
    for space in copies:
        np.savez(tmp_path / f"{space.name}.npz", vectors=space.vectors, ids=space.ids.astype(str))
        specs.append(SpaceSpec("file", str(tmp_path / f"{space.name}.npz")))
    texts = [json.dumps(spec.to_json()) for spec in specs]
    assert len(study.word_pair(texts, store)) == 240
    changed = json.dumps({**specs[1].to_json(), "digest": "0" * 32})
    with pytest.raises(SpaceError, match="changed since"):
        study.word_pair([texts[0], changed], store)


def test_the_anchors_that_are_enough_are_enough_at_each_larger_number():
    """With 20 anchors by luck, with 50 and 100 in truth; of the other column with none."""
    ratios = {5: 0.5, 10: 0.8, 20: 0.96, 30: 0.9, 50: 0.97, 100: 0.99}
    table = pd.DataFrame(
        {
            "random_state": state,
            "n_anchors": n,
            "full": 0.8,
            "good": 0.8 * (ratio + state / 1000),
            "poor": 0.3 + state / 1000,
        }
        for n, ratio in ratios.items()
        for state in range(3)
    )
    told = networks._enough_anchors(table, "full", {"good": "good rows", "poor": "poor rows"})
    assert "50 anchors on good rows, which give .777 (95 %: " in told
    assert "perhaps more than 100 anchors on poor rows, where 100 give .301 (95 %: " in told
    assert told.endswith("over 3 random states")
    assert networks._enough_anchors(table[::3], "full", {"good": "good rows"}) == "", "one state"
