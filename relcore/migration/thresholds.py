"""Similarity thresholds after a change of model: a monotone map of scores to the old scale, and the errors it leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.evaluation import row_keys
from relcore.metrics.paired import Difference, mean_difference
from relcore.numbers import short
from relcore.similarity import unit_rows
from relcore.spaces import SpaceError

FEWEST_QUERIES = 10  # on each side of the split
N_NEAREST = 10
_PERMUTATIONS = 200
_KNOTS = 256


@dataclass(frozen=True, eq=False)
class ScorePairs:
    """Scores that two systems give to the same queries and rows.

    Attributes
    ----------
    query : array (n,) int64
        Number of the query.
    old, new : arrays (n,) float64
        Cosine of that query and one row, by the old system and by the new one.
    """

    query: np.ndarray
    old: np.ndarray
    new: np.ndarray

    def of(self, queries: np.ndarray) -> ScorePairs:
        """Those of some queries."""
        kept = np.isin(self.query, queries)
        return ScorePairs(self.query[kept], self.old[kept], self.new[kept])


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A monotone map of new scores to the scale of old ones, linear between its knots.

    Attributes
    ----------
    new, old : arrays (k,) float64
        Knots, both ascending. A score beyond the first or the last knot takes its value.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migration.thresholds import ScoreMap
    >>> found = ScoreMap.fit(new=np.array([0.1, 0.2, 0.3, 0.4]), old=np.array([0.2, 0.4, 0.6, 0.8]))
    >>> [round(float(value), 2) for value in found(np.array([0.1, 0.25, 0.9]))]
    [0.2, 0.5, 0.8]
    """

    new: np.ndarray
    old: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return np.interp(scores, self.new, self.old)

    @classmethod
    def fit(cls, new: np.ndarray, old: np.ndarray) -> ScoreMap:
        """Isotonic regression (Barlow et al. 1972; `sklearn.isotonic`) of sorted old scores on sorted new ones.

        Sorting first keeps the distribution, so that as many rows as before pass a threshold. Regressing each old score on the
        new score of the same row would pull all scores towards their mean, and strict thresholds would accept almost nothing.

        Raises
        ------
        SpaceError
            Fewer than two scores, counts that differ, or all new scores equal.
        """
        from sklearn.isotonic import IsotonicRegression

        new, old = (np.sort(np.asarray(scores, dtype=np.float64)) for scores in (new, old))
        if len(new) != len(old) or len(new) < 2 or new[0] == new[-1]:
            raise SpaceError(
                f"score map: expected two scores or more that differ, as many new as old, got {len(new):,} and {len(old):,}"
            )
        fitted = IsotonicRegression(out_of_bounds="clip").fit(new, old)
        knots = np.unique(np.linspace(0, len(fitted.X_thresholds_) - 1, _KNOTS).round().astype(int))
        return cls(fitted.X_thresholds_[knots].astype(np.float64), fitted.y_thresholds_[knots].astype(np.float64))

    def threshold(self, old: float) -> float:
        """The new score from which the mapped score reaches an old threshold; infinite where none does."""
        reached = np.flatnonzero(self.old >= old)
        if not len(reached):
            return float("inf")
        if not reached[0]:
            return float(self.new[0])
        below, above = reached[0] - 1, reached[0]
        share = (old - self.old[below]) / (self.old[above] - self.old[below])
        return float(self.new[below] + share * (self.new[above] - self.new[below]))


@dataclass(frozen=True, eq=False)
class ThresholdOutcome:
    """What a change of model does to one threshold, and what the map restores; errors are shares of query and row pairs.

    Attributes
    ----------
    threshold, new_threshold : float
        The old one, and the new score that means the same.
    map : ScoreMap
    old, new, mapped : arrays (n,)
        Scores of held-out queries, for their distributions.
    ks_before, ks_after : float
        Kolmogorov–Smirnov distance to the old scores' distribution, 0 … 1.
    error_before, error_after : float
        Share of held-out query and row pairs that the old threshold decides otherwise.
    change : Difference
        Mean over queries of the error after the map less the error before it.
    chance, chance_low : float
        The error after the map if the new scores were paired at random, its mean and its 2.5 % quantile: a map that keeps
        nothing but the distribution does no better.
    accepted_old, accepted_before, accepted_after : float
        Shares that pass.
    n_fitted, n_queries : int
        Queries that the map was fitted on, and others that it was judged on.
    """

    threshold: float
    new_threshold: float
    map: ScoreMap
    old: np.ndarray
    new: np.ndarray
    mapped: np.ndarray
    ks_before: float
    ks_after: float
    error_before: float
    error_after: float
    change: Difference
    chance: float
    chance_low: float
    accepted_old: float
    accepted_before: float
    accepted_after: float
    n_fitted: int
    n_queries: int

    @property
    def beats_chance(self) -> bool:
        return self.error_after < self.chance_low

    def describe(self) -> str:
        """One sentence."""
        if not self.beats_chance:
            return "New scores decide no better than scores paired at random, so no map restores this threshold."
        return (
            f"Replace the threshold {short(self.threshold)} by {short(self.new_threshold)}: wrong decisions go from "
            f"{self.error_before:.1%} to {self.error_after:.1%}."
        )


