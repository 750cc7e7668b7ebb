"""Gather: a few rows of sharded spaces, such as anchors and queries, into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from relcore.progress import Report, silent
from relcore.sharded.shard import Shard
from relcore.sharded.shard_pass import Arrays, Shards, ShardWork
from relcore.store import Entry, Store, digest_of


@dataclass(frozen=True)
class Gather(ShardWork):
    """The vectors of the rows whose numbers are in the store under a key, of every space; see `put_rows`.

    Arrays: rows (m,), ascending, and vectors_0, vectors_1 (m, d). Facts, with `texts`: ids and labels of the first space,
    labels None where it has none.
    """

    kind: ClassVar[str] = "gather"

    wanted: str
    texts: bool = False
    vectors: bool = True

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> tuple[Arrays, dict[str, Any]]:
        rows = store.get(self.wanted).arrays["rows"]
        start, n = shards[0].start, shards[0].n
        here = rows[(rows >= start) & (rows < start + n)]
        arrays = {"rows": here}
        if self.vectors:
            arrays |= {f"vectors_{side}": shard.take(here - start) for side, shard in enumerate(shards)}
        return arrays, _texts(shards[0], here - start) if self.texts else {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        return {name: np.concatenate([one, second.arrays[name]]) for name, one in first.arrays.items()}, _joined(
            first.metadata["facts"], second.metadata["facts"]
        )


def _joined(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    return {name: None if column is None else [*column, *two[name]] for name, column in one.items()}


def _texts(shard: Shard, rows: np.ndarray) -> dict[str, Any]:
    ids, labels = [], [] if shard.labels else None
    for block in shard.blocks(labels=True) if shard.ids or shard.labels else ():
        places = rows[(rows >= block.first) & (rows < block.first + len(block.vectors))] - block.first
        ids += shard.ids_of(block)[places].tolist()
        if labels is not None:
            labels += [block.labels[place] for place in places]
    return {"ids": ids or [str(shard.start + row) for row in rows], "labels": labels}


def put_rows(store: Store, rows: np.ndarray, texts: bool = False, vectors: bool = True) -> Gather:
    """The work that gathers these rows of the whole space, each once, or their ids and labels alone."""
    rows = np.unique(np.asarray(rows, dtype=np.int64))
    key = digest_of("rows to gather", rows)
    if not store.has(key):
        store.put(key, {"rows": rows})
    return Gather(key, texts, vectors)
