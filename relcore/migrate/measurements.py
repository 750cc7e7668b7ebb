"""Further measurements of a migration. A map of scores restores a similarity threshold after a change of
model. The options are also scored with cheaper indexes (int8, binary or shorter vectors). A person judges the
results of two options without knowing which is which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS
from relcore.base.numbers import band, counted, percent, short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.catalog import space_name
from relcore.catalog.task import SpacesRecipe, Task
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.evaluate import (
    MOST_CURVE_ROWS,
    NO_WIDTH,
    OPTIONS,
    Bootstrap,
    K,
    QueryScores,
    RetrievalTask,
    Sides,
    added_scores,
    covariance,
    rerank,
    search,
)
from relcore.migrate.migration import (
    MOVES,
    NEIGHBOURS,
    TITLES,
    WORTH_A_CHANGE,
    Migration,
    MigrationResult,
    Verdict,
)
from relcore.runs.store import Progress, Store, silent
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
    >>> from relcore.migrate.measurements import ScoreMap
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

        new, old = (np.sort(np.asarray(scores, dtype=np.float64)) for scores in (new, old))
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
        return cls(*(part[knots].astype(float) for part in (fitted.X_thresholds_, fitted.y_thresholds_)))

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
    score_map = ScoreMap.fit(*(scores[fitting][known[fitting]] for scores in (new, old)))
    old = old[judging]
    new = new[judging]
    known = known[judging]
    mapped = score_map(new)
    # NaN is below every threshold, because a comparison with NaN is False.
    truth, before, after = (scores >= threshold for scores in (old, new, mapped))
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
AFTER = {"bridge": "After bridging", "re-embed": "After re-embedding"}


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


RESCORED = 100  # number of rows of a binary search that are ranked again by full vectors


class Codes(NamedTuple):
    """The compressed rows of an index, a function `queries` that prepares queries to search them by inner
    product, and the number of bytes per compressed row."""

    rows: np.ndarray
    queries: Callable[[np.ndarray], np.ndarray]
    n_bytes: float


def _int8(corpus: np.ndarray) -> Codes:
    scale = np.maximum(np.abs(corpus).max(axis=0), 1e-30) / 127
    return Codes(np.round(corpus / scale) * scale, lambda Q: Q, corpus.shape[1])


def _binary(corpus: np.ndarray) -> Codes:
    """Replace rows by the signs of the centred rows. Queries stay unchanged."""
    signs = np.where(corpus >= corpus.mean(axis=0), np.float32(1), np.float32(-1))
    return Codes(signs, lambda Q: Q, corpus.shape[1] / 8)


def _first_dimensions(corpus: np.ndarray, part: int) -> Codes:
    d = max(1, corpus.shape[1] // part)
    return Codes(unit_rows(corpus[:, :d]), lambda Q: np.ascontiguousarray(Q[:, :d]), 4 * d)


def _principal(corpus: np.ndarray, part: int) -> Codes:
    d = max(1, corpus.shape[1] // part)
    axes = np.linalg.eigh(covariance(corpus))[1][:, ::-1][:, :d].astype(np.float32)
    return Codes((corpus - corpus.mean(axis=0)) @ axes, lambda Q: Q @ axes, 4 * d)


FORMS: dict[str, Callable[[np.ndarray], Codes]] = {
    "int8": _int8,
    "binary": _binary,
    "first-half": partial(_first_dimensions, part=2),
    "first-quarter": partial(_first_dimensions, part=4),
    "pca-half": partial(_principal, part=2),
    "pca-quarter": partial(_principal, part=4),
}
FORM_TITLES = {
    "int8": "int8",
    "binary": f"binary, {RESCORED} ranked again",
    "first-half": "first d/2",
    "first-quarter": "first d/4",
    "pca-half": "PCA d/2",
    "pca-quarter": "PCA d/4",
}


def compressed_lists(
    trial: RetrievalTask, sides: Sides, codes: Sequence[Codes | None], form: str, weight: float, k: int = K
) -> dict[str, np.ndarray]:
    """The rows (q, k) that each option finds if its index holds compressed vectors. `codes` has them for the
    three corpora of `sides`; None where a corpus is missing.
    """
    coded = [
        side if made is None else (made.queries(side[0]), made.rows)
        for side, made in zip(sides, codes, strict=True)
    ]
    full = dict(zip(Sides._fields, sides, strict=True))
    queries, corpora = zip(sides.old, sides.bridged, strict=True)

    def ranked_again(side: str, Q: np.ndarray, corpus: np.ndarray, depth: int) -> np.ndarray:
        rows = search(Q, corpus, max(depth, RESCORED), trial.own)
        return rerank(*(full.get(side) or added_scores(*queries, corpora, weight)), rows, depth)

    return trial.lists(Sides(*coded), weight, k, find=ranked_again if form == "binary" else None)


@dataclass(frozen=True)
class Compressed:
    """The mean score of an option with a compressed index. `form` is the kind of compression, `change` the
    difference from the score with full vectors, and `row_bytes` the size of a row.
    """

    option: str
    form: str
    score: float
    change: Interval
    row_bytes: float


@dataclass(frozen=True, eq=False)
class CheaperIndexes(Reported):
    """The scores of all options with each kind of compressed index, on `n_queries` queries and `n_rows`
    rows."""

    rows: tuple[Compressed, ...]
    metric: str
    n_queries: int
    n_rows: int

    def best(self, option: str = "keep") -> Compressed | None:
        """The smallest index with which an option loses less than `WORTH_A_CHANGE`, by the 95 % interval;
        None if the queries exclude this loss for no index."""
        kept = [one for one in self.rows if one.option == option and -one.change.low < WORTH_A_CHANGE]
        return min(kept, key=lambda one: one.row_bytes, default=None)

    @property
    def cautions(self) -> tuple[str, ...]:
        losses = [one for one in self.rows if one.form.startswith("first") and one.change.high < 0]
        return tuple(
            f"{FORM_TITLES[worst.form].capitalize()} loses {short(-worst.change.value)} with"
            f" “{TITLES[worst.option]}”: cut only vectors of models that were trained for it (Matryoshka)."
            for worst in sorted(losses, key=lambda one: one.change.value)[:1]
        )

    def describe(self) -> str:
        options = list(dict.fromkeys(one.option for one in self.rows))
        told = [f"“{TITLES[option]}” {self._finding(option)}" for option in options]
        n_queries = counted(self.n_queries, "query", "queries")
        return (
            f"The smallest index with a loss below {short(WORTH_A_CHANGE, 2)} (95 %, {n_queries}):"
            f" {'; '.join(told)}."
        )

    def _finding(self, option: str) -> str:
        best = self.best(option)
        if best:
            return f"{FORM_TITLES[best.form]}, at most {short(max(0.0, -best.change.low))}"
        least = max((one for one in self.rows if one.option == option), key=lambda one: one.change.low)
        return (
            f"none, because these queries exclude only a loss above {short(-least.change.low)}"
            f" ({FORM_TITLES[least.form]})"
        )

    def report(self) -> Report:
        rows = [
            (one.option, one.form, one.row_bytes, one.score, *vars(one.change).values()) for one in self.rows
        ]
        frame = pd.DataFrame(rows, columns=["option", "index", "bytes", "score", "change", "low", "high"])
        column = f"{self.metric} of the index"
        shown = [["option", "index", "bytes of a row", column, "vs full vectors"]]
        for option, form, size, score, change, *ends in rows:
            cells = TITLES[option], FORM_TITLES[form], f"{size:,.0f}", short(score)
            shown.append([*cells, f"{signed(change)} ({band(*ends)})"])
        caption = (
            f"{counted(self.n_queries, 'query', 'queries')}, {self.n_rows:,} rows. Binary: signs of centred"
            f" rows, searched by a query's full vector; the first {RESCORED} are ranked again by full"
            " vectors, which stay on disk. A cascade ranks by full vectors. Intervals: over queries, paired."
            " If no query changes, the interval assumes changes as large as those by the other indexes. All"
            " queries use one adapter and one weight, so these scores are not cross-validated as those of the"
            " options are."
        )
        tables = [Table("compressed", frame, shown, "A cheaper index", caption)]
        return Report(self.describe(), tables, {}, self.cautions)


def usual_change(changes: Sequence[np.ndarray]) -> float:
    """The root mean square of the changes of scores (q,) that are not 0; 0 if there are none."""
    flat = np.concatenate(changes)
    some = flat[np.abs(flat) > NO_WIDTH]
    if not len(some):
        return 0.0
    return float(np.sqrt(np.mean(np.square(some))))


@dataclass(frozen=True, kw_only=True)
class CheaperIndex(Task[CheaperIndexes], kind="cheaper-index", version=2, title="A cheaper index"):
    """The task that scores each option of a migration with each kind of compressed index.

    `adapter` and `weight` are those that the migration chose. At most 500 queries and 20,000 rows are used.
    """

    migration: Migration
    adapter: str = setting(choices=ADAPTERS)
    weight: float = 1.0

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = min(len(spaces[0]), MOST_CURVE_ROWS)
        d = max(space.dimension for space in spaces)
        return 1.0 + 4e-8 * n * d + 4e-9 * MOST_JUDGED * n * len(FORMS)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> CheaperIndexes:
        ground = self.migration.ground(spaces, checked=True)
        k = self.migration.k
        trial = ground.trial.with_fewer_queries(MOST_JUDGED)
        trial = trial.with_fewer_rows(MOST_CURVE_ROWS, self.migration.random_state)
        sides = trial.sides(ground.pairs.fit(self.adapter))
        full = {name: trial.score(rows, k) for name, rows in trial.lists(sides, self.weight, k).items()}
        if not trial.is_judged:
            full.pop("re-embed", None)  # without judgements, what it finds is relevant by definition
        scores: dict[tuple[str, str], np.ndarray] = {}
        sizes: dict[tuple[str, str], float] = {}
        for number, (form, encode) in enumerate(FORMS.items()):
            report(number, len(FORMS), FORM_TITLES[form])
            made = {id(corpus): encode(corpus) for _, corpus in sides if corpus is not None}
            codes = [made.get(id(corpus)) for _, corpus in sides]
            old, bridged, new = (0.0 if one is None else one.n_bytes for one in codes)
            both = old + (bridged if sides.bridged[1] is not sides.old[1] else 0.0)
            n_bytes = {"keep": old, "bridge": bridged, "twice": both, "cascade": both, "re-embed": new}
            lists = compressed_lists(trial, sides, codes, form, self.weight, k)
            for option in full:
                scores[option, form] = trial.score(lists[option], k)
                sizes[option, form] = n_bytes[option]
        found = []
        bootstrap = Bootstrap(len(trial.old_queries))
        for option, before in full.items():
            usual = usual_change([scores[option, form] - before for form in FORMS])
            for form in FORMS:
                now = scores[option, form]
                change = bootstrap.difference(QueryScores(now), QueryScores(before), usual)
                found.append(Compressed(option, form, float(now.mean()), change, sizes[option, form]))
        if trial.is_judged:
            metric = f"nDCG@{k}"
        else:
            metric = f"new model's {k} neighbours"
        return CheaperIndexes(tuple(found), metric, len(trial.old_queries), len(trial.rows))


def threshold_table(outcome: ThresholdOutcome) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "scores": ["old model", "without the map", "with the map", "of another query, with the map"],
            "KS distance": [0.0, outcome.ks_before, outcome.ks_after, np.nan],
            "wrong decisions": [0.0, outcome.error_before, outcome.error_after, outcome.chance],
            "rows per query": [outcome.accepted_old, outcome.accepted_before, outcome.accepted_after, np.nan],
        }
    )


@dataclass(frozen=True, kw_only=True)
class MigrationChart(SpacesRecipe, figure="migration-options"):
    """A figure of the scores of the options of a migration, with their intervals.

    Examples
    --------
    >>> from relcore import Migration, MigrationChart, SpaceSpec
    >>> specs = tuple(SpaceSpec("file", f"{name}.npz") for name in ("old", "new"))
    >>> MigrationChart(spaces=specs, migration=Migration()).figure
    'migration-options'
    """

    migration: Migration

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        result = self.computed(result)
        old, new = map(space_name, self.spaces[:2])
        note = f"{old} → {new}; {len(result.queries):,} queries search {result.n_rows:,} rows"
        chart = replace(chart_of(result), note=note)
        return chart_exportable(chart, self.to_json(), "relscope-migration", result.table)


@dataclass(frozen=True, kw_only=True)
class CascadePrice(MigrationChart, figure="cascade-price"):
    """A figure of the number of rows that a cascade embeds, by the number of queries in the log."""

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        if (price := self.computed(result).price) is None:
            raise SpaceError("cascade-price: expected queries embedded by both models, got none; add a log")
        line = Line(TITLES["cascade"], *zip(*price.curve, strict=True), color=OPTIONS.index("cascade"))
        chart = Lines(
            (line,),
            "queries",
            "rows embedded",
            baselines=(("whole corpus", float(price.n_rows)),),
            note=f"{price.need.n_candidates:,} candidates per query; mean over orders of the log",
        )
        return chart_exportable(chart, self.to_json(), "relscope-cascade-price")


@dataclass(frozen=True, kw_only=True)
class ThresholdScores(SpacesRecipe, figure="threshold-change"):
    task: ThresholdChange

    def draw(self, result: ThresholdOutcome | None = None) -> Exportable:
        outcome = self.computed(result)
        shares = np.linspace(0, 1, len(outcome.old))
        lines = (  # a line has the colour of its option
            Line("old model", outcome.old, shares, color=0),
            Line(SYSTEMS[self.task.system], outcome.new, shares, color=OPTIONS.index(self.task.system)),
            Line("after the map", outcome.mapped, shares, color=len(OPTIONS)),
        )
        chart = Lines(
            lines,
            "similarity, cosine",
            "share of scores below",
            marks=(("old threshold", outcome.threshold), ("new threshold", min(outcome.new_threshold, 1.0))),
            note=(
                f"{outcome.n_queries:,} held-out queries; KS distance {short(outcome.ks_before, 2)} before, "
                f"{short(outcome.ks_after, 2)} after"
            ),
        )
        return chart_exportable(
            chart, self.to_json(), "relscope-migration-threshold", lambda: threshold_table(outcome)
        )


def chart_of(result: MigrationResult) -> Lines:
    """The chart of score by number of pairs. An option without a measured learning curve has a horizontal
    line."""
    measured = [point.n_pairs for point in result.curve] or [result.n_pairs]
    lines = []
    level = sorted({min(measured), max(measured)})
    for option in result.options:
        points = [
            (point.n_pairs, point.value, point.low, point.high)
            for point in result.curve
            if (point.adapter, point.option) == (result.adapter, option.option)
        ]
        points = points or [(n, option.value, option.low, option.high) for n in level]
        look = {"color": OPTIONS.index(option.option), "dashed": option.option == "re-embed"}
        lines.append(Line(TITLES[option.option], *zip(*points, strict=True), **look))
    return Lines(
        tuple(lines),
        "pairs: rows embedded by both models",
        result.metric,
        log_x=True,
        n_direct=len(result.options),
    )


# Blind judging: for each query, a person sees the five rows of two options and says which are better. A
# sequential test stops when the answers suffice.

SHOWN = 5
MOST = 50
DEPTH = 10
EARLY = 0.0045
LEVEL = 0.05


@dataclass(frozen=True)
class BlindQuestion:
    """A question to a person who judges search results without knowing which option found them. It has a
    query, and at most five ids that the old model and another option find, in the order of the search.

    If `is_turned`, the ids of the old model are on the right.
    """

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    is_turned: bool


@dataclass(frozen=True)
class Answer:
    """The answer of a judge to a question: the ids that were shown from the old model (`keep`) and from the
    other option, and which list is better."""

    query: str
    keep: tuple[str, ...]
    other: tuple[str, ...]
    preferred: Literal["keep", "other", "equal"]


@dataclass(frozen=True)
class BlindAnswers:
    """All answers of a judge who compares the search results of the old model with those of another option of
    the migration."""

    option: Literal["bridge", "twice", "cascade", "re-embed"] = "re-embed"
    answers: tuple[Answer, ...] = ()

    @classmethod
    def read(cls, path: Path) -> BlindAnswers:
        """Read answers from a file. Raises a SpaceError if the file is missing or too large, and if it holds
        no answers."""
        return records.from_json(cls, records.read_file(path, "answers of the tab Judge"), path.name)


def questions(
    result: MigrationResult, ids: np.ndarray, option: str, random_state: int = 0
) -> tuple[BlindQuestion, ...]:
    """At most 50 questions for a judge, to compare search results of the old model with those of `option`.
    Queries whose two lists differ most come first. A hash of the query decides which list is shown on the
    left.

    `ids` (n,) are the ids of the old space. Queries with the same five rows in both lists are left out. Lists
    are compared by their average overlap (Webber et al. 2010) down to rank 10. This order was tested on
    Cranfield with simulated judges who know the relevant rows, for five pairs of models whose nDCG@10 differs
    by .10 to .12. They preferred the better model in 196 of 200 draws of queries; with queries in random
    order, in 166.
    """
    order, sides = (row_keys(result.queries, f"{what} {option}", random_state) for what in ("judge", "side"))
    lists = [result.found[name][:, :DEPTH] for name in ("keep", option)]
    asked = []
    for place in np.lexsort((order, average_overlap(*lists))):
        keep, other = (
            tuple(map(str, ids[rows[rows >= 0]])) for rows in (one[place, :SHOWN] for one in lists)
        )
        if set(keep) != set(other):
            asked.append(BlindQuestion(result.queries[place], keep, other, bool(sides[place] < 0.5)))
    return tuple(asked[:MOST])


def average_overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The average overlap (q,) of two ranked lists (q, k): the share of rows among the first i that both
    lists have, averaged over i = 1 … k.
    """
    ranks = np.arange(first.shape[1])
    # What a row adds that is in both lists, by the lower of its ranks.
    later = np.cumsum(1 / (ranks[::-1] + 1))[::-1]
    same = (first[:, :, None] == second[:, None]) & (first >= 0)[:, :, None]
    return (same * later[np.maximum.outer(ranks, ranks)]).sum((1, 2)) / len(ranks)


