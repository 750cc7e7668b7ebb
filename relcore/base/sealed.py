"""Sealed files: safetensors files with a JSON header about the tensors and a checksum of the whole file."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError, quote
from relcore.base.records import from_json, parse, to_json

_MOST_BYTES, _MOST_HEADER = 1 << 30, 1 << 20
_ZEROS = 32 * "0"
_DTYPES = {"F32": "<f4", "U8": "u1"}

T = TypeVar("T")


def file_bytes(tensors: dict[str, np.ndarray], key: str, header: Any) -> bytes:
    """The bytes of a file of float32 and uint8 tensors. `header` is a dataclass, whose field `checksum` is
    filled in.

    Equal tensors and headers give equal bytes.
    """
    from safetensors.numpy import save

    text = json.dumps(to_json(replace(header, checksum=_ZEROS)), ensure_ascii=False, sort_keys=True)
    content = save(tensors, metadata={key: text})
    zeros, checksum = (rf"\"checksum\": \"{digits}".encode() for digits in (_ZEROS, _checksum(content)))
    return content.replace(zeros, checksum, 1)


def checked_tensors(
    path: Path, key: str, kind: type[T], layout: int, what: str
) -> tuple[T, dict[str, np.ndarray]]:
    """The header and the tensors of a file that `file_bytes` wrote. If its checksum is empty, it is not
    checked.

    Raises
    ------
    SpaceError
        The file is not `what`, is damaged, has a later layout, or is larger than a gigabyte.
    """
    from safetensors import SafetensorError, deserialize

    other = f"{what} as safetensors", "another file or a damaged one"
    with regular_file(path).open("rb") as stream:  # read once, so that the checked bytes are those used
        size, length = os.fstat(stream.fileno()).st_size, int.from_bytes(stream.read(8), "little")
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
            raise SpaceError(f"expected layout {layout}, got {got} of a later version of Relscope; update it")
        return from_json(kind, described, key)
    except SpaceError as error:
        raise SpaceError(f"{name}: {error!s:.700}; copy or make it again") from None


def _checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def damaged_file(name: str, expected: str, got: str) -> SpaceError:
    return SpaceError(f"{name}: expected {expected}, got {got}; copy or make it again")
