"""Scores over whole spaces with exact nulls: linear CKA, and the mean cosine of paired rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.metrics.calibration import Null, Score
from relcore.similarity import ROWS_PER_BLOCK, row_blocks, unit_rows
from relcore.spaces import SpaceError


@dataclass(frozen=True)
class OwnMoments:
    """What linear CKA needs of one space alone: its mean row (d,), ‖XᵀX‖²_F of the centred rows, their squared lengths (n,)."""

    mean: np.ndarray
    square: float
    rows: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> OwnMoments:
        """Of a space (n, d), once, where it is compared with several others."""
        mean = _mean_row(X)
        squares, (rows,) = _centred_sums((X,), (mean,), {"xx": (0, 0)})
        return cls(mean, squares["xx"], rows)


def _centred_sums(
    spaces: Sequence[np.ndarray], means: Sequence[np.ndarray], products: Mapping[str, tuple[int, int]], lengths: bool = True
) -> tuple[dict[str, float], list[np.ndarray]]:
    """‖XᵀY‖²_F of the named pairs of centred spaces, and each one's squared row lengths (n,) where they are wanted."""
    n = len(spaces[0])
    sums = {name: np.zeros((spaces[left].shape[1], spaces[right].shape[1])) for name, (left, right) in products.items()}
    rows = [np.empty(n) for _ in spaces]
    buffers = [np.empty((min(n, ROWS_PER_BLOCK), X.shape[1]), dtype=np.float32) for X in spaces]
    for block in row_blocks(n):
        size = block.stop - block.start
        centred = [np.subtract(X[block], mean, out=out[:size]) for X, mean, out in zip(spaces, means, buffers, strict=True)]
        for name, (left, right) in products.items():
            sums[name] += centred[left].T @ centred[right]
        for side, part in enumerate(centred if lengths else ()):
            rows[side][block] = np.vecdot(part, part)
    return {name: float(np.vdot(total, total)) for name, total in sums.items()}, rows


def linear_cka(
    X: np.ndarray, Y: np.ndarray, *, debiased: bool = False, own: tuple[OwnMoments, OwnMoments] | None = None
) -> Score:
    """Linear centred kernel alignment of row-aligned spaces (n, d_x), (n, d_y): ‖XᵀY‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F), 0 … 1.

    On centred columns (Kornblith et al. 2019), in feature space: no n × n matrix; products of blocks in float32, sums in
    float64. It is Escoufier's RV coefficient, so the moments of its permutation null are known exactly. `debiased` takes the
    unbiased estimator of each term (Song et al. 2012); it may be negative, chance is 0, and n must be at least 4. `own` spares
    what was worked out for other pairs.

    Raises
    ------
    SpaceError
        Row counts that differ, too few rows, a space in which all rows are equal.
    """
    if len(X) != len(Y):
        raise SpaceError(f"expected row-aligned spaces, got {len(X)} and {len(Y)} rows; pair them with match()")
    if len(X) < 4:
        raise SpaceError(f"expected at least 4 rows, got {len(X)}")
    moments = _Moments.of(X, Y, own)
    if moments.xx == 0 or moments.yy == 0:
        raise SpaceError("expected spaces whose rows differ, got one in which they are all equal")
    if debiased:
        value = moments.unbiased("xy") / np.sqrt(moments.unbiased("xx") * moments.unbiased("yy"))
        return Score(value, metric="cka", convention="debiased", n=len(X), null=moments.debiased_null())
    value = moments.xy / np.sqrt(moments.xx * moments.yy)
    return Score(value, metric="cka", convention="linear", n=len(X), null=moments.null())


