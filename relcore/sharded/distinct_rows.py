"""DistinctRows: the share of rows that repeat another row, of any number of rows, in bounded memory."""

from __future__ import annotations

import numpy as np

from relcore.block_scores.top_rows import scrambled
from relcore.similarity import row_blocks

MOST = 100_000
_ROWS = 2048


class DistinctRows:
    """Rows with the smallest hashes of their content, and how often each occurs.

    All copies of a row have one hash, so they are in this sample together, and their share in it is that of all rows: exact up
    to 100,000 distinct rows, an estimate from 100,000 of them above (the bottom-k sketch of Cohen and Kaplan 2007).

    Attributes
    ----------
    hashes, counts : arrays (m,) int64
        Ascending by hash.
    """

    def __init__(self, hashes: np.ndarray = (), counts: np.ndarray = (), most: int = MOST) -> None:
        self.hashes, self.counts, self.most = np.asarray(hashes, np.int64), np.asarray(counts, np.int64), most

    def add(self, rows: np.ndarray) -> None:
        """Rows (m, d) float32 that equal others only to the last bit."""
        for part in row_blocks(len(rows), _ROWS):
            self.merge(*np.unique(_hashes(rows[part]), return_counts=True))

    def merge(self, hashes: np.ndarray, counts: np.ndarray) -> None:
        """Those of other rows."""
        together, place = np.unique(np.concatenate([self.hashes, hashes]), return_inverse=True)
        sums = np.bincount(place, weights=np.concatenate([self.counts, counts]), minlength=len(together))
        self.hashes, self.counts = together[: self.most], sums[: self.most].astype(np.int64)

    @property
    def repeated(self) -> float:
        """Share of the rows that equal another one before them, 0 … 1."""
        return 1 - len(self.hashes) / self.counts.sum() if len(self.hashes) else 0.0


def _hashes(rows: np.ndarray) -> np.ndarray:
    """A number for each row that equal rows share, and others do not but once in 10¹⁸ pairs; int64 from 0."""
    bits = (np.ascontiguousarray(rows, dtype=np.float32) + np.float32(0)).view(np.uint32)  # −0 equals 0
    factors = np.random.default_rng(0).integers(1 << 63, size=bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    products = (bits * factors).sum(axis=1)  # uint64, which wraps around
    return (scrambled(products.view(np.int64), 0) >> np.uint64(1)).view(np.int64)
