"""Maps between absolute spaces, fitted on paired rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from relcore.base.arguments import is_number
from relcore.base.errors import SpaceError, extra
from relcore.base.kinds import need_kinds, takes_kinds
from relcore.engine.engine import Engine
from relcore.represent.estimator import Estimator, column_names, need_finite
from relcore.represent.projection import checked_row
from relcore.spaces.space import MatrixLike

if TYPE_CHECKING:
    from relcore.nn.modules import AffineMap


class _Translation(Estimator):
    """A fitted affine map, Y ≈ (X − source_mean_) · matrix_ + target_mean_."""

    _centred: ClassVar[bool] = True
    _needs_target: ClassVar[bool] = True
    matrix_: np.ndarray
    source_mean_: np.ndarray
    target_mean_: np.ndarray

    def _solve(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def fit(self, source: MatrixLike, target: MatrixLike) -> Self:
        """Fit the map to paired rows: source (k, d_source) and target (k, d_target)."""
        need_kinds(self)
        (X, Y) = self._paired_matrices(("source", "target"), source, target, np.float64)
        self.source_mean_ = np.zeros(X.shape[1])
        self.target_mean_ = np.zeros(Y.shape[1])
        if self._centred:
            self.source_mean_ = X.mean(axis=0)
            self.target_mean_ = Y.mean(axis=0)
        self.matrix_ = self._solve(X - self.source_mean_, Y - self.target_mean_)
        self._sees(source, X.shape[1], Y.shape[1], column_names(target))
        return self

    @takes_kinds
    def transform(self, X: MatrixLike, less: np.ndarray | float = 0.0) -> np.ndarray:
        """Map source rows (n, d_source) into the target space, and subtract the target row `less`: (n,
        d_target) float32."""
        unchecked = X
        X = self._check_width(X, by_block=True)
        mean = None
        if not is_number(less):
            less = checked_row(less, self._n_features_out, "less")
        if self._centred:
            mean = self.source_mean_
        rows = Engine().map_rows(X, self.matrix_, mean=mean, shift=self.target_mean_ - less)
        return self._as_output(rows, unchecked)

    def score(self, X: MatrixLike, y: MatrixLike) -> float:
        """R², the share of the variance of target rows y (n, d_target) that the mapped rows X (n, d_source)
        explain, so that ``cross_val_score`` and ``GridSearchCV`` need no `scoring`. All columns count by
        their variance. 1 is a perfect map, and 0 no better than the mean of y.

        Raises
        ------
        SpaceError
            The map is not fitted; rows of another width; rows that are not paired, or of y all equal.
        """
        self._need_fitted()
        (X, Y) = self._paired_matrices(("X", "y"), X, y, np.float64)
        if Y.shape[1] != self._n_features_out:
            raise SpaceError(
                f"y: expected rows of width {self._n_features_out} as in fit, got {Y.shape[1]}; give rows of"
                " the target space"
            )
        spread = np.sum((Y - Y.mean(axis=0)) ** 2)
        if not spread:
            raise SpaceError("y: expected rows that differ, got equal ones; give two different rows or more")
        mapped = np.asarray(self.transform(X))
        return float(1 - np.sum((Y - mapped) ** 2) / spread)

    def to_torch(self) -> AffineMap:
        """The fitted map as a PyTorch module from rows (n, d_source) to (n, d_target). It needs the extra
        ``torch``."""
        with extra("torch"):
            from relcore.nn.modules import AffineMap

        self._need_fitted()
        return AffineMap(self.matrix_, self.source_mean_, self.target_mean_)


@dataclass(eq=False)
class Procrustes(_Translation):
    """The rotation or reflection, with a scale factor, that minimises the distances between paired rows
    (Schönemann 1966).

    If the widths differ, the matrix (d_source, d_target) has orthonormal rows or orthonormal columns, up to
    the factor.

    Parameters
    ----------
    scale : bool
        Whether to fit a scale factor, the same for all axes.

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

    def _solve(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        engine = Engine()
        rotation, singular_values = engine.rotation(engine.product(source.T, target))
        mapped = source
        if rotation.shape[0] > rotation.shape[1]:  # the map shortens rows
            mapped = engine.product(source, rotation)
        spread = np.linalg.norm(mapped) ** 2
        if self.scale and spread:
            return rotation * (singular_values.sum() / spread)
        return rotation

    def inverse_transform(self, X: MatrixLike) -> np.ndarray:
        """Map target rows (n, d_target) into the source space by the pseudo-inverse: (n, d_source) float32.
        In directions that the target lacks, rows get the mean of the source.

        Raises
        ------
        SpaceError
            The map is not fitted; rows of another width; a map that sends all rows to a single point.
        """
        self._need_fitted()
        X = self._check_width(X, self._n_features_out, self._names_out, by_block=True)
        # The pseudo-inverse of s times a rotation is its transpose divided by s².
        squared = np.vdot(self.matrix_, self.matrix_) / min(self.matrix_.shape)
        if not squared:
            raise SpaceError(
                "inverse_transform: expected a map that can be inverted, got one to a single point; fit it on"
                " target rows that differ"
            )
        back = self.matrix_.T / squared
        rows = Engine().map_rows(X, back, mean=self.target_mean_, shift=self.source_mean_)
        need_finite(rows[:, 0])
        return rows


@dataclass(eq=False)
class LeastSquares(_Translation):
    """The linear map with the smallest squared error. If there are several, the one with the smallest norm.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LeastSquares
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> mapping = LeastSquares().fit(X, X[:, :2] + X[:, 1:])
    >>> mapping.transform([[1, 2, 3]]).round(3).tolist()
    [[3.0, 5.0]]
    """

    _centred: ClassVar[bool] = False

    def _solve(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        return Engine().lstsq(source, target)


@dataclass(eq=False)
class Affine(LeastSquares):
    """Least squares with an offset: a linear map between centred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import Affine
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> mapping = Affine().fit(X, X[:, :2] + 10)
    >>> mapping.transform([[1, 2, 3]]).round(3).tolist()
    [[11.0, 12.0]]
    """

    _centred: ClassVar[bool] = True


def align(coordinates: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The coordinates after Procrustes alignment to the reference, (n, c) float32. The alignment is a shift,
    a rotation or reflection, and a scale factor.

    Rows that are NaN in either map are ignored. Raises a SpaceError if the shapes differ.
    """
    if coordinates.shape != reference.shape:
        raise SpaceError(
            f"align: expected pictures of the same rows in the same dimensions, got {reference.shape} and"
            f" {coordinates.shape}; pair the spaces by id first, or turn align off"
        )
    known = np.isfinite(coordinates).all(axis=1) & np.isfinite(reference).all(axis=1)
    centre = reference[known].mean(axis=0, dtype=np.float64)
    moved = coordinates - coordinates[known].mean(axis=0, dtype=np.float64)
    spread = np.sum(moved[known] ** 2)
    if spread > 0:  # a map that is a single point can only be shifted
        rotation, values = Engine().rotation(moved[known].T @ (reference[known] - centre))
        moved = moved @ rotation * (values.sum() / spread)
    return (moved + centre).astype(np.float32)
