"""Tables of items, and the metadata of rows: ids, labels, texts and columns beside vectors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.files import confined, table_formats, tables, text_tables
from relcore.files.columns import NO_CHOICES, Choices, Columns
from relcore.files.formats import ARROW, checked_ids, checked_labels, readable
from relcore.spaces.ids import checked_counts, need_distinct_ids

# Tables of texts, pictures, numbers and metadata, whose columns are read by row number.

SUFFIXES = (".parquet", ".csv", ".tsv")
# Other formats only if the user names the file: in folders, such files often have other purposes.
OF_TEXTS = (*SUFFIXES, ".jsonl", ".ndjson", ".txt")
# Number of cells per read: first and maximum. It doubles after a read of fewer bytes.
_AT_ONCE = 1024
_MOST_AT_ONCE = 1 << 16
_FEW_BYTES = 1 << 20


class ItemTable:
    """The columns and rows of a table, which is one file or the parts of a parquet table. Several threads may
    use it.

    `columns` gives the kind of each column, and `class_names` is as in `OpenedTable`. Image paths are
    relative to `folder`. `encoding` is "" for a file without a text encoding.
    """

    def __init__(self, paths: Sequence[Path], encoding: str = "") -> None:
        first = paths[0]
        self.name = first.name
        self.folder = first.parent
        self._parts = [
            confined.Opened(table_formats.table_of, path, ARROW, encoding=encoding) for path in paths
        ]
        facts = [part.facts for part in self._parts]
        self.encoding: str = facts[0]["encoding"]
        self.columns: dict[str, tables.ColumnKind] = facts[0]["columns"]
        self.class_names: dict[str, Sequence[str]] = facts[0]["class_names"]
        if any(list(item["columns"]) != list(self.columns) for item in facts):
            raise SpaceError(
                f"{self.name}: expected the same columns in all {len(paths)} parts, got others; write"
                " them again"
            )
        self._starts = [sum(item["n"] for item in facts[:number]) for number in range(len(facts) + 1)]

    def __len__(self) -> int:
        return self._starts[-1]

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        values: list[Any] = []
        while start < stop:
            number = bisect_right(self._starts, start) - 1
            end = min(stop, self._starts[number + 1])
            first = self._starts[number]
            values += self._parts[number].call("read", column=column, start=start - first, stop=end - first)
            start = end
        return values

    def roles(self, choices: Choices = NO_CHOICES) -> Columns:
        """What each column holds (its role), as `metadata_columns` decides."""
        return self._parts[0].call("metadata", Columns, choices=choices)

    def cells(self, column: str, n: int, max_bytes: int = 8 << 30) -> list[Any]:
        """The first n cells of a column. Raises a SpaceError if their texts take more than `max_bytes`."""
        values = []
        size = 0
        step = _AT_ONCE
        while len(values) < n:
            some = self.read(column, len(values), min(len(values) + step, n))
            sized = some
            if self.columns[column] == "number":
                sized = ()
            n_bytes = sum(len(item) for item in sized if isinstance(item, str | bytes))
            size += n_bytes
            step = min(2 * step, _MOST_AT_ONCE) if n_bytes < _FEW_BYTES else _AT_ONCE
            if size > max_bytes:
                raise SpaceError(
                    f"{self.name}, column {column!r:.80}: expected texts of at most {readable(max_bytes)},"
                    " got more; choose another column"
                )
            values += some
        return values


def open_table(paths: Sequence[Path], encoding: str = "") -> ItemTable:
    """The table in a file, or in the parts of a parquet table. Without `encoding`, the likely encoding is
    used."""
    first = paths[0]
    suffix = paths[0].suffix.lower()
    if not first.is_file():
        raise SpaceError(f"expected a file, got {str(first)!r}, where there is none; check the path")
    if suffix not in OF_TEXTS:
        raise SpaceError(
            f"{first.name}: expected a table that ends in {', '.join(OF_TEXTS)}, got"
            f" {suffix or 'no suffix'!r}"
        )
    if len(paths) > 1 and suffix != ".parquet":
        raise SpaceError(
            f"{first.name}: expected one {suffix} file, got {len(paths)} parts; join them, or write parquet"
        )
    return ItemTable(paths, encoding)


def _try_to_read(function: Callable[..., Any], path: Path, otherwise: Any, **arguments: Any) -> Any:
    with suppress(SpaceError, OSError):
        return confined.run(function, path, libraries=ARROW, **arguments)
    return otherwise


def first_kinds(path: Path) -> dict[str, tables.ColumnKind]:
    """The kind of each column of a table, judged by its first rows; {} for a file that is no table."""
    return _try_to_read(table_formats.peek, path, ({}, True))[0]


def first_cells(path: Path, n: int = 3, encoding: str = "") -> dict[str, list[str]]:
    """The first n cells of at most 64 columns, as short texts; {} if the table cannot be read."""
    return _try_to_read(table_formats.first_cells, path, {}, n=n, encoding=encoding)


def encoding_of(path: Path) -> str:
    """The likely encoding of a .csv, .tsv or .txt file. Raises a SpaceError if none is likely."""
    return confined.run(text_tables.encoding_of, path, str)


def is_metadata(path: Path) -> bool:
    """Whether a file is a table without vectors; False for a file that cannot be read."""
    known = path.suffix.lower() in SUFFIXES and path.is_file()
    return known and not _try_to_read(table_formats.peek, path, ({}, True))[1]


def metadata_columns(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """The role of each column of a table of metadata, with the reason.

    Raises a SpaceError if the file is no such table, if a chosen column does not exist, or if two columns
    have one role.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "meta.csv"
    >>> _ = path.write_text("code,genre,year\\nr1,jazz,1959\\nr2,rock,1971\\nr3,jazz,1960\\nr4,rock,1975\\n")
    >>> [(column.name, column.role) for column in metadata_columns(path).columns]
    [('code', 'ids'), ('genre', 'labels'), ('year', 'left out')]
    """
    return open_table([path], choices.encoding).roles(choices)


def read_metadata(
    path: Path,
    n: int,
    *,
    of: str,
    ids: Sequence[str] | None,
    limit: int | None,
    max_bytes: int,
    choices: Choices,
    duplicates: str = "error",
) -> tuple[dict[str, Any], str]:
    """Return the ids, labels and counts that a table holds for the n vectors of the file `of`, and a note.

    If the vectors have `ids` and the table has a column of ids, rows are joined by id. Otherwise they are
    joined by their order, and the note says so.

    Raises a SpaceError if the table lacks an id, has another number of rows, has invalid ids or counts, or
    holds more than `max_bytes` of text.
    """
    table = open_table([path], choices.encoding)
    columns = table.roles(choices)
    names = list(table.columns)
    read = {}
    place = columns.place("ids")
    rows = None
    note = ""
    if ids is not None and place is not None:
        rows = rows_by_id(table, names[place], ids, of, duplicates, max_bytes)
    elif len(table) != n and not (limit == n < len(table)):
        raise SpaceError(
            f"{path.name}: expected {n:,} rows, one per vector of {of}, got {len(table):,}; save both from"
            " the same rows"
        )
    else:
        lacking = of if place is not None else path.name
        note = f"{path.name} is joined to {of} by row order, because {lacking} has no ids"
    for role, check in (("ids", checked_ids), ("labels", checked_labels), ("counts", checked_counts)):
        if (place := columns.place(role)) is not None and (role != "ids" or rows is None):
            cells = table.cells(names[place], n if rows is None else len(table), max_bytes)
            if rows is not None:
                cells = [cells[row] for row in rows]
            if role == "labels":
                classes = table.class_names.get(columns.columns[place].name)
                cells = [cell_content(item, classes) for item in cells]
            read[role] = check(cells, path.name)
    return read, note


def rows_by_id(
    table: ItemTable,
    column: str,
    ids: Sequence[str],
    of: str,
    duplicates: str = "first",
    max_bytes: int = 8 << 30,
) -> np.ndarray:
    """The row number in the table for each of the n ids of the file `of`, (n,).

    Raises a SpaceError if the table lacks some of the ids. A repeated id is also an error, unless
    `duplicates` is "first".
    """
    known = pd.Index(checked_ids(table.cells(column, len(table), max_bytes), table.name), dtype=object)
    if duplicates == "error":
        need_distinct_ids(known, table.name)
    first = np.flatnonzero(~known.duplicated())
    places = known[first].get_indexer(pd.Index(list(ids), dtype=object))
    if len(missing := np.flatnonzero(places < 0)):
        raise SpaceError(
            f"{table.name}: expected the ids of {of}, got a column {column!r:.80} with"
            f" {len(missing):,} missing, first {quote(ids[row] for row in missing[:3])}; choose another"
            " column (id_column), or leave this one out (ignore), so that rows are joined by their order"
        )
    return first[places]


def cell_content(item: Any, class_names: Sequence[str] | None) -> Any:
    """The content of a cell; None if it is empty. The number of a class is replaced by its name."""
    if class_names:
        if isinstance(item, int) and 0 <= item < len(class_names):
            item = class_names[item]
        else:
            item = None
    if isinstance(item, str) and item.strip() in text_tables.MISSING:
        return None
    return item
