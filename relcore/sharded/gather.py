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

    Arrays: rows (m,), ascending, and vectors_0, vectors_1 (m, d). Facts, with `texts`: the ids of the first space, and the
    labels of the first space that has some; labels are None where a shard has none in any space.
    """

    kind: ClassVar[str] = "gather"
    version: ClassVar[int] = 2

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
        return arrays, _texts(shards, here - start) if self.texts else {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        return {name: np.concatenate([one, second.arrays[name]]) for name, one in first.arrays.items()}, _joined(
            first.metadata["facts"], second.metadata["facts"]
        )


def _joined(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    return {name: None if None in (column, two[name]) else [*column, *two[name]] for name, column in one.items()}


def _texts(shards: Shards, rows: np.ndarray) -> dict[str, Any]:
    first, labelled = shards[0], next((shard for shard in shards if shard.labels), None)
    read: dict[Shard, tuple[list[str], list[str]]] = {
        shard: ([], []) for shard in (first, labelled) if shard is not None and (shard.ids or shard.labels)
    }
    for shard, (ids, labels) in read.items():
        for block in shard.blocks(labels=True):
            places = rows[(rows >= block.first) & (rows < block.first + len(block.vectors))] - block.first
            ids += shard.ids_of(block)[places].tolist()
            labels += [block.labels[place] for place in places] if shard.labels else []
    ids = read[first][0] if first.ids else [str(first.start + row) for row in rows]
    return {"ids": ids, "labels": None if labelled is None else read[labelled][1]}


def put_rows(store: Store, rows: np.ndarray, texts: bool = False, vectors: bool = True) -> Gather:
    """The work that gathers these rows of the whole space, each once, or their ids and labels alone."""
    rows = np.unique(np.asarray(rows, dtype=np.int64))
    key = digest_of("rows to gather", rows)
    if not store.has(key):
        store.put(key, {"rows": rows})
    return Gather(key, texts, vectors)
