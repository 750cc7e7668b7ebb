"""`Score`: a number with its settings and its chance level. `lowest_groups`: a test of groups of rows.
`PairScores`: the scores of all pairs of several spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.base.numbers import band, beside, short, short_chance, signed
from relcore.base.report import Report, Table

CENTRE = "Turn centring on; for absolute rows, subtract the mean in float64 before you save them."

_SHARES = [
    *("jaccard", "mrr", "class agreement", "cka", "first", "svcca", "pwcca", "gulp", "procrustes"),
    *("angular shape", "kernel cka", "angular cka", "knn recall", "cycle knn"),
]
RANGES = dict.fromkeys(("cosine", "rsa", "second-order cosine"), (-1.0, 1.0)) | dict.fromkeys(
    _SHARES, (0.0, 1.0)
)
_ROUNDING = 1e-5  # largest excess over the range of a score that float32 rounding can cause
Z95 = 1.959963984540054  # quantile of the normal distribution for a two-sided 95 % interval


def share_interval(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share that was measured on n rows, within 0 … 1 (Wilson 1927)."""
    z = Z95**2 / n
    middle = (share + z / 2) / (1 + z)
    reach = np.sqrt(z * (share * (1 - share) + z / 4)) / (1 + z)
    return max(0.0, float(middle - reach)), min(1.0, float(middle + reach))


QUANTILE_DRAWS = 200  # number of draws below which quantiles of the tails are unreliable


@dataclass(frozen=True)
class ChanceLevel:
    """The chance level of a score: the mean and the middle 95 % of its distribution if the rows of one space
    are permuted.

    If the distribution over all n! permutations, or its moments, are known in closed form, `n_permutations`
    is 0.
    """

    mean: float
    low: float
    high: float
    n_permutations: int = 0

    @property
    def places(self) -> int:
        """The number of decimals needed to show that the chance level is not zero: 3, or 5 if it is small."""
        if max(abs(self.low), abs(self.high)) >= 0.005:
            return 3
        return 5

    def __str__(self) -> str:
        return short_chance(self.mean)

    @classmethod
    def from_moments(
        cls, mean: float, variance: float, n_permutations: int = 0, skewness: float = 0.0
    ) -> ChanceLevel:
        """The chance level from the moments of a score. Its band is the middle 95 % of a Pearson III
        distribution, which is normal if the skewness is 0.
        """
        ends = np.array([-Z95, Z95])
        if abs(skewness) >= 1e-3:  # a shifted gamma distribution, mirrored if the skewness is negative
            from scipy.special import gammaincinv

            shape = 4 / skewness**2
            ends = (gammaincinv(shape, [0.025, 0.975]) - shape) / np.sqrt(shape)
            ends = ends if skewness > 0 else -ends[::-1]
        low, high = mean + ends * np.sqrt(max(variance, 0.0))
        return cls(float(mean), float(low), float(high), n_permutations)

    @classmethod
    def from_draws(cls, draws: np.ndarray, mean: float | None = None) -> ChanceLevel:
        """The chance level from scores of permuted spaces. If there are 200 or more, the band is given by
        their quantiles; otherwise, by those of a normal distribution. `mean` is the exact mean, if it is
        known.
        """
        if mean is None:
            mean = float(np.mean(draws))
        else:
            mean = float(mean)
        if len(draws) < QUANTILE_DRAWS:
            return cls.from_moments(mean, float(np.var(draws, ddof=1)), len(draws))
        low, high = np.quantile(draws, [0.025, 0.975])
        return cls(mean, float(low), float(high), len(draws))


