"""Scores and fused searches against oracles; judgements from files, hostile ones among them."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.migrate.trial import added_scores
from relcore.scores.relevance import (
    JudgedQuery,
    discounted_precision,
    ndcg,
    precision,
    read_qrels,
    relevance_matrix,
    relevance_of,
    search,
)


@pytest.mark.parametrize(("graded", "k"), [(False, 10), (True, 3)])
def test_ndcg_is_that_of_scikit_learn(rng, graded, k):
    scores = rng.normal(size=(40, 25))
    true = rng.integers(0, 4 if graded else 2, size=(40, 25)) * (rng.random((40, 25)) < 0.3)
    true[0] = 0
    query, row = np.nonzero(true)
    relevance = relevance_matrix(query, row, true[query, row].astype(float), 40, 25)
    found = np.argsort(-scores, axis=1)
    mine = ndcg(found, relevance, k)
    assert np.isnan(mine[0])
    wanted = [ndcg_score(true[i : i + 1], scores[i : i + 1], k=k) for i in range(1, 40) if true[i].any()]
    assert mine[~np.isnan(mine)] == pytest.approx(wanted)
    shares = np.take_along_axis(true > 0, found[:, :k], axis=1).mean(axis=1)
    assert precision(found, relevance, k) == pytest.approx(shares)


def test_unrelated_lists_score_what_chance_scores(rng):
    """If 10 of 100 rows are relevant, 10 random rows have an nDCG of .1 on average."""
    n = 100
    queries = 2000
    relevance = relevance_matrix(
        np.repeat(np.arange(queries), 10), np.tile(np.arange(10), queries), np.ones(10 * queries), queries, n
    )
    found = np.argsort(rng.random((queries, n)), axis=1)[:, :10]
    # One query's nDCG has a standard deviation of about .1, the mean of 2,000 a standard error of .0023.
    assert np.mean(ndcg(found, relevance)) == pytest.approx(0.1, abs=0.009)
    assert np.mean(precision(found, relevance)) == pytest.approx(0.1, abs=0.009)


def test_search_leaves_out_each_querys_own_row_and_fills_up_short_corpora(rng):
    rows = unit_rows(rng.normal(size=(6, 4)))
    found = search(rows, rows, 10, own=np.arange(6))
    assert found.shape == (6, 10)
    assert (found[:, 5:] == -1).all()
    products = rows @ rows.T
    np.fill_diagonal(products, -np.inf)
    assert np.array_equal(found[:, :5], np.argsort(-products, axis=1)[:, :5])


@pytest.mark.parametrize("weight", [0.3, np.linspace(0, 4, 30)[:, None]], ids=["one", "of each query"])
def test_fused_scores_are_the_sum_of_z_scores_up_to_a_constant(rng, weight):
    def z_scores(queries, corpus):
        scores = queries.astype(float) @ corpus.astype(float).T
        return (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)

    (old, new), corpora = (
        [unit_rows(rng.normal(size=(n, d)) + offset) for d, offset in ((8, 0.5), (5, 0))] for n in (30, 200)
    )
    queries, corpus = added_scores(old, new, corpora, weight)
    found = queries @ corpus.T
    found -= found.mean(axis=1, keepdims=True)
    assert found == pytest.approx(z_scores(old, corpora[0]) + weight * z_scores(new, corpora[1]), abs=1e-4)


def test_judgements_by_ids_count_what_is_unknown(tmp_path):
    file = tmp_path / "qrels.txt"
    file.write_bytes("﻿q1 0 d1 1\r\nq1\t0\td2\t0\n\nq2 0 d9 2\nq9 0 d1 1\nq2 Q0 d3 -1\nq1 0 d1 1\n".encode())
    judgements = read_qrels(file)
    assert judgements[0] == JudgedQuery("q1", "d1", 1.0)
    assert len(judgements) == 5
    relevance, unknown = relevance_of(judgements, ["q1", "q2"], ["d1", "d2", "d3"])
    assert unknown == {"queries": 1, "rows": 1}
    assert relevance.toarray().tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    with pytest.raises(SpaceError, match="unknown ids, first 'd1', 'd2', 'd9'"):
        relevance_of(judgements, ["q1", "q2"], ["other"])
    with pytest.raises(SpaceError, match="no grade above 0"):
        relevance_of(judgements[1:2], ["q1"], ["d2"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"1 0 184\n", "line 1: expected a query, an iteration"),
        (b"1 0 184 nan\n", "line 1"),
        (b"1 0 184 1\n1 0 184 2\n", "one grade of '184' for '1', got two"),
        (b"1 0 \x00 1\n", "zero byte"),
        (b"\xff\xfe1\x00", "UTF-8"),
    ],
)
def test_files_that_are_no_judgements_are_refused(tmp_path, content, told):
    file = tmp_path / "qrels.txt"
    file.write_bytes(content)
    with pytest.raises(SpaceError, match=told):
        read_qrels(file)


def test_discounted_precision_weighs_ranks_as_dcg_does():
    relevance = relevance_matrix(np.array([0, 0, 1]), np.array([4, 6, 4]), np.ones(3), 3, 8)
    lists = np.array([[4, 5, 6], [5, 4, -1], [1, 2, 3]])
    weights = 1 / np.log2([2, 3, 4])
    expected = np.array([weights[0] + weights[2], weights[1], 0]) / weights.sum()
    np.testing.assert_allclose(discounted_precision(lists, relevance, 3), expected)
