"""What all estimators share: scikit-learn's habits, so that pipelines, `clone` and grid searches take them.

Not by its base class: importing that takes longer than the app's first picture.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.magnitude import too_large, too_small
from relcore.spaces.rows import MappedRows


class Estimator:
    """Parameters by the names of ``__init__``, and `fit_transform`; a subclass has `fit` and `transform`."""

    _needs_target: ClassVar[bool] = False  # whether fit learns from a second space

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is scikit-learn's, no parameter here has parameters of its own."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Estimator:
        """Change parameters by name, until the next fit without effect on what was learned.

        Raises
        ------
        SpaceError
            A name that is no parameter.
        """
        known = self.get_params()
        if unknown := sorted(set(parameters) - set(known)):
            expected = ", ".join(known) or "no parameters"
            raise SpaceError(
                f"{type(self).__name__}: expected {expected}, got an invalid parameter {unknown[0]!r}"
            )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def fit_transform(self, X: np.ndarray, y: np.ndarray | None = None, **settings: Any) -> np.ndarray:
        """Fit, and transform the same rows; `y` and the settings as in `fit`."""
        return self.fit(X, y, **settings).transform(X)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        paired = self._needs_target
        target = TargetTags(
            required=paired, two_d_labels=paired, multi_output=paired, single_output=not paired
        )
        return Tags(None, target, TransformerTags(preserves_dtype=["float32"]), input_tags=InputTags())

    def _check_width(self, X: np.ndarray, width: int | None = None, by_block: bool = False) -> np.ndarray:
        """X as float32 of the width that fit saw, or of `width`; `by_block` as in `matrix`."""
        if not hasattr(self, "n_features_in_"):
            raise SpaceError(f"{type(self).__name__}: expected a fitted estimator; call fit first")
        X, width = matrix(X, by_block=by_block), width or self.n_features_in_
        if X.shape[1] != width:
            raise SpaceError(f"expected rows of width {width} as in fit, got {X.shape[1]}")
        return X


def matrix(
    X: Any, name: str = "X", dtype: type = np.float32, by_block: bool = False
) -> np.ndarray | MappedRows:
    """X as a matrix of real numbers (n, d) with rows and columns; not whether they are finite, see
    `need_finite`.

    `MappedRows` are read as a whole, unless the caller takes them `by_block`.

    Raises
    ------
    SpaceError
        Another shape, a sparse matrix, complex numbers, what is no number.
    """
    if by_block and isinstance(X, MappedRows):
        return X
    if hasattr(X, "tocsr"):
        raise SpaceError(
            f"{name}: expected a dense matrix (n, d), got a sparse one; convert it with .toarray()"
        )
    given = np.asarray(X)
    if given.dtype.kind == "c":
        raise SpaceError(f"{name}: expected real numbers, got {given.dtype}. Complex data not supported")
    if given.ndim != 2 or 0 in given.shape:
        raise SpaceError(f"{name}: expected a matrix (n, d) with rows and columns, got shape {given.shape}")
    if dtype == np.float32 and (reason := too_large(given) or too_small(given)):
        raise SpaceError(f"{name}: {reason}")
    try:
        return np.asarray(given, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise SpaceError(f"{name}: expected a matrix of numbers, got {given.dtype}: {error}") from error


def need_finite(result: np.ndarray, name: str = "X") -> None:
    """Raise a SpaceError unless these numbers, to which each row or column of X contributed, are finite.

    Looking at what was computed from X is far cheaper than looking at X: one NaN in a row spoils all that
    comes of it.
    """
    if not np.isfinite(result).all():
        raise SpaceError(f"{name}: expected finite numbers, got NaN or infinity; drop these rows")