def with_answers(
    result: MigrationResult, ids: np.ndarray, answers: BlindAnswers, random_state: int = 0
) -> MigrationResult:
    """Replace the recommendation of a migration by the one that follows from a judge's answers. The new
    sentence still has the measured scores.

    Raises a SpaceError if no answer is about the rows of this result.
    """
    option = answers.option
    found = tally(questions(result, ids, option, random_state) if option in result.found else (), answers)
    if not found.n_answers:
        raise SpaceError(
            f"answers: expected answers about the rows that “{TITLES['keep']}” and “{TITLES[option]}” find"
            f" here, got {counted(len(answers.answers), 'answer')} about other rows; were other vectors or"
            " settings judged?"
        )
    verdict = found.verdict()
    told = result.verdict.sentence
    # Keep the measured scores, but not the earlier verdict before them.
    if result.relevance != NEIGHBOURS:
        measured = told.partition(": ")[2]
    else:
        measured = told[told.index("Of the ") :]
    sentence = f"{verdict.sentence} {measured[:1].upper()}{measured[1:]}"
    return replace(result, verdict=replace(verdict, sentence=sentence))


@dataclass(frozen=True)
class Tally:
    """The state of a comparison by a judge: the numbers of answers that prefer the old model (`keep`), the
    other option, or neither (`equal`); the p-value of the sequential test; the next question, None at the
    end; and the number of questions that are left.
    """

    option: str
    keep: int
    other: int
    equal: int
    p: float
    question: BlindQuestion | None
    n_left: int

    @property
    def n_answers(self) -> int:
        return self.keep + self.other + self.equal

    def verdict(self) -> Verdict:
        """The recommendation that follows from the answers. Before the end of the test, its option is ""."""
        told = (
            f"of {counted(self.n_answers, 'blind answer')}, {self.other:,} prefer “{TITLES[self.option]}”,"
            f" {self.keep:,} “{TITLES['keep']}”, and {self.equal:,} neither (sign test, p = {short(self.p)})"
        )
        if self.question:
            return Verdict("", False, f"Not decided yet: {told}; up to {self.n_left:,} more to answer.")
        if self.p <= LEVEL:
            better = "keep"
            if self.other > self.keep:
                better = self.option
            return Verdict(better, True, f"{MOVES[better]}: {told}.")
        return Verdict("keep", False, f"No clear preference: {told}.")


