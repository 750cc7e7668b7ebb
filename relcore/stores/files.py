"""A .npy file as an index: rows in C order, their ids in ``<stem>.ids.txt`` beside it, one per line, else
row numbers.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.files import confined
from relcore.files.arrays import faiss_ids, faiss_rows, npy_layout, open_faiss
from relcore.files.formats import ARROW, readable
from relcore.files.tables import ParquetTable
from relcore.runs.progress import Report, silent
from relcore.stores.index import (
    BLOCK,
    Place,
    StoredRows,
    Target,
    VectorIndex,
    block_of,
    id_column,
    tables_of,
    vector_column,
)


class NpyIndex(VectorIndex):
    """Reads with a buffer of one block; never maps the file, whose pages would count as memory."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = access.regular_file(path), path.stem
        with path.open("rb") as stream:
            (self.n, self.width), self._dtype, self._at = npy_layout(stream, path.stat().st_size, path.name)
        if not self.n:
            raise SpaceError(f"{path.name}: expected rows, got none; save the vectors again")

    @classmethod
    def open(cls, place: Place) -> NpyIndex:
        return cls(place.path)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        ids, row_bytes = IdsBeside(self.path, self.n), self.width * self._dtype.itemsize
        with self.path.open("rb") as stream, ids.lines(start) as lines:
            stream.seek(self._at + start * row_bytes)
            for first in range(start, self.n, size):
                m = min(size, self.n - first)
                values = np.fromfile(stream, self._dtype, m * self.width)
                if len(values) < m * self.width:
                    raise SpaceError(
                        f"{self.path.name}: expected {self.n:,} rows, got the end of the file; copy it again"
                    )
                with np.errstate(over="ignore"):
                    vectors = values.reshape(m, self.width).astype(np.float32, copy=False)
                yield StoredRows(ids.of(lines, first, m), vectors)

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        cls.need_target(place, target)
        path = place.path
        with replacing(path) as stream, replacing(ids_path(path)) as ids:
            header = {"descr": "<f4", "fortran_order": False, "shape": (target.n, target.width)}
            np.lib.format.write_array_header_1_0(stream, header)
            for block in blocks:
                stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
                ids.write(id_lines(path, block.ids))


class IdsBeside:
    """The ids beside a file of vectors, streamed: one line per row, or row numbers where there is no such
    file.
    """

    def __init__(self, path: Path, n: int) -> None:
        beside = ids_path(path)
        self._path = beside if access.beside(path, beside) and beside.is_file() else None
        self._n = n

    @contextmanager
    def lines(self, start: int) -> Iterator[TextIO | None]:
        """The open file behind its first `start` lines."""
        if self._path is None:
            yield None
            return
        with self._path.open(encoding="utf-8-sig", newline=None) as stream:
            for _ in islice(stream, start):
                pass
            yield stream

    def of(self, lines: TextIO | None, first: int, m: int) -> list[str]:
        """The ids of m rows from `first` on."""
        if lines is None:
            return [str(row) for row in range(first, first + m)]
        try:
            found = [line.rstrip("\n") for line in islice(lines, m)]
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{self._path.name}: expected UTF-8 text, got {error.reason}; save it as UTF-8"
            ) from None
        if len(found) < m or (first + m == self._n and lines.read(1)):
            got = f"{first + len(found):,}" if len(found) < m else "more"
            raise SpaceError(
                f"{self._path.name}: expected {self._n:,} ids, one per row, got {got}; write both from the"
                " same rows"
            )
        return found


def ids_path(path: Path) -> Path:
    """Where the ids of a file of vectors are: `load_space` looks for them there, too."""
    return path.with_name(f"{path.stem}.ids.txt")


def id_lines(path: Path, ids: list[str]) -> bytes:
    """Ids as lines."""
    text = "\n".join(ids)
    if text.count("\n") != len(ids) - 1 or "\r" in text:
        raise SpaceError(
            f"{path.name}: expected ids without line breaks, got one with a line break; write .parquet"
            " instead"
        )
    return f"{text}\n".encode()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name once it is whole and on the disk, and not at all after an error."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


# A .parquet file as an index: a column with a vector per row, a column of ids, and all others as payload.

_MOST_GROUP = 1 << 30  # a row group is unpacked as a whole


def parquet_facts(path: Path, column: str) -> dict[str, Any]:
    """Rows, width, and the columns of vectors and of ids."""
    table = ParquetTable(path)
    vectors, facts = vector_column(path.name, table.schema, column), table.file.metadata
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    largest = max((group.total_byte_size for group in groups), default=0)
    if largest > _MOST_GROUP or not table.n:
        got = f"one of {readable(largest)}" if table.n else "a file without rows"
        raise SpaceError(
            f"{path.name}: expected row groups of at most {readable(_MOST_GROUP)}, got {got}; write the file"
            " again, with row_group_size=16384"
        )
    width = len(next(table.file.iter_batches(1, columns=[vectors])).column(0)[0].as_py() or ())
    if not width:
        raise SpaceError(
            f"{path.name}: expected a vector in the first row, got an empty one; mend or remove the row"
        )
    return {"n": table.n, "width": width, "vectors": vectors, "ids": id_column(table.schema)}


