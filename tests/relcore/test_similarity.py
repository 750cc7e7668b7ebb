"""The five similarities, against SciPy and scikit-learn, and Ward's clusters."""

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_similarity

from relcore.base.errors import SpaceError
from relcore.represent.similarity import (
    AnchorAxes,
    Quantiser,
    angular,
    cosine,
    euclidean,
    l1,
    project_directions,
    row_blocks,
    unit_rows,
    whitener,
)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(9000, 7)).astype(np.float32)  # two blocks and a rest


@pytest.fixture
def anchors(rng):
    return 3 * rng.normal(size=(11, 7)).astype(np.float32)


@pytest.mark.parametrize(
    ("n", "sizes"), [(0, []), (1, [1]), (4096, [4096]), (4097, [4096, 1]), (9000, [4096, 4096, 808])]
)
def test_blocks_cover_every_row_once(n, sizes):
    numbers = [np.arange(n)[block] for block in row_blocks(n)]
    assert [len(block) for block in numbers] == sizes
    assert np.array_equal(np.concatenate([*numbers, []]), np.arange(n))


def test_cosine_is_scikit_learns(rows, anchors):
    found = cosine(rows, anchors)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, cosine_similarity(rows, anchors), atol=1e-6)


def test_angular_is_the_angle(rows, anchors):
    exact = cosine_similarity(rows.astype(np.float64), anchors.astype(np.float64))
    np.testing.assert_allclose(angular(rows, anchors), 1 - np.arccos(exact) / np.pi, atol=1e-5)
    axes = np.array([[2, 0], [0, 3], [-1, 0], [1, 1]], dtype=np.float32)
    np.testing.assert_allclose(angular(axes, axes[:1]).ravel(), [1, 0.5, 0, 0.75], atol=1e-6)


@pytest.mark.parametrize(("similarity", "metric"), [(euclidean, "euclidean"), (l1, "cityblock")])
def test_distances_are_scipys_negative(rows, anchors, similarity, metric):
    found = similarity(rows, anchors)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, -cdist(rows, anchors, metric), rtol=1e-6)


def test_distances_far_from_the_origin_keep_their_digits():
    near = np.array([[1e4, 1e4], [1e4 + 1, 1e4]], dtype=np.float32)
    assert euclidean(near, near).tolist() == [[0, -1], [-1, 0]]


def test_zero_vectors_have_cosine_zero_on_either_side():
    vectors = np.array([[0, 0], [0, 2]], dtype=np.float32)
    assert cosine(vectors, vectors).tolist() == [[0, 0], [0, 1]]


def test_unit_rows_leave_their_input_alone():
    given = np.array([[3, 4], [0, 0], [2, 1]], dtype=np.float32)
    before = given.copy()
    np.testing.assert_allclose(unit_rows(given), [[0.6, 0.8], [0, 0], [2 / 5**0.5, 1 / 5**0.5]], rtol=1e-6)
    np.testing.assert_allclose(unit_rows(given, np.array([2, 1], np.float32))[2], 0)
    np.testing.assert_array_equal(given, before)


def test_projected_directions_are_unit_rows_times_the_basis(rows, rng):
    basis, mean = rng.normal(size=(7, 5)).astype(np.float32), rows.mean(axis=0)
    np.testing.assert_allclose(
        project_directions(rows, basis, mean), unit_rows(rows - mean) @ basis, atol=1e-5
    )
    np.testing.assert_array_equal(
        project_directions(rows, basis)[4097:4100], project_directions(rows[4097:4100], basis)
    )


def test_the_quantiser_finds_the_clusters_that_are_there(rng):
    centres = np.eye(3)
    points = unit_rows(np.repeat(centres, 20, axis=0) + 0.01 * rng.normal(size=(60, 3)))
    quantiser = Quantiser(threshold=0.5).fit(points, unit_rows(centres))
    assert quantiser.centroids_.shape == (3, 3)
    np.testing.assert_allclose(quantiser.transform(points), np.repeat(centres, 20, axis=0), atol=0.02)


def test_centroids_are_the_means_of_their_members(rng):
    points, anchors = unit_rows(rng.normal(size=(80, 4))), unit_rows(rng.normal(size=(6, 4)))
    quantiser = Quantiser(threshold=1.5).fit(points, anchors)
    everything = np.concatenate([anchors, points]).mean(axis=0)
    assert 1 < len(quantiser.centroids_) < 86
    one = Quantiser(threshold=100).fit(points, anchors)
    np.testing.assert_allclose(one.centroids_, everything[None], atol=1e-6)


def test_beyond_max_rows_every_row_joins_the_nearest_centroid(rng):
    points, anchors = unit_rows(rng.normal(size=(5000, 4))), unit_rows(rng.normal(size=(6, 4)))
    quantiser = Quantiser(threshold=1, max_rows=200, random_state=3).fit(points, anchors)
    nearest = cdist(points, quantiser.centroids_).argmin(axis=1)
    np.testing.assert_array_equal(quantiser.transform(points), quantiser.centroids_[nearest])
    again = Quantiser(threshold=1, max_rows=200, random_state=3).fit(points, anchors)
    np.testing.assert_array_equal(again.centroids_, quantiser.centroids_)


@pytest.mark.parametrize("threshold", [0, -1.5])
def test_the_quantiser_refuses_a_threshold_that_merges_nothing(threshold):
    with pytest.raises(SpaceError, match=f"threshold: expected a distance above 0, got {threshold}"):
        Quantiser(threshold).fit(np.eye(2), np.eye(2))


@pytest.mark.parametrize("shape", [(20, 60), (40, 40), (60, 20)])
@pytest.mark.parametrize(
    "alike", [0.0, 1e-7, 1.0]
)  # the last anchors equal the first ones, almost, or not at all
def test_the_axes_of_anchors_are_their_singular_values_and_vectors(rng, shape, alike):
    anchors = rng.normal(size=shape).astype(np.float32)
    anchors[-5:] = anchors[:5] + alike * anchors[-5:]
    anchors = unit_rows(anchors)
    axes, values = AnchorAxes.of(anchors), np.linalg.svd(anchors.astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(np.sort(axes.stretch)[::-1], values, atol=1e-7)
    np.testing.assert_allclose((axes.basis * axes.stretch) @ axes.turn.T, anchors, atol=1e-7)
    for vectors in (axes.basis, axes.turn):
        products = (vectors * axes.stretch).T @ (vectors * axes.stretch)
        np.testing.assert_allclose(products, np.diag(axes.stretch**2), atol=1e-7)
    expected = fractional_matrix_power(anchors @ anchors.T + 0.3 * np.eye(len(anchors)), -0.5)
    np.testing.assert_allclose(whitener(anchors, 0.3), expected, atol=1e-5)


def test_axes_are_kept_by_content_and_cannot_be_changed(rng):
    anchors = unit_rows(rng.normal(size=(12, 30)).astype(np.float32))
    first, again = AnchorAxes.of(anchors), AnchorAxes.of(anchors.copy())
    assert again is first
    with pytest.raises(ValueError, match="read-only"):
        first.basis[0] = 0
    anchors[0] = -anchors[0]
    moved = AnchorAxes.of(anchors)
    assert moved is not first
    np.testing.assert_allclose((moved.basis * moved.stretch) @ moved.turn.T, anchors, atol=1e-6)
    assert AnchorAxes.of(anchors.reshape(30, 12)).basis.shape == (30, 12)  # the same bytes, another set
