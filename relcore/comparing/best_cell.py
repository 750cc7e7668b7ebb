"""The chance level of a maximum: what the best of several cells reaches where rows are paired at random."""

from __future__ import annotations

import numpy as np

from relcore.metrics.calibration import Null

_PERMUTATIONS = 200
_MOST_BYTES = 256 * 2**20  # of cells that wait for the permuted rows
_AT_ONCE = 16  # permutations of the true rows in memory


class BestCellChance:
    """Collects the cells' rows, one array (m, d) at a time, and tells the distribution of the best mean cosine by chance.

    Each permutation of the true rows is applied to all cells alike, for cells of one grid resemble each other: the best of 50
    that agree is hardly better by chance than one of them, and permutations of their own would widen the band. The
    permutations are single cycles, so no row stays with its own partner.

    Parameters
    ----------
    true : array (m, d) float32
        Unit rows.
    """

    def __init__(self, true: np.ndarray, n_permutations: int = _PERMUTATIONS, random_state: int = 0) -> None:
        rng = np.random.default_rng(random_state)
        orders = [rng.permutation(len(true)) for _ in range(n_permutations)]
        self._partners = [order[np.argsort(np.roll(order, 1))] for order in orders]
        self._true = true
        self._waiting: list[np.ndarray] = []
        self._best = np.full(n_permutations, -np.inf)

    def add(self, found: np.ndarray) -> None:
        """One more cell: unit rows (m, d) float32."""
        self._waiting.append(found)
        if len(self._waiting) * found.nbytes >= _MOST_BYTES:
            self._compare()

    def null(self) -> Null | None:
        """Mean and middle 95 % of the best cell's mean cosine over the permutations; None without cells."""
        self._compare()
        if not np.isfinite(self._best).all():
            return None
        low, high = np.quantile(self._best, [0.025, 0.975])
        return Null(float(self._best.mean()), float(low), float(high), len(self._best))

    def _compare(self) -> None:
        if not self._waiting:
            return
        cells = np.stack(self._waiting).reshape(len(self._waiting), -1)
        self._waiting = []
        for start in range(0, len(self._partners), _AT_ONCE):
            permuted = self._true[np.stack(self._partners[start : start + _AT_ONCE])]
            cosines = permuted.reshape(len(permuted), -1) @ cells.T / len(self._true)
            self._best[start : start + _AT_ONCE] = np.maximum(self._best[start : start + _AT_ONCE], cosines.max(axis=1))
