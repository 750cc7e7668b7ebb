"""The change between two versions of the same rows, split into shift, scale, rotation and what remains.

With X and Y centred, a = ‖X‖ and b = ‖Y‖ (Frobenius), c the cosine of the two matrices and σ the largest cosine that any
rotation of X reaches (the sum of the singular values of XᵀY, over ab), the squared change of the uncentred rows is exactly

.. math:: n‖μ_Y − μ_X‖² + (b − a)² + 2ab(σ − c) + 2ab(1 − σ):

moving the mean, matching the spread, rotating, and what no rotation explains. All four are at least zero. A rotation about zero
also turns the mean row: that part of it counts as a shift. ρ compares what remains with the new version itself: ρ = min over s
and R of ‖Y − sXR‖² / ‖Y‖² = 1 − σ², the squared sine of the Procrustes angle between the two shapes, see [1]_.

.. [1] A. H. Williams, E. Kunz, S. Kornblith, S. Linderman. Generalized Shape Metrics on Neural Representations. NeurIPS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.magnitude import exponents, scaled
from relcore.similarity import row_blocks
from relcore.spaces import SpaceError

STEPS = ("shift", "scale", "rotation", "remains")
_ROWS = 2048  # in float64 at once
_NONE = 1e-30  # of the squared size of the rows: they are all in one point
_UNCHANGED = 1e-12  # of the same: float32 cannot hold a smaller change


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Y ≈ scale · (X − old_mean) rotation + new_mean, and what each part of it explains.

    Attributes
    ----------
    shares : array (4,)
        Of `STEPS`: shares of the squared change, from 0, of sum 1; all 0 where nothing has changed. NaN between spaces of
        different widths, whose rows cannot be subtracted.
    shift : float
        Distance of the two mean rows, in units of the old rows' root mean square distance from their mean; NaN between widths.
    scale : float
        The s of the best fit.
    spread : float
        Ratio of the two spreads, b / a.
    turn : float
        c / σ, from −1 to 1: 1 where nothing has to be rotated. NaN between widths.
    rho : float
        What remains: ‖Y − sXR‖² / ‖Y‖², 0 … 1.
    remaining : array (n,)
        The same per row: ‖yᵢ − s xᵢR‖² over the mean of ‖yⱼ‖². Its mean is rho, but from a wider to a narrower space, where it
        leaves out what the new space has no room for.
    sizes, lengths : arrays (n,)
        ‖yᵢ‖² of the centred and of the uncentred new rows, over the same mean.
    rotation : array (d_old, d_new)
        R: its rows or columns, whichever are fewer, are orthonormal.
    old_mean, new_mean : arrays (d_old,), (d_new,)
    """

    shares: np.ndarray
    shift: float
    scale: float
    spread: float
    turn: float
    rho: float
    remaining: np.ndarray
    sizes: np.ndarray
    lengths: np.ndarray
    rotation: np.ndarray
    old_mean: np.ndarray
    new_mean: np.ndarray