class Score(float):
    """A float with its settings and its chance level. It is compared and printed as a number; a notebook
    shows its chance level, its number of rows and its settings, too.

    Attributes
    ----------
    metric, convention : str
        For example ``"jaccard"`` and ``"paper"``.
    k : int or None
        Number of neighbours, if the metric uses neighbours.
    n : int
        Number of rows that were compared.
    n_queries : int
        Number of queries. If it is below n, queries are a random sample, and `interval` is the sampling
        interval.
    interval : (float, float) or None
        The 95 % sampling interval of the mean over all n rows.
    null : ChanceLevel or None
    note : str
        A warning, for example if a single long row decides the score; "" if there is none.
    top1 : float or None
        For an MRR of the convention "paper": the share of queries whose nearest row is their partner.
    drawn_from : int or None
        The number of rows from which the n rows were sampled; None if they were not sampled.

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
            if convention == "debiased":
                low = -1.0
                high = 1.0
            else:
                low, high = RANGES[metric]
            if not low - _ROUNDING <= value <= high + _ROUNDING:
                raise SpaceError(
                    f"{metric}: expected a score from {low:g} to {high:g}, got {value:g}; the numbers of a"
                    " space are too large, too small or too alike"
                )
            value = min(max(value, low), high)
        score = super().__new__(cls, value)
        score.metric = metric
        score.convention = convention
        score.k = k
        score.n = n
        score.n_queries = n if n_queries is None else n_queries
        score.interval = interval
        score.null = null
        # Facts without a value are not stored, as in earlier versions.
        optional = {"note": note or None, "top1": top1, "drawn_from": drawn_from}
        vars(score).update({name: fact for name, fact in optional.items() if fact is not None})
        return score

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), dict(self.__dict__)

    def __repr__(self) -> str:
        return f"<Score {self.describe()}>"

    def __str__(self) -> str:
        return float.__repr__(self)

    def _repr_html_(self) -> str:
        return self.report().html()

    def report(self) -> Report:
        """The score with its chance level, its number of rows and its settings."""
        cells = {"score": short(self)}
        if self.null:
            places = self.null.places
            cells["chance"] = f"{self.null} ({band(self.null.low, self.null.high, places)})"
        if self.interval:
            cells["95 %, sampled"] = band(*self.interval)
        if self.k:
            cells["k"] = f"{self.k:,}"
        cells["n"] = f"{self.n:,}"
        if self.n_queries != self.n:
            cells["queries"] = f"{self.n_queries:,}"
        if self.convention:
            cells["convention"] = self.convention
        rows = pd.DataFrame([self.to_row()])
        caption = ""
        if self.null:
            caption = "Chance: the mean and the middle 95 % of the scores of permuted rows."
        table = Table("score", rows, [[*cells], [*cells.values()]], caption=caption)
        notes = []
        if self.note:
            notes = [self.note]
        return Report(f"{self.describe()}.", [table], notes=notes)

    def to_record(self) -> dict[str, Any]:
        nested = {name: asdict(value) for name, value in vars(self).items() if isinstance(value, ChanceLevel)}
        return {"value": float(self)} | vars(self) | nested

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Score:
        facts = dict(record)
        value = facts.pop("value")
        null = facts.pop("null")
        interval = facts.pop("interval")
        facts |= {
            "null": ChanceLevel(**null) if null else None,
            "interval": tuple(interval) if interval else None,
        }
        return cls(value, **facts)

    def to_row(self) -> dict[str, Any]:
        """The score as a row of a table. Columns: score, chance (mean of the chance level), null_low and
        null_high (its 95 % band), low and high (sampling interval), n, k, queries. Missing values are NaN.
        """
        low, high = self.interval or (np.nan, np.nan)
        null = self.null or ChanceLevel(np.nan, np.nan, np.nan)
        facts = {"score": float(self), "chance": null.mean, "null_low": null.low, "null_high": null.high}
        return facts | {"low": low, "high": high, "n": self.n, "k": self.k, "queries": self.n_queries}

    def describe(self) -> str:
        """The score in words: ``jaccard .301 (k = 10, n = 20,000; chance .000 … .001)``."""
        k = f"k = {self.k}, " if self.k else ""
        if self.n_queries == self.n:
            n = f"n = {self.n:,}"
        else:
            n = f"{self.n_queries:,} of n = {self.n:,}"
        if self.drawn_from:
            n += f" of {self.drawn_from:,}"
        chance = ""
        if self.null:
            chance = f"; chance {band(self.null.low, self.null.high, self.null.places)}"
        return f"{self.metric} {short(self)} ({k}{n}{chance})"


def chance_of(score: Score) -> ChanceLevel:
    """The chance level of a score that always has one."""
    assert score.null is not None, f"{score.metric} has no chance level"
    return score.null


def sampling_interval(values: np.ndarray, n: int) -> tuple[float, float] | None:
    """The 95 % interval of the mean over n rows, from m values (0 … 1) that were drawn without replacement.
    None if all n values were drawn.

    Two values at each end of the range are added to the drawn values (Agresti and Coull 1998): for example,
    300 values of 0 do not prove that all other values are 0.
    """
    m = len(values)
    if m >= n or m < 2:
        return None
    mean = float(values.mean(dtype=np.float64))
    counted = np.concatenate([np.asarray(values, dtype=np.float64), [0, 0, 1, 1]])
    half_width = Z95 * float(counted.std()) * np.sqrt((1 - m / n) / len(counted))
    return mean - half_width, mean + half_width


@dataclass(frozen=True)
class Interval:
    """A value, such as a mean or the difference of two scores, with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def band(self) -> str:
        """The interval as text: ``.003 … .021``. Ends near 0 have the decimals that show their sign."""
        return f"{beside(self.low, 0)[0]} … {beside(self.high, 0)[0]}"

    def describe(self) -> str:
        """The value in words, as a difference: ``+.012 (95 %: +.003 … +.021)``."""
        return f"{signed(self.value)} (95 %: {signed(self.low)} … {signed(self.high)})"


