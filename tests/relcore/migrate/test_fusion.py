"""Fused searches against z-scores and ranks computed over the whole corpus."""

import numpy as np
import pytest

from relcore.migrate.evaluate import added_scores, reciprocal_ranks, search_by_both
from relcore.represent.similarity import unit_rows


@pytest.fixture
def sides(rng):
    corpora = unit_rows(rng.normal(size=(200, 8)) + 0.5), unit_rows(rng.normal(size=(200, 5)))
    queries = unit_rows(rng.normal(size=(30, 8)) + 0.5), unit_rows(rng.normal(size=(30, 5)))
    return queries, corpora


def z_scores(queries, corpus):
    scores = queries.astype(float) @ corpus.astype(float).T
    return (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_one_longer_product_is_the_sum_of_z_scores_but_for_a_number_of_each_query(sides, weight):
    (old, new), corpora = sides
    wanted = z_scores(old, corpora[0]) + weight * z_scores(new, corpora[1])
    queries, corpus = added_scores(old, new, corpora, weight)
    found = queries @ corpus.T
    found -= found.mean(axis=1, keepdims=True)
    assert found == pytest.approx(wanted, abs=1e-4)
    lists = search_by_both(old, new, corpora, 10, weight=weight)
    assert np.array_equal(lists, np.argsort(-wanted, axis=1)[:, :10])


def test_reciprocal_ranks_by_hand():
    """Row 3: 1/61 + 1/62; row 7: 1/62 + 1/61, equal, and behind it in the first list; row 5: 1/63; row 9:
    1/63, second list.
    """
    lists = np.array([[3, 7, 5]]), np.array([[7, 3, 9]])
    assert reciprocal_ranks(lists, 6).tolist() == [[3, 7, 5, 9, -1, -1]]
    assert reciprocal_ranks(lists, 3, weight=1.5).tolist() == [[7, 3, 9]]
    assert reciprocal_ranks((np.array([[1, -1]]), np.array([[1, 2]])), 3).tolist() == [[1, 2, -1]]
