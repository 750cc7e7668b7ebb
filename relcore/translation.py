"""Direct maps from one absolute space to another, fitted on paired rows: the baselines of every relative method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.spaces import SpaceError


class _Translation:
    """Fitted state of every map: Y ≈ (X − source_mean_) · matrix_ + target_mean_."""

    _centred: ClassVar[bool] = True

    def fit(self, source: np.ndarray, target: np.ndarray) -> _Translation:
        """Learn the map from paired rows, source (k, d_source) and target (k, d_target).

        Raises
        ------
        SpaceError
            Row counts that differ, or no rows.
        """
        if len(source) != len(target) or not len(source):
            raise SpaceError(f"expected the same number of paired rows, 1 or more, got {len(source)} and {len(target)}")
        source, target = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
        if self._centred:
            self.source_mean_, self.target_mean_ = source.mean(axis=0), target.mean(axis=0)
        else:
            self.source_mean_, self.target_mean_ = np.zeros(source.shape[1]), np.zeros(target.shape[1])
        self.matrix_ = self._solve(source - self.source_mean_, target - self.target_mean_)
        self.n_features_in_ = source.shape[1]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Rows of the source space in the target space, (n, d_source) → (n, d_target) float32."""
        if X.shape[1] != self.n_features_in_:
            raise SpaceError(f"expected rows of width {self.n_features_in_} as in fit, got {X.shape[1]}")
        X, matrix = np.asarray(X, dtype=np.float32), self.matrix_.astype(np.float32)
        offset = (self.target_mean_ - self.source_mean_ @ self.matrix_).astype(np.float32)
        return X @ matrix + offset


@dataclass(eq=False)
class Procrustes(_Translation):
    """The rotation or reflection, and one scale, that brings paired rows closest (Schönemann 1966).

    Between spaces of different widths the matrix (d_source, d_target) has orthonormal rows or columns, whichever are fewer.

    Parameters
    ----------
    scale : bool
        Also fit one factor for all axes.
    """

    scale: bool = True

    def _solve(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        left, singular_values, right = np.linalg.svd(source.T @ target, full_matrices=False)
        rotation = left @ right
        spread = np.linalg.norm(source @ rotation) ** 2
        return rotation * (singular_values.sum() / spread) if self.scale and spread else rotation


class LeastSquares(_Translation):
    """The linear map with the smallest squared error over the paired rows, of smallest norm where there are several."""

    _centred = False

    def _solve(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(source, target, rcond=None)[0]


class Affine(LeastSquares):
    """Least squares with an offset: a linear map between the centred rows."""

    _centred = True
