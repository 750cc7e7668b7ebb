"""The best k rows for each query, with ties broken at random, in memory of the CPU or the device."""

from __future__ import annotations

import numpy as np

from relcore.engine.device import Array, Device, NumpyDevice, TorchDevice

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
    """The 64-bit number with the same bits as `number`, read with a sign."""
    number %= 1 << 64
    if number >= 1 << 63:
        return number - (1 << 64)
    return number


_MORE = 8  # number of further candidates per block, to usually include all rows that tie with the k-th one


class TopTensors:
    """The methods of `TopRows` for scores that are tensors. `fetched` copies the result to the host."""

    def __init__(self, n_queries: int, k: int, seed: int | None, device: TorchDevice) -> None:
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
        n_queries, k = self.values.shape
        top = TopRows(n_queries, k, self.seed)
        top.values = self.device.get(self.values)
        top.rows = self.device.get(self.rows)
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
    if isinstance(device, NumpyDevice):
        return TopRows(n_queries, k, seed, device)
    return TopTensors(n_queries, k, seed, device)
