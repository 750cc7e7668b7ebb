"""Every strategy by the property that defines it."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from relcore.base.errors import SpaceError
from relcore.base.names import STRATEGIES
from relcore.base.rows import unit_rows
from relcore.represent.strategies import select_anchors, shared_anchors


@pytest.fixture
def space(rng, make_space):
    """400 rows in no order of frequency, four labels and none, ten zero vectors among the most frequent."""
    vectors = rng.normal(size=(400, 8)) + 1
    counts = rng.permutation(400) + 1
    vectors[np.argsort(-counts)[5:15]] = 0
    return make_space(vectors, labels=rng.choice(["x", "y", "z", "w", ""], 400), counts=counts)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_gives_distinct_ids_and_same_ones_again(space, strategy):
    chosen = select_anchors(space, 40, strategy, random_state=5)
    assert len(set(chosen)) == 40
    assert (space.norms[space.rows(chosen)] > 0).all()
    assert chosen.tolist() == select_anchors(space, 40, strategy, random_state=5).tolist()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pool_is_most_frequent_rows_and_whole_of_it_can_be_chosen(space, strategy):
    alive = [row for row in np.argsort(-space.counts) if space.norms[row] > 0]
    chosen = select_anchors(space, 30, strategy, pool=120)
    assert set(chosen) <= set(space.ids[alive[:120]])
    if strategy != "class-balanced":  # which leaves the unlabelled out
        assert set(select_anchors(space, 50, strategy, pool=50)) == set(space.ids[alive[:50]])


def test_farthest_point_is_the_naive_greedy(space):
    alive = space.take(np.flatnonzero(space.norms > 0))
    directions = unit_rows(alive.vectors, space.vectors.mean(axis=0, dtype=np.float64).astype(np.float32))
    chosen = list(space.rows(select_anchors(space, 60, "farthest-point")))
    order = [list(alive.ids).index(space.ids[row]) for row in chosen]
    distances = cdist(directions.astype(np.float64), directions.astype(np.float64), "cosine")
    for step in range(1, 60):
        to_chosen = distances[:, order[:step]].min(axis=1)
        assert to_chosen[order[step]] == pytest.approx(to_chosen.max(), abs=1e-6)


def test_classes_differ_by_at_most_one(space):
    labels = space.labels[space.rows(select_anchors(space, 37, "class-balanced"))]
    names, counts = np.unique(labels.astype(str), return_counts=True)
    assert names.tolist() == ["w", "x", "y", "z"]
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["r0", "r1", "r0"], "expected distinct ids, got 'r0' more than once"),
        (["r0", "r2"], "'r2' are zero vectors in 'small' and have no direction"),
    ],
)
def test_anchors_that_a_space_lacks_are_refused(make_space, ids, message):
    large = make_space(np.eye(4), ["r0", "r1", "r2", "qzx"])
    small = make_space(np.diag([1, 1, 0]), name="small")
    with pytest.raises(SpaceError, match=message):
        shared_anchors(ids, large, small)
