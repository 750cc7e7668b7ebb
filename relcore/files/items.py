"""Tables of texts, pictures, numbers and metadata, read by rows of a column."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.files import confined, tables
from relcore.files.columns import NO_CHOICES, Choices, Columns
from relcore.files.formats import ARROW, checked_counts, checked_ids, checked_labels, readable
from relcore.files.tables import MISSING, ColumnKind, table_of
from relcore.spaces.ids import need_distinct_ids

SUFFIXES = (".parquet", ".csv", ".tsv")
OF_TEXTS = (
    *SUFFIXES,
    ".jsonl",
    ".ndjson",
    ".txt",
)  # only if the user names the file, because folders often contain such files for other purposes
_AT_ONCE, _MOST_AT_ONCE, _FEW_BYTES = 1024, 1 << 16, 1 << 20  # cells in one call


class ItemTable:
    """The columns and rows of a file, or of the parts of a parquet table; thread-safe.

    `columns` has their kinds, `class_names` is as in `OpenedTable`; image paths are relative to `folder`.
    `encoding` is "" for a file without a text encoding.
    """

    def __init__(self, paths: Sequence[Path], encoding: str = "") -> None:
        first = paths[0]
        self.name, self.folder = first.name, first.parent
        self._parts = [confined.Opened(table_of, path, ARROW, encoding=encoding) for path in paths]
        facts = [part.facts for part in self._parts]
        self.encoding: str = facts[0]["encoding"]
        self.columns: dict[str, ColumnKind] = facts[0]["columns"]
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
            end, first = min(stop, self._starts[number + 1]), self._starts[number]
            values += self._parts[number].call("read", column=column, start=start - first, stop=end - first)
            start = end
        return values

    def roles(self, choices: Choices = NO_CHOICES) -> Columns:
        """The role of each column, as in `metadata_columns`."""
        return self._parts[0].call("metadata", Columns, choices=choices)

    def cells(self, column: str, n: int, max_bytes: int = 8 << 30) -> list[Any]:
        """The first n cells of a column; a SpaceError if their texts take more than `max_bytes`."""
        values, size, step = [], 0, _AT_ONCE
        while len(values) < n:
            some = self.read(column, len(values), min(len(values) + step, n))
            if self.columns[column] == "number":
                n_bytes = 0
            elif self.columns[column] == "text":
                n_bytes = sum(map(len, filter(None, some)))
            else:
                n_bytes = sum(len(item) for item in some if isinstance(item, str | bytes))
            size, step = size + n_bytes, min(2 * step, _MOST_AT_ONCE) if n_bytes < _FEW_BYTES else _AT_ONCE
            if size > max_bytes:
                raise SpaceError(
                    f"{self.name}, column {column!r:.80}: expected texts of at most {readable(max_bytes)},"
                    " got more; choose another column"
                )
            values += some
        return values


def open_table(paths: Sequence[Path], encoding: str = "") -> ItemTable:
    """The table in a file, or in the parts of a parquet table; without `encoding` the likely one is used."""
    first, suffix = paths[0], paths[0].suffix.lower()
    if not first.is_file():
        raise SpaceError(
            f"expected a file, got {str(first)!r}, where there is none; check the folder and the spelling"
        )
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


def _tried(function: Callable[..., Any], path: Path, otherwise: Any, **arguments: Any) -> Any:
    with suppress(SpaceError, OSError):
        return confined.run(function, path, libraries=ARROW, **arguments)
    return otherwise


def first_kinds(path: Path) -> dict[str, ColumnKind]:
    """The columns of a table by its first rows; {} for a file that is no table."""
    return _tried(tables.peek, path, ({}, True))[0]


def first_cells(path: Path, n: int = 3, encoding: str = "") -> dict[str, list[str]]:
    """The first n cells of the first columns, as short texts; {} for a table that cannot be read."""
    return _tried(tables.first_cells, path, {}, n=n, encoding=encoding)


def encoding_of(path: Path) -> str:
    """The likely encoding of a .csv, .tsv or .txt file; a SpaceError if none is likely."""
    return confined.run(tables.encoding_of, path, str)


def is_metadata(path: Path) -> bool:
    """Whether a file is a table without vectors; False for one that cannot be read."""
    known = path.suffix.lower() in SUFFIXES and path.is_file()
    return known and not _tried(tables.peek, path, ({}, True))[1]


def metadata_columns(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """The role of each column of a table of metadata, and why.

    Raises SpaceError for a file that is no such table, chosen columns that do not exist, two columns for one
    role.

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
    """The ids, labels and counts in a table, if it has them, for n vectors of the file `of`; and a note.

    Rows are joined by id if the vectors have `ids` and the table has a column of ids; otherwise by order,
    which the note says.

    Raises SpaceError for an id that the table lacks, another number of rows, invalid ids or counts, or more
    than `max_bytes` of text.
    """
    table = open_table([path], choices.encoding)
    columns, names, read = table.roles(choices), list(table.columns), {}
    place, rows, note = columns.place("ids"), None, ""
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
            cells = cells if rows is None else [cells[row] for row in rows]
            if role == "labels":
                classes = table.class_names.get(columns.columns[place].name)
                cells = [_label(item, classes) for item in cells]
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
    """The table's row for each of the n ids of the file `of`, (n,).

    Raises a SpaceError for ids that the table lacks, or repeats, unless `duplicates` is "first".
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
            " (id_column), or leave it out (ignore), so that rows are joined by their order"
        )
    return first[places]


def _label(value: Any, names: Sequence[str] | None) -> Any:
    if isinstance(value, str) and value in MISSING:
        return ""
    if names and isinstance(value, int) and not isinstance(value, bool):
        return names[value] if 0 <= value < len(names) else ""
    return value
