"""Relative spaces: the estimator RelativeProjection, and similarities of rows to anchors. A larger number
means more similar.

To add a similarity, write a subclass of `Similarity` with a `between`, and a line in
`relcore.base.names.SIMILARITIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from relcore.base.arguments import need_ids, need_number, need_whole, random_generator
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import SIMILARITIES, STRATEGIES
from relcore.base.rows import centred, mean_row, row_blocks, unit_rows
from relcore.engine.engine import Engine, nearest
from relcore.spaces.space import LatentSpace, MatrixLike, as_space, ids_of, matrix, paired_matrices

_means: WeakKeyDictionary[LatentSpace, np.ndarray] = WeakKeyDictionary()


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
        given = column_names(X)
        width = width or self.n_features_in_
        if names is not None and given is not None and not np.array_equal(names, given):
            differ = set(given) ^ set(names)
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

    class NotFitted(SpaceError, NotFittedError):
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


def mean_of(space: LatentSpace) -> np.ndarray:
    """The `mean_row` (d,) of a space. It is cached and read-only."""
    if space not in _means:
        _means[space] = mean_row(space.vectors, Engine().mean(space.vectors))
        _means[space].flags.writeable = False
    return _means[space]


def negative_distance(X: np.ndarray, anchors: np.ndarray, metric: str) -> np.ndarray:
    """The negative distances (n, k) float32 of rows (n, d) to anchors (k, d). They are computed in float64 by
    a metric of SciPy."""
    from scipy.spatial.distance import cdist

    out = np.empty((len(X), len(anchors)), dtype=np.float32)
    for block in row_blocks(len(X)):
        with np.errstate(over="ignore"):
            np.negative(cdist(X[block], anchors, metric), out=out[block], casting="same_kind")
        if np.isneginf(out[block]).any() and np.isfinite(X[block]).all():
            raise SpaceError(
                f"{metric}: expected distances up to 3.4e38, as float32 holds them; divide the vectors by 1e3"
            )
    return out


def rows_among(X: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each row of X (n, d) equals a row of `others` (k, d), to the last bit of float32: (n,) bool."""
    known = set(map(bytes, np.ascontiguousarray(others, dtype=np.float32)))
    return np.array([bytes(row) in known for row in np.ascontiguousarray(X, dtype=np.float32)], dtype=bool)


class AnchorAxes(NamedTuple):
    """The singular value decomposition P S Qᵀ of unit anchors A (k, d), with w = min(k, d). Arrays are
    float64 and read-only.

    Attributes
    ----------
    basis : array (k, w)
        P.
    stretch : array (w,)
        S, in nearly descending order.
    turn : array (d, w)
        Q.
    """

    basis: np.ndarray
    stretch: np.ndarray
    turn: np.ndarray

    @classmethod
    def of(cls, unit_anchors: np.ndarray) -> AnchorAxes:
        """The decomposition of unit anchors. For a small set it is cached, because maps, scores and
        differences use the same one."""
        anchors = np.ascontiguousarray(unit_anchors, dtype=np.float32)
        if anchors.size <= _KEPT_AXES:
            compute = _anchor_axes
        else:
            compute = _anchor_axes.__wrapped__
        return compute(anchors.tobytes(), anchors.shape)


_NO_AXIS = 1e-12  # singular values below this share of the largest are rounding errors
_KEPT_AXES = 2**19  # maximum number of values in anchors whose axes are cached; 16 sets take 10 MB each


@lru_cache(maxsize=16)
def _anchor_axes(content: bytes, shape: tuple[int, int]) -> AnchorAxes:
    """The decomposition, from the eigenvectors of A Aᵀ or AᵀA, whichever is smaller. This takes a third of
    the time of an SVD. Axes with small singular values are inexact, but are always multiplied by these
    values."""
    A = np.frombuffer(content, dtype=np.float32).reshape(shape).astype(np.float64)
    wide = A if len(A) <= A.shape[1] else A.T
    known = Engine().eigh(wide @ wide.T)[1][:, ::-1]
    other = wide.T @ known
    stretch = np.linalg.norm(other, axis=0)
    stretch[stretch <= _NO_AXIS * stretch.max(initial=0)] = 0
    other = np.divide(other, stretch, out=np.zeros_like(other), where=stretch > 0)
    axes = AnchorAxes(*((known, stretch, other) if wide is A else (other, stretch, known)))
    for array in axes:
        array.flags.writeable = False
    return axes


def inverse_root(unit_anchors: np.ndarray, ridge: float) -> np.ndarray:
    """The whitening matrix (K + ridge · I)^(−1/2), an array (k, k). K = A Aᵀ are the cosines between the unit
    anchors A (k, d)."""
    axes = AnchorAxes.of(unit_anchors)
    rest = 1 / np.sqrt(ridge)
    root = (axes.basis * (1 / np.sqrt(axes.stretch**2 + ridge) - rest)) @ axes.basis.T
    root[np.diag_indices_from(root)] += rest  # the value for directions in which K is 0
    return root


