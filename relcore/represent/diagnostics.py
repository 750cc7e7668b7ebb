"""How well anchors cover a space: their condition number, duplicates and distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import quote
from relcore.base.rows import mean_row, unit_rows
from relcore.engine.engine import Engine
from relcore.represent.similarity import mean_of
from relcore.represent.strategies import select_anchors, shared_anchors
from relcore.spaces.space import LatentSpace

# Diagnostics of a set of anchors: rank, condition, coverage and near-duplicates.

_SAMPLED_ROWS = 1000
_DUPLICATE = 0.9  # minimum cosine of near-duplicates
# minimum cosine of coinciding anchors; their minimum share for a warning
_SAME = 1 - 1e-4
_MANY = 0.05


@dataclass(frozen=True)
class AnchorDiagnostics:
    """Diagnostics of an anchor set in one space.

    Attributes
    ----------
    singular_values : array (min(k, d),)
        Singular values of the centred unit anchors, descending.
    rank : int
        Numerical rank. If it is below min(k, d), some anchors are linear combinations of others.
    condition_number : float
        Largest singular value ÷ smallest singular value, 1 … ∞. If it is large, the inverse amplifies noise.
    effective_rank : float
        The exponential of the entropy of the normalised squared singular values, 1 … min(k, d) (Roy and
        Vetterli 2007).
    coverage, coverage_random : float
        Mean cosine between a row and its nearest anchor, −1 … 1: for these anchors, and for as many random
        ones.
    near_duplicates : tuple of (id, id, cosine)
        Pairs of anchors with a cosine above .9, highest cosine first.
    """

    n_anchors: int
    singular_values: np.ndarray
    rank: int
    condition_number: float
    effective_rank: float
    coverage: float
    coverage_random: float
    near_duplicates: tuple[tuple[str, str, float], ...]


def diagnose_anchors(
    space: LatentSpace, anchor_ids: Sequence[str], *, random_state: int = 0
) -> AnchorDiagnostics:
    """The diagnostics of anchors, which are first centred and scaled to length 1. Raises the same errors as
    `shared_anchors`."""
    ids = shared_anchors(anchor_ids, space)
    mean = mean_of(space)
    anchors = unit_rows(space.vectors[space.rows(ids)], mean)
    values = Engine().svd(anchors)[1]
    floor = values[0] * max(anchors.shape) * np.finfo(np.float32).eps
    energy = values**2 / np.sum(values**2)
    energy = energy[energy > 0]
    n_random = min(len(ids), int(np.count_nonzero(space.norms)))
    at_random = unit_rows(
        space.vectors[space.rows(select_anchors(space, n_random, random_state=random_state))], mean
    )

    condition = float("inf")
    if values[-1] > floor:
        condition = float(values[0] / values[-1])
    cosines = np.triu(anchors @ anchors.T, 1)
    pairs = np.argwhere(cosines > _DUPLICATE)
    near = [(ids[first], ids[second], float(cosines[first, second])) for first, second in pairs]
    return AnchorDiagnostics(
        n_anchors=len(ids),
        singular_values=values,
        rank=int(np.count_nonzero(values > floor)),
        condition_number=condition,
        effective_rank=float(np.exp(-np.sum(energy * np.log(energy)))),
        coverage=_coverage(space, anchors, mean),
        coverage_random=_coverage(space, at_random, mean),
        near_duplicates=tuple(sorted(near, key=lambda pair: -pair[2])),
    )


def _coverage(space: LatentSpace, anchors: np.ndarray, mean: np.ndarray) -> float:
    """The mean cosine of all rows to their nearest anchor."""
    cosines = Engine().map_rows(space.vectors, anchors.T, mean=mean, unit=True)
    return float(cosines.max(axis=1).mean(dtype=np.float64))


def coinciding_anchors(space: LatentSpace, anchor_ids: Sequence[str]) -> str:
    """A warning if at least 5 % of the anchors coincide with another anchor; otherwise ""."""
    ids = shared_anchors(anchor_ids, space)
    sample = space.vectors[:: -(-len(space) // _SAMPLED_ROWS)]
    anchors = unit_rows(space.vectors[space.rows(ids)], mean_row(sample))
    again = np.flatnonzero((np.triu(anchors @ anchors.T, 1) > _SAME).any(axis=0))
    if len(again) < max(2, _MANY * len(ids)):
        return ""
    named = quote([ids[row] for row in again[:3]])
    if len(again) > 3:
        named = f"{named}, …"
    return (
        f"{len(again):,} of {len(ids):,} anchors coincide with another anchor in {quote([space.name])}"
        f" ({named}), so one direction counts several times in relative scores. Remove them, or read the"
        " whitened scores."
    )
