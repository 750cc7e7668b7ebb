"""Intrinsic dimension: TwoNN from the two nearest neighbours, and the participation ratio of the
variances.
"""

from __future__ import annotations

import numpy as np

from relcore.base.errors import SpaceError
from relcore.engine.nearest import nearest

_KEPT = 0.9  # of the ratios, the smallest ones, as Facco et al. advise: the largest are those of outliers


def two_nn(X: np.ndarray) -> float:
    """Intrinsic dimension of rows (n, d) by the ratio μ of the distances to their second and first
    neighbours.

    Where the density hardly changes over that distance, −log(1 − F(μ)) = D log μ: the slope through the
    origin over the smallest nine tenths of the ratios (Facco et al., Scientific Reports 2017). Duplicate rows
    count once. Above about 20 dimensions a few thousand rows are too few, and the estimate is too small.

    Raises
    ------
    SpaceError
        Fewer than ten rows that differ.
    """
    rows = np.unique(np.asarray(X, dtype=np.float32), axis=0)
    n = len(rows)
    if n < 10:
        raise SpaceError(f"intrinsic dimension: expected ten or more rows that differ, got {n}")
    distances = _two_nearest(rows)
    ratios = np.sort(distances[:, 1] / distances[:, 0])[: int(_KEPT * n)]
    log_ratios, log_rest = np.log(ratios), -np.log1p(-np.arange(1, len(ratios) + 1) / n)
    return float(log_ratios @ log_rest / (log_ratios @ log_ratios))


def participation_ratio(X: np.ndarray) -> float:
    """(Σ λ)² / Σ λ² of the variances λ along the principal axes of rows (n, d), 1 … d; d where all are
    equal.
    """
    variances = _variances(X)
    return float(variances.sum() ** 2 / (variances**2).sum())


def condition_number(X: np.ndarray) -> float:
    """Largest over smallest singular value of the centred rows (n, d), 1 or more; axes below float32
    precision are left out.
    """
    variances = _variances(X)
    real = variances > variances.max() * (max(X.shape) * np.finfo(np.float32).eps) ** 2
    return float(np.sqrt(variances.max() / variances[real].min()))


def _variances(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    variances = np.maximum(np.linalg.eigvalsh(X.T @ X / len(X)), 0)
    if not variances.max() > 0:
        raise SpaceError("expected rows that differ, got copies of a single row")
    return variances


def _two_nearest(rows: np.ndarray) -> np.ndarray:
    """Euclidean distances to the two nearest other rows, (n, 2), recomputed exactly for the rows found by
    inner products.
    """
    rows = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    scale = np.sqrt((rows**2).sum(axis=1).mean())
    rows = (rows / scale).astype(np.float32)
    # |x − y|² = |x|² − 2 (x·y − |y|² / 2): one column more makes the nearest row the one with the largest
    # inner product.
    base = np.column_stack([rows, -np.vecdot(rows, rows) / 2]).astype(np.float32)
    queries = np.column_stack([rows, np.ones(len(rows))]).astype(np.float32)
    # Itself, and one more, where rounding puts another before it.
    near = nearest(queries, base, 4, unit=False).rows
    exact = np.linalg.norm(rows[near].astype(np.float64) - rows[:, None].astype(np.float64), axis=2)
    exact[near == np.arange(len(rows))[:, None]] = np.inf
    return np.maximum(np.sort(exact, axis=1)[:, :2], np.finfo(np.float32).tiny)
