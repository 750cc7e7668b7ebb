"""Where the rows of a pane are, as it travels: coordinates, or steps of the full range where there are very many rows."""

from __future__ import annotations

import numpy as np

EXACT = 60_000  # rows at most that travel as float32; more are drawn as density where many are in view
STEPS = 65_535  # of an axis: a place is at most half a step off, below half a pixel of a pane 600 pixels wide at a zoom of 100


def quantised(coordinates: np.ndarray) -> np.ndarray:
    """Each axis in steps of its own full range, (n, 2) uint16: 0 is its least value, 65,535 its greatest.

    At most 1/131,070 of the range is lost. An axis without extent lies in the middle.
    """
    low, high = coordinates.min(axis=0).astype(np.float64), coordinates.max(axis=0).astype(np.float64)
    steps = np.empty(coordinates.shape, dtype="<u2")
    for axis in range(coordinates.shape[1]):
        extent = high[axis] - low[axis]
        share = (coordinates[:, axis] - low[axis]) / extent if extent > 0 else np.full(len(coordinates), 0.5)
        steps[:, axis] = np.rint(share * STEPS)
    return steps


def is_quantised(coordinates: np.ndarray) -> bool:
    """Whether these travel in steps: many rows in the plane. A solid is turned in the browser, which needs its coordinates."""
    return len(coordinates) > EXACT and coordinates.shape[1] == 2


def need_finite(title: str, coordinates: np.ndarray) -> None:
    """Refuse what cannot be drawn.

    Raises
    ------
    ValueError
        Coordinates that are not finite.
    """
    if not np.isfinite(coordinates).all():
        bad = int((~np.isfinite(coordinates).all(axis=1)).sum())
        raise ValueError(
            f"pane {title!r}: expected finite coordinates, got {bad} rows with NaN or infinite values; leave these out"
        )


def packed_positions(coordinates: np.ndarray) -> bytes:
    """The positions in a pane, little-endian: float32 (n, 2 or 3), or uint16 steps (n, 2)."""
    if is_quantised(coordinates):
        return quantised(coordinates).tobytes()
    return np.ascontiguousarray(coordinates, dtype="<f4").tobytes()
