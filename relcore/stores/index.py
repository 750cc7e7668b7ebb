"""`StorePlace`, the place of a store of vectors, and `VectorIndex`, the interface that reads and writes
stores block by block. Files and tables of LanceDB implement it here; plugins add other stores."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.mapped_rows import FileStamp
from relcore.base.names import INDEXES, PLUGIN_STORES
from relcore.base.text import visible
from relcore.files.formats import check_size, checked_ids, most_unpacked, usable_bytes
from relcore.files.vector_cells import is_vectors, vectors_of
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
    rows, "" if none did or it is unknown. `replaces` says whether files that are there are replaced."""

    n: int
    width: int
    add: bool = False
    adapter: str = ""
    replaces: bool = False


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
        need_new(place.path.name or place.text, place.path.exists(), target, can_add=False)

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
