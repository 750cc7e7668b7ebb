"""Migration: keep, bridge, query both models or re-embed, as a task."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
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
    CurvePlan,
    CurvePoint,
    Interval,
    Trial,
    choose,
    curve_of,
    fused_weight,
    held_out_trial,
    judged_trial,
    richer,
)
from relcore.migrate.pairs import (
    PairSplit,
    check_pairs,
    length_cautions,
    need_pairs,
    parts_of,
    preprocessing_cautions,
)
from relcore.migrate.retrieval import JudgedQuery, K, ndcg, recall
from relcore.represent.similarity import unit_rows
from relcore.runs.finished import Finished
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.groups import lowest_groups
from relcore.spaces.space import LatentSpace, Match, match
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
    others = [one for one in scores.values() if not np.array_equal(one, scores[chosen])]
    return chosen, all(bootstrap.difference(scores[chosen], one).is_clear for one in others)


def verdict_of(
    scores: Mapping[str, np.ndarray], bootstrap: Bootstrap, *, k: int, on: str, truth: str, worth: float = 0.0
) -> Verdict:
    """`decide`, with its sentence; `on` says on what the scores rest, `truth` what was searched for."""
    option, is_clear = decide(scores, bootstrap, worth)
    means = {name: short(float(one.mean())) for name, one in scores.items()}
    parts = [f"{MOVES[option]}: {truth}, nDCG@{k} is {means['keep']} with the old model"]
    for name in ("bridge", "twice", "re-embed"):
        if name in scores:
            gain = bootstrap.difference(scores[name], scores["keep"])
            parts.append(
                f"{means[name]} {_WITH[name]} ({signed(gain.value)}, 95 %: {band(gain.low, gain.high)})"
            )
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
            row = {
                "option": TITLES[one.option],
                "ndcg": one.value,
                "low": one.low,
                "high": one.high,
                "recall": one.recall,
            }
            for name, gain in (("keep", one.to_keep), ("re-embed", one.to_reembed)):
                low, middle, high = (gain.low, gain.value, gain.high) if gain else (np.nan,) * 3
                row |= {f"to {name}": middle, f"to {name}, low": low, f"to {name}, high": high}
            rows.append(row | {"queries": len(self.queries), "rows": self.n_rows})
        return pd.DataFrame(rows)

    def curve_table(self) -> pd.DataFrame:
        """One row per point: pairs, adapter, option, ndcg, low, high, draws."""
        names = ("pairs", "adapter", "option", "ndcg", "low", "high", "draws")
        values = [
            (
                one.n_pairs,
                ADAPTERS[one.adapter].title,
                TITLES[one.option],
                one.value,
                one.low,
                one.high,
                one.draws,
            )
            for one in self.curve
        ]
        return pd.DataFrame(values, columns=list(names))

    def losers(self, option: str, to: str = "keep") -> pd.DataFrame:
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
    new, old : arrays (m, d_new), (m, d_old)
        Unit rows of the pairs to fit on.
    ids : array (m,)
    richer : "new", "old" or "both"
        See `truth.richer`.
    truth : see `MigrationResult`
    trial : Trial
    queries : q ids
    places : array (n,)
        Where the rows of the trial's corpus are in the old space.
    pairs : array (m,)
        Where the pairs are.
    """

    new: np.ndarray
    old: np.ndarray
    ids: np.ndarray
    richer: str
    truth: str
    trial: Trial
    queries: tuple[str, ...]
    places: np.ndarray
    pairs: np.ndarray
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
        report(1, 10, "choosing an adapter")
        sides = ground.new, ground.old, ground.ids
        given = self.adapter != AUTO
        candidates = () if given else choose(*sides[:2], corpus, ground.ids, random_state=self.random_state)
        name = self.adapter if given else candidates[0].adapter
        report(3, 10, "weighting the two searches")
        weight = fused_weight(name, *sides, ground.richer, self.random_state)
        report(4, 10, "searching")
        found = ground.trial.found(ADAPTERS[name].load()().fit(*sides[:2]), weight, self.fusion, self.k)
        plan = CurvePlan(
            (name, *self.compared), self.sizes, self.draws, self.k, self.fusion, self.random_state
        )
        told = lambda done, total, text: report(5 + 5 * done / total, 10, text)  # noqa: E731
        curve = curve_of(ground.trial, plan, *sides, ground.richer, told)
        return self._result(ground, found, name, weight, candidates, curve)

    def ground(self, spaces: Sequence[LatentSpace]) -> Ground:
        """What is fitted on and what is scored; raises as `run`."""
        old, new = spaces[:2]
        paired = match(old, new)
        need_pairs(len(paired), (old.name, new.name))
        check_pairs(paired.target.vectors, paired.source.vectors, self.random_state).need()
        parts = parts_of(paired, self.n_pairs, self.strategy, bool(self.judgements), self.random_state)
        by_new, by_old = unit_rows(paired.target.vectors), unit_rows(paired.source.vectors)
        which, _ = richer(by_old, by_new, self.random_state)
        cautions = tuple(_cautions(spaces, paired, parts))
        ids = paired.ids[parts.fitted]
        fitted, pairs = (by_new[parts.fitted], by_old[parts.fitted], ids), old.index.get_indexer(ids)
        if not self.judgements:
            trial = held_out_trial(paired, parts, self.relevance, which, self.k, self.random_state)
            held = paired.ids[trial.rows]
            truth = which if self.relevance == "neighbours" else self.relevance
            cautions += (UNJUDGED,) if truth == which else ()
            return Ground(
                *fitted,
                which,
                truth,
                trial,
                tuple(held[trial.own]),
                old.index.get_indexer(held),
                pairs,
                cautions,
            )
        if len(spaces) != 4:
            raise SpaceError(
                "judgements: expected the queries by the old and by the new model, too; add both"
            )
        trial, queries, told = judged_trial(spaces, self.judgements, self.random_state)
        return Ground(*fitted, which, "judgements", trial, queries, trial.rows, pairs, (*told, *cautions))

    def _result(
        self,
        ground: Ground,
        found: Mapping[str, np.ndarray],
        name: str,
        weight: float,
        candidates: tuple[Candidate, ...],
        curve: tuple[CurvePoint, ...],
    ) -> MigrationResult:
        trial = ground.trial
        scores = {option: ndcg(one, trial.relevance, self.k) for option, one in found.items()}
        bootstrap = Bootstrap(len(ground.queries))
        counts = (
            f"{counted(len(ground.queries), 'query', 'queries')}, {len(trial.rows):,} rows,"
            f" {len(ground.ids):,} pairs"
        )
        worth = WORTH if ground.truth == ground.richer else 0.0
        settings = {
            "k": self.k,
            "on": f"{counts}, {ADAPTERS[name].title}",
            "truth": _TRUTHS[ground.truth],
            "worth": worth,
        }
        return MigrationResult(
            verdict_of(scores, bootstrap, **settings),
            tuple(_option(option, scores, found, trial, bootstrap, self.k) for option in scores),
            name,
            weight,
            candidates,
            curve,
            ground.cautions,
            ground.truth,
            self.k,
            len(ground.ids),
            len(trial.rows),
            ground.queries,
            scores={option: one.astype(np.float32) for option, one in scores.items()},
            found={option: np.where(one >= 0, ground.places[one], -1) for option, one in found.items()},
            relevant_query=trial.relevance.query,
            relevant_row=ground.places[trial.relevance.row],
            pairs=ground.pairs,
        )


