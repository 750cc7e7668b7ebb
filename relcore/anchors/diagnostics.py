"""Diagnostics of a set of anchors: rank, condition, coverage and near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.anchors.selection import select_anchors, shared_anchors
from relcore.similarity import mean_of, mean_row, project_directions, unit_rows
from relcore.spaces import LatentSpace, quote

_SAMPLED_ROWS = 1000
_SAME, _MANY = 1 - 1e-4, 0.05  # cosine of anchors that coincide; share of the anchors


@dataclass(frozen=True)
class AnchorDiagnostics:
    """Diagnostics of an anchor set in one space.

    Attributes
    ----------
    singular_values : array (min(k, d),)
        Of the centred, unit anchors, falling.
    rank : int
        Numerical rank; below min(k, d) some anchors are combinations of others.
    condition_number : float
        Largest over smallest singular value, 1 … ∞; a large value means that inverting a relative space amplifies noise.
    effective_rank : float
        exp of the entropy of the normalised squared singular values, 1 … min(k, d): the effective number of directions
        (Roy and Vetterli 2007, on the squared values).
    coverage : float
        Mean over all rows of the cosine to the nearest anchor, −1 … 1.
    coverage_random : float
        The same for equally many random anchors: the baseline.
    near_duplicates : tuple of (id, id, cosine)
        Anchor pairs with a cosine above the threshold, closest first.
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
    space: LatentSpace, anchor_ids: Sequence[str], *, duplicate_above: float = 0.9, random_state: int = 0
) -> AnchorDiagnostics:
    """Diagnostics of the anchors in this space, all after centring and scaling to length 1.

    Raises
    ------
    SpaceError
        Anchors that the space lacks, twice the same, or none.
    """
    ids = shared_anchors(anchor_ids, space)
    mean = mean_of(space)
    anchors = unit_rows(space.vectors[space.rows(ids)], mean)
    singular_values = np.linalg.svd(anchors.astype(np.float64), compute_uv=False)
    floor = singular_values[0] * max(anchors.shape) * np.finfo(np.float32).eps
    energy = singular_values**2 / np.sum(singular_values**2)
    energy = energy[energy > 0]
    random_ids = select_anchors(space, min(len(ids), np.count_nonzero(space.norms)), random_state=random_state)
    return AnchorDiagnostics(
        n_anchors=len(ids),
        singular_values=singular_values,
        rank=int(np.count_nonzero(singular_values > floor)),
        condition_number=float(singular_values[0] / singular_values[-1]) if singular_values[-1] > floor else float("inf"),
        effective_rank=float(np.exp(-np.sum(energy * np.log(energy)))),
        coverage=_coverage(space, anchors, mean),
        coverage_random=_coverage(space, unit_rows(space.vectors[space.rows(random_ids)], mean), mean),
        near_duplicates=_near_duplicates(ids, anchors, duplicate_above),
    )


def coinciding_anchors(space: LatentSpace, anchor_ids: Sequence[str]) -> str:
    """Says that 5 % of the anchors or more lie where another one does; "" where fewer do.

    Each is one more column of the relative space, so their direction counts as often as it has anchors. The mean is that of at
    most 1,000 rows, as this is computed again for each change of an anchor.
    """
    ids = shared_anchors(anchor_ids, space)
    sample = space.vectors[:: -(-len(space) // _SAMPLED_ROWS)]
    anchors = unit_rows(space.vectors[space.rows(ids)], mean_row(sample))
    again = np.flatnonzero((np.triu(anchors @ anchors.T, 1) > _SAME).any(axis=0))
    if len(again) < max(2, _MANY * len(ids)):
        return ""
    named = quote([ids[row] for row in again[:3]]) + (", …" if len(again) > 3 else "")
    return (
        f"{len(again):,} of {len(ids):,} anchors coincide with another anchor in {quote([space.name])} ({named}), so one "
        "direction counts several times in relative scores. Remove them, or read the whitened scores."
    )


def _coverage(space: LatentSpace, anchors: np.ndarray, mean: np.ndarray) -> float:
    return float(project_directions(space.vectors, anchors.T, mean).max(axis=1).mean(dtype=np.float64))


def _near_duplicates(ids: list[str], anchors: np.ndarray, above: float) -> tuple[tuple[str, str, float], ...]:
    cosines = np.triu(anchors @ anchors.T, 1)
    pairs = np.argwhere(cosines > above)
    found = [(ids[first], ids[second], float(cosines[first, second])) for first, second in pairs]
    return tuple(sorted(found, key=lambda pair: -pair[2]))
