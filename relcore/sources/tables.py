"""Table files: .csv, .tsv and .parquet. Number columns are the dimensions, a text column the ids; read batch by batch.

Columns named `id` or `ids`, `label` or `labels`, `count` or `counts` are taken as such; else the first text column holds
the ids. A nameless first column of numbers is an index, not a dimension. Other text columns are left out.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.sources.rows import GrowingMatrix, Rows
from relcore.spaces import SpaceError, quote

_INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")
_MISSING = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "nan", "NaN", "-nan", "-NaN")
_ROWS_TO_LOOK_AT = 100
_BATCH_BYTES = 1 << 23
_BATCH_ROWS = 4096


@dataclass(frozen=True)
class _Roles:
    """Column numbers: what each is for."""

    dimensions: tuple[int, ...]
    ids: int | None
    labels: int | None
    counts: int | None

    @property
    def texts(self) -> tuple[int, ...]:
        return tuple(column for column in (self.ids, self.labels, self.counts) if column is not None)


def read_csv(path: Path, **options: Any) -> Rows:
    """Comma-separated, the first line names the columns; see `_read_delimited`."""
    return _read_delimited(path, ",", **options)


def read_tsv(path: Path, **options: Any) -> Rows:
    """Tab-separated, the first line names the columns; see `_read_delimited`."""
    return _read_delimited(path, "\t", **options)


def _read_delimited(
    path: Path,
    delimiter: str,
    *,
    limit: int | None = None,
    max_bytes: int,
    id_column: str | None = None,
    label_column: str | None = None,
) -> Rows:
    """UTF-8 text. What a column holds is read off its first hundred rows; whatever breaks that later is an error with its line.

    An empty cell or NA in a number column is NaN.
    """
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    n_header_lines, names, is_number, is_text = _look(path, delimiter)
    roles = _roles(path, names, is_number, is_text, id_column, label_column)
    # Columns go by number: names may repeat.
    types = {str(column): pa.float32() for column in roles.dimensions} | {str(column): pa.string() for column in roles.texts}
    try:
        reader = arrow_csv.open_csv(
            path,
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=_BATCH_BYTES,
                skip_rows=n_header_lines,
                column_names=[str(i) for i in range(len(names))],
            ),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=_MISSING),
        )
        return _collect(path, (_columns(batch) for batch in reader), roles, limit, max_bytes)
    except pa.ArrowInvalid as error:
        raise _fault(path, delimiter, names, roles) or SpaceError(f"{path.name}: expected a table, got {error}") from error


def read_parquet(
    path: Path, *, limit: int | None = None, max_bytes: int, id_column: str | None = None, label_column: str | None = None
) -> Rows:
    """Number columns, or one column of lists of equal length, are the vectors."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            if len(set(schema.names)) < len(schema.names):
                raise SpaceError(
                    f"{path.name}: expected distinct column names, got {quote(schema.names[:8])}; rename those that repeat"
                )
            lists = [i for i, field in enumerate(schema) if holds_vectors(field.type)]
            if len(lists) > 1:
                raise SpaceError(
                    f"{path.name}: expected one column of vectors, got {quote([schema.names[i] for i in lists])}; keep one"
                )
            is_number = [
                i in lists or (not lists and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)))
                for i, field in enumerate(schema)
            ]
            is_text = [pa.types.is_string(field.type) or pa.types.is_large_string(field.type) for field in schema]
            roles = _roles(path, schema.names, is_number, is_text, id_column, label_column)
            wanted = [schema.names[column] for column in (*roles.dimensions, *roles.texts)]
            batches = file.iter_batches(min(_BATCH_ROWS, limit or _BATCH_ROWS), columns=wanted, use_threads=False)
            columns = (
                {schema.get_field_index(key): column for key, column in zip(b.schema.names, b.columns, strict=True)}
                for b in batches
            )
            return _collect(path, columns, roles, limit, max_bytes)
    except (pa.ArrowException, OSError) as error:
        raise SpaceError(f"{path.name}: expected a parquet file, got one that cannot be read ({error})") from error


def _collect(path: Path, batches: Iterator[dict[int, Any]], roles: _Roles, limit: int | None, max_bytes: int) -> Rows:
    """Rows of the batches, each a dict from column number to Arrow array, until the limit."""
    vectors, texts = GrowingMatrix(path, max_bytes), {column: [] for column in roles.texts}
    for columns in batches:
        block = _block([columns[column] for column in roles.dimensions], path, len(vectors), vectors.dimension)
        block = block[: None if limit is None else limit - len(vectors)]
        if len(block):
            vectors.append(block)
        for column in texts:
            texts[column] += columns[column][: len(block)].to_pylist()
        if len(vectors) == limit:
            break
    if not len(vectors):
        raise SpaceError(f"{path.name}: expected at least one row below the column names, got none")
    ids, labels, counts = (texts.get(column) for column in (roles.ids, roles.labels, roles.counts))
    if ids is not None and None in ids:
        raise SpaceError(
            f"{path.name}, row {ids.index(None) + 1}: expected an id, got an empty cell; fill it, or name another id_column"
        )
    if labels is not None:
        labels = ["" if label is None else label for label in labels]
    return Rows(vectors.matrix(), ids, labels, None if counts is None else _counts(path, counts))


