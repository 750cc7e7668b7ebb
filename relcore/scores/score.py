"""Score: a number with its k, its n and its chance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.magnitude import lengths
from relcore.base.numbers import band, short, signed
from relcore.represent.similarity import mean_of, unit_rows
from relcore.spaces.space import LatentSpace

# Recall: how many of the true neighbours an approximate search found, and what a score can lose by it.


@dataclass(frozen=True)
class Recall:
    """Measured on `n` random queries whose true neighbours are known.

    Attributes
    ----------
    search, setting : str
        ``"IVF"``, ``"nprobe 8 of 1,264 lists"``.
    value, low, high : float
        Mean share of the true k nearest rows that were found, 0 … 1, with its 95 % interval.
    n : int
        Queries that were also searched exactly.
    target : float
        What the setting was chosen for, on other queries.
    change, reach : float
        How far the mean Jaccard overlap of these queries moved by the approximation, ± its 95 % interval.
    """

    search: str
    setting: str
    value: float
    low: float
    high: float
    n: int
    target: float
    change: float
    reach: float

    @property
    def most(self) -> float:
        """The most by which missed neighbours can change a mean Jaccard overlap, by the lower end of the
        recall's interval.

        A list without a share m of its neighbours changes the number that two lists of k share by at most m
        k, and the overlap i / (2k − i) by at most 2 / k for each: 2 (m₁ + m₂) for two lists, 4 (1 − recall)
        with the mean of both.
        """
        return min(1.0, 4 * (1 - self.low))

    def facts(self) -> dict[str, float | int | str]:
        """Columns of a table."""
        interval = {"recall_low": self.low, "recall_high": self.high, "recall_queries": self.n}
        return {"search": f"{self.search}, {self.setting}", "recall": self.value, **interval}

    def describe(self, k: int | None) -> str:
        """``IVF, nprobe 8 of 1,264 lists: recall@10 .962 (.955 … .969; 400 queries searched exactly,
        too)``.
        """
        at = f"@{k}" if k else ""
        measured = f"{self.n:,} queries searched exactly, too"
        return (
            f"{self.search}, {self.setting}: recall{at} {short(self.value)} ({band(self.low, self.high)};"
            f" {measured})"
        )

    def caution(self, k: int | None) -> str:
        """The recall, whether it was reached, and what it means for the scores."""
        missed = (
            "" if self.value >= self.target else f" That is below the {short(self.target)} it was set for."
        )
        return (
            f"approximate neighbours. {self.describe(k)}.{missed} On these queries the approximation changed"
            f" Jaccard by {short(self.change)} ± {short(self.reach)}; missed neighbours can change it by at"
            f" most {short(self.most)}."
        )


_SHARES = ("jaccard", "mrr", "class agreement", "cka", "first")
RANGES = {"cosine": (-1.0, 1.0)} | dict.fromkeys(_SHARES, (0.0, 1.0))
_ROUNDING = 1e-5  # how far float32 may put a score beyond its range
Z95 = 1.959963984540054  # two-sided 95 % of the normal distribution
QUANTILE_DRAWS = 200  # fewer draws tell little about their own tails


@dataclass(frozen=True)
class Null:
    """The chance level of a score: mean and middle 95 % of its distribution when the rows of one space are
    permuted.

    `n_permutations` is 0 where the distribution over all n! permutations, or its moments, are known in closed
    form.
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
    def from_moments(
        cls, mean: float, variance: float, n_permutations: int = 0, skewness: float = 0.0
    ) -> Null:
        """The middle 95 % of a Pearson III distribution with these moments; without skewness it is the
        normal distribution.
        """
        deviation = float(np.sqrt(max(variance, 0.0)))
        low, high = _pearson_iii(skewness)
        return cls(float(mean), float(mean) + low * deviation, float(mean) + high * deviation, n_permutations)

    @classmethod
    def from_draws(cls, draws: np.ndarray, mean: float | None = None) -> Null:
        """From scores of permuted spaces: their quantiles where there are 200 or more, else those of a normal
        distribution.

        `mean` is given where it is known exactly.
        """
        mean = float(np.mean(draws)) if mean is None else float(mean)
        if len(draws) < QUANTILE_DRAWS:
            return cls.from_moments(mean, float(np.var(draws, ddof=1)), len(draws))
        low, high = np.quantile(draws, [0.025, 0.975])
        return cls(mean, float(low), float(high), len(draws))


def _pearson_iii(skewness: float) -> tuple[float, float]:
    """2.5 % and 97.5 % points of the standardised distribution: a shifted gamma distribution, mirrored for
    skewness below 0.
    """
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
        """A row of a table: score, chance (the chance level's mean), null_low, null_high (its 95 % band),
        low, high (sampling interval), n, k, queries; NaN where there is none; of approximate neighbours the
        `Recall.facts`, too.
        """
        low, high = self.interval or (np.nan, np.nan)
        null = self.null or Null(np.nan, np.nan, np.nan)
        chance = {"chance": null.mean, "null_low": null.low, "null_high": null.high}
        facts = {
            "score": float(self),
            **chance,
            "low": low,
            "high": high,
            "n": self.n,
            "k": self.k,
            "queries": self.n_queries,
        }
        return facts | (self.recall.facts() if self.recall else {})

    def describe(self) -> str:
        """``jaccard .301 (k = 10, n = 20,000; chance .000 … .001)``."""
        circumstances = [f"k = {self.k}"] if self.k else []
        circumstances.append(
            f"n = {self.n:,}" if self.n_queries == self.n else f"{self.n_queries:,} of n = {self.n:,}"
        )
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
    """95 % interval of the mean over n rows from m values 0 … 1 drawn without replacement; None where nothing
    was sampled.

    Two values at each end of the range are added to those drawn (Agresti and Coull 1998), because 300 values
    of 0 do not prove that all others are 0.
    """
    m = len(values)
    if m >= n or m < 2:
        return None
    mean = float(values.mean(dtype=np.float64))
    counted = np.concatenate([np.asarray(values, dtype=np.float64), [0, 0, 1, 1]])
    reach = Z95 * float(counted.std()) * np.sqrt((1 - m / n) / len(counted))
    return mean - reach, mean + reach


