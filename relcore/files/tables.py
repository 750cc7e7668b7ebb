"""Read tables (.csv, .tsv, .jsonl, .txt, .parquet, .arrow, .feather) with pyarrow in the confined process.

`relcore.files.reading` opens them from other processes. In .csv and .tsv files the first line names the
columns. A .txt file is read as a table with one column, `text`, that holds its lines.
"""

from __future__ import annotations

import csv
import io
import json
import re
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from pyarrow import types

from relcore.base.errors import SpaceError, quote
from relcore.base.text import visible
from relcore.files.columns import INDEX, Choices, Columns, ColumnValues, assign, assign_metadata
from relcore.files.formats import ARROW, BLOCK_BYTES, MAPPED, Blocks, Description, Format, Regions, Request

ARROW_SUFFIXES = (".arrow", ".feather")
TABLES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", *ARROW_SUFFIXES)
ColumnKind = Literal["image", "text", "number", "other"]
_TEXTS = ("ids", "labels", "counts")
_BATCH_ROWS = 4096
_ROWS_TO_LOOK_AT = 100
# number of rows and columns of a table of metadata that are examined
_FIRST_ROWS = 256
_FIRST_COLUMNS = 64
_HELD_BYTES = 32 << 20
# number of numbered columns, or of columns of numbers, that indicate vectors
_SERIES = 3
_MANY_NUMBERS = 16
_SHOWN = 60  # maximum number of characters of a cell in a preview
_MOST_COLUMNS = 120_000

Batch = dict[int, Any]  # number of a column → Arrow array


class OpenedTable:
    """A table on disk.

    Attributes
    ----------
    names : list of str
    schema : Arrow's types of the columns
    n : int or None
        The number of rows; None if only the beginning of the file was read.
    starts : list of int
        The first row of each row group, and at the end the number of rows. `group(column, group)` returns the
        cells of a group.
    class_names : dict from label column to the names of its numbers
    missing : tuple of str
        Cells that stand for "no label".
    note, encoding : str
        A note on unusual properties of the file, and its text encoding; "" if there is none.
    """

    missing: tuple[str, ...] = ()
    note = encoding = ""
    n: int | None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = OrderedDict()
        self.class_names = {}

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        """Yield blocks of the cells of these columns, with at most `rows` rows each if the file allows it.
        Columns in `texts` are left as text."""
        raise NotImplementedError

    @property
    def starts(self) -> list[int]:
        return [0, self.n]

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """The kind of each column. "image" means cells of bytes, or cells {"bytes": …, "path": …} as in
        Hugging Face's tables.
        """
        return {name: _arrow_kind(field.type) for name, field in zip(self.names, self.schema, strict=True)}

    def values(self) -> list[ColumnValues]:
        """The kind of values in each column. Texts and bytes are judged by the first rows."""
        values = [
            ColumnValues(name, *_held(kind.type)) for name, kind in zip(self.names, self.schema, strict=True)
        ]
        places = [i for i, item in enumerate(values) if item.holds == "text" or item.note == _BYTES]
        for place, cells in (next(self.batches(places, _ROWS_TO_LOOK_AT), {}) if places else {}).items():
            values[place] = _text_values(values[place], cells)
        return values

    def roles(self, choices: Choices) -> Columns:
        columns = assign(self.path.name, self.values(), choices)
        place = columns.place("dimension")
        if place is None:
            width = None
        else:
            width = _fixed_width(self.schema.field(place).type)
        return replace(columns, n=self.n, width=width, note=self.note)

    def width(self, columns: Columns) -> int:
        """The length of the vectors; 0 if the first row has no vector."""
        if columns.dimension:
            return columns.dimension
        place = columns.place("dimension")
        first = next((batch[place] for batch in self.batches([place], 1) if len(batch[place])), None)
        if first is None:
            return 0
        return compute.list_value_length(decode_array(first))[0].as_py() or 0

    def regions(self, columns: Columns, n: int) -> Regions | None:
        return None

    def first(self, places: Sequence[int], n: int) -> dict[int, list[Any]]:
        cells: dict[int, list[Any]] = {place: [] for place in places}
        for batch in _at_most(self.batches((), min(n, _BATCH_ROWS), places), n) if places else ():
            for place, some in batch.items():
                cells[place] += some.to_pylist()
        return cells

    def confined_facts(self) -> dict[str, Any]:
        facts = {"n": self.starts[-1], "columns": self.kinds, "class_names": self.class_names}
        return facts | {"encoding": self.encoding}

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        values: list[Any] = []
        while start < min(stop, self.starts[-1]):
            group = bisect_right(self.starts, start) - 1
            some = self._cells(column, group).slice(start - self.starts[group], stop - start)
            values += some.to_pylist()
            start += len(some)
        return values

    def _cells(self, column: str, group: int) -> Any:
        key = (column, group)
        held = self._held
        if key not in held:
            held[key] = self.group(column, group)
            while len(held) > 1 and sum(item.nbytes for item in held.values()) > _HELD_BYTES:
                held.popitem(last=False)
        held.move_to_end(key)
        return held[key]

    def metadata(self, choices: Choices) -> Columns:
        kinds = self.kinds
        name = self.path.name
        names = list(kinds)
        some = [i for i, item in enumerate(names[:_FIRST_COLUMNS]) if kinds[item] in ("text", "number")]

        def is_distinct(place: int) -> bool:
            groups = [self.group(names[place], group) for group in range(len(self.starts) - 1)]
            cells = pa.chunked_array([part for item in groups for part in getattr(item, "chunks", [item])])
            if types.is_floating(cells.type) or cells.null_count:
                return False
            blank = types.is_string(cells.type) and compute.any(
                compute.equal(compute.utf8_trim_whitespace(cells), "")
            )
            return not (blank and blank.as_py()) and compute.count_distinct(cells).as_py() == len(cells)

        columns = assign_metadata(name, kinds, self.first(some, _FIRST_ROWS), is_distinct, choices)
        return replace(columns, n=self.starts[-1], note=self.note)


