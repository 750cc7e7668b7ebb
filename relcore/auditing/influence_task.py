"""AnchorInfluence: what each anchor does to the scores, and which to drop and to add, as a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.anchors.influence import Products, RidgeHead, cosine_without
from relcore.anchors.selection import select_anchors, shared_anchors
from relcore.comparison import LIVE_QUERIES, ProjectionSpec, score_differences
from relcore.evaluation import Split, row_keys
from relcore.metrics.neighbour_influence import NeighboursWithout, neighbours_without
from relcore.metrics.paired import Difference
from relcore.spaces import LatentSpace, Match, SpaceError, match, need_one_of, need_strings, need_whole
from relcore.store import Store
from relcore.task import Report, Task, silent

CANDIDATES = ("farthest-point", "k-means", "random")
_FEWEST_ROWS = 20
_MOST_ROWS = 4000  # of each half
_MOST_CLASSES = 50
_SEARCHED_ROWS, _QUERIES = 2000, 200  # of the rows that choose: one search per anchor


@dataclass(frozen=True, eq=False)
class InfluenceOutcome:
    """What k anchors do, and a suggestion; all changes are those that an anchor makes by being there.

    Attributes
    ----------
    anchors : tuple of k ids
    cka, cosine, jaccard, mrr : floats
        With all anchors, on the rows that choose; the last two for `n_queries` of them among `n_searched`.
    cka_by, cosine_by, jaccard_by, mrr_by : arrays (k,)
        The score with the anchor less the score without it.
    accuracy : float
        Of a ridge head of the source's relative rows on the target's; NaN without labels.
    classes : tuple of C strings
    accuracy_by, class_by : arrays (k,) and (k, C)
        The same difference of the accuracy, of all rows and of the rows of each class.
    drop, add : tuples of ids
        In the order of the exact gain in CKA on the rows that choose.
    after : "drop", "add" → metric → Difference
        What following the suggestion changes, on rows that did not choose it.
    n_choosing, n_judging, n_labelled : int
        Rows that choose, other rows that judge, and rows with a label among the latter, which the head is tested on.
    n_queries, n_searched : int
    """

    anchors: tuple[str, ...]
    cka: float
    cosine: float
    jaccard: float
    mrr: float
    cka_by: np.ndarray
    cosine_by: np.ndarray
    jaccard_by: np.ndarray
    mrr_by: np.ndarray
    accuracy: float
    classes: tuple[str, ...]
    accuracy_by: np.ndarray
    class_by: np.ndarray
    drop: tuple[str, ...]
    add: tuple[str, ...]
    n_choosing: int
    n_judging: int
    n_labelled: int
    n_queries: int
    n_searched: int
    after: Mapping[str, Mapping[str, Difference]] = field(default_factory=dict)

    def table(self) -> pd.DataFrame:
        """One row per anchor, the one that harms CKA most first.

        Columns: anchor, linear CKA, cosine, Jaccard, MRR and, with labels, accuracy and the accuracy of each class.
        """
        columns = {"anchor": list(self.anchors), "linear CKA": self.cka_by, "cosine": self.cosine_by}
        columns |= {"Jaccard": self.jaccard_by, "MRR": self.mrr_by}
        if self.classes:
            columns |= {"stitched accuracy": self.accuracy_by}
            columns |= {f"accuracy, {name}": self.class_by[:, number] for number, name in enumerate(self.classes)}
        return pd.DataFrame(columns).sort_values("linear CKA", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class AnchorInfluence(Task[InfluenceOutcome]):
    """Exact deletions on half of the held-out rows; suggestions are scored on the other half.

    See `anchors.influence` and `metrics.neighbour_influence`.

    Attributes
    ----------
    anchors : ids of both spaces
    projection : ProjectionSpec
    candidates : one of `CANDIDATES`
        How rows are chosen that may be added.
    n_candidates, n_suggested : int
    """

    kind: ClassVar[str] = "influence"
    version: ClassVar[int] = 2
    result: ClassVar[str] = "relcore.auditing.influence_task:InfluenceOutcome"
    title: ClassVar[str] = "Influence of the anchors"

    anchors: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    candidates: str = "farthest-point"
    n_candidates: int = 100
    n_suggested: int = 10
    k: int = 10
    convention: str = "paper"

    def __post_init__(self) -> None:
        need_strings("anchors", self.anchors)
        need_one_of("candidates", self.candidates, CANDIDATES)
        need_whole(self, n_candidates=1, n_suggested=1, k=1)

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores."""
        m, n = len(self.anchors) + self.n_candidates, min(len(spaces[0]), 2 * _MOST_ROWS)
        searched = 2e-8 * len(self.anchors) * min(n // 2, _SEARCHED_ROWS) * min(n // 2, _QUERIES)
        return 0.3 + 4e-10 * n * m * m + 1e-8 * n * m * 10 + 5e-9 * len(spaces[0]) * self.n_candidates + searched

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> InfluenceOutcome:
        """
        Raises
        ------
        SpaceError
            Anchors that a space lacks, fewer than 3, fewer than 20 rows beside anchors and candidates.
        """
        report(0, 4, "choosing candidates")
        pair = match(*spaces)
        anchors = shared_anchors(self.anchors, pair.source, pair.target)
        if len(anchors) < 3:
            raise SpaceError(f"influence: expected 3 anchors or more, got {len(anchors)}; choose more")
        rows, candidates = self._candidates(pair, pair.source.rows(anchors))
        columns = np.concatenate([rows, candidates])
        split = self._split(pair, columns)
        report(1, 4, "deleting each anchor")
        fitted = self.projection.projection()
        relative = [fitted.fit(space.vectors, anchors=columns).transform(space.vectors) for space in (pair.source, pair.target)]
        R, S = (Z[split.train] for Z in relative)
        is_anchor = np.arange(len(columns)) < len(rows)
        products = Products.of(R, S)
        cka = products.cka(is_anchor)
        cosine, without = cosine_without(R[:, is_anchor], S[:, is_anchor])
        drop, _ = products.greedy(is_anchor, is_anchor, min(self.n_suggested, len(rows) - 2))
        add, _ = products.greedy(is_anchor, ~is_anchor, self.n_suggested)
        report(2, 4, "searching neighbours without each anchor")
        neighbours, n_searched = self._neighbours(pair, split, [Z[:, is_anchor] for Z in relative])
        report(3, 4, "scoring the suggestions")
        after = {}
        for name, changed in (("drop", drop), ("add", add)):
            if changed:
                after[name] = self._judged(relative, split, is_anchor, changed)
        accuracy, classes, by, by_class, n_labelled = _head_influence(pair, [Z[:, is_anchor] for Z in relative], split)
        return InfluenceOutcome(
            anchors=tuple(anchors),
            cka=cka,
            cosine=cosine,
            jaccard=float(neighbours.jaccard[0].mean()),
            mrr=float(neighbours.mrr[0].mean()),
            cka_by=cka - products.cka_changed(is_anchor)[is_anchor],
            cosine_by=cosine - without,
            jaccard_by=neighbours.by("jaccard"),
            mrr_by=neighbours.by("mrr"),
            accuracy=accuracy,
            classes=classes,
            accuracy_by=by,
            class_by=by_class,
            drop=tuple(anchors[place] for place in drop),
            add=tuple(pair.ids[columns[place]] for place in add),
            n_choosing=len(split.train),
            n_judging=len(split.test),
            n_labelled=n_labelled,
            n_queries=neighbours.mrr.shape[1],
            n_searched=n_searched,
            after=after,
        )

    def _candidates(self, pair: Match, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The anchors' rows, and rows that may be added: at most a third of the others."""
        free = np.setdiff1d(np.arange(len(pair)), rows)
        others = pair.source.take(free)
        n = min(self.n_candidates, len(free) // 3)
        if n < 1:
            return rows, free[:0]
        return rows, free[others.rows(select_anchors(others, n, self.candidates))]

    def _split(self, pair: Match, columns: np.ndarray) -> Split:
        """Rows that are no column: `train` chooses, `test` judges."""
        free = np.setdiff1d(np.arange(len(pair)), columns)
        if len(free) < _FEWEST_ROWS:
            raise SpaceError(
                f"influence: expected {_FEWEST_ROWS} rows or more beside the anchors, got {len(free)}; use fewer anchors"
            )
        keys = row_keys(pair.ids[free], "influence")
        order = free[np.argsort(keys)]
        half = len(order) // 2
        choosing, judging = order[:half][:_MOST_ROWS], order[half:][:_MOST_ROWS]
        return Split(pair.ids, columns, np.sort(choosing), np.sort(judging))

    def _neighbours(self, pair: Match, split: Split, relative: Sequence[np.ndarray]) -> tuple[NeighboursWithout, int]:
        """Of some queries among some of the rows that choose, and the number of the latter."""
        rows = split.train[Split.held_out(pair.ids[split.train]).queries(_SEARCHED_ROWS)]
        queries = Split.held_out(pair.ids[rows]).queries(_QUERIES)
        k = max(1, min(self.k, len(rows) - 1))
        return neighbours_without(*(Z[rows] for Z in relative), queries, k, self.convention), len(rows)

    def _judged(
        self, relative: Sequence[np.ndarray], split: Split, columns: np.ndarray, changed: Sequence[int]
    ) -> dict[str, Difference]:
        other = columns.copy()
        other[list(changed)] = ~other[list(changed)]
        before, now = (tuple(Z[:, chosen] for Z in relative) for chosen in (columns, other))
        k = max(1, min(self.k, len(split.test) - 1))
        return score_differences(before, now, split, k=k, convention=self.convention, n_queries=LIVE_QUERIES)


def _head_influence(
    pair: Match, relative: Sequence[np.ndarray], split: Split
) -> tuple[float, tuple[str, ...], np.ndarray, np.ndarray, int]:
    """Accuracy of a head of the source's rows that choose on the target's rows that judge, its classes, and what each anchor
    adds to the accuracy and to that of each class, and the number of rows; NaN and no classes where there are no labels."""
    nothing = float("nan"), (), np.full(relative[0].shape[1], np.nan), np.empty((relative[0].shape[1], 0)), 0
    if pair.source.labels is None:
        return nothing
    labels = pair.source.labels.astype(str)
    train, test = (rows[labels[rows] != ""] for rows in (split.train, split.test))
    classes = np.intersect1d(labels[train], labels[test])
    if not 2 <= len(classes) <= _MOST_CLASSES:
        return nothing
    train, test = (rows[np.isin(labels[rows], classes)] for rows in (train, test))
    numbers, truth = (np.searchsorted(classes, labels[rows]) for rows in (train, test))
    head = RidgeHead.fit(relative[0][train], numbers, len(classes))
    right = np.argmax(head.scores(relative[1][test]), axis=1) == truth
    change = right[None].astype(np.float64) - (head.answers_without(relative[1][test]) == truth)
    by_class = np.stack([change[:, truth == number].mean(axis=1) for number in range(len(classes))], axis=1)
    return float(right.mean()), tuple(classes.tolist()), change.mean(axis=1), by_class, len(test)
