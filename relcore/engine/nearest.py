"""Exact search of the nearest rows in one space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from relcore.base.environment import chosen
from relcore.base.errors import SpaceError
from relcore.base.rows import ROWS_PER_BLOCK, Rows, row_blocks
from relcore.engine.device import Array, Device, NumpyDevice, on_device
from relcore.engine.threads import in_threads
from relcore.engine.top_rows import TopRows, TopTensors, top_rows

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

        def make() -> _NearestRows:
            top = top_rows(where.clone_for_thread(), m, k, seed)
            return _NearestRows(top, base, wanted, middle, tied)

        return in_threads(list(row_blocks(n, size)), make, most=where.threads)

    top = on_device(search, device)
    return Nearest(top.values, top.rows)


@dataclass
class _NearestRows:
    """The rows of `base` that are nearest to each query, of all blocks that were added. `queries` and
    `common` are on the device."""

    top: TopRows | TopTensors
    base: Rows
    queries: Array
    common: Array | None
    tied: bool

    def add(self, block: slice) -> None:
        # Each block is computed and copied to the device once, for all queries.
        device = self.top.device
        numbers = device.put(np.arange(block.start, block.stop))
        with device.exact():
            rows = device.block_on_device(self.base, block)
            if self.common is not None:
                rows = device.centred(rows, self.common, "rows")
            for part in row_blocks(len(self.queries)):
                products = device.product(self.queries[part], rows.T, "products")
                if self.common is not None:
                    products -= device.row_products(rows, rows) / 2
                if self.tied:
                    products = on_grid(products)
                self.top.add(products, numbers, part)

    def merge(self, other: _NearestRows) -> None:
        self.top.merge(other.top)  # type: ignore[arg-type]  # both lie on one kind of device

    def result(self) -> TopRows:
        return self.top.fetched()


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
    if values is None:
        values = lists
    return values[~itself].reshape(len(lists), -1)


def need_k(k: int, n: int, most: int, of: str = "") -> None:
    """Raise a SpaceError unless k is in 1 … `most`. The message names the number of rows n and, by `of`, the
    spaces.
    """
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 1 <= k <= most:
        raise SpaceError(
            f"k: expected 1 … {most} for {n} rows{of}, got {k!r:.40}; choose fewer neighbours or more rows"
        )


def largest_k(n: int, convention: str) -> int:
    """The largest number of neighbours among n rows. By the convention "mutual", no row is its own
    neighbour."""
    if convention == "mutual":
        return n - 1
    return n


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
    return bool((np.count_nonzero(sample @ sample.T > 1 - _GRID) - m) * n > k * m * (m - 1))


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
