"""Measures from the literature: functions of two matrices with paired rows. They use a sample of the rows,
drawn by their ids. Their chance level comes from permutations of the rows of one space.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ClassVar, ParamSpec

import numpy as np

from relcore.base.arguments import need_number, need_whole
from relcore.base.errors import SpaceError
from relcore.engine.engine import thin_svd
from relcore.scores.cka import linear_cka
from relcore.scores.comparison import AlignedPair, LinearCKA, Metric
from relcore.scores.neighbours import PERMUTATIONS, Neighbours, find_neighbours, jaccard_rows
from relcore.scores.score import QUANTILE_DRAWS, ChanceLevel, Score
from relcore.spaces.space import MatrixLike, checked_names, ids_of, paired_matrices
from relcore.spaces.split import Split

FEATURE_ROWS = 5000  # maximum number of rows for measures whose cost is linear in the rows
MATRIX_ROWS = 1000  # maximum number of rows for measures that need a matrix of rows × rows
_CHEAP = 2e7  # maximum number of products for which 200 permutations are drawn instead of 50
_most_permutations = ContextVar("most_permutations", default=QUANTILE_DRAWS)


class SampledMetric(Metric):
    """A `Metric` whose score comes from a public `function` of the form ``(source, target, ids=…)`` → Score.
    With `uses_k`, the function gets the number of neighbours k."""

    function: ClassVar[Callable[..., Score]]
    uses_k: ClassVar[bool] = False

    def score(self, pair: AlignedPair) -> Score | None:
        settings = {"k": pair.k} if self.uses_k else {}
        ids = pair.split.ids[pair.split.test]
        # `__wrapped__` leaves the note out, because a table has it once for all scores.
        function = type(self).function
        score = getattr(function, "__wrapped__", function)(pair.source, pair.target, ids=ids, **settings)
        if score.n < len(ids):
            score.drawn_from = len(ids)
        return score


def metric_of(
    function: Callable[..., Score], *unchanged_by: str, uses_k: bool = False
) -> type[SampledMetric]:
    """Make a metric of a public measure. `unchanged_by` lists the changes of one space that leave its score
    unchanged."""
    facts = {"function": staticmethod(function), "unchanged_by": unchanged_by, "uses_k": uses_k}
    return type(function.__name__, (SampledMetric,), facts)


_Given = ParamSpec("_Given")


def public_measure(function: Callable[_Given, Score]) -> Callable[_Given, Score]:
    """A decorator of a measure: the front door of its arguments. Both spaces become row-aligned arrays of
    finite numbers (see `paired_matrices`), and `ids` are checked; by default, they are those of the source.
    The score gets a note if it was computed from only a sample of the rows.

    Code that has such arrays calls `function.__wrapped__`.
    """

    @wraps(function)
    def guarded(*given: _Given.args, **settings: _Given.kwargs) -> Score:
        of: Any = inspect.signature(function).bind(*given, **settings).arguments
        of = dict(of)
        source, target = of.pop("source"), of.pop("target")
        sides = paired_matrices(source, target, ("source", "target"))
        n = len(sides[0])
        ids = checked_names(of.pop("ids", None), n)
        score = function(*sides, ids=ids_of(source) if ids is None else ids, **of)
        if score.n < n:
            score.drawn_from = n
            sample = f"{score.n:,} of {n:,} rows, drawn by their ids; most_rows=None takes all."
            score.note = f"{sample} {score.note}".rstrip()
        return score

    return guarded


def paired_rows(
    source: np.ndarray, target: np.ndarray, most_rows: int | None, ids: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows of both row-aligned spaces, (m, d_source) and (m, d_target) in float64. If there are more
    than `most_rows`, this many are drawn by a hash of their ids (default: their numbers), so that adding a
    row to the spaces replaces at most one drawn row.

    Raises
    ------
    SpaceError
        Fewer than four rows; a space whose rows are all equal; an invalid `most_rows`.
    """
    if len(source) < 4:
        raise SpaceError(f"expected at least 4 rows, got {len(source)}")
    rows = slice(None)
    if most_rows is not None:
        need_whole("most_rows", most_rows, 4)
    if most_rows is not None and len(source) > most_rows:
        if ids is None:
            names = np.arange(len(source)).astype(str)
        else:
            names = np.asarray(ids)
        rows = Split.held_out(names).queries(most_rows)
    # BLAS sums rows of another memory layout, such as those of a DataFrame, to other last digits.
    sides = tuple(np.ascontiguousarray(side[rows], dtype=np.float64) for side in (source, target))
    if any((side == side[0]).all() for side in sides):
        raise SpaceError("expected spaces with different rows, got one whose rows are all equal")
    return sides


