"""Keys and files of store entries, that is, saved results, and the results that are bundled with Relscope. A
file has the format safetensors, with checksums. These are CRC-32, which detects damage but no change on
purpose.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relcore.base.errors import RelscopeError
from relcore.base.names import FAMILIES


def digest_of(*parts: Any) -> str:
    """A key for a store entry: the hexadecimal digest of frozen dataclasses, strings, numbers, tuples, dicts
    and arrays.

    Equal content gives equal digests in every process and every version of Python. 1, 1.0, True and "1" give
    different digests, and so do dataclasses with different names. A list and an equal tuple give equal
    digests.
    """
    text = json.dumps([_canonical(part) for part in parts], ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def plugins_in(*settings: Any) -> list[str]:
    """The names and versions of the plugins that these settings use. They are part of a key, because another
    version of a plugin may give other results."""
    versions = {name: entry.plugin for family in FAMILIES for name, entry in family.added.items()}
    text = ""
    if versions:
        text = json.dumps(_canonical(settings))
    return sorted({plugin for name, plugin in versions.items() if json.dumps(name) in text})


def _canonical(part: Any) -> Any:
    if isinstance(part, np.generic):
        part = part.item()
    if part is None or isinstance(part, (str, bool, int, float)):
        return part
    if isinstance(part, (tuple, list)):
        return ["list", *map(_canonical, part)]
    if isinstance(part, Mapping):
        pairs = [[_canonical(key), _canonical(value)] for key, value in part.items()]
        return ["dict", *sorted(pairs, key=json.dumps)]
    if isinstance(part, np.ndarray) and part.dtype.kind in "biuf":
        content = hashlib.blake2b(
            np.ascontiguousarray(part).reshape(-1).view(np.uint8), digest_size=16
        ).hexdigest()
        return ["array", part.dtype.str, list(part.shape), content]
    if is_dataclass(part) and not isinstance(part, type):
        return [
            "dataclass",
            type(part).__name__,
            *([field.name, _canonical(getattr(part, field.name))] for field in fields(part)),
        ]
    raise TypeError(
        "expected dataclasses, strings, numbers, tuples, dicts or arrays of numbers, got"
        f" {type(part).__name__}"
    )


ENVIRONMENT = "RELSCOPE_STORE"  # environment variable with the folder of the store


class StoreError(RelscopeError, RuntimeError):
    """The store cannot read, save or remove an entry."""


CHECKED = "relscope-crc32"
_ALIGNED = 64
_LAST = "vectors"  # the array that is stored in blocks; its checksum continues that of the other arrays
_MOST_HEADER_BYTES = 100_000_000  # the limit of safetensors
_CODES = ("?", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
_TYPES = ("BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "F32", "F64")
_DTYPES = dict(zip(_TYPES, map(np.dtype, _CODES), strict=True))
_NAMES = dict(zip(_DTYPES.values(), _TYPES, strict=True))
_Part = tuple[np.dtype, tuple[int, ...], int, int]  # type, shape, first byte and last byte + 1 of an array
FOLDER = Path(str(files("relcore") / "data" / "finished"))
_log = logging.getLogger("relscope")


class Damaged(Exception):
    """A file of an entry was truncated or changed."""


@dataclass(frozen=True)
class Entry:
    """The content of a store entry: read-only arrays by name, and metadata that can be written as JSON."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """A summary of an entry: the shapes of its arrays, its metadata, and its size on disk."""

    key: str
    shapes: dict[str, tuple[int, ...]]
    metadata: dict[str, Any]
    size: int


def write(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    text: str,
    matrix: tuple[Iterable[np.ndarray], tuple[int, int]] | None = None,
) -> None:
    """Write an entry to a new file (see `write_into`), and flush it to disk."""
    with path.open("xb") as stream:
        write_into(stream, arrays, text, matrix)
        stream.flush()
        os.fsync(stream.fileno())


def write_into(
    stream: BinaryIO,
    arrays: Mapping[str, np.ndarray],
    text: str,
    matrix: tuple[Iterable[np.ndarray], tuple[int, int]] | None = None,
) -> None:
    """Write contiguous arrays, the metadata as JSON, and checksums to a stream.

    `matrix` is a pair: float32 blocks (m, d), which become the array "vectors", and the shape (n, d) of that
    array. Raises a ValueError if the blocks have another shape, or if the name of an array sorts after
    "vectors".
    """
    if matrix and max(arrays, default="") > _LAST:
        raise ValueError(f"expected names before {_LAST!r}, got {max(arrays)!r}")
    blocks, shape = matrix or ((), None)
    # The widest types come first, which aligns all arrays.
    arrays = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    check = int(data_check(arrays), 16)
    n_rows = 0
    stream.write(_header(shape, arrays, text, 0))
    for block in blocks:
        if block.shape[1] != shape[1]:
            raise ValueError(f"expected rows of {shape[1]:,} numbers, got {block.shape[1]:,}")
        content = np.ascontiguousarray(block, "<f4").data.cast("B")
        check = zlib.crc32(content, check)
        n_rows = n_rows + len(block)
        stream.write(content)
    if shape and n_rows != shape[0]:
        raise ValueError(f"expected {shape[0]:,} rows, got {n_rows:,}")
    for array in arrays.values():
        stream.write(array.reshape(-1).view(np.uint8))
    stream.seek(0)
    stream.write(_header(shape, arrays, text, check))  # write the header again, now with the checksum
    stream.seek(0, os.SEEK_END)


def _header(shape: tuple[int, int] | None, arrays: Mapping[str, np.ndarray], text: str, check: int) -> bytes:
    layout = {}
    if shape:
        layout = {_LAST: ("F32", list(shape))}
    layout |= {name: (_NAMES[array.dtype], list(array.shape)) for name, array in arrays.items()}
    header: dict = {"__metadata__": {CHECKED: f"{_header_check(text, layout)} {check:08x} {text}"}}
    end = 0
    for name, (kind, sides) in layout.items():
        begin = end
        end = end + math.prod(sides) * _DTYPES[kind].itemsize
        header[name] = {"dtype": kind, "shape": sides, "data_offsets": [begin, end]}
    content = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    content += b" " * (-(8 + len(content)) % _ALIGNED)
    return len(content).to_bytes(8, "little") + content


def read(path: Path) -> Entry:
    """Read the entry in a file. Raises Damaged if the file was truncated or changed, and OSError if it cannot
    be read."""
    # The reader of safetensors would map the file, and the process would be killed if the file's disk
    # disappeared.
    with _open_regular(path) as file:
        metadata, parts, n_bytes, check = _read_header(file)
        data = np.empty(n_bytes, np.uint8)
        if file.readinto(data) != n_bytes:
            raise Damaged("the file is cut short")
    data.flags.writeable = False
    arrays = {
        name: data[start:stop].view(dtype).reshape(shape)
        for name, (dtype, shape, start, stop) in parts.items()
    }
    if data_check(arrays) != check:
        raise Damaged("the arrays do not match their checksum")
    return Entry(arrays, metadata)


def map_entry(path: Path) -> Entry:
    """Open the entry in a file without loading it: arrays are read-only memory maps, and the checksum is not
    checked."""
    with _open_regular(path) as file:
        (metadata, parts, _, _) = _read_header(file)
        begin = file.tell()
        arrays: dict[str, np.ndarray] = {}
        for name, (dtype, shape, start, stop) in parts.items():
            if stop > start:
                arrays[name] = np.memmap(file, dtype, "r", begin + start, shape)
            else:  # nothing to map
                arrays[name] = np.empty(shape, dtype)
    return Entry(arrays, metadata)


def summary(key: str, path: Path) -> Summary | None:
    """The summary of an entry from the header of its file; None if it cannot be read."""
    try:
        with _open_regular(path) as file:
            metadata, parts, _, _ = _read_header(file)
        return Summary(key, {name: part[1] for name, part in parts.items()}, metadata, path.stat().st_size)
    except (Damaged, OSError):
        return None


def _open_regular(path: Path) -> BinaryIO:
    if not stat.S_ISREG(path.stat().st_mode):
        raise Damaged("it is no regular file")  # opening a pipe would block
    return path.open("rb")


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], dict[str, _Part], int, str]:
    """Return the metadata of an entry, the position of each array in the file, the number of bytes of all
    arrays, and their checksum."""
    n_left = os.fstat(file.fileno()).st_size - 8
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(n_left, _MOST_HEADER_BYTES):
        raise Damaged("the file or its header is cut short")
    try:
        header = json.loads(file.read(length))
        expected, check, text = header.pop("__metadata__", {})[CHECKED].split(" ", 2)
        layout = {name: (part["dtype"], part["shape"]) for name, part in header.items()}
        if expected != _header_check(text, layout):
            raise Damaged("the header does not match its checksum")
        parts = {name: _part(part, n_left - length) for name, part in header.items()}
        return json.loads(text), parts, n_left - length, check
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Damaged(f"the header cannot be read, {type(error).__name__}: {error}") from error


def _part(part: Mapping[str, Any], n_bytes: int) -> _Part:
    dtype = _DTYPES[part["dtype"]]
    shape = tuple(part["shape"])
    (start, stop) = part["data_offsets"]
    size = math.prod(shape) * dtype.itemsize
    if not 0 <= start <= stop <= n_bytes or min(shape, default=0) < 0 or size != stop - start:
        raise ValueError(f"expected shape {shape} of {dtype} in {n_bytes} bytes, got bytes {start} to {stop}")
    return dtype, shape, start, stop


def _header_check(text: str, layout: Mapping[str, tuple[str, list[int]]]) -> str:
    return f"{zlib.crc32(json.dumps([text, sorted(layout.items())]).encode()):08x}"


def data_check(arrays: Mapping[str, np.ndarray]) -> str:
    """The checksum of all arrays, in the order of their names."""
    check = 0
    for name in sorted(arrays):
        check = zlib.crc32(arrays[name].reshape(-1).view(np.uint8), check)
    return f"{check:08x}"


# Bundled results, which come with Relscope, are read by key and never written.


@dataclass(frozen=True)
class FinishedGroup:
    """Bundled results that were computed together. `assets/finished/make_finished.py` writes them to a JSON
    file.

    `files` are the keys of large entries, each of which is in a file beside the JSON. `entries` maps the keys
    of small entries to their metadata.
    """

    name: str
    date: str
    commit: str
    files: tuple[str, ...]
    entries: Mapping[str, Any]
    folder: Path

    @property
    def in_words(self) -> str:
        """The date of the results in a sentence: ``"Computed on 2026-11-22."``"""
        return f"Computed on {self.date}."


class BundledResults:
    """The bundled results of some folders, in groups. A folder may be empty or missing."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders or (FOLDER,)

    def add(self, folder: Path) -> None:
        """Add the results in a folder. A folder that was added before is skipped."""
        if folder not in self._folders:
            self._folders += (folder,)
            for known in ("groups", "_group_of"):
                self.__dict__.pop(known, None)

    @cached_property
    def groups(self) -> dict[str, FinishedGroup]:
        groups = {}
        paths: list[Path] = []
        for folder in self._folders:
            paths += sorted(folder.glob("*.json"))
        for path in paths:
            record = json.loads(path.read_text(encoding="utf-8"))
            groups[path.stem] = FinishedGroup(
                name=path.stem,
                date=record["date"],
                commit=record["commit"],
                files=tuple(record["files"]),
                entries=record["entries"],
                folder=path.parent,
            )
        return groups

    @cached_property
    def _group_of(self) -> dict[str, FinishedGroup]:
        return {key: group for group in self.groups.values() for key in (*group.files, *group.entries)}

    def bundled_group(self, key: str) -> FinishedGroup | None:
        """The group that contains the result with this key; None if there is none."""
        return self._group_of.get(key)

    def get(self, key: str) -> Entry | None:
        if (group := self.bundled_group(key)) is None:
            return None
        if key in group.entries:
            return Entry({}, group.entries[key])
        path = group.folder / f"{key}.safetensors"
        try:
            return read(path)
        except (Damaged, OSError) as error:
            _log.warning("%s: this result that comes with Relscope counts as missing: %s", path, error)
            return None

    def summary(self, key: str) -> Summary | None:
        if (group := self.bundled_group(key)) is None:
            return None
        if key in group.entries:
            return Summary(key, {}, group.entries[key], 0)
        return summary(key, group.folder / f"{key}.safetensors")


@cache
def bundled_results() -> BundledResults:
    """The results that come with this installation. They are read once.

    Examples
    --------
    >>> from relcore import bundled_results
    >>> "digits" in bundled_results().groups
    True
    """
    return BundledResults()
