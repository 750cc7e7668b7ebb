"""Make texts of users and files safe to show in a terminal or on a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from relcore.base.access import read_at_most
from relcore.base.errors import SpaceError, quote

LONGEST = 2000  # maximum number of characters that are shown of a text

# Control characters, lone surrogates, marks that override the direction of text, and characters without a
# shape. Scripts and emoji need the joiners U+200C and U+200D and the marks U+200E, U+200F and U+061C. These
# cannot override the direction, so they are kept.
_STEERING = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_BLANK = re.compile(r"\s+")
_RETURN = re.compile("[\r\v\f]")
_HALVES = re.compile("[\ud800-\udfff]")


def harmless(text: str) -> str:
    """The text with � in place of control characters and invisible characters. Line breaks are kept."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", _RETURN.sub(" ", text))


def shortened(text: str, most: int) -> str:
    """The text, cut to `most` characters, of which the last one is then "…"."""
    if len(text) <= most:
        return text
    return text[: most - 1] + "…"


def visible(text: object, most: int = LONGEST) -> str:
    """The text after `harmless`, on one line and cut to `most` characters.

    Examples
    --------
    >>> visible("a\\x1b[2Jb\\n c")
    'a�[2Jb c'
    >>> visible("embedding", most=4)
    'emb…'
    """
    return harmless(_BLANK.sub(" ", shortened(str(text), most)))


def encodable(data: Any) -> Any:
    """The data with � in place of each lone surrogate in its texts, because no file can hold one.

    Texts are found in lists, tuples, dictionaries, dataclasses and arrays of objects.

    Examples
    --------
    >>> encodable({"ids": ("\\ud800", "a")})
    {'ids': ('�', 'a')}
    """
    if isinstance(data, str):
        return _HALVES.sub("\N{REPLACEMENT CHARACTER}", data)
    if isinstance(data, list | tuple):
        items = [encodable(item) for item in data]
        if all(new is item for new, item in zip(items, data, strict=True)):
            return data
        return getattr(data, "_make", type(data))(items)
    if isinstance(data, dict):
        return {encodable(name): encodable(value) for name, value in data.items()}
    import numpy as np  # imported here, because every command loads this module to show its help

    if isinstance(data, np.ndarray) and data.dtype == object:
        try:
            "".join(item for item in data.flat if isinstance(item, str)).encode()
        except UnicodeEncodeError:
            items = np.empty_like(data)
            items.flat = [encodable(item) for item in data.flat]
            return items
    elif is_dataclass(data) and not isinstance(data, type):
        values = {field.name: getattr(data, field.name) for field in fields(data) if field.init}
        changed = {name: new for name, value in values.items() if (new := encodable(value)) is not value}
        if changed:
            return replace(data, **changed)
        return data
    return data


MARK = "\ufeff"
_MOST_BYTES = 64 << 20
_LINE_END = re.compile("\r\n|\r|\n")  # unlike str.splitlines, without U+0085, which is a word of GloVe's


def read_lines(path: Path, what: str) -> list[str]:
    """The lines of a text file. Error messages say with `what` which content was expected.

    Raises a SpaceError if the file is missing, is larger than 64 MB, is not valid UTF-8, or contains a zero
    byte.
    """
    return lines_of(read_at_most(path, _MOST_BYTES, what), path.name, what)


def lines_of(content: bytes, where: str, what: str) -> list[str]:
    """The lines of an encoded text. Raises the same errors as `read_lines`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = f"byte 0x{content[error.start]:02x} at {error.start:,}"
        raise SpaceError(f"{where}: expected UTF-8 text with {what}, got {got}; save it as UTF-8") from None
    if "\0" in text:
        raise SpaceError(f"{where}: expected text with {what}, got a zero byte; is it the right file?")
    return lines_in(text)


def as_lines(items: Sequence[str], where: str, what: str, first: bool = True, *, bare: bool = False) -> bytes:
    """The bytes from which `lines_of` reads these items. `first` means that the items begin a file, where a
    byte order mark has an effect. `bare` means that readers of this list drop spaces at the ends of a line.

    Raises a SpaceError if an item contains a line break or a zero byte. With `bare`, spaces at its ends are
    an error, too.
    """
    text = "\n".join(items)
    spaced = [item for item in items if item != item.strip()]
    if bare and spaced:
        raise SpaceError(
            f"{where}: expected {what} without spaces at their ends, got {quote(spaced[:1])}; choose others"
        )
    if text.count("\n") != len(items) - 1 or "\r" in text or "\0" in text:
        raise SpaceError(
            f"{where}: expected {what} without line breaks and zero bytes, got one with some; write .parquet"
            " instead"
        )
    # Readers drop the first byte order mark, so a text that begins with one gets a second.
    if first and text.startswith(MARK):
        text = MARK + text
    return f"{text}\n".encode()


def lines_in(text: str) -> list[str]:
    """Split text into lines; a trailing newline adds no empty line."""
    return _LINE_END.split(text.removesuffix("\n"))
