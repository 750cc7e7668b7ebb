"""Files of vectors as indexes: .npy and faiss with ids in ``<stem>.ids.txt`` beside them, and .parquet with a
payload.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

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

_MOST_GROUP = 1 << 30  # a row group is unpacked as a whole
_FAISS_HEADER = struct.Struct("<iqqq?i")  # d, n, two unused numbers, whether it is trained, metric


class NpyIndex(VectorIndex):
    """Rows in C order. Reads with a buffer of one block; never maps the file, whose pages would count as
    memory.
    """

    def __init__(self, place: Place) -> None:
        self.path, self.name = access.regular_file(place.path), place.path.stem
        with self.path.open("rb") as stream:
            size, name = self.path.stat().st_size, self.path.name
            (self.n, self.width), self._dtype, self._at = npy_layout(stream, size, name)
        if not self.n:
            raise SpaceError(f"{name}: expected rows, got none; save the vectors again")

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        with self.path.open("rb") as stream:
            stream.seek(self._at + start * self.width * self._dtype.itemsize)
            for ids in _ids_beside(self.path, self.n, size, start):
                values = np.fromfile(stream, self._dtype, len(ids) * self.width)
                if len(values) < len(ids) * self.width:
                    raise SpaceError(
                        f"{self.path.name}: expected {self.n:,} rows, got the end of the file; copy it again"
                    )
                with np.errstate(over="ignore"):
                    vectors = values.reshape(-1, self.width).astype(np.float32, copy=False)
                yield StoredRows(ids, vectors)

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        cls.need_target(place, target)
        header = {"descr": "<f4", "fortran_order": False, "shape": (target.n, target.width)}
        _write(place.path, blocks, lambda stream: np.lib.format.write_array_header_1_0(stream, header))


def _ids_path(path: Path) -> Path:
    """Where the ids of a file of vectors are: `load_space` looks for them there, too."""
    return path.with_name(f"{path.stem}.ids.txt")


def _ids_beside(path: Path, n: int, size: int, start: int) -> Iterator[list[str]]:
    """The ids beside a file of n vectors, block by block, streamed: one line per row, or row numbers where
    there is no such file.
    """
    beside, blocks = _ids_path(path), [range(first, min(n, first + size)) for first in range(start, n, size)]
    if not beside.is_file() or not access.beside(path, beside):
        yield from (list(map(str, rows)) for rows in blocks)
        return
    with beside.open(encoding="utf-8-sig", newline=None) as lines:
        try:
            for _ in islice(lines, start):
                pass
            for rows in blocks:
                ids = [line.rstrip("\n") for line in islice(lines, len(rows))]
                if len(ids) < len(rows) or (rows.stop == n and lines.read(1)):
                    got = f"{rows.start + len(ids):,}" if len(ids) < len(rows) else "more"
                    raise SpaceError(
                        f"{beside.name}: expected {n:,} ids, one per row, got {got}; write both from the same"
                        " rows"
                    )
                yield ids
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{beside.name}: expected UTF-8 text, got {error.reason}; save it as UTF-8"
            ) from None


def _write(path: Path, blocks: Iterable[StoredRows], write_header: Any) -> None:
    """A header and float32 rows, with their ids as lines beside them."""
    with _replacing(path) as stream, _replacing(_ids_path(path)) as ids:
        write_header(stream)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            text = "\n".join(block.ids)
            if text.count("\n") != len(block.ids) - 1 or "\r" in text:
                raise SpaceError(
                    f"{path.name}: expected ids without line breaks, got one with a line break; write"
                    " .parquet instead"
                )
            ids.write(f"{text}\n".encode())


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
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


def parquet_facts(path: Path, column: str) -> dict[str, Any]:
    """Rows, width, and the columns of vectors and of ids."""
    table = ParquetTable(path)
    vectors, facts = vector_column(path.name, table.schema, column), table.file.metadata
    sizes = (facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
    largest = max(sizes, default=0)
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
            at = row - block.num_rows
            yield vars(block_of(path.name, block, at, facts["vectors"], facts["ids"], facts["width"]))


class ParquetIndex(VectorIndex):
    """A column with a vector per row, a column of ids, and all others as payload. Its rows come from the
    confined reader, block by block.
    """

    def __init__(self, place: Place) -> None:
        self.path, self.name = access.regular_file(place.path), place.table or place.path.stem
        self._facts = confined.run(parquet_facts, self.path, libraries=ARROW, column=place.table)
        self.n, self.width = self._facts["n"], self._facts["width"]

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
        tables = tables_of(place.path.name, blocks)
        first = next(tables)
        # Vectors hardly shrink: dictionaries and compression would cost more time than they save space.
        settings = {"use_dictionary": False, "compression": "none"}
        with (
            _replacing(place.path) as stream,
            parquet.ParquetWriter(stream, first.schema, **settings) as writer,
        ):
            for table in chain([first], tables):
                writer.write_table(table)


class FaissRows:
    """An open index of faiss, which believes the sizes in a file and so is confined."""

    def __init__(self, path: Path) -> None:
        self._index = open_faiss(path)
        self._ids = faiss_ids(path, self._index)

    def confined_facts(self) -> dict[str, Any]:
        return {"n": self._index.ntotal, "width": self._index.d, "own_ids": self._ids is not None}

    def read(self, start: int, stop: int) -> list[Any]:
        """Numbers (m,) and vectors (m, width) of these rows."""
        numbers = None if self._ids is None else self._ids[start:stop]
        return [numbers, faiss_rows(self._index, self._ids, slice(start, stop))]


class FaissFile(VectorIndex):
    """Ids are those of the index; where they are row numbers, the lines of ``<stem>.ids.txt`` beside the
    file, if it exists.
    """

    def __init__(self, place: Place) -> None:
        self.path, self.name = access.regular_file(place.path), place.path.stem
        self._rows = confined.Opened(FaissRows, self.path, ("faiss",))
        facts = self._rows.facts
        self.n, self.width, self._own_ids = facts["n"], facts["width"], facts["own_ids"]

    def close(self) -> None:
        self._rows.close()

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        for first in range(start, self.n, size) if self._own_ids else ():
            numbers, vectors = self._rows.call("read", start=first, stop=min(self.n, first + size))
            yield StoredRows(list(map(str, numbers.tolist())), vectors)
        for ids in () if self._own_ids else _ids_beside(self.path, self.n, size, start):
            _, vectors = self._rows.call("read", start=start, stop=start + len(ids))
            start += len(ids)
            yield StoredRows(ids, vectors)

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        """A flat index for inner products, as faiss/impl/index_write.cpp writes it; ids go beside it. Its
        bytes are written here, so memory stays at one block.
        """
        cls.need_target(place, target)
        n, d = target.n, target.width
        header = b"IxFI" + _FAISS_HEADER.pack(d, n, 1 << 20, 1 << 20, True, 0) + struct.pack("<Q", n * d)
        _write(place.path, blocks, lambda stream: stream.write(header))
