"""Convert dataclasses (settings, recipes and results) to JSON and arrays, and back. Shorten and restore the
paths in recipes and session files. Read and write files of tensors with a checksum.

msgspec checks the types. This module also refuses unknown settings, and keeps arrays outside the JSON. A
class whose JSON differs from its fields has a method ``to_record(self)``; if it is not a dataclass, it also
has a method ``from_record(cls, record)``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from relcore.base.access import data_folder, expand_home, read_at_most, regular_file
from relcore.base.errors import SpaceError, quote
from relcore.base.text import visible

# JSON is checked when it is read. Python's parser accepts NaN, numbers of any length, repeated names and half
# a surrogate pair; msgspec's parser accepts two of these. Such values would cause errors later, which could
# not name the file.

MOST_BYTES = 32 << 20  # bytes of a file; a file full of brackets takes twenty times as much in memory
_MOST_LEVELS = 40
_MOST_WHOLE = 2**63


def parse(text: str | bytes, where: str, what: str = "") -> Any:
    """The value in a JSON text. Error messages say with `what` which content was expected.

    Raises a SpaceError for invalid JSON, and for JSON with more than 32 MB, more than 40 levels, a name twice
    in one object, a number that is not finite or has more than 64 bits, or half a surrogate pair.
    """
    if len(text) > MOST_BYTES:
        raise SpaceError(
            f"{where}: expected at most {MOST_BYTES >> 20} MB of JSON, got {len(text) / 2**20:,.0f} MB"
        )
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RecursionError):
            reason = "too many levels"
        else:
            reason = str(error)
        purpose = ""
        if what:
            purpose = f"{what} as "
        raise SpaceError(f"{where}: expected {purpose}JSON, got invalid JSON ({reason:.200})") from None
    need_plain(value, where)
    return value


def read_file(path: Path, what: str) -> Any:
    """The value in a JSON file. Raises the errors of `parse`, and a SpaceError if the file does not exist."""
    if not path.exists():
        raise SpaceError(f"{path}: expected {what} as a .json file, got no such file")
    return parse(read_at_most(path, MOST_BYTES, what), str(path), what)


def need_plain(value: Any, what: str, levels: int = _MOST_LEVELS) -> None:
    """Raise a SpaceError if JSON cannot hold a text or a number in the value, or if the value is nested too
    deeply."""
    if isinstance(value, Mapping | list | tuple):
        if not levels:
            expected = f"at most {_MOST_LEVELS} levels of lists and objects"
            raise SpaceError(f"{what}: expected {expected}, got more; write it again")
        if isinstance(value, Mapping):
            for name, inner in value.items():
                need_plain(str(name), what)
                need_plain(inner, f"{what:.200}: {visible(name, 40)}", levels - 1)
        else:
            for inner in value:
                need_plain(inner, what, levels - 1)
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
    members = dict(pairs)
    if len(members) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {name!r:.60} twice in one object")
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
    """Convert dataclasses, mappings, tuples, strings and numbers to plain JSON. Equal values give equal JSON.

    An array of numbers is put into `arrays` under a name that tells its place, and the JSON has that name
    instead. An array of strings becomes a list. Without `arrays`, every array becomes a list.
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
    if isinstance(value, np.generic):
        return value.item()
    return value


def from_json(
    kind: type[T], record: Any, what: str = "settings", arrays: Mapping[str, np.ndarray] | None = None
) -> T:
    """The dataclass `kind`, made from the output of `to_json`. Missing fields take their defaults.

    Raises a SpaceError if a setting is missing, unknown, of the wrong type or refused by the class itself.
    The message begins with `what` and the place of the setting.
    """
    import msgspec

    if arrays is None:
        need_plain(record, what)

    def read(inner: type, value: Any) -> Any:
        if issubclass(inner, np.ndarray):
            if isinstance(value, Mapping):
                return arrays[value["array"]]
            if value and isinstance(value[0], str):
                return np.array(value, dtype=object)
            return np.array(value)
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


