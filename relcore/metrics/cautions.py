"""Notes beside a score that something else than the likeness of two spaces decides: a few long rows, or lost digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.magnitude import lengths
from relcore.numbers import short
from relcore.similarity import mean_of, unit_rows
from relcore.spaces import LatentSpace, quote

CENTRE = "Turn centring on; for absolute rows, subtract the mean in float64 before you save them."
_MOST_ROWS = 10
_FAR = 2.0**16  # times the spread: 8 of float32's 24 binary digits are left for the differences
_NEAR = 2.0**-15  # distance of unit rows that float32, which rounds them by 2⁻²⁴, does not order reliably
_MANY = 0.1  # of the queries
_MOVED = 0.25  # of the other rows' spread


def decisive_rows(squares: Sequence[np.ndarray]) -> np.ndarray:
    """Rows, by squared lengths (n,) in either space, that make up most of ‖XᵀX‖² and stand apart, at most 10 and 2 % of all.

    They are at least twice as long as the next one: a distribution with many long rows has none.
    """
    found = []
    for one in squares:
        longest = np.argpartition(one, -most_decisive(len(one)) - 1)[-most_decisive(len(one)) - 1 :]
        found.append(standing_apart(longest, one[longest], float(np.sum(one**2))))
    return np.unique(np.concatenate(found))


def most_decisive(n: int) -> int:
    """How many of n rows may decide a score, and be named."""
    return min(_MOST_ROWS, max(1, n // 50))


def standing_apart(longest: np.ndarray, squares: np.ndarray, fourth: float) -> np.ndarray:
    """Those of the longest rows (m + 1,) of `decisive_rows`, by their squared lengths and the sum over all rows of the squares
    of these."""
    apart = squares >= 0.1 * squares.max()
    if apart.all() or squares[apart].min() < 4 * squares[~apart].max() or 2 * np.sum(squares[apart] ** 2) <= fourth:
        return np.empty(0, dtype=np.int64)
    return longest[apart]


def long_row(space: LatentSpace) -> str:
    """Says that one row moves the mean of a space, and so every centred score; "" where none does."""
    far = lengths(space.vectors, mean_of(space)).astype(np.float64)
    row, n = int(far.argmax()), len(far)
    if n < 3 or not far[row]:
        return ""
    moved = 1 / (n - 1)  # of the row's distance: the other rows' mean lies as far on the other side
    others = np.delete(far, row) / far[row]
    spread = np.sqrt(max(np.mean(others**2) - moved**2, 0))
    if moved <= _MOVED * spread:
        return ""
    return (
        f"One long row, {quote(space.ids[[row]])}, moves the mean of {quote([space.name])} by "
        f"{short(moved / max(spread, 1e-9), 1)} times the spread of the other rows, so it decides centred scores. Leave it out."
    )


def far_from_zero(side: str, spread: float, offset: float) -> str:
    """Says that the rows of a space lie too far from zero for what distinguishes them; "" where they do not."""
    if offset <= _FAR * spread:
        return ""
    return (
        f"The {side} space lies {offset / spread:,.0f} times its spread from zero, so float32 has lost digits of what "
        f"distinguishes its rows, for every score. {CENTRE}"
    )


def indistinct_neighbours(queries: np.ndarray, last: np.ndarray) -> str:
    """Says that the nearest neighbours of many queries (m, d) are too alike; `last` (m, d) are the last ones of their lists."""
    share = float(np.mean(lengths(unit_rows(queries) - unit_rows(last)) < _NEAR))
    if share <= _MANY:
        return ""
    return (
        f"Float32 hardly distinguishes the nearest neighbours of {100 * share:.0f} % of the queries: rows coincide, or differ "
        f"little compared with what they share. {CENTRE}"
    )
