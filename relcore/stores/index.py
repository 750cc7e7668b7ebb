"""`StorePlace`, the place of a store of vectors, and `VectorIndex`, the interface that reads and writes
stores block by block. Files and tables of LanceDB implement it here; plugins add other stores."""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from relcore.base import access
from relcore.base.errors import SpaceError, extra, quote
from relcore.base.names import INDEXES, PLUGIN_STORES
from relcore.base.rows import FileStamp
from relcore.base.text import as_lines, visible
from relcore.base.writing import new_folder, replacing
from relcore.files import confined
from relcore.files.arrays import faiss_ids, faiss_rows, npy_layout, npy_rows, open_faiss
from relcore.files.formats import ARROW, check_size, checked_ids, most_unpacked, readable, usable_bytes
from relcore.files.reading import OF_VECTORS, write_parquet
from relcore.files.tables import ParquetTable, is_vectors, vectors_of
from relcore.spaces.space import LatentSpace

BLOCK = 4096


@dataclass(frozen=True)
class StorePlace:
    """The place of a store of vectors. On a command line it is ``lancedb:FOLDER#TABLE`` or
    ``FILE.parquet#COLUMN``.

    Attributes
    ----------
    kind : str
        The kind of store, a name in `relcore.base.names.INDEXES`.
    where : str
        The path of a file or a folder, or the address of a server.
    table : str
        The collection or table. For a parquet file, the column of vectors; "" if the file has only one.
    """

    kind: str
    where: str
    table: str = ""

    def __post_init__(self) -> None:
        if self.kind in PLUGIN_STORES and self.kind not in INDEXES:
            access.need_own_machine(self.text)
            raise SpaceError(
                f"{self.kind}: expected the plugin of this store, which is not installed; in a checkout of"
                f' Relscope run: pip install "./plugins/stores[{self.kind}]"'
            )
        if self.kind not in INDEXES:
            raise SpaceError(f"index: expected one of {quote(INDEXES)}, got {self.kind!r:.80}")
        if not isinstance(self.where, str) or not isinstance(self.table, str) or not self.where:
            raise SpaceError(f"{self.kind}: expected a path or an address, got {self.where!r:.80}")
        if not self.is_file and not self.table:
            raise SpaceError(f"{self.text}: expected the name of a collection or table, got none; add #NAME")
        if "://" in self.where and not self.address:
            access.need_own_machine(self.text)
            raise SpaceError(
                f"{self.text}: expected a path, got an address; export the vectors there to a file"
            )

    @property
    def text(self) -> str:
        table = ""
        if self.table:
            table = f"#{self.table}"
        return f"{self.kind}:{no_secrets(self.where)}{table}"

    @property
    def address(self) -> str:
        """The address of a server; "" for a file or folder. Only stores of plugins have addresses."""
        if "://" in self.where and INDEXES[self.kind].plugin:
            return self.where
        return ""

    @property
    def is_file(self) -> bool:
        return bool(INDEXES[self.kind].suffixes)

    @property
    def path(self) -> Path:
        """The path, if this session may use it."""
        return access.readable_path(self.where)

    def need_access(self) -> None:
        """Raise a SpaceError if the app is shared and the place is an address or the folder of a database."""
        if self.is_file:
            access.readable_path(self.where)
        else:
            access.need_own_machine(self.text)


def no_secrets(text: str) -> str:
    """The text without the passwords in its addresses.

    Examples
    --------
    >>> no_secrets("postgresql://me:secret@host/base?password=secret&sslmode=require")
    'postgresql://me:…@host/base?password=…&sslmode=require'
    """
    text = re.sub(r"(://[^:/@\s]*:)[^\s]*@", r"\1…@", text)
    return re.sub(r"(?i)((?:password|token|api_?key)=)[^&\s]+", r"\1…", text)


def parse_place(text: str) -> StorePlace | None:
    """The place of the store that a user names by its kind or by the suffix of its file. None if the text
    names no store.

    Examples
    --------
    >>> parse_place("lancedb:/data/base#news")
    StorePlace(kind='lancedb', where='/data/base', table='news')
    >>> parse_place("old.parquet#embedding")
    StorePlace(kind='parquet', where='old.parquet', table='embedding')
    """
    kind, colon, rest = text.partition(":")
    known = kind in INDEXES or (kind in PLUGIN_STORES and "#" in rest)
    if not colon or not known or (kind in INDEXES and rest.startswith("//") and INDEXES[kind].plugin):
        rest = text
        (file, _, column) = text.partition("#")
        kind = _kind_of(file)
        if not kind or "=" in column or access.expand_home(text).exists():
            kind = _kind_of(text)
            return StorePlace(kind, text) if kind else None
    if "#" in rest:
        where, _, table = rest.rpartition("#")
    else:
        where = rest
        _ = ""
        table = ""
    return StorePlace(kind, where, table)


