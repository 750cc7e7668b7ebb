"""Partial re-embedding: which rows to embed again first, both parts searched as one, and where it stops
paying.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import ADAPTERS
from relcore.base.numbers import short
from relcore.migrate.adapters import Adapter
from relcore.migrate.migration import MigrationResult
from relcore.migrate.retrieval import ndcg
from relcore.migrate.thresholds import Fitted, FollowUp
from relcore.represent.anchors import select_anchors
from relcore.represent.similarity import row_blocks, unit_rows
from relcore.scores.score import Difference, mean_difference
from relcore.spaces.space import LatentSpace, match
from relcore.spaces.split import row_keys

ORDERS = {"residual": "largest residual first", "traffic": "most traffic first", "random": "random"}
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FOLDS = 5
_NEIGHBOURS = 10
_LEAST_SLOPE = 1e-3  # bridged scores that tell nothing still have an order


@dataclass(frozen=True, eq=False)
class Predicted:
    """Residuals of all rows.

    Attributes
    ----------
    residuals : array (n,)
        The known ones, and predictions elsewhere.
    skill : float
        1 − squared error of each known residual, predicted from the others, ÷ its variance. 0 or less:
        residuals cannot be predicted, and the order is no better than a random one.
    """

    residuals: np.ndarray
    skill: float


@dataclass(frozen=True, eq=False)
class PartialCurve:
    """Quality by the share of rows embedded again, in one order.

    Attributes
    ----------
    order : one of `ORDERS`
    shares : array (s,)
    quality, low, high : arrays (s,)
        Mean over queries with its 95 % interval.
    remaining : tuple of s Difference
        Quality of all rows embedded again less that at this share, paired by query.
    """

    order: str
    shares: np.ndarray
    quality: np.ndarray
    low: np.ndarray
    high: np.ndarray
    remaining: tuple[Difference, ...]

    def stop(self, gain: float) -> float | None:
        """The first share from which no share's remaining gain is clearly above `gain`; None if it always is.

        Few queries give wide intervals, and an early stop: `cannot_tell` knows.
        """
        open_ends = [
            share for share, left in zip(self.shares, self.remaining, strict=True) if left.low >= gain
        ]
        later = self.shares if not open_ends else self.shares[self.shares > max(open_ends)]
        return float(later[0]) if len(later) else None

    def cannot_tell(self, gain: float) -> bool:
        """Whether the interval at the stop also includes twice the gain and more, so that more queries
        could move it.
        """
        share = self.stop(gain)
        return (
            share is not None and self.remaining[int(np.flatnonzero(self.shares == share)[0])].high > 2 * gain
        )

    def describe(self, gain: float) -> str:
        """The stop sign in one sentence."""
        share = self.stop(gain)
        if share is None or share == 1:
            return f"Every share pays: the last rows still add {short(gain)} or more."
        if share == 0:
            told = f"Embedding rows again does not clearly add {short(gain)}."
        else:
            told = f"From {100 * share:.0f} % on, more rows do not clearly add {short(gain)}."
        return told + (
            " The interval is wide: more queries could change this." if self.cannot_tell(gain) else ""
        )


def held_out_residuals(
    make: Callable[[], Adapter], new: np.ndarray, old: np.ndarray, ids: Sequence[str], random_state: int = 0
) -> np.ndarray:
    """1 − cosine between a mapped new row and its old row, (m,), by adapters that were fitted without it, in
    five folds.

    Raises
    ------
    SpaceError
        Fewer than ten pairs.
    """
    if len(new) < 2 * FOLDS:
        raise SpaceError(
            f"residuals: expected {2 * FOLDS} pairs or more, got {len(new)}; embed more rows with the new"
            " model"
        )
    fold = np.argsort(np.argsort(row_keys(ids, "residuals", random_state))) % FOLDS
    found = np.empty(len(new))
    for number in range(FOLDS):
        inside, outside = fold == number, fold != number
        adapter = make().fit(new[outside], old[outside])
        found[inside] = 1 - np.einsum("ij,ij->i", adapter.transform(new[inside]), adapter.corpus(old[inside]))
    return found


def predict_residuals(old: np.ndarray, known: np.ndarray) -> Predicted:
    """Residuals of all rows: the mean over the ten nearest old vectors among those that are known.

    Parameters
    ----------
    old : array (n, d)
    known : array (n,)
        NaN where a residual is not known.

    Raises
    ------
    SpaceError
        Fewer than ten known.
    """
    rows = np.flatnonzero(np.isfinite(known))
    if len(rows) < _NEIGHBOURS:
        raise SpaceError(f"residuals: expected {_NEIGHBOURS} known ones or more, got {len(rows)}")
    unit = unit_rows(old)
    basis = unit[rows]
    k = min(_NEIGHBOURS, len(rows) - 1)
    within = basis @ basis.T
    np.fill_diagonal(within, -np.inf)
    again = known[rows][np.argpartition(-within, k - 1, axis=1)[:, :k]].mean(axis=1)
    spread = np.mean((known[rows] - known[rows].mean()) ** 2)
    skill = 1 - float(np.mean((known[rows] - again) ** 2) / spread) if spread else 0.0
    residuals = np.array(known, dtype=np.float64)
    unknown = np.flatnonzero(~np.isfinite(known))
    if len(unknown):
        nearest = np.argpartition(-(unit[unknown] @ basis.T), k - 1, axis=1)[:, :k]
        residuals[unknown] = known[rows][nearest].mean(axis=1)
    return Predicted(residuals, skill)


def order_rows(
    order: str,
    ids: Sequence[str],
    residuals: np.ndarray | None = None,
    traffic: np.ndarray | None = None,
    random_state: int = 0,
) -> np.ndarray:
    """Row numbers in the order in which to embed them again, (n,); ties are in random order.

    Raises
    ------
    SpaceError
        An unknown order, or one whose values are not given.
    """
    need_one_of("order", order, ORDERS)
    keys = row_keys(ids, "embed again", random_state)
    if order == "random":
        return np.argsort(keys, kind="stable")
    values = residuals if order == "residual" else traffic
    if values is None:
        raise SpaceError(f"order: {order!r} needs one {order} value per row, got none")
    return np.lexsort((keys, -np.asarray(values, dtype=np.float64)))


def comparable(bridged: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Slope and offset that bring bridged scores to the new model's scale: least squares over the same
    queries and rows.

    A regression, because a weak adapter's high scores are mostly noise and must not outrank the new model's
    own. Give it rows that no score has chosen: over the nearest rows only, either model's scores are high
    where the other's are low, and the slope comes out far too small (.12 in place of .91 in our test).
    """
    bridged, new = (np.asarray(scores, dtype=np.float64) for scores in (bridged, new))
    spread = bridged.var()
    slope = (
        float(np.mean((bridged - bridged.mean()) * (new - new.mean())) / spread) if spread else _LEAST_SLOPE
    )
    slope = max(slope, _LEAST_SLOPE)
    return slope, float(new.mean() - slope * bridged.mean())


