"""Plain text from files: UTF-8, of a size that fits a list that people make, and cut into lines at line ends only."""

from __future__ import annotations

import re
from pathlib import Path

from relcore.access import regular_file
from relcore.spaces import SpaceError

_MOST_BYTES = 64 << 20
_LINE_END = re.compile("\r\n|\r|\n")  # str.splitlines also cuts at U+0085, which is a word of GloVe's


def read_lines(path: Path, what: str) -> list[str]:
    """The lines of a text file; `what` it is expected to list, for errors.

    Raises
    ------
    SpaceError
        No file, more than 64 MB, no UTF-8, a zero byte.
    """
    size = regular_file(path).stat().st_size
    if size > _MOST_BYTES:
        raise SpaceError(f"{path.name}: expected {what}, {_MOST_BYTES >> 20} MB at most, got {size >> 20:,}; is it this file?")
    return lines_of(path.read_bytes(), path.name, what)


def lines_of(content: bytes, where: str, what: str) -> list[str]:
    """The lines of a text; errors as in `read_lines`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = f"byte 0x{content[error.start]:02x} at {error.start:,}"
        raise SpaceError(f"{where}: expected UTF-8 text with {what}, got {got}; save it as UTF-8") from None
    if "\0" in text:
        raise SpaceError(f"{where}: expected text with {what}, got a zero byte; is it this file?")
    return lines_in(text)


def lines_in(text: str) -> list[str]:
    """The lines of a text; a line end at its end begins none."""
    return _LINE_END.split(text.removesuffix("\n"))
