"""The formats of tables, by suffix, in the confined process."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

from pyarrow import types

from relcore.base.text import visible
from relcore.files.arrow_tables import ArrowTable, ParquetTable
from relcore.files.columns import Choices, Columns
from relcore.files.formats import ARROW, BLOCK_BYTES, Blocks, Description, Format, Regions, Request
from relcore.files.tables import (
    BATCH_ROWS,
    FIRST_COLUMNS,
    ROWS_TO_LOOK_AT,
    ColumnKind,
    OpenedTable,
    at_most,
    fixed_width,
)
from relcore.files.text_tables import DelimitedTable, ObjectLines, TextLines, TextRows, no_rows
from relcore.files.vector_cells import is_number_type, is_vectors, vectors_of

ARROW_SUFFIXES = (".arrow", ".feather")
TABLES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", *ARROW_SUFFIXES)
_TEXTS = ("ids", "labels", "counts")
# number of numbered columns, or of columns of numbers, that indicate vectors
_SERIES = 3
_MANY_NUMBERS = 16
_SHOWN = 60  # maximum number of characters of a cell in a preview


class Tables(Format):
    """The format of tables of vectors, which are columns of numbers or one column of lists of equal
    length."""

    libraries = ARROW
    has_columns = has_regions = True

    def describe(self, path: Path) -> Description:
        table = table_of(path, rows=ROWS_TO_LOOK_AT)
        # If columns have types, only floats count as dimensions, because whole numbers seldom are.
        if isinstance(table, TextRows):
            fits = is_number_type
        else:
            fits = types.is_floating
        numbers = sum(fits(field.type) for field in table.schema)
        lists = [field.type for field in table.schema if is_vectors(field.type, of=fits)]
        if len(lists) > 1 or (not lists and numbers < 2):
            return Description()
        shape: tuple[int | None, int | None] = (None, None)
        if isinstance(table, TextRows):
            return Description({"": shape}, "")
        if lists:
            shape = (table.n, fixed_width(lists[0]))
        else:
            shape = (table.n, numbers)
        return Description({"": shape}, "")

    def columns(self, path: Path, choices: Choices) -> Columns:
        return table_of(path, choices.encoding, rows=BATCH_ROWS).roles(choices)

    def _open(self, path: Path, request: Request) -> tuple[OpenedTable, Columns, dict[str, int]]:
        table = table_of(path, request.choices.encoding, request.limit)
        columns = table.roles(request.choices)
        columns.check(path.name)
        return table, columns, {role: columns.place(role) for role in _TEXTS if columns.places(role)}

    def blocks(self, path: Path, request: Request) -> Blocks:
        table, columns, texts = self._open(path, request)
        dimensions = columns.places("dimension")
        width = table.width(columns)
        n = 0
        if columns.n is not None:
            request.rows(path, columns.n, max(1, width))
        rows = min(BATCH_ROWS, request.limit or BATCH_ROWS, max(1, BLOCK_BYTES // (4 * max(1, width))))
        cells: dict[str, list[Any]] = {role: [] for role in texts}
        for batch in at_most(table.batches(dimensions, rows, tuple(texts.values())), request.limit):
            vectors = vectors_of([batch[place] for place in dimensions], path.name, n, width)
            n += len(vectors)
            for role, place in texts.items():
                cells[role] += batch[place].to_pylist()
            if len(vectors):
                yield vectors
        if not n:
            raise no_rows(path)
        if "labels" in cells and table.missing:
            cells["labels"] = ["" if item in table.missing else item for item in cells["labels"]]
        return cells | columns.notes()

    def regions(self, path: Path, request: Request) -> Regions | None:
        if _class_of(path) is None:  # tables in text formats are read into memory
            return None
        table, columns, texts = self._open(path, request)
        if request.limit is None or columns.n is None:
            n = columns.n
        else:
            n = min(columns.n, request.limit)
        regions = table.regions(columns, n) if n else None
        if regions is not None:
            cells = table.first(tuple(texts.values()), n)
            regions.columns.update({role: cells[place] for role, place in texts.items()} | columns.notes())
        return regions


def _class_of(path: Path) -> type[OpenedTable] | None:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return ParquetTable
    if suffix in ARROW_SUFFIXES:
        return ArrowTable
    return None


def table_of(path: Path, encoding: str = "", rows: int | None = None) -> OpenedTable:
    """The table in a file. Of a text file, at least the first `rows` rows are read."""
    kind = _class_of(path)
    suffix = path.suffix.lower()
    if kind is not None:
        return kind(path)
    if suffix in (".csv", ".tsv"):
        return DelimitedTable(path, encoding, rows)
    if suffix in (".jsonl", ".ndjson"):
        return ObjectLines(path)
    return TextLines(path, encoding)


def peek(path: Path) -> tuple[dict[str, ColumnKind], bool]:
    """Return the kinds of the columns, and whether the columns look like vectors: lists, a numbered series or
    many numbers."""
    table = table_of(path, rows=BATCH_ROWS)
    numbers = [name for name, kind in table.kinds.items() if kind == "number"]
    series = Counter(re.sub(r"\d+$", "", name) for name in numbers if name[-1:].isdigit())
    many = len(numbers) >= _MANY_NUMBERS or max(series.values(), default=0) >= _SERIES
    return table.kinds, many or any(is_vectors(field.type) for field in table.schema)


def first_cells(path: Path, n: int, encoding: str = "") -> dict[str, list[str]]:
    table = table_of(path, encoding, n)
    cells = table.first(range(len(table.names[:FIRST_COLUMNS])), n)
    return {table.names[place].strip(): [_short(item) for item in some] for place, some in cells.items()}


def _short(cell: Any) -> str:
    if isinstance(cell, bytes):
        return "(bytes)"
    if isinstance(cell, dict):
        cell = cell.get("path") or "(picture)"
    if isinstance(cell, list):
        more = ""
        if len(cell) > 3:
            more = " …"
        cell = ", ".join(map(_short, cell[:3])) + more
    if cell is None:
        return ""
    return visible(f"{cell:.6g}" if isinstance(cell, float) else cell, _SHOWN)


csv.field_size_limit(1 << 23)  # Python's limit, 128 kB, is too small for a document
