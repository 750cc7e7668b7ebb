"""Quantisation: distances of known rows, and a rotated copy that every t leaves equal."""

import numpy as np
import pandas as pd
import pytest

from relcore.spaces.space import LatentSpace
from relcore.studies import relative
from relcore.studies.relative import distances_of
from relcore.studies.study import StudySpec, study_of


def spaces_of(*vectors, labels=None):
    ids = [f"r{i}" for i in range(len(vectors[0]))]
    return [LatentSpace(X, ids, name=name, labels=labels) for name, X in zip("ab", vectors, strict=True)]


@pytest.fixture
def measured(monkeypatch):

    def run(spaces, data="words", n_states=1, **options):
        monkeypatch.setattr(relative, "studied_spaces", lambda *arguments: spaces)
        monkeypatch.setattr("relcore.studies.study.test_ids_of", lambda data, space: ())
        study = study_of("quantisation")
        settings = StudySpec.of(study, {"data": [data], "n_anchors": 100, **options}).settings
        runs = [one for one in study.runs(settings) if one["random_state"] < n_states]
        table = pd.DataFrame([{**one, **study.measure(one, None, lambda *told: None).values} for one in runs])
        return study, settings, table

    return run


def test_distances_against_their_plain_formulas(rng):
    a, b = rng.normal(size=(2, 40, 7)).astype(np.float32)
    units = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (a, b)]
    table = 1 - units[0] @ units[1].T
    found = distances_of(a, b)
    assert found["distance"] == pytest.approx(np.trace(table) / 40, abs=1e-6)
    assert found["bound"] == pytest.approx(np.quantile(np.diag(table), 0.95), abs=1e-6)
    assert found["chance distance"] == pytest.approx(table[~np.eye(40, dtype=bool)].mean(), abs=1e-6)


def test_a_rotated_copy_is_at_distance_zero_at_every_t_and_loses_rows_all_the_same(measured, rng):
    classes = np.repeat(np.arange(4), 100)
    X = rng.normal(size=(400, 8)) + 3 * np.eye(8)[classes]
    rotation, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    spaces = spaces_of(X, 2 * X @ rotation, labels=[f"c{one}" for one in classes])
    study, settings, table = measured(spaces, "digits")
    assert table.distance.max() == pytest.approx(0, abs=1e-4)
    assert table.mrr.iloc[0] == pytest.approx(1, abs=0.01)
    assert table["distinct rows"].is_monotonic_decreasing
    assert table.mrr.iloc[-1] < 0.4, "t = 3 leaves a few clusters, and a row ties with all of its own"
    assert table.accuracy.min() > 0.8
    charts = study.charts(settings, table)
    assert list(charts) == ["digits: price", "digits: distance"]
    assert dict(charts["digits: price"].baselines)["chance of accuracy"] == pytest.approx(0.25, abs=0.1)
    assert len(study.findings(settings, table)) == len(table) * 7
    assert study.conclusion(settings, table) == "", "one state gives no interval"


def test_rows_that_tie_are_found_at_random(measured, rng):
    """All rows alike: MRR among m rows is chance, (1 + 1/2 + … + 1/10) / m, not 1 for whoever comes first."""
    X = np.ones((400, 5)) + 1e-3 * rng.normal(size=(400, 5))
    _, _, table = measured(spaces_of(X, X[:, ::-1]))
    last = table.iloc[-1]
    chance, m = sum(1 / rank for rank in range(1, 11)), last["test rows"]
    # Each reciprocal rank is at most 1 and has a second moment of Σ 1/rank² / m; two directions are averaged.
    error = np.sqrt(sum(1 / rank**2 for rank in range(1, 11)) / m / m)
    assert last.mrr == pytest.approx(chance / m, abs=4 * error)
    # Two random lists of 10 of m rows share 10² / m on average, and hardly ever three times that; in row
    # order they share all.
    assert last.jaccard < 3 * 100 / m / 20
