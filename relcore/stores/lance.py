"""A table of LanceDB as an index: of a folder on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.base.text import visible
from relcore.runs.progress import Report, silent
from relcore.stores.index import (
    Place,
    StoredRows,
    Target,
    VectorIndex,
    block_of,
    id_column,
    need_new,
    need_width,
    tables_of,
    vector_column,
)

_AT_ONCE = 1 << 16  # rows per version of the table: each one costs a file and a commit


class LanceIndex(VectorIndex):
    """One table; with ``#TABLE/COLUMN`` one of several columns of vectors."""

    def __init__(self, place: Place) -> None:
        import pyarrow as pa

        name, _, column = place.table.partition("/")
        self.place, self.name = place, name
        folder = place.path
        if not folder.is_dir():  # the library would make it
            raise SpaceError(f"{folder}: expected a folder of LanceDB, got none there; check the path")
        with _told(place):
            base = _connected(place)
            tables = _tables(base)
            if name not in tables:
                there = quote(tables[:6]) or "none"
                raise SpaceError(
                    f"{place.text}: expected a table that exists, got {name!r:.80}; there: {there}"
                )
            self._table = base.open_table(name)
            schema = self._table.schema
            self.n = self._table.count_rows()
        self._vectors, self._ids = vector_column(place.text, schema, column), id_column(schema)
        kind = schema.field(self._vectors).type
        if not pa.types.is_fixed_size_list(kind) or not self.n:
            got = f"vectors as {kind!s:.40}" if self.n else "an empty table"
            raise SpaceError(
                f"{place.text}: expected rows with vectors of one width, got {got}; write the table again"
            )
        self.width = kind.list_size

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        for first in range(start, self.n, size):
            with _told(self.place):
                rows = self._table.take_offsets(list(range(first, min(self.n, first + size)))).to_arrow()
                (batch,) = rows.combine_chunks().to_batches()
            yield block_of(self.place.text, batch, first, self._vectors, self._ids, self.width)

    @classmethod
    def need_target(cls, place: Place, target: Target) -> None:
        with extra("lancedb"):
            import lancedb  # noqa: F401
        if place.path.is_dir():
            with _told(place):
                _table(_connected(place), place, target)

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        """Rows that are added come behind those that are there; a killed run continues where it stopped."""
        with _told(place):
            base = _connected(place)
            table = _table(base, place, target)
            done = table.count_rows() if table is not None and target.resumed and not target.add else 0
            schema = None if table is None else table.schema
            for item in _regrouped(tables_of(place.text, _after(blocks, done), schema), _AT_ONCE):
                if table is None:
                    table = base.create_table(place.table, item)
                else:
                    table.add(item)
                done += item.num_rows
                report(done, target.n, place.text)


def _table(base: Any, place: Place, target: Target) -> Any:
    """The open table that rows are added to; None where there is none of this name yet."""
    exists = place.table in _tables(base)
    need_new(place.text, exists, target)
    if not exists:
        return None
    table = base.open_table(place.table)
    column = vector_column(place.text, table.schema, "")
    need_width(place.text, table.schema.field(column).type.list_size, target)
    return table


def _after(blocks: Iterable[StoredRows], done: int) -> Iterator[StoredRows]:
    for block in blocks:
        skip = min(done, len(block.ids))
        done -= skip
        if skip < len(block.ids):
            yield StoredRows(block.ids[skip:], block.vectors[skip:], block.payload[skip:])


def _regrouped(tables: Iterable[Any], size: int) -> Iterator[Any]:
    """The same rows in tables of at least `size`, but for the last."""
    import pyarrow as pa

    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(item.num_rows for item in held) >= size:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _connected(place: Place) -> Any:
    with extra("lancedb"):
        import lancedb
    return lancedb.connect(str(place.path))


def _tables(base: Any) -> list[str]:
    tables = base.list_tables()
    return list(getattr(tables, "tables", tables))


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Whatever the library raises, as one sentence with the place."""
    import pyarrow as pa

    try:
        yield
    except SpaceError:
        raise
    except (ValueError, RuntimeError, OSError, pa.ArrowException) as error:
        raise SpaceError(
            f"{place.text}: expected a LanceDB table that can be used, got: {visible(error, 200)}; check the"
            " folder"
        ) from error
