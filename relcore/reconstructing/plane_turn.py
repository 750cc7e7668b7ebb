"""Procrustes alignment of codes of several runs: of two planes to be drawn, and as one number for each pair of runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from relcore.charts.plane_turn import PlaneTurn
from relcore.spaces import SpaceError
from relcore.translation import Procrustes


def fit_turn(reference: np.ndarray, moving: np.ndarray) -> PlaneTurn:
    """The rotation or reflection, scale and shift that bring `moving` (n, 2) closest to `reference` (n, 2), by Procrustes.

    Raises
    ------
    SpaceError
        Other shapes, or points that all lie in one place.
    """
    reference, moving = (np.asarray(points, dtype=np.float64) for points in (reference, moving))
    if reference.shape != moving.shape or reference.ndim != 2 or reference.shape[1] != 2:
        raise SpaceError(f"expected two paired sets of points (n, 2), got shapes {reference.shape} and {moving.shape}")
    for points in (reference, moving):
        if np.allclose(points, points.mean(axis=0)):
            raise SpaceError("expected points that differ, got all of them in one place; train for more epochs")
    matrix = Procrustes().fit(moving, reference).matrix_
    scale = float(np.sqrt(abs(np.linalg.det(matrix))))
    return PlaneTurn(reference, moving, matrix / scale, scale)


def disparities(codes: Sequence[np.ndarray]) -> np.ndarray:
    """Procrustes disparity of the codes of each pair of runs, after the best rotation or reflection, scale and shift.

    Parameters
    ----------
    codes : S arrays (n, d)
        The same n items as each run encodes them; any d.

    Returns
    -------
    array (S, S) float64
        0 means equal up to a similarity transformation; 1 is as bad as the mean of all items for each of them. Symmetric, 0 on
        the diagonal, and equal to the disparity of `scipy.spatial.procrustes`.

    Raises
    ------
    SpaceError
        Codes of different shapes, or a run that gives every item the same code.
    """
    if len({np.shape(one) for one in codes}) != 1:
        raise SpaceError(f"expected paired codes of equal shape, got shapes {[np.shape(one) for one in codes]}")
    units = []
    for one in codes:
        centred = np.asarray(one, dtype=np.float64) - np.mean(one, axis=0, dtype=np.float64)
        length = np.linalg.norm(centred)
        if not length > 1e-9 * (1 + np.abs(one).max()):
            raise SpaceError("expected codes that differ, got all of them in one place; train for more epochs")
        units.append(centred / length)
    found = np.zeros((len(units), len(units)))
    for i, j in combinations(range(len(units)), 2):
        # Best overlap over all orthogonal maps: the nuclear norm (Schönemann 1966); the best scale squares it.
        overlap = np.linalg.svd(units[i].T @ units[j], compute_uv=False).sum()
        found[i, j] = found[j, i] = max(0.0, 1 - overlap**2)
    return found