def _option(
    name: str,
    scores: dict[str, np.ndarray],
    found: dict[str, np.ndarray],
    trial: Trial,
    bootstrap: Bootstrap,
    k: int,
) -> OptionScore:
    mean = bootstrap.mean(scores[name])
    gains = [
        bootstrap.difference(scores[name], scores[other]) if other in scores and other != name else None
        for other in ("keep", "re-embed")
    ]
    reached = float(recall(found[name], trial.relevance, k).mean())
    return OptionScore(name, mean.value, mean.low, mean.high, reached, *gains)


def _cautions(spaces: Sequence[LatentSpace], paired: Match, parts: PairSplit) -> list[str]:
    cautions = preprocessing_cautions(paired.target.vectors, paired.source.vectors)
    if len(spaces) == 4:
        for name, corpus, queries in zip(("old", "new"), spaces[:2], spaces[2:], strict=True):
            cautions += length_cautions(corpus.vectors, queries.vectors, name)
    return cautions + left_out_cautions(parts.n_repeated, paired.n_zero)


def left_out_cautions(n_repeated: int, n_zero: int) -> list[str]:
    """How many pairs are not used: rows that repeat a fitted one, and rows that are zero in a space."""
    cautions = []
    if n_repeated:
        repeated = counted(n_repeated, "held-out row repeats", "held-out rows repeat")
        cautions.append(f"{repeated} a row that the adapter was fitted on, and are left out.")
    if n_zero:
        cautions.append(f"{counted(n_zero, 'pair')} with a zero vector left out.")
    return cautions


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


# Losers: which classes or clusters of queries lose by an option.

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
    found = lowest_groups(change, numbers)
    mean = float(np.mean(change))
    table = pd.DataFrame(
        {
            "group": kept,
            "queries": np.bincount(numbers[numbers >= 0], minlength=len(kept)),
            "change": found.mean,
            "low": mean - found.reach,
            "high": mean + found.reach,
            "p": found.p,
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
