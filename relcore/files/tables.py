"""Tables (.csv, .tsv, .parquet, .arrow, .feather, .jsonl, .txt), read by pyarrow in batches, in the confined
process.

`relcore.files.items` opens them from outside. In .csv and .tsv the first line names the columns; a .txt file
is a column `text` of its lines.
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
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.text import visible
from relcore.files.columns import EMPTY, Choices, Columns, ColumnValues, assign, assign_metadata
from relcore.files.formats import ARROW, BLOCK_BYTES, MAPPED, Blocks, Description, Format, Regions, Request

ARROW_SUFFIXES = (".arrow", ".feather")
TABLES = (".parquet", ".csv", ".tsv", *ARROW_SUFFIXES)
ColumnKind = Literal["image", "text", "number", "other"]
_TEXTS = ("ids", "labels", "counts")
_BATCH_ROWS = 4096
_ROWS_TO_LOOK_AT = 100
_CHARACTERS_TO_LOOK_AT = 1 << 24
_FIRST_ROWS, _FIRST_COLUMNS = 256, 64  # that are looked at in metadata
_HELD_BYTES = 32 << 20
_SERIES, _MANY_NUMBERS = 3, 16  # vectors have columns d0, d1, d2, or many
_SHOWN = 60  # characters of a cell in a preview

Batch = dict[int, Any]  # place of a column → Arrow array


class Table:
    """A table on disk. Each kind has `describe(path)`, `roles(choices)` for a table of vectors, and
    `batches(places, rows)`, the cells of columns, at most `rows` at once where the file allows it.

    Attributes
    ----------
    names : list of str
    kinds : dict from name to kind
        An "image" is its bytes, or {"bytes": …, "path": …} as in Hugging Face's tables.
    class_names : dict from label column to the names of its numbers
    starts : list of int
        The first row of each group of rows, and the number of rows; `group(column, group)` gives its cells.
    missing : tuple of str
        Cells that stand for no label.
    has_vectors : bool
        Whether a column holds lists of numbers.
    """

    missing, has_vectors, note, encoding = (), False, "", ""

    def __init__(self, path: Path) -> None:
        self.path, self._held = path, OrderedDict()

    def checked(
        self, columns: Columns, places: Sequence[int], rows: int, limit: int | None
    ) -> Iterator[Batch]:
        """The first batches of these columns, checked against `columns`."""
        return _limited(self.batches(places, rows), limit)

    def width(self, columns: Columns) -> int:
        """Numbers in a vector; 0 if the first row has none."""
        return columns.dimension or 0

    def regions(self, columns: Columns, n: int) -> Regions | None:
        return None

    def first(self, places: Sequence[int], n: int) -> dict[int, list[Any]]:
        """The first n cells of columns."""
        cells: dict[int, list[Any]] = {place: [] for place in places}
        for batch in _limited(self.batches(places, min(n, _BATCH_ROWS)), n) if places else ():
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
        key, held = (column, group), self._held
        if key not in held:
            held[key] = self.group(column, group)
            while len(held) > 1 and sum(item.nbytes for item in held.values()) > _HELD_BYTES:
                held.popitem(last=False)
        held.move_to_end(key)
        return held[key]

    def metadata(self, choices: Choices) -> Columns:
        n, names = self.starts[-1], list(self.kinds)
        some = [i for i, name in enumerate(names[:_FIRST_COLUMNS]) if self.kinds[name] in ("text", "number")]

        def is_distinct(place: int) -> bool:
            seen: set[Any] = set()
            for start in range(0, n, _BATCH_ROWS):
                cells = self.read(names[place], start, start + _BATCH_ROWS)
                seen.update(cells)
                plain = all(
                    isinstance(item, int) or (isinstance(item, str) and item.strip()) for item in cells
                )
                if not plain or len(seen) < start + len(cells):
                    return False
            return True

        first = self.first(some, _FIRST_ROWS)
        return replace(
            assign_metadata(self.path.name, self.kinds, first, is_distinct, choices), n=n, note=self.note
        )


def _limited(batches: Iterable[Batch], limit: int | None) -> Iterator[Batch]:
    for batch in batches:
        some = batch if limit is None else {place: cells.slice(0, limit) for place, cells in batch.items()}
        yield some
        if limit is not None:
            limit -= len(next(iter(some.values())))
            if not limit:
                return


class Tables(Format):
    """Vectors of a table: number columns, or one column of lists of equal length."""

    libraries = ARROW
    has_columns = has_regions = True

    def describe(self, path: Path) -> Description:
        return _class_of(path).describe(path)

    def columns(self, path: Path, choices: Choices) -> Columns:
        return table_of(path, choices.encoding).roles(choices)

    def _open(self, path: Path, request: Request) -> tuple[Table, Columns, dict[str, int]]:
        table = table_of(path, request.choices.encoding)
        columns = table.roles(request.choices)
        columns.check(path.name)
        places = {role: columns.place(role) for role in _TEXTS}
        return table, columns, {role: place for role, place in places.items() if place is not None}

    def blocks(self, path: Path, request: Request) -> Blocks:
        table, columns, texts = self._open(path, request)
        dimensions, width, n = columns.places("dimension"), table.width(columns), 0
        if columns.n is not None:
            request.rows(path, columns.n, max(1, width))
        rows = min(_BATCH_ROWS, request.limit or _BATCH_ROWS, max(1, BLOCK_BYTES // (4 * max(1, width))))
        cells: dict[str, list[Any]] = {role: [] for role in texts}
        for batch in table.checked(columns, (*dimensions, *texts.values()), rows, request.limit):
            vectors = vectors_of([batch[place] for place in dimensions], path.name, n, width)
            n += len(vectors)
            for role, place in texts.items():
                cells[role] += batch[place].to_pylist()
            if len(vectors):
                yield vectors
        if not n:
            raise _no_rows(path)
        cells |= {"note": [table.note]} if table.note else {}
        if "labels" in cells and table.missing:
            cells["labels"] = ["" if item in table.missing else item for item in cells["labels"]]
        return cells

    def regions(self, path: Path, request: Request) -> Regions | None:
        table, columns, texts = self._open(path, request)
        n = columns.n if request.limit is None or columns.n is None else min(columns.n, request.limit)
        regions = table.regions(columns, n) if n else None
        if regions is not None:
            cells = table.first(tuple(texts.values()), n)
            regions.columns.update({role: cells[place] for role, place in texts.items()})
        return regions


def _class_of(path: Path) -> type[Table]:
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson", ".txt"):
        return TextLines
    return (
        ParquetTable if suffix == ".parquet" else ArrowTable if suffix in ARROW_SUFFIXES else DelimitedTable
    )


def table_of(path: Path, encoding: str = "") -> Table:
    kind = _class_of(path)
    return kind(path, encoding) if issubclass(kind, DelimitedTable | TextLines) else kind(path)


def peek(path: Path, encoding: str = "") -> tuple[dict[str, ColumnKind], bool]:
    """The kinds of columns, and whether a table looks like vectors: lists, or a series or many of numbers."""
    table = table_of(path, encoding)
    numbers = [name for name, kind in table.kinds.items() if kind == "number"]
    series = Counter(re.sub(r"\d+$", "", name) for name in numbers if name[-1:].isdigit())
    many = len(numbers) >= _MANY_NUMBERS or max(series.values(), default=0) >= _SERIES
    return table.kinds, many or table.has_vectors


def first_cells(path: Path, n: int, encoding: str = "") -> dict[str, list[str]]:
    """The first n cells of the first columns, as short texts."""
    table = table_of(path, encoding)
    cells = table.first(range(len(table.names[:_FIRST_COLUMNS])), n)
    return {table.names[place].strip(): [_short(item) for item in some] for place, some in cells.items()}


def _short(cell: Any) -> str:
    if isinstance(cell, bytes):
        return "(bytes)"
    if isinstance(cell, dict):
        cell = cell.get("path") or "(picture)"
    if isinstance(cell, list):
        cell = ", ".join(map(_short, cell[:3])) + " …" * (len(cell) > 3)
    return "" if cell is None else visible(f"{cell:.6g}" if isinstance(cell, float) else cell, _SHOWN)


def _no_rows(path: Path) -> SpaceError:
    return SpaceError(
        f"{path.name}: expected at least one row below the column names, got none; add the rows"
    )


# Encodings. A file that is no UTF-8 is read as Windows-1252 where that is likely: all bytes have a character
# there, few letters are beyond ASCII and nearly all else is punctuation, as in Western European text, and no
# bytes are a letter of UTF-8, or the beginning of one at the end, as in a damaged file. Else the encoding has
# to be chosen.

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
_LOOKED_AT = 1 << 24  # bytes
_OF_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_LIKELY = {one for one in range(0xC0, 256) if one not in (0xD7, 0xF7)} | set(
    "€‚„…‰Š‹ŒŽ‘’“”•–—™š›œžŸ¡£§©ª«®°µ·º»¿\xa0".encode("cp1252")
)
_BEYOND_ASCII = 0.25  # of the letters: at most .1 in Western European languages, nearly all in others


def encoding_of(path: Path, chosen: str = "") -> str:
    """The chosen encoding, else the likely one. Raises a SpaceError for an unknown one, and where none is
    likely.
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
        place, is_cut = error.start, error.reason == "unexpected end of data"
        if is_cut and len(content) == _LOOKED_AT:
            return UTF8
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) and len(content) % 2 == 0:
        return "utf-16"
    letters = sum(content.count(bytes([one])) for one in (*range(65, 91), *range(97, 123)))
    beyond = sum(content.count(bytes([one])) for one in range(128, 256))
    unlikely = beyond - sum(content.count(bytes([one])) for one in _LIKELY)
    is_text = b"\0" not in content and not is_cut and not _OF_UTF8.search(content)
    with suppress(UnicodeDecodeError):
        if is_text and beyond <= _BEYOND_ASCII * (letters + beyond) and 4 * unlikely <= beyond:
            content.decode("cp1252")
            return "cp1252"
    line = content.count(b"\n", 0, place) + 1
    raise SpaceError(
        f"{path.name}, line {line}: expected text in UTF-8, got a byte 0x{content[place]:02x}; choose its"
        f" encoding ({quote(ENCODINGS)}), or save it as UTF-8"
    )


