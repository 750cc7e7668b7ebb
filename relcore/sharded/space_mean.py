"""The mean row of a space from sums over its shards, with the rounding of `similarity.mean_row`."""

from __future__ import annotations

import numpy as np

_ROUNDED = 2.0**-17  # as there: of the spread


def mean_from_sums(total: np.ndarray, square: float, n: int) -> np.ndarray:
    """(d,) from Σx (d,), Σ‖x‖² and n: float32, unless its rounding is a noticeable part of the spread of the rows."""
    mean = total / n
    kept = mean.astype(np.float32)
    spread = np.sqrt(max(square / n - float(mean @ mean), 0.0))
    return mean if np.linalg.norm(kept - mean) > _ROUNDED * spread > 0 else kept