def _kind_of(file: str) -> str:
    suffix = Path(file).suffix.lower()
    return next((kind for kind, entry in INDEXES.items() if suffix in entry.suffixes), "")


@dataclass(frozen=True, eq=False)
class StoredRows:
    """A block of m rows of an index, with vectors (m, d) float32. The payload is () if the store has none."""

    ids: list[str]
    vectors: np.ndarray
    payload: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Target:
    """What is to be written: the number and the width of the rows, and whether they may be added to existing
    ones. Then rows with the same ids are replaced. `adapter` is the digest of the adapter that mapped the
    rows, "" if none did or it is unknown."""

    n: int
    width: int
    add: bool = False
    adapter: str = ""


class VectorIndex(AbstractContextManager["VectorIndex"], ABC):
    """Vectors with ids in a file or a database, opened for reading."""

    name: str
    n: int
    width: int
    adapter: str = ""  # the digest of the adapter that mapped the rows; "" if none is recorded
    stamp: FileStamp | None = None  # the file must not change while it is open; None if the index is no file

    @classmethod
    def open(cls, place: StorePlace) -> VectorIndex:
        """Open the index at a place for reading. Nothing is changed.

        Raises
        ------
        SpaceError
            The file is missing or damaged, the folder is locked, the server does not answer, or an extra is
            not installed.
        """
        return cls(place)

    @abstractmethod
    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        """Yield the rows from `start` on, at most `size` at once. Their order is the same each time."""

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        """Yield the rows from `start` on, like `read`, and check that there are as many as the store
        announced.

        Raises
        ------
        SpaceError
            There are more rows or fewer. A surplus block is not yielded.
        """
        row = start
        for block in self.read(size, start):
            row += len(block.ids)
            if self.stamp:
                self.stamp.need_same()
            if row > self.n:
                break
            yield block
        if row != self.n:
            or_more = ""
            if row > self.n:
                or_more = " or more"
            got = f"{row:,}{or_more}"
            raise SpaceError(
                f"{self.name}: expected {self.n:,} rows, as announced, got {got}; try again while nothing"
                " writes to this store, or restore the store"
            )

    def holding(self, ids: Sequence[str]) -> Iterator[StoredRows]:
        """Yield blocks that contain the rows with these ids and as few other rows as the store allows. This
        base method yields all rows."""
        return self.blocks()

    @classmethod
    def need_target(cls, place: StorePlace, target: Target) -> None:
        """Raise those errors of `write` that are known before the first row. This base method is for
        files."""
        folder = place.path.absolute().parent
        if not folder.is_dir():
            raise SpaceError(
                f"{place.path.name}: expected an existing folder, got {str(folder)!r:.200}; create it"
            )
        for path in cls.written_files(place.path):
            need_new(path.name or place.text, path.exists(), target, can_add=False)

    @classmethod
    def written_files(cls, path: Path) -> list[Path]:
        """The files that `write` makes at a path."""
        return [path]

    @classmethod
    @abstractmethod
    def write(cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target) -> None:
        """Write rows to a new place, and record the adapter that mapped them. With ``target.add``, they may
        be added to an existing place, where they replace the rows with the same ids.

        Raises
        ------
        SpaceError
            The place exists already, its rows have another width or another adapter, or the store cannot add
            rows.
        """

    def close(self) -> None:
        """Release locks and connections."""

    def __exit__(self, *_: object) -> None:
        self.close()


def need_width(name: str, got: int, target: Target) -> None:
    if got != target.width:
        raise SpaceError(
            f"{name}: expected rows of width {got}, as those that are there, got {target.width}; use a new"
            " place"
        )


def need_adapter(name: str, recorded: str, target: Target) -> None:
    """Raise a SpaceError if rows were mapped by another adapter than those that are there. Vectors of two
    adapters cannot be compared, even if they have equal widths."""
    if recorded and recorded != target.adapter:
        got = "rows that no known adapter mapped"
        if target.adapter:
            got = f"rows of the adapter {target.adapter[:8]}"
        raise SpaceError(
            f"{name}: expected rows of the adapter {recorded[:8]}, as those that are there, got {got}; map"
            " them by that adapter, or use a new place"
        )


