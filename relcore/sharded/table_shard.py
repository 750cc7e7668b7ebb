"""A .parquet, .arrow or .feather file as a shard: one column of vectors, and columns of ids and labels where it has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from relcore.indexes.columns import id_column, matrix_of, vector_column
from relcore.plain_text import visible
from relcore.sharded.files import opened
from relcore.sharded.shard import Block, Shard, rows_at_once
from relcore.sources.arrow_table import ARROW, account_of
from relcore.sources.parquet_table import stored
from relcore.sources.row_values import checked_ids, checked_labels
from relcore.sources.rows import readable
from relcore.spaces import SpaceError

_MOST_GROUP = 1 << 29  # a row group or a batch is unpacked as a whole
_MOST_TAKEN = 1 << 16  # rows that are looked through at once
_LABELS = ("label", "labels")


class TableShard:
    """Reads row groups, or batches, one after the other."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    @staticmethod
    def header(url: str, size: int, names: Sequence[str]) -> dict[str, Any]:
        """Rows, width, and the columns of vectors, ids and labels, of the file at an address."""
        name = url.rsplit("/", 1)[1]
        with _table(url, size) as table:
            if table.largest > _MOST_GROUP:
                raise SpaceError(
                    f"{name}: expected row groups or batches of at most {readable(_MOST_GROUP)}, got one of "
                    f"{readable(table.largest)}; write the file again, with row_group_size=16384"
                )
            vectors, ids = vector_column(name, table.schema, ""), id_column(table.schema)
            labels = next((one for one in _LABELS if one in table.schema.names), "")
            first = next((one for one in table.batches(1, [vectors]) if one.num_rows), None)
            width = 0 if first is None else len(first.column(0)[0].as_py() or ())
            if table.n and not width:
                raise SpaceError(f"{name}, row 1: expected a vector, got none; mend or remove the row")
        return {"n": table.n, "width": width, "vectors": vectors, "ids": ids, "labels": labels}

    def blocks(self, rows: int, labels: bool) -> Iterator[Block]:
        shard, first, held, n_held = self.shard, 0, [], 0
        wanted = [shard.vectors, shard.ids, shard.labels if labels else ""]
        with _table(shard.url) as table:
            for batch in table.batches(rows, list(dict.fromkeys(filter(None, wanted)))):
                part = self._block(batch, first)
                first += len(part.vectors)
                held.append(part)
                n_held += len(part.vectors)
                while n_held >= rows:
                    whole = _joined(held)
                    yield _cut(whole, slice(0, rows))
                    held, n_held = [_cut(whole, slice(rows, None))], n_held - rows
        if n_held:
            yield _joined(held)

    def take(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), self.shard.width), dtype=np.float32)
        first = 0
        with _table(self.shard.url) as table:
            for batch in table.batches(min(_MOST_TAKEN, rows_at_once(self.shard.width)), [self.shard.vectors]):
                here = np.flatnonzero((rows >= first) & (rows < first + batch.num_rows))
                if len(here):
                    some = batch.take((rows[here] - first).tolist()) if len(here) < batch.num_rows // 2 else None
                    found = matrix_of(self.shard.name, (some or batch).column(0), first, self.shard.width)
                    out[here] = found if some is not None else found[rows[here] - first]
                first += batch.num_rows
        return out

    def _block(self, batch: Any, first: int) -> Block:
        shard = self.shard
        vectors = matrix_of(shard.name, batch.column(shard.vectors), first, shard.width)
        ids = checked_ids(batch.column(shard.ids).to_pylist(), shard.name) if shard.ids else None
        has_labels = shard.labels and shard.labels in batch.schema.names
        labels = checked_labels(stored(batch.column(shard.labels)).to_pylist(), shard.name) if has_labels else None
        return Block(first, vectors, ids, labels)


class _Parquet:
    def __init__(self, file: Any) -> None:
        facts = file.metadata
        self._file, self.schema, self.n = file, file.schema_arrow, facts.num_rows
        sizes = (facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
        self.largest = max(sizes, default=0)

    def batches(self, rows: int, columns: list[str]) -> Iterator[Any]:
        return self._file.iter_batches(rows, columns=columns, use_threads=False)


class _Arrow:
    def __init__(self, stream: Any, size: int, name: str) -> None:
        import pyarrow as pa

        told = account_of(stream, size, name)
        self._stream, self._begin, self.n, self.largest = stream, told.begin, told.num_rows, told.largest
        stream.seek(told.begin)
        self.schema = pa.ipc.open_stream(pa.PythonFile(stream)).schema

    def batches(self, rows: int, columns: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        self._stream.seek(self._begin)
        for batch in pa.ipc.open_stream(pa.PythonFile(self._stream)):
            wanted = batch.select(columns)
            wanted.validate(full=True)
            for start in range(0, len(wanted), rows):
                yield wanted.slice(start, rows)


@contextmanager
def _table(url: str, size: int = 0) -> Iterator[_Parquet | _Arrow]:
    """The open table; errors of Arrow name the file."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    name = url.rsplit("/", 1)[1]
    with opened(url) as stream:
        try:
            if name.lower().endswith(ARROW):
                yield _Arrow(stream, size or stream.seek(0, 2), name)
            else:
                with parquet.ParquetFile(stream, pre_buffer=False) as file:  # else it holds every row group that was read
                    yield _Parquet(file)
        except (pa.ArrowException, ValueError, OverflowError) as error:
            if isinstance(error, SpaceError):
                raise
            said = visible(error, 200)
            raise SpaceError(
                f"{name}: expected a table, got one that cannot be read ({said}); write or copy it again"
            ) from error


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    columns = [
        None if getattr(blocks[0], what) is None else [one for block in blocks for one in getattr(block, what)]
        for what in ("ids", "labels")
    ]
    return Block(blocks[0].first, np.concatenate([block.vectors for block in blocks]), *columns)


def _cut(block: Block, rows: slice) -> Block:
    ids, labels = (None if column is None else column[rows] for column in (block.ids, block.labels))
    return Block(block.first + (rows.start or 0), block.vectors[rows], ids, labels)