# Delimited text. Numbers have ASCII digits and a decimal point, between semicolons also a decimal comma.
# Cells such as "1_000" or "1 000" are errors: other readers take them as numbers.

Holds = Literal["number", "nothing", "text", "odd number"]
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "nan", "NaN", "-nan", "-NaN")
_NUMBER_TEXT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NUMBER = re.compile(_NUMBER_TEXT)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_ODD = re.compile(
    r"[+\-−]?[$€£]?\s?(\d+,\d+|\d{1,3}([,.' \u00a0\u202f’]\d{3})+([.,]\d+)?|\d[\d_]*_\d+(\.\d+)?|\d*\.?\d+)"
    r"([eE][+\-−]?\d+)?\s?[%€f]?"
    r"|[+-]?0[xX][0-9a-fA-F.]+([pP][+-]?\d+)?|[+-]?\d+\.?\d*[dD][+-]?\d+"
)
_DELIMITERS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars"}
_COMMA = re.compile(r"[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?")
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_MOST_COLUMNS = 120_000
csv.field_size_limit(1 << 23)  # Python's limit, 128 kB, is less than a document


def what_is(cell: str) -> Holds:
    # Infinity and words for missing values are nothing: text may have them, too.
    cell = cell.strip()
    if _NUMBER.fullmatch(cell):
        return "number"
    if cell in MISSING or _INFINITE.fullmatch(cell):
        return "nothing"
    return "odd number" if _ODD.fullmatch(cell) else "text"


