"""Matrices of rows (n, d) that are read block by block: arrays, files on disk, and rows that are computed
from other rows when they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self

import numpy as np

ROWS_PER_BLOCK = 4096  # 4,096 × 300 float32 is 5 MB, which stays in cache between passes
_IN_CACHE = 2**17  # number of values in a block of half a megabyte
_ROUNDED = 2.0**-17  # maximum error of the mean, as a share of the rows' spread; scores change by ≤ 1e-5
_SAMPLED_ROWS = 64  # number of rows from which the spread is estimated


class Rows(Protocol):
    """The type of rows (n, d) that every computation accepts: a NumPy array, or an object that yields float32
    rows when it is indexed by a slice or by row numbers.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray: ...


class SizedRows(Rows, Protocol):
    """Rows that know their number of bytes: arrays, `MappedRows` and `DerivedRows`."""

    @property
    def nbytes(self) -> int: ...


def row_blocks(n_rows: int, size: int = ROWS_PER_BLOCK) -> Iterator[slice]:
    """Slices that cut n rows into blocks of at most `size`."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def unit_rows(X: np.ndarray, mean: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
    """The rows of X (n, d), minus the mean if given, scaled to length 1, as float32. A zero row stays zero.
    If `out` is given, the result is written to it.
    """
    if out is None:
        out = np.empty(X.shape, np.float32)
    for part in row_blocks(len(X), max(1, _IN_CACHE // max(X.shape[1], 1))):
        if mean is not None:
            rows = X[part]
        else:
            rows = np.asarray(X[part], dtype=np.float32)
        rows = centred(rows, mean, out[part])
        np.multiply(rows, inverse_lengths(rows)[:, None], out=out[part])
    return out


def inverse_lengths(rows: np.ndarray) -> np.ndarray:
    """The inverse of the Euclidean length of each float32 row, (n,); 0 for a row too short to have a
    direction."""
    squares = np.vecdot(rows, rows)
    norms = np.sqrt(squares)
    return np.divide(1, norms, out=np.zeros_like(norms), where=squares >= NO_LENGTH)


def mean_row(X: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """The mean (d,) of the rows of X (n, d), as float32. It is float64 if rounding to float32 would be
    noticeable relative to the distances of the rows from the mean. A given `mean` is not computed again but
    only converted; X may then be a sample of the rows."""
    # The sum is float64, because a float32 sum of many rows loses digits if the mean is far from zero.
    if mean is None:
        mean = X.mean(axis=0, dtype=np.float64)
    kept = mean.astype(np.float32)
    sample = X[:: max(1, len(X) // _SAMPLED_ROWS)]
    spread = np.linalg.norm(sample - mean.astype(np.float64)) / np.sqrt(len(sample))
    if np.linalg.norm(kept - mean) > _ROUNDED * spread > 0:
        return mean
    return kept


class DerivedRows:
    """Rows (n, w) of a representation, computed from the rows of a space when they are used.

    Parameters
    ----------
    vectors : rows (N, d)
        The rows of a space, in memory or on disk.
    made : function (m, d) → (m, w)
        Computes the representation of rows of the space.
    numbers : array (n,), optional
        The numbers of the rows of the space that are used, in this order. By default all rows.
    """

    def __init__(
        self, vectors: Rows, made: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray | None = None
    ) -> None:
        self.vectors = vectors
        self.made = made
        self.numbers = numbers
        if numbers is None:
            n = len(vectors)
        else:
            n = len(numbers)
        self.shape: tuple[int, int] = (n, made(np.asarray(vectors[:1])).shape[1])
        self.nbytes: int = 4 * self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """The requested rows (m, w) as float32. If they are consecutive rows of the space, its vectors are
        not copied."""
        if self.numbers is None:
            numbers = rows
        else:
            numbers = self.numbers[rows]
        if isinstance(numbers, slice):
            n = 0
        else:
            n = len(numbers)
        if n and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + n)):
            numbers = slice(int(numbers[0]), int(numbers[0]) + n)
        return self.made(np.asarray(self.vectors[numbers]))

    def of(self, rows: np.ndarray) -> Self:
        """The rows with these numbers, in this order."""
        if self.numbers is not None:
            rows = self.numbers[rows]
        return type(self)(self.vectors, self.made, rows)


def derived_unit_rows(X: Rows, mean: np.ndarray | None = None) -> DerivedRows:
    """The rows of X, minus a mean row if given, scaled to length 1. They are computed when they are used."""
    return DerivedRows(X, lambda rows: unit_rows(rows, mean))


_TO_FLOAT32 = np.float32(2.0**112)
_SIGN_AND_DIGITS = np.array(0x8FFFE000, np.uint32).view(np.int32)[()]
_HIGHEST_HALF = 65504


def as_float32(rows: np.ndarray) -> np.ndarray:
    """Convert rows (m, d) to float32. Their type is float16, float32, float64, or uint16 that holds bfloat16.

    float32 is returned unchanged. float16 is converted by shifting bits, which gives the same numbers as
    NumPy's cast in a fifth of the time.
    """
    if rows.dtype == np.float32:
        return rows
    out = np.empty(rows.shape, np.float32)
    if rows.dtype == np.uint16:
        bits = out.view(np.uint32)
        bits[...] = rows
        np.left_shift(bits, 16, out=bits)
        return out
    if rows.dtype == np.float16 and rows.flags.c_contiguous:
        bits = out.view(np.int32)
        bits[...] = rows.view(np.int16)
        np.left_shift(bits, 13, out=bits)  # the wider integer repeats the sign bit, which stays in front
        np.bitwise_and(bits, _SIGN_AND_DIGITS, out=bits)
        np.multiply(out, _TO_FLOAT32, out=out)  # float32 adds 112 more to exponents than float16
        if not out.size or max(out.max(), -out.min()) <= _HIGHEST_HALF:
            return out  # no NaN and no infinity, which would now be larger numbers
    with np.errstate(over="ignore"):  # too large numbers become infinite and are reported later
        out[...] = rows
    return out


# The accepted range of numbers, and the lengths of rows.

# Float32 can hold the sum of squares of numbers in this range, over all columns and thousands of rows. A
# space with other numbers is refused when it is loaded, so no later code checks the range.
SMALLEST = 1e-12
LARGEST = 1e12
NOT_FINITE = "expected finite numbers, got NaN or infinity; drop these rows"
NO_LENGTH = 2.0**-120  # squared length; below it, digits are lost, so the row counts as having no direction


def out_of_range(X: np.ndarray, finite: bool = False) -> str:
    """The reason why these numbers are too large or too small, with the remedy. "" if they are neither, or
    all zero. NaN and infinity are a reason only if `finite`."""
    if X.dtype in (np.float32, np.float64) and X.flags.c_contiguous:
        # The root mean square is a lower limit of the largest number, and the root of the sum of squares is
        # an upper limit. So one fast pass decides for most spaces.
        with np.errstate(over="ignore"):
            total = float(np.vdot(X, X))
        if SMALLEST**2 * X.size < total < LARGEST**2:
            return ""
    largest = 0.0
    if X.dtype.kind in "fiu" and X.size:
        largest = max(float(X.max()), -float(X.min()))
    if finite and not np.isfinite(largest):
        return NOT_FINITE
    if not 0 < largest < np.inf:
        return ""
    return range_reason(largest)


def range_reason(largest: float) -> str:
    """Why a space with this largest number is refused; "" if it is accepted."""
    if SMALLEST <= largest <= LARGEST:
        return ""
    power = int(np.floor(np.log10(largest)))
    return (
        f"expected a largest number from {SMALLEST:.0e} to {LARGEST:.0e}, whose square float32 holds, got"
        f" {largest:.2g}; divide all numbers by 1e{power}, which changes no score"
    )


def length_reason(lengths: np.ndarray, width: int) -> str:
    """The same reason as `out_of_range` gives, found from the lengths (n,) of rows and from their number of
    columns."""
    longest = float(lengths.max())
    # The largest number is at most the largest length, and at least this length / √d.
    if longest == 0:
        return ""
    return range_reason(longest) and range_reason(longest / np.sqrt(width))


def centred(X: np.ndarray, mean: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
    """X − mean (n, d) as float32, written to `out` if given. Without a mean, X is returned unchanged."""
    if mean is None:
        return X
    if out is None:
        out = np.empty(X.shape, np.float32)
    return np.subtract(X, mean, out=out, casting="same_kind")


def lengths(X: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """The Euclidean lengths (n,) of the rows of X − mean, as float32; 0 for a row too short to have a
    direction."""
    squares = np.empty(len(X), np.float32)
    for block in row_blocks(len(X)):
        rows = centred(np.asarray(X[block], dtype=np.float32), mean)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite and missing numbers are reported later
            np.vecdot(rows, rows, out=squares[block])
    squares[squares < NO_LENGTH] = 0
    return np.sqrt(squares, out=squares)
