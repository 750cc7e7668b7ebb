"""Migration: keep, bridge, ask twice or re-embed, as a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from relcore.migration.choice import choose
from relcore.migration.curve import SIZES, Plan, curve_of
from relcore.migration.evaluate import Bootstrap, Trial
from relcore.migration.fusion import FUSIONS
from relcore.migration.pairing import check_pairs, length_cautions, preprocessing_cautions
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
        old, new = spaces[:2]
        paired = match(old, new)
        check_pairs(paired.target.vectors, paired.source.vectors, self.random_state).need()
        parts = parts_of(paired, self.n_pairs, self.strategy, bool(self.judgements), self.random_state)
        sides = unit_rows(paired.target.vectors), unit_rows(paired.source.vectors)
        rows, ids = tuple(side[parts.fitted] for side in sides), paired.ids[parts.fitted]
        report(1, 10, "choosing an adapter")
        candidates = choose(*rows, old.vectors, ids, random_state=self.random_state) if self.adapter == AUTO else ()
        name = candidates[0].adapter if candidates else self.adapter
        truth, _ = richer(sides[1], sides[0], self.random_state)
        report(3, 10, "weighting the two searches")
        weight = fused_weight(name, *rows, ids, truth, self.random_state)
        report(4, 10, "searching")
        trial, queries, cautions = self._trial(spaces, paired, parts, truth)
        found = trial.found(ADAPTERS[name].load()().fit(*rows), weight, self.fusion, self.k)
        plan = Plan((name, *self.compared), self.sizes, self.draws, self.k, self.fusion, self.random_state)
        curve = curve_of(trial, plan, *rows, ids, truth, lambda done, total, text: report(5 + 5 * done / total, 10, text))
        known = "judgements" if self.judgements else self.relevance
        shown = truth if known == "neighbours" else known
        scores = {option: ndcg(one, trial.relevance, self.k) for option, one in found.items()}
        bootstrap = Bootstrap(len(trial.old_queries))
        told = (
            f"{counted(len(queries), 'query', 'queries')}, {len(trial.rows):,} rows, {len(ids):,} pairs, {ADAPTERS[name].title}"
        )
        worth = WORTH if known == "neighbours" else 0.0
        where = paired.source.index if known != "judgements" else None
        return MigrationResult(
            verdict_of(scores, bootstrap, k=self.k, on=told, truth=_TRUTHS[shown], worth=worth),
            tuple(_option(name, scores, found, trial, bootstrap, self.k) for name in scores),
            name,
            weight,
            candidates,
            curve,
            (*cautions, *_cautions(spaces, paired, parts)),
            shown,
            self.k,
            len(ids),
            len(trial.rows),
            queries,
            scores={option: one.astype(np.float32) for option, one in scores.items()},
            found={option: _in_space(one, trial.rows, where, old) for option, one in found.items()},
            relevant_query=trial.relevance.query,
            relevant_row=_in_space(trial.relevance.row, trial.rows, where, old),
            pairs=old.index.get_indexer(ids),
        )

    def _trial(
        self, spaces: Sequence[LatentSpace], paired: Match, parts: Parts, truth: str
    ) -> tuple[Trial, tuple[str, ...], list[str]]:
        if not self.judgements:
            trial = held_out_trial(paired, parts, self.relevance, truth, self.k, self.random_state)
            return trial, tuple(paired.ids[trial.rows[trial.own]]), []
        if len(spaces) != 4:
            raise SpaceError("judgements: expected the queries by the old and by the new model, too; add both")
        return judged_trial(spaces, self.judgements, self.random_state)


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


def _in_space(found: np.ndarray, rows: np.ndarray, ids: pd.Index | None, old: LatentSpace) -> np.ndarray:
    """Row numbers of a trial's corpus as row numbers of the old space, −1 for none."""
    places = rows if ids is None else old.index.get_indexer(ids[rows])
    return np.where(found >= 0, places[found], -1).astype(np.int64)


def _cautions(spaces: Sequence[LatentSpace], paired: Match, parts: Parts) -> list[str]:
    cautions = preprocessing_cautions(paired.target.vectors, paired.source.vectors)
    if len(spaces) == 4:
        for name, corpus, queries in zip(("old", "new"), spaces[:2], spaces[2:], strict=True):
            cautions += length_cautions(corpus.vectors, queries.vectors, name)
    if parts.n_repeated:
        repeated = counted(parts.n_repeated, "held-out row repeats", "held-out rows repeat")
        cautions.append(f"{repeated} a row that the adapter was fitted on, and are left out.")
    if paired.n_zero:
        cautions.append(f"{counted(paired.n_zero, 'pair')} with a zero vector left out.")
    return cautions
