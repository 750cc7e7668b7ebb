"""Rows: what a reader found in a file, before it is checked and becomes a LatentSpace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relcore.spaces import SpaceError

_ROW_BYTES = 128  # of an id, its place in the list and in the index; measured on three million rows


@dataclass(frozen=True)
class Rows:
    """Vectors (n, d) of a file, and its columns, n items each or None, as the file holds them; `row_values` checks them."""

    vectors: np.ndarray
    ids: Sequence[Any] | None = None
    labels: Sequence[Any] | None = None
    counts: Sequence[Any] | None = None


class GrowingMatrix:
    """A float32 matrix (n, d) that grows block by block and is never copied as a whole.

    Raises
    ------
    SpaceError
        More than `max_bytes`, before they are taken.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._values = np.empty((0, 0), dtype=np.float32)
        self._n = self.dimension = 0

    def __len__(self) -> int:
        return self._n

    def append(self, block: np.ndarray) -> None:
        """Add rows (m, d); every block has the d of the first."""
        self.dimension = self.dimension or block.shape[1]
        n = self._n + len(block)
        check_size(self._path, n, self.dimension, self._max_bytes)
        if n > len(self._values):
            # The system moves the pages of a large block of memory, so nothing is copied.
            self._values.resize((n + n // 8, self.dimension), refcheck=False)
        with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is reported as such later
            self._values[self._n : n] = block
        self._n = n

    def matrix(self) -> np.ndarray:
        """The rows so far, read-only, without a copy; nothing can be added any more."""
        self._values.resize((self._n, self.dimension), refcheck=False)
        self._values.flags.writeable = False
        return self._values


def check_size(path: Path, n: int, d: int, max_bytes: int) -> None:
    """Refuse vectors (n, d) without columns, and those that would take more than `max_bytes` with their ids, before reading.

    What counts is what is used: float32, in whatever form the file holds them, and a Python string for each row.
    """
    check_width(path, n, d)
    values, ids = 4 * n * d, _ROW_BYTES * n
    if values + ids > max_bytes:
        told = readable(values) if values > max_bytes else f"{readable(values)} and their ids {readable(ids)}"
        raise SpaceError(
            f"{path.name}: {n:,} × {d:,} values take {told}, more than max_bytes = {readable(max_bytes)}"
            "; pass limit=… to read fewer rows, or a larger max_bytes if you trust the file"
        )


def check_width(path: Path, n: int, d: int) -> None:
    """Refuse vectors (n, d) without columns."""
    if d < 1:
        raise SpaceError(
            f"{path.name}: expected at least one column of numbers, got shape ({n:,}, {d}); save the vectors again"
        )


def cut_short(path: Path) -> SpaceError:
    """The error of a file that is shorter than its header promises."""
    return SpaceError(f"{path.name}: expected all the values that its header promises, got the end of the file; copy it again")


def as_float32(array: np.ndarray, what: str) -> np.ndarray:
    """The numbers as read-only float32, copied only where they are something else."""
    if array.dtype.kind not in "fiu":
        raise SpaceError(f"{what}: expected real numbers, got {array.dtype}; save the vectors as float32")
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is reported as such later
        array = np.asarray(array, dtype=np.float32, order="C")
    array.flags.writeable = False
    return array


def rows_to_read(path: Path, n: int, limit: int | None) -> int:
    """The number of rows to read of the n in the file."""
    if n == 0:
        raise SpaceError(f"{path.name}: expected at least one row of numbers, got none; save the vectors again")
    return n if limit is None else min(n, limit)


def readable(n_bytes: int) -> str:
    """A size in words: ``'1.7 GB'``."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"
