"""ShardedPair: two sharded spaces whose shards hold the same rows in the same order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.sharded.shard import Block, Shard
from relcore.sharded.shard_pass import Shards
from relcore.sharded.space import ShardedSpace
from relcore.spaces import SpaceError, quote

SORT = "sort the rows of both spaces by id before they are written in shards"


@dataclass(frozen=True)
class ShardedPair:
    """Two spaces by shard; shard i of both has the same rows in the same order. Ids are compared while the shards are read.

    Raises
    ------
    SpaceError
        Another number of shards, or shards with other numbers of rows.
    """

    source: ShardedSpace
    target: ShardedSpace

    def __post_init__(self) -> None:
        pairs = zip(self.source.shards, self.target.shards, strict=False)
        other = next((pair for pair in pairs if pair[0].n != pair[1].n), None)
        if other is not None:
            first, second = other
            raise SpaceError(
                f"expected shards with the same rows in the same order, got {first.n:,} rows in {first.name!r} of "
                f"{self.source.name!r} and {second.n:,} in {second.name!r} of {self.target.name!r}; write both with the same "
                "rows per shard, sorted by id"
            )
        if len(self.source.shards) != len(self.target.shards):
            longer, shorter = sorted((self.source, self.target), key=lambda space: -len(space.shards))
            missing = [shard.name for shard in longer.shards[len(shorter.shards) :][:3]]
            raise SpaceError(
                f"expected as many shards in both folders, got {len(self.source.shards):,} in {self.source.name!r} and "
                f"{len(self.target.shards):,} in {self.target.name!r}: {shorter.name!r} has no partner for {quote(missing)}; "
                "add it, or move these shards elsewhere"
            )

    @property
    def n(self) -> int:
        """Rows of either space, with those that are zero."""
        return self.source.n

    @property
    def parts(self) -> list[Shards]:
        """What each job reads."""
        return list(zip(self.source.shards, self.target.shards, strict=True))


def need_same_ids(shards: Shards, blocks: tuple[Block, ...]) -> None:
    """Raise a SpaceError that names the first row whose ids differ between the shards."""
    if all(block.ids is None for block in blocks) and len({shard.start for shard in shards}) == 1:
        return
    first, *others = (shard.ids_of(block) for shard, block in zip(shards, blocks, strict=True))
    for shard, ids in zip(shards[1:], others, strict=True):
        differ = np.flatnonzero(ids != first)
        if len(differ):
            row = int(differ[0])
            raise SpaceError(
                f"{shards[0].name!r} and {shard.name!r}, row {blocks[0].first + row + 1:,}: expected the same id in both, got "
                f"{quote([first[row], ids[row]])}; {SORT}"
            )


def lengths_above_zero(blocks: tuple[np.ndarray, ...]) -> np.ndarray:
    """Which rows have a direction in every space, (m,) bool; the others are left out of a comparison, as by `match`."""
    return np.logical_and.reduce([rows.any(axis=1) for rows in blocks])


def global_rows(shard: Shard, block: Block, rows: np.ndarray) -> np.ndarray:
    """Numbers in the whole space of rows of a block."""
    return shard.start + block.first + rows
