"""Every strategy by the property that defines it."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from relcore.base.errors import SpaceError
from relcore.base.names import STRATEGIES
from relcore.represent.anchors import farthest_points, select_anchors, shared_anchors
from relcore.represent.similarity import unit_rows


@pytest.fixture
def space(rng, make_space):
    """400 rows in no order of frequency, four labels and none, ten zero vectors among the most frequent."""
    vectors = rng.normal(size=(400, 8)) + 1
    counts = rng.permutation(400) + 1
    vectors[np.argsort(-counts)[5:15]] = 0
    return make_space(vectors, labels=rng.choice(["x", "y", "z", "w", ""], 400), counts=counts)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_gives_distinct_ids_and_the_same_ones_again(space, strategy):
    chosen = select_anchors(space, 40, strategy, random_state=5)
    assert len(set(chosen)) == 40
    assert (space.norms[space.rows(chosen)] > 0).all()
    assert chosen.tolist() == select_anchors(space, 40, strategy, random_state=5).tolist()


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"most-frequent"}))
def test_another_random_state_is_another_choice(space, strategy):
    assert (
        select_anchors(space, 20, strategy, random_state=1).tolist()
        != select_anchors(space, 20, strategy).tolist()
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_pool_is_the_most_frequent_rows_and_the_whole_of_it_can_be_chosen(space, strategy):
    alive = [row for row in np.argsort(-space.counts) if space.norms[row] > 0]
    chosen = select_anchors(space, 30, strategy, pool=120)
    assert set(chosen) <= set(space.ids[alive[:120]])
    if strategy != "class-balanced":  # which leaves the unlabelled out
        assert set(select_anchors(space, 50, strategy, pool=50)) == set(space.ids[alive[:50]])


def test_most_frequent_is_in_falling_order(space):
    order = np.argsort(-space.counts)
    alive = order[space.norms[order] > 0]
    assert select_anchors(space, 25, "most-frequent").tolist() == space.ids[alive[:25]].tolist()


def test_farthest_point_is_the_naive_greedy(space):
    alive = space.take(np.flatnonzero(space.norms > 0))
    directions = unit_rows(alive.vectors, space.vectors.mean(axis=0, dtype=np.float64).astype(np.float32))
    chosen = list(space.rows(select_anchors(space, 60, "farthest-point")))
    order = [list(alive.ids).index(space.ids[row]) for row in chosen]
    distances = cdist(directions.astype(np.float64), directions.astype(np.float64), "cosine")
    for step in range(1, 60):
        to_chosen = distances[:, order[:step]].min(axis=1)
        assert to_chosen[order[step]] == pytest.approx(to_chosen.max(), abs=1e-6)


def test_farthest_points_refuse_more_than_there_are_directions():
    twice = unit_rows(np.array([[1, 0], [2, 0], [0, 1], [0, 3]]))
    with pytest.raises(SpaceError, match="expected at most 2, the number of distinct directions, got 3"):
        farthest_points(twice, 3, start=0)


def test_k_means_takes_one_row_near_each_cluster(rng, make_space):
    centres = 10 * np.eye(6)
    members = np.arange(300) % 6
    space = make_space(centres[members] + 0.1 * rng.normal(size=(300, 6)))
    rows = space.rows(select_anchors(space, 6, "k-means"))
    assert sorted(members[rows]) == list(range(6))
    directions = unit_rows(space.vectors, space.vectors.mean(axis=0))
    centroids = unit_rows(np.stack([directions[members == number].mean(axis=0) for number in members[rows]]))
    cosines = np.einsum("ij,ij->i", directions[rows], centroids)
    pairs = zip(members[rows], centroids, strict=True)
    within = np.array([np.median(directions[members == number] @ centroid) for number, centroid in pairs])
    assert (cosines >= within).all()  # nearer to its centroid than most of its cluster


def test_k_means_gives_distinct_rows_where_centroids_share_their_nearest(make_space):
    space = make_space(np.repeat(np.eye(3), 4, axis=0) + 1e-3 * np.arange(12)[:, None])
    assert len(set(select_anchors(space, 12, "k-means"))) == 12


@pytest.mark.parametrize("n_anchors", [4, 37, 40])
def test_classes_differ_by_at_most_one(space, n_anchors):
    labels = space.labels[space.rows(select_anchors(space, n_anchors, "class-balanced"))]
    names, counts = np.unique(labels.astype(str), return_counts=True)
    assert names.tolist() == ["w", "x", "y", "z"]
    assert counts.max() - counts.min() <= 1


def test_where_a_class_is_too_small_the_others_fill_up(make_space):
    space = make_space(
        np.random.default_rng(0).normal(size=(30, 4)), labels=["rare"] * 2 + ["a"] * 14 + ["b"] * 14
    )
    labels = space.labels[space.rows(select_anchors(space, 12, "class-balanced"))]
    assert {name: list(labels).count(name) for name in ("rare", "a", "b")} == {"rare": 2, "a": 5, "b": 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (4, "nearest"),
            (
                "strategy: expected one of random, farthest-point, k-means, most-frequent, class-balanced,"
                " got 'nearest'"
            ),
        ),
        ((0,), "n_anchors: expected 1 or more, got 0"),
        ((-3,), "n_anchors: expected 1 or more, got -3"),
        (
            (4,),
            (
                "n_anchors: expected at most 3, the rows of 'made' that can be chosen, got 4; ask for fewer,"
                " or widen the pool"
            ),
        ),
        ((2, "class-balanced"), "expected labels, 'made' has none; choose another strategy"),
    ],
)
def test_wrong_requests_are_refused(make_space, arguments, message):
    space = make_space(np.vstack([np.eye(3), np.zeros((2, 3))]))
    with pytest.raises(SpaceError, match=message):
        select_anchors(space, *arguments)


def test_a_pool_or_labels_too_small_are_refused(make_space):
    space = make_space(np.eye(5), labels=["a", "", "b", "", ""])
    with pytest.raises(SpaceError, match="expected at most 2, the rows of 'made' that can be chosen, got 3"):
        select_anchors(space, 3, pool=2)
    with pytest.raises(SpaceError, match="expected at most 2, the labelled rows, got 3"):
        select_anchors(space, 3, "class-balanced")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "anchors: expected at least one id, got none"),
        (["r0", "r1", "r0"], "expected distinct ids, got 'r0' more than once"),
        (["r0", "qzx"], "expected ids of 'small', got 1 unknown: 'qzx'"),
        (["r0", "r2"], "'r2' are zero vectors in 'small' and have no direction"),
    ],
)
def test_anchors_that_a_space_lacks_are_refused(make_space, ids, message):
    large, small = (
        make_space(np.eye(4), ["r0", "r1", "r2", "qzx"]),
        make_space(np.diag([1, 1, 0]), name="small"),
    )
    with pytest.raises(SpaceError, match=message):
        shared_anchors(ids, large, small)
