"""The nearest rows within one space, block by block: no copy of the space is made, whatever its size."""

from __future__ import annotations

import warnings

import numpy as np

from relcore.block_scores.device import device_of
from relcore.block_scores.full_precision import OUT_OF_MEMORY, is_out_of_memory
from relcore.block_scores.threads import in_threads
from relcore.block_scores.top_rows import TopRows
from relcore.metrics.neighbours import SEEDING_ROWS, order_seed, without_itself
from relcore.metrics.search import apart, common_direction
from relcore.similarity import ROWS_PER_BLOCK, row_blocks, unit_rows
from relcore.spaces import SpaceError

_SAMPLED_ROWS = 64
_PRODUCTS = 2**21  # of queries with the rows of a block: 8 MB


def own_neighbours(X: np.ndarray, mean: np.ndarray | None, queries: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """The k rows of X (n, d) nearest to each of the rows `queries` (m,) by cosine, the row itself left out: (m, k).

    By the cosine of X − mean, if a mean (d,) is given. Exact, as `metrics.neighbours.neighbours_within`, which takes two copies
    of X. Rows that are equally near are ordered at random, differently in different spaces.

    Raises
    ------
    SpaceError
        k above n − 1.
    """
    n, queries = len(X), np.asarray(queries)
    if not 1 <= k < n:
        raise SpaceError(f"k: expected 1 … {n - 1} neighbours among {n} rows, got {k}")
    if len(queries) > ROWS_PER_BLOCK:  # the products of more queries with a block would not stay in cache
        parts = [queries[part] for part in row_blocks(len(queries))]
        return np.concatenate([own_neighbours(X, mean, part, k, device) for part in parts])
    try:
        return _within(X, mean, queries, k, device)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        warnings.warn(OUT_OF_MEMORY, stacklevel=2)
    return _within(X, mean, queries, k, "cpu")  # outside of the except clause, whose traceback keeps the tensors alive


def _within(X: np.ndarray, mean: np.ndarray | None, queries: np.ndarray, k: int, device: str) -> np.ndarray:
    n, where = len(X), device_of(device)
    common = common_direction(unit_rows(X[:: max(1, n // _SAMPLED_ROWS)], mean))
    wanted = where.put(apart(unit_rows(X[queries], mean), common, queries=True))
    block_rows = min(ROWS_PER_BLOCK, max(512, _PRODUCTS // len(queries)))
    seed = order_seed(unit_rows(X[:SEEDING_ROWS], mean))

    def add(top: TopRows, block: slice) -> None:
        rows = apart(unit_rows(X[block], mean), common)
        with where.exact():
            top.add(where, wanted @ where.put(rows).T, np.arange(block.start, block.stop))

    first, *others = in_threads(
        list(row_blocks(n, block_rows)), lambda: TopRows(len(queries), k + 1, seed), add, lambda *_: None
    )
    for other in others:
        first.merge(other)
    return without_itself(queries, first.rows)
