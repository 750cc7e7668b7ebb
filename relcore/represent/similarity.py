"""Similarities of rows to anchors. A larger number means more similar.

To add a similarity, write a class here, and add a line to `SIMILARITIES` in `relcore.base.names`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np

from relcore.base.arguments import need_number
from relcore.base.errors import SpaceError
from relcore.base.rows import centred, mean_row, row_blocks, unit_rows
from relcore.engine.engine import Engine
from relcore.engine.nearest import nearest
from relcore.represent.estimator import need_finite
from relcore.spaces.space import LatentSpace

_means: WeakKeyDictionary[LatentSpace, np.ndarray] = WeakKeyDictionary()


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
    known = {bytes(row) for row in np.ascontiguousarray(others, dtype=np.float32)}
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
        compute: Callable[[bytes, tuple[int, ...]], AnchorAxes] = _anchor_axes
        if anchors.size > _KEPT_AXES:
            compute = _anchor_axes.__wrapped__
        return compute(anchors.tobytes(), anchors.shape)


_NO_AXIS = 1e-12  # singular values below this share of the largest are rounding errors
_KEPT_AXES = 2**19  # maximum number of values in anchors whose axes are cached; 16 sets take 10 MB each


@lru_cache(maxsize=16)
def _anchor_axes(content: bytes, shape: tuple[int, ...]) -> AnchorAxes:
    """The decomposition, from the eigenvectors of A Aᵀ or AᵀA, whichever is smaller. This takes a third of
    the time of an SVD. Axes with small singular values are inexact, but are always multiplied by these
    values."""
    A = np.frombuffer(content, dtype=np.float32).reshape(shape).astype(np.float64)
    is_wide = len(A) <= A.shape[1]
    wide = A if is_wide else A.T
    known = Engine().eigh(wide @ wide.T)[1][:, ::-1]
    other = wide.T @ known
    stretch = np.linalg.norm(other, axis=0)
    stretch[stretch <= _NO_AXIS * stretch.max(initial=0)] = 0
    other = np.divide(other, stretch, out=np.zeros_like(other), where=stretch > 0)
    if is_wide:
        axes = AnchorAxes(known, stretch, other)
    else:
        axes = AnchorAxes(other, stretch, known)
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