def is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None


def _usual_delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _first_lines(
    path: Path, most: int, encoding: str, delimiter: str = "", size: int = 1 << 20
) -> tuple[list[tuple[int, list[str]]], bool, str]:
    """Line number and cells of the first lines that are not blank, whether these are all, and the delimiter.

    It is the usual one of the suffix, unless the line of names has none of it, and all lines have equally
    many of another one.
    """
    lines: list[tuple[int, list[str]]] = []
    reader = csv.reader(())
    usual = _usual_delimiter(path)
    try:
        with path.open(encoding="utf-8-sig" if encoding == UTF8 else encoding, newline="") as stream:
            text = stream.read(size)
        look = {"delimiter": delimiter or usual, "strict": len(text) < size}  # not where a cell may be cut
        reader = csv.reader(io.StringIO(text, newline=""), **look)
        if "\0" in text:
            raise csv.Error("a zero byte")
        for cells in reader:
            if cells and len(lines) == most:
                whole = False
                break
            lines += [(reader.line_num, cells)] if cells else []
        else:
            whole = len(text) < size
            if not whole and size < _CHARACTERS_TO_LOOK_AT:
                return _first_lines(path, most, encoding, delimiter, _CHARACTERS_TO_LOOK_AT)
            lines = lines if whole else lines[:-1]
    except (UnicodeError, csv.Error) as error:
        raise SpaceError(
            f"{path.name}, after line {reader.line_num}: expected a row of cells in {ENCODINGS[encoding]},"
            f" got {getattr(error, 'reason', error)}; choose its encoding, save it as UTF-8, or mend the line"
        ) from None
    if not delimiter and lines and len(lines[0][1]) == 1:
        for other in (one for one in _DELIMITERS if one != usual and one in lines[0][1][0]):
            with suppress(SpaceError):
                found = _first_lines(path, most, encoding, other)
                if len({len(cells) for _, cells in found[0]}) == 1 < len(found[0]):
                    return found
    return lines, whole, delimiter or usual


