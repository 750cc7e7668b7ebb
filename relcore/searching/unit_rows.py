"""UnitRows: some rows of one space in one representation, scaled to length 1 when they are used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from relcore.made_rows import MadeRows
from relcore.similarity import row_blocks, unit_rows

BASE_ROWS = 32_768  # rows that are made at a time: 39 MB at a width of 300
_SAMPLED_ROWS = 64


class UnitRows(MadeRows):
    """Rows (n, w) of length 1 that are never all in memory, unless somebody asks for all; parameters as of `MadeRows`."""

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """(m, w) float32."""
        return unit_rows(super().__getitem__(rows))

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices that cut the rows into blocks, each with its rows."""
        return ((block, self[block]) for block in row_blocks(len(self), BASE_ROWS))

    def whole(self) -> np.ndarray:
        """All rows, (n, w)."""
        found = np.empty(self.shape, dtype=np.float32)
        for block, rows in self.blocks():
            found[block] = rows
        return found

    def sample(self) -> np.ndarray:
        """Some of the rows, evenly spaced."""
        return self[:: max(1, len(self) // _SAMPLED_ROWS)]
