"""First pairs without seeds: rows whose similarities within their own space are alike (Artetxe et al. 2018, § 3.2)."""

from __future__ import annotations

import numpy as np

from relcore.anchors.csls import match_csls
from relcore.similarity import mean_row, unit_rows
from relcore.spaces import SpaceError

MOST_ROWS = 4000  # their similarity matrix takes 64 MB
FIRST_KEEP = 0.1


def pairs_without_seeds(source: np.ndarray, target: np.ndarray, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mutual pairs (m,), (m,) of unit rows (n, d_source) and (n, d_target), few of them correct, but more than by chance.

    How similar a row is to all others of its space does not depend on the axes, and sorted not on their order either. Of
    the similarity matrix it is the square root that is sorted: so its rows have the similarities themselves as products.

    Raises
    ------
    SpaceError
        More than 4,000 rows: this is for the most frequent ones.
    """
    if max(len(source), len(target)) > MOST_ROWS:
        raise SpaceError(
            f"no seeds: expected at most {MOST_ROWS:,} rows to begin with, got {max(len(source), len(target)):,}; give seeds, "
            "or spaces with counts, so that the most frequent rows are known"
        )
    n = min(len(source), len(target))
    return match_csls(_profile(source, n), _profile(target, n), k).pairs


def _profile(X: np.ndarray, n: int) -> np.ndarray:
    """Sorted rows of the root of X Xᵀ, their values at n even places, centred and of length 1: (rows, n)."""
    left, singular_values, _ = np.linalg.svd(X, full_matrices=False)
    root = (left * singular_values) @ left.T
    root.sort(axis=1)
    if root.shape[1] > n:
        root = root[:, np.linspace(0, root.shape[1] - 1, n).round().astype(int)]
    root = unit_rows(root)
    return unit_rows(root, mean_row(root))
