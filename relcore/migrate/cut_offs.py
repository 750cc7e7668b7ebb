"""What passes a cut-off of similarity scores: precision, recall and number of hits, with intervals over
queries, and whether relevant and other rows can be separated by a cut-off at all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.scores.score import Z95, Interval, mean_difference
from relcore.spaces.split import row_keys

FEWEST_QUERIES = 10  # number of queries with hits below which no precision is measured
QUANTITIES = ("precision", "recall", "hits")
USABLE = 0.5  # precision and recall that a usable cut-off reaches
_RESAMPLES = 400
_FOLDS = 5
FEWEST_OF_KIND = 10
WORTH_KINDS = 0.02  # gain of F1 that is worth a cut-off for each kind of query


def ratio_interval(part: np.ndarray, whole: np.ndarray, n_new: int = 0, is_share: bool = False) -> Interval:
    r"""The ratio :math:`r = \sum_q a_q / \sum_q b_q`, and the 95 % interval of the same ratio of `n_new`
    other queries of the same kind; by default, of as many as there are.

    The ratio is linearised: :math:`e_q = (a_q - r b_q) / \bar b` has its standard error over queries (Cochran
    1977, *Sampling Techniques*, 6.4), times :math:`\sqrt{1 + n/m}` for m new queries and the quantile of
    Student's t with n − 1 degrees of freedom. Pairs of one query are not independent: with intervals over
    pairs, .31 to .52 of 95 % intervals held.

    Parameters
    ----------
    part, whole : arrays (q,)
        Numerator and denominator of each query.
    is_share : bool
        Whether the ratio is a share, 0 … 1. Then the residual of one more query counts, which has only wrong
        rows: queries that all have the share 1 do not show that other queries have it, too.
    """
    from scipy.special import stdtrit

    n = len(part)
    total = float(whole.sum())
    if n < 2 or not total:
        return Interval(float("nan"), float("nan"), float("nan"))
    ratio = float(part.sum()) / total
    error = (part - ratio * whole) / (total / n)
    squares = float(error @ error)
    if is_share:
        weight = n / np.count_nonzero(whole)
        squares += (weight * ratio) ** 2
    spread = float(np.sqrt(squares / (n - 1) / n))
    half = float(stdtrit(n - 1, 0.975)) * spread * float(np.sqrt(1 + n / (n_new or n)))
    if is_share:
        return Interval(ratio, max(0.0, ratio - half), min(1.0, ratio + half))
    return Interval(ratio, ratio - half, ratio + half)


class Separability(NamedTuple):
    """Whether one cut-off separates relevant from other rows.

    Attributes
    ----------
    value : float
        The largest over all cut-offs of the smaller of precision and recall, 0 … 1.
    sd : float
        Its standard deviation over resamples of the queries, with the best cut-off of each resample.
    cut : float
        The cut-off where it is reached; that of L2 distances is negative.
    """

    value: float
    sd: float
    cut: float

    @property
    def low(self) -> float:
        return max(0.0, self.value - Z95 * self.sd)

    @property
    def high(self) -> float:
        return min(1.0, self.value + Z95 * self.sd)

    @property
    def verdict(self) -> str:
        """ "yes" if both are at least .5 even at the lower end of the interval, "no" if not even at its upper
        end, otherwise "undecided"."""
        if self.low >= USABLE:
            return "yes"
        if self.high < USABLE:
            return "no"
        return "undecided"


@dataclass(frozen=True, eq=False)
class PassCounts:
    """The number of rows that pass each of several cut-offs, for each query.

    Attributes
    ----------
    cuts : array (g,)
        Cut-offs, ascending; a row passes if its similarity is at least the cut-off.
    passed : array (q, g)
        Number of rows that pass.
    found : array (q, g)
        Number of relevant rows that pass.
    relevant : array (q,)
        Number of relevant rows.
    """

    cuts: np.ndarray
    passed: np.ndarray
    found: np.ndarray
    relevant: np.ndarray

    def take(self, queries: np.ndarray) -> PassCounts:
        return PassCounts(self.cuts, self.passed[queries], self.found[queries], self.relevant[queries])

    @property
    def precision(self) -> np.ndarray:
        """The precision (g,) over all queries; NaN where nothing passes."""
        passed = self.passed.sum(axis=0)
        return np.divide(self.found.sum(axis=0), passed, out=np.full(len(passed), np.nan), where=passed > 0)

    @property
    def recall(self) -> np.ndarray:
        return self.found.sum(axis=0) / max(self.relevant.sum(), 1)

    def nearest(self, cut: float) -> int:
        """The index of the cut-off that is nearest to this one."""
        return int(np.abs(self.cuts - cut).argmin())

    def thinned(self, most: int, kept: Collection[int] = ()) -> PassCounts:
        """About `most` of the cut-offs, evenly, and those with the indexes `kept`."""
        g = len(self.cuts)
        places = np.union1d(np.linspace(0, g - 1, min(most, g)).round().astype(int), [*kept]).astype(int)
        return PassCounts(
            self.cuts[places],
            _small(self.passed[:, places]),
            _small(self.found[:, places]),
            _small(self.relevant),
        )

    def rates(self, place: int, n_new: int = 0) -> dict[str, Interval]:
        """Quantity → what `n_new` other queries get at one cut-off, with the interval of `ratio_interval`.
        The hits are the mean number of rows that pass per query."""
        passed = self.passed[:, place]
        found = self.found[:, place]
        rates = {"hits": ratio_interval(passed, np.ones(len(passed)), n_new)}
        if self.relevant.any():
            rates["precision"] = ratio_interval(found, passed, n_new, is_share=True)
            rates["recall"] = ratio_interval(found, self.relevant, n_new, is_share=True)
        return {name: rates[name] for name in QUANTITIES if name in rates}

    def place_that_keeps(self, quantity: str, wanted: float) -> int:
        """The index of the loosest cut-off with at least this precision, or of the strictest one with at
        least this recall, or of the one whose hits per query are nearest.

        Raises a SpaceError if no cut-off that 10 queries or more pass has this precision.
        """
        if quantity == "hits":
            return int(np.abs(self.passed.mean(axis=0) - wanted).argmin())
        if quantity == "recall":
            return int(np.flatnonzero(self.recall >= wanted)[-1])
        precision = np.where((self.passed > 0).sum(axis=0) >= FEWEST_QUERIES, self.precision, -1.0)
        reached = np.flatnonzero(precision >= wanted)
        if len(reached):
            return int(reached[0])
        best = int(precision.argmax())
        raise SpaceError(
            f"precision: expected a cut-off that reaches {short(wanted)} on {FEWEST_QUERIES} queries or more,"
            f" got {short(float(precision[best]))} at best, with recall {short(float(self.recall[best]))};"
            " keep recall or hits instead"
        )

    def best_f1(self) -> int:
        """The index of the cut-off with the largest F1, the harmonic mean of precision and recall."""
        return int(np.argmax(2 * self.found.sum(axis=0) / (self.passed.sum(axis=0) + self.relevant.sum())))

    def separability(self, random_state: int = 0) -> Separability:
        n = len(self.relevant)
        rng = np.random.default_rng(random_state)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float32)
        weights = np.concatenate([np.ones((1, n), np.float32), weights])
        found = weights @ self.found.astype(np.float32)
        passed = weights @ self.passed.astype(np.float32)
        relevant = weights @ self.relevant.astype(np.float32)
        # The smaller of precision and recall has the larger of both denominators.
        both = found / np.maximum(np.maximum(passed, relevant[:, None]), 1)
        best = both.max(axis=1)
        return Separability(float(best[0]), float(best[1:].std(ddof=1)), float(self.cuts[both[0].argmax()]))


@dataclass(frozen=True, eq=False)
class KindCutOffs:
    """A cut-off for each kind of query, with the largest F1 on the queries of that kind, and whether this is
    better on held-out queries than the single cut-off with the largest F1.

    Attributes
    ----------
    kinds : tuple of k texts
        The kinds with 10 queries or more that have relevant rows; other queries get the single cut-off.
    cuts : array (k,)
    queries : array (k,)
        Number of queries of each kind.
    gain : Interval
        Change of F1 by a cut-off for each kind, paired by query, in 5-fold cross-validation over queries.
    separability : Separability
        That of the held-out similarities minus the cut-offs of their kinds.
    """

    kinds: tuple[str, ...]
    cuts: np.ndarray
    queries: np.ndarray
    gain: Interval
    separability: Separability

    @property
    def is_better(self) -> bool:
        """Whether F1 is clearly higher, by more than .02."""
        return self.gain.low > WORTH_KINDS

    @classmethod
    def of(cls, counts: PassCounts, kinds: np.ndarray, random_state: int = 0) -> KindCutOffs | None:
        """Compare both. `kinds` (q,) is "" for queries without a kind. None if fewer than two kinds have ten
        queries or more."""
        has_relevant = counts.relevant > 0
        names, sizes = np.unique(kinds[has_relevant & (kinds != "")].astype(str), return_counts=True)
        names = names[sizes >= FEWEST_OF_KIND]
        if len(names) < 2:
            return None
        members = [np.flatnonzero((kinds == name) & has_relevant) for name in names]
        q, g = counts.passed.shape
        order = np.argsort(row_keys([str(query) for query in range(q)], "kinds", random_state))
        fold = np.empty(q, int)
        fold[order] = np.arange(q) % _FOLDS
        single = np.empty(q, int)
        own = np.empty(q, int)
        for number in range(_FOLDS):
            best = counts.take(fold != number).best_f1()
            single[fold == number] = best
            own[fold == number] = best
            for rows in members:
                held_out = rows[fold[rows] == number]
                own[held_out] = counts.take(rows[fold[rows] != number]).best_f1()
        shifts = np.clip(own[:, None] + np.arange(-g, g + 1), 0, g - 1)
        queries = np.arange(q)
        aligned = PassCounts(
            np.arange(-g, g + 1),
            np.take_along_axis(counts.passed, shifts, axis=1),
            np.take_along_axis(counts.found, shifts, axis=1),
            counts.relevant,
        )
        errors = [_f1_by_query(counts, queries, places) for places in (single, own)]
        return cls(
            kinds=tuple(map(str, names)),
            cuts=counts.cuts[[counts.take(rows).best_f1() for rows in members]],
            queries=np.array(list(map(len, members))),
            gain=mean_difference(*errors),
            separability=aligned.separability(random_state),
        )


def _small(counts: np.ndarray) -> np.ndarray:
    """The counts in a type of few bytes: as float32 if they are not whole."""
    if np.any(counts % 1):
        return counts.astype(np.float32)
    if counts.max(initial=0) <= np.iinfo(np.int16).max:
        return counts.astype(np.int16)
    return counts.astype(np.int32)


def _f1_by_query(counts: PassCounts, queries: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The contribution (q,) of each query to F1 if it has its own cut-off: the mean is F1. The ratio of sums
    is linearised, as in `ratio_interval`."""
    part = 2 * counts.found[queries, places]
    whole = counts.passed[queries, places] + counts.relevant
    ratio = part.sum() / whole.sum()
    return ratio + (part - ratio * whole) / whole.mean()
