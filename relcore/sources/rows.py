"""Rows: what a reader found in a file, before it is checked and becomes a LatentSpace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relcore.spaces import SpaceError


@dataclass(frozen=True)
class Rows:
    """Vectors (n, d) of a file, and its columns, n items each or None."""

    vectors: np.ndarray
    ids: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    counts: np.ndarray | None = None


class GrowingMatrix:
    """A float32 matrix (n, d) that grows block by block and is never copied as a whole.

    Raises
    ------
    SpaceError
        More than `max_bytes`, before they are taken.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._bytes = bytearray()
        self.dimension = 0

    def __len__(self) -> int:
        return len(self._bytes) // (4 * self.dimension) if self.dimension else 0

    def append(self, block: np.ndarray) -> None:
        """Add rows (m, d); every block has the d of the first."""
        self.dimension = self.dimension or block.shape[1]
        check_size(self._path, len(self) + len(block), self.dimension, self._max_bytes)
        with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is reported as such later
            self._bytes += memoryview(np.ascontiguousarray(block, dtype=np.float32)).cast("B")

    def matrix(self) -> np.ndarray:
        """The rows so far, read-only, without a copy."""
        vectors = np.frombuffer(self._bytes, dtype=np.float32).reshape(len(self), self.dimension)
        vectors.flags.writeable = False
        return vectors


def check_size(path: Path, n: int, d: int, max_bytes: int, itemsize: int = 4) -> None:
    """Refuse vectors (n, d) that would take more than `max_bytes`, before they are read."""
    if n * d * itemsize > max_bytes:
        raise SpaceError(
            f"{path.name}: {n:,} × {d:,} values take {readable(n * d * itemsize)}, more than max_bytes = {readable(max_bytes)}"
            "; pass limit=… to read fewer rows, or a larger max_bytes if you trust the file"
        )


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
        raise SpaceError(f"{path.name}: expected at least one row of numbers, got none")
    return n if limit is None else min(n, limit)


def readable(n_bytes: int) -> str:
    """A size in words: ``'1.7 GB'``."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"
