"""Which rows of a sharded space are anchors: given ids, or as many as a number says, drawn as `select_anchors` draws them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.sharded.shard_pass import PassResult
from relcore.sharded.space import ShardedSpace
from relcore.spaces import SpaceError, quote


def drawn_anchors(survey: PassResult, n: int, n_anchors: int, random_state: int = 0) -> np.ndarray:
    """Row numbers (n_anchors,) at random among those that have a direction: the ones that `select_anchors` chooses by "random"
    of one space with all n rows.

    Raises
    ------
    SpaceError
        More anchors than rows.
    """
    dropped = survey.arrays["dropped"]
    alive = n - len(dropped)
    if not 1 <= n_anchors <= alive:
        raise SpaceError(f"anchors: expected 1 … {alive:,}, the rows that have a direction, got {n_anchors:,}")
    drawn = np.random.default_rng(random_state).choice(alive, n_anchors, replace=False)
    return rows_beside(drawn, dropped)


def rows_beside(places: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Row numbers of places among the rows that are left when those `without` (ascending) are taken out."""
    return places + np.searchsorted(without - np.arange(len(without)), places, side="right")


def places_beside(rows: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Where these rows are among the rows that are left when those `without` (ascending) are taken out: not among these."""
    return rows - np.searchsorted(without, rows)


def wanted_ids(space: ShardedSpace, ids: Sequence[str]) -> tuple[str, ...]:
    """The ids to look for while shards are read; none where ids are row numbers, which are known already."""
    return tuple(ids) if space.shards[0].ids else ()


def named_anchors(space: ShardedSpace, survey: PassResult, ids: Sequence[str]) -> np.ndarray:
    """Row numbers of these ids, in their order.

    Raises
    ------
    SpaceError
        None, an id twice, one that the space lacks or that several of its rows have, one without a direction.
    """
    ids = list(ids)
    if not ids or len(set(ids)) < len(ids):
        raise SpaceError(f"anchors: expected distinct ids, at least one, got {len(ids)}, {len(set(ids))} of them distinct")
    rows = np.full(len(ids), -1, dtype=np.int64)
    if space.shards[0].ids:
        places, found = survey.arrays["wanted"]
        rows[places] = found
        if several := [ids[place] for place in np.flatnonzero(np.bincount(places, minlength=1) > 1)]:
            raise SpaceError(
                f"anchors: expected ids of one row each, {len(several)} occur more than once in {space.name!r}, first "
                f"{quote(several[:3])}; make the ids distinct"
            )
    else:
        rows[:] = [int(one) if one.isdecimal() and str(int(one)) == one and int(one) < space.n else -1 for one in ids]
    unknown = [one for one, row in zip(ids, rows, strict=True) if row < 0]
    if unknown:
        raise SpaceError(f"anchors: expected ids of {space.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}")
    zero = [ids[place] for place in np.flatnonzero(np.isin(rows, survey.arrays["dropped"]))]
    if zero:
        raise SpaceError(f"anchors: {quote(zero[:3])} are zero vectors in a space and have no direction; remove them")
    return rows
