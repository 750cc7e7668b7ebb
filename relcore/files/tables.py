"""Tables of vectors, read batch by batch once the role of every column is clear; see `relcore.files.columns`.

.csv and .tsv: the first line names the columns; UTF-8, a decimal point, cells in quotes where needed.
.parquet, .arrow and .feather: number columns, or one column of lists of equal length, are the vectors.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.files.arrays import MAPPED
from relcore.files.columns import EMPTY, Choices, Column, Columns, ColumnValues, assign
from relcore.files.formats import ARROW, BLOCK_BYTES, Blocks, Description, Format, Regions, Request

ARROW_SUFFIXES = (".arrow", ".feather")
TABLES = (".parquet", ".csv", ".tsv", *ARROW_SUFFIXES)
_TEXTS = ("ids", "labels", "counts")
_BATCH_ROWS = 4096
_ROWS_TO_LOOK_AT = 100
_CELLS_TO_LOOK_AT = 1_000_000
_CHARACTERS_TO_LOOK_AT = 1 << 25

# Cells of delimited text. A number is written with ASCII digits and a decimal point. Python's float() alone
# would also take "1_000" and the digits of any script; readers of other programs take "1,5" or "1 000". Such
# cells are named, so that nobody guesses what they mean.

Holds = Literal["number", "nothing", "text", "odd number"]
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "nan", "NaN", "-nan", "-NaN")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
LONGEST_LINE = 1 << 23
_MOST_COLUMNS = 120_000
_MOST_BLANK = 100_000  # lines in a row
_NUMBER = re.compile(NUMBER)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_ODD = re.compile(
    r"[+\-−]?[$€£]?\s?(\d+,\d+|\d{1,3}([,.' \u00a0\u202f’]\d{3})+([.,]\d+)?|\d[\d_]*_\d+(\.\d+)?|\d*\.?\d+)"
    r"([eE][+\-−]?\d+)?\s?[%€f]?"
    r"|[+-]?0[xX][0-9a-fA-F.]+([pP][+-]?\d+)?|[+-]?\d+\.?\d*[dD][+-]?\d+"
)
_OTHERS = {";": "a semicolon", "\t": "a tab", ",": "a comma", "|": "a bar"}
BYTES = "bytes that are no text"
csv.field_size_limit(LONGEST_LINE)  # Python's own limit, 128 kB, is less than a document in a cell


def what_is(cell: str) -> Holds:
    """What a cell holds. Infinity and words for missing values count as nothing: text may have them, too."""
    cell = cell.strip()
    if _NUMBER.fullmatch(cell):
        return "number"
    if cell in MISSING or _INFINITE.fullmatch(cell):
        return "nothing"
    return "odd number" if _ODD.fullmatch(cell) else "text"


def is_number(cell: str) -> bool:
    """Whether a cell is a number as files write it."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def delimiter_of(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def delimited_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each line that is not blank, for the first rows: slow, but it knows the lines.

    Raises
    ------
    SpaceError
        No UTF-8 text, zero bytes, a line that is too long; with its line.
    """
    with path.open(encoding="utf-8-sig", newline="") as stream:

        def lines() -> Iterator[str]:
            while line := stream.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE or "\0" in line:
                    raise csv.Error("a zero byte, or a line that is too long")
                yield line

        reader = csv.reader(lines(), delimiter=delimiter_of(path))
        try:
            blank = 0
            for cells in reader:
                blank = 0 if cells else blank + 1
                if blank > _MOST_BLANK:
                    raise csv.Error("very many blank lines")
                if cells:
                    yield reader.line_num, cells
        except (UnicodeDecodeError, csv.Error) as error:
            raise SpaceError(
                f"{path.name}, after line {reader.line_num}: expected a row of cells in UTF-8, got"
                f" {getattr(error, 'reason', error)}; save it as UTF-8, or mend the line"
            ) from None


def delimited_header(path: Path) -> tuple[int, list[str], list[tuple[int, list[str]]]]:
    """Lines up to the column names, these, and the first rows with their lines.

    Raises
    ------
    SpaceError
        No names, rows of unequal length, another delimiter.
    """
    rows = delimited_rows(path)
    header, names = next(rows, (0, []))
    names = [one.strip() for one in names]
    _check_header(path, header, names)
    sample: list[tuple[int, list[str]]] = []
    size = 0
    for line, cells in islice(rows, max(2, min(_ROWS_TO_LOOK_AT, _CELLS_TO_LOOK_AT // len(names)))):
        if len(cells) != len(names):
            raise SpaceError(
                f"{path.name}, line {line}: expected {len(names)} cells as in line {header}, got"
                f" {len(cells)}; mend or remove the line"
            )
        sample.append((line, cells))
        size += sum(map(len, cells))
        if size > _CHARACTERS_TO_LOOK_AT:
            break
    return header, names, sample


def _check_header(path: Path, line: int, names: list[str]) -> None:
    if not names:
        raise SpaceError(f"{path.name}: expected a line of column names and rows below, got none; write it")
    where, delimiter = f"{path.name}, line {line}", delimiter_of(path)
    if len(names) > _MOST_COLUMNS:
        raise SpaceError(
            f"{where}: expected at most {_MOST_COLUMNS:,} columns, got {len(names):,}; save vectors as .npy"
        )
    other = next((one for one in _OTHERS if one != delimiter and one in names[0]), None)
    if len(names) == 1 and other:
        raise SpaceError(
            f"{where}: expected columns of numbers, got {quote(names)} without one; is the delimiter right?"
            f" Cells of a {path.suffix.lower()} file are separated by {_OTHERS[delimiter]}, and these by"
            f" {_OTHERS[other]}"
        )
    whole = [one.isascii() and one.isdigit() for one in names]
    digits = [int(name) for name, digit in zip(names, whole, strict=True) if digit]
    counted = digits in (list(range(len(digits))), list(range(1, len(digits) + 1)))
    if any(is_number(name) and not digit for name, digit in zip(names, whole, strict=True)) or not counted:
        raise SpaceError(
            f"{where}: expected the names of the columns, got numbers: {quote(names[:4])}; add a line of"
            " names"
        )


def delimited_batches(path: Path, types: dict[int, Any], block_bytes: int = BLOCK_BYTES) -> Iterator[Any]:
    """Arrow batches of these columns, named by their places; `ArrowInvalid` where a row or cell is not what
    `types` says.
    """
    import pyarrow.csv as arrow_csv

    header, names, _ = delimited_header(path)
    yield from arrow_csv.open_csv(
        path,
        arrow_csv.ReadOptions(
            use_threads=False,
            block_size=block_bytes,
            skip_rows=header,
            column_names=[str(place) for place in range(len(names))],
        ),
        arrow_csv.ParseOptions(delimiter=delimiter_of(path), newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types={str(place): kind for place, kind in types.items()},
            include_columns=[str(place) for place in types],
            null_values=MISSING,
        ),
    )


class Delimited(Format):
    """A .csv or .tsv file. The first hundred rows tell the roles; what breaks them later is an error.

    An empty cell or NA in a number column is NaN, in a label no label.
    """

    libraries = ARROW
    has_columns = True

    def describe(self, path: Path) -> Description:
        rows = list(islice(delimited_rows(path), 2))
        numbers = len(rows) == 2 and sum(map(is_number, rows[1][1])) >= 2
        return Description({"": (None, None)}, "") if numbers else Description()

    def columns(self, path: Path, choices: Choices) -> Columns:
        _, names, sample = delimited_header(path)
        if not sample:
            raise SpaceError(
                f"{path.name}: expected at least one row below the column names, got none; add the rows"
            )
        values = [_held(name, place, sample) for place, name in enumerate(names)]
        n = (
            len(sample)
            if len(list(islice(delimited_rows(path), len(sample) + 2))) <= len(sample) + 1
            else None
        )
        return replace(assign(path.name, values, choices), n=n)

    def blocks(self, path: Path, request: Request) -> Blocks:
        import pyarrow as pa

        columns = self.columns(path, request.choices)
        columns.check(path.name)
        types = {place: pa.float32() for place in columns.places("dimension")}
        types |= {place: pa.string() for place in (*_text_places(columns), *columns.unsure)}
        seen = dict.fromkeys(columns.unsure, 0)
        n = 0

        def batches() -> Iterator[dict[int, Any]]:
            nonlocal n
            for batch in delimited_batches(path, types):
                if request.limit is not None:
                    batch = batch.slice(0, request.limit - n)
                cells = {int(name): one for name, one in zip(batch.schema.names, batch.columns, strict=True)}
                for place in seen:
                    seen[place] += _numbers_in(path, columns.columns[place], cells[place], n)
                n += batch.num_rows
                yield cells

        texts = yield from _unfolded(path, batches(), columns, request)
        ids = columns.place("ids")
        if ids in seen and 2 * seen[ids] >= n:
            reason = f"expected text, got numbers in {seen[ids]:,} of {n:,} rows"
            raise SpaceError(f"{path.name}, {replace(columns.columns[ids], reason=reason).fault}")
        if "labels" in texts:
            texts["labels"] = ["" if one in MISSING else one for one in texts["labels"]]
        return texts


def _held(name: str, place: int, sample: list[tuple[int, list[str]]]) -> ColumnValues:
    """What the cells of a column hold: numbers if all that tell something are numbers, text if none is."""
    kinds: dict[str, tuple[int, str]] = {}
    n_numbers = n_texts = 0
    whole = True
    for line, cells in sample:
        cell = cells[place]
        kind = what_is(cell)
        if kind == "number":
            n_numbers += 1
            whole = whole and cell.strip().lstrip("+-").isdigit()
        n_texts += kind in ("text", "odd number")
        kinds.setdefault("empty" if kind == "nothing" and not cell.strip() else kind, (line, cell))
    odd = "odd number" in kinds and ("text" not in kinds or "number" in kinds)
    if odd or (n_numbers and n_texts):
        strange = "odd number" if odd else "text" if n_texts <= n_numbers else "number"
        line, cell = kinds[strange]
        note = number_in_text(cell) if strange == "number" else _no_number(cell)
        return ColumnValues(name, "mixed", note, f"line {line}")
    if n_numbers or (not n_texts and "nothing" in kinds):
        return ColumnValues(name, "numbers", whole=whole and n_numbers > 0)
    return ColumnValues(name, "text" if n_texts else "nothing")


def _no_number(cell: str) -> str:
    odd = what_is(cell) == "odd number"
    form = ", with a decimal point and no other separator, sign or unit" if odd else ""
    return f"expected a number{form}, got {quote([cell])}"


def number_in_text(cell: str) -> str:
    """What is wrong with a column of text that holds a number, too."""
    return f"expected text as in other rows, got the number {quote([cell])}"


def _numbers_in(path: Path, column: Column, cells: Any, before: int) -> int:
    """How many cells of a column are numbers; in one that is left out as text, or as empty, none may be."""
    import pyarrow.compute as compute

    numbers = (
        compute.not_equal(cells, "")
        if column.reason == EMPTY
        else compute.match_substring_regex(cells, rf"^\s*({NUMBER})\s*$")
    )
    if column.role == "left out" and (row := compute.index(numbers, True).as_py()) >= 0:
        strange = replace(
            column, reason=number_in_text(cells[row].as_py()), where=f"row {before + row + 1}", role="unclear"
        )
        raise SpaceError(f"{path.name}, {strange.fault}")
    return compute.sum(numbers).as_py() or 0


def _text_places(columns: Columns) -> tuple[int, ...]:
    return tuple(place for role in _TEXTS if (place := columns.place(role)) is not None)


def _unfolded(
    path: Path, batches: Iterable[dict[int, Any]], columns: Columns, request: Request, texts_too: bool = True
) -> Blocks:
    """Vectors of the batches, each a dict from place to Arrow array, until the limit; then the texts."""
    places = {place: [] for place in (_text_places(columns) if texts_too else ())}
    n = width = 0
    for batch in batches:
        block = vectors_of([batch[place] for place in columns.places("dimension")], path.name, n, width)
        block = block[: None if request.limit is None else request.limit - n]
        n, width = n + len(block), width or block.shape[1]
        for place, cells in places.items():
            cells += batch[place][: len(block)].to_pylist()
        if len(block):
            yield block
        if n == request.limit:
            break
    if not n:
        raise SpaceError(
            f"{path.name}: expected at least one row below the column names, got none; add the rows"
        )
    return {role: places[place] for role in _TEXTS if (place := columns.place(role)) in places}


def vectors_of(columns: list[Any], name: str, n_before: int, d: int) -> np.ndarray:
    """Arrow columns as a matrix (m, d): side by side, or the one column of lists unfolded; missing numbers
    are NaN.

    Raises
    ------
    SpaceError
        A list that is not of d numbers, or of those of the first one where d is 0.
    """
    import pyarrow.compute as compute

    first = stored(columns[0])
    if not holds_vectors(first.type):
        return np.column_stack([floats(column) for column in columns])
    lengths = compute.fill_null(compute.list_value_length(first), 0).to_numpy(zero_copy_only=False)
    d = d or int(lengths[0]) if len(lengths) else d
    odd = np.flatnonzero(lengths != d)
    if len(odd) or d == 0:
        row, got = (odd[0], lengths[odd[0]]) if len(odd) else (0, 0)
        raise SpaceError(
            f"{name}, row {n_before + row + 1:,}: expected a vector of {d or 'some'} numbers, got {got};"
            " mend or remove the row"
        )
    return floats(first.flatten()).reshape(-1, d)


def floats(column: Any) -> np.ndarray:
    """An Arrow array of numbers, of any of their types, as float32 (m,); missing ones are NaN, too large
    ones infinite.
    """
    import pyarrow as pa

    column = stored(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    with np.errstate(over="ignore"):
        return column.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)


def stored(column: Any) -> Any:
    """An Arrow array without the dictionary or the extension type around it."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    lists = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(types, test)(kind) for test in lists)


