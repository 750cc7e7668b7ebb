"""Partial re-embedding: a hard cluster goes first, a random order gains evenly, and the stop sign stands
where gains end.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.adapters import ProcrustesAdapter
from relcore.migrate.partial import (
    comparable,
    held_out_residuals,
    order_rows,
    partial_curve,
    predict_residuals,
)
from relcore.represent.similarity import unit_rows

N = 600
IDS = [f"r{row}" for row in range(N)]
HARD = (
    np.arange(N) < 150
)  # one quarter, in a region of its own, whose old vectors tell nothing about the new ones


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    new = rng.normal(size=(N, 16)).astype(np.float32)
    turn, _ = np.linalg.qr(rng.normal(size=(16, 16)))
    old = new @ turn + 0.1 * rng.normal(size=new.shape)
    old[HARD] = rng.normal(size=(HARD.sum(), 16))
    old = np.hstack([old, np.where(HARD, 6.0, 0.0)[:, None]])
    return new, old.astype(np.float32)


@pytest.fixture(scope="module")
def scores(models):
    """Noisy copies of the rows as queries, through the adapter and by the new model; row i is relevant to
    query i.
    """
    new, old = models
    adapter = ProcrustesAdapter().fit(new[~HARD][:200], old[~HARD][:200])
    queries = new + 0.3 * np.random.default_rng(1).normal(size=new.shape).astype(np.float32)
    bridged, own = adapter.transform(queries) @ adapter.corpus(old).T, unit_rows(queries) @ unit_rows(new).T
    slope, offset = comparable(bridged, own)
    return slope * bridged + offset, own


def found_first(scores):
    return (scores.argmax(axis=1) == np.arange(N)).astype(float)


def test_residuals_are_large_where_the_models_disagree(models):
    residuals = held_out_residuals(ProcrustesAdapter, *models, IDS)
    assert np.median(residuals[HARD]) > 2 * np.median(residuals[~HARD])
    known = np.where(np.arange(N) % 3 == 0, residuals, np.nan)
    predicted = predict_residuals(models[1], known)
    assert predicted.skill > 0.5
    np.testing.assert_array_equal(predicted.residuals[::3], residuals[::3])
    assert HARD[order_rows("residual", IDS, predicted.residuals)[:150]].mean() > 0.95


def test_residuals_that_no_neighbour_shares_cannot_be_predicted(models):
    rng = np.random.default_rng(0)
    skill = [predict_residuals(models[1], rng.permutation(N).astype(float)).skill for _ in range(10)]
    assert max(skill) < 0.1  # a mean of ten unrelated values: −.1, standard error .06


def test_the_hard_cluster_first_gains_most(models, scores):
    bridged, new = scores
    residuals = held_out_residuals(ProcrustesAdapter, *models, IDS)
    shares = (0.0, 0.25, 0.5, 1.0)
    hard = partial_curve(
        "residual", bridged, new, order_rows("residual", IDS, residuals), found_first, shares
    )
    random = partial_curve("random", bridged, new, order_rows("random", IDS), found_first, shares)
    assert hard.quality[0] == random.quality[0]
    assert hard.quality[-1] == random.quality[-1] == found_first(new).mean()
    gained = (hard.quality[1] - hard.quality[0]) / (hard.quality[-1] - hard.quality[0])
    assert gained > 0.9
    assert hard.quality[1] > random.quality[1] + 0.05
    assert hard.stop(0.02) == 0.25
    assert random.stop(0.02) == 1
    assert "From 25 % on" in hard.describe(0.02)


def test_a_random_order_gains_in_proportion_to_the_share(scores):
    bridged, new = scores
    shares = np.linspace(0, 1, 6)
    curves = [
        partial_curve(
            "random", bridged, new, order_rows("random", IDS, random_state=state), found_first, shares
        ).quality
        for state in range(8)
    ]
    straight = np.linspace(found_first(bridged).mean(), found_first(new).mean(), 6)
    np.testing.assert_allclose(
        np.mean(curves, axis=0), straight, atol=0.03
    )  # standard error .02 / √8, and rows that compete


def test_equal_models_have_nothing_to_gain(scores):
    _, new = scores
    curve = partial_curve("random", new, new, order_rows("random", IDS), found_first)
    assert np.ptp(curve.quality) == 0
    assert curve.stop(0.01) == 0
    assert "does not clearly add" in curve.describe(0.01)


def test_scores_of_both_parts_get_one_scale():
    rng = np.random.default_rng(0)
    new = rng.normal(0.3, 0.1, 500)
    slope, offset = comparable(0.2 * new + 0.7, new)
    assert slope == pytest.approx(5)
    assert offset == pytest.approx(-3.5)
    slope, _ = comparable(rng.normal(size=500), new)
    assert 0 < slope < 0.02


def test_traffic_goes_by_its_values_and_ties_are_random():
    traffic = np.array([0, 5, 0, 9, 0, 0])
    ids = [f"r{row}" for row in range(6)]
    first, other = (order_rows("traffic", ids, traffic=traffic, random_state=state) for state in (0, 1))
    assert first[:2].tolist() == other[:2].tolist() == [3, 1]
    assert sorted(first[2:]) == [0, 2, 4, 5]
    assert (
        first.tolist() != sorted(first, key=lambda row: (-traffic[row], row))
        or first.tolist() != other.tolist()
    )


@pytest.mark.parametrize(
    ("order", "told"), [("alphabet", "order: expected one of"), ("traffic", "one traffic value per row")]
)
def test_an_order_needs_its_values(order, told):
    with pytest.raises(SpaceError, match=told):
        order_rows(order, IDS)


def test_too_few_pairs_are_refused(models):
    with pytest.raises(SpaceError, match="10 pairs or more"):
        held_out_residuals(ProcrustesAdapter, models[0][:9], models[1][:9], IDS[:9])
    with pytest.raises(SpaceError, match="10 known"):
        predict_residuals(models[1], np.where(np.arange(N) < 9, 0.5, np.nan))
