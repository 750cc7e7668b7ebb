"""The turn of one set of points in the plane over another, by Procrustes."""

from __future__ import annotations

import numpy as np

from relcore.figures.plane_turn import PlaneTurn
from relcore.spaces import SpaceError
from relcore.translation import Procrustes


def fit_turn(reference: np.ndarray, moving: np.ndarray) -> PlaneTurn:
    """The turn or reflection, scale and shift that bring `moving` (n, 2) closest to `reference` (n, 2), by Procrustes.

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