class Similarity:
    """The similarity of rows to anchors, for `RelativeProjection`.

    Attributes
    ----------
    anchors_ : array (k, d)
        The anchors that `between` gets. If there is a mean, it is subtracted.
    """

    anchors_: np.ndarray
    # Whether `relative` is a product of unit rows and `basis_` (d, k), as whitening needs.
    linear: ClassVar[bool] = False
    learns: ClassVar[bool] = False  # whether `fit` also uses rows, those of `clustered_rows`

    def fit(self, X: np.ndarray, anchors: np.ndarray, mean: np.ndarray | None, settings: Any) -> Self:
        """Fit to the anchors (k, d) of the space X (n, d). `settings` is the `RelativeProjection`."""
        self.anchors_ = centred(anchors, mean)
        return self

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        """The similarities (m, k) of the uncentred rows X (m, d) to the anchors."""
        return self.between(centred(X, mean), self.anchors_)

    def between(self, X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
        """The similarities (m, k) of centred rows (m, d) to centred anchors (k, d)."""
        raise NotImplementedError


class Cosine(Similarity):
    """The cosine, −1 … 1. It is 0 if the row or the anchor is zero."""

    basis_: np.ndarray
    linear: ClassVar[bool] = True

    def fit(self, X: np.ndarray, anchors: np.ndarray, mean: np.ndarray | None, settings: Any) -> Self:
        self.anchors_ = unit_rows(anchors, mean)
        self.basis_ = self.anchors_.T
        if settings.whiten:  # K = A Aᵀ; the product with (K + λ · I)^(−1/2), in float64, is the whitening
            root = inverse_root(self.anchors_, settings.ridge)
            self.basis_ = self.basis_ @ root.astype(np.float32)
        return self

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        return Engine().map_rows(X, self.basis_, mean=mean, unit=True)


class Angular(Cosine):
    """The similarity 1 − angle / π, 0 … 1. The angle is a metric on the sphere."""

    linear: ClassVar[bool] = False

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        cosines = super().relative(X, mean)
        np.arccos(np.clip(cosines, -1, 1, out=cosines), out=cosines)
        cosines *= -1 / np.pi
        cosines += 1
        return cosines


class Euclidean(Similarity):
    """The similarity −‖x − a‖₂, at most 0. It is invariant to rotations, reflections and shifts; it scales
    with the space."""

    def between(self, X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
        return negative_distance(X, anchors, "euclidean")


class L1(Similarity):
    """The similarity −‖x − a‖₁, at most 0. It is invariant only to shifts, because it depends on the axes."""

    def between(self, X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
        return negative_distance(X, anchors, "cityblock")


class Quantised(Similarity):
    """The inner product of the centroid of a row and the centroid of an anchor (Moschella et al. 2023, Fig.
    7, and their code).

    The centroids come from Ward clustering of the fitted rows and the anchors, as unit rows. The clustering
    is cut at the distance `threshold` (in the paper: 1, 1.5, 2). Its memory grows with the square of the
    number of rows, so only `clustered_rows` are clustered. Every other row gets the nearest of the
    `centroids_` (c, d).
    """

    centroids_: np.ndarray
    learns: ClassVar[bool] = True

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = threshold  # None: the threshold of the `RelativeProjection`

    def fit(self, X: np.ndarray, anchors: np.ndarray, mean: np.ndarray | None, settings: Any) -> Self:
        from sklearn.cluster import AgglomerativeClustering

        if self.threshold is None:
            threshold = settings.threshold
        else:
            threshold = self.threshold
        need_number("threshold", threshold, above=0)
        self.anchors_ = unit_rows(anchors, mean)
        rows = np.concatenate([self.anchors_, unit_rows(X[clustered_rows(len(X), len(anchors))], mean)])
        clustering = AgglomerativeClustering(
            n_clusters=None, linkage="ward", distance_threshold=threshold
        ).fit(rows)
        sums = np.zeros((clustering.n_clusters_, rows.shape[1]))
        np.add.at(sums, clustering.labels_, rows)
        self.centroids_ = (sums / np.bincount(clustering.labels_)[:, None]).astype(np.float32)
        return self

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        need_finite(X)  # check now, because centroids are finite even if X contains NaN
        return self._nearest(unit_rows(X, mean)) @ self._nearest(self.anchors_).T

    def _nearest(self, X: np.ndarray) -> np.ndarray:
        # ‖x − c‖² = ‖x‖² − 2 (x·c − ‖c‖² / 2). So with one more column, the nearest centroid has the largest
        # product.
        offsets = np.vecdot(self.centroids_, self.centroids_) / -2
        queries = np.column_stack([X, np.ones(len(X), np.float32)])
        found = nearest(queries, np.column_stack([self.centroids_, offsets]), 1, unit=False)
        return self.centroids_[found.rows[:, 0]]


def clustered_rows(n: int, n_anchors: int, max_rows: int = 4096, random_state: int = 0) -> np.ndarray:
    """The row numbers (m,), ascending, of the rows from which a similarity learns, besides the anchors. If n
    is at most `max_rows`, these are all rows."""
    room = max(max_rows - n_anchors, 1)
    if n > room:
        return np.random.default_rng(random_state).choice(n, room, replace=False)
    return np.arange(n)


@dataclass(eq=False)
class RelativeProjection(Estimator):
    """Describe each row by its similarities to the anchors: absolute rows (n, d) become relative rows (n, k).

    ``relative[i, j] = similarity(x_i, a_j)`` (Moschella et al. 2023, eq. 1). With the cosine, relative rows
    do not change if the space is rotated, reflected or scaled. With centring, they also do not change if it
    is shifted.

    Parameters
    ----------
    similarity : one of `names.SIMILARITIES`, or a `Similarity`
        "quantised" is the inner product of cluster centroids (Fig. 7 of the paper).
    center : bool
        Whether to subtract the mean of the fitted space first (Maiorca et al. 2024). False reproduces
        Moschella et al. 2023.
    whiten : bool
        Whether to multiply by the symmetric root (K + ridge · I)^(−1/2), where K are the cosines (k, k)
        between anchors. Then near-duplicate anchors count only once. This is the Nyström feature map, used as
        a shared coordinate system. It needs the cosine.
    ridge : float
        The number λ of the whitening, above 0. The trace of K is k, so λ = 1 counts as much as one average
        anchor.
    threshold : float
        Distance at which the clustering is cut. Only "quantised" uses it.
    n_anchors : int
        Number of rows of X that are drawn as anchors if `fit` gets no anchors. If X has fewer rows, all are
        anchors.
    random_state : int
        Seed of this draw.

    Attributes
    ----------
    mean_ : array (d,) or None
    anchors_ : array (k, d)
        The anchors. They are centred if `center`, and of length 1 if the similarity depends only on
        directions.
    feature_names_in_ : array (d,)
        The columns of X if it is a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import RelativeProjection
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> rows = [0, 1, 2]  # the anchors
    >>> first = RelativeProjection().fit(X, anchors=rows).transform(X)
    >>> second = RelativeProjection().fit(X @ rotation + 4, anchors=rows).transform(X @ rotation + 4)
    >>> first.shape, bool(np.allclose(first, second, atol=1e-5))
    ((100, 3), True)
    """

    similarity: str | Similarity = "cosine"
    center: bool = True
    whiten: bool = False
    ridge: float = 0.3
    threshold: float = 1.5
    n_anchors: int = 300
    random_state: int = 0

    def fit(
        self,
        X: MatrixLike,
        y: object = None,
        *,
        anchors: MatrixLike | Sequence[int] | Sequence[str] | None = None,
        mean: np.ndarray | None = None,
    ) -> Self:
        """Compute the mean of X (n, d) and store the anchors. `anchors` are row numbers of X (k,), ids of X
        (k,), for example from `select_anchors`, or vectors (k, d).

        If no anchors are given, rows are drawn; spaces with the same number of rows get the same row numbers.
        `y` is ignored; it exists because pipelines pass it. `mean` is the `mean_row` of X, if it is known; it
        saves a pass over X.

        Raises
        ------
        SpaceError
            No anchors; row numbers outside X; widths that differ; numbers that are not finite; an unknown
            similarity; whitening with a similarity other than the cosine.
        """
        given = X
        X = matrix(X, by_block=True)
        n, width = X.shape
        if mean is None:
            mean = mean_row(X)
        else:
            mean = checked_row(mean, width, "mean")
        if anchors is None:
            need_whole("n_anchors", self.n_anchors)
            drawn = random_generator(self.random_state)
            anchors = drawn.choice(n, min(self.n_anchors, n), replace=False)
        rows = _listed_or_matrix(anchors)
        reason = ""
        if rows.ndim == 1 and rows.size and all(isinstance(one, str) for one in rows):
            rows = as_space(given, "X").rows(rows.tolist())
        if rows.size == 0:
            reason = "at least one, got none; pick some by hand or with select_anchors"
        elif rows.ndim == 2:
            if rows.shape[1] == width:
                self.fit_from(mean, np.asarray(rows, dtype=np.float32), X)
                self._sees(given, width, len(rows))
                return self
            reason = f"vectors of width {width} like the space, got {rows.shape[1]}"
        elif rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
            got = f"{rows.dtype} {rows.shape}"
            reason = f"row numbers (k,), ids of X (k,) or vectors (k, d), got {got}"
        elif len(outside := rows[(rows < 0) | (rows >= n)]):
            reason = f"rows 0 … {n - 1}, got {outside[0]}"
        if reason:
            raise SpaceError(f"anchors: expected {reason}")
        self.fit_from(mean, X[rows], X)
        self._sees(given, width, len(rows), _ids_at(given, rows))
        return self

    def fit_from(self, mean: np.ndarray, anchors: np.ndarray, rows: np.ndarray) -> Self:
        """Fit to a space of which only the mean (d,), the anchor vectors (k, d) and some rows (m, d) are
        available.

        The rows should be those of `clustered_rows`. Similarities that learn from rows use only these, so the
        result is the same as with all rows.
        """
        if isinstance(self.similarity, Similarity):  # fit a copy of the given instance
            similarity = copy(self.similarity)
        else:
            need_one_of("similarity", self.similarity, SIMILARITIES)
            similarity = SIMILARITIES[self.similarity].load()()
        if self.whiten and not similarity.linear:
            raise SpaceError(
                f"whiten: expected similarity 'cosine', got {self.similarity!r}; whitening needs inner"
                " products"
            )
        if self.whiten:
            need_number("ridge", self.ridge, above=0)
        self.mean_: np.ndarray | None = mean if self.center else None
        self.similarity_: Similarity = similarity.fit(rows, anchors, self.mean_, self)
        self.anchors_: np.ndarray = self.similarity_.anchors_
        self._sees(None, anchors.shape[1], len(anchors))
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """The similarities (n, k) float32 of the rows X (n, d) to the anchors.

        Ranges: cosine and quantised −1 … 1; angular 0 … 1; Euclidean and L1 at most 0. Other similarities
        have no fixed range. A vector that is zero after centring has cosine 0 to all anchors.
        """
        rows = self._check_width(X, by_block=True)
        return self._as_output(self.similarity_.relative(rows, self.mean_), X)


def _ids_at(X: Any, rows: np.ndarray) -> np.ndarray | None:
    """The ids of these rows; None if the rows of X have no ids."""
    if isinstance(X, pd.DataFrame):
        X = X.iloc[rows]
        rows = np.arange(len(rows))
    ids = ids_of(X)
    if ids is None:
        return None
    return np.array([ids[row] for row in rows], dtype=object)


def checked_row(row: Any, width: int, name: str) -> np.ndarray:
    """A row (d,) of finite numbers. Raises a SpaceError for another width, and for what is no row."""
    masked = np.ma.is_masked(row)
    try:
        row = np.asarray(row)
        fits = (
            not masked and row.dtype.kind in "fiu" and row.shape == (width,) and bool(np.isfinite(row).all())
        )
    except (TypeError, ValueError):
        fits = False
    if not fits:
        got = f"{row!r:.60}"
        if isinstance(row, np.ndarray):
            got = f"{row.dtype} {row.shape}"
        raise SpaceError(f"{name}: expected {width} finite numbers, one per column, got {got}")
    return row


def _listed_or_matrix(anchors: Any) -> np.ndarray:
    if isinstance(anchors, Sequence) and not isinstance(anchors, str):
        listed = all(np.isscalar(one) for one in anchors)
    else:
        listed = len(getattr(anchors, "shape", (0, 0))) == 1 or 0 in getattr(anchors, "shape", ())
    if listed:
        return np.asarray(anchors)
    return matrix(anchors, "anchors")


# Anchors: strategies that select them, diagnostics of a set, and audits of pairs.


USUAL_ANCHORS = 300


def usual_anchors(n: int) -> int:
    """The default number of anchors of n rows: 300 as in the papers, but at most a fifth of the rows.

    Measured with 120 of the bundled words (8 draws): by similarities to 24 anchors, 94 % of the other words
    are nearest to the same word in the second space. With 12 anchors, 76 % are. With 60, 98 % are, but only
    half of the words are left to be scored. If there are fewer than 50 rows, up to 10 are anchors, but at
    most half of the rows.
    """
    return max(1, min(USUAL_ANCHORS, max(n // 5, min(n // 2, 10))))


def select_anchors(
    space: MatrixLike,
    n_anchors: int,
    strategy: Literal[
        "random", "farthest-point", "k-means", "most-frequent", "class-balanced", "learned"
    ] = "random",
    *,
    pool: int | None = None,
    random_state: int = 0,
) -> np.ndarray:
    """Select anchors of a space. Returns their ids (n_anchors,). Zero vectors are never selected.

    Parameters
    ----------
    space : LatentSpace, or matrix (n, d) in any form
        Rows without ids have the ids "0", "1", ….
    strategy : one of `names.STRATEGIES`
        Most are strategies of Moschella et al. 2023 and their code. "random" draws uniformly.
        "farthest-point" repeatedly adds the row with the largest angle to its nearest anchor. "k-means" takes
        the row nearest to each centroid. "most-frequent" takes the most frequent rows. "class-balanced" takes
        the same number of rows from each label; if a label has too few rows, more from others.
    pool : int, optional
        Select only among the `pool` most frequent rows (in the code of the paper: 1,000, 5,000, 10,000).

    Raises
    ------
    SpaceError
        More anchors than distinct candidates; an unknown strategy; "class-balanced" for a space without
        labels.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, select_anchors
    >>> vectors = [[1, 0], [1, 0.1], [0, 1], [-1, 0]]
    >>> space = LatentSpace(vectors, ["a", "b", "c", "d"], counts=[9, 2, 5, 1])
    >>> select_anchors(space, 2, "most-frequent").tolist()
    ['a', 'c']
    >>> len(select_anchors(space, 3, random_state=0))
    3
    """
    space = as_space(space)
    need_one_of("strategy", strategy, STRATEGIES)
    need_whole("n_anchors", n_anchors)
    if pool is not None:
        need_whole("pool", pool)
    rng = random_generator(random_state)
    if space.counts is None:
        rows = np.arange(len(space))
    else:
        rows = np.argsort(-space.counts, kind="stable")
    candidates = rows[space.norms[rows] > 0][:pool]
    if n_anchors > len(candidates):
        raise SpaceError(
            f"n_anchors: expected at most {len(candidates)}, the rows of {space.name!r} that can be chosen,"
            f" got {n_anchors}; ask for fewer, or widen the pool"
        )
    rows = STRATEGIES[strategy].load()(space, candidates, n_anchors, rng)
    return space.ids[rows]


def shared_anchors(ids: Sequence[str], *spaces: LatentSpace) -> list[str]:
    """The ids as a list, after a check. Raises a SpaceError if there are no ids, if an id is repeated, and if
    a row is zero in one of the spaces."""
    ids = need_ids("anchors", ids)
    if not ids:
        raise SpaceError("anchors: expected at least one id, got none")
    if len(set(ids)) < len(ids):
        twice = sorted({identifier for identifier in ids if ids.count(identifier) > 1})
        raise SpaceError(f"anchors: expected distinct ids, got {quote(twice[:3])} more than once")
    for space in spaces:
        zero = np.flatnonzero(space.norms[space.rows(ids)] == 0)
        if len(zero):
            raise SpaceError(
                f"anchors: {quote([ids[place] for place in zero[:3]])} are zero vectors in {space.name!r} and"
                " have no direction; remove them"
            )
    return ids


# The strategies return the row numbers of n anchors, from `candidates` (m,): row numbers by descending
# frequency.


def at_random(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    return rng.choice(candidates, n_anchors, replace=False)


def most_frequent(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    return candidates[:n_anchors]


def farthest_point(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    rows = _directions(space, candidates)
    start = int(rng.integers(len(candidates)))
    order, _ = farthest_order(lambda row: rows @ rows[row], len(rows), start, 1e-6, n_anchors)
    if len(order) < n_anchors:
        raise SpaceError(
            f"n_anchors: expected at most {len(order)}, the number of distinct directions, got {n_anchors}"
        )
    return candidates[order]


def farthest_order(
    similarity: Callable[[int], np.ndarray], n: int, start: int, delta: float = 0.0, most: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The greedy farthest-point order of n rows, with the distance 1 − similarity. It starts at row `start`,
    and ends when the next row is nearer than δ.

    Returns at most `most` rows, and the distance of each row to the nearest earlier row, which is 1 for the
    first row. Distances never increase, so the order for a larger δ is a prefix of that for a smaller δ.
    """
    order = [int(start)]
    distances = [1.0]
    nearest = similarity(start).copy()
    nearest[start] = np.inf
    while len(order) < (n if most is None else most):
        farthest = int(np.argmin(nearest))
        distance = max(1 - float(nearest[farthest]), 0.0)
        if distance < delta:
            break
        order.append(farthest)
        distances.append(distance)
        np.maximum(nearest, similarity(farthest), out=nearest)
        nearest[farthest] = np.inf
    return np.array(order), np.array(distances)


def k_means(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans

    directions = _directions(space, candidates)
    # k-means with mini-batches takes a tenth of the time of full k-means.
    k_means = MiniBatchKMeans(n_anchors, batch_size=4096, n_init=1, random_state=int(rng.integers(2**31)))
    return candidates[_nearest_rows(k_means.fit(directions).cluster_centers_, directions)]


def _nearest_rows(centres: np.ndarray, directions: np.ndarray) -> np.ndarray:
    similarity = unit_rows(centres) @ directions.T
    chosen = np.empty(len(centres), dtype=np.int64)
    for centre, row in enumerate(similarity):
        chosen[centre] = np.argmax(row)
        similarity[:, chosen[centre]] = -np.inf  # another centroid may have the same nearest row
    return chosen


def class_balanced(
    space: LatentSpace, candidates: np.ndarray, n_anchors: int, rng: np.random.Generator
) -> np.ndarray:
    if space.labels is None:
        raise SpaceError(
            f"strategy 'class-balanced': expected labels, {space.name!r} has none; choose another strategy"
        )
    shuffled = rng.permutation(candidates)
    shuffled = shuffled[space.labels[shuffled] != ""]
    if len(shuffled) < n_anchors:
        raise SpaceError(f"n_anchors: expected at most {len(shuffled)}, the labelled rows, got {n_anchors}")
    # Take the first row of every class, then the second of every class, and so on, until there are enough.
    labels = pd.Series(space.labels[shuffled])
    turn = labels.groupby(labels).cumcount()
    place = np.unique(labels, return_inverse=True)[1]
    return shuffled[np.lexsort((place, turn))[:n_anchors]]


def _directions(space: LatentSpace, rows: np.ndarray) -> np.ndarray:
    return unit_rows(space.vectors[rows], mean_row(space.vectors))


# Diagnostics of a set of anchors: rank, condition, coverage and near-duplicates.

_SAMPLED_ROWS = 1000
_DUPLICATE = 0.9  # minimum cosine of near-duplicates
# minimum cosine of coinciding anchors; their minimum share for a warning
_SAME = 1 - 1e-4
_MANY = 0.05


@dataclass(frozen=True)
class AnchorDiagnostics:
    """Diagnostics of an anchor set in one space.

    Attributes
    ----------
    singular_values : array (min(k, d),)
        Singular values of the centred unit anchors, descending.
    rank : int
        Numerical rank. If it is below min(k, d), some anchors are linear combinations of others.
    condition_number : float
        Largest singular value ÷ smallest singular value, 1 … ∞. If it is large, the inverse amplifies noise.
    effective_rank : float
        The exponential of the entropy of the normalised squared singular values, 1 … min(k, d) (Roy and
        Vetterli 2007).
    coverage, coverage_random : float
        Mean cosine between a row and its nearest anchor, −1 … 1: for these anchors, and for as many random
        ones.
    near_duplicates : tuple of (id, id, cosine)
        Pairs of anchors with a cosine above .9, highest cosine first.
    """

    n_anchors: int
    singular_values: np.ndarray
    rank: int
    condition_number: float
    effective_rank: float
    coverage: float
    coverage_random: float
    near_duplicates: tuple[tuple[str, str, float], ...]


def diagnose_anchors(
    space: LatentSpace, anchor_ids: Sequence[str], *, random_state: int = 0
) -> AnchorDiagnostics:
    """The diagnostics of anchors, which are first centred and scaled to length 1. Raises the same errors as
    `shared_anchors`."""
    ids = shared_anchors(anchor_ids, space)
    mean = mean_of(space)
    anchors = unit_rows(space.vectors[space.rows(ids)], mean)
    values = Engine().svd(anchors)[1]
    floor = values[0] * max(anchors.shape) * np.finfo(np.float32).eps
    energy = values**2 / np.sum(values**2)
    energy = energy[energy > 0]
    n_random = min(len(ids), np.count_nonzero(space.norms))
    at_random = unit_rows(
        space.vectors[space.rows(select_anchors(space, n_random, random_state=random_state))], mean
    )
    coverage, coverage_random = (
        float(
            Engine()
            .map_rows(space.vectors, chosen.T, mean=mean, unit=True)
            .max(axis=1)
            .mean(dtype=np.float64)
        )
        for chosen in (anchors, at_random)
    )
    cosines = np.triu(anchors @ anchors.T, 1)
    pairs = np.argwhere(cosines > _DUPLICATE)
    near = [(ids[first], ids[second], float(cosines[first, second])) for first, second in pairs]
    return AnchorDiagnostics(
        n_anchors=len(ids),
        singular_values=values,
        rank=int(np.count_nonzero(values > floor)),
        condition_number=float(values[0] / values[-1]) if values[-1] > floor else float("inf"),
        effective_rank=float(np.exp(-np.sum(energy * np.log(energy)))),
        coverage=coverage,
        coverage_random=coverage_random,
        near_duplicates=tuple(sorted(near, key=lambda pair: -pair[2])),
    )


def coinciding_anchors(space: LatentSpace, anchor_ids: Sequence[str]) -> str:
    """A warning if at least 5 % of the anchors coincide with another anchor; otherwise ""."""
    ids = shared_anchors(anchor_ids, space)
    sample = space.vectors[:: -(-len(space) // _SAMPLED_ROWS)]
    anchors = unit_rows(space.vectors[space.rows(ids)], mean_row(sample))
    again = np.flatnonzero((np.triu(anchors @ anchors.T, 1) > _SAME).any(axis=0))
    if len(again) < max(2, _MANY * len(ids)):
        return ""
    named = quote([ids[row] for row in again[:3]]) + (", …" if len(again) > 3 else "")
    return (
        f"{len(again):,} of {len(ids):,} anchors coincide with another anchor in {quote([space.name])}"
        f" ({named}), so one direction counts several times in relative scores. Remove them, or read the"
        " whitened scores."
    )


TRUSTED = 0.6  # share of the pairs on which the rotation is fitted
ROUNDS = 10
FOLDS = 10
FALSE_SHARE = 0.05
FEWEST = 10  # minimum number of pairs; fewer do not determine a rotation
_JUDGED = (0.5, 0.9, 0.99, 0.999)  # quantiles of the mismatches; pairs below them are counted
_COUNTED = 0.9  # quantile of the mismatches; the number of pairs below it is that of suspects
_NEVER_RIGHT = 0.25  # quantile of the mismatches; right pairs are not expected below it
_TAIL_SHARE = 0.025
_MOST_WRONG = 1 - TRUSTED
_TAIL = (8, 40)  # maximum degrees of freedom; number of pairs per degree above two
_NEAREST = 1e-4  # lower limit of 1 − agreement; pairs below it count as equal
_SILENT = 1e-9  # share of the largest singular value; in directions below it, trusted pairs have no spread


@dataclass(frozen=True, eq=False)
class Audit:
    """A search for wrong pairs among k pairs of source and target rows. `agreement` (k, k) is that of source
    i with target j, −1 … 1, so the pairs are on its diagonal. Pairs that are probably wrong are called
    suspects.

    On average, at most the share `false_share` of the suspects are right pairs.
    """

    agreement: np.ndarray
    false_share: float = FALSE_SHARE

    @cached_property
    def of_pairs(self) -> np.ndarray:
        return self.agreement.diagonal().copy()

    @cached_property
    def mismatched(self) -> np.ndarray:
        """The agreement of all mismatches (sources with targets of other pairs), an ascending array (k · (k −
        1),)."""
        k = len(self.agreement)
        return np.sort(self.agreement[~np.eye(k, dtype=bool)])

    @cached_property
    def ranking(self) -> np.ndarray:
        return np.argsort(self.of_pairs, kind="stable")

    @cached_property
    def n_wrong(self) -> float:
        """The estimated number of wrong pairs (Storey 2002), which lies in `wrong_interval`. It is assumed
        that the agreement of wrong pairs is distributed as that of mismatches. It is computed
        from the number of pairs below an agreement that few right pairs fall below."""
        below = [(np.count_nonzero(self._behind > 1 - share), share) for share in _JUDGED]
        # Take the smallest estimate plus three standard errors, because right pairs can only raise an
        # estimate.
        n, share = min(below, key=lambda one: (one[0] + 3 * np.sqrt(one[0] * (1 - one[1]))) / one[1])
        return float(np.clip(n / share, *self.wrong_interval))

    @cached_property
    def wrong_interval(self) -> tuple[int, int]:
        """The 95 % interval of the number of wrong pairs.

        If w pairs are wrong, the number of wrong pairs below the quantile q of the mismatches is binomial (w,
        q). The upper end is the largest w for which the observed number of pairs below q is plausible. This
        end assumes nothing about right pairs. The lower end assumes that every right pair agrees more than a
        quarter of the mismatches do.
        """
        from scipy.special import bdtr, bdtrc

        wrong = np.arange(len(self.of_pairs) + 1)
        low = 0
        high = len(self.of_pairs)
        for share in _JUDGED:
            n = np.count_nonzero(self._behind > 1 - share)
            possible = bdtr(n, np.maximum(wrong, n + 1), share) >= _TAIL_SHARE / len(_JUDGED)
            high = min(high, max(n, int(wrong[possible].max(initial=0))))
        if n := np.count_nonzero(self._behind > 1 - _NEVER_RIGHT):
            possible = (bdtrc(n - 1, np.maximum(wrong, n), _NEVER_RIGHT) >= _TAIL_SHARE) & (wrong >= n)
            low = int(wrong[possible].min(initial=len(self.of_pairs)))
        return min(low, high), high

    @cached_property
    def _behind(self) -> np.ndarray:
        """For each pair, the share of mismatches that agree more, (k,), 0 … 1. Before, the mean agreement of
        each row with its mismatches is subtracted, because some rows agree with all others."""
        off_diagonal = ~np.eye(len(self.agreement), dtype=bool)
        others = np.where(off_diagonal, self.agreement, 0)
        n = len(others) - 1 - off_diagonal
        rows = (others.sum(axis=1)[:, None] - others) / n
        columns = (others.sum(axis=0) - others) / n
        beyond = self.agreement - rows - columns
        mismatched = np.sort(beyond[off_diagonal])
        return 1 - np.searchsorted(mismatched, beyond.diagonal()) / len(mismatched)

    @cached_property
    def _counted(self) -> float:
        """The number of pairs that agree as little as mismatches (Storey 2002). It is used to name suspects,
        and may include right pairs."""
        below = np.quantile(self.mismatched, _COUNTED)
        return float(min((self.of_pairs < below).sum() / _COUNTED, len(self.of_pairs)))

    def chance_if_right(self, agreement: np.ndarray) -> np.ndarray:
        """The estimated share of right pairs with at most this agreement. The log(1 − agreement) of right
        pairs is modelled by a Student's t distribution around the median. Its width comes from the lower
        quartile of the pairs that are not counted as wrong."""
        from scipy.special import stdtr

        right = self.of_pairs[self.ranking[int(self._counted) :]]
        middle, low = np.log(np.maximum(1 - np.quantile(right, (0.5, 0.25)), _NEAREST))
        away = np.log(np.maximum(1 - agreement, _NEAREST)) - middle
        most, pairs = _TAIL
        return stdtr(min(most, 2 + len(self.of_pairs) / pairs), -away / max((low - middle) / 0.6745, 0.05))

    @property
    def decided(self) -> bool:
        """Whether the pairs can be judged. Two conditions must hold: at most 40 % of the pairs are wrong, so
        the fit is valid; and right pairs rarely agree as little as the median mismatch."""
        if self._counted > _MOST_WRONG * len(self.of_pairs):
            return False
        return bool(self.chance_if_right(np.median(self.mismatched)) <= _MOST_WRONG * self.false_share)

    @cached_property
    def suspects(self) -> np.ndarray:
        """The indices of the suspect pairs, least agreement first. If the audit is not `decided`, there are
        none.

        Two conditions limit the number n of suspects. First, among the n pairs that agree least, the expected
        number of wrong pairs must be large enough. It is `_counted` times the share of mismatches that agree
        less than the next pair. Second, right pairs must rarely agree so little, by the method of Benjamini
        and Hochberg (1995) with `chance_if_right`.
        """
        if not self.decided or self._counted == 0:
            return self.ranking[:0]
        counts = np.arange(1, len(self.ranking) + 1)
        beyond = np.append(self.of_pairs[self.ranking[1:]], np.inf)
        share = np.searchsorted(self.mismatched, beyond) / len(self.mismatched)
        rare = self.chance_if_right(self.of_pairs[self.ranking]) <= self.false_share * counts / len(counts)
        within = np.flatnonzero((1 - self._counted * share / counts <= self.false_share) & rare)
        if len(within):
            return self.ranking[: within[-1] + 1]
        return self.ranking[:0]


def audit_pairs(X: np.ndarray, Y: np.ndarray, false_share: float = FALSE_SHARE) -> Audit:
    """The audit of k pairs of centred unit rows: X (k, d_source) and Y (k, d_target).

    A rotation is fitted ten times, each time on the 60 % of the pairs that agree best (the trusted pairs).
    The agreement of a pair is the cosine between the rotated source row and the target row. For a trusted
    pair, the rotation is fitted without this pair. `false_share` is that of the `Audit`, above 0 and below 1.

    Raises a SpaceError for fewer than 10 pairs, and if X and Y have different numbers of rows.
    """
    if len(X) != len(Y) or len(X) < FEWEST:
        raise SpaceError(
            f"audit: expected {FEWEST} pairs or more, got {len(X):,} and {len(Y):,} rows; choose more anchors"
        )
    if not 0 < false_share < 1:
        raise SpaceError(f"false_share: expected a share between 0 and 1, got {false_share!r}")
    X, Y = (np.asarray(Z, dtype=np.float64) for Z in (X, Y))
    trusted = np.arange(len(X))
    for _ in range(ROUNDS):
        agreement = np.vecdot(_rotated_rows(X, X[trusted], Y[trusted]), Y)
        best = np.argsort(-agreement, kind="stable")[: int(np.ceil(TRUSTED * len(X)))]
        before = trusted
        trusted = np.sort(best)
        if np.array_equal(before, trusted):
            break
    turned = _rotated_rows(X, X[trusted], Y[trusted])
    for fold in np.array_split(np.random.default_rng(0).permutation(trusted), min(FOLDS, len(trusted))):
        others = np.setdiff1d(trusted, fold)
        turned[fold] = _rotated_rows(X[fold], X[others], Y[others])
    return Audit(turned @ Y.T, false_share)


def _rotated_rows(rows: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    left, values, right = Engine().svd(X.T @ Y)
    known = values > _SILENT * values[0]
    turned = rows @ (left[:, known] @ right[known])
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    return np.divide(turned, lengths, out=np.zeros_like(turned), where=lengths > 0)
