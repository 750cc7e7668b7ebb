"""HeldOutPairs: which pairs of a migration are held out, and which of them are queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from relcore.evaluation import row_keys
from relcore.migration.trial import MOST_QUERIES
from relcore.progress import Report, silent
from relcore.sharded.distinct_rows import DistinctRows
from relcore.sharded.pair import global_rows, lengths_above_zero
from relcore.sharded.shard import aligned
from relcore.sharded.shard_pass import Arrays, Shards, ShardWork
from relcore.sharded.survey import Smallest
from relcore.similarity import rows_among
from relcore.spaces import SpaceError
from relcore.store import Entry, Store

_MOST_REPEATED = 1_000_000  # their numbers are kept: 8 MB


@dataclass(frozen=True)
class HeldOutPairs(ShardWork):
    """Rows beside the fitted ones, as `split.parts_of` and `trial.held_out_trial` hold them out of spaces in memory.

    Arrays: keys and rows, those of the queries, at most 2,000, ascending by key; repeated (m,), rows that equal a fitted row of
    their space to the last bit; hashes_0, counts_0, hashes_1, counts_1 of `DistinctRows` of all pairs.

    Attributes
    ----------
    fitted : str
        The store's key of rows (m,), ascending, and of their vectors_0 and vectors_1.
    """

    kind: ClassVar[str] = "held out pairs"

    fitted: str
    random_state: int = 0

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> tuple[Arrays, dict[str, Any]]:
        fitted = store.get(self.fitted).arrays
        queries, distinct, repeated = Smallest(MOST_QUERIES), (DistinctRows(), DistinctRows()), [np.empty(0, np.int64)]
        for blocks in aligned(shards):
            alive = np.flatnonzero(lengths_above_zero(tuple(block.vectors for block in blocks)))
            rows = global_rows(shards[0], blocks[0], alive)
            for block, one in zip(blocks, distinct, strict=True):
                one.add(block.vectors[alive])
            held = ~np.isin(rows, fitted["rows"])
            rows, alive = rows[held], alive[held]
            copies = np.zeros(len(rows), dtype=bool)
            for side, block in enumerate(blocks):
                copies |= rows_among(block.vectors[alive], fitted[f"vectors_{side}"])
            repeated.append(rows[copies])
            ids = shards[0].ids_of(blocks[0])[alive[~copies]]
            queries.add(row_keys(ids, "queries", self.random_state), rows[~copies])
            report(blocks[0].first + len(blocks[0].vectors), shards[0].n, shards[0].name)
        return _arrays(queries, np.concatenate(repeated), distinct), {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        queries, distinct = Smallest(MOST_QUERIES), (DistinctRows(), DistinctRows())
        for entry in (first, second):
            queries.add(entry.arrays["keys"], entry.arrays["rows"])
            for side, one in enumerate(distinct):
                one.merge(entry.arrays[f"hashes_{side}"], entry.arrays[f"counts_{side}"])
        repeated = np.concatenate([entry.arrays["repeated"] for entry in (first, second)])
        return _arrays(queries, repeated, distinct), {}


def _arrays(queries: Smallest, repeated: np.ndarray, distinct: tuple[DistinctRows, ...]) -> Arrays:
    if len(repeated) > _MOST_REPEATED:
        raise SpaceError(
            f"expected at most {_MOST_REPEATED:,} rows that repeat a fitted one, got {len(repeated):,} in these shards and "
            "more to come; leave repeated rows out when the shards are written, or use --sample"
        )
    found = {"keys": queries.keys, "rows": queries.rows, "repeated": repeated}
    for side, one in enumerate(distinct):
        found |= {f"hashes_{side}": one.hashes, f"counts_{side}": one.counts}
    return found
