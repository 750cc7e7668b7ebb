"""Scores of every row: the numbers of a whole search, from several passes of queries."""

import numpy as np
import pytest

from relcore.compare.reports import ExactScores
from relcore.represent.representations import ProjectionSpec, represent
from relcore.scores import passes
from relcore.scores.comparison import class_labels, held_out, score_pair
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 1200
D = 12


@pytest.fixture
def spaces():
    rng = np.random.default_rng(3)
    first = rng.standard_normal((N, D)) + 1
    turned = first @ np.linalg.qr(rng.standard_normal((D, D)))[0] + 0.6 * rng.standard_normal((N, D)) + 5
    labels = np.where(np.arange(N) % 7, np.where(first[:, 0] > 1, "high", "low"), "")
    return [LatentSpace(X, [f"r{i}" for i in range(N)], labels=labels) for X in (first, turned)]


@pytest.mark.parametrize(
    ("representation", "convention"),
    [("absolute", "paper"), ("relative", "mutual"), ("procrustes", "mutual")],
)
def test_several_passes_give_scores_of_whole_search(spaces, representation, convention, monkeypatch):
    pair = match(*spaces)
    anchors = () if representation == "absolute" else tuple(spaces[0].ids[:20])
    task = ExactScores.on(representation, anchors, ProjectionSpec(), 5, convention)
    made = represent(pair, representation, anchors, task.projection)
    split = held_out(pair, anchors, representation)
    expected = score_pair(*made, split, k=5, convention=convention, labels=class_labels(pair))
    monkeypatch.setattr(passes, "_QUERIES", 500)
    told = []
    found = task.run(spaces, report=lambda *report: told.append(report)).scores
    shares = [done / total for done, total in told]
    assert shares == sorted(shares)
    assert (len({total for _, total in told}), shares[-1]) == (1, 1)
    assert list(found) == list(expected)
    for name, score in expected.items():
        assert score == pytest.approx(found[name], abs=1e-6)
        assert (found[name].n, found[name].n_queries, found[name].k) == (score.n, score.n_queries, score.k)
        assert (found[name].null.mean, found[name].null.high) == pytest.approx(
            (score.null.mean, score.null.high), abs=1e-6
        )