def _columns(batch: Any) -> dict[int, Any]:
    return {int(name): column for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def _block(columns: list[Any], path: Path, n_before: int, d: int) -> np.ndarray:
    """Arrow columns as a matrix (m, d): side by side, or the one column of lists unfolded; missing numbers are NaN."""
    import pyarrow.compute as compute

    if not holds_vectors(columns[0].type):
        return np.column_stack([column.to_numpy(zero_copy_only=False).astype(np.float32) for column in columns])
    lengths = compute.fill_null(compute.list_value_length(columns[0]), 0).to_numpy(zero_copy_only=False)
    d = d or int(lengths[0]) if len(lengths) else d
    odd = np.flatnonzero(lengths != d)
    if len(odd) or d == 0:
        row, got = (odd[0], lengths[odd[0]]) if len(odd) else (0, 0)
        raise SpaceError(f"{path.name}, row {n_before + row + 1}: expected a vector of {d or 'some'} numbers, got {got}")
    return columns[0].flatten().to_numpy(zero_copy_only=False).reshape(-1, d)


def _counts(path: Path, counts: list[Any]) -> np.ndarray:
    try:
        return np.array([int(count) for count in counts], dtype=np.int64)
    except (TypeError, ValueError) as error:
        raise SpaceError(f"{path.name}: expected whole numbers as counts, got {error}; mend or rename the column") from error


def holds_vectors(arrow_type: Any, of: Callable[[Any], bool] | None = None) -> bool:
    """Whether a column of this type holds lists of numbers, or of those for whose type `of` is true."""
    from pyarrow import types

    is_list = types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type)
    return is_list and (of or (lambda kind: types.is_floating(kind) or types.is_integer(kind)))(arrow_type.value_type)


def _roles(
    path: Path, names: list[str], is_number: list[bool], is_text: list[bool], id_column: str | None, label_column: str | None
) -> _Roles:
    for option, column in (("id_column", id_column), ("label_column", label_column)):
        if column is not None and column not in names:
            raise SpaceError(f"{path.name}: {option} expects one of {quote(names[:8])}, got {column!r}")

    def find(option: str | None, *usual: str) -> int | None:
        if option is not None:
            return names.index(option)
        return next((i for i, name in enumerate(names) if name.strip().lower() in usual), None)

    ids, labels, counts = find(id_column, "id", "ids"), find(label_column, "label", "labels"), find(None, "count", "counts")
    if ids is None:
        ids = next((i for i, text in enumerate(is_text) if text and i not in (labels, counts)), None)
    index = next((i for i, name in enumerate(names) if name in _INDEX_NAMES), None)
    dimensions = tuple(i for i, number in enumerate(is_number) if number and i not in (labels, counts, ids, index))
    if not dimensions:
        raise SpaceError(
            f"{path.name}: expected columns of numbers, got {quote(names[:8])} without one; is the delimiter right?"
        )
    return _Roles(dimensions, index if ids is None else ids, labels, counts)


def _look(path: Path, delimiter: str) -> tuple[int, list[str], list[bool], list[bool]]:
    """Lines up to the column names; the names; which columns start with numbers, at least half of them; which with text."""
    rows = _cells(path, delimiter)
    line, names = next(rows, (0, []))
    if not names:
        raise SpaceError(f"{path.name}: expected a line of column names and rows below it, got an empty file")
    if any(tells_number(name) and not name.strip().isdigit() for name in names):
        raise SpaceError(
            f"{path.name}, line 1: expected the names of the columns, got numbers: {quote(names[:4])}; add a line of names"
        )
    sample = [cells for _, cells in islice(rows, _ROWS_TO_LOOK_AT)]
    columns = [[cells[i].strip() for cells in sample if i < len(cells)] for i in range(len(names))]
    is_number = [_mostly_numbers(cells) for cells in columns]
    return line, names, is_number, [any(cells) and not number for cells, number in zip(columns, is_number, strict=True)]


def _mostly_numbers(cells: list[str]) -> bool:
    """Whether at least half of the cells that say something are numbers; a column of "nan" alone is one of numbers."""
    telling = [cell for cell in cells if cell not in _MISSING] or [cell for cell in cells if cell]
    return bool(telling) and sum(map(tells_number, telling)) * 2 >= len(telling)


def _fault(path: Path, delimiter: str, names: list[str], roles: _Roles) -> SpaceError | None:
    """The first line that is no row of this table: read again, slowly, once something is known to be wrong."""
    for line, cells in islice(_cells(path, delimiter), 1, None):
        if len(cells) != len(names):
            return SpaceError(
                f"{path.name}, line {line}: expected {len(names)} cells as in line 1, got {len(cells)}; mend or remove the line"
            )
        for column in roles.dimensions:
            if cells[column].strip() not in _MISSING and not tells_number(cells[column]):
                return SpaceError(
                    f"{path.name}, line {line}, column {names[column]!r}: expected a number, got {quote([cells[column]])}"
                    "; mend the cell, or take the column as id_column or label_column"
                )
    return None


def _cells(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each line that is not blank."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except (UnicodeDecodeError, csv.Error) as error:
            raise SpaceError(
                f"{path.name}, after line {reader.line_num}: expected UTF-8 text in cells, got {error}; save it as UTF-8"
            ) from error


def tells_number(cell: str) -> bool:
    """Whether a cell is a number as files write it; Python alone would take "1_000"."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
