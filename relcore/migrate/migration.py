"""Migration: keep, bridge, query both models or re-embed, as a task."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.base.numbers import band, counted, short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.catalog.examples import EXAMPLES, example_spaces
from relcore.catalog.recipe import Recipe, load_all
from relcore.catalog.task import Task
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.engine.rows import unit_rows
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.adapters import Adapter, CardScore, card_of, export
from relcore.migrate.evaluate import (
    AUTOMATIC,
    OPTIONS,
    PARTS,
    SIZES,
    Bootstrap,
    Candidate,
    CurvePoint,
    Interval,
    JudgedQuery,
    K,
    Pairs,
    QueryScores,
    RetrievalTask,
    check_pairs,
    cross_fitted,
    curve_of,
    derangement,
    held_out_trial,
    judged_trial,
    length_cautions,
    moved_by_pairs,
    parts_of,
    preprocessing_cautions,
)
from relcore.runs.entries import BundledResults
from relcore.runs.progress import Progress, silent
from relcore.runs.store import Store
from relcore.scores.groups import lowest_groups
from relcore.scores.score import Difference, mean_difference
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace, MatrixLike, as_space
from relcore.spaces.split import row_keys

TITLES = {"keep": "keep", "bridge": "bridge", "twice": "query both models", "re-embed": "re-embed"}


@dataclass(frozen=True)
class Verdict:
    """What to do: `option`, "" where nothing is judged; whether it differs from all others at 95 %; why.

    The sentence begins with the answer and a colon.
    """

    option: str
    is_clear: bool
    sentence: str


def decide(scores: Mapping[str, QueryScores], bootstrap: Bootstrap) -> tuple[str, bool]:
    """The option, a dearer one only where it is clearly better; and whether it differs from all others.

    `scores` are of each query (q,) by measured option; those that find the same are not compared.
    """
    chosen = OPTIONS[0]
    for dearer in OPTIONS[1:]:
        if dearer in scores and bootstrap.difference(scores[dearer], scores[chosen]).low > 0:
            chosen = dearer
    found = scores[chosen].queries
    others = [one for one in scores.values() if not np.array_equal(one.queries, found)]
    return chosen, all(bootstrap.difference(scores[chosen], one).is_clear for one in others)


def verdict_of(
    scores: Mapping[str, QueryScores], bootstrap: Bootstrap, *, k: int, on: str, relevance: str, weight: float
) -> Verdict:
    """`decide`, with its sentence; `on` names the data. Without judgements no option is chosen."""
    means = {name: short(float(one.queries.mean())) for name, one in scores.items()}
    if relevance == NEIGHBOURS:
        found = (
            f"the old model finds {means['keep']}, the bridge {means['bridge']}, both models {means['twice']}"
        )
        told = f"Of the {k} rows that the new model finds for a row, {found}; {on}."
        same = float(scores["keep"].queries.mean()) >= SAME_ROWS
        return Verdict("", False, f"{FINDS_THE_SAME if same else UNJUDGED} {told}")
    option, is_clear = decide(scores, bootstrap)
    close = (
        f"Too close to call: no option is clearly better than “{TITLES[option]}”, and at least one is not"
        " clearly worse"
    )
    told = MOVES[option] if is_clear else close
    parts = [f"{told}: {_JUDGED_BY[relevance]}, nDCG@{k} is {means['keep']} with the old model"]
    for name, how in _WITH.items():
        if name in scores:
            gain = bootstrap.difference(scores[name], scores["keep"])
            change = f"{signed(gain.value)}, 95 %: {band(gain.low, gain.high)}"
            parts.append(f"{means[name]} {how.format(short(weight, 2))} ({change})")
    return Verdict(option, is_clear, f"{', '.join(parts[:-1])} and {parts[-1]}; {on}.")


MOVES = {
    "keep": "Keep the old model",
    "bridge": "Bridge: let new queries search the old vectors through the adapter",
    "twice": "Query both models: search the old vectors with both and add the scores",
    "re-embed": "Re-embed the corpus",
}
_WITH = {
    "bridge": "with a bridge",
    "twice": "when both models search, with the new model's score counted {} ×",
    "re-embed": "with everything embedded again",
}


@dataclass(frozen=True)
class OptionScore:
    """One option on all queries: its mean score, the 95 % interval, and the chance level.

    Intervals are over queries and draws of the pairs. At the chance level the lists belong to other queries.
    `to_keep` and `to_reembed` are differences on the same queries; None of the option itself, and where
    re-embedding is not measured.
    """

    option: str
    value: float
    low: float
    high: float
    chance: float
    to_keep: Interval | None = None
    to_reembed: Interval | None = None


@dataclass(frozen=True, eq=False)
class MigrationResult(Reported):
    """The answer of a migration.

    Attributes
    ----------
    options : tuple of OptionScore
        keep, bridge, twice, and re-embed where it is measured and anything is judged.
    weight : float
        How much the bridged search counts where the old one counts 1; 1 where nothing is judged.
    candidates : tuple of Candidate
        The best first.
    relevance : "judgements", "labels" or "neighbours"
        What is relevant: judged rows, rows of the same label, or the nearest rows by the new model.
    k, n_pairs, n_rows : int
        Depth of the lists; pairs that the adapter was fitted on; rows that were searched.
    queries : q ids
    scores : option → array (q,)
        nDCG@k of each query; where nothing is judged, the share of the new model's k neighbours.
    found : option → array (q, k)
        Row numbers of the old space, the best first, −1 for none. Re-embed, where it can be measured, is
        there without a score where nothing is judged.
    relevant_query, relevant_row : arrays (j,)
        Positions of queries, and the rows of the old space that are relevant to them.
    pairs : array (m,)
        Row numbers in the old space of the pairs that the adapter was fitted on.
    """

    verdict: Verdict
    options: tuple[OptionScore, ...]
    adapter: str
    weight: float
    candidates: tuple[Candidate, ...]
    curve: tuple[CurvePoint, ...]
    cautions: tuple[str, ...]
    relevance: str
    k: int
    n_pairs: int
    n_rows: int
    queries: tuple[str, ...]
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)
    found: Mapping[str, np.ndarray] = field(default_factory=dict)
    relevant_query: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    relevant_row: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    pairs: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def fitted(self, new: np.ndarray, old: np.ndarray) -> Adapter:
        return ADAPTERS[self.adapter].load()().fit(unit_rows(new), unit_rows(old))

    @property
    def metric(self) -> str:
        return f"new model's {self.k} neighbours" if self.relevance == NEIGHBOURS else f"nDCG@{self.k}"

    def option(self, name: str) -> OptionScore | None:
        return next((score for score in self.options if score.option == name), None)

    def table(self) -> pd.DataFrame:
        """One row per option: score, interval, chance level, differences to two options, and the weight."""
        rows = []
        for one in self.options:
            row = {"option": TITLES[one.option], "score": one.value}
            row |= {name: getattr(one, name) for name in ("low", "high", "chance")}
            for name, gain in (("keep", one.to_keep), ("re-embed", one.to_reembed)):
                ends = (gain.value, gain.low, gain.high) if gain else (np.nan,) * 3
                row |= dict(zip((f"to {name}", f"to {name}, low", f"to {name}, high"), ends, strict=True))
            row |= {"weight": self.weight if one.option == "twice" else np.nan}
            rows.append(row | {"queries": len(self.queries), "rows": self.n_rows})
        return pd.DataFrame(rows)

    def title_of(self, option: str) -> str:
        return TITLES[option] + (f", weight {short(self.weight, 2)}" if option == "twice" else "")

    @property
    def weight_note(self) -> str:
        if self.relevance == NEIGHBOURS:
            return "Both searches count 1, as nothing is judged."
        return "The weight of the bridged search (the old one has 1) is tuned on the other queries."

    def report(self, **figures: Any) -> Report:
        """The verdict, the options with their intervals, the adapters, and the scores of fewer pairs."""
        verdict = self.verdict
        facts = {
            "verdict": {"option": verdict.option, "clear": verdict.is_clear, "sentence": verdict.sentence},
            "adapter": self.adapter,
            "weight": self.weight,
            "relevance": self.relevance,
            "pairs": self.n_pairs,
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "curve": [asdict(point) for point in self.curve],
            "cautions": list(self.cautions),
        }
        shown = [["option", self.metric, "95 %", "chance", "vs keep, 95 %", "vs re-embed, 95 %"]]
        for one in self.options:
            cells = [self.title_of(one.option), short(one.value), band(one.low, one.high), short(one.chance)]
            for gain in (one.to_keep, one.to_reembed):
                cells.append(f"{signed(gain.value)} ({band(gain.low, gain.high)})" if gain else "–")
            shown.append(cells)
        queries = counted(len(self.queries), "query", "queries")
        caption = f"{queries}; {self.n_rows:,} rows searched; {self.n_pairs:,} pairs. {self.weight_note}"
        tables = [Table("rows", self.table(), shown, caption=caption)]
        if len(self.candidates) > 1:
            rows = [["adapter, as a bridge", self.metric, "95 %"]]
            for one in self.candidates:
                rows.append([ADAPTERS[one.adapter].title, short(one.score), band(one.low, one.high)])
            tables.append(Table(shown=rows))
        if self.curve:
            rows = [["pairs", "adapter", "option", self.metric, "95 %"]]
            for point in self.curve:
                cells = [f"{point.n_pairs:,}", ADAPTERS[point.adapter].title, TITLES[point.option]]
                rows.append([*cells, short(point.value), band(point.low, point.high)])
            tables.append(Table(shown=rows))
        return Report(verdict.sentence, tables, facts, self.cautions, figures)

    def worst_queries(self, option: str, to: str = "keep") -> pd.DataFrame:
        """One row per query, the greatest loss first: query, the two scores, and the change."""
        before, now = self.scores[to], self.scores[option]
        columns = {"query": self.queries, TITLES[to]: before, TITLES[option]: now, "change": now - before}
        table = pd.DataFrame(columns)
        return table.sort_values("change", kind="stable").reset_index(drop=True)


AUTO, NEIGHBOURS = "auto", "neighbours"
CHOSEN = ChainMap(ADAPTERS, {AUTO: "Automatic, by cross-validation"})
RELEVANCE = {"labels": "Rows of its label", NEIGHBOURS: "Its neighbours by the new model"}
_JUDGED_BY = {
    "judgements": "by the judgements",
    "labels": "with rows of the same label as relevant",
}
UNJUDGED = (
    "No verdict: pairs alone cannot tell which model is better; a label column (rows of the same label are"
    " relevant), a file of judged queries, or your answers in “Judge here, blind” can."
)
SAME_ROWS = (
    0.995  # of the rows that the new model finds, from where no judgements could tell the models apart
)
FINDS_THE_SAME = "No verdict: both models find the same rows, so the new one does not improve search."


@dataclass(frozen=True, eq=False)
class MigrationData:
    """What a migration is measured on: pairs to fit on, and where their `rows` (m,) are in the old space.

    `relevance` is that of `MigrationResult`, and `places` (n,) says where the rows of the trial's corpus are
    in the old space.
    """

    pairs: Pairs
    rows: np.ndarray
    relevance: str
    trial: RetrievalTask
    queries: tuple[str, ...]
    places: np.ndarray
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class Migration(Task[MigrationResult]):
    """What to do about a new embedding model, measured on judged queries or labels.

    Without these, how much of what the new model finds is found with the old vectors. The spaces are the old
    vectors of the corpus, the new vectors of some of its rows by the same ids, and, where there are
    judgements, the queries by the old and by the new model. Otherwise held-out pairs are the queries.
    `compared` are further adapters of the curve, `sizes` its numbers of pairs.

    Examples
    --------
    >>> from relcore import Migration
    >>> Migration(adapter="ridge", n_pairs=300).n_pairs
    300
    """

    kind: ClassVar[str] = "migration"
    version: ClassVar[int] = 3
    result: ClassVar[str] = "relcore.migrate.migration:MigrationResult"
    title: ClassVar[str] = "Migration to a new model"

    adapter: str = setting(
        AUTO,
        choices=CHOSEN,
        help="What maps new queries into the old space; auto: the best bridge, cross-validated over queries.",
    )
    n_pairs: int = setting(
        0,
        label="Pairs to learn from",
        option="pairs",
        low=0,
        step=50,
        help="Number of pairs to learn from; 0 takes all that are not held out.",
    )
    strategy: str = setting(
        "random",
        label="Choose pairs by",
        choices=STRATEGIES,
        help="How pairs are chosen, in the old space.",
    )
    compared: tuple[str, ...] = setting(("whitened", "procrustes", "ridge"), choices=ADAPTERS)
    sizes: tuple[int, ...] = setting(SIZES, low=2)
    draws: int = setting(3, low=1, help="Draws of the pairs per point of the curve.")
    k: int = setting(K, label="Results per query, k", low=1, help="Depth of the lists that are scored.")
    judgements: tuple[JudgedQuery, ...] = ()
    relevance: str = setting(
        "labels",
        label="Relevant are",
        choices=RELEVANCE,
        help=(
            "What a held-out row should find. Neighbours by the new model, which are taken where there are no"
            " labels, cannot tell which model is better."
        ),
    )
    random_state: int = setting(0, low=0, help="Random state of the pairs, the folds and the held-out rows.")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores: some thirty fits for the choice and the draws, and three for each point."""
        low, high = sorted(space.dimension for space in spaces[:2])
        m = min(len(spaces[1]), 2_000)
        fits = 30 + 2 * self.draws * len(self.sizes)
        return (
            1.0
            + fits * 2e-10 * m * low * high
            + 4e-9 * len(spaces[0]) * high * min(len(spaces[-1]), 2_000) / 1_000
        )

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> MigrationResult:
        """Raises a SpaceError for pairs that do not pair, judgements without known queries, missing
        labels.
        """
        report(0, 10, "checking the pairs")
        return self.answer(self.ground(spaces), report)

    def answer(self, ground: MigrationData, report: Progress = silent) -> MigrationResult:
        pairs, trial, state = ground.pairs, ground.trial, self.random_state
        report(1, 10, "choosing an adapter and a weight")
        fits = {name: pairs.fit(name) for name in (AUTOMATIC if self.adapter == AUTO else (self.adapter,))}
        choice = cross_fitted(trial, fits, self.k, state)
        name, weight, found = choice.adapter, choice.weight, choice.found
        report(4, 10, "drawing pairs again")
        moved = moved_by_pairs(trial, pairs, name, weight, self.k, state)
        samples = {
            option: QueryScores(trial.score(lists, self.k), moved.get(option, 0.0))
            for option, lists in found.items()
            if trial.is_judged or option != "re-embed"  # else the relevant rows are its own
        }
        bootstrap, options = Bootstrap(len(ground.queries), PARTS), []
        for option, sample in samples.items():
            gains = [
                bootstrap.difference(sample, samples[other]) if other in samples and other != option else None
                for other in ("keep", "re-embed")
            ]
            mean, chance = bootstrap.mean(sample), trial.chance(found[option], self.k, state)
            options.append(OptionScore(option, mean.value, mean.low, mean.high, chance, *gains))
        curve = curve_of(
            trial,
            pairs,
            (name, *self.compared),
            weight,
            sizes=self.sizes,
            draws=self.draws,
            k=self.k,
            random_state=state,
            report=lambda done, total, text: report(5 + 5 * done / total, 10, text),
        )
        m, ends = len(pairs.ids), [one for one in options if one.option in moved and curve]
        curve += tuple(CurvePoint(m, name, one.option, one.value, one.low, one.high, 1) for one in ends)
        counts = f"{counted(len(ground.queries), 'query', 'queries')}, {len(trial.rows):,} rows, {m:,} pairs"
        on = f"{counts}, {ADAPTERS[name].title}"
        verdict = verdict_of(samples, bootstrap, k=self.k, on=on, relevance=ground.relevance, weight=weight)
        query, row = trial.relevance.nonzero()
        return MigrationResult(
            verdict,
            tuple(options),
            adapter=name,
            weight=weight,
            candidates=choice.candidates,
            curve=curve,
            cautions=ground.cautions,
            relevance=ground.relevance,
            k=self.k,
            n_pairs=len(pairs.ids),
            n_rows=len(trial.rows),
            queries=ground.queries,
            scores={option: sample.queries.astype(np.float32) for option, sample in samples.items()},
            found={option: np.where(rows >= 0, ground.places[rows], -1) for option, rows in found.items()},
            relevant_query=np.asarray(query, dtype=np.int64),
            relevant_row=ground.places[row],
            pairs=ground.rows,
        )

    def ground(self, spaces: Sequence[LatentSpace], checked: bool = False) -> MigrationData:
        """What is fitted on and scored; raises as `run`. Pairs that were `checked` are not checked again."""
        old, new = spaces[:2]
        paired, state = match(old, new), self.random_state
        new_rows, old_rows = paired.target.vectors, paired.source.vectors
        if not checked:
            check_pairs(new_rows, old_rows, state, (old.name, new.name)).need()
        parts = parts_of(paired, self.n_pairs, self.strategy, bool(self.judgements), state)
        cautions = preprocessing_cautions(new_rows, old_rows)
        if len(spaces) == 4:
            cautions += length_cautions(old.vectors, spaces[2].vectors, "old")
            cautions += length_cautions(new.vectors, spaces[3].vectors, "new")
        if paired.n_zero:
            cautions.append(f"{counted(paired.n_zero, 'pair')} with a zero vector left out.")
        pairs = Pairs(unit_rows(new_rows), unit_rows(old_rows), paired.ids).take(parts.fitted)
        rows = old.index.get_indexer(pairs.ids)
        if self.judgements:
            trial, queries, unknown = judged_trial(spaces, self.judgements, state)
            return MigrationData(pairs, rows, "judgements", trial, queries, trial.rows, (*unknown, *cautions))
        if parts.n_repeated:
            left = counted(parts.n_repeated, "held-out row")
            cautions.append(f"{left} left out: the adapter was fitted on a copy.")
        trial = held_out_trial(paired, parts, self.relevance, self.k, state)
        held, relevance = paired.ids[trial.rows], "labels" if trial.is_judged else NEIGHBOURS
        queries, places = tuple(held[trial.own]), old.index.get_indexer(held)
        return MigrationData(pairs, rows, relevance, trial, queries, places, tuple(cautions))


