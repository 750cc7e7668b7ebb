"""The choice of an adapter and a weight by cross-validation, with intervals and learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit  # `scipy.stats` has the same functions, but its import takes long

from relcore.base.names import ADAPTERS
from relcore.migrate.adapters import Adapter
from relcore.migrate.trial import RetrievalTask
from relcore.runs.work import Progress, silent
from relcore.scores.relevance import K
from relcore.scores.score import Interval
from relcore.spaces.split import row_keys

ADAPTED = ("bridge", "twice", "cascade")  # the options that use the adapter


RESAMPLES = 2_000


class QueryScores(NamedTuple):
    """The score of each query, `queries` (q,), and how the mean score deviates with other choices.

    `chosen` (r,) has the deviations with the adapter and weight that each of the resamples of `Resampling`
    chooses. `moved` (s,) has those with adapters that are fitted on other draws of the pairs.
    """

    queries: np.ndarray
    moved: np.ndarray | float = 0.0
    chosen: np.ndarray | float = 0.0


class Resampling:
    """Computes means over queries and differences of such means, with 95 % intervals for the choice of the
    queries. The intervals are for the fitted adapter, which is the one that is exported.

    All means use the same 2,000 resamples of the queries, `counts` (r, q): how often each has each query.
    `QueryScores.chosen` adds what the resample would choose: queries on which an option gains much also
    choose a weight that suits it, so that both deviations belong to one resample. If `splits` is given, the
    intervals also account for the choice of the pairs: each resampled mean gets a normal deviation with the
    covariance of the `splits` deviations in `QueryScores.moved`.
    """

    def __init__(
        self, n_queries: int, splits: int = 0, draws: int = RESAMPLES, random_state: int = 0
    ) -> None:
        n = n_queries
        rng = np.random.default_rng(random_state)
        self.counts = rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float32)
        # Student's t and the unbiased variance are used, because resamples of few queries vary too little.
        self._few = float(stdtrit(n - 1, 0.975) / ndtri(0.975) * np.sqrt(n / (n - 1)))
        self._normal = rng.normal(size=(draws, splits)) / np.sqrt(max(splits, 1))
        self._unseen = rng.normal(size=draws) / n

    def mean(self, one: QueryScores, least: float = 0.0) -> Interval:
        """The mean of numbers from `least` to 1, with its 95 % bootstrap interval.

        If all queries have the same score, the bootstrap interval would have no width. Then its width is that
        of the exact binomial interval for 0 successes in q trials.
        """
        n = len(one.queries)
        value = float(one.queries.mean(dtype=np.float64))
        low, high = value + np.quantile(self._deviations(one), [0.025, 0.975])
        if high - low < NO_WIDTH:
            share = 1 - 0.025 ** (1 / n)
            low = value - share * (value - least)
            high = value + share * (1 - value)
        return Interval(value, float(max(low, least)), float(min(high, 1)))

    def difference(self, now: QueryScores, before: QueryScores, usual: float = 0.0) -> Interval:
        """The mean of `now` less that of `before`, with its 95 % interval.

        Where few queries change, others may that are not among them. So the interval is as wide as if a
        further query changed, in proportion to the share of queries without a change, by as much as others
        do: the root mean square of the changes, or `usual` if no query changes. Without `usual`, it is that
        of the difference between the scores of two queries.
        """
        change = QueryScores(
            now.queries - before.queries, now.moved - before.moved, now.chosen - before.chosen
        )
        is_changed = np.abs(change.queries) > NO_WIDTH
        if is_changed.any():
            usual = float(np.sqrt(np.mean(np.square(change.queries[is_changed], dtype=np.float64))))
        elif not usual:
            usual = float(np.sqrt(2) * np.std(before.queries))
        unseen = usual * np.sqrt(1 - is_changed.mean())
        drawn = self._deviations(change) + self._few * unseen * self._unseen
        low, high = np.quantile(drawn, [0.025, 0.975])
        if high - low < NO_WIDTH:
            return self.mean(change, least=-1.0)
        value = float(change.queries.mean(dtype=np.float64))
        return Interval(value, float(max(value + low, -1)), float(min(value + high, 1)))

    def _deviations(self, one: QueryScores) -> np.ndarray:
        value = one.queries.mean(dtype=np.float64)
        n = len(one.queries)
        drawn = self._few * (self.counts @ (one.queries - value).astype(np.float32) / n + one.chosen)
        if np.ndim(one.moved):
            drawn = drawn + self._normal @ one.moved
        return drawn


NO_WIDTH = 1e-6  # smaller differences are rounding errors of float32


class Pairs(NamedTuple):
    """Paired unit rows `new` (m, d_new) and `old` (m, d_old), which an adapter can be fitted on, and their
    ids (m,)."""

    new: np.ndarray
    old: np.ndarray
    ids: np.ndarray

    def take(self, rows: np.ndarray) -> Pairs:
        return Pairs(*(part[rows] for part in self))

    def fit(self, adapter: str) -> Adapter:
        return ADAPTERS[adapter].load()().fit(self.new, self.old)


# Adapter and weight are chosen by cross-validation: for each query, by the scores of other queries.

FOLDS = 5
MOST_CHOICE_ROWS = 10_000
USUAL = "inverse"  # mostly the best adapter of those that leave the corpus unchanged
WEIGHTS = (1.0, 0.5, 2.0, 0.25, 4.0, 0.125, 0.0625)  # of equally good weights, the first one is chosen
# Standard errors that are subtracted from a mean gain, so that a gain by chance does not count. The smaller
# number is for an adapter's gain over the usual one. The larger one is for a weight's gain over keeping the
# old model, for adapters that rewrite the corpus, and for all adapters without judgements.
_BY_CHANCE = 0.5
_CAUTIOUS = 2.0


@dataclass(frozen=True)
class Candidate:
    """A candidate among the adapters: its name, the mean score of the option "bridge" with it, the 95 %
    interval over queries, and whether the old vectors must be rewritten for it."""

    adapter: str
    score: float
    low: float
    high: float
    rewrites_corpus: bool = False


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """The result of `cross_fitted`: the adapter and the weight with the best scores on all queries, the
    candidate adapters (best first), and the rows that each option finds.

    `weight` is the weight of the bridged search; the old search has weight 1. `found` has the rows (q, k) of
    each option. `chosen` has, for "bridge" and "twice", the deviations of the mean score with the choices of
    each resample of the queries, as in `QueryScores`.
    """

    adapter: str
    weight: float
    candidates: tuple[Candidate, ...]
    found: Mapping[str, np.ndarray]
    chosen: Mapping[str, np.ndarray]


def cross_fitted(
    trial: RetrievalTask, fits: Mapping[str, Adapter], k: int = K, random_state: int = 0
) -> CrossFitted:
    """Choose the best of the fitted adapters for a bridge, and the best weight to query both models with it,
    by cross-validation over queries.

    The best adapter has the largest mean gain over the usual adapter, after a multiple of its standard error
    is subtracted; the best weight has the largest gain over the option "keep". An adapter that rewrites the
    corpus must be better by two standard errors than the best one that does not. The queries are divided into
    five folds. Each is searched with the adapter and weight that are best for the other four folds, so that
    its score is not optimistic. Without judgements, the weight is 1. Choices are made on at most 10,000 rows.
    """
    small = trial.with_fewer_rows(MOST_CHOICE_ROWS, random_state)
    q = len(trial.old_queries)
    folds = np.random.default_rng(random_state).permutation(q) % FOLDS
    names = list(fits)
    weights = np.array(WEIGHTS if trial.is_judged else WEIGHTS[:1])

    def scored(name: str, option: str, weight: float = 1.0) -> np.ndarray:
        return small.score(small.search(fits[name], weight, k, (option,))[option], k)

    bridges = np.stack([scored(name, "bridge") for name in names])
    keep = scored(names[0], "keep")
    rewritten = np.array([fits[name].rewrites_corpus for name in names])
    margin = _CAUTIOUS
    if trial.is_judged:
        margin = _BY_CHANCE

    # All queries, those outside each fold, and each resample of them: all of these choose.
    resampling = Resampling(q)
    outside = folds != np.arange(FOLDS)[:, None]
    samples = np.concatenate([np.ones((1, q)), outside, resampling.counts])
    adapters = _best_adapters(bridges, names, rewritten, margin, samples)
    best = int(adapters[0])
    best_of = adapters[1 : FOLDS + 1][folds]
    chosen = {
        "bridge": bridges.mean(axis=1)[adapters[FOLDS + 1 :]],
        "twice": np.empty(len(resampling.counts)),
    }
    found = trial.search(fits[names[best]], 1.0, k)
    weight = 1.0
    measured = np.unique([best, *best_of])
    # Weights are compared only with these adapters. The few resamples that choose another adapter count as
    # if they chose the best one.
    weighted = np.where(np.isin(adapters, measured), adapters, best)
    for number in measured:
        both = np.stack([scored(names[number], "twice", one) for one in weights])
        weight_by = _best(both - keep, _CAUTIOUS, samples)
        if number == best:
            weight = float(weights[weight_by[0]])
        queries = np.flatnonzero(best_of == number)
        if len(queries):
            weight_of = weights[weight_by[1 : FOLDS + 1]][folds[queries]]
            part = trial.take(queries).search(fits[names[number]], weight_of, k, ADAPTED)
            for option, rows in part.items():
                found[option][queries] = rows
        own = weighted[FOLDS + 1 :] == number
        chosen["twice"][own] = both.mean(axis=1)[weight_by[FOLDS + 1 :][own]]
    candidates = _candidates(bridges, names, rewritten, resampling)
    deviations = {option: means - means.mean() for option, means in chosen.items()}
    return CrossFitted(names[best], weight, candidates, found, deviations)


def _candidates(
    bridges: np.ndarray, names: Sequence[str], rewritten: np.ndarray, resampling: Resampling
) -> tuple[Candidate, ...]:
    """The candidates, best first, with the mean of their scores `bridges` (c, q)."""
    means = [resampling.mean(QueryScores(scores)) for scores in bridges]
    order = np.argsort([-mean.value for mean in means], kind="stable")
    return tuple(
        Candidate(names[one], means[one].value, means[one].low, means[one].high, bool(rewritten[one]))
        for one in order
    )


def _best_adapters(
    bridges: np.ndarray, names: Sequence[str], rewritten: np.ndarray, margin: float, samples: np.ndarray
) -> np.ndarray:
    """The index (s,) of the adapter that each of the `samples` (s, q) of the queries chooses, from the scores
    `bridges` (c, q) of each adapter. `rewritten` (c,) says which adapters rewrite the corpus."""
    alone = np.flatnonzero(~rewritten)
    if not len(alone):
        return _best(bridges - bridges[0], margin, samples)
    if USUAL in names:
        usual = names.index(USUAL)
    else:
        usual = int(alone[0])
    first = alone[_best(bridges[alone] - bridges[usual], margin, samples)]
    chosen = np.empty_like(first)
    for one in np.unique(first):
        own = first == one
        others = np.r_[one, np.flatnonzero(rewritten)]
        chosen[own] = others[_best(bridges[others] - bridges[one], _CAUTIOUS, samples[own])]
    return chosen


def _best(gains: np.ndarray, margin: float, samples: np.ndarray) -> np.ndarray:
    """The index (s,) of the candidate that each of the `samples` (s, q) chooses: its `gains` (c, q) have the
    largest mean, after `margin` standard errors are subtracted. Of equal candidates, the first one is chosen.
    A sample says how often it has each query.
    """
    sizes = samples.sum(axis=1, keepdims=True)
    means = samples @ gains.T / sizes
    squares = samples @ np.square(gains).T / sizes
    errors = np.sqrt(np.maximum(squares - means**2, 0) / sizes)
    least = means - margin * errors
    return np.argmax(least > least.max(axis=1, keepdims=True) - NO_WIDTH, axis=1)


# A jackknife measures how a score varies with the drawn pairs. Fits on halves would vary too little where
# half of the pairs is too few for the adapter to learn anything.

PARTS = 10
_MOST_MOVED = 500


def jackknife_deviations(
    trial: RetrievalTask,
    pairs: Pairs,
    adapter: str,
    weight: float,
    k: int = K,
    random_state: int = 0,
) -> dict[str, np.ndarray]:
    """Measure how much the mean score of each option depends on the pairs that the adapter is fitted on: ten
    deviations (10,), each without a tenth of the pairs.

    They are scaled so that their mean square estimates the variance of the difference between two draws of
    the pairs. So an interval with this variance covers the score that another draw of the pairs would give.
    """
    small = trial.with_fewer_rows(MOST_CHOICE_ROWS, random_state).with_fewer_queries(_MOST_MOVED)
    parts = np.empty(len(pairs.ids), dtype=np.int64)
    parts[np.argsort(row_keys(pairs.ids, "parts", random_state))] = np.arange(len(parts)) % PARTS
    means: dict[str, list[float]] = {}
    for part in range(PARTS):
        lists = small.search(pairs.take(parts != part).fit(adapter), weight, k, ADAPTED)
        for option, rows in lists.items():
            means.setdefault(option, []).append(float(small.score(rows, k).mean()))
    return {
        option: (np.array(one) - np.mean(one)) * np.sqrt(2 * (PARTS - 1)) for option, one in means.items()
    }


# Learning curves: scores by number of pairs. With these sizes and a dozen draws, all fits take at most as
# long as one fit on 53,000 pairs.
SIZES = (25, 50, 100, 250, 500, 1000, 2500)
MOST_CURVE_ROWS = 20_000


@dataclass(frozen=True)
class CurvePoint:
    """A point of a learning curve: the mean score of an option with adapters that are fitted on `draws`
    samples of `n_pairs` pairs. The 95 % interval is for a single sample.
    """

    n_pairs: int
    adapter: str
    option: str
    value: float
    low: float
    high: float
    draws: int


def curve_of(
    trial: RetrievalTask,
    pairs: Pairs,
    adapters: Sequence[str],
    weight: float,
    *,
    sizes: Sequence[int] = SIZES,
    draws: int = 3,
    k: int = K,
    random_state: int = 0,
    report: Progress = silent,
) -> tuple[CurvePoint, ...]:
    """Compute learning curves: the score of each adapter for each number of pairs in `sizes`, and for all
    pairs. The first adapter gets no point for all pairs, because the result of the migration already has this
    score.

    At most 20,000 rows are searched. In a draw, the pairs of a smaller size are part of those of a larger
    size. Each adapter is used as a bridge; the first one is also used for the options "twice", with this
    `weight`, and "cascade". If `sizes` is empty, there are no points.
    """
    if not sizes:
        return ()
    trial = trial.with_fewer_rows(MOST_CURVE_ROWS, random_state)
    m = len(pairs.ids)
    sizes = [size for size in sizes if size < m] + [m]
    orders = [np.argsort(row_keys(pairs.ids, f"draw {draw}", random_state)) for draw in range(draws)]
    points = []
    for number, size in enumerate(sizes):
        report(number, len(sizes), f"curve: {size:,} pairs")
        if size == m:  # all draws have the same pairs
            drawn = [pairs.take(np.sort(orders[0]))]
        else:
            drawn = [pairs.take(np.sort(order[:size])) for order in orders]
        spread = np.sqrt(len(drawn) / max(len(drawn) - 1, 1))
        resampling = Resampling(len(trial.old_queries), len(drawn))
        for adapter in list(dict.fromkeys(adapters))[size == m :]:
            if adapter == adapters[0]:
                options = ADAPTED
            else:
                options = ("bridge",)
            found = [trial.search(known.fit(adapter), weight, k, options) for known in drawn]
            for option in found[0]:
                values = np.stack([trial.score(lists[option], k) for lists in found])
                moved = (values.mean(axis=1) - values.mean()) * spread
                mean = resampling.mean(QueryScores(values.mean(axis=0), moved))
                points.append(CurvePoint(size, adapter, option, mean.value, mean.low, mean.high, len(drawn)))
    return tuple(points)
