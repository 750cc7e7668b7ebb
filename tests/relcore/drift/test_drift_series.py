"""A series of versions: each pair as `DriftCheck` measures it, figures, and bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from relcore import LatentSpace
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.drift.check import LINES, DriftCheck, DriftSeries, SeriesDrift
from relcore.drift.measures import EVERYTHING_NEW

N = 200
IDS = [f"row {number}" for number in range(N)]


@pytest.fixture(scope="module")
def versions():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(N, 8))]
    for step in range(4):
        rows.append(rows[-1] + 0.5 ** (step + 1) * rng.normal(size=(N, 8)))
    return [LatentSpace(one, IDS, name=f"epoch {number}") for number, one in enumerate(rows)]


@pytest.fixture(scope="module")
def series(versions):
    return DriftSeries().run(versions)


@pytest.mark.parametrize(("old", "new"), [(0, 1), (3, 1), (0, 4)])
def test_each_pair_has_the_numbers_of_the_gate(versions, series, old, new):
    drift = DriftCheck().run((versions[old], versions[new]))
    for situation, quantity, _ in LINES:
        found = series.matrix(situation, quantity)[old, new]
        if quantity == "rho":
            assert found == pytest.approx(
                drift.rho, rel=1e-6
            )  # of the pair in the other direction, if old comes later
        else:
            assert found == drift.of(situation, quantity).value


def test_training_that_settles_changes_less_and_less(series):
    steps = series.steps(EVERYTHING_NEW, "churn", "previous")
    assert (np.diff(steps) < 0).all()
    since = series.steps(EVERYTHING_NEW, "churn", "first")
    assert since[-1] > since[0]
    assert (
        series.headline()
        == f"'epoch 1' changed most: {100 * steps[0]:.0f} % of the 10 nearest neighbours are others than in"
        f" 'epoch 0'. The last changed {100 * steps[-1]:.0f} %."
    )


def test_unrelated_versions_are_at_chance_level():
    rng = np.random.default_rng(1)
    made = [LatentSpace(rng.normal(size=(N, 8)), IDS, name=name) for name in "abc"]
    found = DriftSeries().run(made)
    # 2,000 neighbours, 5 % of them kept: a standard error of .005, doubled as some rows are neighbours of
    # many; three of it.
    assert found.churn[~np.eye(3, dtype=bool)] == pytest.approx(np.full(6, found.chance_churn), abs=0.03)


def test_it_comes_back_from_the_store(versions, series, tmp_path):
    from relcore.runs.store import Store

    back = DriftSeries().compute(Store(tmp_path), versions, print)
    assert isinstance(back, SeriesDrift)
    assert json.dumps(records.to_json(back)) == json.dumps(records.to_json(series))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda versions: versions[:1], "expected 2 to 40 versions, got 1"),
        (
            lambda versions: [versions[0], LatentSpace(np.eye(3), list("abc"))],
            "expected rows that all versions have, got none",
        ),
    ],
)
def test_bad_input(versions, made, told):
    with pytest.raises(SpaceError, match=told):
        DriftSeries().run(made(versions))
