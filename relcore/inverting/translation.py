"""Translation of every space into every other, by each method, with chance levels.

Tables 1 and 2 of Maiorca et al. 2024: every ordered pair of spaces over the same ids, anchors that are paired by id, scored on
the rows that are not anchors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from relcore.anchors.selection import shared_anchors
from relcore.evaluation import Split
from relcore.inverting.translation_result import METRICS, TranslationResult, TranslationSpec
from relcore.metrics.cka import mean_cosine
from relcore.metrics.neighbours import Neighbours
from relcore.metrics.search import nearest
from relcore.similarity import mean_row, unit_rows
from relcore.spaces import LatentSpace, SpaceError, distinct_names, quote, shared_ids
from relcore.stitching.heads import fit_head
from relcore.stitching.methods import Side, carrier
from relcore.store import Store
from relcore.task import Report, Task, silent

_PERMUTATIONS = 20


@dataclass(frozen=True)
class Translation(Task[TranslationResult]):
    """`translate_all` of the spaces."""

    kind: ClassVar[str] = "translate"
    result: ClassVar[str] = "relcore.inverting.translation_result:TranslationResult"
    title: ClassVar[str] = "Translate every pair"

    anchors: tuple[str, ...]
    spec: TranslationSpec = TranslationSpec()

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """Within a factor of three."""
        n, rows, width = len(spaces), max(map(len, spaces)), max(space.dimension for space in spaces)
        queries = self.spec.n_queries or rows
        each = 4e-11 * rows * width * (width + queries) + 3e-9 * len(self.anchors) * width**2 + 0.02
        heads = 2e-6 * rows * width**0.5 * n if any(space.labels is not None for space in spaces) else 0
        return n * n * len(self.spec.methods) * each + heads

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> TranslationResult:
        return translate_all(spaces, self.anchors, self.spec, report)


def translate_all(
    spaces: Sequence[LatentSpace], anchors: Sequence[str], spec: TranslationSpec | None = None, report: Report = silent
) -> TranslationResult:
    """Translate every space into every other through the same anchors, and score the rows that are not anchors.

    Rows are compared after centring at the target's mean: their cosine, and their neighbours among the target's rows
    (convention "paper"); "raw cosine" is not centred, as in the paper's Table 1. A space's mean is that of all shared rows.

    Raises
    ------
    SpaceError
        Fewer than two spaces, no shared rows, anchors that a space lacks, too few other rows for k, labels that differ, or
        anchors that a method cannot use.
    """
    spec = spec or TranslationSpec()
    study = _Study(spaces, anchors, spec)
    n, n_test = len(spaces), len(study.test) if study.heads else 0
    metrics = [metric for metric in METRICS if metric != "accuracy" or n_test]
    scores = {method: {metric: np.full((n, n, 2), np.nan) for metric in metrics} for method in spec.methods}
    for done, (i, j) in enumerate(product(range(n), repeat=2)):
        report(done, n * n, f"{study.names[i]} to {study.names[j]}")
        for method in spec.methods:
            for metric, found in study.score(i, j, method).items():
                scores[method][metric][i, j] = found
    report(n * n, n * n, "")
    own = tuple(study.accuracy(j, space.vectors[study.test]) for j, space in enumerate(study.spaces)) if n_test else ()
    return TranslationResult(spec, tuple(study.names), len(study.rest), len(study.anchors), n_test, scores, own)


class _Study:
    """What all pairs share: rows, anchors, heads, and the neighbours of each space's own rows."""

    def __init__(self, spaces: Sequence[LatentSpace], anchors: Sequence[str], spec: TranslationSpec) -> None:
        self.spec, self.names = spec, distinct_names(spaces)
        self.spaces = _shared(spaces)
        anchors = shared_anchors(anchors, *self.spaces)
        self.anchors = self.spaces[0].rows(anchors)
        split = Split.held_out(self.spaces[0].ids, self.anchors, spec.random_state)
        self.rest = split.test
        if len(self.rest) <= spec.k:
            raise SpaceError(
                f"expected more than k = {spec.k} shared rows that are not anchors, got {len(self.rest)} of "
                f"{len(self.spaces[0])}; choose fewer anchors"
            )
        self.sides = [_side(space.vectors, self.anchors) for space in self.spaces]
        self.asked = np.searchsorted(self.rest, split.queries(spec.n_queries))
        self.true = [
            unit_rows(space.vectors[self.rest], side.mean) for space, side in zip(self.spaces, self.sides, strict=True)
        ]
        self.near = [nearest(rows[self.asked], rows, spec.k) for rows in self.true]
        self.test = self.rest[:0]
        self.heads = self._fit_heads()

    def score(self, i: int, j: int, method: str) -> dict[str, tuple[float, float]]:
        carry = carrier(method, self.sides[i], self.sides[j], self.spec.settings, self.spec.random_state)
        if carry is None:
            return {}
        found = carry(self.spaces[i].vectors[self.rest])
        units = unit_rows(found, self.sides[j].mean)
        pair = (units, self.true[j], self.asked, self.near[j], nearest(units[self.asked], self.true[j], self.spec.k))
        neighbours = Neighbours(*pair, "paper", "cpu")
        scores = {
            "cosine": mean_cosine(units, self.true[j], of_unit_length=True),
            "raw cosine": mean_cosine(found, self.spaces[j].vectors[self.rest]),
            "jaccard": neighbours.jaccard(_PERMUTATIONS, self.spec.random_state),
            "mrr": neighbours.mrr(_PERMUTATIONS, self.spec.random_state),
        }
        found_scores = {metric: (float(score), score.null.mean) for metric, score in scores.items()}
        if self.heads:
            found_scores["accuracy"] = self.accuracy(j, carry(self.spaces[i].vectors[self.test])), self.majority
        return found_scores

    def accuracy(self, j: int, rows: np.ndarray) -> float:
        """Of the head of space j on test rows."""
        return float(np.mean(self.heads[j].probabilities(rows).argmax(axis=1) == self.targets[self.test]))

    def _fit_heads(self) -> list:
        labels = _labels(self.spaces)
        classes, self.targets = np.unique(labels, return_inverse=True) if labels is not None else ((), np.empty(0))
        if len(classes) < 2:
            return []
        ids = self.spaces[0].ids
        split = Split.draw(
            ids,
            anchors=self.anchors,
            test_fraction=self.spec.test_fraction,
            test_ids=sorted(set(self.spec.test_ids) & set(ids[self.rest])),
            labels=self.targets,
            random_state=self.spec.random_state,
        )
        self.test, train = split.test, split.known
        if len(np.setdiff1d(self.targets[self.test], self.targets[train])):
            return []  # a class without training rows
        self.majority = float(np.mean(self.targets[self.test] == np.bincount(self.targets).argmax()))
        fitted = (space.vectors[train] for space in self.spaces)
        return [fit_head(X, self.targets[train], len(classes), self.spec.head, self.spec.random_state) for X in fitted]