def export_result(
    result: MigrationResult,
    rows: tuple[np.ndarray, np.ndarray],
    names: tuple[str, str],
    folder: Path,
    commit: str = "",
) -> tuple[Path, ...]:
    """Refit a migration's adapter on the rows of its pairs, new and old, and `export` it with a card."""
    scores = [
        CardScore(f"{result.metric}, {TITLES[row.option]}", row.value, row.low, row.high, len(result.queries))
        for row in result.options
    ]
    adapter, models = result.fitted(*rows), {"new_model": names[0], "old_model": names[1]}
    card = card_of(adapter, *rows, method=result.adapter, scores=scores, commit=commit, **models)
    return export(adapter, card, folder)


# The migration that comes with Relscope.

GROUP = "migration-example"
DATASET = EXAMPLES["sentences"].dataset
OLD, NEW = TfidfSvd(128), MiniLM()
TASK = Migration(n_pairs=300)


def migrate(
    old: MatrixLike,
    new: MatrixLike,
    *,
    queries: tuple[MatrixLike, MatrixLike] | None = None,
    spec: Migration = Migration(),
) -> MigrationResult:
    """Whether to keep an old embedding model, to bridge to a new one, to query both, or to re-embed.

    Parameters
    ----------
    old, new : (n, d_old), (m, d_new)
        Vectors of the corpus by the old model, and of some of its rows, by the same ids, by the new one.
    queries : (q, d_old), (q, d_new), optional
        Those of `spec.judgements`, by both models.

    Raises
    ------
    SpaceError
        As `Migration.run`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, Migration, migrate
    >>> rng = np.random.default_rng(0)
    >>> kinds = rng.integers(8, size=600)
    >>> old = rng.normal(size=(8, 16))[kinds] + rng.normal(size=(600, 16))
    >>> new = old @ np.linalg.qr(rng.normal(size=(16, 16)))[0]
    >>> ids, labels = [f"row {row}" for row in range(600)], kinds.astype(str)
    >>> spaces = [LatentSpace(rows, ids, labels=labels) for rows in (old, new)]
    >>> migrate(*spaces, spec=Migration(adapter="procrustes", sizes=())).option("bridge").value > 0.5
    True
    """
    corpus = [as_space(old, "old"), as_space(new, "new")]
    return spec.run([*corpus, *map(as_space, queries or ())])


