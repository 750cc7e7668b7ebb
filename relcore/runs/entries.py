"""The file of one entry: arrays and metadata as safetensors, with checksums that reveal a damaged byte.

CRC-32 reveals what disks, cables and memory do to a file. It is no defence against a person who changes the
file on purpose and writes a new checksum. Of zlib, hashlib and xxhash it is the one that costs less than
reading and needs no dependency.
"""

from __future__ import annotations

import json
import math
import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

_WITHOUT, CHECKED = "relscope", "relscope-crc32"  # one key alone: safetensors writes several in random order
_ALIGNED = 64
_LAST = "vectors"  # by its name, so that the checksum of the other arrays is known before it is written
_MOST_HEADER_BYTES = 100_000_000  # safetensors writes no longer one
_CODES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_DTYPES = {"BOOL": "?", **{f"{code[0].upper()}{8 * int(code[1])}": f"<{code}" for code in _CODES}}
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}


class Damaged(Exception):
    """A file that is not what was written; the message says how that is known."""


@dataclass(frozen=True)
class Entry:
    """What one key holds: read-only arrays by name, and anything that JSON can say."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """An entry without its arrays: their shapes by name, the metadata, its bytes on disk."""

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
    """Write contiguous arrays of numbers, the metadata's JSON and checksums, and flush them to disk.

    The blocks (m, d) and the shape (n, d) of a float32 `matrix` become the array `vectors`, with the memory
    of one block.

    Raises
    ------
    ValueError
        Blocks of another shape; arrays beside a matrix whose names come after "vectors".
    OSError
        The disk is full, or fails.
    """
    if matrix and max(arrays, default="") > _LAST:
        raise ValueError(f"expected names before {_LAST!r}, got {max(arrays)!r}")
    blocks, shape = matrix or ((), None)
    # The widest numbers first, so that all are aligned.
    arrays = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    check, n_rows = int(data_check(arrays), 16), 0
    with path.open("xb") as stream:
        stream.write(_header(shape, arrays, text, 0))
        for block in blocks:
            if block.shape[1] != shape[1]:
                raise ValueError(f"expected rows of {shape[1]:,} numbers, got {block.shape[1]:,}")
            content = np.ascontiguousarray(block, "<f4").data.cast("B")
            check, n_rows = zlib.crc32(content, check), n_rows + len(block)
            stream.write(content)
        if shape and n_rows != shape[0]:
            raise ValueError(f"expected {shape[0]:,} rows, got {n_rows:,}")
        for array in arrays.values():
            stream.write(array.reshape(-1).view(np.uint8))
        stream.seek(0)
        stream.write(_header(shape, arrays, text, check))  # as long as before, now with the checksum
        stream.flush()
        os.fsync(stream.fileno())


def _header(shape: tuple[int, int] | None, arrays: Mapping[str, np.ndarray], text: str, check: int) -> bytes:
    vectors = {_LAST: ("F32", list(shape))} if shape else {}
    layout, end = vectors | layout_of(arrays), 0
    header: dict = {"__metadata__": {CHECKED: f"{header_check(text, layout)} {check:08x} {text}"}}
    for name, (kind, sides) in layout.items():
        begin, end = end, end + math.prod(sides) * np.dtype(_DTYPES[kind]).itemsize
        header[name] = {"dtype": kind, "shape": sides, "data_offsets": [begin, end]}
    content = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    content += b" " * (-(8 + len(content)) % _ALIGNED)
    return len(content).to_bytes(8, "little") + content


def read(path: Path) -> Entry:
    """The whole file.

    Raises
    ------
    Damaged
        It is cut short, changed, or not a file of the store.
    OSError
        It does not exist, or the disk fails.
    """
    # Not by safetensors' own reader: it maps the file into memory, and a disk that vanishes would then kill
    # the process.
    with _opened(path) as file:
        header = _read_header(file)
        data = np.empty(header.n_bytes, np.uint8)
        if file.readinto(data) != header.n_bytes:
            raise Damaged("the file is cut short")
    data.flags.writeable = False
    arrays = {
        name: data[start:stop].view(dtype).reshape(shape)
        for name, (dtype, shape, start, stop) in header.parts.items()
    }
    if header.data_check is not None and data_check(arrays) != header.data_check:
        raise Damaged("the arrays do not match their checksum")
    return Entry(arrays, header.metadata)


def _opened(path: Path) -> BinaryIO:
    if not stat.S_ISREG(path.stat().st_mode):
        raise Damaged("it is no regular file")  # to open a pipe would wait for ever
    return path.open("rb")


def read_header(path: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """Shapes by name, and the metadata; raises as `read` does."""
    with _opened(path) as file:
        header = _read_header(file)
    return {name: shape for name, (_, shape, _, _) in header.parts.items()}, header.metadata


def summary(key: str, path: Path) -> Summary | None:
    """What the header of an entry's file tells; None where it cannot be read."""
    try:
        return Summary(key, *read_header(path), path.stat().st_size)
    except (Damaged, OSError):
        return None


