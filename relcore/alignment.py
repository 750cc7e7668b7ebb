"""Display alignment: rotate, mirror and scale one picture of the rows onto another (Procrustes)."""

from __future__ import annotations

import numpy as np

from relcore.spaces import SpaceError


def align(coordinates: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The coordinates (n, c), moved, turned or mirrored, and uniformly scaled onto the reference (n, c), as float32.

    Orthogonal Procrustes: with both centred, R minimises ‖s·Y R − X‖ over orthogonal R and s > 0. Ratios of distances
    within the picture are unchanged. Rows that are NaN in either picture (not in the sample) are ignored.

    Raises
    ------
    SpaceError
        Different shapes.
    """
    from scipy.linalg import orthogonal_procrustes

    if coordinates.shape != reference.shape:
        raise SpaceError(
            f"align: expected pictures of the same rows in the same dimensions, got {reference.shape} and {coordinates.shape}; "
            "pair the spaces by id first, or turn align off"
        )
    known = np.isfinite(coordinates).all(axis=1) & np.isfinite(reference).all(axis=1)
    centre = reference[known].mean(axis=0, dtype=np.float64)
    moved = coordinates - coordinates[known].mean(axis=0, dtype=np.float64)
    spread = np.sum(moved[known] ** 2)
    if spread > 0:  # a picture that is a single point can only be moved
        rotation, scale = orthogonal_procrustes(moved[known], reference[known] - centre)
        moved = moved @ rotation * (scale / spread)
    return (moved + centre).astype(np.float32)