def starting_models(finished: BundledResults | None) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The specs of the bundled migration: its old and its new model; None where they are missing.

    Examples
    --------
    >>> from relcore import bundled_results, starting_models
    >>> [spec.source for spec in starting_models(bundled_results())]
    ['encoding', 'encoding']
    """

    group = finished.groups.get(GROUP) if finished else None
    news = [spec for spec in example_spaces("sentences", finished)[0] if spec.encoder == NEW]
    summary = finished.summary(group.files[0]) if group and group.files else None
    if summary is None or not news:
        return None
    return stored_encoding_spec(summary), news[0]


# Queries that get worse: which classes or clusters of queries lose by an option.

CLUSTERS = 8
FEWEST = 5  # queries of a group


def losses_by_group(change: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """One row per group with five queries or more, the greatest loss first; empty below two groups.

    `change` (q,) is one score less another; groups are "" for none. Columns: group, queries, change (mean),
    low and high (the 95 % band of random groups of that size), p (corrected for the number of groups).
    """
    groups = np.asarray(groups, dtype=object)
    names, sizes = np.unique(groups[groups != ""], return_counts=True)
    kept = names[sizes >= FEWEST]
    columns = ["group", "queries", "change", "low", "high", "p"]
    if len(kept) < 2:
        return pd.DataFrame(columns=columns)
    places = {name: number for number, name in enumerate(kept)}
    numbers = np.array([places.get(group, -1) for group in groups])
    lowest = lowest_groups(change, numbers)
    mean = float(np.mean(change))
    table = pd.DataFrame(
        {
            "group": kept,
            "queries": np.bincount(numbers[numbers >= 0], minlength=len(kept)),
            "change": lowest.mean,
            "low": mean - lowest.half_width,
            "high": mean + lowest.half_width,
            "p": lowest.p,
        }
    )
    return table.sort_values("change", kind="stable", ignore_index=True)


def clusters_of(
    vectors: np.ndarray, ids: np.ndarray, n_clusters: int = CLUSTERS, random_state: int = 0
) -> np.ndarray:
    """Clusters (q,) of rows (q, d) of length 1 by k-means, each named after its most central row."""
    from sklearn.cluster import KMeans

    rows = unit_rows(vectors)
    n_clusters = max(1, min(n_clusters, len(rows) // FEWEST))
    fitted = KMeans(n_clusters, n_init=3, random_state=random_state).fit(rows)
    nearness = rows @ unit_rows(fitted.cluster_centers_).T
    central = [
        int(np.argmax(np.where(fitted.labels_ == number, nearness[:, number], -2)))
        for number in range(n_clusters)
    ]
    names = np.array([f"around {ids[row]}" for row in central], dtype=object)
    return names[fitted.labels_]


# What a migration does to a similarity threshold.

FEWEST_QUERIES = 10  # on each side of the split
MOST_ROWS = 4000
_PERMUTATIONS = 100
_KNOTS = 256


@dataclass(frozen=True, eq=False)
class ScorePairs:
    """Cosines (q, n) of the same queries and rows in two systems; NaN for the row that is the query itself.

    All rows, not the nearest ones: of rows chosen by one system the other's scores are low.
    """

    old: np.ndarray
    new: np.ndarray

    def of(self, queries: np.ndarray) -> ScorePairs:
        return ScorePairs(self.old[queries], self.new[queries])

    @property
    def known(self) -> np.ndarray:
        return ~np.isnan(self.old)


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A monotone map of new scores to the scale of old ones, linear between its ascending knots (k,).

    A score beyond the first or the last knot takes its value.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.migrate.migration import ScoreMap
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
        """Isotonic regression (Barlow et al. 1972; `sklearn.isotonic`) of sorted old scores on sorted new
        ones.

        Sorting first keeps the distribution, so that as many rows as before pass a threshold. Regression row
        by row would pull scores towards their mean, and strict thresholds would accept almost nothing.

        Raises
        ------
        SpaceError
            Fewer than two scores, counts that differ, or all new scores equal.
        """
        from sklearn.isotonic import IsotonicRegression

        new, old = (np.sort(np.asarray(scores, dtype=np.float64)) for scores in (new, old))
        if len(new) != len(old) or len(new) < 2 or new[0] == new[-1]:
            raise SpaceError(
                f"score map: expected two scores or more that differ, as many new as old, got {len(new):,}"
                f" and {len(old):,}"
            )
        fitted = IsotonicRegression(out_of_bounds="clip").fit(new, old)
        knots = _dense_above(len(fitted.X_thresholds_))
        return cls(
            fitted.X_thresholds_[knots].astype(np.float64), fitted.y_thresholds_[knots].astype(np.float64)
        )

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
    """What a change of model does to one threshold, and what the map restores, on held-out queries.

    Errors are shares of wrong decisions among the pairs of query and row that the old or the new decision
    accepts (1 less the Jaccard index).

    Attributes
    ----------
    threshold, new_threshold : float
        The old one, and the new score that means the same.
    old, new, mapped : arrays (101,)
        Percentiles of the scores.
    ks_before, ks_after : float
        Kolmogorov–Smirnov distance to the old scores' distribution, 0 … 1.
    error_before, error_after : float
        If the old threshold is applied to new scores, and to mapped ones.
    change : Difference
        Of the errors, paired by query.
    chance, chance_low : float
        Mean and 2.5 % quantile of the error after the map if each query's new scores belong to another query.
    accepted_old, accepted_before, accepted_after : float
        Rows per query that pass.
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
        if not self.beats_chance:
            return (
                "The new scores decide no better than those of other queries, so no map restores this"
                " threshold."
            )
        return (
            f"Replace the threshold {short(self.threshold)} by {short(self.new_threshold)}:"
            f" {self.accepted_old:.1f} rows per query passed before, {self.accepted_before:.1f} would pass"
            f" now, and {self.accepted_after:.1f} pass with the new threshold."
        )