def _refuse_unknown(record: Any, known: Any, place: str) -> None:
    """Raise a SpaceError for unknown field names, which msgspec ignores."""
    if isinstance(record, Mapping) and isinstance(known, Mapping):
        if unknown := [name for name in record if name not in known]:
            raise SpaceError(
                f"{place}: expected settings among {quote(known)}, got {quote(sorted(map(str, unknown)))}"
            )
        for name, value in record.items():
            _refuse_unknown(value, known[name], f"{place}: {name}")
    elif isinstance(record, list | tuple) and isinstance(known, list):
        for inner, other in zip(record, known, strict=False):
            _refuse_unknown(inner, other, place)


def _rephrase(message: str, kind: Any, value: Any) -> str:
    """Rewrite an error message of msgspec in the form of Relscope's errors: for example ``Expected `int |
    null`, got `str` - at `$.n` `` becomes ``n: expected a whole number …``."""
    text, _, place = message.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    for step in re.findall(r"\.{3}|[^.\[\]]+", place):
        if not isinstance(value, Mapping | list) or step == "...":
            return f"{place}: {text[:1].lower()}{text[1:]}"
        if is_dataclass(kind):
            kind = get_type_hints(kind).get(step)
        else:  # the type of a list's or mapping's items; None if unknown
            inner = [arg for arg in get_args(kind) if arg not in (Ellipsis, type(None))]
            kind = inner[-1] if inner else None
        if isinstance(value, list):
            value = value[int(step)]
        else:
            value = value[step]
    head = ""
    if place:
        head = f"{place}: "
    if missing := re.fullmatch("Object missing required field `(.*)`", text):
        return f"{head}the setting {missing[1]!r} is missing"
    if text.startswith("Invalid enum value"):
        return f"{head}expected one of {quote(get_args(kind))}, got {value!r:.80}"
    types, _, more = text.partition(", got ")[0].partition("`")[2].partition("`")
    expected = " or ".join(_TYPES.get(name, name) for name in types.split(" | ")) + more
    return f"{head}expected {expected or text}, got {value!r:.80}"


# Paths. Recipes and session files name files without their folders, so that they work on other machines.

_OF_FILES = ("file", "index", "folder", "huggingface", "sample")  # sources of specs whose names may be paths
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
Find = Callable[[Mapping[str, Any]], str]


def without_paths(described: Any) -> Any:
    """The JSON with each absolute path cut to its last part. If two paths have the same last part, more parts
    are kept.

    Examples
    --------
    >>> without_paths({"source": "file", "name": "/data/ada/words.npz"})
    {'source': 'file', 'name': 'words.npz'}
    """
    short = _distinct_ends([path for path in paths_of(described) if is_absolute(path)])
    return _rewritten(described, lambda spec, key: short.get(spec[key], spec[key]))


def paths_of(described: Any) -> list[str]:
    """The texts in the JSON that may be paths: those that `without_paths` shortens."""
    paths: dict[str, None] = {}
    _rewritten(described, lambda spec, key: paths.setdefault(spec[key], None) or spec[key])
    return list(paths)


def with_paths(described: Any, find: Find) -> Any:
    """The JSON with full paths: in each spec of a file or folder, ``find(spec)`` replaces the name. This
    undoes `without_paths`."""

    def located(spec: Mapping[str, Any], key: str) -> str:
        if key == "metadata":
            return find({"source": "file", "name": spec[key]})
        if key == "name" and "encoder" not in spec:
            return find(spec)
        return spec[key]

    return _rewritten(described, located)


def _distinct_ends(paths: list[str]) -> dict[str, str]:
    """For each path, its shortest end that is not also the end of another path."""
    ends = {}
    for path in paths:
        steps = _steps_of(path)
        others = [_steps_of(other) for other in paths if other != path]
        n = 1
        while n < len(steps) and any(other[-n:] == steps[-n:] for other in others):
            n += 1
        ends[path] = "/".join(steps[-n:]) or path
    return ends


