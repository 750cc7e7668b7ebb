"""A series of versions: each pair as `DriftCheck` measures it, figures, and bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from relcore import LatentSpace
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.drift.check import DriftCheck
from relcore.drift.figures import (
    DriftChart,
    DriftLines,
    DriftMap,
    churn_chart,
    series_chart,
    version_matrices,
)
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES
from relcore.drift.series import LINES, DriftSeries, SeriesDrift

N = 200
IDS = [f"row {number}" for number in range(N)]


@pytest.fixture(scope="module")
def versions():
    """Training that settles: each step adds half of the noise of the last."""
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


def test_a_version_beside_itself_has_not_changed(series):
    for situation, quantity, _ in LINES:
        assert series.matrix(situation, quantity).diagonal() == pytest.approx(0)
    assert series.churn == pytest.approx(series.churn.T, abs=0.01)  # but for ties


def test_unrelated_versions_are_at_chance_level():
    rng = np.random.default_rng(1)
    made = [LatentSpace(rng.normal(size=(N, 8)), IDS, name=name) for name in "abc"]
    found = DriftSeries().run(made)
    # 2,000 neighbours, 5 % of them kept: a standard error of .005, doubled as some rows are neighbours of
    # many; three of it.
    assert found.churn[~np.eye(3, dtype=bool)] == pytest.approx(np.full(6, found.chance_churn), abs=0.03)


def test_widths_may_differ(versions):
    narrow = LatentSpace(versions[1].vectors[:, :5], IDS, name="narrow")
    found = DriftSeries().run([versions[0], narrow, versions[2]])
    assert np.isnan(found.lost[0, 1])
    assert not np.isnan(found.lost[0, 2])
    assert len(series_chart(found, "first").lines) == 4
    assert version_matrices(found).panels[0].values.shape == (3, 3)


def test_only_rows_that_all_have_are_compared(versions, series):
    shuffled = versions[1].take(np.random.default_rng(2).permutation(N)[:150])
    found = DriftSeries().run([versions[0], shuffled, versions[2]])
    assert found.n == 150


def test_it_comes_back_from_the_store(versions, series, tmp_path):
    from relcore.runs.store import Store

    back = DriftSeries().compute(Store(tmp_path), versions, print)
    assert isinstance(back, SeriesDrift)
    assert json.dumps(records.to_json(back)) == json.dumps(records.to_json(series))


def test_the_figures_draw_what_was_measured(series, versions):
    specs = tuple(SpaceSpec("file", f"{number}.npz") for number in range(5))
    for recipe in (
        DriftLines(spaces=specs),
        DriftLines(spaces=specs, against="first"),
        DriftMap(spaces=specs),
    ):
        drawn = recipe.draw(series)
        assert drawn.table().equals(series.table())
        assert drawn.recipe["figure"] == recipe.figure
    chart = series_chart(series, "first")
    assert [line.name for line in chart.lines] == [title for *_, title in LINES]
    assert chart.lines[0].y.tolist() == series.churn[0, 1:].tolist()
    drift = DriftCheck().run((versions[0], versions[1]))
    churn = churn_chart(drift)
    assert churn.x_names == ("all rows",)
    assert churn.lines[1].y.tolist() == [drift.of(NEW_QUERIES, "churn").value]
    assert DriftChart(old=specs[0], new=specs[1]).draw(drift).table()["value"].tolist() == [
        one.value for one in drift.measures
    ]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda versions: versions[:1], "expected 2 to 40 versions, got 1"),
        (lambda versions: versions[:1] * 41, "expected 2 to 40 versions, got 41"),
        (
            lambda versions: [versions[0], LatentSpace(np.eye(3), list("abc"))],
            "expected rows that all versions have, got none",
        ),
        (lambda versions: [versions[0], versions[1].take(np.arange(4))], "expected 10 rows or more .* got 4"),
    ],
)
def test_bad_input(versions, made, told):
    with pytest.raises(SpaceError, match=told):
        DriftSeries().run(made(versions))


def test_bad_settings(series):
    with pytest.raises(SpaceError, match="against: expected one of previous, first, got 'last'"):
        DriftLines(spaces=(), against="last")
    with pytest.raises(SpaceError, match="jitter"):
        DriftSeries(jitter=2)
