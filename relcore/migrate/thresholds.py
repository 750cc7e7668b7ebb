"""A map of scores restores a similarity threshold after a change of model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.base.numbers import percent, short
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.migrate.cross_fitting import MOST_CURVE_ROWS
from relcore.migrate.migration import Migration
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.score import Interval, mean_difference
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import derangement, row_keys

FEWEST_QUERIES = 10  # minimum number of queries to fit a map of scores, and to evaluate it
MOST_ROWS = 4000
_PERMUTATIONS = 100
_KNOTS = 256
_PER_QUERY = 10  # number of rows per query that reach the default threshold


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A monotone, piecewise linear map of new scores to the scale of old scores, with ascending knots (k,).

    Scores below the first knot get the value of the first knot; scores above the last knot get that of the
    last.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.thresholds import ScoreMap
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
        """Fit isotonic regression (Barlow et al. 1972; `sklearn.isotonic`) of sorted old scores on sorted new
        scores.

        Because scores are sorted first, their distribution is kept, so as many rows pass a threshold as
        before. Regression on unsorted pairs would shrink scores towards their mean, and hardly any would pass
        a strict threshold.

        Raises
        ------
        SpaceError
            Fewer than two scores; unequal numbers of old and new scores; new scores that are all equal.
        """
        from sklearn.isotonic import IsotonicRegression

        new = np.sort(np.asarray(new, dtype=np.float64))
        old = np.sort(np.asarray(old, dtype=np.float64))
        if len(new) != len(old) or len(new) < 2 or new[0] == new[-1]:
            raise SpaceError(
                f"score map: expected two scores or more that differ, as many new as old, got {len(new):,}"
                f" and {len(old):,}"
            )
        fitted = IsotonicRegression(out_of_bounds="clip").fit(new, old)
        # Keep at most 512 knots: half of them evenly spaced, half denser near the upper end, where thresholds
        # are.
        n = len(fitted.X_thresholds_)
        places = np.r_[np.linspace(0, n - 1, _KNOTS), n - np.geomspace(1, n, _KNOTS)]
        knots = np.unique(places.round().astype(int).clip(0, n - 1))
        return cls(fitted.X_thresholds_[knots].astype(float), fitted.y_thresholds_[knots].astype(float))

    def threshold(self, old: float) -> float:
        """The smallest new score that is mapped to at least this old score; infinite if there is none."""
        reached = np.searchsorted(self.old, old)
        if reached == len(self.old):
            return float("inf")
        ends = slice(max(reached - 1, 0), reached + 1)
        return float(np.interp(old, self.old[ends], self.new[ends]))


@dataclass(frozen=True, eq=False)
class ThresholdOutcome:
    """The decisions of a similarity threshold before a change of model, after it, and after it with a map of
    scores, on held-out queries.

    A decision accepts the pairs of a query and a row whose score reaches the threshold. An error is 1 − the
    Jaccard index of the pairs accepted by the old scores and those accepted by the new ones.

    Attributes
    ----------
    threshold, new_threshold : float
        The old threshold, and the new score that corresponds to it.
    old, new, mapped : arrays (101,)
        Percentiles of the old scores, the new scores, and the mapped scores.
    ks_before, ks_after : float
        Kolmogorov–Smirnov distance from the distribution of the old scores, before and after the map, 0 … 1.
    error_before, error_after : float
        The error if the old threshold is applied to new scores, and the error if it is applied to mapped
        scores.
    change : Interval
        Change of the error by the map, paired by query.
    chance, chance_low : float
        Mean and 2.5 % quantile of the error after the map, if each query gets the new scores of another
        query.
    accepted_old, accepted_before, accepted_after : float
        Number of rows per query that pass: with old scores, with new scores, and with mapped scores.
    n_fitted, n_queries : int
        Number of queries on which the map was fitted, and number of other queries on which it was evaluated.
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
    change: Interval
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
        if not self.beats_chance:
            return (
                "The new scores decide no better than those of other queries, so no map restores this"
                " threshold."
            )
        return (
            f"The new threshold {short(self.new_threshold)} passes as many rows as {short(self.threshold)}"
            f" did: {self.accepted_after:.1f} per query, {self.accepted_old:.1f} before."
            f" {percent(self.error_after)} of these decisions differ."
            f" With the old threshold kept, {self.accepted_before:.1f} rows would pass, and"
            f" {percent(self.error_before)} of the decisions differ."
        )