def difference(value: float, error: float) -> Interval:
    return Interval(float(value), float(value - Z95 * error), float(value + Z95 * error))


def mean_difference(before: np.ndarray, now: np.ndarray) -> Interval:
    """The difference of two means, where each row has a value before and a value now (m,). Because values are
    paired, the interval is much narrower than for independent means.
    """
    change = np.asarray(now, dtype=np.float64) - before
    if len(change) > 1:
        error = change.std(ddof=1) / np.sqrt(len(change))
    else:
        error = np.inf
    return difference(change.mean(), error)


GROUP_PERMUTATIONS = 1999  # with these, the smallest p is 1 / 2,000


@dataclass(frozen=True)
class GroupTest:
    """The comparison of g groups with random groups of the same sizes; each field has one number per group.

    `mean` is the mean of the group. `z` is (mean − mean of all rows) / standard error for a random group. `p`
    is the share of permutations in which *any* group has a z that is as low, so it is corrected for the
    number of groups. `half_width` is half of the 95 % band of the mean of a random group.
    """

    mean: np.ndarray
    z: np.ndarray
    p: np.ndarray
    half_width: np.ndarray


def lowest_groups(
    values: np.ndarray,
    groups: np.ndarray,
    *,
    n_permutations: int = GROUP_PERMUTATIONS,
    random_state: int = 0,
) -> GroupTest:
    r"""Test whether the mean value of each group is below that of random groups of the same size.

    If m of n rows are drawn without replacement, their mean has the expected value μ, the mean of all rows,
    and the variance :math:`\sigma^2 / m \cdot (n - m) / (n - 1)`. The z of each group is compared with the
    *smallest* z among all groups after a permutation of the values (Westfall and Young 1993), so p is the
    family-wise error rate.

    Parameters
    ----------
    values : array (n,)
    groups : array (n,) of int
        The group of each row, 0 … g − 1. Rows of no group have −1; random groups may include them.

    Raises
    ------
    SpaceError
        No group; a group without rows; a number of values that differs from that of groups.

    Examples
    --------
    >>> import numpy as np
    >>> values, groups = np.random.default_rng(0).normal(size=300), np.repeat([0, 1, 2], 100)
    >>> found = lowest_groups(values - (groups == 1), groups)
    >>> int(found.p.argmin()), bool(found.p[1] < .001), bool(found.p[0] > .05)
    (1, True, True)
    """
    values = np.asarray(values, dtype=np.float64)
    groups = np.asarray(groups)
    if len(values) != len(groups):
        raise SpaceError(f"groups: expected {len(values)} numbers, one per value, got {len(groups)}")
    n_groups = int(groups.max(initial=-1)) + 1
    sizes = np.bincount(groups[groups >= 0], minlength=n_groups)
    if not n_groups or not sizes.all():
        raise SpaceError(
            "groups: expected one group or more, each with a row or more; leave empty groups out"
        )
    n = len(values)
    error = np.sqrt(values.var() / sizes * (n - sizes) / max(n - 1, 1))
    order = np.flatnonzero(groups >= 0)
    belongs = groups[order]
    mu = values.mean()

    def means(values: np.ndarray) -> np.ndarray:
        return np.bincount(belongs, values[order], n_groups) / sizes

    def standardised(means: np.ndarray) -> np.ndarray:
        return np.divide(means - mu, error, out=np.zeros(n_groups), where=error > 0)

    mean = means(values)
    z = standardised(mean)
    rng = np.random.default_rng(random_state)
    lowest = np.sort([standardised(means(rng.permutation(values))).min() for _ in range(n_permutations)])
    as_low = np.searchsorted(lowest, z, side="right")
    return GroupTest(mean, z, (1 + as_low) / (1 + n_permutations), Z95 * error)


