"""A sheet: small pictures of many rows in one file, so that a hover shows one at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

CRISP = 32  # pixels per side up to which pictures are kept unchanged and drawn as squares


@dataclass(frozen=True, eq=False)
class Sheet:
    """Pictures in square cells of `side` pixels, `columns` per line; row i is in cell `cells[i]`."""

    content: bytes
    mimetype: str
    side: int
    columns: int
    lines: int
    cells: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def crisp(self) -> bool:
        return self.side <= CRISP