def _at_most(batches: Iterable[Batch], limit: int | None) -> Iterator[Batch]:
    for batch in batches:
        if limit is None:
            some = batch
        else:
            some = {place: cells.slice(0, limit) for place, cells in batch.items()}
        yield some
        if limit is not None:
            limit -= len(next(iter(some.values())))
            if not limit:
                return


class Tables(Format):
    """The format of tables of vectors, which are columns of numbers or one column of lists of equal
    length."""

    libraries = ARROW
    has_columns = has_regions = True

    def describe(self, path: Path) -> Description:
        table = table_of(path, rows=_ROWS_TO_LOOK_AT)
        # If columns have types, only floats count as dimensions, because whole numbers seldom are.
        if isinstance(table, _TextRows):
            fits = _is_number
        else:
            fits = types.is_floating
        numbers = sum(fits(field.type) for field in table.schema)
        lists = [field.type for field in table.schema if is_vectors(field.type, of=fits)]
        if len(lists) == 1 or (numbers >= 2 and not lists):
            known = (table.n, _fixed_width(lists[0]) if lists else numbers)
            return Description({"": (None, None) if isinstance(table, _TextRows) else known}, "")
        return Description()

    def columns(self, path: Path, choices: Choices) -> Columns:
        return table_of(path, choices.encoding, rows=_BATCH_ROWS).roles(choices)

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
        rows = min(_BATCH_ROWS, request.limit or _BATCH_ROWS, max(1, BLOCK_BYTES // (4 * max(1, width))))
        cells: dict[str, list[Any]] = {role: [] for role in texts}
        for batch in _at_most(table.batches(dimensions, rows, tuple(texts.values())), request.limit):
            vectors = vectors_of([batch[place] for place in dimensions], path.name, n, width)
            n += len(vectors)
            for role, place in texts.items():
                cells[role] += batch[place].to_pylist()
            if len(vectors):
                yield vectors
        if not n:
            raise _no_rows(path)
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
    table = table_of(path, rows=_BATCH_ROWS)
    numbers = [name for name, kind in table.kinds.items() if kind == "number"]
    series = Counter(re.sub(r"\d+$", "", name) for name in numbers if name[-1:].isdigit())
    many = len(numbers) >= _MANY_NUMBERS or max(series.values(), default=0) >= _SERIES
    return table.kinds, many or any(is_vectors(field.type) for field in table.schema)


def first_cells(path: Path, n: int, encoding: str = "") -> dict[str, list[str]]:
    table = table_of(path, encoding, n)
    cells = table.first(range(len(table.names[:_FIRST_COLUMNS])), n)
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


def _no_rows(path: Path) -> SpaceError:
    return SpaceError(
        f"{path.name}: expected at least one row below the column names, got none; add the rows"
    )


# Detect the encoding here, because DuckDB, polars, pandas and pyarrow recognise only UTF-8.

UTF8 = "utf-8"
ENCODINGS = {
    UTF8: "UTF-8",
    "cp1252": "Windows-1252, Western European",
    "cp1250": "Windows-1250, Central European",
    "cp1251": "Windows-1251, Cyrillic",
    "iso8859-15": "ISO 8859-15, Western European",
    "mac-roman": "Mac Roman",
    "koi8-r": "KOI8-R, Cyrillic",
    "shift_jis": "Shift JIS, Japanese",
    "gb18030": "GB 18030, Chinese",
    "big5": "Big5, Chinese",
    "euc-kr": "EUC-KR, Korean",
    "utf-16": "UTF-16",
}
_LOOKED_AT = 1 << 24  # bytes from which an encoding is detected
_OF_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_LETTERS = bytes((*range(65, 91), *range(97, 123)))
_LIKELY = bytes({*range(0xC0, 256)} - {0xD7, 0xF7}) + "€‚„…‰Š‹ŒŽ‘’“”•–—™š›œžŸ¡£§©ª«®°µ·º»¿\xa0".encode(
    "cp1252"
)
# The largest share of letters beyond ASCII: in Western European languages at most .1, in others above .5.
_BEYOND_ASCII = 0.25


def encoding_of(path: Path, chosen: str = "") -> str:
    """The encoding of a file: the chosen one, if given. Otherwise UTF-8, UTF-16 if the file begins with its
    mark, or Windows-1252 if that is likely.

    Raises a SpaceError if the chosen encoding is unknown or if no encoding is likely.
    """
    if chosen:
        if chosen not in ENCODINGS:
            raise SpaceError(f"{path.name}: encoding: expected one of {quote(ENCODINGS)}, got {chosen!r:.40}")
        return chosen
    with path.open("rb") as stream:
        content = stream.read(_LOOKED_AT)
    try:
        content.decode(UTF8)
        return UTF8
    except UnicodeDecodeError as error:
        place = error.start
        is_cut = error.reason == "unexpected end of data"
        if is_cut and len(content) == _LOOKED_AT:
            return UTF8
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) and len(content) % 2 == 0:
        return "utf-16"
    # UTF-8 sequences among other bytes indicate a damaged file. Many bytes beyond ASCII indicate another
    # encoding, and so do bytes that are rare in Western European text. A wrong guess would change every id.
    letters = len(content) - len(content.translate(None, _LETTERS))
    high = content.translate(None, bytes(range(128)))
    unlikely = len(high.translate(None, _LIKELY))
    is_text = b"\0" not in content and not is_cut and not _OF_UTF8.search(content)
    if is_text and len(high) <= _BEYOND_ASCII * (letters + len(high)) and 4 * unlikely <= len(high):
        with suppress(UnicodeDecodeError):
            content.decode("cp1252")
            return "cp1252"
    line = content.count(b"\n", 0, place) + 1
    raise SpaceError(
        f"{path.name}, line {line}: expected text in UTF-8, got a byte 0x{content[place]:02x}; choose its"
        f" encoding ({quote(ENCODINGS)}), or save it as UTF-8"
    )


def _decode(path: Path, encoding: str, most: int = -1) -> str:
    try:
        with path.open(encoding="utf-8-sig" if encoding == UTF8 else encoding, newline="") as stream:
            text = stream.read(most)
    except UnicodeError as error:
        raise SpaceError(
            f"{path.name}: expected text in {ENCODINGS[encoding]}, got {getattr(error, 'reason', error)};"
            " choose its encoding, or save it as UTF-8"
        ) from None
    if "\0" in text:
        raise SpaceError(f"{path.name}: expected lines of text, got a zero byte; is it a text file?")
    return text


class _TextRows(OpenedTable):
    """The base of tables in text files, which are read into memory as Arrow tables."""

    rows: Any

    def _keep(self, rows: Any) -> None:
        self.rows = rows.combine_chunks()
        self.names = rows.column_names
        self.schema = rows.schema
        self.n = rows.num_rows
        if not self.n:
            raise _no_rows(self.path)

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        columns = {place: self._typed(place) for place in places}
        columns |= {place: self.rows.column(place) for place in texts}
        for start in range(0, self.rows.num_rows, rows):
            yield {place: cells.slice(start, rows).combine_chunks() for place, cells in columns.items()}

    def _typed(self, place: int) -> Any:
        return self.rows.column(place)

    def group(self, column: str, group: int) -> Any:
        return self.rows.column(self.names.index(column))


class TextLines(_TextRows):
    """A .txt file. Each line that is not blank is one text."""

    def __init__(self, path: Path, encoding: str = "") -> None:
        super().__init__(path)
        self.encoding = encoding_of(path, encoding)
        self.note = _read_with(self.encoding)
        lines = [line for line in _decode(path, self.encoding).splitlines() if line.strip()]
        self._keep(pa.table({"text": pa.array(lines, pa.string())}))


class ObjectLines(_TextRows):
    """A .jsonl file of objects."""

    encoding = UTF8

    def __init__(self, path: Path) -> None:
        import pyarrow.json as arrow_json

        super().__init__(path)
        block = max(1 << 20, path.stat().st_size + 1)  # bytes; each JSON object must fit into one block
        options = arrow_json.ReadOptions(use_threads=False, block_size=block)
        rows = arrow_json.read_json(path, options)
        schema = pa.schema([field.with_type(_without_times(field.type)) for field in rows.schema])
        if schema != rows.schema:
            del rows
            rows = arrow_json.read_json(path, options, arrow_json.ParseOptions(explicit_schema=schema))
        self._keep(rows)


def _without_times(kind: Any) -> Any:
    # JSON has no times, but Arrow reads texts such as "1999-01-01" as times.
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(field.type)) for field in kind])
    if types.is_list(kind):
        return pa.list_(_without_times(kind.value_type))
    if types.is_timestamp(kind):
        return pa.string()
    return kind


