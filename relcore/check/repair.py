"""Repair a collection of vectors by two models: map one part to the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, percent
from relcore.base.rows import lengths, mean_row, unit_rows
from relcore.check.collection import Checked
from relcore.check.origins import UNKNOWN
from relcore.engine.nearest import nearest
from relcore.linking.bootstrap import PAIRED
from relcore.linking.clusters import FEWEST_CLUSTERED_ROWS as LINKABLE
from relcore.linking.clusters import link_clusters, map_from_pairs
from relcore.passport.two_parts import FITTED, ShortAxes
from relcore.spaces.space import LatentSpace

# Repair maps the rows of one model into the space of the other.

_NEIGHBOURS = 10
_SAME = 0.9999  # cosine from which a row embedded again has the vector of the collection
_DEVIATIONS = 3  # of the number of hits by chance: up to here, a map counts as no better than chance
_FOREIGN = 1.3  # ratio of the parts' sizes on short axes from which they tell the two models apart


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


class Repaired(NamedTuple):
    """A repaired collection. `sentence` tells the quality of the map; `warning` says why not to use the
    collection, "" if nothing speaks against it."""

    space: LatentSpace
    sentence: str
    warning: str


def rows_to_embed(checked: Checked) -> np.ndarray:
    """Whether each row should be embedded again, an array (n,): the smaller part, and rows that may be of
    either model."""
    if checked.told is None:
        return checked.suspected_rows
    return checked.suspected_rows | (checked.told.model == UNKNOWN)


def rows_again(space: LatentSpace, rows: np.ndarray, again: LatentSpace) -> list[str]:
    """The ids of `again` that are among these rows (n,) of a collection."""
    return [one for one in again.ids if one in space.index and rows[space.index.get_loc(one)]]


def why_not_again(space: LatentSpace, checked: Checked, again: LatentSpace) -> str:
    """Why the vectors of `again` cannot be those of the larger part's model, in a sentence; "" if nothing
    speaks against it. They must differ from the vectors of the collection, and be as small as the larger
    part on the axes that its model hardly uses (see `ShortAxes`)."""
    small = checked.suspected_rows
    shared = rows_again(space, small, again)
    if not shared:
        return ""
    other = unit_rows(np.asarray(again.vectors[again.rows(shared)]))
    own = unit_rows(np.asarray(space.vectors[space.rows(shared)]))
    if np.median(np.vecdot(other, own)) > _SAME:
        return (
            f"{again.name} has the vectors that the collection has. Expected the same rows, embedded again"
            " with the model of the larger part."
        )
    parts = [np.asarray(space.vectors[np.flatnonzero(part)[:FITTED]]) for part in (~small, small)]
    axes = ShortAxes.of(parts[0])
    (larger, smaller) = (float(np.median(axes.energy(part))) for part in parts)
    if smaller > _FOREIGN * larger and np.median(axes.energy(other)) > np.sqrt(larger * smaller):
        return (
            f"{again.name} looks like vectors of another model than the larger part's. Embed the rows again"
            " with the model of the larger part."
        )
    return ""


def repair(
    space: LatentSpace, checked: Checked, again: LatentSpace | None = None, random_state: int = 0
) -> Repaired:
    """Repair a collection with vectors of two models by mapping its smaller part into the space of the larger
    part.

    `again` has rows of the smaller part, embedded again by the model of the larger part. To measure the
    quality, a third of these is held out from the fit; their new vectors search all rows before and after the
    repair. Rows of `again` that may be of either model replace those of the collection.

    Raises
    ------
    SpaceError
        A collection with a single part; too few ids of `again` in the smaller part; errors of
        `map_to_space`.
    """
    if checked.verdict not in ("two models", "suspicious"):
        raise SpaceError("repair: expected two parts, got one; without them there is nothing to map")
    X = np.array(space.vectors)
    small = checked.suspected_rows
    columns = {name: getattr(space, name) for name in ("name", "labels", "payload", "counts")}
    if again is None:
        rows = np.flatnonzero(small)
        X[rows] = map_to_space(X[rows], X[~small], None, random_state)
        text = f"Mapped {counted(len(rows), 'row')} without a pair. Embed some again to test the map."
        return Repaired(LatentSpace(X, space.ids, **columns), text, "")
    (mapped, text, warning) = _mapped_by_pairs(space, small, again, random_state)
    X[small] = mapped
    replaced = rows_again(space, rows_to_embed(checked), again)
    X[space.rows(replaced)] = again.vectors[again.rows(replaced)]
    warning = why_not_again(space, checked, again) or warning
    return Repaired(LatentSpace(X, space.ids, **columns), text, warning)


def _mapped_by_pairs(
    space: LatentSpace, small: np.ndarray, again: LatentSpace, random_state: int
) -> tuple[np.ndarray, str, str]:
    """The rows `small` in the space of the others, mapped by pairs with `again`; a sentence on the map, and a
    warning if it is useless."""
    X = np.asarray(space.vectors)
    rows = np.flatnonzero(small)
    rest = np.flatnonzero(~small)
    shared = rows_again(space, small, again)
    other = np.asarray(again.vectors[again.rows(shared)])
    places = np.searchsorted(rows, space.rows(shared))
    tested = np.arange(len(shared)) % 3 == 0

    def fit(some: np.ndarray) -> np.ndarray:
        pairs = np.stack([places[some], len(rest) + np.arange(len(some))])
        return map_to_space(X[rows], np.r_[X[rest], other[some]], pairs, random_state)

    queries = unit_rows(other[tested])
    hits = []
    for side in (X[rows], fit(np.flatnonzero(~tested))):  # before and after the repair
        lists = nearest(queries, unit_rows(np.r_[side, X[rest]]), _NEIGHBOURS, unit=False).rows
        hits.append(float((lists == places[tested][:, None]).any(axis=1).mean()))
    (before, after) = hits
    n_tested = np.count_nonzero(tested)
    chance = _NEIGHBOURS / len(X)
    text = (
        f"Mapped {counted(len(rows), 'row')} by {len(shared):,} pairs. Of {n_tested:,} held-out pairs"
        f" {percent(before)} had their row among the {_NEIGHBOURS} nearest of {len(X):,} before, and"
        f" {percent(after)} after (chance {percent(chance)})."
    )
    warning = ""
    if after <= chance + _DEVIATIONS * np.sqrt(chance / n_tested):
        warning = (
            "The map is no better than chance. Do not use it: the rows embedded again may have wrong ids, or"
            " be of another model."
        )
    elif after <= before:
        warning = "The repair finds no more rows than before. Do not use it."
    return fit(np.arange(len(shared))), text, warning