def parquet_blocks(path: Path, size: int, start: int, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Row groups one after the other; those before `start` are not unpacked."""
    table = ParquetTable(path)
    first = bisect_right(table.starts, start) - 1
    row, groups = table.starts[first], list(range(first, table.file.num_row_groups))
    for batch in table.file.iter_batches(size, row_groups=groups, use_threads=False):
        block = batch.slice(max(0, start - row))
        row += batch.num_rows
        if block.num_rows:
            first = row - block.num_rows
            yield vars(block_of(path.name, block, first, facts["vectors"], facts["ids"], facts["width"]))


class ParquetIndex(VectorIndex):
    """Its rows come from the confined reader, block by block."""

    def __init__(self, path: Path, column: str) -> None:
        self.path, self.name = access.regular_file(path), column or path.stem
        self._facts = confined.run(parquet_facts, path, Any, ARROW, column=column)
        self.n, self.width = self._facts["n"], self._facts["width"]

    @classmethod
    def open(cls, place: Place) -> ParquetIndex:
        return cls(place.path, place.table)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        asked = {"size": size, "start": start, "facts": self._facts}
        for block in confined.stream(parquet_blocks, self.path, ARROW, **asked):
            yield StoredRows(block["ids"], block["vectors"], tuple(block["payload"]))

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        import pyarrow.parquet as parquet

        cls.need_target(place, target)
        path, tables = place.path, tables_of(place.path.name, blocks)
        first = next(tables)
        # Vectors hardly shrink: dictionaries and compression would cost more time than they save space.
        settings = {"use_dictionary": False, "compression": "none"}
        with replacing(path) as stream, parquet.ParquetWriter(stream, first.schema, **settings) as writer:
            for table in chain([first], tables):
                writer.write_table(table)


# A faiss index file as an index: faiss reads it, where it is confined, for it believes the sizes in a file.


class FaissRows:
    """An open index, for `FaissFile`."""

    def __init__(self, path: Path) -> None:
        self._index = open_faiss(path)
        self._ids = faiss_ids(path, self._index)

    def confined_facts(self) -> dict[str, Any]:
        return {"n": self._index.ntotal, "width": self._index.d, "own_ids": self._ids is not None}

    def read(self, start: int, stop: int) -> list[np.ndarray]:
        """Numbers (m,) and vectors (m, width) of these rows."""
        numbers = np.arange(start, stop) if self._ids is None else self._ids[start:stop]
        return [numbers, faiss_rows(self._index, self._ids, slice(start, stop))]


class FaissFile(VectorIndex):
    """Ids are those of the index; where they are row numbers, the lines of ``<stem>.ids.txt`` beside the
    file, if it exists.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = access.regular_file(path), path.stem
        self._rows = confined.Opened(FaissRows, path, ("faiss",))
        facts = self._rows.facts
        self.n, self.width, self._own_ids = facts["n"], facts["width"], facts["own_ids"]

    @classmethod
    def open(cls, place: Place) -> FaissFile:
        return cls(place.path)

    def close(self) -> None:
        self._rows.close()

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        beside = IdsBeside(self.path, self.n)
        with beside.lines(start) as lines:
            for first in range(start, self.n, size):
                m = min(size, self.n - first)
                numbers, vectors = self._rows.call("read", start=first, stop=first + m)
                ids = [str(one) for one in numbers.tolist()] if self._own_ids else beside.of(lines, first, m)
                yield StoredRows(ids, vectors)

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        """A flat index for inner products; ids go beside it. Its bytes are written here, so memory stays
        at one block.
        """
        cls.need_target(place, target)
        path = place.path
        with replacing(path) as stream, replacing(ids_path(path)) as ids:
            stream.write(flat_header(target.n, target.width))
            for block in blocks:
                stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
                ids.write(id_lines(path, block.ids))


_FAISS_HEADER = struct.Struct("<iqqq?i")  # d, n, two unused numbers, whether it is trained, metric


def flat_header(n: int, d: int) -> bytes:
    """What stands before the n × d float32 numbers of a flat index for inner products, as
    faiss/impl/index_write.cpp writes it.
    """
    return b"IxFI" + _FAISS_HEADER.pack(d, n, 1 << 20, 1 << 20, True, 0) + struct.pack("<Q", n * d)