def partial_curve(
    name: str,
    bridged: np.ndarray,
    new: np.ndarray,
    order: np.ndarray,
    quality: Callable[[np.ndarray], np.ndarray],
    shares: Sequence[float] = SHARES,
) -> PartialCurve:
    """Quality when the first rows of `order` are searched by the new model and the others through the
    adapter.

    Parameters
    ----------
    name : one of `ORDERS`
    bridged, new : arrays (q, n)
        Scores of each query and row on one scale, see `comparable`.
    order : array (n,)
    quality : (q, n) scores → (q,) values
    """
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    values = np.stack(
        [quality(np.where(place < round(share * len(order)), new, bridged)) for share in shares]
    )
    whole = quality(new)
    bounds = [mean_difference(np.zeros(len(one)), one) for one in values]
    return PartialCurve(
        order=name,
        shares=np.asarray(shares, dtype=np.float64),
        quality=values.mean(axis=1),
        low=np.array([one.low for one in bounds]),
        high=np.array([one.high for one in bounds]),
        remaining=tuple(mean_difference(one, whole) for one in values),
    )


# PartialReembedding: quality by the share of rows embedded again, as a task.


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
    result: ClassVar[str] = "relcore.migrate.partial:PartialOutcome"
    title: ClassVar[str] = "Partial re-embedding"

    gain: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.gain < 1:
            raise SpaceError(f"gain: expected a difference of nDCG between 0 and 1, got {self.gain!r:.40}")

    def measure(self, found: Fitted) -> PartialOutcome:
        state, depth = self.migration.random_state, self.migration.k
        known = held_out_residuals(ADAPTERS[self.adapter].load(), found.new, found.old, found.ids, state)
        rows = found.trial.old_corpus
        predicted = predict_residuals(
            np.vstack([found.old, rows]), np.append(known, np.full(len(rows), np.nan))
        )
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
        return PartialOutcome(
            tuple(curves), predicted.skill, len(found.ids), len(rows), len(new), self.gain, depth
        )


