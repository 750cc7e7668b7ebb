"""Where the rows of a .npy file are, for whoever reads them block by block."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relcore.sources.arrays import promised
from relcore.spaces import SpaceError


@dataclass(frozen=True)
class NpyLayout:
    """Where the rows (n, d) of a .npy file begin, and how each number is written."""

    n: int
    d: int
    dtype: np.dtype
    at: int


def npy_layout(path: Path) -> NpyLayout:
    """The layout of a .npy file of real numbers, row after row, that holds all that its header promises.

    Raises
    ------
    SpaceError
        Another file, a damaged one, columns that follow each other.
    """
    with path.open("rb") as stream:
        shape, fortran, dtype = promised(stream, path.stat().st_size, path.name, dimensions=2)
        if dtype.kind not in "fiu" or 0 in shape or (fortran and 1 not in shape):
            got = f"{dtype!s:.40} of shape {shape!s:.60}{' in Fortran order' * fortran}"
            raise SpaceError(
                f"{path.name}: expected rows of real numbers, one after the other, got {got}; save them as float32"
            )
        return NpyLayout(*shape, dtype, stream.tell())
