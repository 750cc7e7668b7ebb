"""PCA in blocks of rows: moments in one pass, axes from the moments, scores in another pass. No copy of the
rows is made.

The rows of a relative space by cosine are R = U B: U (n, d) the directions of the rows, B (d, k) those of the
anchors, whitened or not. The moments of R follow from those of U, which do not depend on the anchors, and its
scores are U (B V) with the axes V. So one more anchor costs eigenvectors of a (d, d) or (k, k) matrix and a
product of (n, d) with (d, c); R is never formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relcore.base.magnitude import centred
from relcore.represent.similarity import mean_row, project_directions, row_blocks, unit_rows

_RANK = 1e-5  # of the longest axis: a shorter one is rounding
SAMPLED_ROWS, MOST_PRODUCTS = 50_000, 2e10  # the latter takes half a second of a processor core


@dataclass(frozen=True, eq=False)
class Moments:
    """Of n rows the mean (d,) and the scatter Σ (x − mean)(x − mean)ᵀ (d, d), both float64."""

    n: int
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, blocks: Iterator[np.ndarray], origin: np.ndarray | None = None) -> Moments:
        """Of the rows of one or more blocks (m, d) float32, each multiplied as float32 and summed as float64.

        Products of rows less `origin`, by default the mean of the first block, keep digits where the rows lie
        far from zero.
        """
        n, total, scatter = 0, 0.0, 0.0
        for block in blocks:
            origin = mean_row(block) if origin is None else origin
            moved = centred(block, origin)
            n += len(moved)
            total = total + moved.sum(axis=0, dtype=np.float64)
            scatter = scatter + (moved.T @ moved).astype(np.float64)
        offset = total / n
        return cls(n, origin + offset, scatter - n * np.outer(offset, offset))

    def axes(self, n_components: int, basis: np.ndarray | None = None) -> np.ndarray:
        """The leading axes of the rows (d, c), of length 1; zero where there are no more columns, or beyond
        the rank.

        With a `basis` B (d, k) those of the rows times B, (k, c).
        """
        if basis is None:
            return leading_axes(self.scatter, n_components)
        basis = np.asarray(basis, dtype=np.float64)
        if basis.shape[1] <= basis.shape[0]:
            return leading_axes(basis.T @ self.scatter @ basis, n_components)
        # The same eigenvalues by a matrix (d, d): those of Lᵀ B Bᵀ L, where the scatter is L Lᵀ.
        values, vectors = np.linalg.eigh(self.scatter)
        mixed = basis.T @ (vectors * np.sqrt(np.maximum(values, 0)))
        return unit_axes(mixed @ leading_axes(mixed.T @ mixed, n_components))


def leading_axes(scatter: np.ndarray, n_components: int) -> np.ndarray:
    """The eigenvectors (d, c) of the largest eigenvalues of a symmetric matrix (d, d), largest first."""
    # NumPy's eigh finds all eigenvectors where SciPy's could stop at the last few, but SciPy takes longer to
    # import than both.
    leading = np.linalg.eigh(scatter)[1][:, : -n_components - 1 : -1]
    return np.pad(
        leading, ((0, 0), (0, n_components - leading.shape[1]))
    )  # fewer columns than components: zeros


def unit_axes(axes: np.ndarray) -> np.ndarray:
    """The columns scaled to length 1; zero those that are rounding beside the first."""
    lengths = np.linalg.norm(axes, axis=0)
    return np.where(lengths > _RANK * lengths[0], axes, 0) / np.maximum(lengths, np.finfo(float).tiny)


def facing(scores: np.ndarray) -> np.ndarray:
    """A sign per column (c,) that makes its score farthest from zero positive: this survives a rotation of
    the space.
    """
    return np.where(-scores.min(axis=0) > scores.max(axis=0), -1, 1).astype(np.float32)


def fitted_rows(n: int, width: int, random_state: int = 0) -> np.ndarray:
    """The rows of n that axes are fitted on, ascending: all, or a random sample where their products would
    take long.
    """
    if n <= SAMPLED_ROWS or float(n) * width * width <= MOST_PRODUCTS:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, SAMPLED_ROWS, replace=False))


def blocks_of(X: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """These rows of X (n, d) in blocks (m, d); views where they are all rows."""
    for block in row_blocks(len(rows)):
        yield X[block] if len(rows) == len(X) else X[rows[block]]


def direction_moments(
    X: np.ndarray, rows: np.ndarray, mean: np.ndarray | None, random_state: int = 0
) -> Moments:
    """Moments of the directions of X − mean, of these rows or of a sample of them, see `fitted_rows`."""
    fitted = rows[fitted_rows(len(rows), X.shape[1], random_state)]
    return Moments.of(unit_rows(block, mean) for block in blocks_of(X, fitted))


def direction_scores(
    X: np.ndarray, rows: np.ndarray, mean: np.ndarray | None, weights: np.ndarray, offset: np.ndarray
) -> np.ndarray:
    """Of these rows the directions of X − mean, times weights (d, c), less an offset (c,): (m, c) float32."""
    scores, start = np.empty((len(rows), weights.shape[1]), dtype=np.float32), 0
    weights, offset = weights.astype(np.float32), offset.astype(np.float32)
    for block in blocks_of(X, rows):
        np.subtract(project_directions(block, weights, mean), offset, out=scores[start : start + len(block)])
        start += len(block)
    return scores
