"""A .npy file as an index: rows in C order, their ids in ``<stem>.ids.txt`` beside it, one per line, else
row numbers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.files.arrays import npy_layout
from relcore.files.faiss_index import FlatLayout, flat_header, flat_layout
from relcore.files.places import Place
from relcore.files.rows import readable
from relcore.files.tables import opened_table
from relcore.runs.progress import Report, silent
from relcore.stores.index import (
    BLOCK,
    Hits,
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
        self._layout = npy_layout(path)
        self.n, self.width = self._layout.n, self._layout.d

    @classmethod
    def open(cls, place: Place) -> NpyIndex:
        return cls(place.path)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        layout, ids = self._layout, IdsBeside(self.path, self.n)
        with self.path.open("rb") as stream, ids.lines(start) as lines:
            stream.seek(layout.at + start * layout.d * layout.dtype.itemsize)
            for first in range(start, self.n, size):
                m = min(size, self.n - first)
                found = np.fromfile(stream, layout.dtype, m * layout.d)
                if len(found) < m * layout.d:
                    raise SpaceError(
                        f"{self.path.name}: expected {self.n:,} rows, got the end of the file; copy it again"
                    )
                with np.errstate(over="ignore"):
                    vectors = found.reshape(m, layout.d).astype(np.float32, copy=False)
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


class ParquetIndex(VectorIndex):
    """Reads row groups one after the other; those before `start` are not unpacked."""

    def __init__(self, path: Path, column: str) -> None:
        self.path, self.name = access.regular_file(path), column or path.stem
        with opened_table(path) as file:
            schema, facts = file.schema_arrow, file.metadata
            self._vectors, self._ids = vector_column(path.name, schema, column), id_column(schema)
            self.n = facts.num_rows
            groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
            largest = max((group.total_byte_size for group in groups), default=0)
            if largest > _MOST_GROUP or not self.n:
                got = f"one of {readable(largest)}" if self.n else "a file without rows"
                raise SpaceError(
                    f"{path.name}: expected row groups of at most {readable(_MOST_GROUP)}, got {got}; write"
                    " the file again, with row_group_size=16384"
                )
            self._starts = [sum(group.num_rows for group in groups[:number]) for number in range(len(groups))]
            first = next(file.iter_batches(1, columns=[self._vectors], use_threads=False))
            value = first.column(0)[0].as_py()
        self.width = len(value or ())
        if not self.width:
            raise SpaceError(
                f"{path.name}: expected a vector in the first row, got an empty one; mend or remove the row"
            )

    @classmethod
    def open(cls, place: Place) -> ParquetIndex:
        return cls(place.path, place.table)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        whole = [number for number, first in enumerate(self._starts) if first <= start][-1]
        row = self._starts[whole]
        with opened_table(self.path) as file:
            groups = list(range(whole, len(self._starts)))
            for batch in file.iter_batches(size, row_groups=groups, use_threads=False):
                block = batch.slice(max(0, start - row))
                row += batch.num_rows
                if block.num_rows:
                    yield block_of(
                        self.path.name, block, row - block.num_rows, self._vectors, self._ids, self.width
                    )

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


# A faiss index file as an index: Flat, IDMap and HNSWFlat are read here; IVF by faiss, once a process of its
# own could.
#
# faiss believes the sizes that a file states, and a damaged one can end the process that reads it. So a file
# that is not one of whole vectors in a row is opened by another process first.

_PROBE = """
import faiss, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
except (ImportError, OSError, ValueError):
    pass  # a system without such limits
