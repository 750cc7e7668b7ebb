"""The five similarities, against SciPy and scikit-learn, and Ward's clusters."""

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power

from relcore.base.rows import unit_rows
from relcore.represent.projection import RelativeProjection
from relcore.represent.similarity import AnchorAxes, negative_distance


def test_distances_far_from_origin_keep_their_digits():
    near = np.array([[1e4, 1e4], [1e4 + 1, 1e4]], dtype=np.float32)
    assert negative_distance(near, near, "euclidean").tolist() == [[0, -1], [-1, 0]]


def test_quantiser_finds_clusters_that_are_there(rng):
    centres = np.eye(3)
    points = unit_rows(np.repeat(centres, 20, axis=0) + 0.01 * rng.normal(size=(60, 3)))
    projection = RelativeProjection("quantised", center=False, threshold=0.5).fit(points, anchors=centres)
    assert projection.similarity_.centroids_.shape == (3, 3)
    np.testing.assert_allclose(projection.transform(points), np.repeat(centres, 20, axis=0), atol=0.04)


@pytest.mark.parametrize("shape", [(20, 60), (40, 40), (60, 20)])
@pytest.mark.parametrize("alike", [0.0, 1e-7])  # the last anchors equal the first ones, almost, or not at all
def test_axes_of_anchors_are_their_singular_values_and_vectors(rng, shape, alike):
    anchors = rng.normal(size=shape).astype(np.float32)
    anchors[-5:] = anchors[:5] + alike * anchors[-5:]
    anchors = unit_rows(anchors)
    axes = AnchorAxes.of(anchors)
    values = np.linalg.svd(anchors.astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(np.sort(axes.stretch)[::-1], values, atol=1e-7)
    np.testing.assert_allclose((axes.basis * axes.stretch) @ axes.turn.T, anchors, atol=1e-7)
    for vectors in (axes.basis, axes.turn):
        products = (vectors * axes.stretch).T @ (vectors * axes.stretch)
        np.testing.assert_allclose(products, np.diag(axes.stretch**2), atol=1e-7)
    expected = fractional_matrix_power(anchors @ anchors.T + 0.3 * np.eye(len(anchors)), -0.5)
    fitted = RelativeProjection(center=False, whiten=True, ridge=0.3).fit(anchors, anchors=anchors)
    np.testing.assert_allclose(fitted.similarity_.basis_, anchors.T @ expected, atol=1e-5)
