import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group

from relcore.represent.translation import FittedSpace, MethodSettings, representation


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 6)).astype(np.float32) + 1


def product(X, method="product"):
    return representation(method, FittedSpace(X, X[:9], X.mean(axis=0)), MethodSettings())(X)


def test_four_blocks_each_standardised_and_their_average(X):
    side_by_side = product(X)
    parts = side_by_side.reshape(60, 4, 9)
    np.testing.assert_allclose(parts.mean(axis=2), 0, atol=1e-5)
    np.testing.assert_allclose(parts.std(axis=2), 1, atol=1e-4)
    np.testing.assert_allclose(product(X, "average"), parts.mean(axis=1), atol=1e-6)
    for position, metric in enumerate(("cosine", "euclidean", "cityblock", "chebyshev")):
        centred = X - X.mean(axis=0)
        oracle = -cdist(centred, centred[:9], metric)
        oracle = (oracle - oracle.mean(axis=1, keepdims=True)) / oracle.std(axis=1, keepdims=True)
        np.testing.assert_allclose(parts[:, position], oracle, atol=1e-3)


def test_no_part_sees_scale_or_shift_and_two_see_no_turn(X):
    np.testing.assert_allclose(product(5 * X - 2), product(X), atol=1e-3)
    turned = product(X @ ortho_group.rvs(6, random_state=1).astype(np.float32))
    difference = np.abs(turned - product(X)).reshape(60, 4, 9).max(axis=(0, 2))
    np.testing.assert_array_equal(difference < 1e-3, [True, True, False, False])