faiss.read_index(sys.argv[1], faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
"""
_PROBE_SECONDS = 300
_PROBE_BYTES = (
    6 << 30
)  # of addresses, beside twice the file: the libraries alone take two or three gigabytes of them


class FaissFile(VectorIndex):
    """Ids are those of the index; where they are row numbers, the lines of ``<stem>.ids.txt`` beside the
    file, if it exists.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = access.regular_file(path), path.stem
        self._loaded: Any = None
        self._layout = _layout(path)
        if self._layout:
            self.n, self.width = self._layout.n, self._layout.d
            self._own_ids = self._layout.ids_at is not None
        else:
            index = self._faiss()
            self.n, self.width = index.ntotal, index.d
            self._rows = _stored_ids(path, index)
            self._own_ids = not np.array_equal(self._rows, np.arange(self.n))

    @classmethod
    def open(cls, place: Place) -> FaissFile:
        return cls(place.path)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        beside = IdsBeside(self.path, self.n)
        with beside.lines(start) as lines:
            for first in range(start, self.n, size):
                m = min(size, self.n - first)
                numbers, vectors = self._read(first, m)
                ids = [str(one) for one in numbers.tolist()] if self._own_ids else beside.of(lines, first, m)
                yield StoredRows(ids, vectors)

    def _read(self, first: int, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (m,) and vectors (m, width) of m rows from `first` on."""
        if not self._layout:
            numbers = self._rows[first : first + m]
            return numbers, self._faiss().reconstruct_batch(numbers)
        with self.path.open("rb") as stream:
            stream.seek(self._layout.vectors_at + 4 * first * self.width)
            vectors = np.fromfile(stream, "<f4", m * self.width).reshape(m, self.width)
            numbers = np.arange(first, first + m)
            if self._layout.ids_at is not None:
                stream.seek(self._layout.ids_at + 8 * first)
                numbers = np.fromfile(stream, "<i8", m)
        return numbers, vectors.astype(np.float32, copy=False)

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """By the index itself, approximate where it is, by its own metric; distances come back negative."""
        import faiss

        index = self._faiss()
        scores, rows = index.search(np.ascontiguousarray(self._checked(queries)), k)
        if index.metric_type != faiss.METRIC_INNER_PRODUCT:
            scores = -scores
        ids = rows.astype(str).astype(object)
        if not self._own_ids and ids_path(self.path).is_file():
            ids = np.array(self.ids(), object)[rows]
        ids[rows < 0], scores[rows < 0] = "", -np.inf
        return Hits(ids, scores)

    def _faiss(self) -> Any:
        import faiss

        if self._loaded is None:
            flags = 0 if self._layout else faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
            self._loaded = faiss.read_index(str(self.path), flags)
        return self._loaded

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


def _layout(path: Path) -> FlatLayout | None:
    """Of whole vectors in a row; None for another index that faiss reads."""
    try:
        with path.open("rb") as stream:
            return flat_layout(path, stream)
    except SpaceError as error:
        if "got an IVF index" not in str(error):
            raise
    command = [sys.executable, "-c", _PROBE, str(path), str(_PROBE_BYTES + 2 * path.stat().st_size)]
    try:
        failed = (
            subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False).returncode != 0
        )
    except subprocess.TimeoutExpired:
        failed = True
    if failed:
        raise SpaceError(
            f"{path.name}: expected an IVF index that faiss can read, got a damaged one; write or copy it"
            " again"
        )
    return None


def _stored_ids(path: Path, index: Any) -> np.ndarray:
    """The ids (n,) int64 in ascending order of an IVF index of whole vectors, ready to be reconstructed."""
    import faiss

    found = faiss.downcast_index(index)
    if not isinstance(found, faiss.IndexIVFFlat):
        raise SpaceError(
            f"{path.name}: expected an IVF index of whole vectors (IVF…,Flat), got {type(found).__name__}; "
            "take the vectors from where the index was made"
        )
    lists = [
        faiss.rev_swig_ptr(found.invlists.get_ids(one), found.get_list_size(one))
        for one in range(found.nlist)
    ]
    ids = np.sort(np.concatenate([one.copy() for one in lists])) if lists else np.empty(0, np.int64)
    if len(np.unique(ids)) != len(ids):
        raise SpaceError(f"{path.name}: expected distinct ids, got some twice; write the index again")
    found.set_direct_map_type(faiss.DirectMap.Hashtable)
    return ids