def _pool() -> Any:
    # Not malloc: Arrow allocates a block per column and frees most of it; for 40,000 columns, the gaps take
    # gigabytes.
    with suppress(NotImplementedError):
        return pa.jemalloc_memory_pool()
    return None


# Delimited text. Numbers have ASCII digits and a decimal point; if semicolons separate the cells, they may
# have a decimal comma. Cells such as "1_000" and "1 000" are errors, because some readers take them for
# numbers.

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "nan", "NaN", "-nan", "-NaN")
_NUMBER_TEXT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NUMBER = re.compile(_NUMBER_TEXT)
_ODD = re.compile(
    r"[+\-−]?[$€£]?\s?(\d+,\d+|\d{1,3}([,.' \u00a0\u202f’]\d{3})+([.,]\d+)?|\d[\d_]*_\d+(\.\d+)?|\d*\.?\d+)"
    r"([eE][+\-−]?\d+)?\s?[%€f]?"
    r"|[+-]?0[xX][0-9a-fA-F.]+([pP][+-]?\d+)?|[+-]?\d+\.?\d*[dD][+-]?\d+"
)
_DELIMITERS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars"}
_COMMA = r"([+-]?[0-9]*),([0-9]*([eE][+-]?[0-9]+)?)"
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_HEAD = 1 << 20  # number of characters in which names, delimiter and quotes are found
_FEW_NUMBERS = 20  # in a column of words, one cell in twenty may be a number, such as 1984
csv.field_size_limit(1 << 23)  # Python's limit, 128 kB, is too small for a document


