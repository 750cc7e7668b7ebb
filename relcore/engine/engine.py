"""Exact nearest-neighbour search and linear algebra, in blocks and on any device. `nearest` searches one
space; `crowding` and `best_both_ways` search two spaces, each with the rows of the other as queries. `Engine`
has solvers, and products and moments of many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from relcore.base.environment import chosen
from relcore.base.errors import SpaceError
from relcore.base.rows import NO_LENGTH, ROWS_PER_BLOCK, Rows, inverse_lengths, row_blocks, unit_rows
from relcore.engine.device import Array, Device, NumpyDevice, in_threads, on_device

_SAMPLED_ROWS = 64
_SEEDING_ROWS = 64  # number of rows from which `order_seed` is computed
_PRODUCTS = 2**21  # number of products of queries with the rows of a block; 8 MB stay in cache
_FEW_PRODUCTS = 2**22  # with fewer products, the CPU ends before a GPU has the rows
_ALIKE = 2.0**-8  # mean squared distance from the mean; below it, unit rows have nearly one direction
_GRID = 2.0**-17  # step of `on_grid`, far above the rounding error of products of unit rows


class Nearest(NamedTuple):
    """The k nearest rows of each query: their inner products with the query, largest first, (m, k) float32,
    and their row numbers, (m, k) int64.
    """

    products: np.ndarray
    rows: np.ndarray


def nearest(
    queries: np.ndarray,
    base: Rows,
    k: int,
    *,
    unit: bool = True,
    seed: int | None = None,
    device: str | None = None,
) -> Nearest:
    """For each query (m, d), the k rows of `base` (n, d) that have the largest inner products with it. The
    search is exact.

    Parameters
    ----------
    unit : bool
        Whether all rows have length 1. Unit rows that all point in nearly one direction, as in a space far
        from zero, are ordered by their differences from a common row.
    seed : int, optional
        With a seed, equally near rows have a random order. Without one, the lower row number comes first.
    device : str, optional
        The device that computes. By default the device that the user chose (see `engine.device`).

    Raises
    ------
    SpaceError
        k is larger than n.
    """
    n = len(base)
    m = len(queries)
    if k > n:
        raise SpaceError(f"k: expected at most {n}, the number of rows, got {k}; choose fewer neighbours")
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if unit:
        sample = base[:: max(1, n // _SAMPLED_ROWS)]
    else:
        sample = base[:0]
    common = None
    if unit:
        common = common_direction(sample)
    tied = common is None and many_coincide(sample, n, k)
    # If all rows have nearly one direction, their products differ only in the last digits of float32. So a
    # common row is subtracted: distances stay the same and become exact. |x − y|² = |x|² − 2 (x·y − |y|² /
    # 2).
    if common is not None:
        queries = queries - common
    if (device or chosen()) == "auto" and m * n <= _FEW_PRODUCTS:
        device = "cpu"

    def search(where: Device) -> TopRows:
        size = where.rows_at_once(where.search_rows, 8 * min(m, ROWS_PER_BLOCK) + 8 * queries.shape[1])
        if isinstance(where, NumpyDevice):
            size = min(size, max(512, _PRODUCTS // max(1, min(m, ROWS_PER_BLOCK))))
        wanted = where.put(queries)
        middle = None if common is None else where.put(common)

        def add(top: TopRows | TopTensors, block: slice) -> None:
            # Each block is computed and copied to the device once, for all queries.
            own = top.device
            numbers = where.put(np.arange(block.start, block.stop))
            with own.exact():
                rows = own.block_on_device(base, block)
                if middle is not None:
                    rows = own.centred(rows, middle, "rows")
                for part in row_blocks(m):
                    products = own.product(wanted[part], rows.T, "products")
                    if middle is not None:
                        products -= own.row_products(rows, rows) / 2
                    top.add(on_grid(products) if tied else products, numbers, part)

        blocks = list(row_blocks(n, size))
        return in_threads(
            blocks, lambda: top_rows(where.clone_for_thread(), m, k, seed), add, most=where.threads
        )

    top = on_device(search, device).fetched()
    return Nearest(top.values, top.rows)


def nearest_within(base: Rows, queries: np.ndarray, k: int, device: str | None = None) -> np.ndarray:
    """The numbers (m, k) of the k rows that are nearest to each of the rows `queries` (m,) in a space of unit
    rows (n, d). A row is not its own neighbour.

    Raises
    ------
    SpaceError
        k is larger than n − 1.
    """
    need_k(k, len(base), len(base) - 1)
    queries = np.asarray(queries)
    # Each space orders equally near rows in its own way. Otherwise two spaces with many such rows would agree
    # only because of their row order.
    found = nearest(base[queries], base, k + 1, seed=order_seed(base[:_SEEDING_ROWS]), device=device)
    return without_itself(queries, found.rows)


def without_itself(queries: np.ndarray, lists: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
    """Remove the query itself from neighbour lists (m, k + 1), so that k entries remain. If duplicates
    displaced the query from its list, the last entry is removed.

    If `values` (m, k + 1) are given, such as the classes of the neighbours, those of the remaining entries
    are returned instead.
    """
    itself = lists == queries[:, None]
    itself[~itself.any(axis=1), -1] = True
    return (lists if values is None else values)[~itself].reshape(len(lists), -1)


def need_k(k: int, n: int, most: int, of: str = "") -> None:
    """Raise a SpaceError unless k is in 1 … `most`. The message names the number of rows n and, by `of`, the
    spaces.
    """
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k <= most:
        raise SpaceError(
            f"k: expected 1 … {most} for {n} rows{of}, got {k!r:.40}; choose fewer neighbours or more rows"
        )


def common_direction(sample: np.ndarray) -> np.ndarray | None:
    """The mean (d,) of a sample of unit rows (m, d), if all of them point in nearly one direction; otherwise
    None."""
    common = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    if 1 - common @ common > _ALIKE:
        return None
    return common


def many_coincide(sample: np.ndarray, n: int, k: int) -> bool:
    """Whether more than k of n unit rows probably equal a query, judged by a sample (m, d) of the rows."""
    sample = sample[:: max(1, len(sample) // _SAMPLED_ROWS)]
    m = len(sample)
    return (np.count_nonzero(sample @ sample.T > 1 - _GRID) - m) * n > k * m * (m - 1)


def on_grid(products: Array) -> Array:
    """The products of unit rows, rounded such that equal rows have equal products.

    How a library rounds a product depends on its place in the matrix. Two searches with the query at the same
    place would therefore order equal rows alike, and unrelated spaces would seem to agree.
    """
    return (products / _GRID).round() * _GRID


def order_seed(unit: np.ndarray) -> int:
    """A seed for the order of equally near rows. It is a checksum of a space's first unit rows (m, d), so
    that different spaces have different seeds.
    """
    return crc32(np.ascontiguousarray(unit[:_SEEDING_ROWS]).tobytes())


# The best rows so far, which stay on the device until the end.


class TopRows:
    """The k rows with the largest scores for each of q queries, nearest first. They are updated block by
    block. Rows with equal scores have a fixed order.

    Parameters
    ----------
    n_queries, k : int
    seed : int, optional
        With a seed, rows with equal scores have a random order. Without one, the lower row number comes
        first; then two spaces with many equal rows would agree because of their row order.
    device : Device, optional
        The device that holds the scores, with buffers for one thread.

    Attributes
    ----------
    values : array (q, k) float32
        The scores; −∞ while fewer than k rows are found.
    rows : array (q, k) int64
        The row numbers; −1 while fewer than k rows are found.
    """

    def __init__(self, n_queries: int, k: int, seed: int | None = None, device: Device | None = None) -> None:
        self.seed = seed
        self.device = device or NumpyDevice()
        self.values = np.full((n_queries, k), -np.inf, dtype=np.float32)
        self.rows = np.full((n_queries, k), -1, dtype=np.int64)

    def add(self, scores: np.ndarray, rows: np.ndarray, queries: slice = slice(None)) -> None:
        """Add the scores (q, m) of further rows, whose numbers are `rows` (m,). `queries` selects some of the
        queries."""
        least = self.values[queries, -1]
        k = self.values.shape[1]
        if least[0] == -np.inf and scores.shape[1] > k:
            least = np.maximum(least, _lower_bound(scores, k))
        which = np.flatnonzero(scores.max(axis=1) >= least)
        if 2 * len(which) > len(scores):
            which = np.arange(len(scores))
        else:
            scores = scores[which]
            least = least[which]
        # Search a flat array, which is much faster than searching a matrix.
        flat = np.flatnonzero(scores >= least[:, None])
        place, columns = np.divmod(flat, scores.shape[1])
        self._enter((queries.start or 0) + which[place], scores[place, columns], rows[columns])

    def merge(self, other: TopRows) -> None:
        which = np.repeat(np.arange(len(other.rows)), other.rows.shape[1])
        self._enter(which, other.values.ravel(), other.rows.ravel())

    def fetched(self) -> TopRows:
        return self

    def without(self, removed: np.ndarray, queries: np.ndarray, n_fewer: int) -> TopRows:
        """For these queries, the k − n_fewer nearest rows that are not `removed`. At most n_fewer rows of a
        query may be removed.
        """
        fewer = TopRows(len(queries), self.rows.shape[1] - n_fewer, self.seed)
        staying = np.argsort(np.isin(self.rows[queries], removed), axis=1, kind="stable")
        staying = staying[:, : fewer.rows.shape[1]]
        fewer.rows = np.take_along_axis(self.rows[queries], staying, axis=1)
        fewer.values = np.take_along_axis(self.values[queries], staying, axis=1)
        return fewer

    def _enter(self, which: np.ndarray, values: np.ndarray, rows: np.ndarray) -> None:
        """Insert candidates that are nearer than the current rows. `which` is the query of each candidate,
        ascending."""
        if not len(which):
            return
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        k = self.values.shape[1]
        changed = which[starts]
        counts = np.diff(starts, append=len(which))
        known = k
        if np.isneginf(self.values[changed, 0]).all():
            known = 0
        # Each query gets one row of a matrix, with its current best rows first. Sorting the rows of this
        # matrix takes a third of the time of sorting one long list.
        columns = np.arange(len(which)) - np.repeat(starts - known, counts)
        lines = np.repeat(np.arange(len(changed)), counts), columns
        shape = len(changed), max(k, known + counts.max())
        all_values = np.full(shape, -np.inf, np.float32)
        all_rows = np.full(shape, -1)
        all_values[:, :known] = self.values[changed, :known]
        all_values[lines] = values
        all_rows[:, :known] = self.rows[changed, :known]
        all_rows[lines] = rows
        if self.seed is None:
            ties = all_rows
        else:
            ties = pseudo_random(all_rows, self.seed)
        first = ties.argsort(axis=1)
        order = (-np.take_along_axis(all_values, first, axis=1)).argsort(axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(first, order, axis=1)
        self.values[changed] = np.take_along_axis(all_values, best, axis=1)
        self.rows[changed] = np.take_along_axis(all_rows, best, axis=1)


def _lower_bound(scores: np.ndarray, k: int) -> np.ndarray:
    """For each query, a lower bound of the k-th largest of its scores (q, m). It is the k-th largest of the
    maxima of many groups of columns, and often equals the k-th largest score."""
    groups = min(max(512, 16 * k), scores.shape[1])
    largest = scores[:, :groups].copy()
    for start in range(groups, scores.shape[1] - groups + 1, groups):
        np.maximum(largest, scores[:, start : start + groups], out=largest)
    largest.partition(groups - k, axis=1)
    return largest[:, groups - k]


def pseudo_random(rows: Array, seed: int) -> Array:
    """A pseudo-random number for each row number, different for each seed (SplitMix64: Steele et al. 2014).
    The sign bit is flipped, because torch has no unsigned type.
    """
    mixed = rows + _as_signed(_GOLDEN * (seed + 1))  # int64 overflows in the same way as uint64
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, 1)):
        # Shifting a signed number repeats its sign bit. The mask removes the repeated bits.
        mixed = (mixed ^ ((mixed >> shift) & ((1 << (64 - shift)) - 1))) * _as_signed(factor)
    return mixed ^ _as_signed(1 << 63)


_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def _as_signed(number: int) -> int:
    number %= 1 << 64
    return number - (1 << 64 if number >> 63 else 0)


_MORE = 8  # number of further candidates per block, to usually include all rows that tie with the k-th one


class TopTensors:
    """The methods of `TopRows` for scores that are tensors. `fetched` copies the result to the host."""

    def __init__(self, n_queries: int, k: int, seed: int | None, device: Device) -> None:
        import torch

        self._torch = torch
        self.device = device
        self.seed = seed
        self.values = torch.full((n_queries, k), -torch.inf, device=device.torch_name)
        self.rows = torch.full((n_queries, k), -1, dtype=torch.int64, device=device.torch_name)

    def add(self, scores: Array, rows: Array, queries: slice = slice(None)) -> None:
        if isinstance(rows, np.ndarray):
            rows = self.device.put(rows)
        k = self.values.shape[1]
        n = scores.shape[1]
        values, places = self._torch.topk(scores, min(k + _MORE, n), dim=1)
        if n > values.shape[1]:
            # Of several equal scores, topk may choose any. If the last candidate ties with the k-th, a row
            # that was not chosen may come first in the fixed order. So for such queries, all rows are sorted.
            tied = (values[:, -1] == values[:, k - 1]) & (values[:, -1] >= self.values[queries, -1])
            for query in self._torch.nonzero(tied)[:, 0].tolist():
                order = self._order(scores[query][None], rows[None])[0, : values.shape[1]]
                values[query] = scores[query, order]
                places[query] = order
        self._enter(values, rows[places], queries)

    def merge(self, other: TopTensors) -> None:
        self._enter(other.values, other.rows, slice(None))

    def fetched(self) -> TopRows:
        """The best rows, copied to the host."""
        top = TopRows(*self.values.shape, self.seed)
        top.values, top.rows = self.device.get(self.values), self.device.get(self.rows)
        return top

    def _enter(self, values: Array, rows: Array, queries: slice) -> None:
        values = self._torch.cat([self.values[queries], values], dim=1)
        rows = self._torch.cat([self.rows[queries], rows], dim=1)
        order = self._order(values, rows)[:, : self.values.shape[1]]
        self.values[queries], self.rows[queries] = values.gather(1, order), rows.gather(1, order)

    def _order(self, values: Array, rows: Array) -> Array:
        if self.seed is None:
            ties = rows
        else:
            ties = pseudo_random(rows, self.seed)
        first = ties.argsort(dim=1, stable=True)
        return first.gather(1, values.gather(1, first).argsort(dim=1, descending=True, stable=True))


def top_rows(device: Device, n_queries: int, k: int, seed: int | None = None) -> TopRows | TopTensors:
    kind = TopTensors
    if isinstance(device, NumpyDevice):
        kind = TopRows
    return kind(n_queries, k, seed, device)


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

        best = None
        means = []
        for _, products in _products(where, X, Y):
            means.append(products.topk(min(k, len(Y)), dim=1).values.double().mean(dim=1))
            if best is None:
                best = products
            else:
                best = torch.cat([best, products])
            best = best.topk(min(k, len(best)), dim=0).values
        return tuple(where.get(one.float()) for one in (torch.cat(means), best.double().mean(dim=0)))

    return on_device(search)


def _crowding_on_cpu(X: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    # This is exact and faster than partial sorting: the k-th largest of the maxima of groups of columns is a
    # lower limit of the k largest products, and few products reach it.
    k_rows = min(k, len(Y))
    k_columns = min(k, len(X))
    # For each column, the k largest group maxima so far.
    bound = np.full((k_columns, len(Y)), -np.inf, dtype=np.float32)
    row_parts = []
    column_parts = []
    for block, products in _products(NumpyDevice(), X, Y):
        reached = np.partition(_group_maxima(products, k_rows), -k_rows, axis=1)[:, -k_rows, None]
        bound = np.sort(np.concatenate([bound, _group_maxima(products.T, k_columns).T]), axis=0)[-k_columns:]
        for parts, least in ((row_parts, reached), (column_parts, bound[0])):
            # A flat search and a division of the indices take a quarter of the time of np.nonzero.
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
    owners, values = (np.concatenate(column) for column in zip(*parts, strict=True))
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
                best[block], highest = (where.get(_largest(products, axis)) for axis in (1, 0))
                np.maximum(other, highest, out=other)
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


# Linear algebra on the chosen device: solvers, and blockwise products and moments of many rows.

_IN_CACHE = 2**17  # number of values in a block that stays in the cache (half a megabyte)
_CONDITIONED = 1e-8  # minimum squared inverse condition number; below it, eigenvalues lose too many digits
_SAFE_CHOLESKY = 1e-6  # minimum inverse condition number for a Cholesky decomposition
_FEW = 2**14  # maximum number of values in a matrix that is solved on the CPU


class Moments(NamedTuple):
    """The moments of n rows X (n, d), or of n pairs of rows of X and Y. They are the means (d,), and the sum
    of the products of centred rows, (d, d) or (d, d'), as float64.
    """

    n: int
    means: tuple[np.ndarray, np.ndarray]
    products: np.ndarray


@dataclass(frozen=True)
class Engine:
    """Computations on a device, by default the device that is chosen when a method is called. They take and
    return NumPy arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.engine.engine import Engine
    >>> rotation, values = Engine().rotation(np.diag([2.0, 1.0]))
    >>> np.round(rotation, 6).tolist(), np.round(values, 6).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    """

    device: str | None = None

    # Solvers. They compute in float64.

    def svd(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U (n, w), S (w,) and Vᵀ (w, d) with A (n, d) = U S Vᵀ and w = min(n, d). The singular values
        descend."""
        return self._solve(thin_svd, lambda torch, A: torch.linalg.svd(A, full_matrices=False), A)

    def eigh(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues (d,) of a symmetric matrix, ascending, and its eigenvectors (d, d)."""
        return self._solve(np.linalg.eigh, lambda torch, A: torch.linalg.eigh(A), A)

    def pinv(self, A: np.ndarray) -> np.ndarray:
        """The pseudo-inverse (d, n) of A (n, d)."""
        return self._solve(np.linalg.pinv, lambda torch, A: torch.linalg.pinv(A), A)

    def lstsq(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The matrix X (d, d') that minimises ‖A X − B‖, for A (n, d) and B (n, d'). If there are several,
        the shortest one."""

        def by_torch(torch: Any, A: Any, B: Any) -> Any:
            # On a GPU, torch's least squares need full rank, so first drop the singular values that NumPy
            # would drop.
            left, values, right = torch.linalg.svd(A, full_matrices=False)
            real = values > torch.finfo(A.dtype).eps * max(A.shape) * values[0]
            return right.T @ (torch.where(real, 1 / values, 0)[:, None] * (left.T @ B))

        return self._solve(lambda A, B: np.linalg.lstsq(A, B, rcond=None)[0], by_torch, A, B)

    def solve_definite(self, A: np.ndarray, B: np.ndarray) -> np.ndarray | None:
        """The matrix X (n, k) with A X = B for a symmetric positive definite A (n, n), by Cholesky. None if A
        is nearly singular.
        """
        solved, inverse_condition = self._solve(_cholesky_on_cpu, _cholesky_by_torch, A, B)
        if inverse_condition > _SAFE_CHOLESKY:
            return solved
        return None

    def product(self, A: np.ndarray, B: np.ndarray, dtype: type = np.float64) -> np.ndarray:
        """The product (n, d) of A (n, k) and B (k, d)."""
        return self._solve(np.matmul, lambda torch, A, B: A @ B, A, B, dtype=dtype)

    def rotation(self, products: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rotation or reflection R (d, d') that minimises ‖A R − B‖, and the singular values of
        AᵀB. `products` is AᵀB, the sum of products of paired rows (orthogonal Procrustes: Schönemann 1966).
        """
        return self._solve(
            lambda A: _nearest_rotation(np, A, thin_svd),
            lambda torch, A: _nearest_rotation(torch, A, lambda A: torch.linalg.svd(A, full_matrices=False)),
            products,
        )

    def shrunk(self, A: np.ndarray, ridge: float, power: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (A Aᵀ + λI)^p A (n, d), with λ = `ridge` and p = `power`, and the ascending eigenvalues of
        the smaller of the matrices A Aᵀ and AᵀA.
        """
        return self._solve(
            lambda A: _shrunk(np, A, ridge, power),
            lambda torch, A: _shrunk(torch, A, ridge, power),
            A,
        )

    def _solve(
        self,
        by_numpy: Callable[..., Any],
        by_torch: Callable[..., Any],
        *matrices: np.ndarray,
        dtype: type = np.float64,
    ) -> Any:
        def work(where: Device) -> Any:
            if isinstance(where, NumpyDevice):
                return by_numpy(*(np.asarray(matrix, dtype=dtype) for matrix in matrices))
            import torch

            with where.exact():
                arrays = (
                    where.put(np.asarray(matrix)).to(getattr(torch, np.dtype(dtype).name))
                    for matrix in matrices
                )
                solved = by_torch(torch, *arrays)
            if isinstance(solved, tuple):
                return tuple(map(where.get, solved))
            return where.get(solved)

        few = (self.device or chosen()) == "auto" and np.size(matrices[0]) <= _FEW
        return on_device(work, "cpu" if few else self.device)

    # Computations on many rows.

    def map_rows(
        self,
        X: Rows,
        matrix: np.ndarray,
        *,
        mean: np.ndarray | None = None,
        unit: bool = False,
        shift: np.ndarray | None = None,
    ) -> np.ndarray:
        """The product of the rows of X (n, d) and a matrix (d, k), as float32 (n, k). Before it, `mean` (d,)
        is subtracted from the rows, and with `unit` they are scaled to length 1. After it, `shift` (k,) is
        added.
        """
        matrix = np.asarray(matrix, dtype=np.float32)
        out = np.empty((len(X), matrix.shape[1]), dtype=np.float32)

        def work(where: Device) -> np.ndarray:
            if isinstance(where, NumpyDevice):
                return _map_on_cpu(X, matrix, mean, unit, shift, out)
            basis, middle, last = (None if a is None else where.put(a) for a in (matrix, mean, shift))
            size = where.rows_at_once(where.block_rows, 4 * (3 * X.shape[1] + 2 * matrix.shape[1]))
            with where.exact():
                for block in row_blocks(len(X), size):
                    rows = where.block_on_device(X, block)
                    if middle is not None:
                        rows = (rows - middle).float()
                    rows = where.unit(rows) if unit else rows
                    mapped = rows @ basis
                    where.get(mapped if last is None else (mapped + last).float(), out[block])
            return out

        return on_device(work, self.device)

    def moments(self, X: Rows | Array, Y: Rows | Array | None = None) -> Moments:
        """The means and the sum of products of centred rows: Σ (x − x̄)(x − x̄)ᵀ, or Σ (x − x̄)(y − ȳ)ᵀ for
        paired rows. The products of a block are float32, and the sums over blocks are float64. The rows may
        already be on the device.
        """
        sides = (X,) if Y is None else (X, Y)
        # First subtract the mean of a sample, so that products in float32 keep their digits.
        step = max(1, len(X) // ROWS_PER_BLOCK)
        centres = [_on_host(side[::step]).mean(axis=0, dtype=np.float64) for side in sides]

        def work(where: Device) -> _MomentSums:
            size = where.rows_at_once(where.block_rows, 12 * sum(side.shape[1] for side in sides))
            blocks = list(row_blocks(len(X), size))
            make = lambda: _MomentSums(where.clone_for_thread(), [c.astype(np.float32) for c in centres])  # noqa: E731
            add = lambda sums, block: sums.add(sides, block)  # noqa: E731
            return in_threads(blocks, make, add, most=where.threads)

        return on_device(work, self.device).moments(len(X))

    def mean(self, X: Rows) -> np.ndarray:
        """The mean row (d,) as float64."""
        sums = self._of_blocks(X, lambda where, rows: where.total(rows))
        return np.sum(sums, axis=0) / len(X)

    def lengths(self, X: Rows, mean: np.ndarray) -> np.ndarray:
        """The Euclidean lengths (n,) of the rows of X − mean, as float32; 0 for a row too short to have a
        direction."""

        def work(where: Device, rows: Array) -> Array:
            rows = where.centred(rows, where.put(mean), "rows")
            return where.row_products(rows, rows)

        squares = np.concatenate(self._of_blocks(X, work))
        squares[squares < NO_LENGTH] = 0
        return np.sqrt(squares, out=squares)

    def _of_blocks(self, X: Rows, work: Callable[[Device, Array], Array]) -> list[np.ndarray]:
        def on(where: Device) -> list[np.ndarray]:
            width = X.shape[1]
            size = where.rows_at_once(where.block_rows, 16 * width)
            # Blocks are so small that they are still in the cache when NumPy uses them again.
            if isinstance(where, NumpyDevice):
                size = min(size, max(1, 4 * _IN_CACHE // width))
            blocks = list(row_blocks(len(X), size))

            def add(found: _Found, block: slice) -> None:
                with found.device.exact():
                    rows = found.device.block_on_device(X, block)
                    found.parts[block.start] = found.device.get(work(found.device, rows))

            parts = in_threads(
                blocks, lambda: _Found(where.clone_for_thread(), {}), add, most=where.threads
            ).parts
            return [parts[block.start] for block in blocks]

        return on_device(on, self.device)


@dataclass
class _Found:
    """The results of the blocks, by the number of each block's first row."""

    device: Device
    parts: dict[int, np.ndarray]

    def merge(self, other: _Found) -> None:
        self.parts |= other.parts


def _on_host(rows: Array) -> np.ndarray:
    return np.asarray(rows.cpu() if hasattr(rows, "cpu") else rows)


class _MomentSums:
    """The sums of centred rows and of their products, over all blocks that were added."""

    def __init__(self, device: Device, centres: list[np.ndarray]) -> None:
        self.device = device
        self.host = centres
        self.centres = [device.put(centre) for centre in centres]
        self.sums: list[Array] | None = None

    def add(self, sides: tuple[Rows, ...], block: slice) -> None:
        with self.device.exact():
            rows = [
                self.device.centred(self.device.block_on_device(side, block), centre, f"rows {number}")
                for number, (side, centre) in enumerate(zip(sides, self.centres, strict=True))
            ]
            sums = [self.device.double(one.sum(0)) for one in rows]
            sums.append(self.device.double(rows[0].T @ rows[-1]))
            if self.sums is None:
                self.sums = sums
            else:
                self.sums = [a + b for a, b in zip(self.sums, sums, strict=True)]

    def merge(self, other: _MomentSums) -> None:
        if other.sums is not None:
            self.sums = [a + b for a, b in zip(self.sums, other.sums, strict=True)]

    def moments(self, n: int) -> Moments:
        *sums, products = map(self.device.get, self.sums)
        products = products - np.outer(sums[0], sums[-1]) / n
        means = [centre.astype(np.float64) + total / n for centre, total in zip(self.host, sums, strict=True)]
        return Moments(n, (means[0], means[-1]), products)


def _nearest_rotation(xp: Any, A: Array, svd: Callable[[Array], Any]) -> tuple[Array, Array]:
    # The eigenvectors of AAᵀ take a third of the time of a singular value decomposition of A. But AAᵀ has the
    # squared condition number of A, so they are precise only if it is far below 1 / the precision of float64.
    wide = A if A.shape[0] <= A.shape[1] else A.T
    squares, vectors = xp.linalg.eigh(wide @ wide.T)
    if squares[0] > _CONDITIONED * squares[-1]:
        roots = xp.sqrt(squares)
        rotation = (vectors / roots) @ (vectors.T @ wide)
        return (rotation if wide is A else rotation.T), xp.flip(roots, (0,))
    left, values, right = svd(A)
    return left @ right, values


def _shrunk(xp: Any, A: Array, ridge: float, power: float) -> tuple[Array, Array]:
    wide = A.shape[0] <= A.shape[1]
    values, vectors = xp.linalg.eigh(A @ A.T if wide else A.T @ A)
    powers = (values.clip(0) + ridge) ** power
    # f(A Aᵀ) A = A f(AᵀA), so it suffices to decompose the smaller of A Aᵀ and AᵀA.
    return (vectors * powers @ (vectors.T @ A) if wide else A @ (vectors * powers) @ vectors.T), values


def _cholesky_on_cpu(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, float]:
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(A)
    if failed:
        return B, 0.0
    return lapack.dpotrs(factor, B)[0], lapack.dpocon(factor, np.linalg.norm(A, 1))[0]


def _cholesky_by_torch(torch: Any, A: Array, B: Array) -> tuple[Array, Array]:
    factor, failed = torch.linalg.cholesky_ex(A)
    solved = torch.cholesky_solve(B, factor)
    return solved, torch.where(failed == 0, 1 / torch.linalg.cond(A, 1), 0.0)


def thin_svd(product: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The thin SVD. It works even for matrices of low rank for which `np.linalg.svd` does not converge."""
    try:
        return np.linalg.svd(product, full_matrices=False)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd

        return svd(product, full_matrices=False, lapack_driver="gesvd")


def _map_on_cpu(
    X: Rows,
    matrix: np.ndarray,
    mean: np.ndarray | None,
    unit: bool,
    shift: np.ndarray | None,
    out: np.ndarray,
) -> np.ndarray:
    # One buffer holds the centred and scaled rows, and the product is written directly into the result. So
    # the result needs no further pass and no new memory, which would take as long as a pass. Blocks are
    # large, because each product waits for all its threads. If the result is narrow, as for a map, it is
    # scaled instead of the rows.
    width = X.shape[1]
    narrow = matrix.shape[1] < X.shape[1]
    if narrow and unit:
        size = max(1, _IN_CACHE // width)
    else:
        size = 2 * ROWS_PER_BLOCK
    buffer = np.empty((min(len(X), size), width), dtype=np.float32)
    for block in row_blocks(len(X), size):
        rows = np.asarray(X[block], dtype=np.float32)
        factors = None
        part = buffer[: len(rows)]
        if unit and not narrow:
            rows = unit_rows(rows, mean, part)
        elif mean is not None:
            rows = np.subtract(rows, mean, out=part, casting="same_kind")
        if unit and narrow:
            factors = inverse_lengths(rows)
        np.matmul(rows, matrix, out=out[block])
        if factors is not None:
            out[block] *= factors[:, None]
        if shift is not None:
            np.add(out[block], shift, out=out[block], casting="same_kind")
    return out
