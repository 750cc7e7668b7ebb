"""Similarities of points to anchors: the coordinate functions of a relative space. Larger always means more
similar.

A new similarity is a subclass of `Similarity` with a `between`, and a line in
`relcore.base.names.SIMILARITIES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.magnitude import centred, sized, spread_and_offset
from relcore.represent.estimator import need_finite
from relcore.spaces.space import LatentSpace

_ROUNDED = 2.0**-17  # of the spread: a shift of the mean by less changes no score by more than 1e-5
ROWS_PER_BLOCK = 4096  # 4,096 × 300 float32 is 5 MB: a block stays in cache between its passes
_IN_CACHE = 2**17  # numbers: half a megabyte
_NO_AXIS = 1e-12  # of the largest singular value: below, an axis is nothing but rounding
_means: WeakKeyDictionary[LatentSpace, np.ndarray] = WeakKeyDictionary()
_KEPT_AXES = 2**19  # numbers in a set of anchors whose axes are kept: 10 MB with them, of at most 16 sets


def row_blocks(n_rows: int, size: int = ROWS_PER_BLOCK) -> Iterator[slice]:
    """Slices that cut n rows into blocks of at most `size`."""
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def mean_row(X: np.ndarray) -> np.ndarray:
    """(n, d) → (d,), summed in float64: float32 sums of many rows lose digits, which matters for shifted
    spaces.

    As float32, unless its rounding is a noticeable part of the spread of the rows.
    """
    return rounded_mean(X.mean(axis=0, dtype=np.float64), X)


def mean_of(space: LatentSpace) -> np.ndarray:
    """`mean_row` of the vectors of a space, (d,), read-only: found once, as a pass over many rows takes as
    long as a search.
    """
    found = _means.get(space)
    if found is None:
        found = _means[space] = mean_row(space.vectors)
        found.flags.writeable = False
    return found


def rounded_mean(mean: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The mean (d,) as float32, or float64 where its rounding is a noticeable part of the spread of rows
    X, or of a sample.
    """
    kept = mean.astype(np.float32)
    spread, _ = spread_and_offset(X, mean)
    return mean if np.linalg.norm(kept - mean) > _ROUNDED * spread > 0 else kept