def _best(scores: np.ndarray, k: int) -> np.ndarray:
    """The k rows with the largest scores, the best first, (q, n) → (q, k)."""
    k = min(k, scores.shape[1])
    found = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def full_order(
    old: LatentSpace, new: LatentSpace, adapter: str, order: str = "residual", random_state: int = 0
) -> np.ndarray:
    """Ids of all rows of the old space that have no new vector yet, in the order in which to embed them."""
    pair = match(old, new)
    known = np.full(len(old), np.nan)
    rows = old.rows(pair.ids)
    known[rows] = held_out_residuals(
        ADAPTERS[adapter].load(), pair.target.vectors, pair.source.vectors, pair.ids
    )
    others = np.setdiff1d(np.arange(len(old)), rows)
    predicted = predict_residuals(old.vectors, known).residuals[others]
    traffic = None if old.counts is None else old.counts[others]
    return old.ids[others[order_rows(order, old.ids[others], predicted, traffic, random_state)]]


# Which rows to embed next with the new model, so that an adapter learns most from them, and whether that
# pays.

CHOICES = ("farthest-point", "k-means", "random")
MOST_CANDIDATES = (
    50_000  # of larger corpora, as many rows at random: farthest points of them are nearly as far
)
_WORTHWHILE = 0.01  # of nDCG, for twice as many pairs


def rows_to_embed(
    old: LatentSpace, paired: np.ndarray, n_more: int, choice: str = "farthest-point", random_state: int = 0
) -> np.ndarray:
    """Ids (n_more,) of rows of the old space that have no new vector yet, the most useful first.

    Parameters
    ----------
    paired : row numbers of the pairs that are there already
    choice : one of `CHOICES`
        Farthest-point: each next row is farthest, in angle, from the pairs and from those chosen before it.

    Raises
    ------
    SpaceError
        More rows than are left.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace
    >>> from relcore.migrate.partial import rows_to_embed
    >>> old = LatentSpace([[1, 0], [0.9, 0.1], [0, 1], [-1, 0.1]], ["a", "b", "c", "d"])
    >>> rows_to_embed(old, np.array([0]), 2).tolist()
    ['d', 'c']
    """
    need_one_of("choice", choice, CHOICES)
    free = np.setdiff1d(np.flatnonzero(old.norms > 0), paired)
    if not 1 <= n_more <= len(free):
        raise SpaceError(f"n_more: expected 1 … {len(free):,}, the rows without a new vector, got {n_more:,}")
    if len(free) > MOST_CANDIDATES:
        free = np.sort(
            np.random.default_rng(random_state).choice(free, max(MOST_CANDIDATES, n_more), replace=False)
        )
    if choice != "farthest-point" or not len(paired):
        return select_anchors(old.take(free), n_more, choice, random_state=random_state)
    return old.ids[free[_farthest(unit_rows(old.vectors[free]), unit_rows(old.vectors[paired]), n_more)]]


def _farthest(candidates: np.ndarray, taken: np.ndarray, n_more: int) -> np.ndarray:
    """Row numbers of the candidates, each farthest from the taken rows and from those before it."""
    nearest = np.empty(len(candidates), dtype=np.float32)
    for block in row_blocks(len(candidates)):
        nearest[block] = (candidates[block] @ taken.T).max(axis=1)
    chosen = np.empty(n_more, dtype=np.int64)
    for step in range(n_more):
        chosen[step] = np.argmin(nearest)
        np.maximum(nearest, candidates @ candidates[chosen[step]], out=nearest)
        nearest[chosen[step]] = np.inf
    return chosen


def outlook(result: MigrationResult) -> str:
    """What the last step of the curve gained, from about half of the pairs, and what the next one may
    gain, in one sentence.
    """
    points = sorted(
        (point for point in result.curve if (point.adapter, point.option) == (result.adapter, "bridge")),
        key=lambda point: point.n_pairs,
    )
    if len(points) < 2:
        return "Too few pairs for a curve: embed at least 50 rows with the new model."
    last = points[-1]
    before = min(points[:-1], key=lambda point: abs(point.n_pairs - last.n_pairs / 2))
    gain = last.value - before.value
    first = f"From {before.n_pairs:,} to {last.n_pairs:,} pairs, bridging gained {short(gain)}"
    if gain < _WORTHWHILE:
        return f"{first}: more pairs hardly help this adapter."
    best = result.option("re-embed")
    room = f", and re-embedding is {short(best.value - last.value)} above it" if best else ""
    return f"{first}{room}: as large a step again can be expected to add up to as much."
