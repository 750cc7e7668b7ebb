"""AnchorInfluence: differences equal new computations, suggestions are judged on other rows, and survive
the store.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.compare.influence import AnchorInfluence
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec
from relcore.scores.neighbours import find_neighbours

ANCHORS = tuple(f"r{row}" for row in range(20))


@pytest.fixture
def spaces(make_space, rng):
    labels = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 8)) + 2 * rng.normal(size=(3, 8))[labels]
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    names = np.array(["red", "green", "blue"])[labels]
    return make_space(X, name="a", labels=names), make_space(
        X @ turn + 0.3 * rng.normal(size=X.shape), name="b", labels=names
    )


def test_each_anchors_influence_is_the_score_with_it_less_the_score_without(spaces, tmp_path):
    task = AnchorInfluence(ANCHORS, n_candidates=30)
    outcome = task.compute(Store(tmp_path), spaces, unsaved=pytest.fail)
    task = AnchorInfluence(ANCHORS, n_candidates=30)
    rows, candidates = task._candidates(_pair(spaces), np.arange(20))
    split = task._split(_pair(spaces), np.concatenate([rows, candidates]))
    R, S = (
        ProjectionSpec().projection().fit(space.vectors, anchors=rows).transform(space.vectors[split.train])
        for space in spaces
    )
    for place in (0, 7, 19):
        others = np.arange(20) != place
        assert outcome.cka_by[place] == pytest.approx(cka(R, S) - cka(R[:, others], S[:, others]), abs=1e-6)
        before, now = (find_neighbours(R[:, c], S[:, c], 10, "paper") for c in (np.ones(20, bool), others))
        assert outcome.jaccard_by[place] == pytest.approx(
            before.overlap.mean() - now.overlap.mean(), abs=1e-8
        )
        assert outcome.mrr_by[place] == pytest.approx(
            before.reciprocal_rank.mean() - now.reciprocal_rank.mean(), abs=1e-8
        )
    assert (outcome.n_queries, outcome.n_searched) == (125, 125)
    assert outcome.classes == ("blue", "green", "red")
    assert outcome.accuracy > 0.8
    shares = [np.mean(spaces[0].labels[split.test] == name) for name in outcome.classes]
    np.testing.assert_allclose(outcome.class_by @ shares, outcome.accuracy_by, atol=1e-12)


def test_suggestions_are_no_anchors_and_judged_on_rows_that_did_not_choose(spaces):
    outcome = AnchorInfluence(ANCHORS, n_candidates=30, n_suggested=4).run(spaces)
    assert set(outcome.drop) <= set(ANCHORS)
    assert not set(outcome.add) & set(ANCHORS)
    assert len(outcome.add) <= 4
    assert outcome.n_choosing == outcome.n_judging == 125
    assert {"jaccard", "mrr", "cosine", "cka"} == set(outcome.after["drop"])
    table = outcome.table()
    assert table["linear CKA"].is_monotonic_increasing
    assert list(table.columns[:6]) == [
        "anchor",
        "linear CKA",
        "cosine",
        "Jaccard",
        "MRR",
        "stitched accuracy",
    ]


def test_suggestions_between_unrelated_spaces_help_no_other_rows(make_space):
    clear = 0
    for state in range(10):
        rng = np.random.default_rng(state)
        pair = [make_space(rng.normal(size=(300, 8)), name=name) for name in "ab"]
        change = AnchorInfluence(ANCHORS, n_candidates=30).run(pair).after.get("drop", {}).get("mrr")
        clear += change is not None and change.low > 0
    assert clear <= 2  # 2.5 % of ten draws


def test_spaces_without_labels_have_no_classes(make_space, rng):
    X = rng.normal(size=(100, 5))
    outcome = AnchorInfluence(ANCHORS[:5]).run((make_space(X, name="a"), make_space(X[:, ::-1], name="b")))
    assert outcome.classes == ()
    assert np.isnan(outcome.accuracy)
    assert outcome.cka == pytest.approx(1)


def test_too_few_anchors_or_rows_are_refused(spaces, make_space):
    with pytest.raises(SpaceError, match="expected 3 anchors or more, got 2"):
        AnchorInfluence(ANCHORS[:2]).run(spaces)
    few = [make_space(space.vectors[:30], name=space.name) for space in spaces]
    with pytest.raises(SpaceError, match="expected 20 rows or more beside the anchors"):
        AnchorInfluence(ANCHORS).run(few)


def _pair(spaces):
    from relcore.spaces.space import match

    return match(*spaces)


def cka(R, S):
    R, S = (Z.astype(float) - Z.mean(axis=0, dtype=float) for Z in (R, S))
    return np.linalg.norm(R.T @ S) ** 2 / (np.linalg.norm(R.T @ R) * np.linalg.norm(S.T @ S))