class DelimitedTable(_TextRows):
    """A .csv or .tsv file. pyarrow reads all cells as text. A column is numeric if all its cells are numbers.

    In a column of numbers, an empty cell or NA means NaN. In a column of labels, it means no label.
    """

    missing = MISSING

    def __init__(self, path: Path, encoding: str = "", rows: int | None = None) -> None:
        super().__init__(path)
        self.encoding = encoding_of(path, encoding)
        usual = ","
        if path.suffix.lower() == ".tsv":
            usual = "\t"
        self._delimiter, line, names, head = self._head(usual)
        self.names = [item.strip() for item in names]
        self._check_header(line)
        if self._delimiter == ";" and _has_decimal_commas(head):
            self._decimal = ","
        else:
            self._decimal = "."
        other = self._delimiter * (self._delimiter != usual)
        self.note = _read_with(self.encoding, other, self._decimal)
        self.rows, whole = self._read(line, rows)
        self.n = self.rows.num_rows if whole else None
        if not self.rows.num_rows:
            raise _no_rows(path)
        self._column = cache(self._column_values)

    def _head(self, usual: str) -> tuple[str, int, list[str], list[list[str]]]:
        """Return the delimiter, the number of the line with the names, the names, and the first rows.

        The delimiter is the usual one. If the line with the names does not contain it, it is the most
        frequent other delimiter.
        """
        text = _decode(self.path, self.encoding, _HEAD)
        names = next((line for line in text.splitlines() if line.strip()), "")
        others = [one for one in _DELIMITERS if one in names]
        if usual in names or not others:
            delimiter = usual
        else:
            delimiter = max(others, key=names.count)
        strict = len(text) < _HEAD  # an excerpt may end within a cell
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
        lines: list[list[str]] = []
        line = 0
        try:
            for cells in reader:
                line = line or (reader.line_num if cells else 0)
                lines += [cells] if cells else []
        except csv.Error as error:
            raise SpaceError(
                f"{self.path.name}, after line {reader.line_num}: expected a row of cells in"
                f" {ENCODINGS[self.encoding]}, got {error}; choose its encoding, save it as UTF-8, or mend"
                " the line"
            ) from None
        return delimiter, line, lines[0] if lines else [], lines[1 : 1 + _ROWS_TO_LOOK_AT]

    def _check_header(self, line: int) -> None:
        names = self.names
        where = f"{self.path.name}, line {line}"
        if not names:
            raise SpaceError(f"{where}: expected a line of column names and rows below, got none; write it")
        if len(names) > _MOST_COLUMNS:
            raise SpaceError(
                f"{where}: expected at most {_MOST_COLUMNS:,} columns, got {len(names):,}; save vectors as"
                " .npy"
            )
        whole = [int(name) for name in names if name.isascii() and name.isdigit()]
        counted = whole in (list(range(len(whole))), list(range(1, len(whole) + 1)))
        if sum(map(is_number, names)) > len(whole) or not counted:
            raise SpaceError(
                f"{where}: expected the names of the columns, got numbers: {quote(names[:4])}; add a line of"
                " names"
            )

    def _read(self, header: int, most: int | None) -> tuple[Any, bool]:
        """Return the cells as text, and whether all rows were read."""
        import pyarrow.csv as arrow_csv

        names = [str(place) for place in range(len(self.names))]
        bad = []

        def keep(row: Any) -> str:
            bad.append(row)
            return "error"

        with self.path.open("rb") as stream:
            quotes = sum(block.count(b'"') for block in iter(lambda: stream.read(1 << 20), b""))
        if quotes % 2:
            raise SpaceError(
                f"{self.path.name}: expected cells in pairs of quotes, got an open one; mend the table, or"
                " write it as parquet"
            )
        batches = []
        n = 0
        schema = pa.schema([(name, pa.string()) for name in names])
        try:
            for batch in arrow_csv.open_csv(
                self.path,
                arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=BLOCK_BYTES,
                    skip_rows=header,
                    column_names=names,
                    encoding="utf8" if self.encoding == UTF8 else self.encoding,
                ),
                arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=keep
                ),
                # Empty lists of spellings of null, true and false: the default lists take 10 kB per column.
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[],
                    true_values=[],
                    false_values=[],
                ),
                _pool(),
            ):
                batches.append(batch)
                n += batch.num_rows
                if most is not None and n >= most:
                    break
        except pa.ArrowInvalid:
            if not bad:
                raise
            (row,) = bad
            raise SpaceError(
                f"{self.path.name}, line {row.number}: expected {row.expected_columns} cells as in line"
                f" {header}, got {row.actual_columns}; mend or remove the line"
            ) from None
        return pa.Table.from_batches(batches, schema), most is None or n < most

    @property
    def schema(self) -> Any:
        fields = [(str(place), self._typed(place).type) for place in range(len(self.names))]
        return pa.schema(fields)

    def _typed(self, place: int) -> Any:
        return self._column(place)[0]

    def values(self) -> list[ColumnValues]:
        return [self._column(place)[1] for place in range(len(self.names))]

    def _column_values(self, place: int) -> tuple[Any, ColumnValues]:
        """Return the cells of a column, converted to their type, and the kind of its values."""

        name = self.names[place]
        cells = self.rows.column(place)
        if self._decimal == "." and name not in INDEX:  # a fast way, because most columns hold only numbers
            with suppress(pa.ArrowInvalid):
                return compute.cast(cells, pa.float32()), ColumnValues(name, "numbers")
        texts = compute.utf8_trim_whitespace(cells)
        if self._decimal == ",":
            texts = compute.replace_substring_regex(texts, f"^{_COMMA}$", r"\1.\2")
        texts = compute.if_else(compute.is_in(texts, pa.array(MISSING)), pa.scalar(None, pa.string()), texts)
        n = len(texts) - texts.null_count
        if not n:  # NaN counts as a number; an empty cell does not
            is_empty = not compute.any(compute.not_equal(compute.utf8_trim_whitespace(cells), "")).as_py()
            return compute.cast(texts, pa.float32()), ColumnValues(name, "nothing" if is_empty else "numbers")
        with suppress(pa.ArrowInvalid):
            numbers = compute.cast(texts, pa.float32())
            whole = compute.all(compute.match_substring_regex(texts, r"^[+-]?[0-9]+$")).as_py()
            return numbers, ColumnValues(name, "numbers", whole=whole)
        numeric = compute.fill_null(compute.match_substring_regex(texts, f"^({_NUMBER_TEXT})$"), False)
        n_numbers = compute.sum(numeric).as_py()
        if not n_numbers and (lists := _lists(texts)) is not None:
            return lists, ColumnValues(name, "vectors")
        if not n_numbers and (found := _bad_vector(texts, name)) is not None:
            return cells, found
        odd = all(_ODD.fullmatch(item) for item in texts.to_pylist() if item is not None)
        if not odd and n_numbers * _FEW_NUMBERS <= n:
            return cells, ColumnValues(name, "text")
        is_text = not odd and 2 * n_numbers < n  # in a column of text, numbers are the exceptions
        if is_text:
            strange = numeric
        else:
            strange = compute.and_not(compute.is_valid(texts), numeric)
        row = compute.index(strange, True).as_py()
        cell = cells[row].as_py()
        form = ""
        if _ODD.fullmatch(cell):
            form = ", with a decimal point and no other separator, sign or unit"
        if is_text:
            note = _number_in_text(cell)
        else:
            note = f"expected a number{form}, got {quote([cell])}"
        return cells, ColumnValues(name, "mixed", note, f"row {row + 1}")


