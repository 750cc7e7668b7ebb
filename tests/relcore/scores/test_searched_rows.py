"""Intervals of differences contain the true difference in 95 % of draws; effects of rows equal a search
without them.
"""

import numpy as np
import pytest

from relcore.scores.comparison import score_differences
from relcore.scores.neighbours import effects_of_rows, find_neighbours
from relcore.spaces.split import Split

D, N_ANCHORS = 8, 24


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_effects_are_those_of_a_search_without_the_row(rng, convention):
    X = rng.normal(size=(40, 4)).astype(np.float32)
    Y = (X + 0.5 * rng.normal(size=X.shape)).astype(np.float32)
    queries = np.array([0, 7, 20, 39])
    found = find_neighbours(X, Y, 6, convention, queries=queries)
    effects = effects_of_rows(found).toarray()
    for row in range(40):
        others = np.delete(np.arange(40), row)
        kept = queries[queries != row]
        again = find_neighbours(X[others], Y[others], 6, convention, queries=np.searchsorted(others, kept))
        expected = again.overlap - found.overlap[queries != row]
        np.testing.assert_allclose(effects[queries != row, row], expected, atol=1e-12)
    assert (effects[np.arange(4), queries] == 0).all()


def population():
    """Rows of four classes in two spaces, and anchors that no draw of rows changes."""
    rng = np.random.default_rng(5)
    centres, turn = 1.5 * rng.normal(size=(4, D)), np.linalg.qr(rng.normal(size=(D, D)))[0]

    def rows(rng, n):
        X = centres[rng.integers(0, 4, n)] + rng.normal(size=(n, D))
        return X, X @ turn + 0.6 * rng.normal(size=(n, D))

    return rows, rows(np.random.default_rng(6), N_ANCHORS)


def relative(vectors, anchors, which):
    made = (
        (Z / np.linalg.norm(Z, axis=1, keepdims=True))
        @ (A[which] / np.linalg.norm(A[which], axis=1, keepdims=True)).T
        for Z, A in zip(vectors, anchors, strict=True)
    )
    return tuple(Z.astype(np.float32) for Z in made)


@pytest.mark.parametrize("convention", ["paper", pytest.param("mutual", marks=pytest.mark.slow)])
def test_intervals_of_two_anchor_sets_contain_the_true_difference(convention):
    """100 draws of 200 rows; the truth is the mean over the draws. 95 are expected, standard error 2.2: 88 or
    fewer come once in 250 times. Intervals half as wide would contain it in 67."""
    (draw, anchors), split = population(), Split.held_out([f"r{row}" for row in range(200)])
    found = []
    for state in range(100):
        vectors = draw(np.random.default_rng([7, state]), 200)
        sets = (relative(vectors, anchors, which) for which in (np.arange(8), np.arange(8, N_ANCHORS)))
        found.append(score_differences(*sets, split, k=10, convention=convention))
    for metric in found[0]:
        changes = [one[metric] for one in found]
        truth = np.mean([one.value for one in changes])
        assert sum(one.low <= truth <= one.high for one in changes) > 88, metric