@dataclass(frozen=True)
class PairScores:
    """The scores of all pairs of several spaces by one metric: a symmetric matrix.

    Attributes
    ----------
    names : s distinct names
    metric : str
        One of `names.METRICS`.
    scores : s × s of Score or None
        None if two spaces cannot be compared.
    reasons : s × s of str
        The reason why there is no score; "" if there is one.
    best_chance : ChanceLevel or None
        The chance level of the largest score between different spaces. None for a single pair, for spaces
        with different rows, and in results of older versions.
    """

    names: tuple[str, ...]
    metric: str
    scores: tuple[tuple[Score | None, ...], ...]
    reasons: tuple[tuple[str, ...], ...]
    best_chance: ChanceLevel | None = None

    @property
    def values(self) -> np.ndarray:
        """The scores as numbers, (s, s); NaN for missing scores."""
        return np.array([[np.nan if score is None else float(score) for score in row] for row in self.scores])

    @property
    def title(self) -> str:
        """The name of the metric for people: ``"mutual kNN, k = 10"``."""
        k = next((score.k for row in self.scores for score in row if score is not None), None)
        return titled(self.metric, k)

    def describe(self, i: int, j: int) -> str:
        """The text of a cell: the metric, and the score with its sampling interval, chance level and number
        of rows. If there is no score, the text gives the reason.
        """
        score = self.scores[i][j]
        if score is None:
            return self.reasons[i][j]
        text = f"{self.title}: {short(score)}"
        if score.interval:
            text += f" ({band(*score.interval)}, sampled)"
        if null := score.null:
            text += f"\nchance level: {null}, 95 % band {band(null.low, null.high)}"
        if score.n_queries == score.n:
            queries = ""
        else:
            queries = f"{score.n_queries:,} of "
        as_queries = ""
        if queries:
            as_queries = " as queries"
        text += f"\nn: {queries}{score.n:,} rows{as_queries}"
        if score.note:
            return f"{text}\n{score.note}"
        return text

    @property
    def best(self) -> tuple[str, str, Score] | None:
        """The names of the two most similar spaces, and their score. None if no two spaces can be
        compared."""
        scored: dict[tuple[int, int], Score] = {}
        for i, row in enumerate(self.scores):
            for j, score in enumerate(row[:i]):
                if score is not None:
                    scored[i, j] = score
        if not scored:
            return None
        i, j = max(scored, key=lambda pair: scored[pair])
        return self.names[j], self.names[i], scored[i, j]

    def grouped(self) -> PairScores:
        """The same scores, with the spaces reordered so that similar spaces are side by side.

        The order is that of the leaves of a hierarchical clustering, by average linkage and the distance 1 −
        score. A pair without a score counts as less similar than all other pairs.
        """
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        tree = linkage(squareform(distances(self.values), checks=False), "average", optimal_ordering=True)
        order = leaves_list(tree).tolist()
        names = tuple(self.names[i] for i in order)
        scores = tuple(tuple(self.scores[i][j] for j in order) for i in order)
        reasons = tuple(tuple(self.reasons[i][j] for j in order) for i in order)
        return replace(self, names=names, scores=scores, reasons=reasons)

    def table(self) -> pd.DataFrame:
        """A table for figures and CSV files, with one row per pair, including each space with itself.

        Columns: first, second, score, chance (mean of the chance level), null_low and null_high (its 95 %
        band), low and high (sampling interval, if rows were sampled), n, k, queries, reason (for a missing
        score).
        """
        rows = []
        for i, first in enumerate(self.names):
            for j in range(i, len(self.names)):
                score = self.scores[i][j]
                row = {"first": first, "second": self.names[j]}
                if score is None:
                    row["reason"] = self.reasons[i][j]
                else:
                    row |= score.to_row()
                rows.append(row)
        numbers = dict.fromkeys(["score", "chance", "null_low", "null_high", "low", "high"], "float64")
        types = numbers | dict.fromkeys(["n", "k", "queries"], "Int64")
        table = pd.DataFrame(rows).reindex(columns=["first", "second", *types, "reason"])
        return table.astype(types).fillna({"reason": ""})


