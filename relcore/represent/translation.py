"""Direct maps from one absolute space to another, fitted on paired rows: the baselines of every relative
method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.magnitude import brought, scaled, spread_and_offset
from relcore.represent.similarity import Estimator, matrix, need_finite

_NEAR_ZERO = 64  # times the spread of the rows


class _Translation(Estimator):
    """Fitted state of every map: Y ≈ (X − source_mean_) · matrix_ + target_mean_."""

    _centred: ClassVar[bool] = True
    _scales: ClassVar[bool] = True  # whether the map has a scale of its own
    _needs_target = True

    def fit(self, source: np.ndarray, target: np.ndarray) -> _Translation:
        """Learn the map from paired rows, source (k, d_source) and target (k, d_target).

        Raises
        ------
        SpaceError
            Row counts that differ, no rows, or numbers that are not finite.
        """
        source, target = matrix(source, "source", np.float64), matrix(target, "target", np.float64)
        if len(source) != len(target):
            raise SpaceError(
                f"expected the same number of paired rows, 1 or more, got {len(source)} and {len(target)}"
            )
        means = source.mean(axis=0), target.mean(axis=0)
        need_finite(means[0], "source")
        need_finite(means[1], "target")
        self.source_mean_, self.target_mean_ = means if self._centred else map(np.zeros_like, means)
        of_source, of_target = brought(source)[1], brought(target)[1]
        if not self._scales:  # then one power of two is taken out of both spaces
            of_source = of_target
        self._exponents = of_source, of_target
        moved = scaled(source - self.source_mean_, of_source), scaled(target - self.target_mean_, of_target)
        self.matrix_ = scaled(self._solve(*moved), of_source - of_target)
        spread, offset = spread_and_offset(source, means[0])
        self._is_far = offset > _NEAR_ZERO * spread
        self.n_features_in_ = source.shape[1]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Rows of the source space in the target space, (n, d_source) → (n, d_target) float32."""
        of_source, of_target = self._exponents
        X, mean = scaled(self._check_width(X), of_source), scaled(self.source_mean_, of_source)
        matrix, shift = scaled(self.matrix_, of_target - of_source), scaled(self.target_mean_, of_target)
        if self._is_far:  # a product of rows that are not centred would lose their differences
            found = ((X - mean) @ matrix + shift).astype(np.float32)
        else:
            found = X @ matrix.astype(np.float32) + (shift - mean @ matrix).astype(np.float32)
        found = scaled(found, -of_target)
        need_finite(found[:, 0])
        return found


@dataclass(eq=False)
class Procrustes(_Translation):
    """The rotation or reflection, and one scale, that brings paired rows closest (Schönemann 1966).

    Between spaces of different widths the matrix (d_source, d_target) has orthonormal rows or columns,
    whichever are fewer.

    Parameters
    ----------
    scale : bool
        Also fit one factor for all axes.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import Procrustes
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> quarter_turn = np.array([[0, 1], [-1, 0]])
    >>> procrustes = Procrustes().fit(X[:20], 3 * X[:20] @ quarter_turn)
    >>> (procrustes.matrix_.round(6) + 0).tolist()
    [[0.0, 3.0], [-3.0, 0.0]]
    """

    scale: bool = True

    @property
    def _scales(self) -> bool:
        return self.scale

    def _solve(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        left, singular_values, right = np.linalg.svd(source.T @ target, full_matrices=False)
        rotation = left @ right
        spread = np.linalg.norm(source @ rotation) ** 2
        return rotation * (singular_values.sum() / spread) if self.scale and spread else rotation


@dataclass(eq=False)
class LeastSquares(_Translation):
    """The linear map with the smallest squared error over the paired rows, of smallest norm where there are
    several.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.represent.translation import LeastSquares
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> mapping = LeastSquares().fit(X, X[:, :2] + X[:, 1:])
    >>> mapping.transform([[1, 2, 3]]).round(3).tolist()
    [[3.0, 5.0]]
    """

    _centred = False

    def _solve(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(source, target, rcond=None)[0]


@dataclass(eq=False)
class Affine(LeastSquares):
    """Least squares with an offset: a linear map between the centred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.represent.translation import Affine
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> mapping = Affine().fit(X, X[:, :2] + 10)
    >>> mapping.transform([[1, 2, 3]]).round(3).tolist()
    [[11.0, 12.0]]
    """

    _centred = True


# Display alignment: rotate, mirror and scale one picture of the rows onto another (Procrustes).


def align(coordinates: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The coordinates (n, c), moved, turned or mirrored, and uniformly scaled onto the reference (n, c), as
    float32.

    Orthogonal Procrustes: with both centred, R minimises ‖s·Y R − X‖ over orthogonal R and s > 0. Ratios of
    distances within the picture are unchanged. Rows that are NaN in either picture (not in the sample) are
    ignored.

    Raises
    ------
    SpaceError
        Different shapes.
    """
    from scipy.linalg import orthogonal_procrustes

    if coordinates.shape != reference.shape:
        raise SpaceError(
            f"align: expected pictures of the same rows in the same dimensions, got {reference.shape} and"
            f" {coordinates.shape}; pair the spaces by id first, or turn align off"
        )
    known = np.isfinite(coordinates).all(axis=1) & np.isfinite(reference).all(axis=1)
    centre = reference[known].mean(axis=0, dtype=np.float64)
    moved = coordinates - coordinates[known].mean(axis=0, dtype=np.float64)
    spread = np.sum(moved[known] ** 2)
    if spread > 0:  # a picture that is a single point can only be moved
        rotation, scale = orthogonal_procrustes(moved[known], reference[known] - centre)
        moved = moved @ rotation * (scale / spread)
    return (moved + centre).astype(np.float32)