def is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row]
    with_comma = [cell for cell in cells if re.fullmatch(_COMMA, cell)]
    fractions = [cell for cell in cells if "." in cell and is_number(cell)]
    return not fractions and not all(map(_MAYBE_THOUSANDS.fullmatch, with_comma))


def _lists(texts: Any) -> Any:
    """Convert cells such as "[1.5, 2]" to lists of numbers; None if a cell is not such a list."""

    cells = texts.to_pylist()
    if None in cells or not cells[0].startswith("["):
        return None
    vectors = [_numbers_in(cell) for cell in cells]
    if None in vectors:
        return None
    return pa.chunked_array([pa.array(vectors, pa.list_(pa.float32()))])


def _numbers_in(cell: str) -> list[float] | None:
    """The numbers of a cell such as "[1.5, 2]", or "[1.5 2.]" as NumPy prints it; None if it is another
    text."""
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(cell, type=list[float])
    text = cell.strip()
    if text.startswith("[") and text.endswith("]") and "," not in text:
        numbers = text[1:-1].split()
        if numbers and all(map(_NUMBER.fullmatch, numbers)):
            return list(map(float, numbers))
    return None


def _bad_vector(texts: Any, name: str) -> ColumnValues | None:
    """The first cell that is no list of numbers in a column where most are, with its row; None if the column
    holds other texts."""
    cells = texts.to_pylist()
    bad = [place for place, cell in enumerate(cells) if cell is None or _numbers_in(cell) is None]
    if 2 * len(bad) >= len(cells):
        return None
    cell = cells[bad[0]]
    if cell is None:
        got = "an empty cell"
    else:
        got = quote([f"{cell[:40]}…" if len(cell) > 40 else cell])
    return ColumnValues(
        name, "mixed", f"expected a list of numbers as in other rows, got {got}", f"row {bad[0] + 1}"
    )


