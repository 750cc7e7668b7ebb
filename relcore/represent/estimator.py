"""`Estimator`, the base class of everything that is fitted to rows: settings, fitted state, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.spaces.matching import paired_matrices
from relcore.spaces.space import LatentSpace, MatrixLike, matrix


class Estimator:
    """The base class of all estimators. It has the interface of scikit-learn for pipelines, `clone` and grid
    searches. It does not inherit from scikit-learn's base class, because importing it takes longer than
    drawing the first picture of the app.

    It provides the parameters, by their names in ``__init__``, and `fit_transform`. Subclasses define `fit`
    and `transform`. After a fit on a DataFrame, `feature_names_in_` are its columns, and `transform` raises
    an error for other columns and for another order.
    """

    _needs_target: ClassVar[bool] = False  # whether `fit` also needs a second space
    _names_out: np.ndarray | None = None
    _n_features_out: int
    n_features_in_: int
    feature_names_in_: np.ndarray

    if TYPE_CHECKING:  # each subclass has its own arguments

        def fit(self, *rows: Any, **settings: Any) -> Self: ...
        def transform(self, *rows: Any, **settings: Any) -> np.ndarray: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. `deep` has no effect, because no parameter is an estimator."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name. The fitted state does not change until the next fit.

        Raises
        ------
        SpaceError
            An unknown parameter.
        """
        known = self.get_params()
        if unknown := sorted(set(parameters) - set(known)):
            expected = ", ".join(known) or "no parameters"
            raise SpaceError(
                f"{type(self).__name__}: expected {expected}, got an invalid parameter {unknown[0]!r}"
            )
        vars(self).update(parameters)
        return self

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what `transform` returns: arrays ("default"), or DataFrames ("pandas") with the ids or the
        index of the rows.

        scikit-learn's global configuration is ignored, because results here must not depend on it.
        """
        need_one_of("transform", transform, (None, "default", "pandas"))
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """The names (d_out,) of the columns that `transform` returns. If they are known, these are the
        columns of the target or the ids of the anchors. Otherwise, they are "procrustes0", "procrustes1", ….

        Raises
        ------
        SpaceError
            The estimator is not fitted; `input_features` differ from those of the fit.
        """
        self._need_fitted()
        known = getattr(self, "feature_names_in_", None)
        if input_features is not None and known is not None and not np.array_equal(input_features, known):
            raise SpaceError(
                f"input_features is not equal to feature_names_in_: expected {quote(known[:3])}, got"
                f" {quote(input_features[:3])}; leave them out"
            )
        if input_features is not None and len(input_features) != self.n_features_in_:
            raise SpaceError(
                "input_features should have length equal to number of features: expected"
                f" {self.n_features_in_}, got {len(input_features)}; leave them out"
            )
        if self._names_out is not None:
            return self._names_out
        name = type(self).__name__.lower()
        return np.array([f"{name}{column}" for column in range(self._n_features_out)], dtype=object)

    def fit_transform(self, X: MatrixLike, y: MatrixLike | None = None, **settings: Any) -> np.ndarray:
        return self.fit(X, y, **settings).transform(X)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        paired = self._needs_target
        target = TargetTags(
            required=paired, two_d_labels=paired, multi_output=paired, single_output=not paired
        )
        tags = TransformerTags(preserves_dtype=["float32"])
        return Tags(None, target, tags, input_tags=InputTags(sparse=True))

    def _need_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise not_fitted(f"{type(self).__name__}: expected a fitted estimator; call fit first")

    def _sees(self, X: Any, width: int, width_out: int, names_out: np.ndarray | None = None) -> None:
        vars(self).pop("feature_names_in_", None)  # an earlier fit may have set it
        if (names := column_names(X)) is not None:
            self.feature_names_in_ = names
        self.n_features_in_ = width
        self._n_features_out = width_out
        self._names_out = names_out

    def _paired_matrices(
        self, names: tuple[str, str], X: Any, Y: Any, dtype: type = np.float32
    ) -> list[np.ndarray]:
        if Y is None:
            raise SpaceError(
                f"{names[1]}: expected a matrix (n, d), got None; {type(self).__name__} requires y to be"
                " passed, but the target y is None"
            )
        return list(paired_matrices(X, Y, names, dtype=dtype))

    def _check_width(
        self,
        X: Any,
        width: int | None = None,
        names: np.ndarray | None = None,
        by_block: bool = False,
    ) -> np.ndarray:
        """X as float32. It must have this `width` and these column `names`, by default those of the fit.
        `by_block` has the same meaning as in `matrix`."""
        self._need_fitted()
        if width is None:
            names = getattr(self, "feature_names_in_", None)
        columns = column_names(X)
        width = width or self.n_features_in_
        if names is not None and columns is not None and not np.array_equal(names, columns):
            differ = set(columns) ^ set(names)
            which = "another order"
            if differ:
                which = f"other names ({quote(sorted(differ)[:3])})"
            raise SpaceError(
                f"X: expected the columns of fit in their order, {quote(names[:3])} …, got {which}; take them"
                " as X[list(estimator.feature_names_in_)]"
            )
        X = matrix(X, by_block=by_block)
        if X.shape[1] != width:
            raise SpaceError(
                f"expected rows of width {width} as in fit, got {X.shape[1]}: X has {X.shape[1]} features,"
                f" but {type(self).__name__} is expecting {width} features as input"
            )
        return X

    def _as_output(self, rows: np.ndarray, X: Any) -> np.ndarray:
        """The output of `transform` for X: these rows as an array, or as a DataFrame if `set_output` says so.
        Raises a SpaceError for NaN and infinity."""
        need_finite(rows[:, 0])
        if getattr(self, "_sklearn_output_config", {}).get("transform") != "pandas":
            return rows
        index = None
        if isinstance(X, pd.DataFrame | LatentSpace):
            index = X.index
        return cast(np.ndarray, pd.DataFrame(rows, index, self.get_feature_names_out(), copy=False))


def column_names(X: Any) -> np.ndarray | None:
    """The names (d,) of the columns of a DataFrame of any library. If not all names are texts, None."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(list(columns), dtype=object)


def not_fitted(message: str) -> SpaceError:
    """A `SpaceError` that is also a `NotFittedError` of scikit-learn."""
    from sklearn.exceptions import NotFittedError

    class NotFitted(SpaceError, NotFittedError):  # type: ignore[misc]  # scikit-learn has no types
        def __reduce__(self) -> tuple[Any, ...]:
            return not_fitted, self.args

    return NotFitted(message)


def need_finite(result: np.ndarray, name: str = "X") -> None:
    """Raise a SpaceError unless all numbers of a result are finite.

    The result is checked instead of X, because it is far smaller, and every number that is computed from a
    NaN in X is NaN.
    """
    if not np.isfinite(result).all():
        raise SpaceError(f"{name}: expected finite numbers, got NaN or infinity; drop these rows")
