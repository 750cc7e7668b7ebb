"""An estimate with its interval, and correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.numbers import short
from relcore.scores.score import Z95

NAMES = {"pearson": "Pearson", "spearman": "Spearman"}


@dataclass(frozen=True)
class Estimate:
    """A number that is estimated from n values, with its 95 % interval. With too few values, the ends of the
    interval are NaN.

    ``f"{estimate:2}"`` gives ``.93 (95 %: .90 to .95)``; ``f"{estimate}"`` has three decimals.
    """

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n: int = 0

    @classmethod
    def around(cls, value: float, half_width: float, n: int) -> Estimate:
        return cls(float(value), float(value - half_width), float(value + half_width), n)

    @property
    def has_interval(self) -> bool:
        return not np.isnan(self.low)

    def __format__(self, digits: str) -> str:
        n_digits = int(digits or 3)
        value = short(self.value, n_digits)
        if self.has_interval:
            low = short(self.low, n_digits)
            high = short(self.high, n_digits)
            return f"{value} (95 %: {low} to {high})"
        return value


def known_pairs(x: Sequence[float], y: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs without a NaN, as two arrays. Raises a SpaceError if x and y differ in length."""
    first = np.asarray(x, dtype=float)
    second = np.asarray(y, dtype=float)
    if first.shape != second.shape or first.ndim != 1:
        raise SpaceError(f"correlation: expected pairs of numbers, got {first.shape} and {second.shape}")
    known = ~(np.isnan(first) | np.isnan(second))
    return first[known], second[known]


def correlation(x: Sequence[float], y: Sequence[float], kind: str = "pearson") -> Estimate:
    """The correlation of paired numbers, −1 … 1. Pairs with a NaN are left out.

    The interval is Fisher's: tanh(artanh r ± 1.96 s), with s = 1 / √(n − 3) for Pearson and s = √((1 + r² /
    2) / (n − 3)) for Spearman (Bonett and Wright 2000). The result is NaN if n is below 4, or if x or y is
    constant.
    """
    need_one_of("correlation", kind, NAMES)
    (first, second) = known_pairs(x, y)
    n = len(first)
    if n < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Estimate(n=n)
    if kind == "spearman":
        first = pd.Series(first).rank().to_numpy()
        second = pd.Series(second).rank().to_numpy()
    r = float(np.clip(np.corrcoef(first, second)[0, 1], -1, 1))
    if n < 4:
        return Estimate(r, n=n)
    variance = 1 / (n - 3)
    if kind == "spearman":
        variance = (1 + r * r / 2) / (n - 3)
    s = np.sqrt(variance)
    with np.errstate(divide="ignore"):  # for r = ±1, the interval has no width
        low, high = np.tanh(np.arctanh(r) + np.array([-Z95, Z95]) * s)
    return Estimate(r, float(low), float(high), n)
