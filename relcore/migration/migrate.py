"""Migration: keep, bridge, ask twice or re-embed, as a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from relcore.migration.choice import Candidate, choose
from relcore.migration.curve import SIZES, CurvePoint, Plan, curve_of
from relcore.migration.evaluate import Bootstrap, Trial
from relcore.migration.fusion import FUSIONS
from relcore.migration.pairing import check_pairs, length_cautions, need_pairs, preprocessing_cautions
from relcore.migration.result import MigrationResult, OptionScore
from relcore.migration.retrieval import Judgement, K, ndcg, recall
from relcore.migration.split import Parts, parts_of
from relcore.migration.trial import held_out_trial, judged_trial
from relcore.migration.truth import richer
from relcore.migration.verdict import WORTH, verdict_of
from relcore.migration.weight import fused_weight
from relcore.names import ADAPTERS, STRATEGIES
from relcore.numbers import counted
from relcore.similarity import unit_rows
from relcore.spaces import LatentSpace, Match, SpaceError, match, need_one_of, need_whole
from relcore.store import Store
from relcore.task import Report, Task, silent

AUTO = "auto"
RELEVANCE = ("neighbours", "labels")
_TRUTHS = {
    "judgements": "by the judgements",
    "labels": "with rows of the same label as relevant",
    "new": "with the new model's neighbours as relevant (it contains what the old one knows)",
    "both": "with the neighbours in both models together as relevant",
    "old": "with the old model's neighbours as relevant (it contains what the new one knows)",
}
UNJUDGED = (
    "No judgements: vectors do not tell which model serves users better, and which neighbours count as relevant decides this "
    "verdict. Judge some queries, or use labels, before a dear decision."
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

    The spaces are the old vectors of the corpus, the new vectors of some of its rows by the same ids, and, where there are
    judgements, the queries by the old and by the new model.

    Attributes
    ----------
    adapter : "auto" or a name of `names.ADAPTERS`
        "auto" chooses by cross-validation on the pairs.
    n_pairs : int
        Pairs to learn from; 0 takes all that are not held out. Held-out pairs are the queries where nothing is judged.
    strategy : a name of `names.STRATEGIES`
        How the pairs are chosen among the rows with new vectors, in the old space.
    compared : names of `names.ADAPTERS`
        What the curve shows beside the chosen adapter.
    sizes : numbers of pairs on the curve; those that there are not are left out
    draws : int
        Draws of the pairs for each point of the curve.
    k : int
        Depth of nDCG and recall.
    fusion : a name of `fusion.FUSIONS`
    judgements : tuple of Judgement
        Needs the queries.
    relevance : "neighbours" or "labels"
        What is relevant to a held-out row where nothing is judged.
    """

    kind: ClassVar[str] = "migration"
    result: ClassVar[str] = "relcore.migration.result:MigrationResult"
    title: ClassVar[str] = "Migration to a new model"

    adapter: str = AUTO
    n_pairs: int = 0
    strategy: str = "random"
    compared: tuple[str, ...] = ("whitened", "procrustes", "ridge")
    sizes: tuple[int, ...] = SIZES
    draws: int = 3
    k: int = K
    fusion: str = "z"
    judgements: tuple[Judgement, ...] = ()
    relevance: Literal["neighbours", "labels"] = "neighbours"
    random_state: int = 0

    def __post_init__(self) -> None:
        need_one_of("adapter", self.adapter, (AUTO, *ADAPTERS))
        need_one_of("strategy", self.strategy, STRATEGIES)
        need_one_of("fusion", self.fusion, FUSIONS)
        need_one_of("relevance", self.relevance, RELEVANCE)
        for name in self.compared:
            need_one_of("compared", name, ADAPTERS)
        need_whole(self, n_pairs=0, draws=1, k=1, random_state=0)
        if any(type(size) is not int or size < 2 for size in self.sizes):
            raise SpaceError(f"sizes: expected whole numbers of pairs from 2, got {self.sizes!r:.80}")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores: some forty fits for the choice, and three for each point of the curve."""
        low, high = sorted(space.dimension for space in spaces[:2])
        m = min(len(spaces[1]), 2_000)
        fits = 50 + 2 * self.draws * len(self.sizes)
        return 1.0 + fits * 2e-10 * m * low * high + 4e-9 * len(spaces[0]) * high * min(len(spaces[-1]), 2_000) / 1_000

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> MigrationResult:
        """
        Raises
        ------
        SpaceError
            Fewer than 25 pairs, pairs that do not pair, judgements without queries or of unknown ids, labels that are missing.
        """
        report(0, 10, "checking the pairs")
        return self.answer(self.ground(spaces), spaces[0].vectors, report)

    def answer(self, ground: Ground, corpus: np.ndarray, report: Report = silent) -> MigrationResult:
        """The result on this ground; adapters are chosen by the ranks of partners among the old rows `corpus` (n, d_old)."""
        report(1, 10, "choosing an adapter")
        sides = ground.new, ground.old, ground.ids
        given = self.adapter != AUTO
        candidates = () if given else choose(*sides[:2], corpus, ground.ids, random_state=self.random_state)
        name = self.adapter if given else candidates[0].adapter
        report(3, 10, "weighting the two searches")
        weight = fused_weight(name, *sides, ground.richer, self.random_state)
        report(4, 10, "searching")
        found = ground.trial.found(ADAPTERS[name].load()().fit(*sides[:2]), weight, self.fusion, self.k)
        plan = Plan((name, *self.compared), self.sizes, self.draws, self.k, self.fusion, self.random_state)
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
            return Ground(*fitted, which, truth, trial, tuple(held[trial.own]), old.index.get_indexer(held), pairs, cautions)
        if len(spaces) != 4:
            raise SpaceError("judgements: expected the queries by the old and by the new model, too; add both")
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
        counts = f"{counted(len(ground.queries), 'query', 'queries')}, {len(trial.rows):,} rows, {len(ground.ids):,} pairs"
        worth = WORTH if ground.truth == ground.richer else 0.0
        settings = {"k": self.k, "on": f"{counts}, {ADAPTERS[name].title}", "truth": _TRUTHS[ground.truth], "worth": worth}
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


def _cautions(spaces: Sequence[LatentSpace], paired: Match, parts: Parts) -> list[str]:
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
