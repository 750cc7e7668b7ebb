"""Shard: one file of a sharded space, read in blocks; what it holds is known from its header."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.base.numbers import counted
from relcore.base.text import visible
from relcore.files.arrays import npy_layout
from relcore.files.rows import checked_ids, checked_labels, readable
from relcore.files.tables import ARROW_SUFFIXES, stored
from relcore.runs.digest import digest_of
from relcore.runs.store import orphaned, own_name
from relcore.stores.index import id_column, matrix_of, vector_column

BLOCK_BYTES = 32 * 2**20  # of one space; two are read side by side


@dataclass(frozen=True)
class Shard:
    """One file of a sharded space; a subclass per format reads it.

    Attributes
    ----------
    name : str
        Of the file, such as "part-00003.npy".
    url : str
        Where it is: a path, or an address that fsspec opens.
    n, width : int
        Rows, and numbers per row.
    start : int
        Number of its first row in the whole space. Rows without ids of their own have their number in the
        whole space as id, the ids that one file with all rows would give them.
    stamp : str
        Changes when the file is written again: from its size and its time, not from its content.
    ids, labels : str
        Where the file keeps them: a column, or the address of a file beside it; "" where it keeps none.
    vectors : str
        The column of vectors, of a table.
    """

    name: str
    url: str
    n: int
    width: int
    start: int = 0
    stamp: str = ""
    ids: str = ""
    labels: str = ""
    vectors: str = ""
    written: ClassVar[str] = "npy"  # the format in which rows that are made of its rows are written

    @staticmethod
    def header(url: str, size: int, names: Sequence[str]) -> dict[str, Any]:
        """What the header of the file at an address tells; files with these `names` are beside it."""
        raise NotImplementedError

    def read(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        """`blocks`, whose numbers of rows need not be right."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (m, width) of these rows, counted from the shard's first row, in any order."""
        out = np.empty((len(rows), self.width), dtype=np.float32)
        for block in self.blocks() if len(rows) else ():
            here = np.flatnonzero((rows >= block.first) & (rows < block.first + len(block.vectors)))
            out[here] = block.vectors[rows[here] - block.first]
        return out

    def blocks(self, rows: int = 0, labels: bool = False) -> Iterator[ShardBlock]:
        """All rows in their order, in blocks of exactly this many rows but for the last; default: 32 MB.

        Raises
        ------
        SpaceError
            The file has changed, is damaged, or cannot be read.
        """
        first = 0
        for block in self.read(rows or rows_at_once(self.width), labels):
            yield ShardBlock(first, block.vectors, block.ids, block.labels)
            first += len(block.vectors)
        if first != self.n:
            raise SpaceError(
                f"{self.name}: expected {self.n:,} rows, as its header says, got {first:,}; copy the shard"
                " again"
            )

    def ids_of(self, block: ShardBlock) -> np.ndarray:
        """The ids of a block's rows, (m,) of strings."""
        if block.ids is not None:
            return np.array(block.ids, dtype=object)
        first = self.start + block.first
        return np.array([str(row) for row in range(first, first + len(block.vectors))], dtype=object)


@dataclass(frozen=True, eq=False)
class ShardBlock:
    """Consecutive rows of a shard: vectors (m, width) float32, and ids and labels where the shard has them
    and they are read.

    `first` is counted from the shard's first row.
    """

    first: int
    vectors: np.ndarray
    ids: list[str] | None = None
    labels: list[str] | None = None


def rows_at_once(*widths: int) -> int:
    """The rows of a block, such that no space's block takes more than 32 MB."""
    return max(1, BLOCK_BYTES // (4 * max(widths)))


def aligned(shards: tuple[Shard, ...], labels: bool = False) -> Iterator[tuple[ShardBlock, ...]]:
    """Blocks of the same rows of several shards, side by side."""
    rows = rows_at_once(*(shard.width for shard in shards))
    return zip(*(shard.blocks(rows, labels) for shard in shards), strict=True)


def finite(shard: Shard, block: ShardBlock) -> np.ndarray:
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
            f"{shard.name}, row {block.first + bad[0] + 1:,}: expected finite numbers, got NaN or infinite"
            f" values in {counted(len(bad), 'row')} of its block, first {quote(ids)}; drop or mend these rows"
            " in this shard, the results of the other shards are kept"
        )
    return block.vectors


# Files of shards, here or at an address that fsspec opens (``s3://``, ``gs://``, ``memory://``, …).

_CHANGED = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "md5Hash", "created")
_PARTIAL = ".partial"


def is_address(text: str) -> bool:
    """Whether this names something that fsspec opens, rather than a path of this machine."""
    return "://" in text


def filesystem(place: str) -> tuple[Any, str]:
    """The fsspec file system of an address or a path, and the path in it.

    Raises
    ------
    SpaceError
        An address while the app is shared, a protocol that is not installed, a path that whoever asks may not
        read.
    """
    with extra():
        from fsspec.core import url_to_fs
    if not is_address(place):
        return url_to_fs(os.path.abspath(access.allowed(place)))
    access.need_own_machine(place)
    try:
        return url_to_fs(place)
    except (ImportError, ValueError) as error:
        raise SpaceError(
            f"{place!r:.200}: expected an address that fsspec opens, got {error!s:.200}; install what it"
            " names"
        ) from error


