"""Shard: one file of a sharded space, read in blocks; what it holds is known from its header."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relcore.names import Named
from relcore.numbers import counted
from relcore.spaces import SpaceError, quote

BLOCK_BYTES = 32 * 2**20  # of one space; two are read side by side
KINDS = {
    ".npy": Named("", "relcore.sharded.npy_shard:NpyShard"),
    ".parquet": Named("", "relcore.sharded.table_shard:TableShard"),
    ".arrow": Named("", "relcore.sharded.table_shard:TableShard"),
    ".feather": Named("", "relcore.sharded.table_shard:TableShard"),
    ".made": Named("", "relcore.sharded.made_shard:MadeShard"),
}


@dataclass(frozen=True)
class Shard:
    """One file of a sharded space.

    Attributes
    ----------
    name : str
        Of the file, such as "part-00003.npy".
    url : str
        Where it is: a path, or an address that fsspec opens.
    kind : str
        A key of `KINDS`.
    n, width : int
        Rows, and numbers per row.
    start : int
        Number of its first row in the whole space. Rows without ids of their own have their number in the whole space as
        id, the ids that one file with all rows would give them.
    stamp : str
        Changes when the file is written again: from its size and its time, not from its content.
    ids, labels : str
        Where the file keeps them: a column, or the address of a file beside it; "" where it keeps none.
    vectors : str
        The column of vectors, of a table.
    """

    name: str
    url: str
    kind: str
    n: int
    width: int
    start: int = 0
    stamp: str = ""
    ids: str = ""
    labels: str = ""
    vectors: str = ""

    def blocks(self, rows: int = 0, labels: bool = False) -> Iterator[Block]:
        """All rows in their order, in blocks of exactly this many rows but for the last; default: 32 MB.

        Raises
        ------
        SpaceError
            The file has changed, is damaged, or cannot be read.
        """
        first = 0
        for block in KINDS[self.kind].load()(self).blocks(rows or rows_at_once(self.width), labels):
            yield Block(first, block.vectors, block.ids, block.labels)
            first += len(block.vectors)
        if first != self.n:
            raise SpaceError(f"{self.name}: expected {self.n:,} rows, as its header says, got {first:,}; copy the shard again")

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (m, width) of these rows, counted from the shard's first row, in any order."""
        rows = np.asarray(rows, dtype=np.int64)
        if not len(rows):
            return np.empty((0, self.width), dtype=np.float32)
        return KINDS[self.kind].load()(self).take(rows)

    def ids_of(self, block: Block) -> np.ndarray:
        """The ids of a block's rows, (m,) of strings."""
        if block.ids is not None:
            return np.array(block.ids, dtype=object)
        first = self.start + block.first
        return np.array([str(row) for row in range(first, first + len(block.vectors))], dtype=object)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows of a shard: vectors (m, width) float32, and ids and labels where the shard has them and they are read.

    `first` is counted from the shard's first row.
    """

    first: int
    vectors: np.ndarray
    ids: list[str] | None = None
    labels: list[str] | None = None


def rows_at_once(*widths: int) -> int:
    """The rows of a block, such that no space's block takes more than 32 MB."""
    return max(1, BLOCK_BYTES // (4 * max(widths)))


def aligned(shards: tuple[Shard, ...], labels: bool = False) -> Iterator[tuple[Block, ...]]:
    """Blocks of the same rows of several shards, side by side."""
    rows = rows_at_once(*(shard.width for shard in shards))
    return zip(*(shard.blocks(rows, labels) for shard in shards), strict=True)


def finite(shard: Shard, block: Block) -> np.ndarray:
    """The block's vectors, once it is known that they are finite.

    Raises
    ------
    SpaceError
        NaN or infinite values; the message names the shard and the rows.
    """
    with np.errstate(invalid="ignore"):
        if np.isfinite(block.vectors.sum(dtype=np.float64)):
            return block.vectors
    bad = np.flatnonzero(~np.isfinite(block.vectors).all(axis=1))
    if len(bad):
        ids = shard.ids_of(block)[bad[:3]]
        raise SpaceError(
            f"{shard.name}, row {block.first + bad[0] + 1:,}: expected finite numbers, got NaN or infinite values in "
            f"{counted(len(bad), 'row')} of its block, first {quote(ids)}; drop or mend these rows in this shard, the results "
            "of the other shards are kept"
        )
    return block.vectors
