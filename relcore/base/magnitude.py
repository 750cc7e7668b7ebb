"""Which numbers spaces may have, so that float32 holds their squares and products; lengths of rows."""

from __future__ import annotations

import numpy as np

# Float32 holds the squares of such numbers, summed over all columns of thousands of rows. Spaces beyond are
# refused when they are loaded, and everything below trusts its rows.
SMALLEST, LARGEST = 1e-12, 1e12
NO_LENGTH = 2.0**-120  # of a square, below which its digits are lost: so short a row has no direction
LEAST, MOST = 2.0**-60, 2.0**60
ORDINARY = 12  # exponents of numbers that are used as they are
_SAMPLED_ROWS = 64
_ROWS_AT_ONCE = 4096


def within(squares: np.ndarray) -> np.ndarray:
    """Which squared lengths of float32 rows are safe, (n,) bool; 0, infinity and NaN are not."""
    return (squares > LEAST) & (squares < MOST)


def out_of_range(given: np.ndarray) -> str:
    """Why a space may not have these numbers, with the remedy; "" where it may, or where they are not finite
    or all zero.
    """
    if given.dtype in (np.float32, np.float64) and given.flags.c_contiguous:
        # One pass at the speed of memory proves most spaces: the largest number is between the root of the
        # mean square and that of their sum.
        with np.errstate(over="ignore"):
            total = float(np.vdot(given, given))
        if SMALLEST**2 * given.size < total < LARGEST**2:
            return ""
    largest = float(max(given.max(), -given.min())) if given.dtype.kind in "fiu" and given.size else 0.0
    return "" if not 0 < largest < np.inf else range_reason(largest)


def range_reason(largest: float) -> str:
    """Why the largest number of a space is refused; "" where it is not."""
    if SMALLEST <= largest <= LARGEST:
        return ""
    power = int(np.floor(np.log10(largest)))
    return (
        f"expected a largest number from {SMALLEST:.0e} to {LARGEST:.0e}, whose square float32 holds, got"
        f" {largest:.2g}; divide all numbers by 1e{power}, which changes no score"
    )


def length_reason(lengths: np.ndarray, width: int) -> str:
    """`out_of_range` of rows of which only the lengths (n,) are at hand."""
    longest = float(lengths.max())
    # The largest number is at most the longest row, and at least that by √d.
    return "" if longest == 0 else range_reason(longest) and range_reason(longest / np.sqrt(width))


def brought(X: np.ndarray) -> tuple[np.ndarray, int]:
    """X · 2⁻ᵉ and e; X itself and 0 where its largest number is between 2⁻¹³ and 2¹²."""
    exponent = exponent_of(X)
    return (X, 0) if abs(exponent) <= ORDINARY else (scaled(X, exponent), exponent)


def exponent_of(X: np.ndarray) -> int:
    """e, so that the largest number of X · 2⁻ᵉ is in ½ … 1; 0 where it is not finite."""
    largest = max(X.max(), -X.min())
    return int(np.frexp(largest)[1]) if np.isfinite(largest) else 0


def scaled(X: np.ndarray, exponent: int) -> np.ndarray:
    """X · 2⁻ᵉ; X itself where e is 0. What is too large for the type becomes infinite."""
    if not exponent:
        return X
    with np.errstate(over="ignore"):
        return np.ldexp(X, -exponent)


def centred(X: np.ndarray, mean: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
    """X − mean (n, d) as float32, into `out` where it is given; X as it is without a mean."""
    if mean is None:
        return X
    out = np.empty(X.shape, np.float32) if out is None else out
    return np.subtract(X, mean, out=out, casting="same_kind")


def sized(
    X: np.ndarray, mean: np.ndarray | None = None, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) and factors (n,) whose products are the directions of X − mean; a zero row has factor 0.

    The rows are X − mean, as float32 in `out` if given, but for those that float32 cannot square: they are
    scaled.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # such rows are known by their squares
        rows = centred(X, mean, out)
        squares = np.vecdot(rows, rows)
    odd = np.flatnonzero(~within(squares))
    if len(odd):
        rows = rows.copy() if mean is None else rows
        rows[odd] = scaled_rows(X[odd], mean)[0]
        squares[odd] = np.vecdot(rows[odd], rows[odd])
    norms = np.sqrt(squares)
    return rows, np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)


def lengths(X: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """Euclidean lengths of the rows X − mean, (n,) float32; 0 for a row too short to have a direction."""
    parts = []
    for start in range(0, len(X), _ROWS_AT_ONCE):
        rows = centred(np.asarray(X[start : start + _ROWS_AT_ONCE], dtype=np.float32), mean)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite and missing numbers are reported later
            parts.append(np.vecdot(rows, rows))
    squares = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    squares[squares < NO_LENGTH] = 0
    return np.sqrt(squares, out=squares)


def spread_and_offset(X: np.ndarray, mean: np.ndarray) -> tuple[float, float]:
    """The root mean square distance of a sample of rows from their mean, and the length of the mean."""
    sample = X[:: max(1, len(X) // _SAMPLED_ROWS)]
    mean = mean.astype(np.float64)
    return float(np.linalg.norm(sample - mean) / np.sqrt(len(sample))), float(np.linalg.norm(mean))


def scaled_rows(X: np.ndarray, mean: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """X − mean with the largest number of each row in ½ … 1, as float32, and the exponents of the rows.

    Float64 holds every difference of float32 numbers with digits to spare.
    """
    rows = X.astype(np.float64) if mean is None else X.astype(np.float64) - mean
    largest = np.abs(rows).max(axis=1)
    exponent = np.frexp(np.where(np.isfinite(largest), largest, 0))[1]
    return np.ldexp(rows, -exponent[:, None]).astype(np.float32), exponent
