"""Fused searches against z-scores computed over the whole corpus."""

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.migrate.evaluate import added_scores, search


@pytest.fixture
def sides(rng):
    corpora = unit_rows(rng.normal(size=(200, 8)) + 0.5), unit_rows(rng.normal(size=(200, 5)))
    queries = unit_rows(rng.normal(size=(30, 8)) + 0.5), unit_rows(rng.normal(size=(30, 5)))
    return queries, corpora


def z_scores(queries, corpus):
    scores = queries.astype(float) @ corpus.astype(float).T
    return (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)


@pytest.mark.parametrize("weight", [0.3, np.linspace(0, 4, 30)[:, None]], ids=["one", "of each query"])
def test_one_longer_product_is_sum_of_z_scores_but_for_number_of_each_query(sides, weight):
    (old, new), corpora = sides
    wanted = z_scores(old, corpora[0]) + weight * z_scores(new, corpora[1])
    queries, corpus = added_scores(old, new, corpora, weight)
    found = queries @ corpus.T
    found -= found.mean(axis=1, keepdims=True)
    assert found == pytest.approx(wanted, abs=1e-4)
    lists = search(queries, corpus, 10)
    assert np.array_equal(lists, np.argsort(-wanted, axis=1)[:, :10])