def _steps_of(path: str) -> list[str]:
    """The folders and the file of an absolute path. Windows separates them by / or \\."""
    if _WINDOWS.match(path):
        return re.findall(r"[^\\/]+", path)
    return re.findall("[^/]+", path)


def is_absolute(text: str) -> bool:
    """Whether a text is an absolute path on this system or on another one."""
    return text.startswith(("/", "~")) or bool(_WINDOWS.match(text))


def last_part(path: str) -> str:
    """The last part of an absolute path; a relative path is returned unchanged."""
    if is_absolute(path):
        return _distinct_ends([path])[path]
    return path


def candidates(spec: Mapping[str, Any], folders: Iterable[Path], deep: Iterable[Path] = ()) -> Iterator[Path]:
    """The existing files and folders that a spec may mean. They are searched for in `folders`, and up to two
    levels below the `deep` folders."""
    inner = ((folder, *sorted(folder.glob("*/")), *sorted(folder.glob("*/*/"))) for folder in deep)
    for folder in dict.fromkeys(chain(folders, *inner)):
        path = folder / last_part(spec["name"])
        if _is_there(path, spec):
            yield path


def finder(
    folders: Iterable[Path],
    deep: Iterable[Path] = (),
    named: Mapping[str, Path] | None = None,
    remedy: str = "",
) -> Find:
    """A function for `with_paths` that finds the file of a spec: first by its last part in `named`, then by
    the spec's own path, then in the folders, as `candidates` does.

    If no such file exists, the function raises a SpaceError with the remedy.
    """
    folders = list(folders)
    deep = list(deep)
    named = named or {}

    def find(spec: Mapping[str, Any]) -> str:
        name = spec["name"]
        short = last_part(spec["name"])
        if short in named:
            return str(named[short].resolve())
        if _is_there(expand_home(name), spec):
            return name
        path = next(candidates(spec, folders, deep), None)
        if path is None and spec["source"] == "file":
            places = ", ".join(dict.fromkeys(str(folder) for folder in (*folders, *deep)))
            raise SpaceError(
                f"expected a file, got {short!r}, which exists neither by this path nor in the folders"
                f" {places}; {remedy or 'copy it there'}"
            )
        if path is None:
            return name
        return str(path.resolve())

    return find


def _is_there(path: Path, spec: Mapping[str, Any]) -> bool:
    try:
        # The name of a space may be that of a folder with parts.
        return path.is_dir() or (spec["source"] == "file" and path.is_file())
    except (OSError, ValueError):  # the name is too long or contains a null character
        return False


def _rewritten(value: Any, change: Callable[[Mapping[str, Any], str], str]) -> Any:
    """The JSON with the result of `change` in place of each path. Paths inside texts that are themselves JSON
    are replaced, too; specs of encodings contain such texts."""
    if isinstance(value, Mapping):
        places = _places(value)
        record = {}
        for key, inner in value.items():
            if key in places:
                record[key] = change(value, key)
            else:
                record[key] = _rewritten(inner, change)
        return record
    if isinstance(value, list | tuple):
        return [_rewritten(inner, change) for inner in value]
    if isinstance(value, str) and value.startswith("{"):
        with suppress(SpaceError):
            inner = parse(value, "spec")
            changed = _rewritten(inner, change)
            if changed == inner:
                return value
            return json.dumps(changed, sort_keys=True)
    return value