class DelimitedTable(Table):
    """A .csv or .tsv file. The first hundred rows tell the roles; a later cell that breaks them is an error.

    An empty cell or NA is NaN in a number column, no label in a label column.
    """

    missing = MISSING

    def __init__(self, path: Path, encoding: str = "") -> None:
        super().__init__(path)
        self.encoding = encoding_of(path, encoding)
        lines, whole, self._delimiter = _first_lines(path, 1 + _ROWS_TO_LOOK_AT, self.encoding)
        self._header, names = lines[0] if lines else (0, [])
        self.names, self.class_names = [item.strip() for item in names], {}
        self._check_header()
        self._sample = lines[1:]
        self.n = len(self._sample) if whole else None
        for line, cells in self._sample:
            if len(cells) != len(names):
                raise SpaceError(
                    f"{path.name}, line {line}: expected {len(names)} cells as in line {self._header}, got"
                    f" {len(cells)}; mend or remove the line"
                )
        self._decimal = "," if self._delimiter == ";" and self._has_decimal_commas() else "."
        other = self._delimiter * (self._delimiter != _usual_delimiter(path))
        self.note = _read_as(self.encoding, other, self._decimal)

    def _bytes(self) -> BinaryIO:
        """The file, in an encoding whose bytes below 128 are ASCII."""
        content = self.path.open("rb")
        return io.BytesIO(content.read().decode("utf-16").encode()) if self.encoding == "utf-16" else content

    def _has_decimal_commas(self) -> bool:
        cells = [cell.strip() for _, row in self._sample for cell in row]
        with_comma = [cell for cell in cells if _COMMA.fullmatch(cell)]
        fractions = [cell for cell in cells if "." in cell and is_number(cell)]
        return not fractions and not all(map(_MAYBE_THOUSANDS.fullmatch, with_comma))

    def _pointed(self, cell: str) -> str:
        comma = self._decimal == "," and _COMMA.fullmatch(cell.strip())
        return cell.replace(",", ".") if comma else cell

    def _check_header(self) -> None:
        names, where = self.names, f"{self.path.name}, line {self._header}"
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

    @classmethod
    def describe(cls, path: Path) -> Description:
        table = cls(path)
        numbers = (
            bool(table._sample) and sum(is_number(table._pointed(cell)) for cell in table._sample[0][1]) >= 2
        )
        return Description({"": (None, None)}, "") if numbers else Description()

    def roles(self, choices: Choices) -> Columns:
        if not self._sample:
            raise _no_rows(self.path)
        values = [self._values(name, place) for place, name in enumerate(self.names)]
        return replace(assign(self.path.name, values, choices), n=self.n, note=self.note)

    def _values(self, name: str, place: int) -> ColumnValues:
        # Numbers if all cells that are not nothing are numbers, text if none is.
        cells = [(line, row[place]) for line, row in self._sample]
        kinds = [what_is(self._pointed(cell)) for _, cell in cells]
        n_numbers, n_odd = kinds.count("number"), kinds.count("odd number")
        n_texts = kinds.count("text") + n_odd
        odd = n_odd and (n_odd == n_texts or n_numbers)
        if odd or (n_numbers and n_texts):
            strange = "odd number" if odd else "text" if n_texts <= n_numbers else "number"
            line, cell = cells[kinds.index(strange)]
            form = ", with a decimal point and no other separator, sign or unit" if odd else ""
            note = f"expected a number{form}, got {quote([cell])}"
            note = _number_in_text(cell) if strange == "number" else note
            return ColumnValues(name, "mixed", note, f"line {line}")
        if n_texts:
            return ColumnValues(name, "text")
        if not n_numbers and not any(cell.strip() for _, cell in cells):
            return ColumnValues(name, "nothing")
        numbers = [
            self._pointed(cell).strip()
            for (_, cell), kind in zip(cells, kinds, strict=True)
            if kind == "number"
        ]
        whole = bool(numbers) and all(item.lstrip("+-").isdigit() for item in numbers)
        return ColumnValues(name, "numbers", whole=whole)

    def batches(self, places: Sequence[int], rows: int, numbers: Sequence[int] = ()) -> Iterator[Batch]:
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        types = {str(place): pa.float32() if place in numbers else pa.string() for place in places}
        names = [str(place) for place in range(len(self.names))]
        reader = arrow_csv.open_csv(
            self.path,
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK_BYTES,
                skip_rows=self._header,
                column_names=names,
                encoding="utf8" if self.encoding == UTF8 else self.encoding,
            ),
            arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=MISSING,
                decimal_point=self._decimal,
            ),
        )
        for batch in reader:
            yield dict(zip(map(int, types), batch.columns, strict=True))

    def checked(
        self, columns: Columns, places: Sequence[int], rows: int, limit: int | None
    ) -> Iterator[Batch]:
        import pyarrow.compute as compute

        seen = {place: 0 for place, column in enumerate(columns.columns) if not column.sure}
        batches, n = self.batches((*places, *seen), rows, columns.places("dimension")), 0
        for batch in _limited(batches, limit):
            for place in seen:
                column, cells = columns.columns[place], batch[place]
                numbers = (
                    compute.not_equal(cells, "")
                    if column.reason == EMPTY
                    else compute.match_substring_regex(cells, rf"^\s*({_NUMBER_TEXT})\s*$")
                )
                if column.role == "left out" and (row := compute.index(numbers, True).as_py()) >= 0:
                    reason, where = _number_in_text(cells[row].as_py()), f"row {n + row + 1}"
                    raise SpaceError(f"{self.path.name}, {replace(column, reason=reason, where=where).fault}")
                seen[place] += compute.sum(numbers).as_py() or 0
            n += len(next(iter(batch.values())))
            yield batch
        ids = columns.place("ids")
        if n and 2 * seen.get(ids, -1) >= n:
            reason = f"expected text, got numbers in {seen[ids]:,} of {n:,} rows"
            raise SpaceError(f"{self.path.name}, {replace(columns.columns[ids], reason=reason).fault}")

    @cached_property
    def kinds(self) -> dict[str, ColumnKind]:
        columns = (
            zip(*(cells for _, cells in self._sample), strict=True)
            if self._sample
            else [()] * len(self.names)
        )
        filled = [[self._pointed(cell) for cell in cells if cell.strip()] for cells in columns]
        kinds = ["number" if some and all(map(is_number, some)) else "text" for some in filled]
        return dict(zip(self.names, kinds, strict=True))

    @cached_property
    def starts(self) -> list[int]:
        name, names = self.path.name, self.names
        with self._bytes() as stream:
            if sum(block.count(b'"') for block in iter(lambda: stream.read(1 << 20), b"")) % 2:
                raise SpaceError(
                    f"{name}: expected cells in pairs of quotes, got an open one; mend the table, or write it"
                    " as parquet"
                )
        if len(set(names)) < len(names):
            raise SpaceError(
                f"{name}: expected distinct column names in the first line, got {quote(names[:8])}; name each"
                " column"
            )
        return [0, len(self._cells(names[0], 0))]

    def group(self, column: str, group: int) -> Any:
        import pyarrow as pa

        place = self.names.index(column)
        return pa.chunked_array([batch[place] for batch in self.batches([place], 0)], pa.string())


