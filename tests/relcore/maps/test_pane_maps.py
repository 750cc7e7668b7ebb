"""PCA maps of a pair without its matrices of similarities: equal to PCA of the matrices, whatever the
similarity.
"""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from relcore.base.environment import use_device
from relcore.base.names import SIMILARITIES
from relcore.maps import pane_maps, principal_axes
from relcore.maps.pane_maps import (
    TWO,
    DrawnUnits,
    map_pair,
    orient_pairs,
    pane_matrices,
    pca_pair,
    reduce_pair,
    with_rows,
)
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 400
IDS = [f"r{row}" for row in range(N)]
# fewer and more than the spaces have columns
FEW = tuple(IDS[:5])
MANY = tuple(IDS[50:90])


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(N, 12)) * np.linspace(3, 0.5, 12) + 4
    second = np.hstack([first, rng.normal(size=(N, 4))]) @ rng.normal(size=(16, 16)) - 7
    return match(*(LatentSpace(matrix.astype(np.float32), IDS) for matrix in (first, second)))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(("center", "fit"), [(True, "first"), (False, "apart")])
def test_the_map_is_the_pca_of_the_matrix(pair, similarity, center, fit):
    projection = ProjectionSpec(similarity, center)
    spec = ReductionSpec(fit=fit)
    for anchors in (FEW, MANY):
        for rows in (np.arange(N), np.arange(3, N, 7)):
            assert_same_map(pair, rows, "relative", anchors, projection, spec)


@pytest.mark.parametrize("anchors", [FEW, MANY])
@pytest.mark.parametrize("spec", [ReductionSpec(n_components=3), ReductionSpec(fit="first", align=True)])
def test_whitened_map_too_and_in_three_dimensions(pair, anchors, spec):
    assert_same_map(pair, np.arange(N), "whitened", anchors, ProjectionSpec(), spec)
    assert_same_map(pair, np.arange(N), "absolute", (), ProjectionSpec(), replace(spec, fit="apart"))


def assert_same_map(pair, rows, pane, anchors, projection, spec):
    found, note = pca_pair(pair, rows, pane, anchors, projection, spec)
    expected, told = reduce_pair(pane_matrices(pair, rows, anchors, projection, pane), spec)
    assert note == told
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=2e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("similarity", ["cosine", "l1"])
def test_of_many_rows_axes_come_from_sample_and_note_says_so(pair, similarity, monkeypatch):
    projection = ProjectionSpec(similarity)
    spec = ReductionSpec(fit="first")
    rows = np.arange(N)
    expected, _ = pca_pair(pair, rows, "relative", MANY, projection, spec)
    for module in (principal_axes, pane_maps):
        monkeypatch.setattr(module, "SAMPLED_ROWS", 300)
    monkeypatch.setattr(principal_axes, "MOST_PRODUCTS", 0)
    found, note = pca_pair(pair, rows, "relative", MANY, projection, spec)
    assert note == "PCA, fitted on the first space, by a sample of 300 rows"
    spread, most = (one[0].var(axis=0).sum() for one in (found, expected))
    assert 0.97 * most < spread < (1 + 1e-5) * most  # the axes of all rows have the largest variance
    assert not np.allclose(found[0], expected[0], atol=1e-6)  # a control: it was a sample indeed
    absolute, note = pca_pair(pair, rows, "absolute", (), projection, spec)
    assert note == "PCA, fitted on each space separately, by a sample of 300 rows"
    assert [len(one) for one in absolute] == [N, N]


def placed_rows(pair, rows, others, pane, anchors, projection, maps, spec):
    """The coordinates of the rows `others`, once they are added to these maps."""
    both, note = with_rows(pair, rows, others, pane, (maps, "note"), anchors, projection, spec)
    shown = np.union1d(rows, others)
    undrawn = np.setdiff1d(rows, others)
    for known, now in zip(maps, both, strict=True):
        drawn = known[np.searchsorted(rows, undrawn)]
        np.testing.assert_array_equal(now[np.searchsorted(shown, undrawn)], drawn)
    assert note.startswith("note")
    assert ("3 nearest rows" in note) == (spec.method != "pca")
    return [now[np.searchsorted(shown, others)] for now in both]


