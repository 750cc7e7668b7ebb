"""PartialReembedding: quality by the share of rows embedded again, as a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.migration.follow_up import Fitted, FollowUp
from relcore.migration.partial import (
    ORDERS,
    PartialCurve,
    comparable,
    held_out_residuals,
    order_rows,
    partial_curve,
    predict_residuals,
)
from relcore.migration.retrieval import ndcg
from relcore.names import ADAPTERS
from relcore.spaces import LatentSpace, SpaceError, match


@dataclass(frozen=True, eq=False)
class PartialOutcome:
    """Curves.

    Attributes
    ----------
    curves : tuple of PartialCurve
        One per order.
    skill : float
        How well residuals are predicted; see `partial.Predicted`.
    n_pairs, n_rows, n_queries : int
        Pairs that residuals are known of, rows that are searched, and queries.
    gain : float
        Less than this does not pay.
    k : int
        Depth of nDCG.
    """

    curves: tuple[PartialCurve, ...]
    skill: float
    n_pairs: int
    n_rows: int
    n_queries: int
    gain: float
    k: int

    def curve(self, order: str) -> PartialCurve:
        return next(curve for curve in self.curves if curve.order == order)

    def describe(self) -> str:
        """The stop sign of the best order, and whether it is better than a random one."""
        told = self.curve("residual").describe(self.gain)
        if self.curve("residual").quality.mean() <= self.curve("random").quality.mean():
            return told + " The order by residual is no better than a random one here."
        return told


@dataclass(frozen=True, kw_only=True)
class PartialReembedding(FollowUp[PartialOutcome]):
    """Rows in each order: by residual, by traffic where the old space has counts, and at random.

    Attributes
    ----------
    gain : float
        In nDCG: the stop sign stands where the rest does not clearly add as much.
    """

    kind: ClassVar[str] = "migration-partial"
    result: ClassVar[str] = "relcore.migration.partial_task:PartialOutcome"
    title: ClassVar[str] = "Partial re-embedding"

    gain: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.gain < 1:
            raise SpaceError(f"gain: expected a difference of nDCG between 0 and 1, got {self.gain!r:.40}")

    def measure(self, found: Fitted) -> PartialOutcome:
        state, depth = self.migration.random_state, self.migration.k
        known = held_out_residuals(ADAPTERS[self.adapter].load(), found.new, found.old, found.ids, state)
        rows = found.trial.old_corpus
        predicted = predict_residuals(np.vstack([found.old, rows]), np.append(known, np.full(len(rows), np.nan)))
        new, bridged = found.scores("re-embed"), found.scores("bridge")
        slope, offset = comparable(bridged, new)
        bridged = slope * bridged + offset

        def quality(scores: np.ndarray) -> np.ndarray:
            return ndcg(_best(scores, depth), found.trial.relevance, depth)

        curves = []
        for order in ORDERS:
            if order != "traffic" or found.rows.counts is not None:
                values = predicted.residuals[len(known) :], found.rows.counts
                first = order_rows(order, found.rows.ids, *values, random_state=state)
                curves.append(partial_curve(order, bridged, new, first, quality))
        return PartialOutcome(tuple(curves), predicted.skill, len(found.ids), len(rows), len(new), self.gain, depth)


def _best(scores: np.ndarray, k: int) -> np.ndarray:
    """The k rows with the largest scores, the best first, (q, n) → (q, k)."""
    k = min(k, scores.shape[1])
    found = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def full_order(old: LatentSpace, new: LatentSpace, adapter: str, order: str = "residual", random_state: int = 0) -> np.ndarray:
    """Ids of all rows of the old space that have no new vector yet, in the order in which to embed them."""
    pair = match(old, new)
    known = np.full(len(old), np.nan)
    rows = old.rows(pair.ids)
    known[rows] = held_out_residuals(ADAPTERS[adapter].load(), pair.target.vectors, pair.source.vectors, pair.ids)
    others = np.setdiff1d(np.arange(len(old)), rows)
    predicted = predict_residuals(old.vectors, known).residuals[others]
    traffic = None if old.counts is None else old.counts[others]
    return old.ids[others[order_rows(order, old.ids[others], predicted, traffic, random_state)]]