def _read_as(encoding: str, delimiter: str = "", decimal: str = ".") -> str:
    found = [f"the encoding {ENCODINGS[encoding]}"] * (encoding != UTF8)
    found += [f"cells between {_DELIMITERS[delimiter]}"] if delimiter else []
    found += ["decimal commas"] * (decimal == ",")
    return ", ".join(found)


class TextLines(Table):
    """A .txt file, each line that is not blank a text, or a .jsonl file of objects; held in memory."""

    def __init__(self, path: Path, encoding: str = "") -> None:
        import pyarrow as pa

        super().__init__(path)
        if path.suffix.lower() == ".txt":
            self.encoding = encoding_of(path, encoding)
            try:
                text = path.read_text(encoding="utf-8-sig" if self.encoding == UTF8 else self.encoding)
            except UnicodeError as error:
                raise SpaceError(
                    f"{path.name}: expected text in {ENCODINGS[self.encoding]}, got"
                    f" {getattr(error, 'reason', error)}; choose its encoding"
                ) from None
            if "\0" in text:
                raise SpaceError(f"{path.name}: expected lines of text, got a zero byte; is it a text file?")
            rows = pa.table(
                {"text": pa.array([line for line in text.splitlines() if line.strip()], pa.string())}
            )
        else:
            import pyarrow.json as arrow_json

            self.encoding = UTF8
            options = arrow_json.ReadOptions(
                use_threads=False, block_size=max(1 << 20, path.stat().st_size + 1)
            )
            rows = arrow_json.read_json(path, options)
        self.note = _read_as(self.encoding)
        self._rows, self.names, self.class_names = rows.combine_chunks(), rows.column_names, {}
        self.kinds = {field.name: _arrow_kind(field.type) for field in rows.schema}
        self.has_vectors = any(is_vectors(field.type) for field in rows.schema)
        self.starts = [0, rows.num_rows]
        if not rows.num_rows:
            raise _no_rows(path)

    def batches(self, places: Sequence[int], rows: int) -> Iterator[Batch]:
        yield {place: self._rows.column(place) for place in places}

    def group(self, column: str, group: int) -> Any:
        return self._rows.column(column)


