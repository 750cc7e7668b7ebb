"""The difference of two scores on the same rows, with its 95 % interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.metrics.calibration import Z95
from relcore.numbers import signed


@dataclass(frozen=True)
class Difference:
    """The difference of a score to an earlier one, with its 95 % sampling interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def describe(self) -> str:
        """``+.012 (95 %: +.003 … +.021)``."""
        return f"{signed(self.value)} (95 %: {signed(self.low)} … {signed(self.high)})"


def difference(value: float, error: float) -> Difference:
    """Of a value with this standard error."""
    return Difference(float(value), float(value - Z95 * error), float(value + Z95 * error))


def mean_difference(before: np.ndarray, now: np.ndarray) -> Difference:
    """Of the means of two values a row (m,), both of the same rows: much narrower than for two independent means."""
    change = np.asarray(now, dtype=np.float64) - before
    error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.inf
    return difference(change.mean(), error)


def cka_influence(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """How much each of m rows moves linear CKA, (m,): its derivative by the row's weight, times m.

    The standard deviation over √m is the standard error of CKA (the infinitesimal jackknife: Efron 1982, § 6), and that of the
    difference of two such arrays over √m the standard error of a difference.
    """
    X, Y = (Z.astype(np.float64) - Z.mean(axis=0, dtype=np.float64) for Z in (X, Y))
    pulls = {}
    for name, left, right in (("xy", X, Y), ("xx", X, X), ("yy", Y, Y)):
        product = left.T @ right
        pulls[name] = np.einsum("ij,ij->i", left @ product, right), np.vdot(product, product)
    (xy, xy_sum), (xx, xx_sum), (yy, yy_sum) = pulls["xy"], pulls["xx"], pulls["yy"]
    cka = xy_sum / np.sqrt(xx_sum * yy_sum)
    return len(X) * cka * (2 * xy / xy_sum - xx / xx_sum - yy / yy_sum)
