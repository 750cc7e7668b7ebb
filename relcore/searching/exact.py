"""Exact search, over rows that are kept where they fit, else made block by block."""

from __future__ import annotations

import numpy as np

from relcore.metrics.search import apart, common_direction, nearest, nearest_with_products
from relcore.searching.unit_rows import UnitRows

KEPT_BYTES = 2**30  # of the rows that are searched; larger ones are made again for each block of queries


class ExactSearch:
    """The nearest of some rows, as `metrics.search.nearest_directions` finds them.

    Parameters
    ----------
    rows : UnitRows
    keep : bool
        Whether all rows may be kept in memory, where they take at most `KEPT_BYTES`.
    """

    approximate = False

    def __init__(self, rows: UnitRows, keep: bool = True) -> None:
        self._rows, self._common = rows, common_direction(rows.sample())
        self._kept = apart(rows.whole(), self._common) if keep and rows.nbytes <= KEPT_BYTES else None

    def nearest(self, queries: np.ndarray, k: int) -> np.ndarray:
        """(m, w) → numbers of the k nearest rows, the nearest first, (m, k) int64."""
        queries = apart(queries, self._common, queries=True)
        if self._kept is not None:
            return nearest(queries, self._kept, k)
        best, found = np.empty((len(queries), 0), dtype=np.float32), np.empty((len(queries), 0), dtype=np.int64)
        for block, rows in self._rows.blocks():
            products, nearer = nearest_with_products(queries, apart(rows, self._common), min(k, len(rows)))
            best, found = np.concatenate([best, products], axis=1), np.concatenate([found, nearer + block.start], axis=1)
            order = np.argsort(-best, axis=1, kind="stable")[:, :k]
            best, found = np.take_along_axis(best, order, 1), np.take_along_axis(found, order, 1)
        return found
