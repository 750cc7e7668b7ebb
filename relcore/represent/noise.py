"""Noise of several kinds, by which one space would differ from a copy of it."""

from __future__ import annotations

import numpy as np

from relcore.base.rows import centred, lengths, mean_row

EQUAL = "of one size"
BY_LENGTH = "by length"
ROUNDED = "rounded"


def noisy(rows: np.ndarray, kind: str, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows (n, d) with normal noise of these sizes (n, 1). If the kind is rounding, the rows rounded to
    steps of these sizes."""
    if kind == ROUNDED:
        return np.rint(rows / sizes) * sizes
    moved = rng.standard_normal(rows.shape, dtype=np.float32)
    moved *= sizes
    moved += rows
    return moved


def noise_sizes(X: np.ndarray, kind: str) -> np.ndarray:
    """The size (n, 1) of the noise of each row at level 1. Depending on the kind, it is the standard
    deviation of all centred numbers, the root mean square of the row, or the largest absolute number in the
    row."""
    if kind == EQUAL:
        return np.full((len(X), 1), centred(X, mean_row(X)).std(dtype=np.float64), dtype=np.float32)
    if kind == ROUNDED:
        sizes = np.abs(X).max(axis=1)
    else:
        sizes = lengths(X) / np.sqrt(X.shape[1])
    return np.maximum(sizes, np.finfo(np.float32).tiny)[:, None].astype(np.float32)
