"""Tables as text, .csv and .tsv: the first line names the columns; UTF-8, a decimal point, cells in quotes
where needed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from relcore.base.errors import SpaceError, quote
from relcore.files.columns import Choices, Column, Columns, ColumnValues, assign

# Cells of delimited text: rows with their lines, and what a cell holds: a number, nothing, text, or an odd
# form of a number.
#
# A number is written with ASCII digits and a decimal point. Python's float() alone would also take "1_000"
# and the digits of any script; readers of other programs take "1,5" or "1 000". Such cells are named, so that
# nobody guesses what they mean.

Holds = Literal["number", "nothing", "text", "odd number"]
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "nan", "NaN", "-nan", "-NaN")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
LONGEST_LINE = 1 << 23
_NUMBER = re.compile(NUMBER)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_ODD = re.compile(
    r"[+\-−]?[$€£]?\s?(\d+,\d+|\d{1,3}([,.' \u00a0\u202f’]\d{3})+([.,]\d+)?|\d[\d_]*_\d+(\.\d+)?|\d*\.?\d+)"
    r"([eE][+\-−]?\d+)?\s?[%€f]?"
    r"|[+-]?0[xX][0-9a-fA-F.]+([pP][+-]?\d+)?|[+-]?\d+\.?\d*[dD][+-]?\d+"
)
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


def delimited_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each line that is not blank.

    Raises
    ------
    SpaceError
        No UTF-8 text, zero bytes, a line that is too long; with its line.
    """
    with path.open("rb") as stream:
        if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            raise SpaceError(f"{path.name}, line 1: expected UTF-8 text, got UTF-16; save it as UTF-8")
    with path.open(encoding="utf-8-sig", newline="") as stream:

        def lines() -> Iterator[str]:
            while line := stream.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE or "\0" in line:
                    fault = "a zero byte" if "\0" in line else f"more than {LONGEST_LINE:,} characters"
                    place = f"{path.name}, line {reader.line_num + 1}"
                    raise SpaceError(
                        f"{place}: expected a row of text, got {fault}; is this a table in UTF-8?"
                    )
                yield line

        reader = csv.reader(lines(), delimiter=delimiter)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{path.name}, after line {reader.line_num}: expected UTF-8 text in cells, got"
                f" {error.reason}; save it as UTF-8"
            ) from None
        except csv.Error as error:
            raise SpaceError(
                f"{path.name}, after line {reader.line_num}: expected a row of cells, got {error}; mend the"
                " line"
            ) from error


_ROWS_TO_LOOK_AT = 100
_CELLS_TO_LOOK_AT = 1_000_000
_CHARACTERS_TO_LOOK_AT = 1 << 25
_MOST_COLUMNS = 120_000
_OTHERS = {";": "a semicolon", "\t": "a tab", ",": "a comma", "|": "a bar"}