def holds_vectors(kind: Any, of: Callable[[Any], bool] = _is_number) -> bool:
    """Whether a column of this type holds lists of numbers, or of those for whose type `of` is true."""
    return _is_list(kind) and of(kind.value_type)


class _Typed(Format):
    """Columns with types. Text columns are looked at for numbers, and columns of bytes for text, in their
    first rows.
    """

    libraries = ARROW
    has_columns = has_regions = True

    def open(self, path: Path) -> Any:
        """What has `schema_arrow`, `n_rows` and `batches(rows, columns)`."""
        raise NotImplementedError

    def describe(self, path: Path) -> Description:
        import pyarrow as pa

        table = self.open(path)
        floating = sum(pa.types.is_floating(one.type) for one in table.schema)
        lists = [one.type for one in table.schema if holds_vectors(one.type, of=pa.types.is_floating)]
        if len(lists) == 1:
            width = lists[0].list_size if pa.types.is_fixed_size_list(lists[0]) else None
        elif floating >= 2 and not lists:
            width = floating
        else:
            return Description()
        return Description({"": (table.n_rows, width)}, "")

    def columns(self, path: Path, choices: Choices) -> Columns:
        return self._columns(path, self.open(path), choices)

    def _columns(self, path: Path, table: Any, choices: Choices) -> Columns:
        import pyarrow as pa

        fields = list(table.schema)
        values = [
            ColumnValues(one.name, *_kind(one.type), whole=pa.types.is_integer(one.type)) for one in fields
        ]
        columns = assign(path.name, values, choices)
        names = [
            one.name
            for one, value, column in zip(fields, values, columns.columns, strict=True)
            if (value.note == BYTES and column.reason != "chosen")
            or (value.holds == "text" and not column.sure)
        ]
        first = next(table.batches(_ROWS_TO_LOOK_AT, names), None) if names else None
        for place in range(len(fields)) if first is not None else ():
            if fields[place].name in names:
                values[place] = _looked_at(values[place], first.column(fields[place].name))
        columns = assign(path.name, values, choices)
        for place, column in enumerate(columns.columns):
            if values[place].holds == "text" and values[place].note and not column.sure:
                cell, only = values[place].note, values[place].whole
                # Whole numbers as text are fit for ids; a column of them that is left out, or a fraction, was
                # meant as numbers.
                if not cell.isdigit() or (only and column.role == "left out"):
                    values[place] = replace(values[place], holds="mixed", note=number_in_text(cell))
        columns = assign(path.name, values, choices)
        place = columns.place("dimension")
        kind = None if place is None else fields[place].type
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        width = kind.list_size if kind is not None and pa.types.is_fixed_size_list(kind) else None
        return replace(columns, n=table.n_rows, width=width)

    def blocks(self, path: Path, request: Request) -> Blocks:
        table = self.open(path)
        columns = self._columns(path, table, request.choices)
        columns.check(path.name)
        dimensions, texts = columns.places("dimension"), _text_places(columns)
        width = self._width(table, columns)
        request.rows(path, table.n_rows, width)
        batches = self._batches(table, columns, (*dimensions, *texts), width, request)
        return (yield from _unfolded(path, batches, columns, request))

    def _width(self, table: Any, columns: Columns) -> int:
        import pyarrow.compute as compute

        if columns.dimension:
            return columns.dimension
        name = columns.columns[columns.place("dimension")].name
        first = next((one for one in table.batches(1, [name]) if one.num_rows), None)
        width = None if first is None else compute.list_value_length(stored(first.column(0)))[0].as_py()
        return width or 1

    def _batches(
        self, table: Any, columns: Columns, places: Sequence[int], width: int, request: Request
    ) -> Iterator[dict[int, Any]]:
        rows = min(_BATCH_ROWS, request.limit or _BATCH_ROWS, max(1, BLOCK_BYTES // (4 * width)))
        names = {columns.columns[place].name: place for place in places}
        for batch in table.batches(rows, list(names)):
            yield {names[name]: batch.column(name) for name in batch.schema.names}

    def _some_texts(self, path: Path, table: Any, columns: Columns, n: int) -> dict[str, list[Any]]:
        texts = _text_places(columns)
        cells: dict[int, list[Any]] = {place: [] for place in texts}
        for batch in self._batches(table, columns, texts, 1, Request(n)) if texts else ():
            for place, some in batch.items():
                cells[place] += some.to_pylist()
            if all(len(some) >= n for some in cells.values()):
                break
        return {role: cells[place][:n] for role in _TEXTS if (place := columns.place(role)) in cells}


class Parquet(_Typed):
    """A .parquet file. The vectors of a large one are decoded once, into the store."""

    def open(self, path: Path) -> Any:
        return ParquetFile(path)

    def regions(self, path: Path, request: Request) -> Regions | None:
        table = self.open(path)
        columns = self._columns(path, table, request.choices)
        columns.check(path.name)
        n = table.n_rows if request.limit is None else min(table.n_rows, request.limit)
        if not n:
            return None
        names = tuple(columns.columns[place].name for place in columns.places("dimension"))
        texts = self._some_texts(path, table, columns, n)
        return Regions([], names, texts, (n, self._width(table, columns)))


class Arrow(_Typed):
    """An .arrow file as `datasets` saves it, or version 2 of Feather. The lists of a large one are mapped."""

    def open(self, path: Path) -> Any:
        return ArrowFile(path)

    def regions(self, path: Path, request: Request) -> Regions | None:
        table = self.open(path)
        columns = self._columns(path, table, request.choices)
        columns.check(path.name)
        n = table.n_rows if request.limit is None else min(table.n_rows, request.limit)
        places = columns.places("dimension")
        name = columns.columns[places[0]].name
        parts, rows = [], 0
        for batch in table.batches(None, [name]) if len(places) == 1 else ():
            part = _region(batch.column(0), table.address, table.size)
            if part is None or (parts and part[2][1] != parts[0][2][1]):
                return None
            at, kind, (m, d) = part
            parts.append((at, kind, (min(m, n - rows), d)))
            rows += parts[-1][2][0]
            if rows == n:
                break
        if not rows:
            return None
        return Regions(parts, (name,), self._some_texts(path, table, columns, n))


def _region(column: Any, address: int, size: int) -> tuple[int, str, tuple[int, int]] | None:
    """Where the lists of a column lie in the mapped file; None where they are no such floats, are missing or
    compressed, or have several lengths.
    """
    import pyarrow as pa

    kind = column.type
    if not _is_list(kind) or not pa.types.is_floating(kind.value_type) or column.null_count:
        return None
    values = column.flatten()
    fixed = pa.types.is_fixed_size_list(kind)
    lengths = {kind.list_size} if fixed else set(np.diff(column.offsets.to_numpy()).tolist())
    dtype = values.type.to_pandas_dtype()
    if values.null_count or len(lengths) != 1 or lengths == {0} or np.dtype(dtype).name not in MAPPED:
        return None
    at = values.buffers()[1].address + values.offset * np.dtype(dtype).itemsize - address
    inside = at >= 0 and at + len(values) * np.dtype(dtype).itemsize <= size
    return (at, np.dtype(dtype).name, (len(column), lengths.pop())) if inside else None


class ParquetFile:
    """A parquet file by batches of rows."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as parquet

        # Not buffered ahead, or it would hold every row group that was read.
        self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        self.schema, self.n_rows = self.file.schema_arrow, self.file.metadata.num_rows

    def batches(self, rows: int, columns: list[str], **some: Any) -> Iterator[Any]:
        return self.file.iter_batches(rows, columns=columns, use_threads=False, **some)


class ArrowFile:
    """An Arrow table in a map of its file, in the stream form or the file form."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        with pa.memory_map(str(path)) as file:
            self._whole = file.read_buffer()
        self.address, self.size = self._whole.address, self._whole.size
        self._in_file = self._whole[:6].to_pybytes() == b"ARROW1"
        self.schema = self._reader().schema
        self.n_rows = sum(batch.num_rows for batch in self._all())

    def _reader(self) -> Any:
        import pyarrow as pa

        return (pa.ipc.open_file if self._in_file else pa.ipc.open_stream)(self._whole)

    def _all(self) -> Iterator[Any]:
        reader = self._reader()
        if self._in_file:
            return (reader.get_batch(number) for number in range(reader.num_record_batches))
        return iter(reader)

    def batches(self, rows: int | None, columns: list[str]) -> Iterator[Any]:
        """Batches of at most this many rows; their offsets and indices are checked first."""
        for batch in self._all():
            wanted = batch.select(columns)
            wanted.validate(full=True)
            step = rows or max(1, len(wanted))
            for start in range(0, len(wanted), step):
                yield wanted.slice(start, step)


def _kind(kind: Any) -> tuple[str, str]:
    """What a column of this type holds, and a note on it."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(kind, pa.BaseExtensionType):
        shape = getattr(kind, "shape", None)
        if shape is not None and len(shape) > 1:
            return "mixed", f"expected a vector per row, got an array of shape {tuple(shape)}"
        return _kind(kind.storage_type)
    if types.is_dictionary(kind):
        return _kind(kind.value_type)
    if _is_number(kind):
        return "numbers", ""
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text", ""
    if types.is_boolean(kind):
        return "flags", ""
    if holds_vectors(kind):
        return "vectors", ""
    if _is_list(kind) and (_is_list(kind.value_type) or types.is_boolean(kind.value_type)):
        return "mixed", f"expected numbers or one list of numbers per row, got {kind}"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "other", BYTES
    return "other", f"of type {kind!s:.40}"


def _looked_at(values: ColumnValues, cells: Any) -> ColumnValues:
    """A column of text or bytes by its first cells: bytes that are UTF-8 are text, which older writers do not
    mark; the note of text is the first number in it, a fraction before a whole one, and `whole` tells whether
    all cells are numbers.
    """
    import pyarrow as pa
    import pyarrow.compute as compute

    cells = stored(cells)
    with suppress(pa.ArrowInvalid):
        texts = (cells.cast(pa.large_binary()) if values.note == BYTES else cells).cast(pa.large_string())
        if texts.null_count == len(texts):
            return values
        texts = compute.utf8_trim_whitespace(texts)
        numbers = compute.match_substring_regex(texts, f"^({NUMBER})$")
        fractions = compute.and_(numbers, compute.match_substring_regex(texts, "[^0-9]"))
        row = compute.index(fractions, True).as_py()
        row = compute.index(numbers, True).as_py() if row < 0 else row
        note, where = (texts[row].as_py(), f"row {row + 1}") if row >= 0 else ("", "")
        return replace(
            values, holds="text", note=note, where=where, whole=bool(compute.all(numbers).as_py() and note)
        )
    return values
