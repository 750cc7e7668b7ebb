"""Tables that are texts: delimited, lines of JSON, lines of text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as compute
from pyarrow import types

from relcore.base.errors import SpaceError, quote
from relcore.files.columns import INDEX, ColumnValues
from relcore.files.formats import BLOCK_BYTES
from relcore.files.tables import ROWS_TO_LOOK_AT, Batch, OpenedTable, number_in_text
from relcore.files.vector_cells import NUMBER, NUMBER_TEXT, is_number

_MOST_COLUMNS = 120_000


def no_rows(path: Path) -> SpaceError:
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


class TextRows(OpenedTable):
    """The base of tables in text files, which are read into memory as Arrow tables."""

    rows: Any

    def _keep(self, rows: Any) -> None:
        self.rows = rows.combine_chunks()
        self.names = rows.column_names
        self.schema = rows.schema
        self.n = rows.num_rows
        if not self.n:
            raise no_rows(self.path)

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        columns = {place: self._typed(place) for place in places}
        columns |= {place: self.rows.column(place) for place in texts}
        for start in range(0, self.rows.num_rows, rows):
            yield {place: cells.slice(start, rows).combine_chunks() for place, cells in columns.items()}

    def _typed(self, place: int) -> Any:
        return self.rows.column(place)

    def group(self, column: str, group: int) -> Any:
        return self.rows.column(self.names.index(column))


class TextLines(TextRows):
    """A .txt file. Each line that is not blank is one text."""

    def __init__(self, path: Path, encoding: str = "") -> None:
        super().__init__(path)
        self.encoding = encoding_of(path, encoding)
        self.note = _read_with(self.encoding)
        lines = [line for line in _decode(path, self.encoding).splitlines() if line.strip()]
        self._keep(pa.table({"text": pa.array(lines, pa.string())}))


class ObjectLines(TextRows):
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


class DelimitedTable(TextRows):
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
        unusual = ""
        if self._delimiter != usual:
            unusual = self._delimiter
        self.note = _read_with(self.encoding, unusual, self._decimal)
        self.rows, whole = self._read(line, rows)
        self.n = self.rows.num_rows if whole else None
        if not self.rows.num_rows:
            raise no_rows(path)
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
        first = 0
        try:
            for cells in reader:
                if cells:
                    first = first or reader.line_num
                    lines.append(cells)
        except csv.Error as error:
            raise SpaceError(
                f"{self.path.name}, after line {reader.line_num}: expected a row of cells in"
                f" {ENCODINGS[self.encoding]}, got {error}; choose its encoding, save it as UTF-8, or mend"
                " the line"
            ) from None
        if not lines:
            return delimiter, first, [], []
        return delimiter, first, lines[0], lines[1 : 1 + ROWS_TO_LOOK_AT]

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
        self._need_closed_quotes()
        names = [str(place) for place in range(len(self.names))]
        bad = []

        def keep(row: Any) -> str:
            bad.append(row)
            return "error"

        batches = []
        n = 0
        try:
            for batch in self._batches(names, header, keep):
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
        schema = pa.schema([(name, pa.string()) for name in names])
        return pa.Table.from_batches(batches, schema), most is None or n < most

    def _need_closed_quotes(self) -> None:
        with self.path.open("rb") as stream:
            quotes = sum(block.count(b'"') for block in iter(lambda: stream.read(1 << 20), b""))
        if quotes % 2:
            raise SpaceError(
                f"{self.path.name}: expected cells in pairs of quotes, got an open one; mend the table, or"
                " write it as parquet"
            )

    def _batches(self, names: list[str], header: int, on_bad_row: Callable[[Any], str]) -> Any:
        """The rows after the header as batches of texts. `on_bad_row` is called with a row of another number
        of cells, and says what to do with it."""
        import pyarrow.csv as arrow_csv

        encoding = self.encoding
        if encoding == UTF8:
            encoding = "utf8"
        reading = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            skip_rows=header,
            column_names=names,
            encoding=encoding,
        )
        parsing = arrow_csv.ParseOptions(
            delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=on_bad_row
        )
        # Empty lists of spellings of null, true and false: the default lists take 10 kB per column.
        converting = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[], true_values=[], false_values=[]
        )
        return arrow_csv.open_csv(self.path, reading, parsing, converting, _pool())

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
        numeric = compute.fill_null(compute.match_substring_regex(texts, f"^({NUMBER_TEXT})$"), False)
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
            note = number_in_text(cell)
        else:
            note = f"expected a number{form}, got {quote([cell])}"
        return cells, ColumnValues(name, "mixed", note, f"row {row + 1}")


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
        if numbers and all(map(NUMBER.fullmatch, numbers)):
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
    """A note on what is unusual about a table; "" if nothing is."""
    settings = []
    if encoding != UTF8:
        settings.append(f"the encoding {ENCODINGS[encoding]}")
    if delimiter:
        settings.append(f"cells between {_DELIMITERS[delimiter]}")
    if decimal == ",":
        settings.append("decimal commas")
    if settings:
        return f"read with {', '.join(settings)}"
    return ""
