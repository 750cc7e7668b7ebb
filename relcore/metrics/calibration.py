"""Score: a number with its k, its n and its chance level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relcore.metrics.recall import Recall
from relcore.numbers import band, short
from relcore.spaces import SpaceError

_SHARES = ("jaccard", "mrr", "class agreement", "cka", "first")
RANGES = {"cosine": (-1.0, 1.0)} | dict.fromkeys(_SHARES, (0.0, 1.0))
_ROUNDING = 1e-5  # how far float32 may put a score beyond its range
Z95 = 1.959963984540054  # two-sided 95 % of the normal distribution
QUANTILE_DRAWS = 200  # fewer draws tell little about their own tails


@dataclass(frozen=True)
class Null:
    """The chance level of a score: mean and middle 95 % of its distribution when the rows of one space are permuted.

    `n_permutations` is 0 where the distribution over all n! permutations, or its moments, are known in closed form.
    """

    mean: float
    low: float
    high: float
    n_permutations: int = 0

    @property
    def places(self) -> int:
        """Decimals needed to distinguish it from zero: 3, or 5 where it is small."""
        return 3 if max(abs(self.low), abs(self.high)) >= 0.005 else 5

    @classmethod
    def from_moments(cls, mean: float, variance: float, n_permutations: int = 0, skewness: float = 0.0) -> Null:
        """The middle 95 % of a Pearson III distribution with these moments; without skewness it is the normal distribution."""
        deviation = float(np.sqrt(max(variance, 0.0)))
        low, high = _pearson_iii(skewness)
        return cls(float(mean), float(mean) + low * deviation, float(mean) + high * deviation, n_permutations)

    @classmethod
    def from_draws(cls, draws: np.ndarray, mean: float | None = None) -> Null:
        """From scores of permuted spaces: their quantiles where there are 200 or more, else those of a normal distribution.

        `mean` is given where it is known exactly.
        """
        mean = float(np.mean(draws)) if mean is None else float(mean)
        if len(draws) < QUANTILE_DRAWS:
            return cls.from_moments(mean, float(np.var(draws, ddof=1)), len(draws))
        low, high = np.quantile(draws, [0.025, 0.975])
        return cls(mean, float(low), float(high), len(draws))


def _pearson_iii(skewness: float) -> tuple[float, float]:
    """2.5 % and 97.5 % points of the standardised distribution: a shifted gamma distribution, mirrored for skewness below 0."""
    if abs(skewness) < 1e-3:
        return -Z95, Z95
    from scipy.special import gammaincinv

    shape = 4 / skewness**2
    low, high = (float((gammaincinv(shape, p) - shape) / np.sqrt(shape)) for p in (0.025, 0.975))
    return (low, high) if skewness > 0 else (-high, -low)


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
    null : Null or None
    note : str
        What else decides the score, such as a single long row; "" where nothing does.
    recall : Recall or None
        Of the neighbour lists, where the search was approximate.
    """

    note: str = ""
    recall: Recall | None = None
    metric: str
    convention: str
    k: int | None
    n: int
    n_queries: int
    interval: tuple[float, float] | None
    null: Null | None

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
        null: Null | None = None,
        note: str = "",
        recall: Recall | None = None,
    ) -> Score:
        score = super().__new__(cls, _within_range(metric, convention, value))
        score.metric, score.convention, score.k, score.n = metric, convention, k, n
        score.n_queries = n if n_queries is None else n_queries
        score.interval, score.null = interval, null
        if note:  # a record of a score without a note has no entry for it, as in earlier versions
            score.note = note
        if recall:
            score.recall = recall
        return score

    def approximated(self, recall: Recall | None) -> Score:
        """The same score, read from lists of this recall."""
        return Score(float(self), **(self.__dict__ | {"recall": recall}))

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict]:
        return (float(self),), dict(self.__dict__)

    def to_record(self) -> dict[str, Any]:
        """Value and attributes as plain JSON."""
        circumstances = dict(self.__dict__)
        found = {"value": float(self)} | circumstances | {"null": asdict(self.null) if self.null else None}
        return found | ({"recall": asdict(self.recall)} if self.recall else {})

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Score:
        """Back from `to_record`."""
        circumstances = dict(record)
        value, null, interval = (circumstances.pop(name) for name in ("value", "null", "interval"))
        interval = tuple(interval) if interval else None
        if recall := circumstances.pop("recall", None):
            circumstances["recall"] = Recall(**recall)
        return cls(value, null=Null(**null) if null else None, interval=interval, **circumstances)

    def facts(self) -> dict[str, Any]:
        """A row of a table: score, chance (the chance level's mean), null_low, null_high (its 95 % band), low, high (sampling
        interval), n, k, queries; NaN where there is none; of approximate neighbours the `Recall.facts`, too."""
        low, high = self.interval or (np.nan, np.nan)
        null = self.null or Null(np.nan, np.nan, np.nan)
        chance = {"chance": null.mean, "null_low": null.low, "null_high": null.high}
        facts = {"score": float(self), **chance, "low": low, "high": high, "n": self.n, "k": self.k, "queries": self.n_queries}
        return facts | (self.recall.facts() if self.recall else {})

    def describe(self) -> str:
        """``jaccard .301 (k = 10, n = 20,000; chance .000 … .001)``."""
        circumstances = [f"k = {self.k}"] if self.k else []
        circumstances.append(f"n = {self.n:,}" if self.n_queries == self.n else f"{self.n_queries:,} of n = {self.n:,}")
        chance = f"; chance {band(self.null.low, self.null.high, self.null.places)}" if self.null else ""
        chance += f"; {self.recall.describe(self.k)}" if self.recall else ""
        return f"{self.metric} {short(self)} ({', '.join(circumstances)}{chance})"


def _within_range(metric: str, convention: str, value: float) -> float:
    """The value, without the rounding that puts it just outside the range of its metric."""
    if metric not in RANGES:
        return value
    low, high = (-1.0, 1.0) if convention == "debiased" else RANGES[metric]
    if not low - _ROUNDING <= value <= high + _ROUNDING:
        raise SpaceError(
            f"{metric}: expected a score from {low:g} to {high:g}, got {value:g}; the numbers of a space "
            "are too large, too small or too alike"
        )
    return min(max(value, low), high)


def sampling_interval(values: np.ndarray, n: int) -> tuple[float, float] | None:
    """95 % interval of the mean over n rows from m values 0 … 1 drawn without replacement; None where nothing was sampled.

    Two values at each end of the range are added to those drawn (Agresti and Coull 1998), because 300 values of 0 do not
    prove that all others are 0.
    """
    m = len(values)
    if m >= n or m < 2:
        return None
    mean = float(values.mean(dtype=np.float64))
    counted = np.concatenate([np.asarray(values, dtype=np.float64), [0, 0, 1, 1]])
    reach = Z95 * float(counted.std()) * np.sqrt((1 - m / n) / len(counted))
    return mean - reach, mean + reach