@pytest.mark.parametrize("pane", ["own", "absolute", "relative", "whitened"])
@pytest.mark.parametrize("step", [7, 50])  # more and fewer rows than anchors
def test_other_rows_are_placed_where_map_itself_puts_them(pair, pane, step):
    projection = ProjectionSpec()
    spec = ReductionSpec(n_components=3)
    rows = np.arange(0, N, step)
    others = np.array([1, 9, 200])
    matrices = pane_matrices(pair, np.arange(N), MANY, projection, "absolute" if pane == "own" else pane)
    for turn in (np.eye(3), np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]):
        found = []
        expected = []
        for X in matrices:
            middle = X[rows].mean(axis=0)
            axes = np.linalg.svd(X[rows] - middle, full_matrices=False)[2][:3].T @ turn
            found.append((X[rows] - middle) @ axes)
            expected.append((X[others] - middle) @ axes)
        placed = placed_rows(pair, rows, others, pane, MANY, projection, found, spec)
        for ours, theirs, drawn in zip(placed, expected, found, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(drawn).max())
    maps, _ = pca_pair(pair, rows, pane, MANY, projection, spec)
    again = placed_rows(pair, rows, rows[[0, 3]], pane, MANY, projection, maps, spec)
    for ours, theirs in zip(again, maps, strict=True):
        np.testing.assert_allclose(ours, theirs[[0, 3]], atol=1e-3 * np.abs(theirs).max())


def test_on_another_map_row_is_placed_between_rows_nearest_to_it(pair):
    rows = np.arange(0, N, 2)
    twins = np.array([4, 90])
    anywhere = np.random.default_rng(0).normal(size=(len(rows), 2))
    maps = [anywhere] * 2
    placed = placed_rows(pair, rows, twins, "own", (), ProjectionSpec(), maps, ReductionSpec(method="umap"))
    for ours, space in zip(placed, (pair.source, pair.target), strict=True):
        X = space.vectors[rows] - space.vectors[rows].mean(axis=0)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        near = np.argsort(-(X[twins // 2] @ X.T), axis=1)[:, :3]
        assert np.array_equal(near[:, 0], twins // 2)  # itself first
        np.testing.assert_allclose(ours, anywhere[near].mean(axis=1), atol=1e-5)


def test_rows_far_from_zero_without_centring_keep_their_picture():
    rng = np.random.default_rng(1)
    near = rng.normal(size=(N, 6)).astype(np.float32) * np.array([3, 2, 1, 1, 1, 1], np.float32)
    space = LatentSpace(near + np.float32(1000), IDS)  # all directions within a thousandth of each other
    products = DrawnUnits.of(space, np.arange(N), center=False).moments.products
    exact = space.vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    exact -= exact.mean(axis=0)
    np.testing.assert_allclose(products, exact.T @ exact, atol=1e-3 * np.trace(products))


def test_no_matrix_of_similarities_is_formed():
    n = 60_000
    rng = np.random.default_rng(0)
    space = LatentSpace(rng.standard_normal((n, 8), dtype=np.float32), [str(row) for row in range(n)])
    anchors = [str(row) for row in range(500)]
    rows = np.arange(n)
    pair = match(space, space)
    for similarity in ("cosine", "euclidean"):
        tracemalloc.start()
        with use_device("cpu"):  # a GPU's blocks have more rows than this space
            pca_pair(pair, rows, "relative", anchors, ProjectionSpec(similarity), ReductionSpec(fit="first"))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < n * 500 * 4  # the size of one matrix (n, k); the blocks need about half of it


def test_by_two_anchors_axes_are_similarities_to_them_whatever_reduction(pair):
    rows = np.arange(0, N, 3)
    for similarity in ("cosine", "euclidean"):
        settings = ProjectionSpec(similarity), ReductionSpec(method="umap")
        maps, note = map_pair(pair, rows, TWO, FEW, *settings)
        expected = pane_matrices(pair, rows, FEW, settings[0], "relative")
        for found, known in zip(maps, expected, strict=True):
            np.testing.assert_allclose(found, known[:, :2], atol=1e-6)
        assert note == "across: similarity to 'r0' (★1), up: similarity to 'r1' (★2)"
        others = placed_rows(pair, rows, np.array([1, 2]), TWO, FEW, settings[0], maps, settings[1])
        known = pane_matrices(pair, np.array([1, 2]), FEW, settings[0], "relative")
        np.testing.assert_allclose(others[1], known[1][:, :2], atol=1e-6)
    oriented = orient_pairs({TWO: (maps, note)}, rows[:, None] * [1.0, -1.0], pair, ReductionSpec())[TWO]
    np.testing.assert_array_equal(oriented[0][0], maps[0])
    assert map_pair(pair, rows, TWO, FEW[:1], *settings)[0][0].shape == (len(rows), 2)