def need_new(name: str, exists: bool, target: Target, can_add: bool = True) -> None:
    if exists and not (can_add and target.add):
        or_add = ""
        if can_add:
            or_add = ", or allow adding rows with --add"
        remedy = "choose another name" + or_add
        raise SpaceError(f"{name}: expected a new place, got one that exists already; {remedy}")


def open_index(place: StorePlace) -> VectorIndex:
    """Open the index at a place."""
    place.need_access()
    return INDEXES[place.kind].load().open(place)


def need_target(place: StorePlace, target: Target) -> None:
    """Raise those errors of `write_index` that are known before the first row."""
    place.need_access()
    INDEXES[place.kind].load().need_target(place, target)


def write_index(place: StorePlace, blocks: Iterable[StoredRows], target: Target) -> None:
    """Write rows to a place."""
    place.need_access()
    entry = INDEXES[place.kind]
    try:
        if place.is_file:
            entry.load().need_target(place, target)
        entry.load().write(place, blocks, target)
    except (SpaceError, OSError):
        raise
    except Exception as error:
        if not entry.plugin:
            raise
        got = visible(f"{type(error).__name__}: {error}", 200)
        raise SpaceError(
            f"{place.text}: expected a store that takes rows, got an error of the package {entry.plugin!r},"
            f" {got}; tell its authors"
        ) from error


def load_rows(place: StorePlace, limit: int | None = None, max_bytes: int | None = None) -> LatentSpace:
    """The first rows of an index as a space, with their ids and payload.

    Raises
    ------
    SpaceError
        The rows do not fit into memory, or the store announces more rows than its size can contain.
    """
    with open_index(place) as index:
        if limit is None:
            n = index.n
        else:
            n = min(index.n, limit)
        most = max_bytes
        if max_bytes is None:
            most = usable_bytes()
        if not place.address:
            most = most_unpacked(place.path, most)
        check_size(Path(index.name), n, index.width, most)
        vectors = np.empty((n, index.width), np.float32)
        ids = []
        payload = []
        for block in index.blocks():
            some = slice(None, n - len(ids))
            vectors[len(ids) : len(ids) + len(block.ids)] = block.vectors[some]
            ids += block.ids[some]
            payload += block.payload[some]
            if len(ids) == n and n < index.n:
                break
        vectors.flags.writeable = False
        return LatentSpace(vectors, ids, name=index.name, payload=payload if any(payload) else None)


def find_rows(place: StorePlace, ids: Sequence[str]) -> LatentSpace:
    """The rows with these ids as a space, in the store's order and without their payload.

    Raises
    ------
    SpaceError
        The index has none of the ids.
    """
    wanted = set(ids)
    names = []
    rows = []
    with open_index(place) as index:
        for block in index.holding(ids):
            rows_found = [row for row, item in enumerate(block.ids) if item in wanted]
            names += [block.ids[row] for row in rows_found]
            rows.append(block.vectors[rows_found])
        if index.stamp:
            index.stamp.need_same()
        if not names:
            raise SpaceError(
                f"{index.name}: expected rows of the ids {quote(list(ids)[:3])}, …, got none; give the ids"
                " that the store knows"
            )
        return LatentSpace(np.concatenate(rows), names, name=index.name)


ID = "id"
VECTOR = "vector"
ADAPTER = "relscope-adapter"  # key of the adapter's digest in the metadata of the column of vectors


def vector_column(name: str, schema: Any, chosen: str) -> str:
    """The name of the column of vectors: the chosen one or, if none is chosen, the only one. Raises a
    SpaceError if there is no such column."""
    names = [item.name for item in schema if is_vectors(item.type)]
    if chosen in names:
        return chosen
    if chosen or len(names) != 1:
        expected = "one column"
        if chosen:
            expected = f"a column {chosen!r:.80}"
        got = f"{quote(names) or 'none'}; choose one after #"
        raise SpaceError(f"{name}: expected {expected} with a vector per row, got {got}")
    return names[0]


def id_column(schema: Any) -> str:
    """The name of the column of ids, which holds texts or whole numbers; "" if there is none."""
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    fit = {item.name for item in schema if any(kind(item.type) for kind in kinds)}
    return next((name for name in (ID, "ids", "_id", "key") if name in fit), "")