@dataclass(frozen=True)
class _Moments:
    """Sums over centred rows: xy = ‖XᵀY‖²_F and its like, squared row lengths and their sums."""

    n: int
    xy: float
    xx: float
    yy: float
    rows_x: np.ndarray
    rows_y: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, Y: np.ndarray, own: tuple[OwnMoments, OwnMoments] | None = None) -> _Moments:
        if own:
            squares, _ = _centred_sums((X, Y), (own[0].mean, own[1].mean), {"xy": (0, 1)}, lengths=False)
            return cls(len(X), squares["xy"], own[0].square, own[1].square, own[0].rows, own[1].rows)
        means = _mean_row(X), _mean_row(Y)
        squares, rows = _centred_sums((X, Y), means, {"xx": (0, 0), "yy": (1, 1), "xy": (0, 1)})
        return cls(len(X), squares["xy"], squares["xx"], squares["yy"], *rows)

    def unbiased(self, name: str) -> float:
        """n (n − 3) times the unbiased HSIC of Song et al. 2012, eq. 5, from centred features."""
        left, right = ({"x": self.rows_x, "y": self.rows_y}[side] for side in name)
        n = self.n
        return getattr(self, name) - n / (n - 2) * (left @ right) + left.sum() * right.sum() / ((n - 1) * (n - 2))

    def null(self) -> Null:
        """Exact mean and variance over all n! permutations (Kazi-Aoual et al. 1995; Josse, Pagès and Husson 2008, eq. 2–3)."""
        n = self.n
        (beta_x, tau_x), (beta_y, tau_y) = self._shape(self.rows_x, self.xx), self._shape(self.rows_y, self.yy)
        mean = np.sqrt(beta_x * beta_y) / (n - 1)
        spread = 2 * (n - 1 - beta_x) * (n - 1 - beta_y) / ((n + 1) * (n - 1) ** 2 * (n - 2))
        return Null.from_moments(mean, spread * (1 + (n - 3) / (2 * n * (n - 1)) * tau_x * tau_y))

    def _shape(self, rows: np.ndarray, square: float) -> tuple[float, float]:
        """Effective dimension β = tr(S)² / tr(S²), 1 … d, and the excess τ of the squared row lengths."""
        n = self.n
        beta = rows.sum() ** 2 / square
        excess = n * (n + 1) * (rows @ rows) / square - (n - 1) * (beta + 2)
        return beta, (n - 1) / ((n - 3) * (n - 1 - beta)) * excess if n - 1 > beta else 0.0

    def debiased_null(self) -> Null:
        """Mean 0 by construction; the spread is that of the biased score, which differs from it by a constant and O(1/n)."""
        biased = self.null()
        scale = np.sqrt(self.xx * self.yy / (self.unbiased("xx") * self.unbiased("yy")))
        return Null(0.0, (biased.low - biased.mean) * scale, (biased.high - biased.mean) * scale)


def _mean_row(X: np.ndarray) -> np.ndarray:
    """Float32 within blocks, float64 between them: half the time of float64 throughout, and what is lost, below 1e-5 of the
    values, moves the centre by so little that its square does not show in a sum of squares."""
    sums = [X[block].sum(axis=0) for block in row_blocks(len(X), 512)]
    return (np.sum(sums, axis=0, dtype=np.float64) / len(X)).astype(np.float32)


def mean_cosine(source: np.ndarray, target: np.ndarray, *, of_unit_length: bool = False) -> Score:
    """Mean cosine of paired rows, −1 … 1, of row-aligned spaces of one width (n, d); 1: every row points the same way.

    The null is exact: over all permutations π the mean of Σ aᵢ·b_π(i) and its variance follow from the sums Σaᵢ, Σbᵢ and the
    d × d products of the centred unit rows (Hoeffding 1951, theorem 2). `of_unit_length` says that all rows have length 1
    (or 0) already.

    Raises
    ------
    SpaceError
        Shapes that differ.
    """
    if source.shape != target.shape:
        raise SpaceError(f"expected row-aligned spaces of one width, got {source.shape} and {target.shape}")
    n = len(source)
    a, b = (source, target) if of_unit_length else (unit_rows(source), unit_rows(target))
    mean_a, mean_b = a.mean(axis=0, dtype=np.float64), b.mean(axis=0, dtype=np.float64)
    gram_a, gram_b = (_centred_gram(rows, mean) for rows, mean in ((a, mean_a), (b, mean_b)))
    null = Null.from_moments(mean_a @ mean_b, np.vdot(gram_a, gram_b) / ((n - 1) * n**2)) if n > 1 else None
    return Score(np.einsum("ij,ij->i", a, b).mean(dtype=np.float64), metric="cosine", n=n, null=null)


def _centred_gram(rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return (rows.T @ rows).astype(np.float64) - len(rows) * np.outer(mean, mean)