def decompose(old: np.ndarray, new: np.ndarray) -> Decomposition:
    """Split the change from `old` (n, d_old) to `new` (n, d_new), row by row the same items.

    Memory: the product of the two widths, and blocks of rows in float64. Between different widths the narrower space counts as
    one of the larger width with zeros, so that R has orthonormal rows or columns.

    Raises
    ------
    SpaceError
        Row counts that differ, fewer than two rows, a version whose rows are all in one point.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.drift.decomposition import STEPS, decompose
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> X -= X.mean(axis=0)
    >>> quarter_turn = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    >>> found = decompose(X, X @ quarter_turn)
    >>> dict(zip(STEPS, (found.shares.round(6) + 0).tolist()))
    {'shift': 0.0, 'scale': 0.0, 'rotation': 1.0, 'remains': 0.0}
    """
    if len(old) != len(new):
        raise SpaceError(f"drift: expected the same rows in both versions, got {len(old):,} and {len(new):,}; pair them by id")
    if len(old) < 2:
        raise SpaceError(f"drift: expected two rows or more, got {len(old)}; compare more rows")
    exponent = max(int(exponents(old)), int(exponents(new)))
    sides = [_Side.of(X, int(exponents(X)), name) for X, name in ((old, "old"), (new, "new"))]
    a, b = (side.size for side in sides)
    product = np.zeros((old.shape[1], new.shape[1]))
    for block in row_blocks(len(old), _ROWS):
        product += sides[0].rows(block).T @ sides[1].rows(block)
    left, values, right = np.linalg.svd(product, full_matrices=False)
    rotation = left @ right
    sigma = min(1.0, float(values.sum()) / (a * b))
    remaining, sizes, lengths = _per_row(sides, rotation, sigma * b / a)
    total = float(remaining.mean())
    rho = total if old.shape[1] <= new.shape[1] else 1 - sigma**2  # the residual keeps the digits of a small rho
    units = [float(np.ldexp(1.0, side.exponent - exponent)) for side in sides]
    cosine = float(np.trace(product)) / (a * b) if old.shape[1] == new.shape[1] else np.nan
    shares, shift = _shares(sides, units, sigma, cosine, rho)
    ratio = float(np.ldexp(b / a, sides[1].exponent - sides[0].exponent))
    means = (np.ldexp(side.mean, side.exponent) for side in sides)
    turn = cosine / sigma if sigma else np.nan
    return Decomposition(shares, shift, sigma * ratio, ratio, turn, rho, remaining, sizes, lengths, rotation, *means)


@dataclass(frozen=True, eq=False)
class _Side:
    """One version, divided by a power of two so that float64 can square it: its mean and its ‖·‖ after centring."""

    vectors: np.ndarray
    exponent: int
    mean: np.ndarray
    size: float

    @classmethod
    def of(cls, vectors: np.ndarray, exponent: int, name: str) -> _Side:
        blocks = list(row_blocks(len(vectors), _ROWS))
        mean = sum(scaled(vectors[block].astype(np.float64), exponent).sum(axis=0) for block in blocks) / len(vectors)
        side = cls(vectors, exponent, mean, 0.0)
        square = sum(float(np.sum(side.rows(block) ** 2)) for block in blocks)
        if not square > _NONE * len(vectors) * max(float(mean @ mean), _NONE):
            raise SpaceError(f"drift: expected rows that differ, got the same vector in every row of the {name} version")
        return cls(vectors, exponent, mean, float(np.sqrt(square)))

    def rows(self, block: slice) -> np.ndarray:
        return scaled(self.vectors[block].astype(np.float64), self.exponent) - self.mean


def _per_row(sides: list[_Side], rotation: np.ndarray, scale: float) -> np.ndarray:
    """Squared lengths (3, n) over the mean squared length of the centred new rows: of the residuals of the fit, of the centred
    and of the uncentred new rows."""
    old, new = sides
    n, found = len(old.vectors), np.empty((3, len(old.vectors)))
    for block in row_blocks(n, _ROWS):
        rows = new.rows(block)
        residual = rows - scale * (old.rows(block) @ rotation)
        for line, one in zip(found, (residual, rows, rows + new.mean), strict=True):
            line[block] = np.vecdot(one, one)
    return found * (n / new.size**2)


def _shares(sides: list[_Side], units: list[float], sigma: float, cosine: float, rho: float) -> tuple[np.ndarray, float]:
    """The four shares of the squared change, and the distance of the means over the old spread."""
    if np.isnan(cosine):
        return np.full(len(STEPS), np.nan), np.nan
    n = len(sides[0].vectors)
    a, b = (side.size * unit for side, unit in zip(sides, units, strict=True))
    moved = float(np.linalg.norm(sides[1].mean * units[1] - sides[0].mean * units[0]))
    unexplained = rho / (1 + sigma)  # 1 − σ, without its rounding
    parts = np.array([n * moved**2, (b - a) ** 2, 2 * a * b * max(0.0, sigma - cosine), 2 * a * b * unexplained])
    size = max(a, b) ** 2
    whole = parts.sum()
    shares = parts / whole if whole > _UNCHANGED * size else np.zeros(len(STEPS))
    return shares, moved * np.sqrt(n) / a if a else np.nan
