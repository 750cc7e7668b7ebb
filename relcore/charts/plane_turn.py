"""Plane turn: two sets of points in the plane, one of them rotated or mirrored, scaled and shifted onto
the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.numbers import short


@dataclass(frozen=True)
class PlaneTurn:
    """What `fit_turn` found: ``moving`` comes closest to ``reference`` at time 1; rows are paired.

    Attributes
    ----------
    reference, moving : float64 arrays (n, 2)
    rotation : array (2, 2)
        Orthogonal, for row vectors.
    scale : float
    """

    reference: np.ndarray
    moving: np.ndarray
    rotation: np.ndarray
    scale: float

    @property
    def mirrored(self) -> bool:
        """Whether it takes a reflection, which no turn within the plane replaces."""
        return bool(np.linalg.det(self.rotation) < 0)

    @property
    def degrees(self) -> float:
        """The angle, −180 … 180, counter-clockwise; of a reflection that of its axis, 0 … 180."""
        angle = np.degrees(np.arctan2(self.rotation[0, 1], self.rotation[0, 0]))
        return float(angle / 2 % 180 if self.mirrored else angle)

    def at(self, time: float) -> np.ndarray:
        """The moving points at a time, (n, 2): at 0 as they are, at 1 over the reference.

        A turn keeps its speed: its matrix is exp(time · log(rotation)). A reflection flattens the points onto
        its axis and unfolds them on the other side. Scale and shift are linear in time.
        """
        start, end = self.moving.mean(axis=0), self.reference.mean(axis=0)
        stretch = 1 - time + time * self.scale
        return stretch * (self.moving - start) @ self._turned(time) + (1 - time) * start + time * end

    def disparity(self, time: float = 1) -> float:
        """Sum of squared distances of the pairs over the spread of the reference; 0 is equal, 1 as far as its
        middle is.

        At 1 it is the disparity of `scipy.spatial.procrustes`.
        """
        spread = np.square(self.reference - self.reference.mean(axis=0)).sum()
        return float(np.square(self.reference - self.at(time)).sum() / spread)

    def describe(self) -> str:
        """``"turned by 41°, scaled by 1.20"``, ``"mirrored at an axis of 60°, scaled by .90"``."""
        how = (
            f"mirrored at an axis of {self.degrees:.0f}°"
            if self.mirrored
            else f"turned by {self.degrees:z.0f}°"
        )
        return f"{how}, scaled by {short(self.scale, 2)}"

    def _turned(self, time: float) -> np.ndarray:
        if self.mirrored:
            _, axes = np.linalg.eigh(self.rotation)  # eigenvalues −1 and 1, in this order
            return axes @ np.diag([1 - 2 * time, 1]) @ axes.T
        angle = time * np.arctan2(self.rotation[0, 1], self.rotation[0, 0])
        return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