def _shared(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    """The rows that are in all spaces and zero in none, in the first one's order."""
    if len(spaces) < 2:
        raise SpaceError(f"expected two spaces or more to translate between, got {len(spaces)}")
    ids = shared_ids(spaces)
    if not len(ids):
        raise SpaceError(
            f"expected rows that all spaces share, {quote([space.name for space in spaces])} have none; encode the same items, "
            "or their translations, with each"
        )
    alive = np.all([space.norms[space.rows(ids)] > 0 for space in spaces], axis=0)
    return [space.take(space.rows(ids[alive])) for space in spaces]


def _side(vectors: np.ndarray, anchors: np.ndarray) -> Side:
    return Side(vectors, vectors[anchors], mean_row(vectors))


def _labels(spaces: Sequence[LatentSpace]) -> np.ndarray | None:
    """The labels that all labelled spaces agree on, one for every row; None without labels."""
    labelled = [space for space in spaces if space.labels is not None]
    if not labelled or any(label == "" for label in labelled[0].labels):
        return None
    for space in labelled[1:]:
        differ = np.count_nonzero(space.labels != labelled[0].labels)
        if differ:
            raise SpaceError(
                f"{labelled[0].name!r} and {space.name!r} have different labels for {differ} shared rows; choose the same "
                "label column for both"
            )
    return labelled[0].labels.astype(str)