def _number_in_text(cell: str) -> str:
    return f"expected text as in other rows, got the number {quote([cell])}"


# Tables with types


class _TypedTable(Table):
    # Numbers in text columns, and text in columns of bytes, are looked for in the first rows.

    @classmethod
    def describe(cls, path: Path) -> Description:
        import pyarrow as pa

        table = cls(path)
        floating = sum(pa.types.is_floating(item.type) for item in table.schema)
        lists = [item.type for item in table.schema if is_vectors(item.type, of=pa.types.is_floating)]
        if len(lists) == 1:
            width = _fixed_width(lists[0])
        elif floating >= 2 and not lists:
            width = floating
        else:
            return Description()
        return Description({"": (table.n, width)}, "")

    def roles(self, choices: Choices) -> Columns:
        import pyarrow as pa

        name, types = self.path.name, [item.type for item in self.schema]
        values = [
            ColumnValues(item.name, *_held(item.type), whole=pa.types.is_integer(item.type))
            for item in self.schema
        ]
        columns = assign(name, values, choices)
        places = [
            place
            for place, (value, column) in enumerate(zip(values, columns.columns, strict=True))
            if (value.note == _BYTES and column.reason != "chosen")
            or (value.holds == "text" and not column.sure)
        ]
        first = next(self.batches(places, _ROWS_TO_LOOK_AT), {}) if places else {}
        for place, cells in first.items():
            values[place] = _looked_at(values[place], cells)
        columns = assign(name, values, choices)
        for place, column in enumerate(columns.columns):
            cell, only = values[place].note, values[place].whole
            # Whole numbers as text may be ids; fractions, or a whole column that is left out, are numbers.
            meant = not cell.isdigit() or (only and column.role == "left out")
            if values[place].holds == "text" and cell and not column.sure and meant:
                values[place] = replace(values[place], holds="mixed", note=_number_in_text(cell))
        columns = assign(name, values, choices)
        place = columns.place("dimension")
        width = None if place is None else _fixed_width(types[place])
        return replace(columns, n=self.n, width=width)

    def width(self, columns: Columns) -> int:
        import pyarrow.compute as compute

        if columns.dimension:
            return columns.dimension
        place = columns.place("dimension")
        first = next((batch[place] for batch in self.batches([place], 1) if len(batch[place])), None)
        return 0 if first is None else compute.list_value_length(stored(first))[0].as_py() or 0

    def _of_names(self, places: Sequence[int], batches: Iterable[Any]) -> Iterator[Batch]:
        for batch in batches:
            yield {place: batch.column(self.names[place]) for place in places}


