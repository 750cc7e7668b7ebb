"""Nearest rows from each of two spaces to the other, with the correction for hubs by CSLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from relcore.base.rows import row_blocks, unit_rows
from relcore.engine.device import Array, Device, NumpyDevice, on_device
from relcore.engine.nearest import nearest

# Searches in both directions: for best partners, and for mean similarities to the nearest rows (as in CSLS).

BLOCK_BYTES = 64 * 2**20  # bytes of a block of products, of which only one exists at a time
Mask = Callable[[tuple[int, int]], np.ndarray]


def crowding(X: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row of X, its mean product with the k nearest rows of Y, (n,), and the same for each row of Y,
    (m,), as float32."""

    def search(where: Device) -> tuple[np.ndarray, np.ndarray]:
        with where.exact():
            if isinstance(where, NumpyDevice):
                return _crowding_on_cpu(X, Y, k)
            return by_topk(where)

    def by_topk(where: Device) -> tuple[np.ndarray, np.ndarray]:
        import torch

        best: Array = None
        means: list[Array] = []
        for _, products in _products(where, X, Y):
            means.append(products.topk(min(k, len(Y)), dim=1).values.double().mean(dim=1))
            if best is None:
                best = products
            else:
                best = torch.cat([best, products])
            best = best.topk(min(k, len(best)), dim=0).values
        of_rows = where.get(torch.cat(means).float())
        return of_rows, where.get(best.double().mean(dim=0).float())

    return on_device(search)


def _places(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row and the column of each True. It takes a quarter of the time of np.nonzero."""
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return rows, columns


def _crowding_on_cpu(X: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    # This is exact and faster than partial sorting: the k-th largest of the maxima of groups of columns is a
    # lower limit of the k largest products, and few products reach it.
    k_rows = min(k, len(Y))
    k_columns = min(k, len(X))
    # For each column, the k largest group maxima so far.
    bound = np.full((k_columns, len(Y)), -np.inf, dtype=np.float32)
    row_parts: list[tuple[np.ndarray, np.ndarray]] = []
    column_parts: list[tuple[np.ndarray, np.ndarray]] = []
    for block, products in _products(NumpyDevice(), X, Y):
        reached = np.partition(_group_maxima(products, k_rows), -k_rows, axis=1)[:, -k_rows, None]
        bound = np.sort(np.concatenate([bound, _group_maxima(products.T, k_columns).T]), axis=0)[-k_columns:]
        rows, columns = _places(products >= reached)
        row_parts.append((rows + block.start, products[rows, columns]))
        rows, columns = _places(products >= bound[0])
        column_parts.append((columns, products[rows, columns]))
    return _top_means(row_parts, len(X), k_rows), _top_means(column_parts, len(Y), k_columns)


def _group_maxima(products: np.ndarray, k: int) -> np.ndarray:
    size = max(1, min(50, products.shape[1] // (4 * k)))
    whole = products.shape[1] // size * size
    maxima = products[:, :whole].reshape(len(products), -1, size).max(axis=2)
    if whole < products.shape[1]:
        maxima = np.column_stack([maxima, products[:, whole:].max(axis=1)])
    return maxima


def _top_means(parts: list[tuple[np.ndarray, np.ndarray]], n: int, k: int) -> np.ndarray:
    owners = np.concatenate([owner for owner, _ in parts])
    values = np.concatenate([value for _, value in parts])
    order = np.lexsort((-values, owners))
    places = np.searchsorted(owners[order], np.arange(n))[:, None] + np.arange(k)
    return values[order][places].mean(axis=1, dtype=np.float64).astype(np.float32)


def best_both_ways(
    X: np.ndarray, Y: np.ndarray, left_out: Mask | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row of Y with the largest product for each row of X, (n,), these products, (n,), and the
    largest product of each row of Y, (m,).

    `left_out` returns a mask of the products of a block that do not count.
    """

    def search(where: Device) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        partner = np.empty(len(X), dtype=np.int64)
        best = np.empty(len(X), dtype=np.float32)
        other = np.full(len(Y), -np.inf, dtype=np.float32)
        with where.exact():
            for block, products in _products(where, X, Y):
                if left_out is not None:
                    products[where.put(left_out(products.shape))] = -np.inf
                partner[block] = where.get(products.argmax(1))
                best[block] = where.get(_largest(products, 1))
                np.maximum(other, where.get(_largest(products, 0)), out=other)
        return partner, best, other

    return on_device(search)


def best_without(
    X: np.ndarray, Y: np.ndarray, partner: np.ndarray, crowded: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row of Y with the highest CSLS for each row of X, (n,), and this CSLS: twice the product,
    minus the mean product of each of the two rows with its k nearest rows. The `partner` (n,) of a row is
    excluded. `crowded` (m,) is the `crowding` of the rows of Y."""

    def search(where: Device) -> tuple[np.ndarray, np.ndarray]:
        other = np.empty(len(X), np.int64)
        csls = np.empty(len(X), np.float32)
        penalty = where.put(crowded / 2)
        with where.exact():
            for block, products in _products(where, X, Y):
                products[where.put(np.arange(len(products))), where.put(partner[block])] = -np.inf
                near = where.get(_top_mean(products, min(k, len(Y) - 1)))
                products -= penalty
                other[block] = where.get(products.argmax(1))
                csls[block] = 2 * where.get(_largest(products, 1)) - near
        return other, csls

    return on_device(search)


def mean_of_nearest(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, k: int, crowd: int = 0
) -> np.ndarray:
    """For each unit query (n, d), find its k nearest keys (m, d), and return the mean of their values (m, e),
    scaled to length 1: (n, e).

    With `crowd`, the products of a key are first reduced by half of its mean product with its `crowd` nearest
    queries.
    """

    if crowd:  # one more coordinate subtracts half the mean product of each key
        crowded = crowding(queries, keys, crowd)[1] / 2
        queries = np.column_stack([queries, np.ones(len(queries))])
        keys = np.column_stack([keys, -crowded])
    near = nearest(queries, keys.astype(np.float32), k, unit=False).rows
    return unit_rows(values[near].mean(axis=1))


def _products(where: Device, X: np.ndarray, Y: np.ndarray) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of rows of X, and their products with all rows of Y, (b, m)."""
    other = where.put(np.ascontiguousarray(Y, dtype=np.float32)).T
    size = where.rows_at_once(max(1, BLOCK_BYTES // (4 * len(Y))), 8 * len(Y))
    for block in row_blocks(len(X), size):
        rows = np.ascontiguousarray(X[block], dtype=np.float32)
        yield block, where.product(where.put(rows), other, "products of both sides")


def _largest(products: Array, axis: int) -> Array:
    if isinstance(products, np.ndarray):
        return products.max(axis=axis)
    return products.amax(axis)


def _top_mean(products: Array, k: int) -> Array:
    if not isinstance(products, np.ndarray):
        return products.topk(k, dim=1).values.mean(1)
    return np.partition(products, -k, axis=1)[:, -k:].mean(axis=1)
