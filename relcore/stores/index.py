"""VectorIndex: what every store of vectors can do here, streamed block by block."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import INDEXES
from relcore.base.records import parse
from relcore.files.places import Place
from relcore.files.rows import checked_ids
from relcore.files.tables import is_vectors, vectors_of
from relcore.represent.similarity import matrix, need_finite, unit_rows
from relcore.runs.progress import Report, silent

BLOCK = 4096
Payload = tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Consecutive rows of an index.

    Attributes
    ----------
    ids : list of str
    vectors : array (m, d) float32
    payload : tuple of dict
        What else the store keeps with each row; () where it keeps nothing.
    """

    ids: list[str]
    vectors: np.ndarray
    payload: Payload = field(default=())


@dataclass(frozen=True, eq=False)
class Hits:
    """The nearest rows of each query, nearest first: ids (m, k) object, scores (m, k) where larger is nearer.

    A query with fewer than k rows has "" and −∞ in the rest.
    """

    ids: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Target:
    """What is written: the number of rows and their width, and whether rows may be added to what is there.

    `resumed` is true where an earlier, killed run has begun to write the same rows to the same place.
    """

    n: int
    width: int
    add: bool = False
    resumed: bool = False


class VectorIndex(ABC):
    """Vectors with ids in a file or a database, opened for reading; to be used in a ``with``.

    Attributes
    ----------
    name : str
    n, width : int
        Rows, and numbers per row.
    """

    name: str
    n: int
    width: int

    @classmethod
    @abstractmethod
    def open(cls, place: Place) -> Self:
        """Open for reading; nothing is changed.

        Raises
        ------
        SpaceError
            Nothing there, a damaged file, a locked folder, a server that does not answer, a missing extra.
        """

    @abstractmethod
    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        """All rows from `start` on, at most `size` at once, in the same order each time."""

    @classmethod
    def need_target(cls, place: Place, target: Target) -> None:
        """Raise a SpaceError where `write` would before it takes the first row; here of a file."""
        folder = place.path.absolute().parent
        if not folder.is_dir():
            raise SpaceError(
                f"{place.path.name}: expected an existing folder, got {str(folder)!r:.200}; create it"
            )
        need_new(place.path.name, place.path.exists(), target, can_add=False)

    @classmethod
    @abstractmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        """Write rows to a new place, or to one that is there where ``target.add``; nothing is ever deleted.

        Raises
        ------
        SpaceError
            The place is taken, or has another width; a store that cannot add rows.
        """

    def close(self) -> None:  # noqa: B027 - most stores hold nothing between two blocks
        """Release locks and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ids(self) -> list[str]:
        """The ids of all rows, in their order."""
        return [one for block in self.blocks() for one in block.ids]

    def search(self, queries: np.ndarray, k: int) -> Hits:
        """The k rows with the largest cosine to each query (m, d), by going through all blocks once."""
        queries = unit_rows(self._checked(queries))
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        ids = np.full((len(queries), k), "", dtype=object)
        for block in self.blocks():
            found = np.concatenate([scores, queries @ unit_rows(block.vectors).T], axis=1)
            best = np.argsort(-found, axis=1, kind="stable")[:, :k]
            names = np.concatenate(
                [ids, np.broadcast_to(np.array(block.ids, object), (len(queries), len(block.ids)))], axis=1
            )
            scores, ids = np.take_along_axis(found, best, 1), np.take_along_axis(names, best, 1)
        return Hits(ids, scores)

    def _checked(self, queries: np.ndarray) -> np.ndarray:
        queries = matrix(queries, "queries")
        if queries.shape[1] != self.width:
            raise SpaceError(
                f"{self.name}: expected queries of width {self.width}, as its rows, got {queries.shape[1]}"
            )
        need_finite(queries.sum(axis=0), "queries")
        return queries


def need_width(name: str, got: int, target: Target) -> None:
    """Raise a SpaceError where rows are added to others of another width."""
    if got != target.width:
        raise SpaceError(
            f"{name}: expected rows of width {got}, as those that are there, got {target.width}; use a new"
            " place"
        )


def need_new(name: str, exists: bool, target: Target, can_add: bool = True) -> None:
    """Raise a SpaceError where the place is taken and nothing may be added."""
    if exists and not (can_add and (target.add or target.resumed)):
        remedy = "choose another name" + ", or allow adding rows with --add" * can_add
        raise SpaceError(f"{name}: expected a new place, got one that is there already; {remedy}")


# Rows of Arrow batches as blocks, and blocks as Arrow tables: what Parquet and LanceDB have in common.

ID, VECTOR = "id", "vector"
_ID_NAMES = (ID, "ids", "_id", "key")


def vector_column(name: str, schema: Any, chosen: str) -> str:
    """The column of vectors: the chosen one, else the only one.

    Raises
    ------
    SpaceError
        There is none, or there are several.
    """
    found = [one.name for one in schema if is_vectors(one.type)]
    if chosen in found:
        return chosen
    if chosen or len(found) != 1:
        expected = (
            f"a column {chosen!r:.80} with a vector per row" if chosen else "one column with a vector per row"
        )
        raise SpaceError(f"{name}: expected {expected}, got {quote(found) or 'none'}; choose one after #")
    return found[0]


def id_column(schema: Any) -> str:
    """The column of ids: ``id`` or a similar name, of text or whole numbers; "" where there is none."""
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    fit = {one.name for one in schema if any(kind(one.type) for kind in kinds)}
    return next((name for name in _ID_NAMES if name in fit), "")


def block_of(name: str, batch: Any, first: int, vectors: str, ids: str, width: int) -> StoredRows:
    """A record batch as a block; rows without a column of ids are numbered from `first` on."""
    found = matrix_of(name, batch.column(vectors), first, width)
    names = [str(row) for row in range(first, first + len(found))]
    if ids:
        names = checked_ids(batch.column(ids).to_pylist(), name)
    others = [column for column in batch.schema.names if column not in (vectors, ids)]
    payload = tuple(batch.select(others).to_pylist()) if others else ()
    return StoredRows(names, found, payload)


def matrix_of(name: str, column: Any, first: int, width: int) -> np.ndarray:
    """A column of vectors as (m, width) float32; `first` is the number of its first row, for the error."""
    return vectors_of([column], name, first, width)


def table_of(name: str, block: StoredRows, schema: Any = None) -> Any:
    """A block as an Arrow table: id, payload, vector; `schema` is that of the first block.

    Raises
    ------
    SpaceError
        A payload whose columns change their type on the way, or have the names of ours.
    """
    import pyarrow as pa

    payload = _payload_table(name, block.payload, schema)
    columns = {ID: pa.array(block.ids, pa.string())}
    columns |= {key: payload.column(key) for key in payload.schema.names}
    width = block.vectors.shape[1]
    values = pa.array(np.ascontiguousarray(block.vectors, np.float32).ravel())
    columns[VECTOR] = pa.FixedSizeListArray.from_arrays(values, width)
    return pa.table(columns)


def _payload_table(name: str, payload: Payload, schema: Any) -> Any:
    import pyarrow as pa

    keys = sorted({key for one in payload for key in one})
    if taken := {ID, VECTOR} & set(keys):
        raise SpaceError(
            f"{name}: expected a payload without columns {quote(sorted(taken))}, got them; rename them first"
        )
    if schema is None:
        found = (
            pa.Table.from_pylist([{key: one.get(key) for key in keys} for one in payload])
            if keys
            else pa.table({})
        )
        absent = [
            field.name for field in found.schema if pa.types.is_null(field.type)
        ]  # the first block tells no type
        return found.cast(
            pa.schema([pa.field(f.name, pa.string() if f.name in absent else f.type) for f in found.schema])
        )
    fields = [field for field in schema if field.name not in (ID, VECTOR)]
    try:
        if unknown := set(keys) - {field.name for field in fields}:
            raise pa.ArrowInvalid(f"{quote(sorted(unknown))} not in the rows before")
        return pa.Table.from_pylist(list(payload), schema=pa.schema(fields)) if fields else pa.table({})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SpaceError(
            f"{name}: expected the payload of all rows in the columns of the first ones, got {error!s:.200};"
            " write to a store that takes any payload, as qdrant"
        ) from error


def tables_of(name: str, blocks: Iterable[StoredRows], schema: Any = None) -> Iterator[Any]:
    """A table per block, all of one schema."""
    for block in blocks:
        table = table_of(name, block, schema)
        schema = table.schema
        yield table


def regrouped(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """The same rows in tables of at least `size`, but for the last."""
    import pyarrow as pa

    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(one.num_rows for one in held) >= size:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


# Rows on their way to a target, on disk: appended block by block, and there again after a kill.

_VECTORS, _ROWS, _STATE = "vectors.f32", "rows.jsonl", "state.json"


class StagedRows:
    """A folder of vectors, ids and payload. What counts is what the state tells: a block that was cut short
    is written again.

    Parameters
    ----------
    folder : Path
        Made with the first block.
    key : str
        Of the work. A folder of other work begins again.

    Attributes
    ----------
    done : int
        Rows that are staged.
    width : int
        Of these rows; 0 before the first.
    writing : bool
        Whether the target has been begun.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self._key = folder, key
        self.done, self.width, self.writing, self._sizes = 0, 0, False, [0, 0]
        self._recall()
        for name, size in zip((_VECTORS, _ROWS), self._sizes, strict=True):
            if (folder / name).exists():
                with (folder / name).open("ab") as stream:
                    stream.truncate(size)

    def append(self, block: StoredRows) -> None:
        """Add a block; once this returns, a kill does not lose it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.width = block.vectors.shape[1]
        told = (
            json.dumps({"ids": block.ids, "payload": block.payload}, default=str, ensure_ascii=False).encode()
            + b"\n"
        )
        content = np.ascontiguousarray(block.vectors, "<f4").data
        for name, one in ((_VECTORS, content), (_ROWS, told)):
            with (self.folder / name).open("ab") as stream:
                stream.write(one)
        self._sizes = [self._sizes[0] + content.nbytes, self._sizes[1] + len(told)]
        self.done += len(block.ids)
        self._keep()

    def begin_writing(self) -> None:
        """Remember that the target is being written, so that a later run may continue it."""
        self.writing = True
        self._keep()

    def blocks(self) -> Iterator[StoredRows]:
        """The blocks as they were appended."""
        with (self.folder / _VECTORS).open("rb") as vectors, (self.folder / _ROWS).open("rb") as rows:
            for line in rows:
                told = json.loads(line)
                found = np.fromfile(vectors, "<f4", len(told["ids"]) * self.width).reshape(-1, self.width)
                yield StoredRows(told["ids"], found, tuple(told["payload"]))

    def remove(self) -> None:
        """Remove the folder, as far as it is ours."""
        for name in (_VECTORS, _ROWS, _STATE):
            (self.folder / name).unlink(missing_ok=True)
        self.folder.rmdir()

    def _keep(self) -> None:
        partial = self.folder / f"{_STATE}.partial"
        state = {
            "key": self._key,
            "done": self.done,
            "width": self.width,
            "writing": self.writing,
            "sizes": self._sizes,
        }
        partial.write_text(json.dumps(state), encoding="utf-8")
        os.replace(partial, self.folder / _STATE)

    def _recall(self) -> None:
        path = self.folder / _STATE
        if not path.is_file():
            return
        try:
            state = parse(path.read_bytes(), str(path))
            held = [(self.folder / name).stat().st_size for name in (_VECTORS, _ROWS)]
            if state["key"] == self._key and all(
                size <= there for size, there in zip(state["sizes"], held, strict=True)
            ):
                self.done, self.width, self.writing = state["done"], state["width"], state["writing"]
                self._sizes = state["sizes"]
        except (SpaceError, OSError, KeyError, TypeError):
            return  # damaged: the work begins again


# Open and write what a place names.


def open_index(place: Place) -> VectorIndex:
    """The index at a place; errors as in `VectorIndex.open` and `Place.need_access`."""
    place.need_access()
    return INDEXES[place.kind].load().open(place)


def need_target(place: Place, target: Target) -> None:
    """Raise the errors of `write_index` that are known before the first row."""
    place.need_access()
    INDEXES[place.kind].load().need_target(place, target)


def write_index(place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent) -> None:
    """Write rows to a place; errors as in `VectorIndex.write` and `Place.need_access`."""
    place.need_access()
    INDEXES[place.kind].load().write(place, blocks, target, report)