def _read_with(encoding: str, delimiter: str = "", decimal: str = ".") -> str:
    found = [f"the encoding {ENCODINGS[encoding]}"] * (encoding != UTF8)
    if delimiter:
        found += [f"cells between {_DELIMITERS[delimiter]}"]
    found += ["decimal commas"] * (decimal == ",")
    if found:
        return f"read with {', '.join(found)}"
    return ""


def _number_in_text(cell: str) -> str:
    return f"expected text as in other rows, got the number {quote([cell])}"


def _of_names(table: OpenedTable, places: Sequence[int], batches: Iterable[Any]) -> Iterator[Batch]:
    for batch in batches:
        yield {place: batch.column(table.names[place]) for place in places}


class ParquetTable(OpenedTable):
    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as parquet

        super().__init__(path)
        # Without pre_buffer, which would keep every row group in memory.
        self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        self.schema = self.file.schema_arrow
        self.names = self.schema.names
        self.n = self.file.metadata.num_rows
        self.class_names = _class_names(self.schema.metadata or {})

    @cached_property
    def starts(self) -> list[int]:
        facts = self.file.metadata
        sizes = (facts.row_group(group).num_rows for group in range(facts.num_row_groups))
        return list(accumulate(sizes, initial=0))

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        places = (*places, *texts)
        names = [self.names[place] for place in places]
        return _of_names(self, places, self.file.iter_batches(rows, columns=names, use_threads=False))

    def group(self, column: str, group: int) -> Any:
        rows = max(1, self.starts[group + 1] - self.starts[group])
        some = self.file.iter_batches(rows, row_groups=[group], columns=[column], use_threads=False)
        return pa.chunked_array([batch.column(0) for batch in some])

    def regions(self, columns: Columns, n: int) -> Regions | None:
        names = tuple(columns.columns[place].name for place in columns.places("dimension"))
        return Regions([], names, decoded=(n, max(1, self.width(columns))))