def tally(asked: Sequence[BlindQuestion], answers: BlindAnswers) -> Tally:
    """Count the answers to the questions `asked`.

    An answer counts only if it was given for the same rows, and before the end of the test.
    """
    said = {(one.query, one.keep, one.other): one.preferred for one in answers.answers}
    counts = Counter(keep=0, other=0, equal=0)
    waiting = []
    for question in asked:
        if (preferred := said.get((question.query, question.keep, question.other))) is None:
            waiting.append(question)
            continue
        counts[preferred] += 1
        if sequential_test()[counts["keep"] + counts["other"]].ends[counts["other"]]:
            waiting = []
            break
    p = sequential_test()[counts["keep"] + counts["other"]].p[counts["other"]]
    return Tally(
        answers.option, **counts, p=float(p), question=next(iter(waiting), None), n_left=len(waiting)
    )


class SignTest(NamedTuple):
    """The sequential sign test after n answers, not counting those that prefer neither list. Both arrays are
    (n + 1,): entry i is for the case that i of the n answers prefer the other option to the old model.

    `ends` says whether the test ends now. `p` is the p-value: if each answer were a random coin toss, the
    probability that the test ends earlier, or that i is at least as far from n / 2 now.
    """

    ends: np.ndarray
    p: np.ndarray


@cache
def sequential_test() -> tuple[SignTest, ...]:
    """The sign tests after 0, 1, …, 50 answers. The p-values are exact, and account for the fact that the
    answers are tested after each new answer.
    """
    from scipy.special import bdtr  # `scipy.stats` has the same function, but its import takes long

    # `paths`: the probability of each count before the test ends.
    paths = np.ones(1)
    ended = 0.0
    found = []
    for n in range(MOST + 1):
        counts = np.arange(n + 1)
        far = abs(2 * counts - n)
        ends = 2 * bdtr(np.minimum(counts, n - counts).astype(float), n, 0.5) <= EARLY
        found.append(SignTest(ends, ended + np.array([paths[far >= one].sum() for one in far])))
        ended += paths[ends].sum()
        paths = np.convolve(np.where(ends, 0, paths), [0.5, 0.5])
    return tuple(found)
