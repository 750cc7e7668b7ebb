"""Centre, measure and scale rows in one pass over memory, before a matrix product or after it.

NumPy needs a pass for each; three passes over 20,000 × 300 take two thirds of the time of the product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from relcore.magnitude import LEAST, MOST

PAYS = 1e9  # multiplications of a product; for one that takes less than 20 ms, loading the machine code is not worth it
_LEAST, _MOST = np.float32(LEAST), np.float32(MOST)


def finish_rows(
    found: np.ndarray, origin: np.ndarray, rows: np.ndarray, mean: np.ndarray, scale: float, shift: np.ndarray
) -> None:
    """In place, found[i] = scale · (found[i] − origin) / ‖rows[i] − mean‖ + shift; a row at the mean becomes the shift.

    A row whose squared length float32 cannot hold (`magnitude.within`) becomes NaN.

    Everything float32 in C order: found (n, d), origin and shift (d,), rows (n, m), which may be `found` itself, mean (m,).
    """
    _compiled("finish_rows")(found, origin, rows, mean, scale, shift)


def unit_rows(rows: np.ndarray, mean: np.ndarray, out: np.ndarray) -> None:
    """out[i] = (rows[i] − mean) / ‖rows[i] − mean‖; a row at the mean becomes 0.

    A row whose squared length float32 cannot hold (`magnitude.within`) becomes NaN. All float32 in C order: rows and out
    (n, d), mean (d,).
    """
    _compiled("unit_rows")(rows, mean, out)


@cache
def _compiled(name: str) -> Callable[..., None]:
    """The loop of this name as machine code, kept on disk from the first time on."""
    from numba import float32, njit, types, void

    matrix, vector = (types.Array(float32, ndim, "C", readonly=True) for ndim in (2, 1))
    into = float32[:, ::1]
    loop, signature = {
        "finish_rows": (_finish_rows, void(into, vector, matrix, vector, float32, vector)),
        "unit_rows": (_unit_rows, void(matrix, vector, into)),
    }[name]
    # Sums may be taken in another order, as vector instructions do; NaN stays NaN, which all of "fastmath" would not grant.
    return njit(signature, cache=True, nogil=True, fastmath={"reassoc", "contract"})(loop)


def _finish_rows(found, origin, rows, mean, scale, shift):
    for i in range(len(found)):
        square = np.float32(0)
        for j in range(rows.shape[1]):
            difference = rows[i, j] - mean[j]
            square += difference * difference
        factor = np.float32(0)
        if _LEAST < square < _MOST:
            factor = scale / np.sqrt(square)
        elif square >= 0:
            for j in range(rows.shape[1]):
                if rows[i, j] != mean[j]:
                    factor = np.float32(np.nan)
        for j in range(found.shape[1]):
            found[i, j] = (found[i, j] - origin[j]) * factor + shift[j]


def _unit_rows(rows, mean, out):
    for i in range(len(rows)):
        square = np.float32(0)
        for j in range(rows.shape[1]):
            difference = rows[i, j] - mean[j]
            out[i, j] = difference
            square += difference * difference
        factor = np.float32(0)
        if _LEAST < square < _MOST:
            factor = np.float32(1) / np.sqrt(square)
        else:
            for j in range(rows.shape[1]):
                if rows[i, j] != mean[j]:
                    factor = np.float32(np.nan)
        for j in range(rows.shape[1]):
            out[i, j] *= factor
