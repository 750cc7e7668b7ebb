"""Representations and scores of a pair whose answer is known: the second space is the first one, turned,
scaled and shifted.
"""

import numpy as np
import pytest
from scipy.stats import ortho_group

from relcore.compare.agreement import neighbour_agreement, neighbours_of
from relcore.represent.representations import ProjectionSpec, represent
from relcore.scores.cka import linear_cka, mean_cosine
from relcore.scores.comparison import held_out, score_differences, score_pair
from relcore.scores.neighbours import jaccard, mrr
from relcore.scores.score_report import circumstances, score_cells, score_table
from relcore.spaces.matching import match
from relcore.spaces.split import Split

D = 6
TURN = ortho_group.rvs(D, random_state=2)
SPEC = ProjectionSpec()


@pytest.fixture
def turned(rng, make_space):
    vectors = rng.normal(size=(150, D)) + 1
    counts = np.arange(150, 0, -1)
    return match(make_space(vectors, name="s", counts=counts), make_space(4 * vectors @ TURN - 3, name="t"))


def test_scores_are_those_of_metrics_on_test_rows(turned, rng):
    source = turned.source.vectors
    target = (source + rng.normal(size=source.shape)).astype(np.float32)
    split = Split.held_out(turned.ids, np.arange(20), random_state=3)
    scores = score_pair(source, target, split, k=5, convention="mutual", n_queries=50)
    settings = {"convention": "mutual", "queries": split.queries(50) - 20}
    source = source[20:]
    target = target[20:]
    assert scores["jaccard"] == jaccard(source, target, 5, **settings)
    assert scores["mrr"] == mrr(source, target, 5, **settings)
    assert scores["cosine"] == pytest.approx(mean_cosine(source, target), abs=1e-6)
    assert scores["cka"] == pytest.approx(linear_cka(source, target), abs=1e-6)
    assert [score.n_queries for score in scores.values()] == [50, 50, 130, 130]


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_difference_is_that_of_scores_on_rows_that_are_anchors_in_neither(turned, rng, convention):
    noisy = match(turned.source, turned.target.take(np.arange(150)))
    fewer = tuple(noisy.ids[:10])
    more = tuple(noisy.ids[5:25])
    before, now = (
        [X + rng.normal(size=X.shape) for X in represent(noisy, "relative", ids, SPEC)]
        for ids in (fewer, more)
    )
    wide = [np.pad(X, [(0, 0), (0, 10)]) for X in before]
    split = held_out(noisy, noisy.ids[:25])
    found = score_differences(tuple(wide), tuple(now), split, k=5, convention=convention)
    scores = [score_pair(*pair, split, k=5, convention=convention) for pair in (wide, now)]
    assert {name: one.value for name, one in found.items()} == {
        name: pytest.approx(float(scores[1][name]) - float(scores[0][name]), abs=1e-6) for name in found
    }
    assert set(found) == {"jaccard", "mrr", "cosine", "cka"}


@pytest.mark.parametrize(("convention", "expected"), [("paper", {"cka"}), ("mutual", {"jaccard", "cka"})])
def test_different_widths_have_only_scores_that_need_no_common_one(turned, convention, expected):
    narrow = turned.target.vectors[:, :4]
    assert set(score_pair(turned.source.vectors, narrow, held_out(turned), convention=convention)) == expected


def test_the_rows_that_moved_most_come_first(rng, make_space):
    vectors = rng.normal(size=(150, D))
    moved = vectors.copy()
    moved[[7, 70]] = rng.normal(size=(2, D))
    table = neighbour_agreement(match(make_space(vectors), make_space(moved)), np.arange(150), k=10)
    assert set(table["id"][:2]) == {"r7", "r70"}
    assert (np.diff(table.overlap) >= 0).all()
    assert "count" not in table


def test_neighbours_stand_side_by_side_with_their_cosines(rng, make_space):
    vectors = rng.normal(size=(80, D)) + 2
    pair = match(make_space(vectors), make_space(vectors[:, ::-1] + 0.5 * rng.normal(size=(80, D))))
    table = neighbours_of(pair, "r3", k=7)
    for side, space in (("source", pair.source), ("target", pair.target)):
        centred = space.vectors - space.vectors.mean(axis=0)
        centred /= np.linalg.norm(centred, axis=1, keepdims=True)
        cosines = centred @ centred[3]
        cosines[3] = -2
        order = np.argsort(-cosines)[:7]
        assert table[side].tolist() == space.ids[order].tolist()
        np.testing.assert_allclose(table[f"{side} cosine"], cosines[order], atol=1e-5)
    assert table["source shared"].tolist() == table.source.isin(table.target).tolist()
    assert table["source shared"].sum() == table["target shared"].sum()


def test_sentence_below_scores_has_number_of_queries_of_each_representation(turned):
    anchors = tuple(turned.ids[:90])
    split = held_out(turned, anchors)
    scores = {
        "absolute": score_pair(*represent(turned, "absolute", (), SPEC), held_out(turned, ()), n_queries=100),
        "relative": score_pair(*represent(turned, "relative", anchors, SPEC), split, n_queries=100),
    }
    rows, listed, *_ = circumstances(scores)
    assert rows == "n = 60 held-out rows, no anchor among them (absolute: all 150 rows)"
    assert "queries: 100 of 150 rows (absolute), all 60 rows (relative)" in listed
    cells = score_cells(score_table(scores))
    assert {row[cells[0].index("n")] for row in cells[1:]} == {"150", "60"}
    del scores["absolute"]
    assert "n" not in score_cells(score_table(scores))[0]
    assert circumstances(scores)[1] == "Jaccard and MRR: k = 10, paper convention (Moschella et al. 2023)"
