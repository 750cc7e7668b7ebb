"""Repair a collection of vectors by two models: map one part to the other."""

from __future__ import annotations

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, percent
from relcore.base.rows import lengths, mean_row, unit_rows
from relcore.check.collection import Checked
from relcore.engine.nearest import nearest
from relcore.linking.bootstrap import PAIRED
from relcore.linking.clusters import FEWEST_CLUSTERED_ROWS as LINKABLE
from relcore.linking.clusters import link_clusters, map_from_pairs
from relcore.spaces.space import LatentSpace

# Repair maps the rows of one model into the space of the other.


def map_to_space(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray | None = None, random_state: int = 0
) -> np.ndarray:
    """Map the rows X (m, d) into the space of the rows Y (n, e). Returns an array (m, e) float32. The map is
    fitted on 10 or more pairs (2, p) of row numbers and on the unpaired rows. Without pairs, the map is found
    by `link_clusters`.

    Raises
    ------
    SpaceError
        Fewer than 10 pairs. Without pairs: fewer than 1,000 rows in X or in Y; rows that cannot be linked.
    """
    means = mean_row(X), mean_row(Y)
    first = unit_rows(X, means[0])
    second = unit_rows(Y, means[1])
    again = "embed the smaller part again with the model of the larger part, or give pairs"
    if pairs is not None:
        if pairs.shape[1] < PAIRED:
            raise SpaceError(f"repair: expected {PAIRED} pairs or more, got {pairs.shape[1]}; {again}")
        mapping = map_from_pairs(first, second, pairs, random_state)
    else:
        if min(len(X), len(Y)) < LINKABLE:
            got = f"{min(len(X), len(Y)):,}"
            raise SpaceError(
                f"repair without pairs: expected {LINKABLE:,} rows of each model, got {got}; {again}"
            )
        *_, fit = link_clusters(first, second, random_state)
        if not fit.agrees:
            raise SpaceError(
                f"repair without pairs: expected fits on two halves that agree, got a cosine of"
                f" {fit.agreement:.2f} and {fit.same:.2f} of the rows in the same place; {again}"
            )
        mapping = fit.mapping
    size = float(lengths(Y, means[1]).mean(dtype=np.float64))
    return (unit_rows(first @ mapping) * size + means[1]).astype(np.float32)


def repair(
    space: LatentSpace, checked: Checked, again: LatentSpace | None = None, random_state: int = 0
) -> tuple[LatentSpace, str]:
    """Repair a collection with vectors of two models by mapping its smaller part into the space of the larger
    part. Returns the new space, and a sentence on the quality of the map.

    `again` has rows of the smaller part, embedded again by the model of the larger part. To measure the
    quality, a third of these is held out from the fit; their new vectors search all rows before and after the
    repair.

    Raises
    ------
    SpaceError
        A collection with a single part; ids of `again` that are not in the smaller part; errors of
        `map_to_space`.
    """
    X = np.array(space.vectors)
    small = checked.suspected_rows
    if checked.verdict not in ("two models", "suspicious"):
        raise SpaceError("repair: expected two parts, got one; without them there is nothing to map")
    rows = np.flatnonzero(small)
    rest = np.flatnonzero(~small)
    if again is None:
        X[rows] = map_to_space(X[rows], X[rest], None, random_state)
        text = f"Mapped {counted(len(rows), 'row')} without a pair. Embed some again to test the map."
    else:
        shared = [one for one in again.ids if one in space.index and small[space.index.get_loc(one)]]
        own = space.rows(shared)
        other = np.asarray(again.vectors[again.rows(shared)])
        places = np.searchsorted(rows, own)
        tested = np.arange(len(own)) % 3 == 0

        def fit(some: np.ndarray) -> np.ndarray:
            pairs = np.stack([places[some], len(rest) + np.arange(len(some))])
            return map_to_space(X[rows], np.r_[X[rest], other[some]], pairs, random_state)

        queries = unit_rows(other[tested])
        hits = []
        for side in (X[rows], fit(np.flatnonzero(~tested))):  # before and after the repair
            lists = nearest(queries, unit_rows(np.r_[side, X[rest]]), 10, unit=False).rows
            hits.append(percent(float((lists == places[tested][:, None]).any(axis=1).mean())))
        X[rows] = fit(np.arange(len(own)))
        X[own] = other
        text = (
            f"Mapped {counted(len(rows), 'row')} by {len(own):,} pairs. Of {np.count_nonzero(tested):,}"
            f" held-out pairs {hits[0]} had their row among the 10 nearest of {len(X):,} before, and"
            f" {hits[1]} after (chance {percent(10 / len(X))})."
        )
    columns = {name: getattr(space, name) for name in ("name", "labels", "payload", "counts")}
    return LatentSpace(X, space.ids, **columns), text
