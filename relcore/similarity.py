"""Similarities of points to anchors: the coordinate functions of a relative space. Larger always means more similar.

A new similarity is a subclass of `Similarity` with a `between`, and a line in `relcore.names.SIMILARITIES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from relcore.estimator import need_finite
from relcore.magnitude import centred, sized, spread_and_offset
from relcore.spaces import SpaceError

_ROUNDED = 2.0**-17  # of the spread: a shift of the mean by less changes no score by more than 1e-5
ROWS_PER_BLOCK = 4096  # 4,096 × 300 float32 is 5 MB: a block stays in cache between its passes


def row_blocks(n_rows: int, size: int = ROWS_PER_BLOCK) -> Iterator[slice]:
    """Slices that cut n rows into blocks of at most `size`."""
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def mean_row(X: np.ndarray) -> np.ndarray:
    """(n, d) → (d,), summed in float64: float32 sums of many rows lose digits, which matters for shifted spaces.

    As float32, unless its rounding is a noticeable part of the spread of the rows.
    """
    mean = X.mean(axis=0, dtype=np.float64)
    kept = mean.astype(np.float32)
    spread, _ = spread_and_offset(X, mean)
    return mean if np.linalg.norm(kept - mean) > _ROUNDED * spread > 0 else kept


def unit_rows(X: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """Rows of X, less the mean if one is given, scaled to length 1; a zero row stays zero. (n, d) → (n, d) float32."""
    rows, factors = sized(np.array(X, dtype=np.float32) if mean is None else np.asarray(X), mean)
    rows *= factors[:, None]
    return rows


def inverse_norms(rows: np.ndarray) -> np.ndarray:
    """1 / length of each row, 0 for a zero row, (n,)."""
    norms = np.sqrt(np.vecdot(rows, rows))
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)


def project_directions(X: np.ndarray, basis: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """Unit rows of X − mean times a basis, (n, d) × (d, k) → (n, k) float32.

    The product comes first and its rows are scaled afterwards, in place and block by block: that leaves one matrix product
    and passes over memory that is still in cache. With unit columns in the basis this is the cosine to each of them. Blocks
    are large, since a product waits for all its threads, and are centred in one buffer, since new memory costs as much.
    """
    out = np.empty((len(X), basis.shape[1]), dtype=np.float32)
    buffer = None if mean is None else np.empty((min(len(X), 2 * ROWS_PER_BLOCK), X.shape[1]), dtype=np.float32)
    for block in row_blocks(len(X), 2 * ROWS_PER_BLOCK):
        rows, factors = sized(X[block], mean, None if mean is None else buffer[: block.stop - block.start])
        np.matmul(rows, basis, out=out[block])
        out[block] *= factors[:, None]
    return out


def cosine(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Cosine between each row and each anchor, −1 … 1; 0 where either is a zero vector. (n, d), (k, d) → (n, k)."""
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
    """−‖x − a‖₂, at most 0. Keeps rotations, reflections and shifts; scales with the space. (n, d), (k, d) → (n, k)."""
    return negative_distance(X, anchors, "euclidean")


def l1(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """−‖x − a‖₁, at most 0. Keeps shifts only: it depends on the axes. (n, d), (k, d) → (n, k)."""
    return negative_distance(X, anchors, "cityblock")


def negative_distance(X: np.ndarray, anchors: np.ndarray, metric: str) -> np.ndarray:
    """Less the distance of each row to each anchor, by a metric of SciPy's, in float64: (n, d), (k, d) → (n, k) float32."""
    from scipy.spatial.distance import cdist

    out = np.empty((len(X), len(anchors)), dtype=np.float32)
    for block in row_blocks(len(X)):
        with np.errstate(over="ignore"):
            np.negative(cdist(X[block], anchors, metric), out=out[block], casting="same_kind")
        if np.isneginf(out[block]).any() and np.isfinite(X[block]).all():
            raise SpaceError(f"{metric}: expected distances up to 3.4e38, as float32 holds them; divide the vectors by 1e3")
    return out


class Quantiser:
    """Replace unit vectors by the centroid of their cluster (Moschella et al. 2023, Fig. 7; their code).

    Ward clustering, cut at Euclidean distance `threshold` (theirs: 1, 1.5, 2), over the fitted rows and the anchors together.
    Ward's memory grows with the square of the rows, so at most `max_rows` are clustered, the anchors among them; every
    other row joins the nearest centroid.
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
        room = max(self.max_rows - len(anchors), 1)
        if len(X) > room:
            X = X[np.random.default_rng(self.random_state).choice(len(X), room, replace=False)]
        rows = np.concatenate([anchors, X])
        clustering = AgglomerativeClustering(n_clusters=None, linkage="ward", distance_threshold=self.threshold).fit(rows)
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


def rows_among(X: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which rows of X (n, d) are rows of `others` (k, d), to the last bit of float32: (n,) bool."""
    known = {row.tobytes() for row in np.ascontiguousarray(others, dtype=np.float32)}
    return np.fromiter((row.tobytes() in known for row in np.ascontiguousarray(X, dtype=np.float32)), bool, len(X))


def whitener(unit_anchors: np.ndarray, ridge: float) -> np.ndarray:
    """(K + ridge · I)^(−1/2), the symmetric root, K = A Aᵀ; (k, d) → (k, k) float32, worked out in float64."""
    anchors = unit_anchors.astype(np.float64)
    eigenvalues, eigenvectors = np.linalg.eigh(anchors @ anchors.T)
    scales = 1 / np.sqrt(np.maximum(eigenvalues, 0) + ridge)
    return ((eigenvectors * scales) @ eigenvectors.T).astype(np.float32)


class Similarity:
    """How alike each row is to each anchor, as `RelativeProjection` asks for it.

    Attributes
    ----------
    anchors_ : array (k, d)
        As `between` takes them: less the mean, where there is one.
    """

    whitens = False  # whether it is an inner product, which whitening needs

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
    whitens = True

    def fit(self, X: np.ndarray, anchors: np.ndarray, mean: np.ndarray | None, settings: Any) -> Self:
        self.anchors_ = unit_rows(anchors, mean)
        self.basis_ = self.anchors_.T @ whitener(self.anchors_, settings.ridge) if settings.whiten else self.anchors_.T
        return self

    def relative(self, X: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
        return project_directions(X, self.basis_, mean)


class Angular(Cosine):
    whitens = False

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
