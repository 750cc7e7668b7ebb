"""Which numbers spaces may have, so that float32 holds their squares and products; lengths of rows."""

from __future__ import annotations

import numpy as np

# Float32 holds the squares of such numbers, summed over all columns of thousands of rows. Spaces beyond are
# refused when they are loaded, and everything below trusts its rows.
SMALLEST, LARGEST = 1e-12, 1e12
NO_LENGTH = 2.0**-120  # of a square, below which its digits are lost: so short a row has no direction
_SAMPLED_ROWS = 64
_ROWS_AT_ONCE = 4096


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


def centred(X: np.ndarray, mean: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
    """X − mean (n, d) as float32, into `out` where it is given; X as it is without a mean."""
    if mean is None:
        return X
    out = np.empty(X.shape, np.float32) if out is None else out
    return np.subtract(X, mean, out=out, casting="same_kind")


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
