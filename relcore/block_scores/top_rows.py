"""The rows nearest to some queries, kept up to date from block to block."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relcore.block_scores.device import Array, NumpyDevice, TorchDevice


class TopRows:
    """The k rows with the largest scores for each of q queries, nearest first; equal scores in one fixed order.

    Parameters
    ----------
    n_queries, k : int
    seed : int, optional
        Orders rows with equal scores at random; without it the lower row number comes first. Two spaces with many equal rows
        would otherwise agree because of the order of their rows.

    Attributes
    ----------
    values : array (q, k) float32, −∞ where fewer rows have been seen
    rows : array (q, k) int64, −1 there
    """

    def __init__(self, n_queries: int, k: int, seed: int | None = None) -> None:
        self.seed = seed
        self.values = np.full((n_queries, k), -np.inf, dtype=np.float32)
        self.rows = np.full((n_queries, k), -1, dtype=np.int64)

    def add(self, device: NumpyDevice | TorchDevice, scores: Array, rows: np.ndarray) -> None:
        """The scores (q, m) of further rows, whose numbers are `rows` (m,)."""
        which, columns, values = device.candidates(scores, self.values[:, -1], self.values.shape[1])
        self._enter(which, values, rows[columns])

    def merge(self, other: TopRows) -> None:
        """Those of other rows for the same queries."""
        which = np.repeat(np.arange(len(other.rows)), other.rows.shape[1])
        self._enter(which, other.values.ravel(), other.rows.ravel())

    def without(self, gone: np.ndarray, queries: np.ndarray, n_fewer: int) -> TopRows:
        """For these queries (places) the k − n_fewer nearest rows that are not `gone`, which are at most n_fewer."""
        found = TopRows(len(queries), self.rows.shape[1] - n_fewer, self.seed)
        staying = np.argsort(np.isin(self.rows[queries], gone), axis=1, kind="stable")[:, : found.rows.shape[1]]
        found.rows, found.values = (np.take_along_axis(one[queries], staying, axis=1) for one in (self.rows, self.values))
        return found

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"values": self.values, "rows": self.rows}

    def take(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Back from `to_arrays`."""
        self.values, self.rows = arrays["values"].astype(np.float32), arrays["rows"].astype(np.int64)

    def _enter(self, which: np.ndarray, values: np.ndarray, rows: np.ndarray) -> None:
        """Candidates for the queries `which`, ascending."""
        if not len(which):
            return
        k, changed = self.values.shape[1], which[np.flatnonzero(np.diff(which, prepend=-1))]
        which = np.concatenate([which, np.repeat(changed, k)])
        values = np.concatenate([values, self.values[changed].ravel()])
        rows = np.concatenate([rows, self.rows[changed].ravel()])
        order = np.lexsort((rows if self.seed is None else scrambled(rows, self.seed), -values, which))
        which = which[order]
        first = np.searchsorted(which, changed)  # each query has k candidates or more
        best = order[first[:, None] + np.arange(k)]
        self.values[changed], self.rows[changed] = values[best], rows[best]


def scrambled(rows: np.ndarray, seed: int) -> np.ndarray:
    """A number for each row number that looks random and differs from seed to seed (SplitMix64: Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        mixed = rows.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
