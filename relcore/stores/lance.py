"""Read and write a table of LanceDB, in a folder of this machine, as an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from relcore.base.errors import SpaceError, extra, quote
from relcore.base.text import visible
from relcore.base.writing import new_folder
from relcore.files import confined
from relcore.files.formats import ARROW
from relcore.runs.store import Progress, silent
from relcore.stores.index import (
    StoredRows,
    StorePlace,
    Target,
    VectorIndex,
    block_of,
    id_column,
    need_new,
    need_width,
    tables_of,
    vector_column,
)


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
        self._vectors, self._ids = vector_column(where, schema, column), id_column(schema)
        kind = schema.field(self._vectors).type
        if not pa.types.is_fixed_size_list(kind) or not self._n:
            got = f"vectors as {kind!s:.40}" if self._n else "an empty table"
            raise SpaceError(
                f"{where}: expected rows with vectors of one width, got {got}; write the table again"
            )
        self._width = kind.list_size

    def confined_facts(self) -> dict[str, int]:
        return {"n": self._n, "width": self._width}

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
        if not folder.is_dir():  # the library would create it
            raise SpaceError(f"{folder}: expected a folder of LanceDB, got none there; check the path")
        asked = {"where": place.text, "table": self.name, "column": column}
        self._rows = confined.Opened(LanceRows, folder, (__name__, *ARROW), **asked)
        self.n, self.width = self._rows.facts["n"], self._rows.facts["width"]

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
    def write(
        cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target, report: Progress = silent
    ) -> None:
        """Write rows to a table. To an existing table they are added in one step. A new table appears only
        when it is complete."""
        table, folder, failed = None, place.path, []

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
                    table.add(_reader(place, checked(), target, report, table.schema))
                    return
            with new_folder(folder) as made, _clear_errors(place.text):
                _connect(made).create_table(place.table, _reader(place, checked(), target, report))
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
    return table


def _reader(
    place: StorePlace, blocks: Iterable[StoredRows], target: Target, report: Progress, schema: Any = None
) -> Any:
    """The rows as a stream of Arrow batches."""
    tables = tables_of(place.text, blocks, schema)
    first = next(tables)

    def batches() -> Iterator[Any]:
        done = 0
        for table in chain([first], tables):
            yield from table.to_batches()
            done += table.num_rows
            report(done, target.n, place.text)

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def _connect(folder: Path) -> Any:
    with extra("lancedb"):
        import lancedb
    return lancedb.connect(str(folder.absolute()))  # absolute: "s3:/bucket" would be taken for an address


def _tables(base: Any) -> list[str]:
    tables = base.list_tables()
    return list(getattr(tables, "tables", tables))


@contextmanager
def _clear_errors(where: str) -> Iterator[None]:
    """Turn any error of the library into a SpaceError with the place."""
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
