"""Diagnostics of anchor sets whose rank, condition and coverage are known."""

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.represent.diagnostics import diagnose_anchors
from relcore.represent.strategies import select_anchors

D = 6


@pytest.fixture
def axes(make_space):
    return make_space(np.vstack([np.eye(D), -np.eye(D)]))


@pytest.mark.parametrize("k", [2, 6])
def test_orthonormal_anchors_are_perfect(axes, k):
    found = diagnose_anchors(axes, axes.ids[:k])
    assert (found.n_anchors, found.rank) == (k, k)
    assert found.condition_number == pytest.approx(1)
    assert found.effective_rank == pytest.approx(k)
    np.testing.assert_allclose(found.singular_values, np.ones(k), atol=1e-6)
    assert found.near_duplicates == ()
    assert found.coverage == pytest.approx(k / (2 * D))  # 1 for k of the 12 rows, 0 for the others


def test_a_duplicate_costs_one_rank_and_is_listed(make_space):
    space = make_space(np.vstack([np.eye(D), -np.eye(D), 3 * np.eye(D)[:1], -3 * np.eye(D)[:1]]))
    found = diagnose_anchors(space, ["r0", "r1", "r2", "r12"])
    assert found.rank == 3
    assert found.condition_number == np.inf
    [(first, second, cosine)] = found.near_duplicates
    assert (first, second) == ("r0", "r12")
    assert cosine == pytest.approx(1)
    assert found.effective_rank == pytest.approx(np.exp(-(0.5 * np.log(0.5) + 2 * 0.25 * np.log(0.25))))


def test_coverage_is_mean_cosine_to_nearest_anchor(rng, make_space):
    space = make_space(rng.normal(size=(5000, 4)) + 1)
    directions = unit_rows(space.vectors, space.vectors.mean(axis=0))
    found = diagnose_anchors(space, space.ids[:12], random_state=4)
    assert found.coverage == pytest.approx((directions @ directions[:12].T).max(axis=1).mean(), abs=1e-5)
    random_rows = space.rows(select_anchors(space, 12, random_state=4))
    assert found.coverage_random == pytest.approx(
        (directions @ directions[random_rows].T).max(axis=1).mean(), abs=1e-5
    )
