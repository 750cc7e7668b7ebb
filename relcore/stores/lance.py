"""Tables of LanceDB as stores of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from relcore.base.errors import SpaceError, extra, quote
from relcore.base.text import visible
from relcore.base.writing import new_folder
from relcore.files import confined
from relcore.files.formats import ARROW
from relcore.stores.file_index import ADAPTER, recorded_adapter, tables_of
from relcore.stores.index import (
    StoredRows,
    StorePlace,
    Target,
    VectorIndex,
    block_of,
    id_column,
    need_new,
    need_width,
    vector_column,
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
            if failed:
                raise failed[0] from None
            raise error from None


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
    _need_distinct(place, table, ids)
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


def _need_distinct(place: StorePlace, table: Any, ids: str) -> None:
    """Raise a SpaceError if an id occurs twice in the table, as early versions of --add left it. A row that
    is added would replace both, and searches would continue to find the item twice."""
    column = table.search().select([ids]).limit(table.count_rows()).to_arrow()[ids]
    times = column.value_counts()
    if len(times) < len(column):
        repeated = times.filter(pa.compute.greater(times.field("counts"), 1))
        twice = repeated.field("values")[:3].to_pylist()
        raise SpaceError(
            f"{place.text}: expected each id once in the table, got {quote(twice)} more than once; delete the"
            " other rows of these ids, or map all rows into a new table"
        )


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
