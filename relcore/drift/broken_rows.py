"""Rows that the new version of a model breaks: missing, zero, repeated or out of place. Constant dimensions.

They are counted, because a mean hides a single broken row, and because the share of changed neighbours and ρ
leave out missing and zero rows and treat equal rows as ties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.base.rows import lengths, mean_row, row_blocks, unit_rows
from relcore.drift.measures import BLOCK_ROWS, FEWEST_OF_CLASS, ROWS, TIE, Measure, mean_measure
from relcore.spaces.matching import Match, known_rows, match, row_hashes
from relcore.spaces.space import LatentSpace

_NAMED = 10  # maximum number of ids that are named
_STAYED = 0.3  # maximum of median residual ÷ size of the rows; above it, most rows changed
_FAR = 10.0  # minimum residual of a row out of place, as a multiple of the median residual
_AWAY = 0.2  # minimum residual as a share of the row's size; the cosine of old and new is .98 there
_LONGER = 1.5  # a row is also out of place if its length changed by this factor more than usual


@dataclass(frozen=True)
class Broken:
    """The rows that are broken in one way, such as zero rows. `n` rows are broken only in the new version;
    `ids` are the first of their ids. `n_before` rows were already broken in the old version; `before` are the
    first of their ids.
    """

    quantity: str
    n: int
    ids: tuple[str, ...]
    n_before: int
    before: tuple[str, ...]


def broken(
    old: LatentSpace,
    new: LatentSpace,
    pair: Match,
    jitter: float,
    groups: Mapping[str, np.ndarray],
    shared: bool,
) -> tuple[tuple[Measure, ...], tuple[Broken, ...]]:
    """Find broken rows of four kinds: missing, zero, repeated and out of place ("moved"). Returns the
    share of each kind as a measure, and the rows. If `shared`, both versions have the same rows, so none
    is missing. Shares are over all rows, then within each group of `FEWEST_OF_CLASS` rows or more; a last
    measure is the share of constant dimensions. The noise of a share is the share of rows that were
    already broken in the old version. `groups` maps names to row numbers of the old version.
    """
    shares = _rows_by_kind(old, new, pair, jitter, shared)
    measures = []
    for group, members in {"": np.arange(len(old)), **groups}.items():
        for quantity, (now, before, among) in shares.items():
            rows = members[among[members]]
            if len(rows) >= FEWEST_OF_CLASS:
                share = float(now[rows].mean())
                share_before = float((now & before)[rows].mean())
                measures.append(Measure(ROWS, quantity, group, len(rows), share, share_before, 0.0))
    kinds = []
    for quantity, (now, before, _) in shares.items():
        fresh = np.flatnonzero(now & ~before)
        known = np.flatnonzero(before)
        fresh_ids = tuple(map(str, old.ids[fresh[:_NAMED]]))
        known_ids = tuple(map(str, old.ids[known[:_NAMED]]))
        kinds.append(Broken(quantity, len(fresh), fresh_ids, len(known), known_ids))
    now, before = map(_constant, (pair.target.vectors, pair.source.vectors))
    if len(before) == len(now):
        beside = before
    else:
        beside = np.full(len(now), before.mean())
    return (*measures, mean_measure(ROWS, "constant", "", now, beside)), tuple(kinds)


def broken_table(old: LatentSpace, new: LatentSpace, jitter: float, shared: bool = False) -> pd.DataFrame:
    """A table of all rows that are broken only in the new version: the `id` of each, and how it is
    `broken`, as `QUANTITIES` names it. See `broken`."""
    first, second = known_rows((old, new))
    kinds = _rows_by_kind(first, second, match(first, second), jitter, shared)
    tables = [
        pd.DataFrame({"id": first.ids[now & ~before], "broken": quantity})
        for quantity, (now, before, _) in kinds.items()
    ]
    return pd.concat(tables, ignore_index=True)


def _rows_by_kind(
    old: LatentSpace, new: LatentSpace, pair: Match, jitter: float, shared: bool
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each kind of broken rows, three masks (n,) of the old rows: those that are broken in the new
    version, those that were in the old one, and those for which this is known."""
    at = new.index.get_indexer(old.index)
    here = at >= 0
    empty = old.norms == 0
    zero = here & (new.norms[at] == 0)
    never = np.zeros(len(old), dtype=bool)
    alive = here & ~zero & ~empty
    moved = never.copy()
    repeated = np.zeros((2, len(old)), dtype=bool)
    sides = pair.target.vectors, pair.source.vectors
    moved[alive], typical = out_of_place(*sides[::-1], jitter)
    repeated[:, alive] = [_repeated_rows(*order, max(jitter, typical)) for order in (sides, sides[::-1])]
    shares = {
        "missing": (~here, never, ~never),
        "zero": (zero, empty, here),
        "repeated": (*repeated, alive),
        "moved": (moved, never, alive),
    }
    if shared:
        del shares["missing"]
    return shares


