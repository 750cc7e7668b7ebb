"""BlockLabels: which rows have a class, known for the rows of the block that is being read."""

from __future__ import annotations

import numpy as np


class BlockLabels:
    """In place of `RowNumbers.labelled`, whose n bits no worker needs.

    Parameters
    ----------
    side : int
        The space that has the labels, 0 or 1.
    whole : bool
        Whether every row has one.
    """

    def __init__(self, side: int, whole: bool) -> None:
        self.side, self.whole = side, whole
        self._rows, self._labelled = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)

    def all(self) -> bool:
        return self.whole

    def take_block(self, rows: np.ndarray, labels: list[str]) -> None:
        """The numbers (m,), ascending, and the labels of the rows that are added next."""
        self._rows, self._labelled = rows, np.array([label != "" for label in labels], dtype=bool)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self._labelled[np.searchsorted(self._rows, rows)]
