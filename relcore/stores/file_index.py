"""Files as stores of vectors: .npy, Parquet and faiss."""

from __future__ import annotations

import filecmp
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.mapped_rows import FileStamp
from relcore.base.text import as_lines
from relcore.base.writing import replacing
from relcore.files import confined
from relcore.files.arrow_tables import ParquetTable
from relcore.files.faiss_files import faiss_ids, faiss_rows, open_faiss
from relcore.files.formats import ARROW, checked_ids, readable
from relcore.files.numpy_files import npy_layout, npy_rows
from relcore.files.saving import OF_VECTORS, write_parquet
from relcore.stores.index import (
    BLOCK,
    ID,
    StoredRows,
    StorePlace,
    Target,
    VectorIndex,
    block_of,
    id_column,
    vector_column,
)

VECTOR = "vector"
ADAPTER = "relscope-adapter"  # key of the adapter's digest in the metadata of the column of vectors


def recorded_adapter(schema: Any, vectors: str) -> str:
    """The digest of the adapter that the column of vectors records; "" if it records none."""
    return ((schema.field(vectors).metadata or {}).get(ADAPTER.encode()) or b"").decode("ascii", "replace")


def tables_of(
    name: str,
    blocks: Iterable[StoredRows],
    schema: Any = None,
    ids: str = ID,
    vectors: str = VECTOR,
    adapter: str = "",
) -> Iterator[Any]:
    """Yield an Arrow table for each block, with columns for ids, payload and vectors. All tables have this
    schema. Without a schema, they have the schema of the first table, which records the adapter.

    Raises
    ------
    SpaceError
        A payload column changes its type between blocks, or has the name of the column of ids or vectors; the
        schema's ids are numbers, and the rows' are not.
    """
    for block in blocks:
        keys = {key for item in block.payload for key in item}
        if taken := {ids, vectors} & keys:
            raise SpaceError(
                f"{name}: expected a payload without columns {quote(sorted(taken))}, got them;"
                " rename them first"
            )
        if schema is None:
            schema = _schema_of(block, keys, ids, vectors, adapter)
        fields = [field for field in schema if field.name not in (ids, vectors)]
        try:
            if unknown := keys - {field.name for field in fields}:
                raise pa.ArrowInvalid(f"{quote(sorted(unknown))} not in the rows before")
            payload = pa.Table.from_pylist(list(block.payload), schema=pa.schema(fields))
            if not block.payload:
                payload = pa.Table.from_pylist([{}] * len(block.ids), schema=pa.schema(fields))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SpaceError(
                f"{name}: expected the payload of all rows in the columns of the first ones, got"
                f" {error!s:.200}; write to a store that takes any payload"
            ) from error
        columns = {field.name: payload.column(field.name) for field in fields}
        columns[vectors] = _vectors_as(schema.field(vectors).type, block.vectors)
        columns[ids] = _ids_as(name, schema.field(ids).type, block.ids)
        yield pa.table([columns[field.name] for field in schema], schema=schema)


def _schema_of(block: StoredRows, keys: set[str], ids: str, vectors: str, adapter: str) -> Any:
    """The schema of a new table whose first rows are this block."""
    rows = [{key: item.get(key) for key in sorted(keys)} for item in block.payload]
    fields = []
    for field in pa.Table.from_pylist(rows).schema:
        if pa.types.is_null(field.type):  # a column without values has no known type, so it becomes text
            field = field.with_type(pa.string())
        fields.append(field)
    record = None
    if adapter:
        record = {ADAPTER: adapter}
    kind = pa.list_(pa.float32(), block.vectors.shape[1])
    return pa.schema([pa.field(ids, pa.string()), *fields, pa.field(vectors, kind, metadata=record)])


def _vectors_as(kind: Any, vectors: np.ndarray) -> Any:
    values = pa.array(np.ascontiguousarray(vectors, np.float32).ravel()).cast(kind.value_type)
    return pa.FixedSizeListArray.from_arrays(values, type=kind)


def _ids_as(name: str, kind: Any, ids: Sequence[str]) -> Any:
    try:
        return pa.array(ids, pa.string()).cast(kind)
    except pa.ArrowInvalid as error:
        raise SpaceError(
            f"{name}: expected ids that are whole numbers, as those that are there, got others; use a new"
            " place"
        ) from error


_MOST_GROUP = 1 << 30  # number of bytes of a row group, which can only be unpacked as a whole
_FAISS_HEADER = struct.Struct("<iqqq?i")  # d, n, two unused numbers, whether the index is trained, metric


