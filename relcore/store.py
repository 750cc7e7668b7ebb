"""Store: content-addressed files for encodings and results, safe to share between threads, processes and machines."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

ENVIRONMENT = "RELSCOPE_STORE"
LIMIT_ENVIRONMENT = "RELSCOPE_STORE_GB"
HEADROOM = 32 * 1024**2  # a disk filled to its last byte breaks everything else on it
STALE_SECONDS = 24 * 3600
_KEY = re.compile(r"[0-9a-f]{16,128}")


class StoreError(RuntimeError):
    """The store cannot save an entry: the disk is full, permission is missing, or the content cannot be written."""


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


class Store:
    """Arrays with metadata under hexadecimal keys, one safetensors file per key, nothing pickled.

    Writes are atomic: a file is written under another name, flushed to disk, then renamed. The key must depend on everything
    that determines the content (see `digest_of`), so two writers of one key write the same content.

    Parameters
    ----------
    root : folder, optional
        Default: the environment's ``RELSCOPE_STORE``, else ``relscope`` in the user's cache folder.
    limit_bytes : int, optional
        Default: the environment's ``RELSCOPE_STORE_GB`` in gigabytes, else 10. Above it the least recently used entries
        are removed; the newest one always stays, even if it exceeds the limit.
    """

    def __init__(self, root: str | os.PathLike | None = None, limit_bytes: int | None = None) -> None:
        self.root = Path(root or os.environ.get(ENVIRONMENT) or _cache_folder()).expanduser().absolute()
        self.limit_bytes = _limit() if limit_bytes is None else limit_bytes
        self._entries = self.root / "entries"
        self._partial = self.root / "partial"
        try:
            self._entries.mkdir(parents=True, exist_ok=True)
            self._partial.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.root}: expected a folder to write to, got {_reason(error)}; {_ELSEWHERE}") from error
        self._sweep()

    def __repr__(self) -> str:
        return f"Store({str(self.root)!r}, limit_bytes={self.limit_bytes})"

    def has(self, key: str) -> bool:
        return self._path(key).is_file()

    def get(self, key: str) -> Entry | None:
        """The entry of the key, or None; a file that cannot be read counts as missing and is removed."""
        path = self._path(key)
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = json.loads((file.metadata() or {})["relscope"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
        except FileNotFoundError:
            return None
        except (SafetensorError, KeyError, ValueError):
            self.remove(key)
            return None
        except OSError as error:
            raise StoreError(f"{path}: cannot be read, {_reason(error)}") from error
        for array in arrays.values():
            array.flags.writeable = False
        with suppress(OSError):  # the time of last use decides what is evicted; a read-only store has none
            os.utime(path)
        return Entry(arrays, metadata)

    def summary(self, key: str) -> Summary | None:
        """The contents of the file's header, or None if there is none; this does not count as a use of the entry."""
        path = self._path(key)
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = json.loads((file.metadata() or {})["relscope"])
                shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118, not a dict
            return Summary(key, shapes, metadata, path.stat().st_size)
        except (SafetensorError, KeyError, ValueError, OSError):
            return None

    def summaries(self) -> list[Summary]:
        """All entries that can be read, the most recently used first."""
        return [found for key in self.entries() if (found := self.summary(key))]

    def put(self, key: str, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any] | None = None) -> None:
        """Save the arrays and the metadata under the key, replacing an earlier entry.

        Raises
        ------
        StoreError
            Arrays of objects or strings, metadata that JSON cannot say, no room, no permission. What was there stays.
        """
        path = self._path(key)
        arrays = {name: _writable_form(name, array) for name, array in arrays.items()}
        try:
            text = json.dumps(dict(metadata or {}), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise StoreError(f"metadata: expected JSON values, got {error}") from error
        self._require_room(sum(array.nbytes for array in arrays.values()) + len(text))
        partial = self._partial / f"{os.getpid()}~{uuid.uuid4().hex}~{socket.gethostname()}"
        try:
            save_file(arrays, partial, metadata={"relscope": text})
            with open(partial, "rb+") as file:
                os.fsync(file.fileno())
            path.parent.mkdir(exist_ok=True)
            os.replace(partial, path)
        except (OSError, SafetensorError) as error:
            raise StoreError(f"{self.root}: the entry could not be written, {_reason(error)}; {_ELSEWHERE}") from error
        finally:
            partial.unlink(missing_ok=True)
        self._evict(keep=path)

    def size(self) -> int:
        """Bytes of all entries."""
        return sum(size for _, size, _ in self._files())

    def entries(self) -> list[str]:
        """All keys, the most recently used first."""
        return [path.stem for _, _, path in sorted(self._files(), reverse=True)]

    def remove(self, key: str) -> None:
        """Remove the key if it exists."""
        self._path(key).unlink(missing_ok=True)

    def clear(self) -> None:
        for key in self.entries():
            self.remove(key)

    def _path(self, key: str) -> Path:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(f"expected a key of 16 to 128 lower-case hexadecimal digits (see digest_of), got {key!r}")
        return self._entries / key[:2] / f"{key}.safetensors"

    def _files(self) -> list[tuple[float, int, Path]]:
        """Time of last use, bytes and path of each entry; files that vanish meanwhile are ignored."""
        files = []
        for path in self._entries.glob("*/*.safetensors"):
            with suppress(FileNotFoundError):
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        return files

    def _evict(self, keep: Path) -> None:
        files = sorted(self._files())
        excess = sum(size for _, size, _ in files) - self.limit_bytes
        for _, size, path in files:
            if excess <= 0:
                return
            if path != keep:
                path.unlink(missing_ok=True)
                excess -= size

    def _require_room(self, n_bytes: int) -> None:
        if shutil.disk_usage(self.root).free >= n_bytes + HEADROOM:
            return
        self._sweep()
        needed, free = n_bytes + HEADROOM, shutil.disk_usage(self.root).free
        if free < needed:
            raise StoreError(
                f"{self.root}: expected {needed / 1e6:.0f} MB free for the entry, got {free / 1e6:.0f} MB; {_ELSEWHERE}"
            )

    def _sweep(self) -> None:
        """Remove partial files of killed writers."""
        for path in self._partial.iterdir():
            with suppress(OSError, ValueError):
                pid, _, host = path.name.split("~", 2)
                orphaned = host == socket.gethostname() and not _alive(int(pid))
                if orphaned or time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink(missing_ok=True)


def digest_of(*parts: Any) -> str:
    """Hexadecimal digest of frozen dataclasses, strings, numbers, tuples, dicts and arrays: a key for the store.

    Equal content gives an equal digest in every process and version of Python; 1, 1.0, True and "1" differ, and so do two
    dataclasses of different names with equal fields. A list counts as a tuple.
    """
    text = json.dumps([_canonical(part) for part in parts], ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


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
        content = hashlib.blake2b(np.ascontiguousarray(part).reshape(-1).view(np.uint8), digest_size=16).hexdigest()
        return ["array", part.dtype.str, list(part.shape), content]
    if is_dataclass(part) and not isinstance(part, type):
        return [
            "dataclass",
            type(part).__name__,
            *([field.name, _canonical(getattr(part, field.name))] for field in fields(part)),
        ]
    raise TypeError(f"expected dataclasses, strings, numbers, tuples, dicts or arrays of numbers, got {type(part).__name__}")


_ELSEWHERE = f"free some space, or set {ENVIRONMENT} to a folder on another disk"


def _limit() -> int:
    text = os.environ.get(LIMIT_ENVIRONMENT) or "10"
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = 0.0
    if not 0 < gigabytes < 1e6:
        raise StoreError(f"{LIMIT_ENVIRONMENT}: expected a number of gigabytes above 0, got {text!r}; correct it or unset it")
    return int(gigabytes * 1e9)


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relscope"


def _writable_form(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array, order="C")
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise StoreError(f"array {name!r}: expected numbers of at most 64 bits, got {array.dtype}; put text into the metadata")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