def block_of(name: str, batch: Any, first: int, vectors: str, ids: str, width: int) -> StoredRows:
    rows = vectors_of([batch.column(vectors)], name, first, width)
    if ids:
        names = batch.column(ids).to_pylist()
    else:
        names = list(range(first, first + len(rows)))
    others = [column for column in batch.schema.names if column not in (vectors, ids)]
    payload = ()
    if others:
        payload = tuple(batch.select(others).to_pylist())
    return StoredRows(checked_ids(names, name), rows, payload)


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
    fields = [
        field.with_type(pa.string()) if pa.types.is_null(field.type) else field
        for field in pa.Table.from_pylist(rows).schema
    ]  # a column without values has no known type, so it becomes text
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
        _write(place.path, blocks, lambda stream: np.lib.format.write_array_header_1_0(stream, header))


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


def _write(path: Path, blocks: Iterable[StoredRows], write_header: Any) -> None:
    """Write a header and float32 rows to a file, and the ids as lines to a file beside it."""
    with replacing(path) as stream, replacing(_ids_path(path)) as ids:
        write_header(stream)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            ids.write(as_lines(block.ids, path.name, "ids", first=not ids.tell()))


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
        columns = [*filter(None, [names]), facts["vectors"]]
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
        _write(place.path, blocks, lambda stream: stream.write(header))


# A table of LanceDB, in a folder of this machine, is read and written as an index.


class LanceRows:
    """An open table. It lives in the confined process for two reasons: the library trusts the folder's
    content, and its threads must not run in a process that forks.
    """

    def __init__(self, folder: Path, where: str, table: str, column: str) -> None:
        self._where = where
        with _clear_errors(where):
            base = _connect(folder)
            tables = _tables(base)
            if table not in tables:
                there = quote(tables[:6]) or "none"
                raise SpaceError(f"{where}: expected a table that exists, got {table!r:.80}; there: {there}")
            self._table = base.open_table(table)
            schema = self._table.schema
            self._n = self._table.count_rows()
        self._vectors = vector_column(where, schema, column)
        self._ids = id_column(schema)
        kind = schema.field(self._vectors).type
        if not pa.types.is_fixed_size_list(kind) or not self._n:
            got = "an empty table"
            if self._n:
                got = f"vectors as {kind!s:.40}"
            raise SpaceError(
                f"{where}: expected rows with vectors of one width, got {got}; write the table again"
            )
        self._width = kind.list_size
        self._adapter = recorded_adapter(schema, self._vectors)

    def confined_facts(self) -> dict[str, Any]:
        return {"n": self._n, "width": self._width, "adapter": self._adapter}

    def read(self, start: int, stop: int) -> dict[str, Any]:
        with _clear_errors(self._where):
            rows = self._table.take_offsets(list(range(start, stop))).to_arrow()
            (batch,) = rows.combine_chunks().to_batches()
        return vars(block_of(self._where, batch, start, self._vectors, self._ids, self._width))

    def holding(self, ids: list[str]) -> list[dict[str, Any]] | None:
        """The rows with these ids. If the table has an index on the ids, it is used. None if the table has no
        column of ids."""
        if not self._ids:
            return None
        names = [item for item in ids if item.isascii() and item.isdigit()] or ["NULL"]
        if not pa.types.is_integer(self._table.schema.field(self._ids).type):
            names = [f"'{quoted}'" for quoted in (item.replace("'", "''") for item in ids)]
        with _clear_errors(self._where):
            found = self._table.search().where(f"`{self._ids}` IN ({', '.join(names)})").limit(self._n)
            batches = found.select([self._ids, self._vectors]).to_arrow().combine_chunks().to_batches()
        asked = self._vectors, self._ids, self._width
        return [vars(block_of(self._where, batch, 0, *asked)) for batch in batches]


