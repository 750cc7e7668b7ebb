"""The 95 % interval of a measured number, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

from relcore.papers.ours import SHARE, Number

_COSINES = "−1 … 1"
_CORRELATIONS = ("Pearson", "Spearman")


@dataclass(frozen=True)
class Spread:
    """Standard error of a number, degrees of freedom behind it (inf: known), and in words its source.

    `low` and `high` are the ends of the 95 % interval.
    """

    error: float
    freedom: float
    low: float
    high: float
    found_from: str


def spread_of(number: Number) -> Spread | None:
    """The number's standard error and 95 % interval; None if no error is known.

    In this order:

    1. `low` and `high`, where the run found an interval itself (bootstrap over runs, Fisher's for a correlation);
    2. Student's interval of the mean, where there are two or more repeats that differ. It covers what differs between
    repeats (anchors, weights, splits), not the choice of the test rows if those are fixed;
    3. of a single measurement with a deviation over its n rows, that deviation ÷ √n;
    4. else, of a mean over n rows between 0 and 1, or −1 and 1, the largest standard error that such a mean can have:
       √(v (1 − v) ÷ n), or √((1 − v²) ÷ n). Of an accuracy this is the binomial standard error.
    """
    if number.low is not None and number.high is not None:
        return Spread((number.high - number.low) / (2 * quantile(inf)), inf, number.low, number.high, "found by the run")
    if number.deviation and number.repeats > 1:
        found = _around(number.value, number.deviation / sqrt(number.repeats), number.repeats - 1, "Student's, over repeats")
        return _within_range(found, number)
    if number.deviation and number.n:
        return _within_range(_around(number.value, number.deviation / sqrt(number.n), inf, "deviation over rows ÷ √n"), number)
    if number.n and number.unit in (SHARE, _COSINES) and number.metric not in _CORRELATIONS:
        least = 0.0 if number.unit == SHARE else -1.0
        variance = max((1 - number.value) * (number.value - least), 0.0)  # of all distributions on the range, the widest
        return _within_range(_around(number.value, sqrt(variance / number.n), inf, "at most, from n rows"), number)
    return None


def quantile(freedom: float) -> float:
    """Of Student's distribution: what 97.5 % lie below."""
    from scipy.special import ndtri, stdtrit  # `scipy.stats` has them, too, and takes longer to import than a page to open

    return float(ndtri(0.975) if freedom == inf else stdtrit(freedom, 0.975))


def _within_range(found: Spread, number: Number) -> Spread:
    """A share ends at 0 and at 1, a cosine at −1 and at 1."""
    least = {SHARE: 0.0, _COSINES: -1.0}.get(number.unit)
    return found if least is None else replace(found, low=max(found.low, least), high=min(found.high, 1.0))


def _around(value: float, error: float, freedom: float, found_from: str) -> Spread:
    reach = quantile(freedom) * error
    return Spread(error, freedom, value - reach, value + reach, found_from)