def out_of_place(old: np.ndarray, new: np.ndarray, jitter: float) -> tuple[np.ndarray, float]:
    """Find rows whose new position or length is not what the change of most rows predicts. Returns a mask
    (n,) of these rows, and the median distance of new rows from their predicted positions (the residual). If
    no fit predicts most rows, no row is out of place, and the median is 0.

    Rows are first scaled to length 1, so that long rows do not dominate. Two fits are tried: no change, then
    a rotation about the mean. A row is out of place if its residual is at least a fifth of its distance from
    the mean, and at least ten times the median residual; or if its length changed by a factor of 1.5 more
    than the median row's, and by ten times more than most. The same noise moves the direction and the length
    of a short row by more, so its limits are higher.
    """
    before = unit_rows(old)
    after = unit_rows(new)
    before = before - mean_row(before)
    after = after - mean_row(after)
    size = np.maximum(lengths(before), lengths(after))
    sizes = np.stack([lengths(X).astype(np.float64) for X in (old, new)])
    sizes /= np.median(sizes, axis=1, keepdims=True)
    typical = np.inf
    if old.shape[1] == new.shape[1]:
        residual = lengths(after - before)
        typical = float(np.median(residual))
    same_axes = typical <= _STAYED * np.median(size)
    if not same_axes:
        residual = lengths(after - _rotated(before, after, slice(None)))
        typical = float(np.median(residual))
    if typical > _STAYED * np.median(size):
        return np.zeros(len(old), dtype=bool), 0.0
    noise = max(typical, TIE * jitter) / np.minimum(1, sizes.max(axis=0))
    moved = residual > np.maximum(_AWAY * size, _FAR * noise)
    if same_axes and moved.any():
        # A small rotation, such as two exchanged dimensions, moves a few rows far and most rows hardly.
        residual = lengths(after - _rotated(before, after, ~moved))
        moved &= residual > np.maximum(_AWAY * size, _FAR * noise)
    return moved | _other_length(*sizes, noise, jitter), typical


def _rotated(before: np.ndarray, after: np.ndarray, fitted: np.ndarray | slice) -> np.ndarray:
    """The rows `before` (n, d), turned by the rotation that fits the rows `fitted` best."""
    from relcore.engine.engine import Engine

    rotation = Engine().rotation(before[fitted].T @ after[fitted])[0]
    return before @ rotation.astype(np.float32)


def _other_length(before: np.ndarray, after: np.ndarray, noise: np.ndarray, jitter: float) -> np.ndarray:
    """Which rows (n,) changed their length although hardly any other row did. Lengths are shares of the
    median length. If one version is normalised and the other is not, lengths cannot be compared."""
    steady = [np.median(np.abs(np.log(sizes))) <= TIE * jitter for sizes in (before, after)]
    if steady[0] != steady[1]:
        return np.zeros(len(before), dtype=bool)
    ratio = np.log(after / before)
    ratio = np.abs(ratio - np.median(ratio))
    return ratio > np.maximum(np.log(_LONGER), _FAR * np.maximum(np.median(ratio), noise))


# Which rows (n,) equal an earlier row, although in the other version the two rows differ by more than noise.
def _repeated_rows(vectors: np.ndarray, other: np.ndarray, jitter: float) -> np.ndarray:
    _, first, codes = np.unique(row_hashes(vectors), return_index=True, return_inverse=True)
    first = first[codes]
    found = np.zeros(len(codes), dtype=bool)
    again = np.flatnonzero(first != np.arange(len(first)))
    for block in row_blocks(len(again), BLOCK_ROWS):
        rows = other[again[block]]
        found[again[block]] = lengths(rows - other[first[again[block]]]) > TIE * jitter * lengths(rows)
    return found


# For each dimension (d,): 1.0 if its value is the same in all rows, otherwise 0.
def _constant(vectors: np.ndarray) -> np.ndarray:
    blocks = row_blocks(len(vectors), BLOCK_ROWS)
    return 1.0 * np.all([(vectors[block] == vectors[:1]).all(axis=0) for block in blocks], axis=0)