# The difference of two scores on the same rows, with its 95 % interval.


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
    """Of the means of two values a row (m,), both of the same rows: much narrower than for two independent
    means.
    """
    change = np.asarray(now, dtype=np.float64) - before
    error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.inf
    return difference(change.mean(), error)


def cka_influence(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """How much each of m rows moves linear CKA, (m,): its derivative by the row's weight, times m.

    The standard deviation over √m is the standard error of CKA (the infinitesimal jackknife: Efron 1982, §
    6), and that of the difference of two such arrays over √m the standard error of a difference.
    """
    X, Y = (Z.astype(np.float64) - Z.mean(axis=0, dtype=np.float64) for Z in (X, Y))
    pulls = {}
    for name, left, right in (("xy", X, Y), ("xx", X, X), ("yy", Y, Y)):
        product = left.T @ right
        pulls[name] = np.einsum("ij,ij->i", left @ product, right), np.vdot(product, product)
    (xy, xy_sum), (xx, xx_sum), (yy, yy_sum) = pulls["xy"], pulls["xx"], pulls["yy"]
    cka = xy_sum / np.sqrt(xx_sum * yy_sum)
    return len(X) * cka * (2 * xy / xy_sum - xx / xx_sum - yy / yy_sum)


# Notes beside a score that something else than the likeness of two spaces decides: a few long rows, or lost
# digits.

CENTRE = "Turn centring on; for absolute rows, subtract the mean in float64 before you save them."
_MOST_ROWS = 10
_FAR = 2.0**16  # times the spread: 8 of float32's 24 binary digits are left for the differences
_NEAR = 2.0**-15  # distance of unit rows that float32, which rounds them by 2⁻²⁴, does not order reliably
_MANY = 0.1  # of the queries
_MOVED = 0.25  # of the other rows' spread


def decisive_rows(squares: Sequence[np.ndarray]) -> np.ndarray:
    """Rows, by squared lengths (n,) in either space, that make up most of ‖XᵀX‖² and stand apart, at most 10
    and 2 % of all.

    They are at least twice as long as the next one: a distribution with many long rows has none.
    """
    found = []
    for one in squares:
        longest = np.argpartition(one, -most_decisive(len(one)) - 1)[-most_decisive(len(one)) - 1 :]
        found.append(standing_apart(longest, one[longest], float(np.sum(one**2))))
    return np.unique(np.concatenate(found))


def most_decisive(n: int) -> int:
    """How many of n rows may decide a score, and be named."""
    return min(_MOST_ROWS, max(1, n // 50))


def standing_apart(longest: np.ndarray, squares: np.ndarray, fourth: float) -> np.ndarray:
    """Those of the longest rows (m + 1,) of `decisive_rows`, by their squared lengths and the sum over all
    rows of the squares of these."""
    apart = squares >= 0.1 * squares.max()
    if (
        apart.all()
        or squares[apart].min() < 4 * squares[~apart].max()
        or 2 * np.sum(squares[apart] ** 2) <= fourth
    ):
        return np.empty(0, dtype=np.int64)
    return longest[apart]


def long_row(space: LatentSpace) -> str:
    """Says that one row moves the mean of a space, and so every centred score; "" where none does."""
    far = lengths(space.vectors, mean_of(space)).astype(np.float64)
    row, n = int(far.argmax()), len(far)
    if n < 3 or not far[row]:
        return ""
    moved = 1 / (n - 1)  # of the row's distance: the other rows' mean lies as far on the other side
    others = np.delete(far, row) / far[row]
    spread = np.sqrt(max(np.mean(others**2) - moved**2, 0))
    if moved <= _MOVED * spread:
        return ""
    return (
        f"One long row, {quote(space.ids[[row]])}, moves the mean of {quote([space.name])} by"
        f" {short(moved / max(spread, 1e-9), 1)} times the spread of the other rows, so it decides centred"
        " scores. Leave it out."
    )


def far_from_zero(side: str, spread: float, offset: float) -> str:
    """Says that the rows of a space lie too far from zero for what distinguishes them; "" where they do
    not.
    """
    if offset <= _FAR * spread:
        return ""
    return (
        f"The {side} space lies {offset / spread:,.0f} times its spread from zero, so float32 has lost digits"
        f" of what distinguishes its rows, for every score. {CENTRE}"
    )


def indistinct_neighbours(queries: np.ndarray, last: np.ndarray) -> str:
    """Says that the nearest neighbours of many queries (m, d) are too alike; `last` (m, d) are the last
    ones of their lists.
    """
    share = float(np.mean(lengths(unit_rows(queries) - unit_rows(last)) < _NEAR))
    if share <= _MANY:
        return ""
    return (
        f"Float32 hardly distinguishes the nearest neighbours of {100 * share:.0f} % of the queries: rows"
        f" coincide, or differ little compared with what they share. {CENTRE}"
    )