def about_mean(X: np.ndarray) -> np.ndarray:
    """The rows of X (n, d) minus their mean, scaled so that the sum of all squares is 1."""
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X)


def by_permutation(value: Callable[[np.ndarray], float], n: int, cost: float) -> ChanceLevel:
    """The chance level of a measure, from 50 permutations, or from 200 if these are cheap. ``value(order)``
    is the score if row order[i] of the second space is the partner of row i. It takes `cost` multiplications.
    """
    rng = np.random.default_rng(0)
    n_draws = min(QUANTILE_DRAWS if cost <= _CHEAP else PERMUTATIONS, _most_permutations.get())
    return ChanceLevel.from_draws(np.array([value(rng.permutation(n)) for _ in range(n_draws)]))


@contextmanager
def fewer_permutations(most: int) -> Iterator[None]:
    """Within the block, chance levels use at most this many permutations. Few are enough for the mean."""
    token = _most_permutations.set(most)
    try:
        yield
    finally:
        _most_permutations.reset(token)


def permuted(value: Callable[[Any], float], n: int, cost: float, **facts: Any) -> Score:
    """The score ``value(slice(None))`` of n rows, with a chance level from `by_permutation`."""
    return Score(value(slice(None)), n=n, null=by_permutation(value, n, cost), **facts)


def matrix_agreement(A: np.ndarray, B: np.ndarray, metric: str, convention: str = "") -> Score:
    """The cosine of two symmetric matrices (n, n) with paired rows, −1 … 1. For the chance level, the rows
    and columns of one matrix are permuted together (Mantel 1967)."""
    A, B = (side / np.linalg.norm(side) for side in (A, B))
    few_a = A.astype(np.float32)
    few_b = B.astype(np.float32)

    def value(order: np.ndarray) -> float:
        return float(np.vdot(few_a, few_b[order[:, None], order]))

    null = by_permutation(value, len(A), 8 * A.size)
    return Score(float(np.vdot(A, B)), metric=metric, convention=convention, n=len(A), null=null)


# Shape measures: the distance of the rows of two spaces after the best rotation.


