"""Which rows to embed next with the new model, so that an adapter learns most from them, and whether that pays."""

from __future__ import annotations

import numpy as np

from relcore.anchors.selection import select_anchors
from relcore.migration.result import MigrationResult
from relcore.numbers import short
from relcore.similarity import row_blocks, unit_rows
from relcore.spaces import LatentSpace, SpaceError, need_one_of

CHOICES = ("farthest-point", "k-means", "random")
MOST_CANDIDATES = 50_000  # of larger corpora, as many rows at random: farthest points of them are nearly as far
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
    >>> from relcore.migration.more_pairs import rows_to_embed
    >>> old = LatentSpace([[1, 0], [0.9, 0.1], [0, 1], [-1, 0.1]], ["a", "b", "c", "d"])
    >>> rows_to_embed(old, np.array([0]), 2).tolist()
    ['d', 'c']
    """
    need_one_of("choice", choice, CHOICES)
    free = np.setdiff1d(np.flatnonzero(old.norms > 0), paired)
    if not 1 <= n_more <= len(free):
        raise SpaceError(f"n_more: expected 1 … {len(free):,}, the rows without a new vector, got {n_more:,}")
    if len(free) > MOST_CANDIDATES:
        free = np.sort(np.random.default_rng(random_state).choice(free, max(MOST_CANDIDATES, n_more), replace=False))
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
    """What the last step of the curve gained, from about half of the pairs, and what the next one may gain, in one sentence."""
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
