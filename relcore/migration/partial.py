"""Partial re-embedding: which rows to embed again first, both parts searched as one, and where it stops paying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.evaluation import row_keys
from relcore.metrics.paired import Difference, mean_difference
from relcore.migration.adapter import Adapter
from relcore.numbers import short
from relcore.similarity import unit_rows
from relcore.spaces import SpaceError, need_one_of

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
        1 − squared error of each known residual, predicted from the others, ÷ its variance. 0 or less: residuals cannot
        be predicted, and the order is no better than a random one.
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
        open_ends = [share for share, left in zip(self.shares, self.remaining, strict=True) if left.low >= gain]
        later = self.shares if not open_ends else self.shares[self.shares > max(open_ends)]
        return float(later[0]) if len(later) else None

    def cannot_tell(self, gain: float) -> bool:
        """Whether the interval at the stop also includes twice the gain and more, so that more queries could move it."""
        share = self.stop(gain)
        return share is not None and self.remaining[int(np.flatnonzero(self.shares == share)[0])].high > 2 * gain

    def describe(self, gain: float) -> str:
        """The stop sign in one sentence."""
        share = self.stop(gain)
        if share is None or share == 1:
            return f"Every share pays: the last rows still add {short(gain)} or more."
        if share == 0:
            told = f"Embedding rows again does not clearly add {short(gain)}."
        else:
            told = f"From {100 * share:.0f} % on, more rows do not clearly add {short(gain)}."
        return told + (" The interval is wide: more queries could change this." if self.cannot_tell(gain) else "")


def held_out_residuals(
    make: Callable[[], Adapter], new: np.ndarray, old: np.ndarray, ids: Sequence[str], random_state: int = 0
) -> np.ndarray:
    """1 − cosine between a mapped new row and its old row, (m,), by adapters that were fitted without it, in five folds.

    Raises
    ------
    SpaceError
        Fewer than ten pairs.
    """
    if len(new) < 2 * FOLDS:
        raise SpaceError(f"residuals: expected {2 * FOLDS} pairs or more, got {len(new)}; embed more rows with the new model")
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
    """Slope and offset that bring bridged scores to the new model's scale: least squares over the same queries and rows.

    A regression, because a weak adapter's high scores are mostly noise and must not outrank the new model's own. Give it rows
    that no score has chosen: over the nearest rows only, either model's scores are high where the other's are low, and the
    slope comes out far too small (.12 in place of .91 in our test).
    """
    bridged, new = (np.asarray(scores, dtype=np.float64) for scores in (bridged, new))
    spread = bridged.var()
    slope = float(np.mean((bridged - bridged.mean()) * (new - new.mean())) / spread) if spread else _LEAST_SLOPE
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
    """Quality when the first rows of `order` are searched by the new model and the others through the adapter.

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
    values = np.stack([quality(np.where(place < round(share * len(order)), new, bridged)) for share in shares])
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