@contextmanager
def opened(url: str) -> Iterator[BinaryIO]:
    """A file, open for reading in binary; errors name it."""
    files, path = filesystem(url)
    try:
        with files.open(path, "rb") as stream:
            yield stream
    except OSError as error:
        said = error.strerror or str(error)
        raise SpaceError(
            f"{url!r:.200}: expected a file that can be read, got {said:.200}; check the address"
        ) from error


def lines(url: str) -> Iterator[str]:
    """The lines of a UTF-8 text file."""
    import io

    with opened(url) as stream:
        try:
            for line in io.TextIOWrapper(stream, encoding="utf-8-sig", newline=None):
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{url!r:.200}: expected UTF-8 text, got {error.reason}; save it as UTF-8"
            ) from None


def listed(place: str) -> dict[str, dict[str, Any]]:
    """The files of a folder by name, with what the file system says of each; hidden ones are left out.

    Raises
    ------
    SpaceError
        No such folder.
    """
    files, path = filesystem(place)
    try:
        found = files.ls(path, detail=True)
    except (OSError, ValueError) as error:
        raise SpaceError(
            f"{place!r:.200}: expected a folder of shards, got none there; check the spelling"
        ) from error
    kept = {
        one["name"].rstrip("/").rsplit("/", 1)[-1]: one
        for one in found
        if one["type"] == "file" or one.get("islink")
    }
    readable = {
        name: one
        for name, one in kept.items()
        if is_address(place) or access.beside(Path(path) / "x", Path(path) / name)
    }
    return {name: one for name, one in readable.items() if not name.startswith((".", "_"))}


def stamp_of(facts: dict[str, Any]) -> str:
    """Changes when a file is written again: a digest of its size and of its time or the tag that the store
    gives it.
    """
    return digest_of(
        str(facts.get("size")), [str(facts[name]) for name in _CHANGED if facts.get(name) is not None]
    )


def beside(place: str, name: str) -> str:
    """The address of a file in a folder."""
    return f"{place.rstrip('/')}/{name}"


