"""Score: a number with its k, its n and its chance level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import band, short, signed

CENTRE = "Turn centring on; for absolute rows, subtract the mean in float64 before you save them."

_SHARES = ("jaccard", "mrr", "class agreement", "cka", "first", "svcca", "pwcca", "gulp", "procrustes")
_SHARES += ("angular shape", "kernel cka", "angular cka", "knn recall", "cycle knn")
RANGES = dict.fromkeys(("cosine", "rsa", "second-order cosine"), (-1.0, 1.0)) | dict.fromkeys(
    _SHARES, (0.0, 1.0)
)
_ROUNDING = 1e-5  # by how much float32 rounding may exceed a score's range
Z95 = 1.959963984540054  # two-sided 95 % of the normal distribution
QUANTILE_DRAWS = 200  # fewer draws say little about their own tails


@dataclass(frozen=True)
class ChanceLevel:
    """The chance level of a score: mean and middle 95 % of its distribution when the rows of one space are
    permuted.

    `n_permutations` is 0 if the distribution over all n! permutations, or its moments, are known in closed
    form.
    """

    mean: float
    low: float
    high: float
    n_permutations: int = 0

    @property
    def places(self) -> int:
        """Decimals needed to distinguish it from zero: 3, or 5 if it is small."""
        return 3 if max(abs(self.low), abs(self.high)) >= 0.005 else 5

    @classmethod
    def from_moments(
        cls, mean: float, variance: float, n_permutations: int = 0, skewness: float = 0.0
    ) -> ChanceLevel:
        """The chance level with the middle 95 % of a Pearson III distribution of these moments, which is
        normal without skewness.
        """
        ends = np.array([-Z95, Z95])
        if abs(skewness) >= 1e-3:  # a shifted gamma distribution, mirrored for skewness below 0
            from scipy.special import gammaincinv

            shape = 4 / skewness**2
            ends = (gammaincinv(shape, [0.025, 0.975]) - shape) / np.sqrt(shape)
            ends = ends if skewness > 0 else -ends[::-1]
        low, high = mean + ends * np.sqrt(max(variance, 0.0))
        return cls(float(mean), float(low), float(high), n_permutations)

    @classmethod
    def from_draws(cls, draws: np.ndarray, mean: float | None = None) -> ChanceLevel:
        """The chance level from scores of permuted spaces: their quantiles if there are 200 or more, else
        those of a normal distribution; `mean` is the exact mean, if known.
        """
        mean = float(np.mean(draws)) if mean is None else float(mean)
        if len(draws) < QUANTILE_DRAWS:
            return cls.from_moments(mean, float(np.var(draws, ddof=1)), len(draws))
        low, high = np.quantile(draws, [0.025, 0.975])
        return cls(mean, float(low), float(high), len(draws))


class Score(float):
    """A float with its settings and its chance level; it compares and prints as a number.

    Attributes
    ----------
    metric, convention : str
        ``"jaccard"``, ``"paper"``.
    k : int or None
        Number of neighbours, if the metric uses neighbours.
    n : int
        Rows compared.
    n_queries : int
        Number of queries; below n they are a random sample, and `interval` is the sampling interval.
    interval : (float, float) or None
        95 % sampling interval of the mean over all n rows.
    null : ChanceLevel or None
    note : str
        A warning, such as of a single long row that decides the score; "" if there is none.
    top1 : float or None
        For an MRR of the convention "paper": the share of queries whose nearest row is their partner.
    drawn_from : int or None
        The number of rows from which these n were sampled, if they were.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import linear_cka
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> score = linear_cka(X, 2 * X)
    >>> score.metric, score.n, score > score.null.high
    ('cka', 60, True)
    """

    note: str = ""
    top1: float | None = None
    drawn_from: int | None = None
    metric: str
    convention: str
    k: int | None
    n: int
    n_queries: int
    interval: tuple[float, float] | None
    null: ChanceLevel | None

    def __new__(
        cls,
        value: float,
        *,
        metric: str,
        n: int,
        k: int | None = None,
        convention: str = "",
        n_queries: int | None = None,
        interval: tuple[float, float] | None = None,
        null: ChanceLevel | None = None,
        note: str = "",
        top1: float | None = None,
        drawn_from: int | None = None,
    ) -> Score:
        if metric in RANGES:  # rounding can put a score just outside the range of its metric
            low, high = (-1.0, 1.0) if convention == "debiased" else RANGES[metric]
            if not low - _ROUNDING <= value <= high + _ROUNDING:
                raise SpaceError(
                    f"{metric}: expected a score from {low:g} to {high:g}, got {value:g}; the numbers of a"
                    " space are too large, too small or too alike"
                )
            value = min(max(value, low), high)
        score = super().__new__(cls, value)
        score.metric, score.convention, score.k, score.n = metric, convention, k, n
        score.n_queries = n if n_queries is None else n_queries
        score.interval, score.null = interval, null
        if note:  # a record of a score without a note has no entry for it, as in earlier versions
            score.note = note
        if top1 is not None:
            score.top1 = top1
        if drawn_from is not None:
            score.drawn_from = drawn_from
        return score

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), dict(self.__dict__)

    def to_record(self) -> dict[str, Any]:
        nested = {name: asdict(value) for name, value in vars(self).items() if isinstance(value, ChanceLevel)}
        return {"value": float(self)} | vars(self) | nested

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Score:
        facts = dict(record)
        value, null, interval = (facts.pop(name) for name in ("value", "null", "interval"))
        facts |= {
            "null": ChanceLevel(**null) if null else None,
            "interval": tuple(interval) if interval else None,
        }
        return cls(value, **facts)

    def to_row(self) -> dict[str, Any]:
        """The score as a row of a table: score, chance (the chance level's mean), null_low, null_high (its
        95 % band), low, high (sampling interval), n, k, queries, NaN for missing ones.
        """
        low, high = self.interval or (np.nan, np.nan)
        null = self.null or ChanceLevel(np.nan, np.nan, np.nan)
        facts = {"score": float(self), "chance": null.mean, "null_low": null.low, "null_high": null.high}
        return facts | {"low": low, "high": high, "n": self.n, "k": self.k, "queries": self.n_queries}

    def describe(self) -> str:
        """The score in words: ``jaccard .301 (k = 10, n = 20,000; chance .000 … .001)``."""
        k = f"k = {self.k}, " if self.k else ""
        n = f"n = {self.n:,}" if self.n_queries == self.n else f"{self.n_queries:,} of n = {self.n:,}"
        n += f" of {self.drawn_from:,}" if self.drawn_from else ""
        chance = f"; chance {band(self.null.low, self.null.high, self.null.places)}" if self.null else ""
        return f"{self.metric} {short(self)} ({k}{n}{chance})"


def sampling_interval(values: np.ndarray, n: int) -> tuple[float, float] | None:
    """The 95 % interval of the mean over n rows, from m values 0 … 1 drawn without replacement; None if all n
    were drawn.

    Two values at each end of the range are added to the drawn ones (Agresti and Coull 1998), because 300
    values of 0 do not prove that all others are 0.
    """
    m = len(values)
    if m >= n or m < 2:
        return None
    mean = float(values.mean(dtype=np.float64))
    counted = np.concatenate([np.asarray(values, dtype=np.float64), [0, 0, 1, 1]])
    half_width = Z95 * float(counted.std()) * np.sqrt((1 - m / n) / len(counted))
    return mean - half_width, mean + half_width


# The difference of two scores on the same rows, with its 95 % interval.


@dataclass(frozen=True)
class Interval:
    """A value, such as a mean or the difference of two scores, with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        return self.low > 0 or self.high < 0

    def describe(self) -> str:
        """A difference in words: ``+.012 (95 %: +.003 … +.021)``."""
        return f"{signed(self.value)} (95 %: {signed(self.low)} … {signed(self.high)})"


def difference(value: float, error: float) -> Interval:
    return Interval(float(value), float(value - Z95 * error), float(value + Z95 * error))


def mean_difference(before: np.ndarray, now: np.ndarray) -> Interval:
    """The difference of the means of two values per row (m,); pairing makes its interval much narrower than
    for independent means.
    """
    change = np.asarray(now, dtype=np.float64) - before
    error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.inf
    return difference(change.mean(), error)