def score_pairs(
    old: tuple[np.ndarray, np.ndarray],
    new: tuple[np.ndarray, np.ndarray],
    own: np.ndarray | None = None,
    random_state: int = 0,
) -> ScorePairs:
    """Scores of every query with every row, or with 4,000 rows at random.

    Each system has queries (q, d) and rows (n, d) of any length; `own` (q,) is the row that is the query
    itself.
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
    return ScorePairs(*cosines)


def usual_threshold(pairs: ScorePairs, per_query: float = 10) -> float:
    scores = pairs.old[pairs.known]
    return float(np.quantile(scores, max(1 - per_query * len(pairs.old) / len(scores), 0)))


def restore_threshold(pairs: ScorePairs, threshold: float, random_state: int = 0) -> ThresholdOutcome:
    """Fit the map on half of the queries, by a hash of their numbers, and judge it on the other half.

    Raises a SpaceError for fewer than 10 queries on each side, or a threshold beyond −1 … 1.
    """
    if not -1 <= threshold <= 1:
        raise SpaceError(f"threshold: expected a cosine, −1 … 1, got {threshold!r:.40}")
    q = len(pairs.old)
    if q < 2 * FEWEST_QUERIES:
        raise SpaceError(
            f"thresholds: expected {2 * FEWEST_QUERIES} queries or more, got {q}; add pairs or queries"
        )
    order = np.argsort(row_keys([str(query) for query in range(q)], "thresholds", random_state))
    fitting, judging = pairs.of(order[: q // 2]), pairs.of(order[q // 2 :])
    score_map = ScoreMap.fit(fitting.new[fitting.known], fitting.old[fitting.known])
    mapped = score_map(judging.new)
    truth, before, after = (
        scores >= threshold for scores in (judging.old, judging.new, mapped)
    )  # a NaN passes nowhere
    errors = [_wrong(truth, decided) for decided in (before, after)]
    rng = np.random.default_rng(random_state)
    permuted = [_wrong(truth, after[derangement(len(after), rng)]).mean() for _ in range(_PERMUTATIONS)]
    known = judging.known
    old, new, restored = judging.old[known], judging.new[known], mapped[known]
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
    first, second = np.sort(first), np.sort(second)
    places = np.concatenate([first, second])
    shares = [np.searchsorted(scores, places, side="right") / len(scores) for scores in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _wrong(truth: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """Linearised ratio Σ wrong / Σ accepted by either, per query, (q,)."""
    wrong, either = np.count_nonzero(truth != decided, axis=1), np.count_nonzero(truth | decided, axis=1)
    if not either.any():
        return np.zeros(len(wrong))
    ratio = wrong.sum() / either.sum()
    return ratio + (wrong - ratio * either) / either.mean()


def _dense_above(n: int) -> np.ndarray:
    """At most 512 of n places, half of them ever denser towards the end, where thresholds are."""
    even = np.linspace(0, n - 1, _KNOTS)
    dense = n - np.geomspace(1, n, _KNOTS)
    return np.unique(np.concatenate([even, dense]).round().astype(int).clip(0, n - 1))


MOST_JUDGED = 500  # with 20,000 rows, each matrix of scores is 40 MB
MOST_SEARCHED = 20_000
SYSTEMS = {"bridge": "bridged queries", "re-embed": "the new model"}
AFTER = {"bridge": "After bridging", "re-embed": "After re-embedding"}


@dataclass(frozen=True, kw_only=True)
class ThresholdChange(Task[ThresholdOutcome]):
    """A threshold of the old model, and the map that restores it after bridging or re-embedding.

    Takes the pairs and queries of a migration, whose result names `adapter`.
    """

    kind: ClassVar[str] = "migration-threshold"
    version: ClassVar[int] = 2
    result: ClassVar[str] = "relcore.migrate.migration:ThresholdOutcome"
    title: ClassVar[str] = "Similarity threshold"

    migration: Migration
    adapter: str = setting(choices=ADAPTERS)
    threshold: float | None = setting(
        None,
        low=-1,
        high=1,
        help="A cosine of the old model. Default: the one that ten rows per query reach.",
    )
    system: str = setting("bridge", choices=SYSTEMS)

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, m = min(len(spaces[1]), MOST_SEARCHED), self.migration.n_pairs or len(spaces[1])
        low, high = sorted(space.dimension for space in spaces[:2])
        return 0.3 + 1e-7 * MOST_JUDGED * n + 1e-9 * min(m, MOST_SEARCHED) * low * high

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> ThresholdOutcome:
        """Raises a SpaceError as `Migration.run`; for re-embedding with rows without a new vector."""
        state = self.migration.random_state
        report(0, 2, "fitting the adapter")
        ground = self.migration.ground(spaces, checked=True)
        trial = ground.trial.with_fewer_queries(MOST_JUDGED).with_fewer_rows(MOST_SEARCHED, state)
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
        pairs = score_pairs((trial.old_queries, trial.old_corpus), new, trial.own, state)
        threshold = usual_threshold(pairs) if self.threshold is None else self.threshold
        return restore_threshold(pairs, threshold, state)


def printed(outcome: ThresholdOutcome) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "scores": ["old model", "without the map", "with the map", "of another query, with the map"],
            "KS distance": [0.0, outcome.ks_before, outcome.ks_after, np.nan],
            "wrong decisions": [0.0, outcome.error_before, outcome.error_after, outcome.chance],
            "rows per query": [outcome.accepted_old, outcome.accepted_before, outcome.accepted_after, np.nan],
        }
    )


@dataclass(frozen=True, kw_only=True)
class MigrationChart(Recipe):
    """The scores of the options of a migration, with their intervals, as a chart.

    Examples
    --------
    >>> from relcore import Migration, MigrationChart, SpaceSpec
    >>> specs = tuple(SpaceSpec("file", f"{name}.npz") for name in ("old", "new"))
    >>> MigrationChart(spaces=specs, migration=Migration()).figure
    'migration-options'
    """

    figure: ClassVar[str] = "migration-options"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    migration: Migration

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        result = result or self.migration.run(load_all(self.spaces, self.digests, self.figure))
        return chart_exportable(chart_of(result), self.to_json(), "relscope-migration", result.table)


@dataclass(frozen=True, kw_only=True)
class ThresholdScores(Recipe):
    figure: ClassVar[str] = "threshold-change"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    task: ThresholdChange

    def draw(self, result: ThresholdOutcome | None = None) -> Exportable:
        outcome = result or self.task.run(load_all(self.spaces, self.digests, self.figure))
        scores = {
            "old model": outcome.old,
            SYSTEMS[self.task.system]: outcome.new,
            "after the map": outcome.mapped,
        }
        shares = np.linspace(0, 1, len(outcome.old))
        lines = tuple(Line(name, values, shares) for name, values in scores.items())
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
            chart, self.to_json(), "relscope-migration-threshold", lambda: printed(outcome)
        )


def chart_of(result: MigrationResult) -> Lines:
    """Score against pairs: the chosen adapter's curves, other adapters as bridges, other options as
    levels.
    """
    lines, curve = [], pd.DataFrame(map(vars, result.curve), columns=[*CurvePoint.__dataclass_fields__])
    for (adapter, option), part in curve.groupby(["adapter", "option"], sort=False):
        own = adapter == result.adapter
        name = TITLES[option] if own else f"{TITLES[option]}, {ADAPTERS[adapter].title}"
        lines.append(Line(name, part.n_pairs, part.value, *((part.low, part.high) if own else ())))
    curved, measured = {line.name for line in lines}, [point.n_pairs for point in result.curve]
    reach = sorted({min(measured, default=result.n_pairs), max(measured, default=result.n_pairs)})
    for option in result.options:
        if (name := TITLES[option.option]) not in curved:
            ends = ([end] * len(reach) for end in (option.value, option.low, option.high))
            lines.append(Line(name, reach, *ends))
    return Lines(tuple(lines), "pairs", result.metric, log_x=True)
