"""The pass before the pass: what the mean and the size of a space need."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relcore.similarity import row_blocks

_ROWS = 2048  # a block that stays in cache for both of its readings


class ColumnSums:
    """Sums of the columns of one space, in float64, and its largest |x|.

    `add` blocks of rows (m, d) in any order, `merge` the sums of other rows; `to_arrays` and `from_arrays` carry them to
    another process.

    Attributes
    ----------
    n : int
    total : array (d,) float64
    largest : float
    """

    def __init__(self, width: int) -> None:
        self.n, self.total, self.largest = 0, np.zeros(width), 0.0

    def add(self, X: np.ndarray) -> None:
        for block in row_blocks(len(X), _ROWS):
            rows = np.asarray(X[block], dtype=np.float32)
            self.total += rows.sum(axis=0, dtype=np.float64)
            self.largest = max(self.largest, float(rows.max()), -float(rows.min()))
        self.n += len(X)

    def merge(self, other: ColumnSums) -> None:
        self.n, self.total = self.n + other.n, self.total + other.total
        self.largest = max(self.largest, other.largest)

    @property
    def mean(self) -> np.ndarray:
        """(d,) float64."""
        return self.total / self.n

    @property
    def exponent(self) -> int:
        """Of the power of two by which the space is divided before anything is squared; 0 for ordinary numbers."""
        exponent = int(np.frexp(self.largest if np.isfinite(self.largest) else 0)[1])
        return 0 if abs(exponent) <= 12 else exponent

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"n": np.array(self.n), "total": self.total, "largest": np.array(self.largest)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ColumnSums:
        found = cls(len(arrays["total"]))
        found.n, found.total, found.largest = int(arrays["n"]), arrays["total"], float(arrays["largest"])
        return found