class NpyIndex(VectorIndex):
    """A .npy file in C order. It is read through a buffer, because the pages of a memory map would count as
    used memory."""

    def __init__(self, place: StorePlace) -> None:
        self.path = access.regular_file(place.path)
        self.name = place.path.stem
        with self.path.open("rb") as stream:
            name = self.path.name
            self.stamp = FileStamp.of(self.path, stream.fileno())
            (self.n, self.width), self._dtype, self._at = npy_layout(stream, self.stamp.size, name)
        if not self.n:
            raise SpaceError(f"{name}: expected rows, got none; save the vectors again")

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        with self.path.open("rb") as stream:
            stream.seek(self._at + start * self.width * self._dtype.itemsize)
            for ids in _ids_beside(self.path, self.n, size, start):
                shape = self.n, self.width
                yield StoredRows(ids, npy_rows(stream, len(ids), shape, self._dtype, self.path.name))

    @classmethod
    def written_files(cls, path: Path) -> list[Path]:
        return [path, _ids_path(path)]

    @classmethod
    def write(cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target) -> None:
        header = {"descr": "<f4", "fortran_order": False, "shape": (target.n, target.width)}
        _write(
            place.path,
            blocks,
            lambda stream: np.lib.format.write_array_header_1_0(stream, header),
            target.replaces,
        )


def _ids_path(path: Path) -> Path:
    """The path of the file of ids beside a file of vectors. `load_space` reads the same file."""
    return path.with_name(f"{path.stem}.ids.txt")


def _ids_beside(path: Path, n: int, size: int, start: int) -> Iterator[list[str]]:
    """Yield blocks of the ids from the file beside n vectors. If there is no such file, the ids are row
    numbers."""
    sidecar = _ids_path(path)
    blocks = [range(first, min(n, first + size)) for first in range(start, n, size)]
    if not sidecar.is_file() or not access.beside(path, sidecar):
        yield from (list(map(str, rows)) for rows in blocks)
        return
    with sidecar.open(encoding="utf-8-sig", newline=None) as lines:
        try:
            for _ in islice(lines, start):
                pass
            for rows in blocks:
                ids = [line.rstrip("\n") for line in islice(lines, len(rows))]
                if len(ids) < len(rows) or (rows.stop == n and lines.read(1)):
                    if len(ids) < len(rows):
                        got = f"{rows.start + len(ids):,}"
                    else:
                        got = "more"
                    raise SpaceError(
                        f"{sidecar.name}: expected {n:,} ids, one per row, got {got}; write both from the"
                        " same rows"
                    )
                yield ids
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{sidecar.name}: expected UTF-8 text, got {error.reason}; save it as UTF-8"
            ) from None


def _write(path: Path, blocks: Iterable[StoredRows], write_header: Any, replaces: bool) -> None:
    """Write a header and float32 rows to a file, and the ids as lines to a file beside it.

    The ids come first: vectors without them would be read with row numbers. So a run that is killed between
    the two leaves ids, which the next run replaces if they are the same.
    """
    with replacing(path) as stream, replacing(_ids_path(path)) as ids:
        write_header(stream)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            ids.write(as_lines(block.ids, path.name, "ids", first=not ids.tell()))
        ids.flush()
        kept = _ids_path(path)
        if not replaces and kept.exists() and not filecmp.cmp(ids.name, kept, shallow=False):
            raise SpaceError(
                f"{kept.name}: expected a new place, or the ids of these rows that a stopped run left, got"
                " others; choose another name"
            )


