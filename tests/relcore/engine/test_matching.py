"""Searches of two sides at once, on every path, against the whole matrix of products."""

import numpy as np
import pytest

from relcore.base.environment import use_device
from relcore.base.rows import unit_rows
from relcore.engine import both_ways
from relcore.engine.both_ways import best_both_ways, best_without, crowding, mean_of_nearest


@pytest.fixture(params=["cpu", "torch"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setattr(both_ways, "BLOCK_BYTES", 4 * 90 * 37)  # blocks of 37 rows, the last one shorter
    with use_device(request.param):
        yield request.param


def sides(n, m, d=12):
    rng = np.random.default_rng(0)
    return unit_rows(rng.normal(size=(n, d))), unit_rows(rng.normal(size=(m, d)))


@pytest.mark.parametrize(("n", "m", "k"), [(257, 90, 10), (61, 803, 3), (5, 7, 10)])
def test_crowding_is_mean_of_largest_products_of_rows_and_columns(n, m, k):
    X, Y = sides(n, m)
    of_x, of_y = crowding(X, Y, k)
    np.testing.assert_allclose(of_x, np.sort(X @ Y.T, axis=1)[:, -min(k, m) :].mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(of_y, np.sort(X @ Y.T, axis=0)[-min(k, n) :].mean(axis=0), atol=1e-6)


def test_best_of_both_sides_without_what_is_left_out():
    X, Y = sides(100, 90)
    products = X @ Y.T
    partner, best, of_y = best_both_ways(X, Y)
    np.testing.assert_array_equal(partner, products.argmax(axis=1))
    np.testing.assert_allclose(best, products.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(of_y, products.max(axis=0), atol=1e-6)
    even = best_both_ways(X, Y, lambda shape: np.broadcast_to(np.arange(90) % 2 == 1, shape).copy())[0]
    np.testing.assert_array_equal(even, 2 * products[:, ::2].argmax(axis=1))


def test_next_best_by_csls_once_partner_is_taken_away():
    X, Y = sides(100, 90)
    partner = np.arange(100) % 90
    crowded = np.linspace(0, 1, 90).astype(np.float32)
    products = X @ Y.T
    products[np.arange(100), partner] = -np.inf
    csls = 2 * products - crowded - np.sort(products, axis=1)[:, -5:].mean(axis=1)[:, None]
    other, found = best_without(X, Y, partner, crowded, 5)
    np.testing.assert_array_equal(other, csls.argmax(axis=1))
    np.testing.assert_allclose(found, csls.max(axis=1), atol=1e-5)


@pytest.mark.parametrize("crowd", [0, 4])
def test_the_mean_of_the_nearest_keys(crowd):
    X, Y = sides(600, 90)
    products = X @ Y.T
    if crowd:
        products = products - np.sort(products, axis=0)[-crowd:].mean(axis=0) / 2
    expected = unit_rows(Y[np.argsort(-products, axis=1)[:, :3]].mean(axis=1))
    np.testing.assert_allclose(mean_of_nearest(X, Y, Y, 3, crowd), expected, atol=1e-5)
