"""Convert dataclasses (settings, recipes and results) to JSON and arrays for the store, and back.

msgspec checks types strictly. This module also refuses unknown settings, and keeps arrays outside the JSON. A
class whose JSON differs from its fields has a method ``to_record(self)``; if it is not a dataclass, it also
has a method ``from_record(cls, record)``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError, quote
from relcore.base.text import visible

# JSON is checked on reading. Python's parser accepts NaN, numbers of any length, repeated names and half a
# surrogate pair; msgspec's parser accepts two of these. Such values would cause errors later, when the file
# is no longer known.

MOST_BYTES = 32 << 20  # a file of brackets takes twenty times as much in memory
_MOST_LEVELS = 40
_MOST_WHOLE = 2**63


def parse(text: str | bytes, where: str, what: str = "") -> Any:
    """The value in a JSON text. Error messages say with `what` which content was expected.

    Raises a SpaceError for invalid JSON, more than 32 MB or 40 levels, a repeated name in one object, a
    number that is not finite or has more than 64 bits, and half a surrogate pair.
    """
    if len(text) > MOST_BYTES:
        raise SpaceError(
            f"{where}: expected at most {MOST_BYTES >> 20} MB of JSON, got {len(text) / 2**20:,.0f} MB"
        )
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "too many levels" if isinstance(error, RecursionError) else str(error)
        raise SpaceError(
            f"{where}: expected {f'{what} as ' * bool(what)}JSON, got invalid JSON ({reason:.200})"
        ) from None
    need_plain(value, where)
    return value


def read_file(path: Path, what: str) -> Any:
    """The value in a JSON file. Raises the errors of `parse`, and a SpaceError if the file does not exist."""
    if not path.exists():
        raise SpaceError(f"{path}: expected {what} as a .json file, got no such file")
    size = regular_file(path).stat().st_size
    if size > MOST_BYTES:
        raise SpaceError(
            f"{path}: expected {what} of at most {MOST_BYTES >> 20} MB, got {size / 2**20:,.0f} MB; is it"
            " this file?"
        )
    return parse(path.read_bytes(), str(path), what)


def need_plain(value: Any, what: str, levels: int = _MOST_LEVELS) -> None:
    """Raise a SpaceError if the value is nested too deeply, or holds a text or number that JSON cannot
    hold."""
    if isinstance(value, Mapping | list | tuple):
        if not levels:
            expected = f"at most {_MOST_LEVELS} levels of lists and objects"
            raise SpaceError(f"{what}: expected {expected}, got more; write it again")
        for name, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            place = what
            if isinstance(value, Mapping):
                need_plain(str(name), what)
                place = f"{what:.200}: {visible(name, 40)}"
            need_plain(inner, place, levels - 1)
    elif isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            got = f"half a surrogate pair, {value[error.start]!a}"
            raise SpaceError(f"{what}: expected text that UTF-8 can hold, got {got}; remove it") from None
    elif isinstance(value, float) and not math.isfinite(value):
        raise SpaceError(f"{what}: expected a number that is finite, got {value}; write such a number")
    elif isinstance(value, int) and not -_MOST_WHOLE <= value < _MOST_WHOLE:
        bits = value.bit_length()
        raise SpaceError(f"{what}: expected whole numbers of up to 64 bits, got one of {bits:,} bits")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"the name {name!r:.60} twice in one object")
        members[name] = value
    return members


def _refuse(constant: str) -> None:
    raise ValueError(f"the number {constant}, which JSON does not have")


T = TypeVar("T")
_TYPES = {
    "object": "an object",
    "array": "a list",
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "null": "null",
}


def to_json(value: Any, arrays: dict[str, np.ndarray] | None = None, place: str = "") -> Any:
    """Plain JSON of dataclasses, mappings, tuples, strings and numbers; equal values give equal bytes.

    Arrays of numbers are put into `arrays` under a name that tells their place, and the JSON holds that name.
    An array of strings becomes a list. Without `arrays`, every array becomes a list.
    """
    if hasattr(value, "to_record"):
        value = value.to_record()
    if isinstance(value, np.ndarray):
        if arrays is None or value.dtype.kind not in "biuf":
            return value.tolist()
        arrays[place] = np.ascontiguousarray(value)
        return {"array": place}
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {
            name: to_json(inner, arrays, f"{place}.{name}" if place else str(name))
            for name, inner in value.items()
        }
    if isinstance(value, tuple | list):
        return [to_json(inner, arrays, f"{place}.{number}") for number, inner in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def from_json(
    kind: type[T], record: Any, what: str = "settings", arrays: Mapping[str, np.ndarray] | None = None
) -> T:
    """The dataclass `kind`, made from the output of `to_json`. Missing fields take their defaults.

    If a setting is missing, unknown, of the wrong type or refused by the class itself, raises a SpaceError
    that begins with ``what`` and the place of the setting.
    """
    import msgspec

    if arrays is None:
        need_plain(record, what)

    def read(inner: type, value: Any) -> Any:
        if issubclass(inner, np.ndarray):
            if isinstance(value, Mapping):
                return arrays[value["array"]]
            return np.array(value, dtype=object if value and isinstance(value[0], str) else None)
        return inner.from_record(value)

    try:
        value = msgspec.convert(record, kind, dec_hook=read)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SpaceError):
            raise error.__cause__ from None
        raise SpaceError(f"{what}: {_rephrase(str(error), kind, record)}") from None
    if arrays is None:
        _refuse_unknown(record, to_json(value), what)
    return value


def pack(value: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    arrays: dict[str, np.ndarray] = {}
    return arrays, to_json(value, arrays)


def unpack(kind: type[T], arrays: Mapping[str, np.ndarray], record: Any) -> T:
    return from_json(kind, record, kind.__name__, arrays)


def _refuse_unknown(given: Any, known: Any, place: str) -> None:
    """Raise a SpaceError for unknown field names, which msgspec ignores."""
    if isinstance(given, Mapping) and isinstance(known, Mapping):
        if unknown := [name for name in given if name not in known]:
            raise SpaceError(
                f"{place}: expected settings among {quote(known)}, got {quote(sorted(map(str, unknown)))}"
            )
        for name, value in given.items():
            _refuse_unknown(value, known[name], f"{place}: {name}")
    elif isinstance(given, list | tuple) and isinstance(known, list):
        for inner, other in zip(given, known, strict=False):
            _refuse_unknown(inner, other, place)


def _rephrase(message: str, kind: Any, given: Any) -> str:
    """Rewrite msgspec's error message in our form: for example ``Expected `int | null`, got `str` - at `$.n`
    `` becomes ``n: expected a whole number …``."""
    text, _, place = message.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    for step in re.findall(r"\.{3}|[^.\[\]]+", place):
        if not isinstance(given, Mapping | list) or step == "...":
            return f"{place}: {text[:1].lower()}{text[1:]}"
        if is_dataclass(kind):
            kind = get_type_hints(kind).get(step)
        else:  # the type of a list's or mapping's items; None if unknown
            inner = [arg for arg in get_args(kind) if arg not in (Ellipsis, type(None))]
            kind = inner[-1] if inner else None
        given = given[int(step)] if isinstance(given, list) else given[step]
    head = f"{place}: " * bool(place)
    if missing := re.fullmatch("Object missing required field `(.*)`", text):
        return f"{head}the setting {missing[1]!r} is missing"
    if text.startswith("Invalid enum value"):
        return f"{head}expected one of {quote(get_args(kind))}, got {given!r:.80}"
    types, _, more = text.partition(", got ")[0].partition("`")[2].partition("`")
    expected = " or ".join(_TYPES.get(name, name) for name in types.split(" | ")) + more
    return f"{head}expected {expected or text}, got {given!r:.80}"