def delimiter_of(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def delimited_columns(path: Path, choices: Choices) -> tuple[int, Columns]:
    """Lines up to the column names, and the roles of the columns by the first hundred rows, without reading
    on.

    Raises
    ------
    SpaceError
        No names, no rows, rows of unequal length, another delimiter; what `assign` raises.
    """
    rows = delimited_rows(path, delimiter_of(path))
    header, names = next(rows, (0, []))
    names = [one.strip() for one in names]
    _check_header(path, header, names)
    sample: list[tuple[int, list[str]]] = []
    size = 0
    for line, cells in islice(rows, max(2, min(_ROWS_TO_LOOK_AT, _CELLS_TO_LOOK_AT // len(names)))):
        _check_length(path, header, line, names, cells)
        sample.append((line, cells))
        size += sum(map(len, cells))
        if size > _CHARACTERS_TO_LOOK_AT:
            break
    if not sample:
        raise SpaceError(
            f"{path.name}: expected at least one row below the column names, got none; add the rows"
        )
    found = [_found(name, place, sample) for place, name in enumerate(names)]
    whole = next(rows, None) is None
    return header, replace(assign(path.name, found, choices), n=len(sample) if whole else None)


def batches(
    path: Path, header: int, n_columns: int, types: dict[int, Any], block_size: int
) -> Iterator[dict[int, Any]]:
    """Arrow arrays by column, batch by batch; `ArrowInvalid` where a row or cell is not what `types` says."""
    import pyarrow.csv as arrow_csv

    reader = arrow_csv.open_csv(
        path,
        arrow_csv.ReadOptions(
            use_threads=False,
            block_size=block_size,
            skip_rows=header,
            column_names=[str(i) for i in range(n_columns)],
        ),
        arrow_csv.ParseOptions(delimiter=delimiter_of(path), newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types={str(column): kind for column, kind in types.items()},
            include_columns=[str(column) for column in types],
            null_values=MISSING,
        ),
    )
    return (
        {int(name): column for name, column in zip(one.schema.names, one.columns, strict=True)}
        for one in reader
    )


def fault(path: Path, columns: Columns) -> SpaceError | None:
    """The first line that is no row of this table: read again, slowly, once something is known to be
    wrong.
    """
    names = [column.name for column in columns.columns]
    rows = delimited_rows(path, delimiter_of(path))
    header, _ = next(rows)
    for line, cells in rows:
        try:
            _check_length(path, header, line, names, cells)
        except SpaceError as error:
            return error
        for column in columns.places("dimension"):
            if what_is(cells[column]) not in ("number", "nothing"):
                return SpaceError(
                    f"{path.name},"
                    f" {Column(names[column], 'unclear', _no_number(cells[column]), f'line {line}').fault}"
                )
    return None


def line_of(path: Path, row: int) -> int:
    """The line of the file on which a row, counted from 0, ends."""
    return next(islice(delimited_rows(path, delimiter_of(path)), row + 1, None), (0, []))[0]


def _check_header(path: Path, line: int, names: list[str]) -> None:
    if not names:
        raise SpaceError(f"{path.name}: expected a line of column names and rows below it, got an empty file")
    if len(names) > _MOST_COLUMNS:
        raise SpaceError(
            f"{path.name}, line {line}: expected at most {_MOST_COLUMNS:,} columns, got {len(names):,}; save"
            " vectors as .npy"
        )
    delimiter = delimiter_of(path)
    other = next((one for one in _OTHERS if one != delimiter and one in names[0]), None)
    if len(names) == 1 and other:
        raise SpaceError(
            f"{path.name}, line {line}: expected columns of numbers, got {quote(names)} without one; is the"
            f" delimiter right? Cells of a {path.suffix.lower()} file are separated by {_OTHERS[delimiter]},"
            f" and these by {_OTHERS[other]}"
        )
    digits = [int(one) for one in names if one.isascii() and one.isdigit()]
    if any(is_number(one) and not (one.isascii() and one.isdigit()) for one in names) or (
        digits and digits not in (list(range(len(digits))), list(range(1, len(digits) + 1)))
    ):
        raise SpaceError(
            f"{path.name}, line {line}: expected the names of the columns, got numbers: {quote(names[:4])};"
            " add a line of names"
        )


def _check_length(path: Path, header: int, line: int, names: list[str], cells: list[str]) -> None:
    if len(cells) != len(names):
        raise SpaceError(
            f"{path.name}, line {line}: expected {len(names)} cells as in line {header}, got {len(cells)};"
            " mend or remove the line"
        )


def _found(name: str, place: int, sample: list[tuple[int, list[str]]]) -> ColumnValues:
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
    if "odd number" in kinds and ("text" not in kinds or "number" in kinds):
        line, cell = kinds["odd number"]
        return ColumnValues(name, "mixed", _no_number(cell), f"line {line}")
    if n_numbers and n_texts:
        line, cell = kinds["text" if n_texts <= n_numbers else "number"]
        return ColumnValues(
            name, "mixed", _no_number(cell) if n_texts <= n_numbers else number_in_text(cell), f"line {line}"
        )
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