@public_measure
def procrustes_similarity(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Procrustes similarity, 0 … 1. It is 1 if the spaces differ only by a rotation, a factor and a shift.

    It is the nuclear norm ‖XᵀY‖_* (the sum of the singular values) of the centred rows, where each space is
    scaled so that its squares add up to 1. If s is the score, the Procrustes distance is d = √(2 − 2 s)
    (Schönemann 1966; Ding et al. 2021, who give d²). Chance level: rows of one space permuted. Cost: 50 w²
    multiplications per row of w numbers, on at most `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import procrustes_similarity
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(procrustes_similarity(X, 3 * X @ rotation), 3)
    1.0
    """
    return _shape_score(source, target, "procrustes", most_rows, ids, lambda cosine: cosine)


@public_measure
def angular_shape(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Angular shape similarity 1 − 2 θ / π, 0 … 1. It is 1 if the spaces differ only by a rotation, a factor
    and a shift.

    Here θ = arccos ‖XᵀY‖_* of the centred rows, where each space is scaled so that its squares add up to 1. θ
    satisfies the triangle inequality (Williams et al. 2021). If s is the score, θ = (1 − s) π / 2. Chance
    level: rows of one space permuted. Cost: 50 d² multiplications per row of d numbers, on at most
    `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import angular_shape
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(angular_shape(X, 3 * X @ rotation), 3)
    1.0
    """
    return _shape_score(source, target, "angular shape", most_rows, ids, angular)


def angular(cosine: float) -> float:
    """The similarity 1 − 2 arccos(c) / π of a cosine c. If rounding makes c larger than 1, it counts as 1."""
    return 1 - 2 * float(np.arccos(np.clip(cosine, -1, 1))) / np.pi


def _shape_score(
    source: MatrixLike,
    target: MatrixLike,
    metric: str,
    most_rows: int | None,
    ids: Sequence[str] | None,
    of: Callable[[float], float],
) -> Score:
    X, Y = (about_mean(side) for side in paired_rows(source, target, most_rows, ids))

    def value(order: np.ndarray | slice) -> float:
        return of(float(np.linalg.svd(X.T @ Y[order], compute_uv=False).sum()))

    return permuted(value, len(X), X.size * Y.shape[1], metric=metric)


ProcrustesSimilarity = metric_of(procrustes_similarity, "rotation", "scale", "shift")


AngularShape = metric_of(angular_shape, "rotation", "scale", "shift")


# Measures with canonical correlations: SVCCA, PWCCA, and GULP, which has a ridge.

_REAL = 1e-10  # share of the largest variance; directions with less are rounding errors of float32


@public_measure
def svcca(
    source: MatrixLike,
    target: MatrixLike,
    *,
    share: float = 0.99,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """SVCCA, 0 … 1: the mean canonical correlation of the principal axes with 99 % of the variance. It is 1
    if the axes of each space are linear combinations of those of the other space.

    Let Uₓ (n, r) and Uᵧ (n, s) be the orthonormal principal components that hold `share` of the variance of
    the centred rows. The score is Σ ρᵢ / min(r, s), where ρ are the singular values of UₓᵀUᵧ (Raghu et al.
    2017). It needs many more rows than axes: if n is near r + s, it is near 1 for any data, as its chance
    level shows. Chance level: rows of one space permuted. Cost: d² + 50 r s multiplications per row of d
    numbers, on at most `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; a share outside 0 … 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import svcca
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(svcca(X, 3 * X @ rotation), 3)
    1.0
    """
    need_number("share", share, above=0, high=1)
    X, Y = paired_rows(source, target, most_rows, ids)
    (U, _), (V, _) = (_components(about_mean(side), share) for side in (X, Y))

    def value(order: np.ndarray | slice) -> float:
        return float(np.linalg.svd(U.T @ V[order], compute_uv=False).mean())

    return permuted(value, len(U), U.size * V.shape[1], metric="svcca", note=_few_rows(U, V))


@public_measure
def pwcca(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """PWCCA, 0 … 1: the mean canonical correlation, weighted by how much of one space each canonical variate
    accounts for. It is 1 if the narrower space is a linear map of the wider one.

    The score is Σ αᵢ ρᵢ / Σ αᵢ with αᵢ = Σⱼ abs⟨hᵢ, xⱼ⟩ over the columns xⱼ of the centred rows. hᵢ are the
    canonical variates, of length 1, of the space with fewer axes, or of the first space if both have the same
    number (Morcos et al. 2018); ρᵢ are the canonical correlations. The weights depend on the coordinates, so
    a rotation of that space changes them. This is the formula of the paper; the code of the authors leaves
    out the whitening in hᵢ. Chance level: rows of one space permuted. Cost: d² + 50 r s multiplications per
    row of d numbers, if the spaces have r and s axes, on at most `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import pwcca
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(pwcca(X, 3 * X @ rotation), 3)
    1.0
    """
    X, Y = (about_mean(side) for side in paired_rows(source, target, most_rows, ids))
    (U, _) = _components(X)
    (V, _) = _components(Y)
    if V.shape[1] < U.shape[1]:
        U, V, X = V, U, Y
    projected = U.T @ X

    def value(order: np.ndarray | slice) -> float:
        axes, correlations, _ = thin_svd(U.T @ V[order])
        return float(np.average(correlations, weights=np.abs(axes.T @ projected).sum(axis=1)))

    return permuted(value, len(U), U.size * V.shape[1], metric="pwcca", note=_few_rows(U, V))


@public_measure
def gulp(
    source: MatrixLike,
    target: MatrixLike,
    *,
    ridge: float = 0.01,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """GULP as a similarity, 0 … 1: how similar the predictions of ridge regressions on the two spaces are,
    for any target. It is 1 if they are the same.

    The score is 1 − d² / (a + b) with d² = a + b − 2c, a = tr(Σₓ^−λ Σₓ Σₓ^−λ Σₓ), b the same for y, c =
    tr(Σₓ^−λ Σₓᵧ Σᵧ^−λ Σᵧₓ) and Σ^−λ = (Σ + λ)⁻¹ (Boix-Adserà et al. 2022). Each space is centred and scaled
    so that tr Σ = 1; λ is `ridge`. Without a ridge, GULP compares subspaces, as CCA does. With a large ridge,
    axes of little variance count less, and the score approaches linear CKA with the arithmetic mean (a + b) /
    2 as denominator. Chance level: rows of one space permuted. Cost: w² + 50 r s multiplications per row of w
    numbers, if the spaces have r and s axes, on at most `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; a ridge below zero.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import gulp
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(gulp(X, 3 * X @ rotation), 3)
    1.0
    """
    need_number("ridge", ridge, low=0)
    X, Y = paired_rows(source, target, most_rows, ids)
    sides = []
    own = []
    for side in (X, Y):
        U, variances = _components(about_mean(side))  # a space's variances add up to 1
        shrinkage = variances / (variances + ridge)
        sides.append(U * np.sqrt(shrinkage))
        own.append(float(shrinkage @ shrinkage))
    U, V = sides

    def value(order: np.ndarray | slice) -> float:
        product = U.T @ V[order]
        return 2 * float(np.vdot(product, product)) / sum(own)

    note = "" if ridge else _few_rows(U, V)
    return permuted(value, len(U), U.size * V.shape[1], metric="gulp", note=note)


def _components(X: np.ndarray, share: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """The orthonormal principal components (n, r) of centred rows (n, d), and the variance along each as a
    sum of squares (r,), largest first. r is the smallest number of components that hold `share` of the
    variance. Axes that are only rounding errors are left out."""
    if X.shape[1] <= len(X):
        squares, axes = np.linalg.eigh(X.T @ X)
        squares = squares[::-1]
        axes = axes[:, ::-1]
    else:
        squares, left = np.linalg.eigh(X @ X.T)
        squares = squares[::-1]
        left = left[:, ::-1]
    r = int(np.count_nonzero(squares > _REAL * squares[0]))
    if share < 1:
        r = min(r, int(np.searchsorted(np.cumsum(squares) / squares.sum(), share)) + 1)
    if X.shape[1] <= len(X):
        U = X @ axes[:, :r] / np.sqrt(squares[:r])
    else:
        U = left[:, :r]
    return U, squares[:r]


def _few_rows(U: np.ndarray, V: np.ndarray) -> str:
    n = len(U)
    axes = U.shape[1] + V.shape[1]
    if n > axes:
        return ""
    return f"With {n:,} rows and {axes:,} axes canonical correlations are near 1 in any data. Use more rows."


SVCCA = metric_of(svcca, "rotation", "scale", "shift")


PWCCA = metric_of(pwcca, "scale", "shift")


GULP = metric_of(gulp, "rotation", "scale", "shift")


# Measures from similarities of the rows within each space: RSA, kernel CKA and angular CKA.


@public_measure
def rsa(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = MATRIX_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """RSA, −1 … 1: Spearman's rank correlation between the distances of rows in the two spaces. It is 1 if
    both spaces order all pairs of rows in the same way.

    The distance of two rows is 1 − their Pearson correlation over the coordinates (Kriegeskorte et al. 2008).
    So adding a number to all coordinates of a row changes nothing, but a rotation changes the score a little.
    Chance level: rows of one space permuted; its mean is 0. Cost: n (d + 50) multiplications per row of d
    numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; fewer than three coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import rsa
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> round(rsa(X, 3 * X), 3)
    1.0
    """
    from scipy.stats import rankdata

    matrices = []
    for side in paired_rows(source, target, most_rows, ids):
        if side.shape[1] < 3:
            raise SpaceError(f"RSA: expected 3 or more coordinates to correlate, got {side.shape[1]}")
        rows = side - side.mean(axis=1, keepdims=True)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
        pairs = np.triu_indices(len(rows), 1)
        ranks = rankdata(1 - (rows @ rows.T)[pairs])
        matrix = np.zeros((len(rows),) * 2)
        matrix[pairs] = ranks - ranks.mean()
        if not matrix.any():
            raise SpaceError("RSA: expected rows at different distances, got a space in which all are equal")
        matrices.append(matrix + matrix.T)
    return matrix_agreement(*matrices, "rsa")


@public_measure
def kernel_cka(
    source: MatrixLike,
    target: MatrixLike,
    *,
    bandwidth: float = 0.8,
    most_rows: int | None = MATRIX_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """CKA with Gaussian (RBF) kernels, 0 … 1. It is 1 if the distances between rows are the same up to a
    factor.

    The score is ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) with H = I − 1/n and K = exp(−‖xᵢ − xⱼ‖² / 2σ²); L is the same for
    the second space. σ is `bandwidth` times the median distance of two rows of the space (Kornblith et al.
    2019). With a small bandwidth, mainly near rows count. As in linear CKA, the score is biased upwards if
    there are few rows, as its chance level shows. Chance level: rows of one space permuted. Cost: n (d + 50)
    multiplications per row of d numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; a bandwidth of 0 or less.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import kernel_cka
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(kernel_cka(X, 3 * X @ rotation), 3)
    1.0
    """
    need_number("bandwidth", bandwidth, above=0)
    kernels = []
    for side in paired_rows(source, target, most_rows, ids):
        squares = squared_distances(side)
        kernel = np.exp(-squares / (2 * bandwidth**2 * _median(squares)))
        kernel -= kernel.mean(axis=0)
        kernels.append(kernel - kernel.mean(axis=1, keepdims=True))
    return matrix_agreement(*kernels, "kernel cka", "rbf")


def squared_distances(X: np.ndarray) -> np.ndarray:
    """The squared distances ‖xᵢ − xⱼ‖² of all pairs of rows (n, d), an array (n, n)."""
    X = X - X.mean(axis=0)
    lengths = np.vecdot(X, X)
    squares = np.maximum(lengths[:, None] + lengths - 2 * X @ X.T, 0)
    np.fill_diagonal(squares, 0)
    return squares


def _median(squares: np.ndarray) -> float:
    """The square of the median distance of two rows. If most rows are equal, only pairs of different rows
    count."""
    pairs = squares[np.triu_indices(len(squares), 1)]
    return float(np.median(pairs)) or float(np.median(pairs[pairs > 0]))


def angular_cka(source: MatrixLike, target: MatrixLike, *, ids: Sequence[str] | None = None) -> Score:
    """Linear CKA as an angle: 1 − 2 θ / π with θ = arccos CKA, 0 … 1. It is 1 if the spaces are equal up to a
    rotation, a factor and a shift.

    If s is the score, θ = (1 − s) π / 2 is a distance that satisfies the triangle inequality (Williams et al.
    2021; Lange et al. 2022). Pairs of spaces have the same order as by linear CKA. Chance level: that of
    linear CKA, from exact moments over all permutations; its mean and the ends of its band are converted to
    angles like the score. Cost: d² multiplications per row of d numbers, on all rows.

    Raises
    ------
    SpaceError
        The errors of `linear_cka`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import angular_cka
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(angular_cka(X, 3 * X @ rotation), 3)
    1.0
    """
    return _at_angle(linear_cka(source, target, ids=ids))


def _at_angle(cka: Score) -> Score:
    null = cka.null and ChanceLevel(*(angular(end) for end in (cka.null.mean, cka.null.low, cka.null.high)))
    return Score(angular(cka), metric="angular cka", n=cka.n, null=null, note=cka.note)


RSA = metric_of(rsa, "scale")


KernelCKA = metric_of(kernel_cka, "rotation", "scale", "shift")


class AngularCKA(SampledMetric):
    function = staticmethod(angular_cka)
    unchanged_by = LinearCKA.unchanged_by
    reads = "sums"

    def score(self, pair: AlignedPair) -> Score:
        return _at_angle(pair.linear_cka())


# Measures from nearest neighbours: k-NN recall, cycle-kNN, CKNNA and second-order cosine similarity.
# Neighbours are searched within each space, by the cosine of the uncentred rows, and a row is not its own
# neighbour.

# Maximum number of rows for second-order similarity, which needs the cosines of all pairs of rows.
COSINE_ROWS = 2000


@public_measure
def mutual_knn(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """k-NN recall, 0 … 1: the mean share of the k nearest neighbours of a row in one space that are also
    among its k nearest in the other space. It is 1 if the neighbours are the same.

    The score is the mean of #(Nₓ(i) ∩ Nᵧ(i)) / k, where Nₓ(i) and Nᵧ(i) are the neighbours of row i in the
    two spaces (Huh et al. 2024, who call it mutual kNN). If this share is J' for a row, its Jaccard overlap
    is J = J' / (2 − J'), see `relcore.jaccard`. Chance level: rows of one space permuted; its mean is k / (n
    − 1). Cost: n d + 50 k² operations per row of d numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import mutual_knn
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(mutual_knn(X, 3 * X @ rotation), 3)
    1.0
    """

    def value(own: np.ndarray, other: np.ndarray, order: np.ndarray) -> float:
        overlap = jaccard_rows(own, other)
        return float((2 * overlap / (1 + overlap)).mean())

    return _of_lists(_mutual_neighbours(source, target, k, ids, most_rows), "knn recall", value)


@public_measure
def cycle_knn(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Cycle-kNN, 0 … 1: the share of rows i with a neighbour j in the second space such that i is a neighbour
    of j in the first space. It is 1 if all rows have such a neighbour.

    The score is the mean of [∃ j ∈ Nᵧ(i): i ∈ Nₓ(j)], where Nₓ(i) and Nᵧ(i) are the neighbours of row i in
    the two spaces (Huh et al. 2024, their code). Even for equal spaces it is below 1 if a row is a neighbour
    of no other row. Chance level: rows of one space permuted; its mean is about 1 − (1 − k / n)ᵏ. Cost: n d +
    50 k² operations per row of d numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import cycle_knn
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(cycle_knn(X, 3 * X @ rotation), 3)
    1.0
    """

    def value(own: np.ndarray, other: np.ndarray, order: np.ndarray) -> float:
        return float((own[other] == np.arange(len(own))[:, None, None]).any(axis=(1, 2)).mean())

    return _of_lists(_mutual_neighbours(source, target, k, ids, most_rows), "cycle knn", value)


@public_measure
def cknna(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """CKNNA, about 0 … 1: debiased CKA of the cosines between rows that are neighbours in both spaces. It is
    1 if neighbours and cosines are the same.

    The score is a(K, L) / √(a(K, K) a(L, L)). a(K, L) is the unbiased HSIC (Song et al. 2012, eq. 5) of the
    cosines K and L of the rows, which are set to zero unless row j is a neighbour of row i in both spaces, j
    ∈ Nₓ(i) ∩ Nᵧ(i). This is the code of Huh et al. 2024 (appendix A), without the 10⁻⁶ that it adds to the
    denominator. a is no inner product, so a score may lie a little outside 0 … 1. Chance level: rows of one
    space permuted; its mean is about 0. Cost: n d + 50 k d multiplications per row of d numbers, on n ≤
    `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1; so few mutual
        neighbours within a space that a(K, K) or a(L, L) is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import cknna
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(cknna(X, 3 * X @ rotation), 3)
    1.0
    """
    from scipy import sparse

    neighbours = _mutual_neighbours(source, target, k, ids, most_rows)
    n = len(neighbours.first_lists)
    X = neighbours.source.astype(np.float64)
    Y = neighbours.target.astype(np.float64)

    def align(lists: np.ndarray, others: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
        """Return n (n − 3) · HSIC of the cosines within `first` and within `second`, between each row and the
        rows that are in both of its lists."""
        rows, places = np.nonzero((lists[:, :, None] == others[:, None, :]).any(axis=2))
        columns = lists[rows, places]
        cosines = (np.vecdot(side[rows], side[columns]) for side in (first, second))
        one, two = (sparse.csr_array((values, (rows, columns)), (n, n)) for values in cosines)
        shared = one.T.multiply(two).sum()
        crossed = one.sum(axis=0) @ two.sum(axis=1)
        return shared + one.sum() * two.sum() / ((n - 1) * (n - 2)) - 2 * crossed / (n - 2)

    own = (
        align(neighbours.first_lists, neighbours.first_lists, X, X),
        align(neighbours.second_lists, neighbours.second_lists, Y, Y),
    )
    if min(own) <= 0:
        raise SpaceError(f"CKNNA: expected rows that are neighbours of each other, got too few with k = {k}")
    scale = np.sqrt(own[0] * own[1])

    def value(lists: np.ndarray, others: np.ndarray, order: np.ndarray) -> float:
        return float(align(lists, others, X, Y[order]) / scale)

    return _of_lists(neighbours, "cknna", value)


@public_measure
def second_order_cosine(
    source: MatrixLike,
    target: MatrixLike,
    *,
    k: int = 10,
    most_rows: int | None = COSINE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """Second-order cosine similarity, −1 … 1: how similar the cosines of a row to its neighbours are in the
    two spaces. It is 1 if they are the same up to a factor.

    The score is the mean of cos(sₓ(i), sᵧ(i)), where s(i) are the cosines, in a space, of row i to its
    neighbours in either space, Nₓ(i) ∪ Nᵧ(i) (Hamilton et al. 2016, eq. 4 and after; the code of ReSi uses 1
    − cosine). If all rows have nearly the same direction, the score is near 1 for any data, as its chance
    level shows. Chance level: rows of one space permuted. Cost: n d + 50 k multiplications per row of d
    numbers, on n ≤ `most_rows` rows.

    Raises
    ------
    SpaceError
        Row counts that differ; fewer than four rows; rows that are all equal; k above n − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import second_order_cosine
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(second_order_cosine(X, 3 * X @ rotation), 3)
    1.0
    """
    neighbours = _mutual_neighbours(source, target, k, ids, most_rows)
    first = neighbours.source @ neighbours.source.T
    second = neighbours.target @ neighbours.target.T
    rows = np.arange(len(first))[:, None]

    def value(own: np.ndarray, other: np.ndarray, order: np.ndarray) -> float:
        lists = np.hstack([own, other])
        once = np.hstack([np.ones(own.shape), ~(other[:, :, None] == own[:, None, :]).any(axis=2)])
        one = first[rows, lists] * once
        two = second[order[rows], order[lists]] * once
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        return float((np.vecdot(one, two) / np.maximum(lengths, np.finfo(np.float32).tiny)).mean())

    return _of_lists(neighbours, "second-order cosine", value)


def _mutual_neighbours(
    source: MatrixLike, target: MatrixLike, k: int, ids: Sequence[str] | None, most_rows: int | None
) -> Neighbours:
    X, Y = paired_rows(source, target, most_rows, ids)
    return find_neighbours(X.astype(np.float32), Y.astype(np.float32), k, "mutual", device="cpu")


def _of_lists(
    neighbours: Neighbours, metric: str, value: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
) -> Score:
    """The score ``value(own, other, order)`` of the neighbour lists of both spaces, where `order` permutes
    the rows of the second space. There is no chance level if rows are repeated, because it would be too low.
    """
    n, k = neighbours.first_lists.shape

    def permuted(order: np.ndarray) -> float:
        return value(neighbours.first_lists, np.argsort(order)[neighbours.second_lists[order]], order)

    if neighbours.repeated:
        null = None
    else:
        null = by_permutation(permuted, n, 40 * n * k * k)
    score = value(neighbours.first_lists, neighbours.second_lists, np.arange(n))
    return Score(score, metric=metric, convention="mutual", k=k, n=n, null=null, note=neighbours.note)


NeighbourRecall = metric_of(mutual_knn, "rotation", "scale", uses_k=True)
CycleKNN = metric_of(cycle_knn, "rotation", "scale", uses_k=True)
CKNNA = metric_of(cknna, "rotation", "scale", uses_k=True)
SecondOrderCosine = metric_of(second_order_cosine, "rotation", "scale", uses_k=True)
