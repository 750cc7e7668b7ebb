"""Plain JSON from files, boxes and links: parsed strictly, and held to what a setting can be before anything reads it.

Python's own parser takes NaN, numbers of any length, the same name twice and half a surrogate pair; each of them fails later,
far from the file. msgspec's keeps the last of two equal names and lets long whole numbers pass, so the rules are written here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relcore.access import regular_file
from relcore.plain_text import visible
from relcore.spaces import SpaceError

MOST_BYTES = 32 << 20  # unpacked, a file of nothing but brackets takes twenty times as much
_MOST_LEVELS = 40
_MOST_WHOLE = 2**63


def parse(text: str | bytes, where: str, what: str = "") -> Any:
    """The value of a JSON text that is expected to be `what`.

    Raises
    ------
    SpaceError
        No JSON, more than 32 MB, nesting deeper than 40 levels, a name twice in one object, a number that is not finite or has
        more than 64 bits, a character that no text has.
    """
    if len(text) > MOST_BYTES:
        raise SpaceError(f"{where}: expected at most {MOST_BYTES >> 20} MB of JSON, got {len(text) / 2**20:,.0f} MB")
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "too many levels" if isinstance(error, RecursionError) else str(error)
        raise SpaceError(f"{where}: expected {f'{what} as ' * bool(what)}JSON, got invalid JSON ({reason:.200})") from None
    need_plain(value, where)
    return value


def read_file(path: Path, what: str) -> Any:
    """The value in a JSON file; errors as in `parse`, and for a path that leads to no file or to a large one."""
    if not path.exists():
        raise SpaceError(f"{path}: expected {what} as a .json file, got no such file")
    size = regular_file(path).stat().st_size
    if size > MOST_BYTES:
        raise SpaceError(
            f"{path}: expected {what} of at most {MOST_BYTES >> 20} MB, got {size / 2**20:,.0f} MB; is it this file?"
        )
    return parse(path.read_bytes(), str(path), what)


def need_plain(value: Any, what: str) -> None:
    """Raise a SpaceError unless settings can be what is in these objects and lists; errors as in `parse`."""
    level = [(what, value)]
    for _ in range(_MOST_LEVELS):
        inner: list[tuple[str, Any]] = []
        for place, one in level:
            if isinstance(one, str):
                _need_text(one, place)
            elif isinstance(one, float):
                if not math.isfinite(one):
                    raise SpaceError(f"{place}: expected a number that is finite, got {one}; write such a number")
            elif isinstance(one, int):
                if not -_MOST_WHOLE <= one < _MOST_WHOLE:
                    raise SpaceError(f"{place}: expected whole numbers of up to 64 bits, got one of {one.bit_length():,} bits")
            elif isinstance(one, Mapping):
                for name, held in one.items():
                    _need_text(str(name), place)
                    inner.append((f"{place:.200}: {visible(name, 40)}", held))
            elif isinstance(one, list | tuple):
                inner.extend((place, item) for item in one)
        if not inner:
            return
        level = inner
    raise SpaceError(f"{what}: expected at most {_MOST_LEVELS} levels of lists and objects, got more; write it again")


def _need_text(text: str, what: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        got = f"half a surrogate pair, {text[error.start]!a}"
        raise SpaceError(f"{what}: expected text that UTF-8 can hold, got {got}; remove it") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the name {twice!r:.60} twice in one object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"the number {constant}, which JSON does not have")