def distances(similarity: np.ndarray) -> np.ndarray:
    """The distances 1 − similarity (s, s), at least 0. A pair without a score gets the largest distance."""
    distance = np.maximum(1 - similarity, 0)
    distance = np.nan_to_num(distance, nan=np.nanmax(distance, initial=1.0))
    np.fill_diagonal(distance, 0)
    return distance


# The chance level of a maximum: how high the best score of many pairs of spaces gets by chance.

SAMPLED_ROWS = 400
PAIR_PERMUTATIONS = 400
_AT_ONCE = 2**26  # maximum number of values of permuted matrices in memory at once


def best_by_chance(
    scores: Mapping[tuple[int, int], Score], forms: Sequence[np.ndarray], *, both_axes: bool
) -> ChanceLevel | None:
    """The chance level of the largest of these scores. None if there are fewer than two scores.

    In all pairs, the rows of the second space are permuted by the same permutation. Scores of pairs that
    share a space are correlated; so are scores of layers of the same model. So their maximum is lower than
    that of independent scores. The correlation is estimated on a sample of rows. The mean and the spread of
    each score are those of its own chance level.

    Parameters
    ----------
    scores : (i, j) → Score with a chance level, i ≠ j
        All scores are over the same rows.
    forms : arrays (m, w), one per space
        A matrix of a sample of these rows. With `both_axes`, it holds their similarities and is permuted
        along both axes; otherwise it holds the rows and is permuted along the first axis.
    """
    nulls = {
        cell: score.null for cell, score in scores.items() if score is not None and score.null is not None
    }
    if len(nulls) < 2:
        return None
    fixed, first = np.unique([cell[0] for cell in nulls], return_inverse=True)
    moved, second = np.unique([cell[1] for cell in nulls], return_inverse=True)
    flat = np.stack(forms).astype(np.float32)
    permuted = _permuted_products(flat[fixed], flat[moved], both_axes)[:, first, second]
    low, high = np.quantile(permuted, [0.025, 0.975], axis=0)
    widths = np.array([null.high - null.low for null in nulls.values()])
    means = np.array([null.mean for null in nulls.values()])
    rescaled = means + (permuted - permuted.mean(axis=0)) * np.divide(
        widths, high - low, out=np.zeros_like(widths), where=high > low
    )
    return ChanceLevel.from_draws(rescaled.max(axis=1))


def titled(metric: str, k: int | None) -> str:
    """The name of a metric for people, with its number of neighbours if it has one."""
    title = METRICS[metric].title
    if k:
        return f"{title}, k = {k}"
    return title


def _with_norm_one(forms: np.ndarray) -> np.ndarray:
    """The matrices (s, m, w), each divided by its norm."""
    norms = np.linalg.norm(forms.reshape(len(forms), -1), axis=1)
    return forms / np.maximum(norms, 1e-30)[:, None, None]


def _permuted_products(fixed: np.ndarray, moved: np.ndarray, both_axes: bool) -> np.ndarray:
    """For each permutation, the inner products of the matrices `fixed` (s, m, w) with the permuted matrices
    `moved` (t, m, w): (permutations, s, t). All matrices have norm 1."""
    rng = np.random.default_rng(0)
    (t, m, _) = moved.shape
    fixed = _with_norm_one(fixed)
    moved = _with_norm_one(moved)
    flat = fixed.reshape(len(fixed), -1)
    inner_products = np.empty((PAIR_PERMUTATIONS, len(fixed), t))
    at_once = max(1, _AT_ONCE // moved.size)
    for start in range(0, PAIR_PERMUTATIONS, at_once):
        orders = [rng.permutation(m) for _ in range(min(at_once, PAIR_PERMUTATIONS - start))]
        permuted = [moved[:, order] for order in orders]
        if both_axes:
            permuted = [forms[:, :, order] for forms, order in zip(permuted, orders, strict=True)]
        products = flat @ np.stack(permuted).reshape(len(orders) * t, -1).T
        inner_products[start : start + len(orders)] = products.reshape(len(fixed), len(orders), t).transpose(
            1, 0, 2
        )
    return inner_products