def parquet_facts(path: Path, column: str) -> dict[str, Any]:
    table = ParquetTable(path)
    vectors = vector_column(path.name, table.schema, column)
    facts = table.file.metadata
    sizes = (facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
    largest = max(sizes, default=0)
    if largest > _MOST_GROUP or not table.n:
        got = "a file without rows"
        if table.n:
            got = f"one of {readable(largest)}"
        raise SpaceError(
            f"{path.name}: expected row groups of at most {readable(_MOST_GROUP)}, got {got}; write the file"
            " again, with row_group_size=16384"
        )
    width = len(next(table.file.iter_batches(1, columns=[vectors])).column(0)[0].as_py() or ())
    if not width:
        raise SpaceError(
            f"{path.name}: expected a vector in the first row, got an empty one; mend or remove the row"
        )
    ids = id_column(table.schema)
    adapter = recorded_adapter(table.schema, vectors)
    return {"n": table.n, "width": width, "vectors": vectors, "ids": ids, "adapter": adapter}


def parquet_blocks(path: Path, size: int, start: int, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield blocks of rows from `start` on. Row groups that end before `start` are not unpacked."""
    table = ParquetTable(path)
    first = bisect_right(table.starts, start) - 1
    row = table.starts[first]
    groups = list(range(first, table.file.num_row_groups))
    for batch in table.file.iter_batches(size, row_groups=groups, use_threads=False):
        block = batch.slice(max(0, start - row))
        row += batch.num_rows
        if block.num_rows:
            at = row - block.num_rows
            yield vars(block_of(path.name, block, at, facts["vectors"], facts["ids"], facts["width"]))


def parquet_holding(path: Path, ids: list[str], facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield blocks that contain the rows with these ids. First the column of ids is read, then the row groups
    that contain any of them."""
    table = ParquetTable(path)
    wanted = set(ids)
    names = facts["ids"]
    for group, first in enumerate(table.starts[:-1]):
        row = first
        group_ids = map(str, range(first, table.starts[group + 1]))
        if names:
            group_ids = checked_ids(table.group(names, group).to_pylist(), path.name)
        if wanted.isdisjoint(group_ids):
            continue
        columns = [facts["vectors"]]
        if names:
            columns.insert(0, names)
        for batch in table.file.iter_batches(BLOCK, [group], columns, use_threads=False):
            yield vars(block_of(path.name, batch, row, facts["vectors"], names, facts["width"]))
            row += batch.num_rows


class ParquetIndex(VectorIndex):
    """A .parquet file with a column of vectors and a column of ids. Other columns are payload. It is read in
    a confined process."""

    def __init__(self, place: StorePlace) -> None:
        self.path = access.regular_file(place.path)
        self.name = place.table or place.path.stem
        self.stamp = FileStamp.of(self.path)
        self._facts = confined.run(parquet_facts, self.path, libraries=ARROW, column=place.table)
        self.n = self._facts["n"]
        self.width = self._facts["width"]
        self.adapter = self._facts["adapter"]

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        asked = {"size": size, "start": start, "facts": self._facts}
        for block in confined.stream(parquet_blocks, self.path, ARROW, **asked):
            yield StoredRows(block["ids"], block["vectors"], tuple(block["payload"]))

    def holding(self, ids: Sequence[str]) -> Iterator[StoredRows]:
        for block in confined.stream(parquet_holding, self.path, ARROW, ids=list(ids), facts=self._facts):
            yield StoredRows(block["ids"], block["vectors"])

    @classmethod
    def write(cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target) -> None:
        tables = tables_of(place.path.name, blocks, adapter=target.adapter)
        first = next(tables)
        with replacing(place.path) as stream:
            write_parquet(stream, first.schema, chain([first], tables), **OF_VECTORS)


class FaissRows:
    """An open faiss index. It lives in the confined process, because faiss trusts the sizes that a file
    states."""

    def __init__(self, path: Path) -> None:
        self._index = open_faiss(path)
        self._ids = faiss_ids(path, self._index)

    def confined_facts(self) -> dict[str, Any]:
        return {"n": self._index.ntotal, "width": self._index.d, "own_ids": self._ids is not None}

    def read(self, start: int, stop: int) -> np.ndarray:
        return faiss_rows(self._index, self._ids, slice(start, stop))

    def ids(self, start: int, stop: int) -> np.ndarray | None:
        if self._ids is None:
            return None
        return self._ids[start:stop]


class FaissFile(VectorIndex):
    """A file of a faiss index. If the index has no ids but row numbers, the ids are the lines of
    ``<stem>.ids.txt`` beside the file.
    """

    def __init__(self, place: StorePlace) -> None:
        self.path = access.regular_file(place.path)
        self.name = place.path.stem
        self.stamp = FileStamp.of(self.path)
        self._rows = confined.Opened(FaissRows, self.path, ("faiss",))
        facts = self._rows.facts
        self.n = facts["n"]
        self.width = facts["width"]
        self._own_ids = facts["own_ids"]

    def close(self) -> None:
        self._rows.close()

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        for ids in self._ids(size, start):
            yield StoredRows(ids, self._rows.call("read", start=start, stop=start + len(ids)))
            start += len(ids)

    def _ids(self, size: int, start: int) -> Iterator[list[str]]:
        if not self._own_ids:
            return _ids_beside(self.path, self.n, size, start)
        blocks = (
            self._rows.call("ids", start=at, stop=min(self.n, at + size)) for at in range(start, self.n, size)
        )
        return (list(map(str, numbers.tolist())) for numbers in blocks)

    def holding(self, ids: Sequence[str]) -> Iterator[StoredRows]:
        """Yield blocks with the rows of these ids. faiss reads the whole file, but only these vectors are
        copied."""
        wanted = set(ids)
        for row, item in enumerate(chain.from_iterable(self._ids(BLOCK, 0))):
            if item in wanted:
                yield StoredRows([item], self._rows.call("read", start=row, stop=row + 1))

    @classmethod
    def written_files(cls, path: Path) -> list[Path]:
        return [path, _ids_path(path)]

    @classmethod
    def write(cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target) -> None:
        """Write a flat index for inner products, in the layout of faiss/impl/index_write.cpp. The ids are
        written to a file beside it."""
        n = target.n
        d = target.width
        header = b"IxFI" + _FAISS_HEADER.pack(d, n, 1 << 20, 1 << 20, True, 0) + struct.pack("<Q", n * d)
        _write(place.path, blocks, lambda stream: stream.write(header), target.replaces)
