"""Migration: keep, bridge, query both models or re-embed, as a task."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from relcore.base.names import ADAPTERS, STRATEGIES
from relcore.base.numbers import band, counted, short, signed
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.catalog.encoding import EXAMPLES, example_spaces
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.migrate.adapters import Adapter
from relcore.migrate.evaluate import (
    FUSIONS,
    OPTIONS,
    SIZES,
    Bootstrap,
    Candidate,
    CurvePoint,
    Interval,
    JudgedQuery,
    K,
    Pairs,
    Trial,
    check_pairs,
    choose,
    curve_of,
    fused_weight,
    held_out_trial,
    judged_trial,
    length_cautions,
    ndcg,
    parts_of,
    preprocessing_cautions,
    recall,
    richer,
)
from relcore.represent.similarity import unit_rows
from relcore.runs.entries import Finished
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.groups import lowest_groups
from relcore.spaces.space import LatentSpace, match
from relcore.tasks.task import Task

# Verdict: keep, bridge, query both models or re-embed, by intervals, and one sentence that says why.

TITLES = {"keep": "keep", "bridge": "bridge", "twice": "query both models", "re-embed": "re-embed"}
# what a dearer option must gain at least where one model's neighbours are the truth: that truth favours it
WORTH = 0.02


@dataclass(frozen=True)
class Verdict:
    """What to do.

    Attributes
    ----------
    option : "keep", "bridge", "twice" or "re-embed"
    is_clear : bool
        Whether the scores tell it from every other option at 95 %.
    sentence : str
    """

    option: str
    is_clear: bool
    sentence: str


def decide(scores: Mapping[str, np.ndarray], bootstrap: Bootstrap, worth: float = 0.0) -> tuple[str, bool]:
    """The option, from keep to the next dearer one only where it is clearly better, and whether it differs
    from all others that do not find the same for every query.

    Parameters
    ----------
    scores : option → array (q,)
        nDCG of each query; options that are not measured are left out.
    worth : float
        The 95 % interval of a dearer option's gain must lie above this.
    """
    chosen = OPTIONS[0]
    for dearer in OPTIONS[1:]:
        if dearer in scores and bootstrap.difference(scores[dearer], scores[chosen]).low > worth:
            chosen = dearer
    others = [values for values in scores.values() if not np.array_equal(values, scores[chosen])]
    return chosen, all(bootstrap.difference(scores[chosen], values).is_clear for values in others)


def verdict_of(
    scores: Mapping[str, np.ndarray], bootstrap: Bootstrap, *, k: int, on: str, truth: str, worth: float = 0.0
) -> Verdict:
    """`decide`, with its sentence; `on` says on what the scores rest, `truth` what was searched for."""
    option, is_clear = decide(scores, bootstrap, worth)
    means = {name: short(float(values.mean())) for name, values in scores.items()}
    parts = [f"{MOVES[option]}: {truth}, nDCG@{k} is {means['keep']} with the old model"]
    for name, how in _WITH.items():
        if name in scores:
            gain = bootstrap.difference(scores[name], scores["keep"])
            parts.append(f"{means[name]} {how} ({signed(gain.value)}, 95 %: {band(gain.low, gain.high)})")
    return Verdict(option, is_clear, f"{', '.join(parts[:-1])} and {parts[-1]}; {on}.")


MOVES = {
    "keep": "Keep the old model",
    "bridge": "Bridge: let new queries search the old vectors through the adapter",
    "twice": "Query both models: search the old vectors with both and add the scores",
    "re-embed": "Re-embed the corpus",
}
_WITH = {
    "bridge": "with a bridge",
    "twice": "when both models search",
    "re-embed": "with everything embedded again",
}


# MigrationResult: what a migration found, as pages, commands, studies and the store hold it.


@dataclass(frozen=True)
class OptionScore:
    """One option on all queries.

    Attributes
    ----------
    option : "keep", "bridge", "twice" or "re-embed"
    value, low, high : float
        Mean nDCG@k over the queries, with its 95 % bootstrap interval.
    recall : float
        Mean recall@k.
    to_keep, to_reembed : Interval or None
        The difference to these options on the same queries; None of the option itself, and where re-embedding
        is not measured.
    """

    option: str
    value: float
    low: float
    high: float
    recall: float
    to_keep: Interval | None = None
    to_reembed: Interval | None = None


@dataclass(frozen=True, eq=False)
class MigrationResult:
    """The answer of a migration.

    Attributes
    ----------
    verdict : Verdict
        What to do, and the sentence that says so.
    options : tuple of OptionScore
        keep, bridge, twice, and re-embed where it is measured.
    adapter : str
        The chosen one, a name of `names.ADAPTERS`.
    weight : float
        How much the bridged search counts where the old one counts 1, when both are added.
    candidates : tuple of Candidate
        The cross-validation on the pairs, the best first; empty where the adapter was given.
    curve : tuple of CurvePoint
    cautions : tuple of str
    truth : "judgements", "labels", "new", "both" or "old"
        What is relevant: judged rows, rows of the same label, or neighbours in the new model, in both models,
        in the old model.
    k, n_pairs, n_rows : int
        Depth of the lists; pairs that the adapter was fitted on; rows that were searched.
    queries : q ids
        At most `trial.MOST_QUERIES`.
    scores : option → array (q,)
        nDCG@k of each query.
    found : option → array (q, k)
        Row numbers of the old space that each option found, the best first, −1 for none.
    relevant_query, relevant_row : arrays (j,)
        Row numbers of the old space that are relevant, and the position of the query.
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
    truth: str
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
        """The chosen adapter, fitted on the vectors of `pairs` by both models."""
        return ADAPTERS[self.adapter].load()().fit(unit_rows(new), unit_rows(old))

    @property
    def metric(self) -> str:
        return f"nDCG@{self.k}"

    def option(self, name: str) -> OptionScore | None:
        """The scores of this option; None where it is not measured."""
        return next((one for one in self.options if one.option == name), None)

    def table(self) -> pd.DataFrame:
        """One row per option: option, ndcg, low, high, recall, and its differences to keeping and to
        re-embedding.
        """
        rows = []
        for one in self.options:
            row = {name: getattr(one, name) for name in ("option", "value", "low", "high", "recall")}
            row = {"option": TITLES[row.pop("option")], "ndcg": row.pop("value"), **row}
            for name, gain in (("keep", one.to_keep), ("re-embed", one.to_reembed)):
                low, middle, high = (gain.low, gain.value, gain.high) if gain else (np.nan,) * 3
                row |= {f"to {name}": middle, f"to {name}, low": low, f"to {name}, high": high}
            rows.append(row | {"queries": len(self.queries), "rows": self.n_rows})
        return pd.DataFrame(rows)

    def worst_queries(self, option: str, to: str = "keep") -> pd.DataFrame:
        """One row per query, the greatest loss of the option first: query, the two scores, and the change."""
        before, now = self.scores[to], self.scores[option]
        table = pd.DataFrame(
            {"query": self.queries, TITLES[to]: before, TITLES[option]: now, "change": now - before}
        )
        return table.sort_values("change", kind="stable").reset_index(drop=True)


