"""Searches in both directions from one product of all rows: best partners, and mean similarity to nearest
rows (CSLS)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from relcore.base.rows import row_blocks, unit_rows
from relcore.engine.device import Array, Device, NumpyDevice, on_device

BLOCK_BYTES = 64 * 2**20  # bytes of a block of products; only one exists at a time
Mask = Callable[[tuple[int, int]], np.ndarray]


def crowding(X: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row, its mean product with its k nearest rows of the other side, (n,) and (m,) float32."""

    def search(where: Device) -> tuple[np.ndarray, np.ndarray]:
        with where.exact():
            return _crowding_on_cpu(X, Y, k) if isinstance(where, NumpyDevice) else by_topk(where)

    def by_topk(where: Device) -> tuple[np.ndarray, np.ndarray]:
        import torch

        best, means = None, []
        for _, products in _products(where, X, Y):
            means.append(products.topk(min(k, len(Y)), dim=1).values.double().mean(dim=1))
            best = products if best is None else torch.cat([best, products])
            best = best.topk(min(k, len(best)), dim=0).values
        return tuple(where.get(one.float()) for one in (torch.cat(means), best.double().mean(dim=0)))

    return on_device(search)


def _crowding_on_cpu(X: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    # Exact, and faster than partial sorting: the maxima of k or more groups of columns bound the k nearest
    # from below, and few products reach the bound.
    k_rows, k_columns = min(k, len(Y)), min(k, len(X))
    bound = np.full((k_columns, len(Y)), -np.inf, dtype=np.float32)  # largest maxima of each column so far
    row_parts, column_parts = [], []
    for block, products in _products(NumpyDevice(), X, Y):
        reached = np.partition(_group_maxima(products, k_rows), -k_rows, axis=1)[:, -k_rows, None]
        bound = np.sort(np.concatenate([bound, _group_maxima(products.T, k_columns).T]), axis=0)[-k_columns:]
        for parts, least in ((row_parts, reached), (column_parts, bound[0])):
            # Searching the flat array and dividing takes a quarter of the time of np.nonzero.
            rows, columns = np.divmod(np.flatnonzero(products >= least), len(Y))
            parts.append((rows + block.start if parts is row_parts else columns, products[rows, columns]))
    return _top_means(row_parts, len(X), k_rows), _top_means(column_parts, len(Y), k_columns)


def _group_maxima(products: np.ndarray, k: int) -> np.ndarray:
    size = max(1, min(50, products.shape[1] // (4 * k)))
    whole = products.shape[1] // size * size
    maxima = products[:, :whole].reshape(len(products), -1, size).max(axis=2)
    if whole < products.shape[1]:
        maxima = np.column_stack([maxima, products[:, whole:].max(axis=1)])
    return maxima


def _top_means(parts: list[tuple[np.ndarray, np.ndarray]], n: int, k: int) -> np.ndarray:
    """Mean of each owner's k largest values, (n,) float32."""
    owners, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-values, owners))
    places = np.searchsorted(owners[order], np.arange(n))[:, None] + np.arange(k)
    return values[order][places].mean(axis=1, dtype=np.float64).astype(np.float32)


def best_both_ways(
    X: np.ndarray, Y: np.ndarray, left_out: Mask | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each row of X, the row of Y with the largest product (n,) and that product (n,); for each row of Y,
    the largest product (m,).

    `left_out` maps the shape of a block to a mask of products that do not count.
    """

    def search(where: Device) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        partner, best = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.float32)
        other = np.full(len(Y), -np.inf, dtype=np.float32)
        with where.exact():
            for block, products in _products(where, X, Y):
                if left_out is not None:
                    products[where.put(left_out(products.shape))] = -np.inf
                partner[block] = where.get(products.argmax(1))
                best[block], highest = (where.get(_largest(products, axis)) for axis in (1, 0))
                np.maximum(other, highest, out=other)
        return partner, best, other

    return on_device(search)


def best_without(
    X: np.ndarray, Y: np.ndarray, partner: np.ndarray, crowded: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each row of X, the row of Y with the highest CSLS except its `partner` (n,), and that CSLS;
    `crowded` (m,) is `crowding` of the rows of Y.
    """

    def search(where: Device) -> tuple[np.ndarray, np.ndarray]:
        other, csls, penalty = (
            np.empty(len(X), np.int64),
            np.empty(len(X), np.float32),
            where.put(crowded / 2),
        )
        with where.exact():
            for block, products in _products(where, X, Y):
                products[where.put(np.arange(len(products))), where.put(partner[block])] = -np.inf
                near = where.get(_top_mean(products, min(k, len(Y) - 1), 1))
                products -= penalty
                other[block] = where.get(products.argmax(1))
                csls[block] = 2 * where.get(_largest(products, 1)) - near
        return other, csls

    return on_device(search)


def mean_of_nearest(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, k: int, crowd: int = 0
) -> np.ndarray:
    """Means of the values (m, e) of each unit query's (n, d) k nearest keys (m, d), scaled to length 1: (n,
    e).

    With `crowd`, each key's product is first reduced by half its mean product with its `crowd` nearest
    queries.
    """

    def search(where: Device) -> np.ndarray:
        means, wanted = np.empty((len(queries), values.shape[1]), dtype=np.float32), where.put(values)
        with where.exact():
            # If `crowd` is set, all queries form one block; otherwise blocks are small and stay in the cache.
            for block, products in _products(where, queries, keys, len(queries) if crowd else 500):
                if crowd:
                    products -= _top_mean(products, min(crowd, len(products)), 0) / 2
                means[block] = where.get(wanted[_top(products, k)].mean(1))
        return unit_rows(means)

    return on_device(search)


def _products(
    where: Device, X: np.ndarray, Y: np.ndarray, size: int | None = None
) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows of X, and their products with all rows of Y, (b, m)."""
    other = where.put(np.ascontiguousarray(Y, dtype=np.float32)).T
    size = size or where.rows_at_once(max(1, BLOCK_BYTES // (4 * len(Y))), 8 * len(Y))
    for block in row_blocks(len(X), size):
        rows = np.ascontiguousarray(X[block], dtype=np.float32)
        yield block, where.product(where.put(rows), other, "products of both sides")


# What NumPy and torch name differently.


def _largest(products: Array, axis: int) -> Array:
    return products.max(axis=axis) if isinstance(products, np.ndarray) else products.amax(axis)


def _top_mean(products: Array, k: int, axis: int) -> Array:
    """The mean of the k largest products of each row (axis 1) or column (0)."""
    if not isinstance(products, np.ndarray):
        return products.topk(k, dim=axis).values.mean(axis)
    top = np.partition(products, -k, axis=axis)
    return (top[:, -k:] if axis else top[-k:]).mean(axis=axis)


def _top(products: Array, k: int) -> Array:
    """The column numbers of each row's k largest products, in any order."""
    if not isinstance(products, np.ndarray):
        return products.topk(k, dim=1).indices
    return np.argpartition(products, -k, axis=1)[:, -k:]
