"""Measures of subspaces: SVCCA, PWCCA and GULP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.base.arguments import need_number
from relcore.engine.engine import thin_svd
from relcore.scores.sampled import FEATURE_ROWS, about_mean, metric_of, paired_rows, permuted, public_measure
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike

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
    U, _ = _components(about_mean(X), share)
    V, _ = _components(about_mean(Y), share)

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
    X, Y = paired_rows(source, target, most_rows, ids)
    X = about_mean(X)
    Y = about_mean(Y)
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