AUTO = "auto"
CHOSEN = ChainMap(ADAPTERS, {AUTO: "Automatic, by cross-validation"})
RELEVANCE = {"neighbours": "Its neighbours", "labels": "Rows of its label"}
_TRUTHS = {
    "judgements": "by the judgements",
    "labels": "with rows of the same label as relevant",
    "new": "with the new model's neighbours as relevant (it contains what the old one knows)",
    "both": "with the neighbours in both models together as relevant",
    "old": "with the old model's neighbours as relevant (it contains what the new one knows)",
}
UNJUDGED = (
    "No judgements: vectors do not tell which model serves users better, and which neighbours count as"
    " relevant decides this verdict. Judge some queries, or use labels, before a dear decision."
)


@dataclass(frozen=True, eq=False)
class Ground:
    """What a migration is measured on.

    Attributes
    ----------
    pairs : Pairs
        To fit on.
    rows : array (m,)
        Where they are in the old space.
    richer : "new", "old" or "both"
        See `evaluate.richer`.
    truth : see `MigrationResult`
    trial : Trial
    queries : q ids
    places : array (n,)
        Where the rows of the trial's corpus are in the old space.
    """

    pairs: Pairs
    rows: np.ndarray
    richer: str
    truth: str
    trial: Trial
    queries: tuple[str, ...]
    places: np.ndarray
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class Migration(Task[MigrationResult]):
    """What to do about a new embedding model, measured on pairs and, where there are any, on judged queries.

    The spaces are the old vectors of the corpus, the new vectors of some of its rows by the same ids, and,
    where there are judgements, the queries by the old and by the new model. Held-out pairs are the queries
    where nothing is judged. `compared` are adapters that the curve shows beside the chosen one, `sizes` its
    numbers of pairs.
    """

    kind: ClassVar[str] = "migration"
    result: ClassVar[str] = "relcore.migrate.migration:MigrationResult"
    title: ClassVar[str] = "Migration to a new model"

    adapter: str = setting(
        AUTO,
        choices=CHOSEN,
        help="What maps new queries into the old space; auto: by cross-validation on the pairs alone.",
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
    k: int = setting(K, label="Results per query, k", low=1, help="Depth of nDCG and recall.")
    fusion: str = setting("z", choices=FUSIONS, help="How the scores of two searches are added.")
    judgements: tuple[JudgedQuery, ...] = ()
    relevance: Literal["neighbours", "labels"] = setting(
        "neighbours",
        label="Relevant are",
        choices=RELEVANCE,
        help="What a held-out row should find: its neighbours, or the rows of its label.",
    )
    random_state: int = setting(0, low=0, help="Random state of the pairs, the folds and the held-out rows.")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores: some forty fits for the choice, and three for each point of the curve."""
        low, high = sorted(space.dimension for space in spaces[:2])
        m = min(len(spaces[1]), 2_000)
        fits = 50 + 2 * self.draws * len(self.sizes)
        return (
            1.0
            + fits * 2e-10 * m * low * high
            + 4e-9 * len(spaces[0]) * high * min(len(spaces[-1]), 2_000) / 1_000
        )

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> MigrationResult:
        """
        Raises
        ------
        SpaceError
            Fewer than 25 pairs, pairs that do not pair, judgements without queries or of unknown ids, labels
            that are missing.
        """
        report(0, 10, "checking the pairs")
        return self.answer(self.ground(spaces), spaces[0].vectors, report)

    def answer(self, ground: Ground, corpus: np.ndarray, report: Report = silent) -> MigrationResult:
        """The result on this ground; adapters are chosen by the ranks of partners among the old rows
        `corpus` (n, d_old).
        """
        pairs, trial, state = ground.pairs, ground.trial, self.random_state
        report(1, 10, "choosing an adapter")
        candidates = choose(pairs, corpus, random_state=state) if self.adapter == AUTO else ()
        name = candidates[0].adapter if candidates else self.adapter
        report(3, 10, "weighting the two searches")
        weight = fused_weight(name, pairs, ground.richer, state)
        report(4, 10, "searching")
        searched = trial.search(pairs.fit(name), weight, self.fusion, self.k)
        settings = {"sizes": self.sizes, "draws": self.draws, "k": self.k, "fusion": self.fusion}
        curve = curve_of(
            trial,
            pairs,
            ground.richer,
            (name, *self.compared),
            **settings,
            random_state=state,
            report=lambda done, total, text: report(5 + 5 * done / total, 10, text),
        )
        scores = {option: ndcg(lists, trial.relevance, self.k) for option, lists in searched.items()}
        n, bootstrap = len(ground.queries), Bootstrap(len(ground.queries))
        counts = f"{counted(n, 'query', 'queries')}, {len(trial.rows):,} rows, {len(pairs.ids):,} pairs"
        verdict = verdict_of(
            scores,
            bootstrap,
            k=self.k,
            on=f"{counts}, {ADAPTERS[name].title}",
            truth=_TRUTHS[ground.truth],
            worth=WORTH if ground.truth == ground.richer else 0.0,
        )
        options = []
        for option, values in scores.items():
            gains = [
                bootstrap.difference(values, scores[other]) if other in scores and other != option else None
                for other in ("keep", "re-embed")
            ]
            mean, share = bootstrap.mean(values), recall(searched[option], trial.relevance, self.k).mean()
            options.append(OptionScore(option, mean.value, mean.low, mean.high, float(share), *gains))
        return MigrationResult(
            verdict,
            tuple(options),
            adapter=name,
            weight=weight,
            candidates=candidates,
            curve=curve,
            cautions=ground.cautions,
            truth=ground.truth,
            k=self.k,
            n_pairs=len(pairs.ids),
            n_rows=len(trial.rows),
            queries=ground.queries,
            scores={option: values.astype(np.float32) for option, values in scores.items()},
            found={option: np.where(rows >= 0, ground.places[rows], -1) for option, rows in searched.items()},
            relevant_query=trial.relevance.query,
            relevant_row=ground.places[trial.relevance.row],
            pairs=ground.rows,
        )

    def ground(self, spaces: Sequence[LatentSpace], truth: str = "") -> Ground:
        """What is fitted on and what is scored; raises as `run`. A `truth` that is known, as its result names
        it, saves the checks of the pairs.
        """
        old, new = spaces[:2]
        paired, state = match(old, new), self.random_state
        new_rows, old_rows = paired.target.vectors, paired.source.vectors
        if not truth:
            check_pairs(new_rows, old_rows, state, (old.name, new.name)).need()
        parts = parts_of(paired, self.n_pairs, self.strategy, bool(self.judgements), state)
        by_new, by_old = unit_rows(new_rows), unit_rows(old_rows)
        which = truth or richer(by_old, by_new, state)[0]
        cautions = preprocessing_cautions(new_rows, old_rows)
        if len(spaces) == 4:
            cautions += length_cautions(old.vectors, spaces[2].vectors, "old")
            cautions += length_cautions(new.vectors, spaces[3].vectors, "new")
        if parts.n_repeated:
            repeated = counted(parts.n_repeated, "held-out row repeats", "held-out rows repeat")
            cautions.append(f"{repeated} a row that the adapter was fitted on, and are left out.")
        if paired.n_zero:
            cautions.append(f"{counted(paired.n_zero, 'pair')} with a zero vector left out.")
        pairs = Pairs(by_new, by_old, paired.ids).take(parts.fitted)
        rows = old.index.get_indexer(pairs.ids)
        if self.judgements:
            trial, queries, unknown = judged_trial(spaces, self.judgements, state)
            return Ground(pairs, rows, which, "judgements", trial, queries, trial.rows, (*unknown, *cautions))
        trial = held_out_trial(paired, parts, self.relevance, which, self.k, state)
        held = paired.ids[trial.rows]
        truth = self.relevance if self.relevance == "labels" else which
        cautions += [UNJUDGED] * (truth == which)
        queries, places = tuple(held[trial.own]), old.index.get_indexer(held)
        return Ground(pairs, rows, which, truth, trial, queries, places, tuple(cautions))


# The migration that comes with Relscope: 960 Wikipedia sentences, TF-IDF + SVD as the old model, MiniLM as
# the new one.

GROUP = "migration-example"
DATASET = EXAMPLES["sentences"].dataset
OLD, NEW = TfidfSvd(128), MiniLM()
TASK = Migration(n_pairs=300, relevance="labels")


def starting_models(finished: Finished | None) -> tuple[SpaceSpec, SpaceSpec] | None:
    """The old and the new space; None if they are missing."""
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
    """One row per group with five queries or more, the greatest loss first; empty where there are fewer than
    two.

    Columns: group, queries, change (mean over its queries), low and high (the 95 % band of random groups of
    that size), p (corrected for the number of groups).

    Parameters
    ----------
    change : array (q,)
        Score of an option less that of another, per query.
    groups : q strings, "" for none
    """
    groups = np.asarray(groups, dtype=object)
    names, sizes = np.unique(groups[groups != ""].astype(str), return_counts=True)
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
            "low": mean - lowest.reach,
            "high": mean + lowest.reach,
            "p": lowest.p,
        }
    )
    return table.sort_values("change", kind="stable", ignore_index=True)


def clusters_of(
    vectors: np.ndarray, ids: np.ndarray, n_clusters: int = CLUSTERS, random_state: int = 0
) -> np.ndarray:
    """A cluster for each row, (q,), named after its most central row; by k-means on rows of length 1.

    Parameters
    ----------
    vectors : array (q, d)
    ids : array (q,)
    """
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
