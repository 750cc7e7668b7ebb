"""Rotations without pairs, and CSLS in blocks against the dense formula."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import quadratic_assignment

from relcore.base.rows import mean_row, unit_rows
from relcore.engine import both_ways
from relcore.linking import bootstrap, clusters
from relcore.linking.bootstrap import bootstrap_anchors
from relcore.linking.clusters import (
    ClusterFit,
    _agreement,
    _share_in_place,
    assign,
    link_clusters,
    map_from_pairs,
    match_csls,
    rotation_between,
)
from relcore.linking.link import link
from relcore.spaces.space import LatentSpace


def test_assignment_finds_permutation_and_is_no_worse_than_scipy(rng):
    for size in (8, 20):
        A, B = (one + one.T for one in rng.normal(size=(2, size, size)))
        order = rng.permutation(size)
        (own, found), (most, value) = assign(A, np.stack([A[np.ix_(order, order)], B]), rng, restarts=20)
        assert np.array_equal(order[own], np.arange(size))
        assert most == pytest.approx(np.square(A).sum())
        assert value == pytest.approx((A * B[np.ix_(found, found)]).sum())
        settings = {"maximize": True, "rng": rng}
        assert value >= quadratic_assignment(A, B, method="2opt", options=settings).fun


def share_nearest(mapped, targets):
    return np.mean((unit_rows(mapped) @ targets.T).argmax(axis=1) == np.arange(len(mapped)))


def named(side, rows):
    return LatentSpace(rows, [f"{side}{row}" for row in range(len(rows))])


@pytest.mark.slow
def test_rows_without_any_partner_are_linked(rng):
    """1,500 rows of each space, none of them in both, and 500 held-out rows."""
    turn = np.linalg.qr(rng.normal(size=(25, 25)))[0][:20]
    centres = rng.normal(size=(40, 20)) * np.arange(1, 21) ** -0.3
    X = centres[rng.integers(40, size=3500)] + 0.5 * rng.normal(size=(3500, 20))
    X, Y = (unit_rows(rows, mean_row(rows)) for rows in (X, X @ turn + 0.2 * rng.normal(size=(3500, 25))))
    held_x = X[3000:]
    held_y = Y[3000:]
    *_, linked = link_clusters(X[:1500], Y[1500:3000])
    assert linked.agrees
    assert share_nearest(held_x @ linked.mapping, held_y) > 0.8
    rounds = []
    linked = link(named("s", X[:1500]), named("t", Y[1500:3000]), after=lambda all: rounds.append(len(all)))
    assert share_nearest(linked.map.transform(held_x), held_y) > 0.8
    found = linked.result
    assert found.verdict == "linked", found.reason
    assert len(found.kept) == 0
    assert "most rows may have no partner" in found.reason
    assert rounds == list(range(1, len(rounds) + 1))


def test_fits_that_agree_on_long_axes_alone_do_not_agree(rng):
    """Before, a cosine above chance was enough, so the chance level had to be one in 10,000."""
    rows = unit_rows(rng.normal(size=(600, 60)) * np.r_[5, 5, np.ones(58)])
    signs = np.r_[1, 1, rng.choice([-1.0, 1.0], 58)]
    for second, agrees in ((np.eye(60), True), (np.diag(signs), False)):
        places = rows, np.eye(60, dtype=np.float32), second.astype(np.float32)
        fit = ClusterFit(places[1], _agreement(*places), 0.3, places[1], rows, _share_in_place(*places))
        assert fit.agreement > fit.chance
        assert fit.agrees == agrees
    assert fit.same < 0.1


def test_unrelated_spaces_of_more_rows_than_self_learning_takes_are_refused(monkeypatch, rng):
    """Before, 5,000 rows without counts were an error; here 1,000."""
    monkeypatch.setattr(clusters, "STARTS", 1)
    monkeypatch.setattr(clusters, "CLUSTERINGS", 8)
    monkeypatch.setattr(bootstrap, "MOST_ROWS", 900)
    found = bootstrap_anchors(*(named(side, rng.normal(size=(1000, 20))) for side in "st"))
    assert found.verdict == "not found"
    assert "Give 15–30 pairs" in found.reason
    assert found.pairs == found.anchors == ()


@pytest.mark.slow
def test_rows_without_partner_help_few_pairs_and_do_not_harm_many():
    """Share of 200 held-out rows that are nearest to their partner, from 12 and 300 pairs in 60 dimensions."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2500, 60)) * np.arange(1, 61) ** -0.4
    X += rng.normal(size=(30, 60))[np.arange(2500) % 30]
    Y = X @ np.linalg.qr(rng.normal(size=(60, 60)))[0] + 0.1 * rng.normal(size=X.shape)
    X, Y = (unit_rows(rows, mean_row(rows)) for rows in (X, Y))
    found = {}
    for n in (12, 300):
        mapping = map_from_pairs(X[:1150], np.r_[Y[:n], Y[1150 : 2300 - n]], np.tile(np.arange(n), (2, 1)))
        maps = mapping, rotation_between(X[:n], Y[:n])
        found[n] = [share_nearest(X[-200:] @ each, Y[-200:]) for each in maps]
    assert found[12][0] > found[12][1] + 0.2
    assert found[300][0] >= found[300][1] - 0.005


def dense(X, Y, k):
    cosines = X @ Y.T
    near_x = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
    near_y = np.sort(cosines, axis=0)[-k:].mean(axis=0)
    return 2 * cosines - near_x[:, None] - near_y


@pytest.mark.parametrize(("n", "m", "k"), [(257, 90, 10), (61, 803, 3)])
def test_blocks_give_what_the_whole_matrix_gives(monkeypatch, rng, n, m, k):
    monkeypatch.setattr(both_ways, "BLOCK_BYTES", 4 * m * 37)  # blocks of 37 rows, the last one shorter
    X = unit_rows(rng.normal(size=(n, 12)))
    Y = unit_rows(rng.normal(size=(m, 12)))
    scores = dense(X, Y, k)
    found = match_csls(X, Y, k)
    np.testing.assert_array_equal(found.partner, scores.argmax(axis=1))
    np.testing.assert_allclose(found.similarity, scores.max(axis=1), atol=1e-5)
    mutual = np.flatnonzero(scores.argmax(axis=0)[scores.argmax(axis=1)] == np.arange(n))
    np.testing.assert_array_equal(found.mutual, mutual)


def test_equal_rows_are_paired_once(rng):
    X = unit_rows(rng.normal(size=(50, 12)))
    Y = unit_rows(rng.normal(size=(50, 12)))
    X[1] = X[0]
    for rows in match_csls(X, Y).pairs.tolist():
        assert len(set(rows)) == len(rows)


def test_memory_stays_at_a_block(monkeypatch, rng):
    monkeypatch.setattr(both_ways, "BLOCK_BYTES", 2**18)
    X = unit_rows(rng.normal(size=(3000, 12)))
    tracemalloc.start()
    match_csls(X, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 4 / 4  # the matrix would take 36 MB
