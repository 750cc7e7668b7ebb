"""Scores of every row from blocks of queries: the numbers of a whole search, what a restart does, and
approximate searches.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.compare.scoring import ExactScores
from relcore.represent.representations import ProjectionSpec, represent
from relcore.runs.store import Store
from relcore.scores import lists
from relcore.scores.comparison import class_labels, held_out, score_pair
from relcore.scores.lists import ExactSearch
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N, D = 1200, 12


@pytest.fixture
def spaces():
    rng = np.random.default_rng(3)
    first = rng.standard_normal((N, D)) + 1
    turned = first @ np.linalg.qr(rng.standard_normal((D, D)))[0] + 0.6 * rng.standard_normal((N, D)) + 5
    ids, labels = (
        [f"r{i}" for i in range(N)],
        np.where(np.arange(N) % 7, np.where(first[:, 0] > 1, "high", "low"), ""),
    )
    return [
        LatentSpace(X, ids, name=name, labels=labels) for X, name in ((first, "first"), (turned, "turned"))
    ]


def task_of(representation, spaces, convention="paper", **settings):
    anchors = () if representation == "absolute" else tuple(spaces[0].ids[:20])
    return ExactScores.of(representation, anchors, ProjectionSpec(), 5, convention, **settings)


@pytest.mark.parametrize("convention", ["paper", "mutual"])
@pytest.mark.parametrize("representation", ["absolute", "relative", "whitened", "procrustes"])
def test_blocks_give_the_scores_of_a_whole_search(spaces, representation, convention, monkeypatch):
    monkeypatch.setattr(lists, "QUERIES_PER_BLOCK", 500)
    task, pair = task_of(representation, spaces, convention), match(*spaces)
    made, split = (
        represent(pair, representation, task.anchors, task.projection),
        held_out(pair, task.anchors, representation),
    )
    expected = score_pair(*made, split, k=5, convention=convention, labels=class_labels(pair))
    for kept in (2**30, 0):
        monkeypatch.setattr(lists, "KEPT_BYTES", kept)
        found = task.run(spaces).scores
        assert list(found) == list(expected)
        for name, score in expected.items():
            assert score == pytest.approx(found[name], abs=1e-6)
            assert (found[name].n, found[name].n_queries, found[name].k) == (
                score.n,
                score.n_queries,
                score.k,
            )
            assert (found[name].null.mean, found[name].null.high) == pytest.approx(
                (score.null.mean, score.null.high), abs=1e-6
            )


def test_a_stopped_run_resumes_after_its_last_block_and_leaves_no_parts(spaces, tmp_path, monkeypatch):
    monkeypatch.setattr(lists, "QUERIES_PER_BLOCK", 100)
    store, task, searched = Store(tmp_path), task_of("relative", spaces), []
    nearest = ExactSearch.nearest

    def counted(self, queries, k):
        searched.append(len(queries))
        if len(searched) == 8:
            raise KeyboardInterrupt
        return nearest(self, queries, k)

    monkeypatch.setattr(ExactSearch, "nearest", counted)
    with pytest.raises(KeyboardInterrupt):
        task.run(spaces, store)
    assert len(store.entries()) == 7
    told = []
    found = task.run(spaces, store, lambda *report: told.append(report))
    blocks = sum(-(-n // 100) for n in (N - 20, N - 20, N - 20 - len(range(0, N, 7)) + 3))
    assert len(searched) == blocks + 1  # the one that was stopped is searched again
    assert told[0][2].startswith("neighbours of 100 of")
    assert not store.entries()
    assert {name: float(score) for name, score in found.scores.items()} == task.run(spaces).scores


@pytest.mark.parametrize("search", ["ivf", "hnsw"])
@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_an_approximate_search_reaches_its_recall_and_tells_it(spaces, search, convention):
    exactly = task_of("relative", spaces, convention).run(spaces).scores
    scores = task_of("relative", spaces, convention, search=search, target_recall=0.9).run(spaces).scores
    recall = scores["jaccard"].recall
    assert recall.low <= recall.value <= recall.high
    assert recall.value > 0.9 - 3 * 0.02  # the standard error of two samples of some hundred queries
    assert recall.n == 400
    assert abs(scores["jaccard"] - exactly["jaccard"]) <= recall.most
    assert {name for name, score in scores.items() if score.recall} == {"jaccard", "mrr", "class agreement"}
    assert all(score.recall is None for score in exactly.values())


@pytest.mark.parametrize(("search", "worst"), [("ivf", 1), ("hnsw", 1)])
def test_a_bad_setting_has_a_low_recall_and_says_so(search, worst, monkeypatch):
    rng = np.random.default_rng(0)
    ids = [f"r{i}" for i in range(4000)]
    pair = [LatentSpace(rng.standard_normal((4000, 128)), ids, name=name) for name in ("first", "second")]
    kind = lists.SEARCHES[search].load()
    monkeypatch.setattr(kind, "settings", classmethod(lambda cls, n: [worst]))
    score = task_of("absolute", pair, search=search).run(pair).scores["jaccard"]
    assert score.recall.high < 0.8
    assert "That is below the .950 it was set for" in score.recall.caution(score.k)


def test_wrong_settings_are_refused(spaces):
    with pytest.raises(SpaceError, match="search: expected one of exact, ivf, hnsw, got 'lsh'"):
        task_of("absolute", spaces, search="lsh")
    with pytest.raises(SpaceError, match=r"target_recall: expected a number above 0, at most 1, got 1\.5"):
        task_of("absolute", spaces, search="ivf", target_recall=1.5)
