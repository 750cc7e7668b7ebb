"""Principal axes of rows, and the maps that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.names import REDUCTIONS
from relcore.base.rows import DerivedRows, centred, mean_row
from relcore.base.settings import check, setting
from relcore.engine.engine import Engine


@dataclass(frozen=True)
class ReductionSpec:
    """The settings of a dimension reduction. All fields are plain JSON values.

    Attributes
    ----------
    method : "pca", "umap", "umap-gpu", "tsne" or "tsne-gpu"
        Methods with "-gpu" use TorchDR, which is quick on a GPU. Its maps differ from those of umap-learn and
        openTSNE.
    n_components : 2 or 3
    fit : "apart" or "first"
        "apart" makes a separate map for each space. "first" puts all spaces on the map of the first one, so
        that distances *between* spaces have a meaning (Moschella et al. 2023, Fig. 5).
    align : bool
        Whether all other maps are rotated, mirrored and scaled onto the first one, for display only (see
        `relcore.represent.translation.align`).
    n_neighbors, min_dist : int, float
        Settings of UMAP. `n_neighbors` is reduced to n − 1.
    perplexity : float
        A setting of t-SNE. It is reduced to (n − 1) / 3.
    metric : "cosine" or "euclidean"
        The metric of UMAP and t-SNE; PCA is always Euclidean.
    max_points : int
        The largest number of rows that t-SNE draws. They are a random sample; all other rows are NaN.
    random_state : int
        If there are more than 50,000 rows, it also draws those on which UMAP is fitted.
    """

    method: str = setting("pca", choices=REDUCTIONS)
    n_components: int = setting(2, choices=(2, 3))
    fit: str = setting("apart", choices=("apart", "first"))
    align: bool = False
    n_neighbors: int = setting(15, low=2)
    min_dist: float = setting(0.1, low=0, high=1)
    perplexity: float = setting(30.0, above=0)
    metric: str = setting("cosine", choices=("cosine", "euclidean"))
    max_points: int = setting(5_000, low=3)
    random_state: int = setting(0, low=0, high=2**32 - 1)

    __post_init__ = check


def need_drawable(shapes: Sequence[tuple[int, ...]], spec: ReductionSpec) -> None:
    """Raise those errors of `reduce_spaces` that follow from the shapes alone."""
    if spec.method == "pca":
        n_columns = 1
    else:
        n_columns = spec.n_components
    remedy = "take more rows or anchors"
    if n_columns > 1:
        remedy = "take more rows or anchors, or method 'pca'"
    for i, shape in enumerate(shapes, 1):
        if len(shape) != 2 or shape[0] < 3 or shape[1] < n_columns:
            raise SpaceError(
                f"space {i}: expected at least 3 rows, and {n_columns} or more columns for"
                f" {spec.n_components} components by {REDUCTIONS[spec.method].title}, got shape {shape};"
                f" {remedy}"
            )
    widths = [width for _, width in shapes]
    if spec.fit == "first" and len(set(widths)) > 1:
        raise SpaceError(
            f"fit='first': expected spaces of equal width, got {', '.join(map(str, widths))}; use"
            " fit='apart', or the relative spaces, whose width is the number of anchors"
        )


# PCA in blocks of rows: one pass computes moments, and a second pass computes scores.

_RANK = 1e-5  # length of an axis as a share of the longest; shorter axes are rounding errors
SAMPLED_ROWS = 50_000
MOST_PRODUCTS = 2e10


def principal_axes(scatter: np.ndarray, n_components: int, basis: np.ndarray | None = None) -> np.ndarray:
    """The principal axes (d, c) of rows with this scatter matrix (d, d), by descending variance. Each has
    length 1; axes beyond the rank are zero. With a `basis` B (d, k), the axes (k, c) of the product of these
    rows and B."""
    if basis is not None and basis.shape[1] <= basis.shape[0]:
        scatter = Engine().product(basis.T, Engine().product(scatter, basis))
        basis = None
    if basis is None:
        leading = Engine().eigh(scatter)[1][:, : -n_components - 1 : -1]
        return np.pad(leading, ((0, 0), (0, n_components - leading.shape[1])))
    # For a wide basis B, a smaller matrix (d, d) has the same eigenvalues: Lᵀ B Bᵀ L, where L Lᵀ is the
    # scatter matrix.
    values, vectors = Engine().eigh(scatter)
    mixed = Engine().product(basis.T, vectors * np.sqrt(np.maximum(values, 0)))
    return _unit_axes(mixed @ principal_axes(Engine().product(mixed.T, mixed), n_components))


_MORE = 14  # number of additional axes, with which the iteration ends earlier
_DIRECT = 96  # up to this number of columns, a full decomposition is faster than the iteration
# maximum number of iterations; tolerance ÷ largest eigenvalue
_ITERATIONS = 40
_SETTLED = 1e-9


def leading_axes(scatter: np.ndarray, before: np.ndarray | None = None, n_components: int = 2) -> np.ndarray:
    """The first p ≥ `n_components` principal axes (k, p) of rows with this scatter matrix (k, k), by
    descending variance.

    If the matrix has changed little since the axes `before` were computed, subspace iteration from these axes
    needs only a few products and no decomposition. The signs of the axes are kept.
    """
    k = len(scatter)
    axes = None
    if before is not None and before.shape[0] == k > _DIRECT:
        axes = _iterate_subspace(scatter, before, n_components)
    if axes is None:
        axes = Engine("cpu").eigh(scatter)[1][:, : -n_components - _MORE - 1 : -1]
        axes = np.pad(axes, ((0, 0), (0, max(0, n_components - k))))
    if before is not None:
        shared = min(k, len(before)), min(axes.shape[1], before.shape[1])
        same = np.vecdot(axes[: shared[0], : shared[1]], before[: shared[0], : shared[1]], axis=0)
        axes[:, : shared[1]] *= np.where(same < 0, -1, 1)
    return axes


def _iterate_subspace(scatter: np.ndarray, axes: np.ndarray, n_components: int) -> np.ndarray | None:
    """The axes by subspace iteration with Rayleigh–Ritz steps (Golub and Van Loan, 8.2). None if the
    iteration does not converge.
    """
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(scatter @ (scatter @ axes))[0]
        moved = scatter @ basis
        values, turn = np.linalg.eigh(basis.T @ moved)
        axes = basis @ turn[:, ::-1]
        moved = moved @ turn[:, ::-1]
        values = values[::-1]
        rest = (moved - axes * values)[:, :n_components]
        if np.linalg.norm(rest) <= _SETTLED * values[0]:
            return axes
    return None


def _unit_axes(axes: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(axes, axis=0)
    return np.where(norms > _RANK * norms[0], axes, 0) / np.maximum(norms, np.finfo(float).tiny)


def axis_signs(scores: np.ndarray) -> np.ndarray:
    """For each column, the sign that makes its score farthest from zero positive, (c,). Thus equal maps get
    equal signs, although the signs of eigenvectors are arbitrary."""
    return np.where(-scores.min(axis=0) > scores.max(axis=0), -1, 1).astype(np.float32)


def fitted_rows(n: int, width: int, random_state: int = 0) -> np.ndarray:
    """The numbers of the rows on which axes are fitted, ascending: all n rows, or a random sample if that
    would take too long."""
    most = SAMPLED_ROWS
    if float(n) * width * width <= MOST_PRODUCTS:
        most = n
    return random_rows(n, most, random_state)


def random_rows(n: int, most: int, random_state: int) -> np.ndarray:
    """At most `most` of the row numbers 0 … n − 1, drawn at random, ascending."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))