@contextmanager
def replacing(url: str) -> Iterator[BinaryIO]:
    """A file that appears under its name once it is whole, and not at all after an error.

    A path of this machine is written beside and renamed; stores of objects show an object once it is closed.
    """
    files, path = filesystem(url)
    if is_address(url):
        with files.open(path, "wb") as stream:
            try:
                yield stream
            except BaseException:
                with suppress(Exception):
                    stream.discard()
                raise
        return
    folder, name = os.path.split(path)
    _drop_orphans(Path(folder), name)
    # A name of its own: a worker that was given up may still write. Hidden: what a killed one leaves is no
    # part of a shard.
    partial = os.path.join(folder, f".{name}.{own_name()}{_PARTIAL}")
    try:
        with open(partial, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _drop_orphans(folder: Path, name: str) -> None:
    """Remove what killed writers of this file left."""
    for partial in folder.glob(f".{escape(name)}.*{_PARTIAL}"):
        with suppress(OSError):  # another writer removes it, too
            if orphaned(partial, partial.name.removeprefix(f".{name}.").removesuffix(_PARTIAL)):
                partial.unlink()


# A .npy file as a shard; ids and labels in ``<stem>.ids.txt`` and ``<stem>.labels.txt`` beside it, one per
# line.


_READ_ALONE = 64  # one row of this many: more are read with all others


@dataclass(frozen=True)
class NpyShard(Shard):
    """Reads with a buffer of one block; a few rows by number are read alone."""

    @staticmethod
    def header(url: str, size: int, names: Sequence[str]) -> dict[str, Any]:
        folder, name = url.rsplit("/", 1)
        with opened(url) as stream:
            (n, width), _, _ = npy_layout(stream, size, name)
        stem = name.rsplit(".", 1)[0]
        columns = {what: f"{stem}.{what}.txt" for what in ("ids", "labels")}
        found = {what: beside(folder, text) for what, text in columns.items() if text in names}
        return {"n": n, "width": width, **found}

    def read(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        ids = lines(self.ids) if self.ids else None
        classes = lines(self.labels) if self.labels and labels else None
        with opened(self.url) as stream:
            (n, width), dtype, at = npy_layout(stream, stream.seek(0, 2), self.name)
            stream.seek(at)
            for first in range(0, n, rows):
                m = min(rows, n - first)
                texts = [None if column is None else self._some(column, m) for column in (ids, classes)]
                if texts[0] is not None and "" in texts[0]:
                    row = first + texts[0].index("") + 1
                    raise SpaceError(
                        f"{self.name}, row {row:,}: expected an id, got an empty line; write an id for"
                        " every row"
                    )
                yield ShardBlock(first, self._read(stream, m, width, dtype), *texts)
        if any(column is not None and next(column, None) is not None for column in (ids, classes)):
            raise self._unpaired("more")

    def take(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) * _READ_ALONE > self.n:
            return super().take(rows)
        out = np.empty((len(rows), self.width), dtype=np.float32)
        with opened(self.url) as stream:
            (_, width), dtype, at = npy_layout(stream, stream.seek(0, 2), self.name)
            for place in np.argsort(rows, kind="stable"):
                stream.seek(at + int(rows[place]) * width * dtype.itemsize)
                out[place] = self._read(stream, 1, width, dtype)
        return out

    def _read(self, stream: Any, m: int, width: int, dtype: np.dtype) -> np.ndarray:
        raw = stream.read(m * width * dtype.itemsize)
        if len(raw) < m * width * dtype.itemsize:
            raise SpaceError(f"{self.name}: expected {self.n:,} rows, got the end of the file; copy it again")
        with np.errstate(over="ignore"):
            return np.frombuffer(raw, dtype).reshape(m, width).astype(np.float32, copy=False)

    def _some(self, column: Iterator[str], m: int) -> list[str]:
        found = list(islice(column, m))
        if len(found) < m:
            raise self._unpaired("fewer")
        return found

    def _unpaired(self, got: str) -> SpaceError:
        return SpaceError(
            f"{self.name}: expected {self.n:,} ids or labels beside it, one per row, got {got}; write both"
            " again"
        )


# A .parquet, .arrow or .feather file as a shard: one column of vectors, and columns of ids and labels where
# it has them.

_MOST_GROUP = 1 << 29  # a row group or a batch is unpacked as a whole
_LABELS = ("label", "labels")


@dataclass(frozen=True)
class TableShard(Shard):
    """Reads row groups, or batches, one after the other."""

    written: ClassVar[str] = "parquet"

    @staticmethod
    def header(url: str, size: int, names: Sequence[str]) -> dict[str, Any]:
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

    def read(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        held, n_held, first = [], 0, 0
        wanted = dict.fromkeys(filter(None, (self.vectors, self.ids, self.labels if labels else "")))
        with _table(self.url) as table:
            for batch in table.batches(rows, list(wanted)):
                held.append(self._block(batch, first))
                first += batch.num_rows
                n_held += batch.num_rows
                while n_held >= rows:
                    whole = _joined(held)
                    yield _cut(whole, slice(0, rows))
                    held, n_held = [_cut(whole, slice(rows, None))], n_held - rows
        if n_held:
            yield _joined(held)

    def _block(self, batch: Any, first: int) -> ShardBlock:
        vectors = matrix_of(self.name, batch.column(self.vectors), first, self.width)
        ids = checked_ids(batch.column(self.ids).to_pylist(), self.name) if self.ids else None
        labels = None
        if self.labels and self.labels in batch.schema.names:
            labels = checked_labels(stored(batch.column(self.labels)).to_pylist(), self.name)
        return ShardBlock(first, vectors, ids, labels)


FORMATS = {".npy": NpyShard, ".parquet": TableShard, ".arrow": TableShard, ".feather": TableShard}


class _Parquet:
    def __init__(self, file: Any) -> None:
        facts = file.metadata
        self._file, self.schema, self.n = file, file.schema_arrow, facts.num_rows
        sizes = (facts.row_group(number).total_byte_size for number in range(facts.num_row_groups))
        self.largest = max(sizes, default=0)

    def batches(self, rows: int, columns: list[str]) -> Iterator[Any]:
        return self._file.iter_batches(rows, columns=columns, use_threads=False)


class _Arrow:
    """The stream form, or the file form, whose batches are a stream after eight bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._begin = 8 if stream.read(6) == b"ARROW1" else 0
        self.schema, self.n, self.largest = self._reader().schema, 0, 0
        for batch in self._reader():
            self.n, self.largest = self.n + batch.num_rows, max(self.largest, batch.nbytes)

    def _reader(self) -> Any:
        import pyarrow as pa

        self._stream.seek(self._begin)
        return pa.ipc.open_stream(pa.PythonFile(self._stream))

    def batches(self, rows: int, columns: list[str]) -> Iterator[Any]:
        for batch in self._reader():
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
            if name.lower().endswith(ARROW_SUFFIXES):
                yield _Arrow(stream)
            else:
                with parquet.ParquetFile(
                    stream, pre_buffer=False
                ) as file:  # else it holds every row group that was read
                    yield _Parquet(file)
        except (pa.ArrowException, ValueError, OverflowError) as error:
            if isinstance(error, SpaceError):
                raise
            said = visible(error, 200)
            raise SpaceError(
                f"{name}: expected a table, got one that cannot be read ({said}); write or copy it again"
            ) from error


def _joined(blocks: list[ShardBlock]) -> ShardBlock:
    if len(blocks) == 1:
        return blocks[0]
    columns = []
    for what in ("ids", "labels"):
        parts = [getattr(block, what) for block in blocks]
        columns.append(None if parts[0] is None else [text for part in parts for text in part])
    return ShardBlock(blocks[0].first, np.concatenate([block.vectors for block in blocks]), *columns)


def _cut(block: ShardBlock, rows: slice) -> ShardBlock:
    ids, labels = (None if column is None else column[rows] for column in (block.ids, block.labels))
    return ShardBlock(block.first + (rows.start or 0), block.vectors[rows], ids, labels)