def map_entry(path: Path) -> Entry:
    """The file with its arrays as read-only maps, of which nothing is read: only the header is compared with
    its checksum.

    Raises as `read` does.
    """
    with _opened(path) as file:
        header, begin = _read_header(file), file.tell()
        arrays = {
            name: (
                np.memmap(file, dtype, "r", begin + start, shape) if stop > start else np.empty(shape, dtype)
            )
            for name, (dtype, shape, start, stop) in header.parts.items()
        }
    return Entry(arrays, header.metadata)


def layout_of(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[str, list[int]]]:
    """Type, by the name that safetensors has for it, and shape of each array."""
    return {name: (_NAMES[array.dtype], list(array.shape)) for name, array in arrays.items()}


@dataclass(frozen=True)
class _Header:
    """`parts` holds dtype, shape, first and last byte by name; `data_check` is None in files of versions
    without checksums.
    """

    metadata: dict[str, Any]
    parts: dict[str, tuple[np.dtype, tuple[int, ...], int, int]]
    n_bytes: int
    data_check: str | None


def _read_header(file: BinaryIO) -> _Header:
    n_left = os.fstat(file.fileno()).st_size - 8
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(n_left, _MOST_HEADER_BYTES):
        raise Damaged("the file is cut short, or its header is")
    try:
        told = json.loads(file.read(length))
        stored = told.pop("__metadata__", {})
        check, text = None, stored.get(_WITHOUT)
        if text is None:
            told_check, check, text = stored[CHECKED].split(" ", 2)
            if told_check != header_check(
                text, {name: (part["dtype"], part["shape"]) for name, part in told.items()}
            ):
                raise Damaged("the header does not match its checksum")
        parts = {name: _part(part, n_left - length) for name, part in told.items()}
        metadata = json.loads(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Damaged(f"the header cannot be read, {type(error).__name__}: {error}") from error
    return _Header(metadata, parts, n_left - length, check)


def _part(part: Mapping[str, Any], n_bytes: int) -> tuple[np.dtype, tuple[int, ...], int, int]:
    dtype, shape, (start, stop) = np.dtype(_DTYPES[part["dtype"]]), tuple(part["shape"]), part["data_offsets"]
    if (
        not 0 <= start <= stop <= n_bytes
        or min(shape, default=0) < 0
        or math.prod(shape) * dtype.itemsize != stop - start
    ):
        raise ValueError(f"expected shape {shape} of {dtype} in {n_bytes} bytes, got bytes {start} to {stop}")
    return dtype, shape, start, stop


def header_check(text: str, layout: Mapping[str, tuple[str, list[int]]]) -> str:
    """The checksum of the metadata's JSON and the layout of the arrays."""
    return f"{zlib.crc32(json.dumps([text, sorted(layout.items())]).encode()):08x}"


def data_check(arrays: Mapping[str, np.ndarray]) -> str:
    """The checksum of the bytes of all arrays, in the order of their names."""
    check = 0
    for name in sorted(arrays):
        check = zlib.crc32(arrays[name].reshape(-1).view(np.uint8), check)
    return f"{check:08x}"
