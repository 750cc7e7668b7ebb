"""What the rows of a matrix product still lack, centre, length and place, in one pass over memory.

NumPy takes a pass for each of them, and three passes over 20,000 × 300 cost as much as two thirds of the product itself.
"""

from __future__ import annotations

import numba
import numpy as np

_MATRIX = numba.types.Array(numba.float32, 2, "C", readonly=True)
_VECTOR = numba.types.Array(numba.float32, 1, "C", readonly=True)


# Sums may be taken in another order, as vector instructions do; NaN stays NaN, which all of "fastmath" would not grant.
@numba.njit(
    numba.void(numba.float32[:, ::1], _VECTOR, _MATRIX, _VECTOR, numba.float32, _VECTOR),
    cache=True,
    nogil=True,
    fastmath={"reassoc", "contract"},
)
def finish_rows(
    found: np.ndarray, origin: np.ndarray, rows: np.ndarray, mean: np.ndarray, scale: float, shift: np.ndarray
) -> None:
    """In place, found[i] = scale · (found[i] − origin) / ‖rows[i] − mean‖ + shift; a row at the mean becomes the shift.

    Everything float32: found (n, d), origin and shift (d,), rows (n, m), which may be `found` itself, and mean (m,).
    """
    for i in range(len(found)):
        square = np.float32(0)
        for j in range(rows.shape[1]):
            difference = rows[i, j] - mean[j]
            square += difference * difference
        factor = scale / np.sqrt(square) if square > 0 else np.float32(0)
        for j in range(found.shape[1]):
            found[i, j] = (found[i, j] - origin[j]) * factor + shift[j]
