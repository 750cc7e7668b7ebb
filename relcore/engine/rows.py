"""Rows (n, d) from any source, block by block: arrays, files, shards, or made from other rows when used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self

import numpy as np

from relcore.base.magnitude import NO_LENGTH, centred, spread_and_offset

ROWS_PER_BLOCK = 4096  # 4,096 × 300 float32 is 5 MB: a block stays in cache between its passes
_IN_CACHE = 2**17  # numbers: half a megabyte
_ROUNDED = 2.0**-17  # of the spread: a shift of the mean by less changes no score by more than 1e-5


class Rows(Protocol):
    """What every computation takes as rows: a NumPy array, or what answers to slices and row numbers as an
    array does, with float32 rows that are read or made then.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray: ...


def row_blocks(n_rows: int, size: int = ROWS_PER_BLOCK) -> Iterator[slice]:
    """Slices that cut n rows into blocks of at most `size`."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def unit_rows(X: np.ndarray, mean: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
    """Rows of X, less the mean if one is given, scaled to length 1; a zero row stays zero. (n, d) → (n, d)
    float32, into `out` where it is given.
    """
    out = np.empty(X.shape, dtype=np.float32) if out is None else out
    for part in row_blocks(len(X), max(1, _IN_CACHE // max(X.shape[1], 1))):
        rows = X[part] if mean is not None else np.asarray(X[part], dtype=np.float32)
        rows = centred(rows, mean, out[part])
        np.multiply(rows, inverse_lengths(rows)[:, None], out=out[part])
    return out


def inverse_lengths(rows: np.ndarray) -> np.ndarray:
    """1 / the Euclidean length of each float32 row, (n,); 0 for a row too short to have a direction."""
    squares = np.vecdot(rows, rows)
    norms = np.sqrt(squares)
    return np.divide(1, norms, out=np.zeros_like(norms), where=squares >= NO_LENGTH)


def mean_row(X: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """The mean of rows, (n, d) → (d,), as float32 unless its rounding is a noticeable part of their spread;
    X is a sample where the `mean` of all rows is given.
    """
    # Summed in float64: float32 sums of many rows lose digits, which matters for shifted spaces.
    mean = X.mean(axis=0, dtype=np.float64) if mean is None else mean
    kept, (spread, _) = mean.astype(np.float32), spread_and_offset(X, mean)
    return mean if np.linalg.norm(kept - mean) > _ROUNDED * spread > 0 else kept


class DerivedRows:
    """Rows (n, w) that are made from the rows of a space when they are used; the matrix is never formed.

    Parameters
    ----------
    vectors : rows (N, d)
        A space, also one on disk.
    made : function (m, d) → (m, w)
        Brings rows of the space to the representation.
    numbers : array (n,), optional
        Rows of the space, in the order in which they count here; by default all.
    """

    vectors: Rows
    made: Callable[[np.ndarray], np.ndarray]
    numbers: np.ndarray | None
    shape: tuple[int, int]
    nbytes: int

    def __init__(
        self, vectors: Rows, made: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray | None = None
    ) -> None:
        self.vectors, self.made, self.numbers = vectors, made, numbers
        n = len(vectors) if numbers is None else len(numbers)
        self.shape = (n, made(np.asarray(vectors[:1])).shape[1])
        self.nbytes = 4 * self.shape[0] * self.shape[1]  # of all rows as float32

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """(m, w) float32; the rows of the space are taken as a view where they stand one after the other."""
        numbers = rows if self.numbers is None else self.numbers[rows]
        if isinstance(numbers, slice):
            return self.made(np.asarray(self.vectors[numbers]))
        if len(numbers) and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + len(numbers))):
            numbers = slice(int(numbers[0]), int(numbers[0]) + len(numbers))
        return self.made(np.asarray(self.vectors[numbers]))

    def of(self, rows: np.ndarray) -> Self:
        """Some of these rows, by their numbers, in this order."""
        return type(self)(self.vectors, self.made, rows if self.numbers is None else self.numbers[rows])


def directions(X: Rows, mean: np.ndarray | None = None) -> DerivedRows:
    """The rows of X, less a mean row if one is given, scaled to length 1 when they are used."""
    return DerivedRows(X, lambda rows: unit_rows(rows, mean))