class LanceIndex(VectorIndex):
    """A table of LanceDB. If it has several columns of vectors, ``#TABLE/COLUMN`` chooses one."""

    def __init__(self, place: StorePlace) -> None:
        self.name, _, column = place.table.partition("/")
        folder = place.path
        if not folder.is_dir():  # the library would create a missing folder
            raise SpaceError(f"{folder}: expected a folder of LanceDB, got none there; check the path")
        asked = {"where": place.text, "table": self.name, "column": column}
        self._rows = confined.Opened(LanceRows, folder, (__name__, *ARROW), **asked)
        self.n = self._rows.facts["n"]
        self.width = self._rows.facts["width"]
        self.adapter = self._rows.facts["adapter"]

    def close(self) -> None:
        self._rows.close()

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        for first in range(start, self.n, size):
            block = self._rows.call("read", start=first, stop=min(self.n, first + size))
            yield StoredRows(block["ids"], block["vectors"], tuple(block["payload"]))

    def holding(self, ids: Sequence[str]) -> Iterator[StoredRows]:
        found = self._rows.call("holding", ids=list(ids))
        if found is None:
            return self.blocks()
        return (StoredRows(block["ids"], block["vectors"]) for block in found)

    @classmethod
    def need_target(cls, place: StorePlace, target: Target) -> None:
        with extra("lancedb"):
            import lancedb  # noqa: F401
        if place.path.is_dir():
            with _clear_errors(place.text):
                _table(_connect(place.path), place, target)

    @classmethod
    def write(cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target) -> None:
        """Write rows to a table. To an existing table they are added in one step, which holds them in memory.
        A new table appears only when it is complete."""
        table = None
        folder = place.path
        failed = []

        def checked() -> Iterator[StoredRows]:
            try:
                yield from blocks
            except BaseException as error:  # the library replaces the error by another one
                failed.append(error)
                raise

        try:
            with _clear_errors(place.text):
                if folder.is_dir():
                    table = _table(_connect(place.path), place, target)
                if table is not None:
                    _merge(place, table, checked(), target)
                    return
            with new_folder(folder) as made, _clear_errors(place.text):
                tables = tables_of(place.text, checked(), adapter=target.adapter)
                _connect(made).create_table(place.table, _reader(tables))
        except SpaceError as error:
            raise failed[0] if failed else error from None


def _table(base: Any, place: StorePlace, target: Target) -> Any:
    """The open table to which rows are added; None if no table has this name yet."""
    exists = place.table in _tables(base)
    need_new(place.text, exists, target)
    if not exists:
        return None
    table = base.open_table(place.table)
    column = vector_column(place.text, table.schema, "")
    need_width(place.text, table.schema.field(column).type.list_size, target)
    need_adapter(place.text, recorded_adapter(table.schema, column), target)
    return table


def _merge(place: StorePlace, table: Any, blocks: Iterable[StoredRows], target: Target) -> None:
    """Add rows to an open table, over those with the same ids. The adapter is recorded first: if the process
    is killed, no rows are there whose adapter is unknown."""
    vectors = vector_column(place.text, table.schema, "")
    ids = id_column(table.schema)
    if not ids:
        raise SpaceError(
            f"{place.text}: expected a table with a column of ids, such as id, got none; use a new table"
        )
    is_new = bool(target.adapter) and not recorded_adapter(table.schema, vectors)
    if is_new:
        _record(place, table, vectors, target.adapter)
    tables = tables_of(place.text, blocks, table.schema, ids, vectors)
    merge = table.merge_insert(ids).when_matched_update_all().when_not_matched_insert_all()
    try:
        merge.execute(_reader(tables))
    except BaseException:
        if is_new:
            _record(place, table, vectors, None)
        raise


def _record(place: StorePlace, table: Any, vectors: str, adapter: str | None) -> None:
    if not hasattr(table, "update_field_metadata"):
        raise SpaceError(
            f"{place.text}: expected a table that Relscope made, or lancedb 0.40, which can record the"
            " adapter of its rows, got an older version; install it"
        )
    table.update_field_metadata({"path": vectors, "metadata": {ADAPTER: adapter}})


def _reader(tables: Iterator[Any]) -> Any:
    first = next(tables)
    batches = (batch for table in chain([first], tables) for batch in table.to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, batches)


def _connect(folder: Path) -> Any:
    with extra("lancedb"):
        import lancedb
    # Make the path absolute, because "s3:/bucket" would otherwise count as an address.
    return lancedb.connect(str(folder.absolute()))


def _tables(base: Any) -> list[str]:
    tables = base.list_tables()
    return list(getattr(tables, "tables", tables))


@contextmanager
def _clear_errors(where: str) -> Iterator[None]:
    """Within the block, turn any error of the library into a SpaceError that names the place."""
    try:
        yield
    except SpaceError:
        raise
    except BaseException as error:
        known = isinstance(error, ValueError | RuntimeError | OSError | pa.ArrowException)
        if not known and type(error).__name__ not in ("RustPanic", "PanicException"):
            raise
        raise SpaceError(
            f"{where}: expected a LanceDB table that can be used, got: {visible(error, 200)}; check the"
            " folder and the room on its disk"
        ) from error