def score_pairs(
    old: tuple[np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray], own: np.ndarray | None = None, k: int = N_NEAREST
) -> ScorePairs:
    """Scores of every query with the k rows nearest by the old system and the k nearest by the new one.

    Parameters
    ----------
    old, new : (queries (q, d), rows (n, d)) of each system
        As each one searches them; lengths do not matter.
    own : array (q,), optional
        The row that is the query itself, left out; −1 where there is none.
    """
    cosines = [unit_rows(queries) @ unit_rows(rows).T for queries, rows in (old, new)]
    q, n = cosines[0].shape
    if own is not None:
        known = np.flatnonzero(own >= 0)
        for scores in cosines:
            scores[known, own[known]] = -np.inf
    k = min(k, n - 1)
    chosen = np.zeros((q, n), dtype=bool)
    for scores in cosines:
        np.put_along_axis(chosen, np.argpartition(-scores, k - 1, axis=1)[:, :k], True, axis=1)
    query, row = np.nonzero(chosen)
    return ScorePairs(query, *(scores[query, row].astype(np.float64) for scores in cosines))


def restore_threshold(pairs: ScorePairs, threshold: float, random_state: int = 0) -> ThresholdOutcome:
    """Fit the map on half of the queries, by a hash of their numbers, and judge it on the other half.

    Raises
    ------
    SpaceError
        Fewer than 10 queries on each side; a threshold beyond −1 … 1.
    """
    if not -1 <= threshold <= 1:
        raise SpaceError(f"threshold: expected a cosine, −1 … 1, got {threshold!r:.40}")
    queries = np.unique(pairs.query)
    if len(queries) < 2 * FEWEST_QUERIES:
        raise SpaceError(f"thresholds: expected {2 * FEWEST_QUERIES} queries or more, got {len(queries)}; add pairs or queries")
    order = queries[np.argsort(row_keys([str(query) for query in queries], "thresholds", random_state))]
    fitting, judging = pairs.of(order[: len(order) // 2]), pairs.of(order[len(order) // 2 :])
    found = ScoreMap.fit(fitting.new, fitting.old)
    mapped = found(judging.new)
    truth, before, after = (scores >= threshold for scores in (judging.old, judging.new, mapped))
    rng = np.random.default_rng(random_state)
    permuted = [np.mean(truth != after[rng.permutation(len(after))]) for _ in range(_PERMUTATIONS)]
    by_query = [_mean_by(judging.query, decided != truth) for decided in (before, after)]
    return ThresholdOutcome(
        threshold=float(threshold),
        new_threshold=found.threshold(threshold),
        map=found,
        old=judging.old,
        new=judging.new,
        mapped=mapped,
        ks_before=ks_distance(judging.old, judging.new),
        ks_after=ks_distance(judging.old, mapped),
        error_before=float(np.mean(before != truth)),
        error_after=float(np.mean(after != truth)),
        change=mean_difference(*by_query),
        chance=float(np.mean(permuted)),
        chance_low=float(np.quantile(permuted, 0.025)),
        accepted_old=float(truth.mean()),
        accepted_before=float(before.mean()),
        accepted_after=float(after.mean()),
        n_fitted=len(order) // 2,
        n_queries=len(order) - len(order) // 2,
    )


def ks_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Largest distance of two distributions' cumulative shares, 0 … 1 (Kolmogorov–Smirnov)."""
    places = np.concatenate([first, second])
    shares = [np.searchsorted(np.sort(scores), places, side="right") / len(scores) for scores in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _mean_by(query: np.ndarray, values: np.ndarray) -> np.ndarray:
    _, numbers = np.unique(query, return_inverse=True)
    return np.bincount(numbers, values) / np.bincount(numbers)
