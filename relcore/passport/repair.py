"""Repair of a mixed collection: map the rows of one model into the space of the other."""

from __future__ import annotations

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, percent
from relcore.base.rows import lengths, mean_row, unit_rows
from relcore.engine.nearest import nearest
from relcore.linking.bootstrap import PAIRED
from relcore.linking.clusters import FEWEST, link_clusters, map_from_pairs
from relcore.passport.check import Checked
from relcore.spaces.space import LatentSpace


def map_to_space(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray | None = None, random_state: int = 0
) -> np.ndarray:
    """The rows X (m, d) mapped into the space of the rows Y (n, e), an array (m, e) float32. The map is
    fitted on 10 or more pairs (2, p) of row numbers and on the unpaired rows. Without pairs, it is fitted on
    all rows.

    Raises
    ------
    SpaceError
        Fewer than 10 pairs; without pairs, fewer than 1,000 rows in X or in Y, and rows that cannot be
        linked.
    """
    means = mean_row(X), mean_row(Y)
    first, second = unit_rows(X, means[0]), unit_rows(Y, means[1])
    again = "embed these rows again with the model of the others, or give pairs"
    if pairs is not None:
        if pairs.shape[1] < PAIRED:
            raise SpaceError(f"repair: expected {PAIRED} pairs or more, got {pairs.shape[1]}; {again}")
        mapping = map_from_pairs(first, second, pairs, random_state)
    else:
        if min(len(X), len(Y)) < FEWEST:
            got = f"{min(len(X), len(Y)):,}"
            raise SpaceError(
                f"repair without pairs: expected {FEWEST:,} rows of each model, got {got}; {again}"
            )
        *_, fit = link_clusters(first, second, random_state)
        if not fit.agrees:
            raise SpaceError(
                f"repair without pairs: expected halves that agree, got a cosine of {fit.agreement:.2f} and"
                f" {fit.same:.2f} of the rows in place; {again}"
            )
        mapping = fit.mapping
    size = float(lengths(Y, means[1]).mean(dtype=np.float64))
    return (unit_rows(first @ mapping) * size + means[1]).astype(np.float32)


def repair(
    space: LatentSpace, checked: Checked, again: LatentSpace | None = None, random_state: int = 0
) -> tuple[LatentSpace, str]:
    """The space with its smaller part mapped into the space of the larger part, and a sentence on the quality
    of the map. `again` has rows of the smaller part, embedded again by the model of the larger part. A third
    of these rows is held out of `map_to_space`, and searched among all rows before and after the repair.

    Raises
    ------
    SpaceError
        A collection with a single part; ids of `again` that are not in the smaller part; errors of
        `map_to_space`.
    """
    X, small = np.array(space.vectors), checked.suspected_rows
    if checked.verdict not in ("two models", "suspicious"):
        raise SpaceError("repair: expected two parts, got one; without them there is nothing to map")
    rows, rest = np.flatnonzero(small), np.flatnonzero(~small)
    if again is None:
        X[rows] = map_to_space(X[rows], X[rest], None, random_state)
        told = f"Mapped {counted(len(rows), 'row')} without a pair. Embed some again to test it."
        return _with(space, X), told
    shared = [one for one in again.ids if one in space.index and small[space.index.get_loc(one)]]
    own, other = space.rows(shared), np.asarray(again.vectors[again.rows(shared)])
    places = np.searchsorted(rows, own)
    tested = np.arange(len(own)) % 3 == 0

    def fit(some: np.ndarray) -> np.ndarray:
        pairs = np.stack([places[some], len(rest) + np.arange(len(some))])
        return map_to_space(X[rows], np.r_[X[rest], other[some]], pairs, random_state)

    queries, hits = unit_rows(other[tested]), []
    for side in (X[rows], fit(np.flatnonzero(~tested))):  # before and after
        lists = nearest(queries, unit_rows(np.r_[side, X[rest]]), 10, unit=False).rows
        hits.append(float((lists == places[tested][:, None]).any(axis=1).mean()))
    X[rows] = fit(np.arange(len(own)))
    X[own] = other
    told = (
        f"Mapped {counted(len(rows), 'row')} by {len(own):,} pairs. Of {np.count_nonzero(tested):,} held-out"
        f" pairs {percent(hits[0])} had their row among the 10 nearest of {len(X):,} before, and"
        f" {percent(hits[1])} after (chance {percent(10 / len(X))})."
    )
    return _with(space, X), told


def _with(space: LatentSpace, vectors: np.ndarray) -> LatentSpace:
    columns = {name: getattr(space, name) for name in ("name", "labels", "payload", "counts")}
    return LatentSpace(vectors, space.ids, **columns)
