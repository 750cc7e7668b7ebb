"""Scores of one representation of a pair with every held-out row as a query, as a task that resumes after
its last block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.names import METRICS, SEARCHES
from relcore.base.settings import setting
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import (
    ProjectionSpec,
    class_labels,
    held_out,
    metrics_of_a_pair,
    represent,
    representation_maps,
    score_pair,
)
from relcore.scores.neighbours import CONVENTION_HELP, CONVENTIONS, need_k
from relcore.scores.score import Score
from relcore.spaces.space import LatentSpace, Match, match
from relcore.tasks.task import Task

if TYPE_CHECKING:
    from relcore.scores.lists import Parts

TARGET_RECALL = 0.95
MANY_ROWS = 100_000  # above it an exact search takes minutes, and approximate ones are offered


@dataclass(frozen=True)
class FoundScores:
    scores: dict[str, Score]


@dataclass(frozen=True)
class ExactScores(Task[FoundScores]):
    """`score_pair` of two spaces with the same rows; `metrics` are those registered when it is made.

    The neighbours are searched in blocks of queries, each of which is saved: a run that is stopped or killed
    resumes after the last one. Neither space is held in its representation, unless
    `scores.lists.KEPT_BYTES` allow it, or a metric reads rows. `search` is one of `names.SEARCHES`; the
    settings of an approximate one are chosen for `target_recall`.
    """

    kind = "scores"
    result = "relcore.compare.exact:FoundScores"

    representation: str
    anchors: tuple[str, ...]
    projection: ProjectionSpec
    k: int = setting(low=1, usual=10, label="Neighbours k", help="Number of neighbours.")
    convention: str = setting(choices=CONVENTIONS, usual="paper", help=CONVENTION_HELP)
    metrics: tuple[str, ...]
    search: str = setting(
        "exact",
        option="neighbours",
        choices=SEARCHES,
        help="How the neighbours of all queries are searched; ivf and hnsw report their measured recall.",
    )
    target_recall: float = setting(
        TARGET_RECALL,
        option="recall",
        above=0,
        high=1,
        metavar="SHARE",
        help="Recall that the setting of an approximate search is chosen for.",
    )

    @classmethod
    def of(cls, *settings: object, **search: object) -> ExactScores:
        """By all metrics."""
        return cls(*settings, tuple(metrics_of_a_pair()), **search)

    @classmethod
    def on(
        cls,
        representation: str,
        anchors: Sequence[str],
        projection: ProjectionSpec,
        k: int,
        convention: str,
        **search: object,
    ) -> ExactScores:
        """By all metrics, without the settings that do not change the scores of this representation."""
        needed = () if representation == "absolute" else tuple(anchors)
        used = projection if representation in ("relative", "whitened") else ProjectionSpec()
        return cls.of(representation, needed, used, k, convention, **search)

    @property
    def title(self) -> str:
        how = "" if self.search == "exact" else f", {SEARCHES[self.search].title}"
        return f"Scores, {self.representation}{how}"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = len(spaces[0])
        width = (
            spaces[0].dimension if self.representation in ("absolute", "procrustes") else len(self.anchors)
        )
        return n * (n if self.search == "exact" else 20_000) * width * 2 / 5e10

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> FoundScores:
        from relcore.scores.lists import Parts
        from relcore.scores.passes import (
            score_forms,
        )  # every start of the app imports this module, and needs none of it

        pair = match(*spaces)
        labels = class_labels(pair)
        listed, summed, others = (
            [name for name in self.metrics if METRICS[name].load().reads == kind]
            for kind in ("lists", "sums", "rows")
        )
        parts = Parts(store, self.key(spaces))
        scores = self._listed(pair, labels, listed, report, parts) if listed else {}
        report(1, 1, "scores")
        if summed:
            of = (pair, (self.representation,), self.anchors, self.projection)
            scores |= score_forms(*of, k=1, n_queries=1, metrics=summed)[self.representation]
        if others:
            made = represent(pair, self.representation, self.anchors, self.projection)
            split = held_out(pair, self.anchors, self.representation)
            settings = {"k": self.k, "convention": self.convention, "metrics": others, "labels": labels}
            scores |= score_pair(*made, split, **settings)
        parts.clear()
        return FoundScores({name: scores[name] for name in self.metrics if name in scores})

    def _listed(
        self, pair: Match, labels: np.ndarray | None, metrics: Sequence[str], report: Report, parts: Parts
    ) -> dict[str, Score]:
        from relcore.scores.lists import NeighbourLists, SearchedPair, UnitRows
        from relcore.scores.passes import searches_of

        split = held_out(pair, self.anchors, self.representation)
        n, labels = len(split.test), None if labels is None else labels[split.test]
        need_k(
            self.k, n, n - (self.convention == "mutual"), f" of {pair.source.name!r} and {pair.target.name!r}"
        )
        maps = representation_maps(pair, self.representation, self.anchors, self.projection)
        source, target = (
            UnitRows(space.vectors, made, split.test)
            for space, made in zip((pair.source, pair.target), maps, strict=True)
        )
        same_width = source.shape[1] == target.shape[1]
        if self.convention == "paper" and not same_width:
            return {}
        labelled, which = np.empty(0, dtype=np.int64), ""
        if labels is not None and same_width and "class agreement" in metrics:
            labelled = np.flatnonzero(labels != "")
            which = "all" if len(labelled) == n else "some" if len(labelled) else ""
        searches = searches_of(self.convention, self.k, same_width, which)
        rows = source, target
        lists, recall = NeighbourLists(
            rows, searches, labelled, self.search, self.target_recall, parts
        ).search(report)
        found = SearchedPair(source, target, split, self.k, self.convention, None, labels, lists)
        scores = {name: METRICS[name].load()().score(found) for name in metrics}
        return {
            name: Score(float(score), **vars(score) | {"recall": recall})
            for name, score in scores.items()
            if score is not None
        }
