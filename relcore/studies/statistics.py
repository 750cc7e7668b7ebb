"""Correlations and means with 95 % intervals, each named for how its interval was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.scores.score import Z95

NAMES = {"pearson": "Pearson", "spearman": "Spearman"}


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval, NaN where there are too few values for one, and the number of
    values n.
    """

    name: str
    value: float
    low: float
    high: float
    n: int

    @property
    def has_interval(self) -> bool:
        return not np.isnan(self.low)

    def told(self, digits: int = 3) -> str:
        """``.932 (95 %: .901 to .954)``, as a sentence quotes it; the number alone where it has no
        interval.
        """
        value, low, high = (short(number, digits) for number in (self.value, self.low, self.high))
        return f"{value} (95 %: {low} to {high})" if self.has_interval else value

    def describe(self) -> str:
        """``Pearson .932 (.901 to .954)``."""
        told = f"{self.name} {short(self.value)}"
        return told if np.isnan(self.low) else f"{told} ({short(self.low)} to {short(self.high)})"


def correlation(x: Sequence[float], y: Sequence[float], kind: str = "pearson") -> Estimate:
    """Correlation of paired numbers, −1 … 1; pairs with a NaN are left out.

    The interval is Fisher's: tanh(artanh r ± 1.96 s), with s = 1 / √(n − 3) for Pearson and s = √((1 + r² /
    2) / (n − 3)) for Spearman (Bonett and Wright 2000). NaN where n is below 4 or one side is constant.

    Raises
    ------
    SpaceError
        Sides of different length, an unknown kind.
    """
    if kind not in NAMES:
        raise SpaceError(f"correlation: expected one of {', '.join(NAMES)}, got {kind!r}")
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise SpaceError(f"correlation: expected pairs of numbers, got {x.shape} and {y.shape}")
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    n, none = len(x), float("nan")
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Estimate(NAMES[kind], none, none, none, n)
    if kind == "spearman":
        x, y = (pd.Series(values).rank().to_numpy() for values in (x, y))
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))
    if n < 4:
        return Estimate(NAMES[kind], r, none, none, n)
    s = np.sqrt((1 + r * r / 2 if kind == "spearman" else 1) / (n - 3))
    with np.errstate(divide="ignore"):  # r = ±1 has no width
        low, high = np.tanh(np.arctanh(r) + np.array([-Z95, Z95]) * s)
    return Estimate(NAMES[kind], r, float(low), float(high), n)


def mean(values: Sequence[float], name: str = "mean", bounded: bool = False) -> Estimate:
    """Mean with a 95 % interval: Student's, or where the values are `bounded`, such as correlations, of 2,000
    resamples.

    NaN are left out, and one value alone has no interval.
    """
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    n, none = len(values), float("nan")
    if n < 2:
        return Estimate(name, float(values[0]) if n else none, none, none, n)
    if bounded:
        drawn = np.random.default_rng(0).choice(values, (2000, n)).mean(axis=1)
        return Estimate(name, float(values.mean()), *np.quantile(drawn, [0.025, 0.975]).tolist(), n)
    from scipy.special import (
        stdtrit,
    )  # `scipy.stats` has it as `t.ppf`, and takes longer to import than a page to open

    middle, reach = float(values.mean()), float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(name, middle, middle - reach, middle + reach, n)


def slope(x: Sequence[float], y: Sequence[float]) -> Estimate:
    """Slope of the least-squares line of y on x, with Student's 95 % interval; NaN below three pairs or
    for a constant x.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    n, none = len(x), float("nan")
    if n < 3 or np.ptp(x) == 0:
        return Estimate("slope", none, none, none, n)
    from scipy.stats import linregress, t

    line = linregress(x, y)
    reach = float(t.ppf(0.975, n - 2) * line.stderr)
    return Estimate("slope", float(line.slope), float(line.slope) - reach, float(line.slope) + reach, n)


def share(successes: int, n: int) -> Estimate:
    """Share of n trials, 0 … 1, with Wilson's score interval, which holds for few trials and for none or
    all of them.
    """
    if n < 1:
        none = float("nan")
        return Estimate("share", none, none, none, 0)
    p, z = successes / n, Z95**2 / n
    middle, reach = (p + z / 2) / (1 + z), np.sqrt(z * (p * (1 - p) + z / 4)) / (1 + z)
    return Estimate("share", p, max(0.0, float(middle - reach)), min(1.0, float(middle + reach)), n)
