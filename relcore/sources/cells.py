"""Cells of delimited text: rows with their lines, and what a cell holds: a number, nothing, text, or an odd form of a number.

A number is written with ASCII digits and a decimal point. Python's float() alone would also take "1_000" and the digits of any
script; readers of other programs take "1,5" or "1 000". Such cells are named, so that nobody guesses what they mean.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from relcore.spaces import SpaceError

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
                    raise SpaceError(f"{place}: expected a row of text, got {fault}; is this a table in UTF-8?")
                yield line

        reader = csv.reader(lines(), delimiter=delimiter)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{path.name}, after line {reader.line_num}: expected UTF-8 text in cells, got {error.reason}; save it as UTF-8"
            ) from None
        except csv.Error as error:
            raise SpaceError(
                f"{path.name}, after line {reader.line_num}: expected a row of cells, got {error}; mend the line"
            ) from error