class ArrowTable(OpenedTable):
    """An .arrow file (in stream or file form) or a file of Feather version 2, as a memory map."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with pa.memory_map(str(path)) as file:
            self._whole = file.read_buffer()
        self._in_file = self._whole[:6].to_pybytes() == b"ARROW1"
        self.schema = self._reader().schema
        self.names = self.schema.names
        self.n = sum(batch.num_rows for batch in self._all())

    def _reader(self) -> Any:
        return (pa.ipc.open_file if self._in_file else pa.ipc.open_stream)(self._whole)

    def _all(self) -> Iterator[Any]:
        reader = self._reader()
        if self._in_file:
            return (reader.get_batch(number) for number in range(reader.num_record_batches))
        return iter(reader)

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        # With rows=0, batches have any size. Offsets and indices are validated first.
        places = (*places, *texts)
        for batch in self._all():
            selected = batch.select([self.names[place] for place in places])
            selected.validate(full=True)
            step = rows or max(1, len(selected))
            parts = (selected.slice(start, step) for start in range(0, len(selected), step))
            yield from _of_names(self, places, parts)

    def regions(self, columns: Columns, n: int) -> Regions | None:
        places = columns.places("dimension")
        parts = []
        rows = 0
        for batch in self.batches(places, 0) if len(places) == 1 else ():
            part = self._region(batch[places[0]])
            if part is None or (parts and part[2][1] != parts[0][2][1]):
                return None
            at, kind, (m, d) = part
            parts.append((at, kind, (min(m, n - rows), d)))
            rows += parts[-1][2][0]
            if rows == n:
                break
        if rows:
            return Regions(parts, (self.names[places[0]],))
        return None

    def _region(self, column: Any) -> tuple[int, str, tuple[int, int]] | None:
        """The position, in the mapped file, of the lists of a column; None if they cannot be mapped."""
        kind = column.type
        if not _is_list(kind) or not types.is_floating(kind.value_type) or column.null_count:
            return None
        values = column.flatten()
        width = _fixed_width(kind)
        if width is not None:
            lengths = {width}
        else:
            lengths = set(np.diff(column.offsets.to_numpy()).tolist())
        dtype = np.dtype(values.type.to_pandas_dtype())
        if values.null_count or len(lengths) != 1 or lengths == {0} or dtype.name not in MAPPED:
            return None
        at = values.buffers()[1].address + values.offset * dtype.itemsize - self._whole.address
        inside = at >= 0 and at + len(values) * dtype.itemsize <= self._whole.size
        if inside:
            return (at, dtype.name, (len(column), lengths.pop()))
        return None


_BYTES = "bytes that are no text"


def vectors_of(columns: list[Any], name: str, n_before: int, d: int) -> np.ndarray:
    """Convert Arrow columns of numbers, or one column of lists, to a matrix (m, d). Missing numbers become
    NaN.

    Raises a SpaceError if a list has another length than d. If d is 0, the length of the first list is used.
    """
    first = decode_array(columns[0])
    if not is_vectors(first.type):
        return np.column_stack([_floats(column) for column in columns])
    lengths = compute.fill_null(compute.list_value_length(first), 0).to_numpy(zero_copy_only=False)
    if len(lengths):
        d = d or int(lengths[0])
    odd = np.flatnonzero(lengths != d)
    if len(odd) or d == 0:
        if len(odd):
            row = odd[0]
            got = lengths[odd[0]]
        else:
            row = 0
            got = 0
        raise SpaceError(
            f"{name}, row {n_before + row + 1:,}: expected a vector of {d or 'some'} numbers, got {got};"
            " mend or remove the row"
        )
    return _floats(first.flatten()).reshape(-1, d)


def _floats(column: Any) -> np.ndarray:
    # Missing numbers become NaN. Numbers that are too large become infinite.

    column = decode_array(column)
    if types.is_decimal(column.type):
        column = column.cast(pa.float64())
    with np.errstate(over="ignore"):
        return column.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)


def decode_array(column: Any) -> Any:
    """The Arrow array, decoded if it has a dictionary or extension type."""

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def _is_number(kind: Any) -> bool:
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _is_list(kind: Any) -> bool:
    lists = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(types, test)(kind) for test in lists)


def _fixed_width(kind: Any) -> int | None:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_fixed_size_list(kind):
        return kind.list_size
    return None


def is_vectors(kind: Any, of: Callable[[Any], bool] = _is_number) -> bool:
    """Whether an Arrow type is a list whose items are accepted by `of`. By default, items must be numbers."""
    return _is_list(kind) and of(kind.value_type)


def _held(kind: Any) -> tuple[str, str]:
    if isinstance(kind, pa.BaseExtensionType):
        shape = getattr(kind, "shape", None)
        if shape is not None and len(shape) > 1:
            return "mixed", f"expected a vector per row, got an array of shape {tuple(shape)}"
        return _held(kind.storage_type)
    if types.is_dictionary(kind):
        return _held(kind.value_type)
    if _is_list(kind) and (_is_list(kind.value_type) or types.is_boolean(kind.value_type)):
        return "mixed", f"expected numbers or one list of numbers per row, got {kind}"
    for held, tests in (
        ("numbers", (_is_number,)),
        ("text", (types.is_string, types.is_large_string, types.is_string_view)),
        ("flags", (types.is_boolean,)),
        ("vectors", (is_vectors,)),
    ):
        if any(test(kind) for test in tests):
            return held, ""
    binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return "other", _BYTES if any(test(kind) for test in binary) else f"of type {kind!s:.40}"


def _text_values(values: ColumnValues, cells: Any) -> ColumnValues:
    # Older writers do not mark text, so bytes that are valid UTF-8 count as text. Whole numbers as text may
    # be ids; fractions as text make the column unclear.

    cells = decode_array(cells)
    with suppress(pa.ArrowInvalid):
        texts = (cells.cast(pa.large_binary()) if values.note == _BYTES else cells).cast(pa.large_string())
        if texts.null_count == len(texts):
            return values
        texts = compute.utf8_trim_whitespace(texts)
        numbers = compute.match_substring_regex(texts, f"^({_NUMBER_TEXT})$")
        fractions = compute.and_(numbers, compute.match_substring_regex(texts, "[^0-9]"))
        if (row := compute.index(fractions, True).as_py()) >= 0:
            return ColumnValues(values.name, "mixed", _number_in_text(texts[row].as_py()), f"row {row + 1}")
        return ColumnValues(values.name, "text", whole=compute.all(numbers).as_py())
    return values


def _arrow_kind(kind: Any) -> ColumnKind:
    if types.is_dictionary(kind):
        return _arrow_kind(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return "number"
    if types.is_struct(kind):
        content = kind.get_field_index("bytes")
        path = kind.get_field_index("path")
        inner = None
        if content >= 0:
            inner = kind.field(content).type
        only_paths = inner is not None and types.is_null(inner) and path >= 0
        if only_paths or (inner is not None and _arrow_kind(inner) == "image"):
            return "image"
        return "other"
    if types.is_binary(kind) or types.is_large_binary(kind):
        return "image"
    return "other"


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, Sequence[str]]:
    # In a parquet file, the metadata of Hugging Face's `datasets` contains the class names.
    with suppress(ValueError, AttributeError, TypeError):
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        named = {name: item.get("names") for name, item in features.items() if isinstance(item, dict)}
        return {column: names for column, names in named.items() if isinstance(names, list)}
    return {}
