"""Migration: keep, bridge, query both models or re-embed, as a task."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.names import ADAPTERS, FORMER_CHOICES, STRATEGIES
from relcore.base.numbers import band, counted, short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.catalog.examples import EXAMPLES, example_spaces
from relcore.catalog.task import Task
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.migrate.adapters import CardScore, card_of, export
from relcore.migrate.estimators import Adapter
from relcore.migrate.evaluate import (
    MOST_CURVE_ROWS,
    MOST_FITTED,
    MOST_QUERIES,
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
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace, MatrixLike, as_space
from relcore.spaces.split import TEST_FRACTION

TITLES = {"keep": "keep", "bridge": "bridge", "twice": "query both models", "re-embed": "re-embed"}


@dataclass(frozen=True)
class Verdict:
    """What to do: `option`, "" where nothing is judged; whether no other could be worth its cost; why.

    The sentence begins with the answer and a colon.
    """

    option: str
    is_clear: bool
    sentence: str


WORTH_A_CHANGE = 0.01  # nDCG; a dearer option that surely gains less is no reason for a change


def decide(scores: Mapping[str, QueryScores], bootstrap: Bootstrap) -> tuple[str, bool]:
    """Choose an option, a dearer one only where it is clearly better; and say whether that is clear: each
    other option differs at 95 %, or is dearer and gains less than `WORTH_A_CHANGE`.

    `scores` are of each query (q,) by measured option; those that find the same are not compared.
    """
    chosen = OPTIONS[0]
    for dearer in OPTIONS[1:]:
        if dearer in scores and bootstrap.difference(scores[dearer], scores[chosen]).low > 0:
            chosen = dearer
    found = scores[chosen].queries
    is_clear = True
    for name, one in scores.items():
        if not np.array_equal(one.queries, found):
            gain = bootstrap.difference(one, scores[chosen])
            dearer = OPTIONS.index(name) > OPTIONS.index(chosen)
            is_clear &= gain.is_clear or (dearer and gain.high < WORTH_A_CHANGE)
    return chosen, is_clear


def verdict_of(
    scores: Mapping[str, QueryScores], bootstrap: Bootstrap, *, k: int, on: str, relevance: str, weight: float
) -> Verdict:
    """The verdict of `decide` with its sentence; `on` names the data. Without judgements no option is
    chosen.
    """
    means = {name: short(float(one.queries.mean())) for name, one in scores.items()}
    if relevance == NEIGHBOURS:
        found = (
            f"the old model finds {means['keep']}, the bridge {means['bridge']}, both models {means['twice']}"
        )
        told = f"Of the {k} rows that the new model finds for a row, {found}; {on}."
        same = float(scores["keep"].queries.mean()) >= SAME_ROWS
        return Verdict("", False, f"{FINDS_THE_SAME if same else UNJUDGED} {told}")
    option, is_clear = decide(scores, bootstrap)
    close = f"No option is clearly better than {_TOLD[option]}, and at least one is not clearly worse"
    told = MOVES[option] if is_clear else close
    if option == "keep" and is_clear:
        told += f", nothing is better by {short(WORTH_A_CHANGE, 2)} or more"
    parts = [f"{told}: {_JUDGED_BY[relevance]}, nDCG@{k} is {means['keep']} with the old model"]
    for name, how in _WITH.items():
        if name in scores:
            gain = bootstrap.difference(scores[name], scores["keep"])
            change = f"{signed(gain.value)}, 95 %: {band(gain.low, gain.high)}"
            parts.append(f"{means[name]} {how.format(short(weight, 2).removesuffix('.00'))} ({change})")
    return Verdict(option, is_clear, f"{', '.join(parts[:-1])} and {parts[-1]}; {on}.")


MOVES = {
    "keep": "Keep the old model",
    "bridge": "Bridge: let new queries search the old vectors through the adapter",
    "twice": "Query both models: search the old vectors with both and add the scores",
    "re-embed": "Re-embed the corpus",
}
_TOLD = {
    "keep": "keeping the old model",
    "bridge": "bridging",
    "twice": "querying both models",
    "re-embed": "re-embedding",
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
    """The verdict of a migration, with all that was measured.

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
        """A table of options: score, interval, chance level, differences to two options, and the weight."""
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
    def rewrites_corpus(self) -> bool:
        """Whether the adapter needs all old vectors mapped; else it maps queries alone."""
        return next(one.rewrites_corpus for one in self.candidates if one.adapter == self.adapter)

    @property
    def rewriting_note(self) -> str:
        if self.rewrites_corpus:
            return f"{ADAPTERS[self.adapter].title}: the whole corpus is rewritten."
        return f"{ADAPTERS[self.adapter].title}: queries alone are mapped; the corpus is not rewritten."

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
            "rewrites_corpus": self.rewrites_corpus,
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
        caption += f" {self.rewriting_note}"
        tables = [Table("rows", self.table(), shown, caption=caption)]
        if len(self.candidates) > 1:
            rows = [["adapter, as a bridge", self.metric, "95 %", "corpus rewritten"]]
            for one in self.candidates:
                cells = [ADAPTERS[one.adapter].title, short(one.score), band(one.low, one.high)]
                rows.append([*cells, "yes" if one.rewrites_corpus else "no"])
            tables.append(Table(shown=rows))
        if self.curve:
            rows = [["pairs", "adapter", "option", self.metric, "95 %"]]
            for point in self.curve:
                cells = [f"{point.n_pairs:,}", ADAPTERS[point.adapter].title, TITLES[point.option]]
                rows.append([*cells, short(point.value), band(point.low, point.high)])
            tables.append(Table(shown=rows))
        return Report(verdict.sentence, tables, facts, self.cautions, figures)

    def worst_queries(self, option: str, to: str = "keep") -> pd.DataFrame:
        """A table of the queries, the greatest loss first: query, the two scores, and the change."""
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
    """The data that a migration is measured on: pairs to fit on, their `rows` (m,) in the old space, and the
    retrieval task.

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
    """Decide what to do about a new embedding model, measured on judged queries or labels.

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
    version: ClassVar[int] = 5
    result: ClassVar[str] = "relcore.migrate.migration:MigrationResult"
    title: ClassVar[str] = "Migration to a new model"

    adapter: str = setting(
        AUTO,
        choices=CHOSEN,
        help="What maps new queries into the old space; auto: the best bridge, cross-validated over queries,"
        " that leaves the corpus as it is, unless one that has it rewritten is clearly better.",
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
    compared: tuple[str, ...] = setting(("whitened", "in-place", "ridge"), choices=ADAPTERS)
    sizes: tuple[int, ...] = setting(SIZES, low=2)
    draws: int = setting(
        3,
        option="states",
        low=1,
        help="Number of random states, each with its own draw of pairs, per point of the curve.",
    )
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

    def __post_init__(self) -> None:
        # Recipes of version 0.2.0 name an adapter that is gone, for a further curve.
        if isinstance(self.compared, tuple):
            kept = tuple(name for name in self.compared if name not in FORMER_CHOICES["adapter"])
            object.__setattr__(self, "compared", kept)
        super().__post_init__()

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """The time on two idle cores: fits, whose work is linear in their pairs, and searches."""
        widths = [space.dimension for space in spaces[:2]]
        n, judged = len(spaces[1]), len(spaces) == 4
        m = min(self.n_pairs or (n if judged else round(n * (1 - TEST_FRACTION))), MOST_FITTED)
        curve = 1 + len(set(self.compared)), [size for size in self.sizes if size < m]
        fitted = m * (len(ADAPTERS) + PARTS + curve[0]) + self.draws * curve[0] * sum(curve[1])
        rows = len(spaces[0]) if judged else n - m
        searched = min(len(spaces[-1]) if judged else rows, MOST_QUERIES) * min(rows, MOST_CURVE_ROWS)
        searches = 60 + (curve[0] + 1) * self.draws * len(curve[1])
        return 1.0 + 4e-10 * fitted * sum(d**2 for d in widths) + 1e-10 * searches * searched * max(widths)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> MigrationResult:
        """Measure all options. Raises a SpaceError for pairs that do not pair, judgements without known
        queries, and missing labels.
        """
        report(0, 10, "checking the pairs")
        return self.answer(self.ground(spaces), report)

    def answer(self, ground: MigrationData, report: Progress = silent) -> MigrationResult:
        pairs, trial, state = ground.pairs, ground.trial, self.random_state
        report(1, 10, "choosing an adapter and a weight")
        fits = {name: pairs.fit(name) for name in (ADAPTERS if self.adapter == AUTO else (self.adapter,))}
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
        """Prepare what is fitted on and scored; raises as `run`. Pairs that were `checked` are not checked
        again.
        """
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
    >>> migrate(*spaces, spec=Migration(adapter="in-place", sizes=())).option("bridge").value > 0.5
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
    """A table of the mean change of groups with five queries or more, the greatest loss first; empty below
    two groups.

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
    """Assign rows (q, d) of length 1 to clusters by k-means, each named after its most central row: (q,)."""
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