def score_pairs(
    old: tuple[np.ndarray, np.ndarray],
    new: tuple[np.ndarray, np.ndarray],
    own: np.ndarray | None = None,
    random_state: int = 0,
) -> list[np.ndarray]:
    """Two arrays (q, n): the cosines between all queries and rows by the old model, and those by the new
    model. They are NaN where the row is the query itself. If there are more than 4,000 rows, 4,000 are drawn
    at random.

    Cosines with far rows are included, because a sample of only the nearest rows by one model would have
    lower cosines by the other. `old` and `new` are pairs of queries (q, d) and rows (n, d), of any length.
    `own` (q,) is the index of the row that is the query itself.
    """
    n = len(old[1])
    rows = np.arange(n)
    if n > MOST_ROWS:
        rows = np.sort(np.random.default_rng(random_state).choice(n, MOST_ROWS, replace=False))
    cosines = [unit_rows(queries) @ unit_rows(base[rows]).T for queries, base in (old, new)]
    if own is not None:
        itself = rows[None] == own[:, None]
        for scores in cosines:
            scores[itself] = np.nan
    return cosines


def restore_threshold(
    old: np.ndarray, new: np.ndarray, threshold: float, random_state: int = 0
) -> ThresholdOutcome:
    """Fit a map from new to old scores on half of the queries, and evaluate it on the other half. The halves
    are drawn by hashes. `old` and `new` (q, n) are the results of `score_pairs`.

    Raises a SpaceError for fewer than 10 queries in a half, and for a threshold outside −1 … 1.
    """
    if not -1 <= threshold <= 1:
        raise SpaceError(f"threshold: expected a cosine, −1 … 1, got {threshold!r:.40}")
    q = len(old)
    known = ~np.isnan(old)
    if q < 2 * FEWEST_QUERIES:
        raise SpaceError(
            f"thresholds: expected {2 * FEWEST_QUERIES} queries or more, got {q}; add pairs or queries"
        )
    order = np.argsort(row_keys([str(query) for query in range(q)], "thresholds", random_state))
    fitting = order[: q // 2]
    judging = order[q // 2 :]
    score_map = ScoreMap.fit(new[fitting][known[fitting]], old[fitting][known[fitting]])
    old = old[judging]
    new = new[judging]
    known = known[judging]
    mapped = score_map(new)
    # NaN is below every threshold, because a comparison with NaN is False.
    truth = old >= threshold
    before = new >= threshold
    after = mapped >= threshold
    errors = [_wrong(truth, decided) for decided in (before, after)]
    rng = np.random.default_rng(random_state)
    permuted = [_wrong(truth, after[derangement(len(after), rng)]).mean() for _ in range(_PERMUTATIONS)]
    old = old[known]
    new = new[known]
    restored = mapped[known]
    percentiles = np.linspace(0, 1, 101)
    return ThresholdOutcome(
        threshold=float(threshold),
        new_threshold=score_map.threshold(threshold),
        map=score_map,
        old=np.quantile(old, percentiles),
        new=np.quantile(new, percentiles),
        mapped=np.quantile(restored, percentiles),
        ks_before=ks_distance(old, new),
        ks_after=ks_distance(old, restored),
        error_before=float(errors[0].mean()),
        error_after=float(errors[1].mean()),
        change=mean_difference(*errors),
        chance=float(np.mean(permuted)),
        chance_low=float(np.quantile(permuted, 0.025)),
        accepted_old=float(truth.sum(axis=1).mean()),
        accepted_before=float(before.sum(axis=1).mean()),
        accepted_after=float(after.sum(axis=1).mean()),
        n_fitted=q // 2,
        n_queries=q - q // 2,
    )


def ks_distance(first: np.ndarray, second: np.ndarray) -> float:
    first = np.sort(first)
    second = np.sort(second)
    places = np.concatenate([first, second])
    shares = [np.searchsorted(scores, places, side="right") / len(scores) for scores in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _wrong(truth: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """The contribution (q,) of each query to the error of `ThresholdOutcome`; the mean over queries is the
    error. The error is a ratio of two sums, which is linearised here so that a standard error can be computed
    from the contributions.
    """
    wrong = np.count_nonzero(truth != decided, axis=1)
    either = np.count_nonzero(truth | decided, axis=1)
    if not either.any():
        return np.zeros(len(wrong))
    ratio = wrong.sum() / either.sum()
    return ratio + (wrong - ratio * either) / either.mean()


MOST_JUDGED = 500  # number of queries; with 20,000 rows, a matrix of their scores takes 40 MB
SYSTEMS = {"bridge": "bridged queries", "re-embed": "the new model"}


@dataclass(frozen=True, kw_only=True)
class ThresholdChange(
    Task[ThresholdOutcome], kind="migration-threshold", version=2, title="Similarity threshold"
):
    """The task that finds the new score that corresponds to a similarity threshold of the old model, after
    the change of model in `system` ("bridge" or "re-embed").

    It uses the pairs and the queries of `migration`. `adapter` is the one that this migration chose.
    """

    migration: Migration
    adapter: str = setting(choices=ADAPTERS)
    threshold: float | None = setting(
        None,
        low=-1,
        high=1,
        help="A cosine of the old model. Default: the cosine that ten rows per query reach.",
    )
    system: str = setting("bridge", choices=SYSTEMS)

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = min(len(spaces[1]), MOST_CURVE_ROWS)
        m = self.migration.n_pairs or len(spaces[1])
        low, high = sorted(space.dimension for space in spaces[:2])
        return 0.3 + 1e-7 * MOST_JUDGED * n + 1e-9 * min(m, MOST_CURVE_ROWS) * low * high

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> ThresholdOutcome:
        """Fit and evaluate the map of scores. Raises the errors of `Migration.run`, and a SpaceError if the
        system is "re-embed" and some rows lack a new vector.
        """
        state = self.migration.random_state
        report(0, 2, "fitting the adapter")
        ground = self.migration.ground(spaces, checked=True)
        trial = ground.trial.with_fewer_queries(MOST_JUDGED).with_fewer_rows(MOST_CURVE_ROWS, state)
        if self.system == "bridge":
            adapter = ground.pairs.fit(self.adapter)
            new = adapter.transform(trial.new_queries), adapter.corpus(trial.old_corpus)
        elif trial.new_corpus is None:
            raise SpaceError(
                "re-embedding: expected a new vector for every row that is searched, got some rows without;"
                " leave the judgements out, so that the pairs are both queries and rows"
            )
        else:
            new = trial.new_queries, trial.new_corpus
        report(1, 2, "searching")
        old, new = score_pairs((trial.old_queries, trial.old_corpus), new, trial.own, state)
        if (threshold := self.threshold) is None:
            scores = old[~np.isnan(old)]
            threshold = float(np.quantile(scores, max(1 - _PER_QUERY * len(old) / len(scores), 0)))
        return restore_threshold(old, new, threshold, state)


def threshold_table(outcome: ThresholdOutcome) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "scores": ["old model", "without the map", "with the map", "of another query, with the map"],
            "KS distance": [0.0, outcome.ks_before, outcome.ks_after, np.nan],
            "wrong decisions": [0.0, outcome.error_before, outcome.error_after, outcome.chance],
            "rows per query": [outcome.accepted_old, outcome.accepted_before, outcome.accepted_after, np.nan],
        }
    )
