"""Measures by canonical correlations: SVCCA, PWCCA, and GULP, which has a ridge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.engine.engine import thin_svd
from relcore.scores.measures import (
    FEATURE_ROWS,
    SampledMetric,
    about_mean,
    by_permutation,
    notes_sample,
    paired_rows,
)
from relcore.scores.score import Score
from relcore.spaces.space import MatrixLike

_REAL = 1e-10  # of the largest variance: below it a direction is rounding of float32


@notes_sample
def svcca(
    source: MatrixLike,
    target: MatrixLike,
    *,
    share: float = 0.99,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """SVCCA: the mean canonical correlation of the principal axes with 99 % of the variance, 0 … 1; 1: the
    axes of either space are linear combinations of the other's.

    With Uₓ (n, r) and Uᵧ (n, s) the orthonormal principal components of the centred rows that hold `share` of
    the variance, it is Σ ρᵢ / min(r, s) over the singular values ρ of UₓᵀUᵧ (Raghu et al. 2017).
    It needs many more rows than axes: with n near r + s it is near 1 for any data, as its chance level shows.
    Chance level: rows of one space permuted. Cost per row: d² and 50 r s, on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, a share outside 0 … 1.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import svcca
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(svcca(X, 3 * X @ rotation), 3)
    1.0
    """
    if not 0 < share <= 1:
        raise SpaceError(f"share: expected above 0 and at most 1, got {share}")
    X, Y = paired_rows(source, target, most_rows, ids)
    (U, _), (V, _) = (_components(about_mean(side), share) for side in (X, Y))

    def value(order: np.ndarray | slice = slice(None)) -> float:
        return float(np.linalg.svd(U.T @ V[order], compute_uv=False).mean())

    null = by_permutation(value, len(U), U.size * V.shape[1])
    return Score(value(), metric="svcca", n=len(U), null=null, note=_few_rows(U, V))


@notes_sample
def pwcca(
    source: MatrixLike,
    target: MatrixLike,
    *,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """PWCCA: canonical correlations, each weighted by how much of the first space it accounts for, 0 … 1; 1:
    the narrower space is a linear combination of the other.

    Σ αᵢ ρᵢ / Σ αᵢ with αᵢ = Σⱼ abs⟨hᵢ, xⱼ⟩ over the columns xⱼ of the centred rows, hᵢ the canonical variates
    of length 1 (Morcos et al. 2018), here of the space with fewer axes, the first where they have as
    many. The weights depend on the coordinates, so a rotation of that space changes them. The authors' code
    leaves out the whitening in hᵢ; this is the formula. Chance level: rows of one space permuted. Cost per
    row: d² and 50 r s, on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, or equal rows.

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
    (U, _), (V, _) = _components(X), _components(Y)
    if V.shape[1] < U.shape[1]:
        U, V, X = V, U, Y
    held = U.T @ X

    def value(order: np.ndarray | slice = slice(None)) -> float:
        axes, correlations, _ = thin_svd(U.T @ V[order])
        return float(np.average(correlations, weights=np.abs(axes.T @ held).sum(axis=1)))

    null = by_permutation(value, len(U), U.size * V.shape[1])
    return Score(value(), metric="pwcca", n=len(U), null=null, note=_few_rows(U, V))


@notes_sample
def gulp(
    source: MatrixLike,
    target: MatrixLike,
    *,
    ridge: float = 0.01,
    most_rows: int | None = FEATURE_ROWS,
    ids: Sequence[str] | None = None,
) -> Score:
    """GULP as a similarity, 0 … 1: how alike the predictions of ridge regressions on the two spaces are, for
    any target; 1: the same.

    1 − d² / (a + b) with d² = a + b − 2c, a = tr(Σₓ^−λ Σₓ Σₓ^−λ Σₓ), b alike, c = tr(Σₓ^−λ Σₓᵧ Σᵧ^−λ Σᵧₓ) and
    Σ^−λ = (Σ + λ)⁻¹ (Boix-Adserà et al. 2022), each space centred and scaled so that tr Σ = 1; λ is
    `ridge`. Without a ridge it compares subspaces as CCA does, with a large one it is near linear CKA with
    the arithmetic mean below the fraction: axes of little variance count less and less. Chance level: rows of
    one space permuted. Cost per row: d² and 50 r s, on at most `most_rows`.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than four rows, equal rows, a ridge below zero.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import gulp
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    >>> round(gulp(X, 3 * X @ rotation), 3)
    1.0
    """
    if not ridge >= 0:
        raise SpaceError(f"ridge: expected 0 or more, got {ridge}")
    X, Y = paired_rows(source, target, most_rows, ids)
    sides, own = [], []
    for side in (X, Y):
        U, variances = _components(about_mean(side))  # they add up to 1
        kept = variances / (variances + ridge)
        sides.append(U * np.sqrt(kept))
        own.append(float(kept @ kept))
    U, V = sides

    def value(order: np.ndarray | slice = slice(None)) -> float:
        product = U.T @ V[order]
        return 2 * float(np.vdot(product, product)) / sum(own)

    null = by_permutation(value, len(U), U.size * V.shape[1])
    return Score(value(), metric="gulp", n=len(U), null=null, note="" if ridge else _few_rows(U, V))


def _components(X: np.ndarray, share: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal principal components (n, r) of centred rows (n, d) and their sums of squares (r,), largest
    first: the fewest that hold `share` of the variance, without axes of rounding."""
    if X.shape[1] <= len(X):
        squares, axes = np.linalg.eigh(X.T @ X)
        squares, axes = squares[::-1], axes[:, ::-1]
    else:
        squares, left = np.linalg.eigh(X @ X.T)
        squares, left = squares[::-1], left[:, ::-1]
    r = int(np.count_nonzero(squares > _REAL * squares[0]))
    if share < 1:
        r = min(r, int(np.searchsorted(np.cumsum(squares) / squares.sum(), share)) + 1)
    U = X @ axes[:, :r] / np.sqrt(squares[:r]) if X.shape[1] <= len(X) else left[:, :r]
    return U, squares[:r]


def _few_rows(U: np.ndarray, V: np.ndarray) -> str:
    """Says that there are no more rows than axes."""
    n, axes = len(U), U.shape[1] + V.shape[1]
    if n > axes:
        return ""
    return f"With {n:,} rows and {axes:,} axes canonical correlations are near 1 in any data. Use more rows."


class SVCCA(SampledMetric):
    function, unchanged_by = staticmethod(svcca), ("rotation", "scale", "shift")


class PWCCA(SampledMetric):
    function, unchanged_by = staticmethod(pwcca), ("scale", "shift")


class GULP(SampledMetric):
    function, unchanged_by = staticmethod(gulp), ("rotation", "scale", "shift")
