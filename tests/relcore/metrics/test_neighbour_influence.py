"""Jaccard and MRR without an anchor equal a new search without its column."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.compare.influence import neighbours_without
from relcore.scores.neighbours import find_neighbours

N, M, K = 120, 9, 7


@pytest.fixture
def pair(rng):
    R = rng.uniform(-1, 1, size=(N, M)).astype(np.float32)
    return R, (R + 0.5 * rng.uniform(-1, 1, size=(N, M))).astype(np.float32)


def plainly(R, S, queries, convention):
    """Jaccard and MRR of each query by sorted cosines, in float64."""
    R, S = (
        Z.astype(np.float64) / np.linalg.norm(Z.astype(np.float64), axis=1, keepdims=True) for Z in (R, S)
    )
    jaccard, mrr = [], []
    for query in queries:
        order = {name: np.argsort(-(b @ a[query])).tolist() for name, a, b in _searches(R, S, convention)}
        own, other = order["own"], order["other"]
        if convention == "mutual":
            own, other = ([row for row in one if row != query] for one in (own, other))
        own, other = set(own[:K]), set(other[:K])
        jaccard.append(len(own & other) / len(own | other))
        ranks = [1 + order[name].index(query) for name in order if name.startswith("to")]
        mrr.append(np.mean([1 / rank if rank <= K else 0 for rank in ranks]))
    return np.array(jaccard), np.array(mrr)


def _searches(R, S, convention):
    if convention == "paper":
        return ("own", S, S), ("other", R, S), ("to target", R, S)
    return ("own", R, R), ("other", S, S), ("to target", R, S), ("to source", S, R)


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_scores_without_each_anchor_are_those_of_a_new_search(pair, convention):
    R, S = pair
    queries = np.array([0, 3, 17, 40, 41, 99, 119])
    found = neighbours_without(R, S, queries, K, convention)
    for line, columns in enumerate([np.ones(M, bool), *(np.arange(M) != j for j in range(M))]):
        jaccard, mrr = plainly(R[:, columns], S[:, columns], queries, convention)
        np.testing.assert_allclose(found.jaccard[line], jaccard, atol=1e-8)
        np.testing.assert_allclose(found.mrr[line], mrr, atol=1e-8)
        product = find_neighbours(R[:, columns], S[:, columns], K, convention, queries=queries)
        np.testing.assert_array_equal(found.jaccard[line], product.overlap)
        np.testing.assert_array_equal(found.mrr[line], product.reciprocal_rank)
    assert found.by("mrr")[4] == pytest.approx(found.mrr[0].mean() - found.mrr[5].mean(), abs=1e-12)


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_an_anchor_that_is_unrelated_in_the_target_harms_and_a_copy_does_nothing(pair, rng, convention):
    R, S = pair
    S = S.copy()
    S[:, 2] = rng.uniform(-1, 1, N)
    found = neighbours_without(R, S, np.arange(N), K, convention)
    for metric in ("jaccard", "mrr"):
        assert found.by(metric).argmin() == 2
        assert found.by(metric)[2] < 0
    same = neighbours_without(R, R, np.arange(N), K, convention)
    assert (same.mrr == 1).all()
    assert (same.jaccard == 1).all()


def test_of_unrelated_spaces_no_anchor_has_an_influence(rng):
    """Influence on MRR, whose mean by chance is .02 and whose standard error over 120 queries is .008 with
    the anchor and without it."""
    R, S = rng.normal(size=(2, N, M))
    assert np.abs(neighbours_without(R, S, np.arange(N), K).by("mrr")).max() < 4 * 0.008 * np.sqrt(2)


def test_rows_of_one_anchor_alone_become_zero_without_it():
    R = np.eye(3)[[0, 1, 2, 0, 1, 2]] + 0.0
    found = neighbours_without(R, R, np.arange(6), 1)
    assert np.isfinite(found.mrr).all()


@pytest.mark.parametrize(
    ("shapes", "k", "told"),
    [
        (((9, 3), (9, 4)), 2, r"got \(9, 3\) and \(9, 4\)"),
        (((9, 1), (9, 1)), 2, "two anchors or more"),
        (((9, 3), (9, 3)), 10, "expected 1 … 9 for 9 rows, got 10"),
    ],
)
def test_what_cannot_be_searched_is_refused(shapes, k, told):
    with pytest.raises(SpaceError, match=told):
        neighbours_without(*map(np.ones, shapes), np.arange(3), k)
