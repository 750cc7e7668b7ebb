"""Three moments of the permutation null distribution of linear CKA, which is Escoufier's RV coefficient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.metrics.calibration import Null

SAMPLED_ROWS = 256  # with more rows, the two sums that need a second product are estimated from a sample of this size


def sampled_rows(n: int) -> np.ndarray:
    """The rows of n whose products stand for all: at most `SAMPLED_ROWS`, the same every time, ascending."""
    return np.sort(np.random.default_rng(0).choice(n, SAMPLED_ROWS, replace=False)) if n > SAMPLED_ROWS else np.arange(n)


@dataclass(frozen=True)
class RowSums:
    """Sums over the Gram matrix S of n centred rows (n, d), scaled so that its trace is 1; S itself is never formed.

    Attributes
    ----------
    n : int
    t2, t3 : float
        tr(S²) and tr(S³).
    s2, s3 : float
        Σ Sᵢᵢ² and Σ Sᵢᵢ³.
    u, r, b : float
        Σ Sᵢⱼ³, Σ Sᵢᵢ (S²)ᵢᵢ and Σ Sᵢᵢ Sᵢⱼ Sⱼⱼ.
    """

    n: int
    t2: float
    t3: float
    s2: float
    s3: float
    u: float
    r: float
    b: float

    @classmethod
    def of(cls, rows: np.ndarray, sample: np.ndarray, square: np.ndarray, lengths: np.ndarray, weighted: np.ndarray) -> RowSums:
        """From XᵀX (d, d) as `square`, ‖xᵢ‖² (n,), Σ ‖xᵢ‖² xᵢ (d,), and the centred `rows` (m, d) of a `sample`."""
        powers = lengths.sum(), lengths @ lengths, np.vdot(lengths * lengths, lengths)  # many times as fast as a power of three
        return cls.from_sums(len(lengths), powers, rows, lengths[sample], square, weighted)

    @classmethod
    def from_sums(
        cls,
        n: int,
        powers: tuple[float, float, float],
        rows: np.ndarray,
        lengths: np.ndarray,
        square: np.ndarray,
        weighted: np.ndarray,
    ) -> RowSums:
        """From Σ‖xᵢ‖², Σ‖xᵢ‖⁴ and Σ‖xᵢ‖⁶ as `powers`, the centred `rows` (m, d) of a sample and their squared lengths (m,),
        XᵀX (d, d) as `square`, and Σ ‖xᵢ‖² xᵢ (d,)."""
        m, trace = len(rows), powers[0]
        s3, square = float(powers[2] / trace**3), square / trace
        rows = rows.astype(np.float64) / np.sqrt(trace)
        gram = rows @ rows.T
        np.fill_diagonal(gram, 0)
        apart = np.vdot(gram * gram, gram) * (n * (n - 1) / (m * (m - 1)))  # 40 times as fast as a power of three
        return cls(
            n=n,
            t2=float(np.vdot(square, square)),
            t3=float(np.vdot(square @ square.T, square)),  # by its own transpose half of the product suffices
            s2=float(powers[1] / trace**2),
            s3=s3,
            u=float(apart) + s3,
            r=float((lengths / trace) @ np.einsum("ij,ij->i", rows @ square, rows)) * n / m,
            b=float(weighted @ weighted) / trace**3,
        )

    @property
    def dimension(self) -> float:
        """Effective dimension β = tr(S)² / tr(S²), 1 … d."""
        return 1 / self.t2

    @property
    def excess(self) -> float:
        """τ: how unequal the squared row lengths are (Josse, Pagès and Husson 2008, eq. 3)."""
        n, beta = self.n, self.dimension
        excess = n * (n + 1) * self.s2 / self.t2 - (n - 1) * (beta + 2)
        return (n - 1) / ((n - 3) * (n - 1 - beta)) * excess if n - 1 > beta else 0.0


def rv_null(x: RowSums, y: RowSums) -> Null:
    """Exact mean and variance, and the skewness, over all n! permutations (Kazi-Aoual et al. 1995; Josse et al. 2008, eq. 2–3).

    The band is that of the Pearson III distribution with these moments: for one dimension it is a χ², for many close to a
    normal distribution.
    """
    n, dimensions = x.n, x.dimension * y.dimension
    mean = np.sqrt(dimensions) / (n - 1)
    spread = 2 * (n - 1 - x.dimension) * (n - 1 - y.dimension) / ((n + 1) * (n - 1) ** 2 * (n - 2))
    variance = spread * (1 + (n - 3) / (2 * n * (n - 1)) * x.excess * y.excess)
    return Null.from_moments(mean, variance, skewness=_skewness(x, y, variance / dimensions))


def _skewness(x: RowSums, y: RowSums, variance: float) -> float:
    """Of tr(S πTπᵀ) over all permutations π, whose mean is 1 / (n − 1); 0 where the moment is not defined."""
    if x.n < 6 or variance < 1e-12 / x.n**2:
        return 0.0
    mean = 1 / (x.n - 1)
    third = _third_moment(x, y) - 3 * mean * variance - mean**3
    return float(np.clip(third / variance**1.5, -8, 8))


def _third_moment(x: RowSums, y: RowSums) -> float:
    """E tr(S πTπᵀ)³ over all permutations, for traces of 1 (Kazi-Aoual et al. 1995); a test holds it against brute force."""
    n = x.n

    def both(term) -> float:
        return term(x, y) + term(y, x)

    total = n**2 * (n + 1) * (n**2 + 15 * n - 4) * x.s3 * y.s3
    total += 4 * (n**4 - 8 * n**3 + 19 * n**2 - 4 * n - 16) * x.u * y.u
    total += 6 * (n**4 - 8 * n**3 + 21 * n**2 - 6 * n - 24) * x.b * y.b
    total += 12 * (n**4 - n**3 - 8 * n**2 + 36 * n - 48) * x.r * y.r
    total += 3 * (n**4 - 4 * n**3 - 2 * n**2 + 9 * n - 12) * x.s2 * y.s2
    total += 24 * (n**2 - n - 4) * both(lambda p, q: p.u * q.b)
    total += 12 * (n**3 - 2 * n**2 + 9 * n - 12) * both(lambda p, q: p.s2 * q.r)
    total += 24 * (n**3 - 3 * n**2 - 2 * n + 8) * both(lambda p, q: p.r * q.u)
    total += 24 * (n**3 - 2 * n**2 - 3 * n + 12) * both(lambda p, q: p.r * q.b)
    total += 12 * (n**2 - n + 4) * both(lambda p, q: p.s2 * q.u)
    total += 6 * (2 * n**3 - 7 * n**2 - 3 * n + 12) * both(lambda p, q: p.s2 * q.b)
    total -= 2 * n * (n - 1) * (n**2 - n + 4) * both(lambda p, q: (2 * p.u + 3 * p.b) * q.s3)
    total -= 3 * n * (n - 1) ** 2 * (n + 4) * both(lambda p, q: (p.s2 + 4 * p.r) * q.s3)
    total += 2 * n * (n - 1) * (n - 2) * both(lambda p, q: (1 + 6 * p.t2 + 8 * p.t3) * q.s3)
    total += n**3 - 9 * n**2 + 23 * n - 14
    total += 6 * (n - 4) * both(lambda p, q: p.t2) + 8 * both(lambda p, q: p.t3)
    total += 6 * (n**3 - 9 * n**2 + 24 * n - 14) * x.t2 * y.t2 + 24 * (n - 3) * both(lambda p, q: p.t2 * q.t3)
    total += 8 * (n**3 - 9 * n**2 + 26 * n - 22) * x.t3 * y.t3
    total -= 16 * both(lambda p, q: p.u) + (6 * n**2 - 30 * n + 24) * both(lambda p, q: p.b)
    total -= 12 * (n**2 - 5 * n + 8) * both(lambda p, q: p.t2 * q.u) + 24 * (n**2 - 5 * n + 6) * both(lambda p, q: p.t2 * q.b)
    total -= 8 * (3 * n**2 - 15 * n + 16) * both(lambda p, q: p.t3 * q.u)
    total -= 24 * (n**2 - 5 * n + 8) * both(lambda p, q: p.t3 * q.b)
    rest = 24 * both(lambda p, q: p.r) + 12 * (n**2 - 5 * n + 12) * both(lambda p, q: p.t2 * q.r)
    rest += 24 * (n**2 - 5 * n + 8) * both(lambda p, q: p.t3 * q.r) + 3 * (n**2 - 5 * n + 2) * both(lambda p, q: p.s2)
    rest += 6 * (n**2 - 5 * n + 6) * both(lambda p, q: p.t2 * q.s2) + 48 * both(lambda p, q: p.t3 * q.s2)
    return (total - (n - 2) * rest) / (n * (n - 1) * (n - 2) * (n - 3) * (n - 4) * (n - 5))