class PrincipalAxes(NamedTuple):
    """A mean (d,) and axes (d, c). Call it with rows (n, d) to compute their coordinates (n, c)."""

    mean: np.ndarray
    axes: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return Engine().map_rows(rows, self.axes, mean=self.mean)


def principal_map(first: np.ndarray, spec: ReductionSpec) -> tuple[np.ndarray, PrincipalAxes]:
    """Return the scores (n, c) of the rows on the leading eigenvectors of their covariance, and the
    `PrincipalAxes`, which give the scores of other rows. `axis_signs` decides the signs."""
    n, d = first.shape
    need_drawable([first.shape], spec)
    mean = mean_row(first)
    engine = Engine()
    if d <= n:
        fitted = fitted_rows(n, d, spec.random_state)
        if len(fitted) == n:
            rows = first
        else:
            rows = DerivedRows(first, np.asarray, fitted)
        axes = principal_axes(engine.moments(rows).products, spec.n_components)
    else:
        # If there are fewer rows than columns, the axes are computed from the inner products of the rows, (n,
        # n).
        moved = centred(first, mean)
        leading = principal_axes(engine.product(moved, moved.T, np.float32), spec.n_components)
        axes = _unit_axes(moved.T.astype(np.float64) @ leading)
    picture = engine.map_rows(first, axes, mean=mean)
    signs = axis_signs(picture)
    return picture * signs, PrincipalAxes(mean, axes * signs)


FITTED_ROWS = 50_000


def is_tsne(spec: ReductionSpec) -> bool:
    return spec.method in ("tsne", "tsne-gpu")


def n_fitted(n: int, spec: ReductionSpec) -> int:
    """The number of n rows on which UMAP is fitted; n for other methods."""
    if spec.method in ("umap", "umap-gpu"):
        return min(n, FITTED_ROWS)
    return n


def sampled_rows(n: int, spec: ReductionSpec) -> np.ndarray:
    """The numbers of the drawn rows, ascending: all n rows, or for t-SNE a random sample of at most
    `max_points`."""
    return random_rows(n, spec.max_points if is_tsne(spec) else n, spec.random_state)
