"""WriteRows: map the rows of each shard, and write them as a shard of another folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from relcore.progress import Report, silent
from relcore.sharded.row_maps import row_map
from relcore.sharded.shard import Block, Shard, finite
from relcore.sharded.shard_pass import Arrays, Shards, ShardWork
from relcore.sharded.target import are_there, write_shard
from relcore.similarity import row_blocks
from relcore.store import Entry, Store

_ROWS = 16384  # mapped at once: relative rows are wider than the rows that they come from


@dataclass(frozen=True)
class WriteRows(ShardWork):
    """Every row through a map of `row_maps`, with its id and its label, into a folder. Facts: files, addresses by shard.

    Attributes
    ----------
    map : str
        The store's key of the map.
    goal, format : str
        The folder, and "npy" or "parquet".
    """

    kind: ClassVar[str] = "write rows"
    writes: ClassVar[bool] = True

    map: str
    goal: str
    format: str

    def of_shard(self, shards: Shards, store: Store, report: Report = silent) -> tuple[Arrays, dict[str, Any]]:
        shard, function = shards[0], row_map(store, self.map)
        width = function(np.ones((1, shard.width), dtype=np.float32)).shape[1]
        mapped = (self._mapped(shard, block, function, report) for block in shard.blocks(labels=True))
        files = write_shard(self.goal, shard, self.format, (part for block in mapped for part in block), width)
        return {}, {"files": {shard.name: files}, "rows": shard.n, "width": width}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        one, two = first.metadata["facts"], second.metadata["facts"]
        return {}, {"files": one["files"] | two["files"], "rows": one["rows"] + two["rows"], "width": one["width"]}

    def holds(self, facts: dict[str, Any]) -> bool:
        return are_there(url for urls in facts["files"].values() for url in urls)

    @staticmethod
    def _mapped(shard: Shard, block: Block, function: Any, report: Report) -> Iterator[Block]:
        vectors = finite(shard, block)
        for part in row_blocks(len(vectors), _ROWS):
            texts = [None if column is None else column[part] for column in (block.ids, block.labels)]
            yield Block(block.first + part.start, function(vectors[part]), *texts)
            report(block.first + part.stop, shard.n, shard.name)