def _places(spec: Mapping[str, Any]) -> set[str]:
    """Those keys of a spec, or of its options, whose values may be paths. In an encoder's JSON, any text may
    be a path."""
    texts = {key for key, value in spec.items() if isinstance(value, str) and not value.startswith("{")}
    if "encoder" in texts:
        return texts - {"encoder"}
    if spec.get("source") in _OF_FILES:
        return texts & {"name"}
    return texts & {"folder", "metadata"}


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The object in a .json file, with the names of files replaced by their paths. Files are searched for
    beside the .json file, in the current folder and under RELSCOPE_DATA.

    Raises
    ------
    SpaceError
        The file does not exist, its content is not a JSON object, or a file that it names is not found.
    """
    record = read_file(path, what)
    if not isinstance(record, dict):
        raise SpaceError(f"{path}: expected {what} as a JSON object, got {type(record).__name__}")
    return with_paths(record, finder([path.parent, Path()], filter(None, [data_folder()])))


# Safetensors files with a JSON header, which describes the tensors and has a checksum of the whole file.

_MOST_BYTES = 1 << 30
_MOST_HEADER = 1 << 20
_ZEROS = 32 * "0"
_DTYPES = {"F32": "<f4", "U8": "u1"}


def file_bytes(tensors: dict[str, np.ndarray], key: str, header: Any) -> bytes:
    """The bytes of a file of float32 and uint8 tensors. `header` is a dataclass; its field `checksum` is
    filled in. Equal tensors and headers give equal bytes."""
    from safetensors.numpy import save

    text = json.dumps(to_json(replace(header, checksum=_ZEROS)), ensure_ascii=False, sort_keys=True)
    content = save(tensors, metadata={key: text})
    zeros = rf"\"checksum\": \"{_ZEROS}".encode()
    checksum = rf"\"checksum\": \"{_checksum(content)}".encode()
    return content.replace(zeros, checksum, 1)


def checked_tensors(
    path: Path, key: str, kind: type[T], layout: int, what: str
) -> tuple[T, dict[str, np.ndarray]]:
    """Return the header and the tensors of a file that `file_bytes` wrote. An empty checksum is not checked.

    Raises
    ------
    SpaceError
        The file is of another kind, is damaged, has a later layout, or is larger than a gigabyte. The message
        says with `what` which file was expected.
    """
    from safetensors import SafetensorError, deserialize

    other = f"{what} as safetensors", "another file or a damaged one"
    with regular_file(path).open("rb") as stream:  # read once, so that the checked bytes are those used
        size = os.fstat(stream.fileno()).st_size
        length = int.from_bytes(stream.read(8), "little")
        if length > min(size, _MOST_HEADER) or size > _MOST_BYTES:
            raise damaged_file(path.name, *other)
        stream.seek(0)
        content = stream.read(size)
    try:
        parts = dict(deserialize(content))
        text = json.loads(content[8 : 8 + length]).get("__metadata__", {}).get(key)
    except (SafetensorError, ValueError) as error:
        raise damaged_file(path.name, other[0], f"{other[1]} ({error!s:.100})") from None
    if unknown := {part["dtype"] for part in parts.values()} - _DTYPES.keys():
        raise damaged_file(path.name, "float32 tensors", quote(sorted(unknown)))
    if text is None:
        raise damaged_file(path.name, f"{what} with its card", f"a safetensors file without {key!r}")
    header = _header(path.name, text, key, kind, layout)
    checksum = header.checksum.encode()
    if checksum and _checksum(content.replace(checksum, _ZEROS.encode(), 1)) != header.checksum:
        raise damaged_file(path.name, "the content that was written", "another one, by its checksum")
    return header, {
        name: np.frombuffer(part["data"], _DTYPES[part["dtype"]]).reshape(part["shape"])
        for name, part in parts.items()
    }


def _header(name: str, text: str, key: str, kind: Any, layout: int) -> Any:
    try:
        described = parse(text, key)
        if isinstance(described, dict) and type(got := described.get("layout")) is int and got > layout:
            raise SpaceError(f"expected layout {layout}, got {got} of a later version; update Relscope")
        return from_json(kind, described, key)
    except SpaceError as error:
        raise SpaceError(f"{name}: {error!s:.700}; copy or make it again") from None


def _checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def damaged_file(name: str, expected: str, got: str) -> SpaceError:
    return SpaceError(f"{name}: expected {expected}, got {got}; copy or make it again")