class ParquetTable(_TypedTable):
    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as parquet

        super().__init__(path)
        # pre_buffer would hold every row group that was read.
        self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        self.schema, facts = self.file.schema_arrow, self.file.metadata
        self.names, self.n = self.schema.names, facts.num_rows
        self.starts = [0]
        for group in range(facts.num_row_groups):
            self.starts.append(self.starts[-1] + facts.row_group(group).num_rows)
        self.kinds = {field.name: _arrow_kind(field.type) for field in self.schema}
        self.class_names = _class_names(self.schema.metadata or {})
        self.has_vectors = any(is_vectors(field.type) for field in self.schema)

    def batches(self, places: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [self.names[place] for place in places]
        return self._of_names(places, self.file.iter_batches(rows, columns=names, use_threads=False))

    def group(self, column: str, group: int) -> Any:
        import pyarrow as pa

        rows = max(1, self.starts[group + 1] - self.starts[group])
        some = self.file.iter_batches(rows, row_groups=[group], columns=[column], use_threads=False)
        return pa.chunked_array([batch.column(0) for batch in some])

    def regions(self, columns: Columns, n: int) -> Regions | None:
        names = tuple(columns.columns[place].name for place in columns.places("dimension"))
        return Regions([], names, decoded=(n, max(1, self.width(columns))))


class ArrowTable(_TypedTable):
    """An .arrow file (stream or file form) or version 2 of Feather, mapped."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        super().__init__(path)
        with pa.memory_map(str(path)) as file:
            self._whole = file.read_buffer()
        self._in_file = self._whole[:6].to_pybytes() == b"ARROW1"
        self.schema = self._reader().schema
        self.names = self.schema.names
        self.n = sum(batch.num_rows for batch in self._all())

    def _reader(self) -> Any:
        import pyarrow as pa

        return (pa.ipc.open_file if self._in_file else pa.ipc.open_stream)(self._whole)

    def _all(self) -> Iterator[Any]:
        reader = self._reader()
        if self._in_file:
            return (reader.get_batch(number) for number in range(reader.num_record_batches))
        return iter(reader)

    def batches(self, places: Sequence[int], rows: int) -> Iterator[Batch]:
        # 0 rows: batches of any size. Their offsets and indices are checked first.
        for batch in self._all():
            wanted = batch.select([self.names[place] for place in places])
            wanted.validate(full=True)
            step = rows or max(1, len(wanted))
            parts = (wanted.slice(start, step) for start in range(0, len(wanted), step))
            yield from self._of_names(places, parts)

    def regions(self, columns: Columns, n: int) -> Regions | None:
        places = columns.places("dimension")
        parts, rows = [], 0
        for batch in self.batches(places, 0) if len(places) == 1 else ():
            part = self._region(batch[places[0]])
            if part is None or (parts and part[2][1] != parts[0][2][1]):
                return None
            at, kind, (m, d) = part
            parts.append((at, kind, (min(m, n - rows), d)))
            rows += parts[-1][2][0]
            if rows == n:
                break
        return Regions(parts, (self.names[places[0]],)) if rows else None

    def _region(self, column: Any) -> tuple[int, str, tuple[int, int]] | None:
        """Where the lists of a column lie in the mapped file; None if they cannot be mapped."""
        import pyarrow as pa

        kind = column.type
        if not _is_list(kind) or not pa.types.is_floating(kind.value_type) or column.null_count:
            return None
        values, width = column.flatten(), _fixed_width(kind)
        lengths = {width} if width is not None else set(np.diff(column.offsets.to_numpy()).tolist())
        dtype = np.dtype(values.type.to_pandas_dtype())
        if values.null_count or len(lengths) != 1 or lengths == {0} or dtype.name not in MAPPED:
            return None
        at = values.buffers()[1].address + values.offset * dtype.itemsize - self._whole.address
        inside = at >= 0 and at + len(values) * dtype.itemsize <= self._whole.size
        return (at, dtype.name, (len(column), lengths.pop())) if inside else None


_BYTES = "bytes that are no text"


def vectors_of(columns: list[Any], name: str, n_before: int, d: int) -> np.ndarray:
    """Arrow columns, or one of lists, as a matrix (m, d); missing numbers are NaN.

    Raises SpaceError for a list of another length than d, or than the first one if d is 0.
    """
    import pyarrow.compute as compute

    first = stored(columns[0])
    if not is_vectors(first.type):
        return np.column_stack([_floats(column) for column in columns])
    lengths = compute.fill_null(compute.list_value_length(first), 0).to_numpy(zero_copy_only=False)
    d = d or int(lengths[0]) if len(lengths) else d
    odd = np.flatnonzero(lengths != d)
    if len(odd) or d == 0:
        row, got = (odd[0], lengths[odd[0]]) if len(odd) else (0, 0)
        raise SpaceError(
            f"{name}, row {n_before + row + 1:,}: expected a vector of {d or 'some'} numbers, got {got};"
            " mend or remove the row"
        )
    return _floats(first.flatten()).reshape(-1, d)


def _floats(column: Any) -> np.ndarray:
    # Missing numbers are NaN, too large ones infinite.
    import pyarrow as pa

    column = stored(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    with np.errstate(over="ignore"):
        return column.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)


def stored(column: Any) -> Any:
    """An Arrow array without its dictionary or extension type."""
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


def _fixed_width(kind: Any) -> int | None:
    import pyarrow as pa

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return kind.list_size if pa.types.is_fixed_size_list(kind) else None


def is_vectors(kind: Any, of: Callable[[Any], bool] = _is_number) -> bool:
    """Whether a type is one of lists of numbers, or of what `of` accepts."""
    return _is_list(kind) and of(kind.value_type)


def _held(kind: Any) -> tuple[str, str]:
    import pyarrow as pa
    from pyarrow import types

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


def _looked_at(values: ColumnValues, cells: Any) -> ColumnValues:
    # Older writers do not mark text: bytes that are UTF-8 are text. The note is the first number in the text,
    # fractions before whole ones; `whole`: all cells are numbers.
    import pyarrow as pa
    import pyarrow.compute as compute

    cells = stored(cells)
    with suppress(pa.ArrowInvalid):
        texts = (cells.cast(pa.large_binary()) if values.note == _BYTES else cells).cast(pa.large_string())
        if texts.null_count == len(texts):
            return values
        texts = compute.utf8_trim_whitespace(texts)
        numbers = compute.match_substring_regex(texts, f"^({_NUMBER_TEXT})$")
        fractions = compute.and_(numbers, compute.match_substring_regex(texts, "[^0-9]"))
        row = compute.index(fractions, True).as_py()
        row = compute.index(numbers, True).as_py() if row < 0 else row
        note, where = (texts[row].as_py(), f"row {row + 1}") if row >= 0 else ("", "")
        whole = bool(compute.all(numbers).as_py() and note)
        return replace(values, holds="text", note=note, where=where, whole=whole)
    return values


def _arrow_kind(kind: Any) -> ColumnKind:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _arrow_kind(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return "number"
    if pa.types.is_struct(kind):
        content, path = kind.get_field_index("bytes"), kind.get_field_index("path")
        inner = kind.field(content).type if content >= 0 else None
        only_paths = inner is not None and pa.types.is_null(inner) and path >= 0
        return "image" if only_paths or (inner is not None and _arrow_kind(inner) == "image") else "other"
    return "image" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "other"


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, Sequence[str]]:
    # Hugging Face's `datasets` writes them into a parquet file.
    with suppress(ValueError, AttributeError, TypeError):
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        named = {name: item.get("names") for name, item in features.items() if isinstance(item, dict)}
        return {column: names for column, names in named.items() if isinstance(names, list)}
    return {}
