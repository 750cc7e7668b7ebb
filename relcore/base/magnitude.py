"""Lengths, means and directions of rows whose squares float32 cannot hold, or that lie far from zero.

Squares of float32 numbers overflow from 1e19 and vanish below 1e-23. A row whose square does neither is used
as it is. Any other is first multiplied by a power of two, which changes no digit: so a space that is
multiplied by a power of two has the same scores to the last bit.
"""

from __future__ import annotations

import numpy as np

# Squared lengths between which products of two rows, and of three, stay within float32.
LEAST, MOST = 2.0**-60, 2.0**60
ORDINARY = 12  # exponents of numbers that are used as they are
_HIGHEST, _LOWEST = float(np.finfo(np.float32).max), 2.0**-136  # below the latter, three decimals are left
_SAMPLED_ROWS = 64
_ROWS_AT_ONCE = 4096


def within(squares: np.ndarray) -> np.ndarray:
    """Which squared lengths of float32 rows are safe, (n,) bool; 0, infinity and NaN are not."""
    return (squares > LEAST) & (squares < MOST)


def out_of_range(given: np.ndarray) -> str:
    """Why float32 cannot hold these numbers; "" where it can, or where they are not finite or all zero."""
    if given.dtype.kind != "f" or given.dtype.itemsize <= 4 or not given.size:
        return ""
    largest = float(max(given.max(), -given.min()))
    if _HIGHEST < largest < np.inf:
        expected = f"up to 3.4e38, as float32 holds them, got {largest:.2g}"
    elif 0 < largest < _LOWEST:
        expected = f"from 1e-38, as float32 holds them, got at most {largest:.2g}"
    else:
        return ""
    return f"expected numbers {expected}; divide all numbers by {largest:.0e}"


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
    """Euclidean lengths of the rows X − mean, (n,): float32, or float64 where float32 cannot hold them."""
    if len(X) > _ROWS_AT_ONCE:
        parts = range(0, len(X), _ROWS_AT_ONCE)
        return np.concatenate([lengths(X[start : start + _ROWS_AT_ONCE], mean) for start in parts])
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(centred(X, mean), axis=1)
        odd = np.flatnonzero(~within(norms * norms))
        if not len(odd):
            return norms
        rows, exponent = scaled_rows(X[odd], mean)
        norms = norms.astype(np.float64)
        norms[odd] = np.ldexp(np.linalg.norm(rows, axis=1).astype(np.float64), exponent)
        kept = norms.astype(np.float32)
    return kept if np.array_equal(kept, norms) else norms


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
