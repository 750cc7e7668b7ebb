"""Survey: the first pass over one space or a pair: means, rows without direction, and which rows are to be
queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.represent.similarity import row_blocks
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.plan import ColumnSums
from relcore.sharded.passes import Arrays, Shards, ShardWork
from relcore.sharded.shard import aligned, finite
from relcore.sharded.space import ShardedSpace, global_rows, lengths_above_zero, need_same_ids
from relcore.spaces.split import row_keys

_ROWS = 2048  # a block that stays in cache for all its readings
_MOST_DROPPED = 1_000_000  # their numbers are kept: 8 MB
_MOST_CLASSES = 100_000
_SMALL = 1e-30  # a mean square below has digits that float32 lacks


@dataclass(frozen=True)
class Survey(ShardWork):
    """Sums of the rows that have a direction in every space, and candidates for queries.

    Arrays: sum_0, sum_1 (d,), squares (2,), the sums of squared lengths, and largest (2,), the largest |x|;
    dropped (m,), rows that are zero in a space; keys and rows (n_candidates,), those with the smallest
    `row_keys`, ascending by key; wanted (2, m), place among `wanted` and row. Facts: n, rows kept.

    Attributes
    ----------
    n_candidates : int
        As many queries as will be drawn, and as many more as there will be anchors, which are not asked.
    stream, random_state : str, int
        Of the queries' `row_keys`, as `Split` draws them.
    wanted : tuple of str
        Ids whose rows are looked for.
    classes_of : int
        The space whose labels are counted, −1 for none. Facts then: classes, label → rows that have a
        direction and this label; None where there are more than 100,000.
    """

    kind: ClassVar[str] = "survey"
    version: ClassVar[int] = 2

    n_candidates: int = 0
    stream: str = "queries"
    random_state: int = 0
    wanted: tuple[str, ...] = ()
    classes_of: int = -1

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        sums = [np.zeros(shard.width) for shard in shards]
        squares, largest = np.zeros(len(shards)), np.zeros(len(shards))
        dropped, found, kept = [], Smallest(self.n_candidates), 0
        wanted, places = pd.Index(self.wanted, dtype=object), []
        own_ids, classes = shards[0].ids != "", Counter()
        for blocks in aligned(shards, labels=self.classes_of >= 0):
            need_same_ids(shards, blocks)
            vectors = tuple(finite(shard, block) for shard, block in zip(shards, blocks, strict=True))
            alive = lengths_above_zero(vectors)
            rows = global_rows(shards[0], blocks[0], np.arange(len(alive)))
            if not alive.all():
                vectors, dropped = tuple(one[alive] for one in vectors), [*dropped, rows[~alive]]
            for side, one in enumerate(vectors):
                for part in row_blocks(len(one), _ROWS):
                    total = one[part].sum(axis=0, dtype=np.float64)
                    sums[side] += total
                    squares[side] += _squares(one[part], total)
                    largest[side] = max(largest[side], float(one[part].max()), -float(one[part].min()))
            if self.n_candidates or (len(wanted) and own_ids):
                ids = shards[0].ids_of(blocks[0])
                if own_ids:
                    _need_distinct(shards[0].name, ids)
                    where = wanted.get_indexer(ids) if len(wanted) else np.full(len(ids), -1)
                    places.append(np.stack([where, rows])[:, where >= 0])
                if self.n_candidates:
                    found.add(row_keys(ids[alive], self.stream, self.random_state), rows[alive])
            if self.classes_of >= 0 and len(classes) <= _MOST_CLASSES:
                classes.update(
                    label
                    for label, kept in zip(blocks[self.classes_of].labels, alive, strict=True)
                    if kept and label
                )
            kept += int(np.count_nonzero(alive))
            report(blocks[0].first + len(alive), shards[0].n, shards[0].name)
        arrays = {f"sum_{side}": one for side, one in enumerate(sums)} | {
            "squares": squares,
            "largest": largest,
            "dropped": _few(np.concatenate([*dropped, np.empty(0, np.int64)])),
            "keys": found.keys,
            "rows": found.rows,
            "wanted": np.concatenate([*places, np.empty((2, 0), np.int64)], axis=1),
        }
        return arrays, {"n": kept, "classes": _few_classes(classes)}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        one, two = first.arrays, second.arrays
        arrays = {name: one[name] + two[name] for name in one if name.startswith("s")}
        found = Smallest(self.n_candidates)
        for part in (one, two):
            found.add(part["keys"], part["rows"])
        arrays |= {"largest": np.maximum(one["largest"], two["largest"])}
        arrays |= {"keys": found.keys, "rows": found.rows}
        arrays |= {"dropped": _few(np.concatenate([one["dropped"], two["dropped"]]))}
        arrays |= {"wanted": np.concatenate([one["wanted"], two["wanted"]], axis=1)}
        facts = [entry.metadata["facts"] for entry in (first, second)]
        classes = [one["classes"] for one in facts]
        together = None if None in classes else _few_classes(Counter(classes[0]) + Counter(classes[1]))
        return arrays, {"n": facts[0]["n"] + facts[1]["n"], "classes": together}


def column_sums(arrays: Mapping[str, np.ndarray], n: int, side: int) -> ColumnSums:
    """Of one of the spaces, from the arrays of a survey of n rows."""
    facts = {"n": np.array(n), "total": arrays[f"sum_{side}"], "largest": arrays["largest"][side]}
    return ColumnSums.from_arrays(facts)


class Smallest:
    """The m smallest keys of any number of rows, ascending, and their rows."""

    def __init__(self, m: int) -> None:
        self.m, self.keys, self.rows = m, np.empty(0), np.empty(0, np.int64)

    def add(self, keys: np.ndarray, rows: np.ndarray) -> None:
        if len(self.keys) == self.m and self.m:
            near = keys < self.keys[-1]
            keys, rows = keys[near], rows[near]
        keys, rows = np.concatenate([self.keys, keys]), np.concatenate([self.rows, rows])
        order = np.argsort(keys, kind="stable")[: self.m]
        self.keys, self.rows = keys[order], rows[order]


def need_distinct_ids(space: ShardedSpace, keys: np.ndarray, rows: np.ndarray) -> None:
    """Raise a SpaceError where two of the rows (m,) with the smallest `row_keys`, ascending, have the same
    id.

    All rows of one id have one key, so they are all among the smallest keys or, but for the last, none of
    them. If a share p of the ids repeats, it is found with probability 1 − (1 − p)^m; ids of other rows are
    not compared.
    """
    pairs = np.flatnonzero(np.diff(keys) == 0)[:3]
    if not len(pairs) or not space.shards[0].ids:
        return
    first, second = rows[pairs], rows[pairs + 1]
    same = np.flatnonzero(np.array(space.ids_of(first)) == np.array(space.ids_of(second)))
    if len(same):
        one, other = (space.shard_of(int(some[same[0]])).name for some in (first, second))
        twice = quote(space.ids_of(first[same[:1]]))
        raise SpaceError(
            f"{space.name}: ids must be distinct, {twice} occurs more than once, in {one!r} and in {other!r};"
            " leave out rows that were written twice"
        )


def _squares(rows: np.ndarray, total: np.ndarray) -> float:
    """Σ‖x‖² of rows (m, d) with the sum `total` (d,); in float64 where float32 overflows, or loses a small
    spread.
    """
    with np.errstate(over="ignore"):
        found = float(np.vecdot(rows, rows).sum(dtype=np.float64))
    if max(total @ total / len(rows), _SMALL * rows.size) < 0.9999 * found < np.inf:
        return found
    double = rows.astype(np.float64)
    return float(np.vdot(double, double))


def _need_distinct(name: str, ids: np.ndarray) -> None:
    index = pd.Index(ids, dtype=object)
    if not index.is_unique:
        twice = index[index.duplicated()].unique()
        raise SpaceError(
            f"{name}: ids must be distinct, {len(twice):,} occur more than once, first {quote(twice[:3])};"
            " mend them"
        )


def _few_classes(classes: Counter[str]) -> dict[str, int] | None:
    return dict(classes) if len(classes) <= _MOST_CLASSES else None


def _few(dropped: np.ndarray) -> np.ndarray:
    if len(dropped) > _MOST_DROPPED:
        raise SpaceError(
            f"expected at most {_MOST_DROPPED:,} zero vectors, got {len(dropped):,} in these shards and more"
            " to come; leave them out when the shards are written"
        )
    return dropped


# The mean row of a space from sums over its shards, with the rounding of `similarity.mean_row`.

_ROUNDED = 2.0**-17  # as there: of the spread


def mean_from_sums(total: np.ndarray, square: float, n: int) -> np.ndarray:
    """(d,) from Σx (d,), Σ‖x‖² and n: float32, unless its rounding is a noticeable part of the spread of
    the rows.
    """
    mean = total / n
    kept = mean.astype(np.float32)
    spread = np.sqrt(max(square / n - float(mean @ mean), 0.0))
    return mean if np.linalg.norm(kept - mean) > _ROUNDED * spread > 0 else kept