def unit_rows(X: np.ndarray, mean: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
    """Rows of X, less the mean if one is given, scaled to length 1; a zero row stays zero. (n, d) → (n, d)
    float32, into `out` where it is given.
    """
    out = np.empty(X.shape, dtype=np.float32) if out is None else out
    for part in row_blocks(len(X), max(1, _IN_CACHE // max(X.shape[1], 1))):
        rows = X[part] if mean is not None else np.asarray(X[part], dtype=np.float32)
        rows, factors = sized(rows, mean, out[part])
        np.multiply(rows, factors[:, None], out=out[part])
    return out


def inverse_norms(rows: np.ndarray) -> np.ndarray:
    """1 / length of each row, 0 for a zero row, (n,)."""
    norms = np.sqrt(np.vecdot(rows, rows))
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)


def project_directions(X: np.ndarray, basis: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """Unit rows of X − mean times a basis, (n, d) × (d, k) → (n, k) float32.

    The rows are centred and scaled in one buffer, a part at a time that stays in cache, and the product of
    the buffer is the result: no pass over the result, and no new memory, which costs as much as a pass. Its
    blocks are large, since a product waits for all its threads. With unit columns in the basis this is the
    cosine to each of them.
    """
    out = np.empty((len(X), basis.shape[1]), dtype=np.float32)
    buffer = np.empty((min(len(X), 2 * ROWS_PER_BLOCK), X.shape[1]), dtype=np.float32)
    for block in row_blocks(len(X), 2 * ROWS_PER_BLOCK):
        rows = unit_rows(X[block], mean, buffer[: block.stop - block.start])
        np.matmul(rows, basis, out=out[block])
    return out


def cosine(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Cosine between each row and each anchor, −1 … 1; 0 where either is a zero vector. (n, d), (k, d) →
    (n, k).
    """
    return project_directions(X, unit_rows(anchors).T)


def angular(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """1 − angle / π, 0 … 1: the cosine on a scale that is a metric on the sphere. (n, d), (k, d) → (n, k)."""
    return angular_from_cosine(cosine(X, anchors))


def angular_from_cosine(cosines: np.ndarray) -> np.ndarray:
    """Cosines to 1 − angle / π, written over their own memory."""
    np.clip(cosines, -1, 1, out=cosines)
    np.arccos(cosines, out=cosines)
    cosines *= -1 / np.pi
    cosines += 1
    return cosines


def euclidean(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """−‖x − a‖₂, at most 0. Keeps rotations, reflections and shifts; scales with the space. (n, d), (k, d)
    → (n, k).
    """
    return negative_distance(X, anchors, "euclidean")


def l1(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """−‖x − a‖₁, at most 0. Keeps shifts only: it depends on the axes. (n, d), (k, d) → (n, k)."""
    return negative_distance(X, anchors, "cityblock")


def negative_distance(X: np.ndarray, anchors: np.ndarray, metric: str) -> np.ndarray:
    """Less the distance of each row to each anchor, by a metric of SciPy's, in float64: (n, d), (k, d) →
    (n, k) float32.
    """
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


class Quantiser:
    """Replace unit vectors by the centroid of their cluster (Moschella et al. 2023, Fig. 7; their code).

    Ward clustering, cut at Euclidean distance `threshold` (theirs: 1, 1.5, 2), over the fitted rows and the
    anchors together. Ward's memory grows with the square of the rows, so at most `max_rows` are clustered,
    the anchors among them; every other row joins the nearest centroid.
    """

    def __init__(self, threshold: float = 1.5, max_rows: int = 4096, random_state: int = 0) -> None:
        self.threshold = threshold
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: np.ndarray, anchors: np.ndarray) -> Quantiser:
        """Find the centroids (c, d) of unit rows X (n, d) and unit anchors (k, d)."""
        from sklearn.cluster import AgglomerativeClustering

        if not 0 < self.threshold < np.inf:
            raise SpaceError(f"threshold: expected a distance above 0, got {self.threshold}")
        X = X[clustered_rows(len(X), len(anchors), self.max_rows, self.random_state)]
        rows = np.concatenate([anchors, X])
        clustering = AgglomerativeClustering(
            n_clusters=None, linkage="ward", distance_threshold=self.threshold
        ).fit(rows)
        sums = np.zeros((clustering.n_clusters_, rows.shape[1]))
        np.add.at(sums, clustering.labels_, rows)
        self.centroids_ = (sums / np.bincount(clustering.labels_)[:, None]).astype(np.float32)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The nearest centroid of each row, (n, d) → (n, d)."""
        offsets = np.einsum("ij,ij->i", self.centroids_, self.centroids_) / 2
        nearest = np.empty(len(X), dtype=np.int64)
        for block in row_blocks(len(X)):
            nearest[block] = np.argmax(X[block] @ self.centroids_.T - offsets, axis=1)
        return self.centroids_[nearest]


def clustered_rows(n: int, n_anchors: int, max_rows: int = 4096, random_state: int = 0) -> np.ndarray:
    """The rows of n that a `Quantiser` clusters beside the anchors, in its order: all, where they are few;
    (m,).
    """
    room = max(max_rows - n_anchors, 1)
    return np.random.default_rng(random_state).choice(n, room, replace=False) if n > room else np.arange(n)


def rows_among(X: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which rows of X (n, d) are rows of `others` (k, d), to the last bit of float32: (n,) bool."""
    known = {row.tobytes() for row in np.ascontiguousarray(others, dtype=np.float32)}
    return np.fromiter(
        (row.tobytes() in known for row in np.ascontiguousarray(X, dtype=np.float32)), bool, len(X)
    )


@dataclass(frozen=True, eq=False)
class AnchorAxes:
    """The singular values and vectors of unit anchors A (k, d) = P S Qᵀ, w = min(k, d), in float64 and
    read-only.

    Attributes
    ----------
    basis : array (k, w), P
    stretch : array (w,), S, about largest first
    turn : array (d, w), Q
    """

    basis: np.ndarray
    stretch: np.ndarray
    turn: np.ndarray

    @classmethod
    def of(cls, unit_anchors: np.ndarray) -> AnchorAxes:
        """Of a small set they are kept: maps, scores and differences of one set ask for them one after the
        other.
        """
        anchors = np.ascontiguousarray(unit_anchors, dtype=np.float32)
        return (
            _kept_axes(anchors.tobytes(), anchors.shape)
            if anchors.size <= _KEPT_AXES
            else cls._found(anchors)
        )

    @classmethod
    def _found(cls, anchors: np.ndarray) -> AnchorAxes:
        """From the smaller of A Aᵀ and AᵀA, in a third of the time of a singular value decomposition. Axes
        with a small s are then inexact, but only to rounding once they are multiplied by it, as they are in
        every use."""
        A = anchors.astype(np.float64)
        wide = A if len(A) <= A.shape[1] else A.T
        _, known = np.linalg.eigh(wide @ wide.T)
        known = known[:, ::-1]
        found = wide.T @ known
        stretch = np.linalg.norm(found, axis=0)
        stretch[stretch <= _NO_AXIS * stretch.max(initial=0)] = 0
        found = np.divide(found, stretch, out=np.zeros_like(found), where=stretch > 0)
        axes = cls(*((known, stretch, found) if wide is A else (found, stretch, known)))
        for array in (axes.basis, axes.stretch, axes.turn):
            array.flags.writeable = False
        return axes


@lru_cache(maxsize=16)
def _kept_axes(content: bytes, shape: tuple[int, int]) -> AnchorAxes:
    return AnchorAxes._found(np.frombuffer(content, dtype=np.float32).reshape(shape))


def whitener(unit_anchors: np.ndarray, ridge: float) -> np.ndarray:
    """(K + ridge · I)^(−1/2), the symmetric root, K = A Aᵀ; (k, d) → (k, k) float32, worked out in
    float64.
    """
    axes, rest = AnchorAxes.of(unit_anchors), 1 / np.sqrt(ridge)  # of the directions in which K is 0
    root = (axes.basis * (1 / np.sqrt(axes.stretch**2 + ridge) - rest)) @ axes.basis.T
    root[np.diag_indices_from(root)] += rest
    return root.astype(np.float32)


class Similarity:
    """How alike each row is to each anchor, as `RelativeProjection` asks for it.

    Attributes
    ----------
    anchors_ : array (k, d)
        As `between` takes them: less the mean, where there is one.
    """

    whitens = False  # whether it is an inner product, which whitening needs
    linear = False  # whether `relative` is the directions of the rows times `basis_` (d, k)

    def fit(self, X: np.ndarray, anchors: np.ndarray, mean: np.ndarray | None, settings: Any) -> Self:
        """Keep the anchors (k, d) of the space X (n, d); `settings` is the `RelativeProjection`."""
        self.anchors_ = centred(anchors, mean)
        return self

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        """Rows X (m, d), not yet centred, to the anchors: (m, k)."""
        return self.between(centred(X, mean), self.anchors_)

    def between(self, X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
        """Of centred rows and centred anchors, (m, d), (k, d) → (m, k)."""
        raise NotImplementedError


class Cosine(Similarity):
    whitens = linear = True

    def fit(self, X: np.ndarray, anchors: np.ndarray, mean: np.ndarray | None, settings: Any) -> Self:
        self.anchors_ = unit_rows(anchors, mean)
        self.basis_ = (
            self.anchors_.T @ whitener(self.anchors_, settings.ridge) if settings.whiten else self.anchors_.T
        )
        return self

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        return project_directions(X, self.basis_, mean)


class Angular(Cosine):
    whitens = linear = False

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        return angular_from_cosine(super().relative(X, mean))


class Euclidean(Similarity):
    def between(self, X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
        return euclidean(X, anchors)


class L1(Similarity):
    def between(self, X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
        return l1(X, anchors)


class Quantised(Similarity):
    """Inner product of the centroids of rows and anchors (Moschella et al. 2023, Fig. 7), see `Quantiser`."""

    def fit(self, X: np.ndarray, anchors: np.ndarray, mean: np.ndarray | None, settings: Any) -> Self:
        self.anchors_ = unit_rows(anchors, mean)
        self.quantiser_ = Quantiser(settings.threshold).fit(unit_rows(X, mean), self.anchors_)
        return self

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        need_finite(X)  # a centroid is finite, whatever its row is
        return self.quantiser_.transform(unit_rows(X, mean)) @ self.quantiser_.transform(self.anchors_).T
