"""`Store`, a folder of saved results with a size limit."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from relcore.base import environment
from relcore.base.access import expand_home
from relcore.base.errors import SpaceError
from relcore.base.writing import NotWritten, is_orphaned, own_name, write
from relcore.runs import entries
from relcore.runs.entries import (
    ENVIRONMENT,
    BundledResults,
    Damaged,
    Entry,
    FinishedGroup,
    StoreError,
    Summary,
)

HEADROOM = 32 * 1024**2  # bytes of the disk that stay free for other programs
FOLDER = "pins"
_LOCK = "lock"
_KEY = re.compile(r"[0-9a-f]{16,128}")
_ANOTHER = f"set {ENVIRONMENT} to a folder on another disk"
_ELSEWHERE = f"free some space, or {_ANOTHER}"
_log = logging.getLogger("relscope")


# Eviction removes old entries when the store is full, but no entry in use. Each process lists the keys that
# it uses in a file, and keeps the file locked. The lock ends with the process, and a list without a lock is
# ignored. A lock on the folder ensures that no key is listed during eviction.


@dataclass(eq=False)
class Pins:
    """Protects store entries that a command, a job or a page uses from eviction, until `close`. The entries
    may be in several stores."""

    _lists: dict[Path, tuple[IO[str], set[str]]] = field(default_factory=dict)
    _guard: Any = field(default_factory=threading.Lock)

    def add(self, root: Path, keys: Iterable[str]) -> None:
        """Protect the entries with these keys from eviction, even if they do not exist yet. This has no
        effect if the folder is not writable."""
        with self._guard, suppress(OSError):
            file, kept = self._lists.get(root, (None, set()))
            missing = set(keys) - kept
            if not missing:
                return
            with folder_lock(root, fcntl.LOCK_SH):
                if file is None or not os.path.exists(file.name):  # the folder was deleted
                    missing |= kept
                    # Do not make the folders above: if they are missing, the disk is not mounted.
                    (root / FOLDER).mkdir(exist_ok=True)
                    file = open(root / FOLDER / own_name(), "a", encoding="ascii")  # noqa: SIM115, keeps a lock
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.writelines(f"{key}\n" for key in missing)
                file.flush()
            self._lists[root] = file, kept | missing

    def close(self) -> None:
        with self._guard:
            for file, _ in self._lists.values():
                with suppress(OSError), file:
                    os.unlink(file.name)
            self._lists.clear()


_current: ContextVar[Pins | None] = ContextVar("pins", default=None)


@contextmanager
def in_use() -> Iterator[None]:
    """A context in which entries that this thread uses are not evicted."""
    if _current.get() is not None:
        yield
        return
    with closing(Pins()) as pins:
        token = _current.set(pins)
        try:
            yield
        finally:
            _current.reset(token)


def keys_in_use(root: Path) -> set[str]:
    """The keys of the entries that running processes use. Each process lists them in a file; files of ended
    processes are removed. The caller must hold the `folder_lock`."""
    keys: set[str] = set()
    for path in (root / FOLDER).glob("*"):
        with suppress(OSError), open(path, "r+", encoding="ascii", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                keys.update(file.read().split())
            else:
                path.unlink(missing_ok=True)
    return keys


@contextmanager
def folder_lock(root: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """A context that holds the folder's lock, unless the folder is not writable or its disk has no locks."""
    with ExitStack() as held:
        with suppress(OSError):
            fcntl.flock(held.enter_context(open(root / _LOCK, "a")), kind)
        yield


@contextmanager
def _failures(of: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{of}, {error.strerror or error}; {remedy}") from error


class Store:
    """A folder of entries: arrays with metadata under hexadecimal keys. Each key has one safetensors file,
    and nothing is pickled.

    Writes are atomic. The key must depend on everything that determines the content (see `digest_of`), so
    that two writers of one key write the same content.

    Parameters
    ----------
    root : folder, optional
        The default is ``RELSCOPE_STORE``. If that is not set, ``relscope`` in the user's cache folder.
    limit_bytes : int, optional
        The largest size of the store; by default ``RELSCOPE_STORE_GB`` gigabytes, or 10 GB if that is not
        set. Above this size, the least recently used entries are removed, but never the newest one.
    finished : BundledResults or bool, optional
        Bundled results, which are used if the folder lacks a key. True means those of this installation. The
        default is True for the default folder and False for other folders.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        limit_bytes: int | None = None,
        finished: BundledResults | bool | None = None,
    ) -> None:
        self.finished: BundledResults | None = None
        if isinstance(finished, BundledResults):
            self.finished = finished
        elif finished or (finished is None and root is None):
            self.finished = entries.bundled_results()
        try:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relscope"
            self.root: Path = expand_home(root or os.environ.get(ENVIRONMENT) or cache).absolute()
        except SpaceError as error:
            raise StoreError(f"{ENVIRONMENT}: {error}") from None
        self.limit_bytes: int = environment.store_bytes() if limit_bytes is None else limit_bytes
        self._entries = self.root / "entries"
        self._partial = self.root / "partial"
        self._above_limit = False
        with _failures(f"{self.root}: expected a folder to write to", _ELSEWHERE):
            try:
                self._make_folders()
            except OSError:
                if not os.path.isdir(self._entries):  # a read-only store still returns its entries
                    raise
        self._sweep()

    def has(self, key: str, own: bool = False) -> bool:
        """Whether there is an entry under the key. With `own`, bundled results do not count."""
        return os.path.isfile(self._path(key)) or (
            not own and self.finished is not None and self.finished.bundled_group(key) is not None
        )

    def bundled_group(self, key: str) -> FinishedGroup | None:
        """The group of bundled results that contains the entry under this key; None if the entry is in the
        folder, or does not exist."""
        if self.finished is None or self.has(key, own=True):
            return None
        return self.finished.bundled_group(key)

    def get(self, key: str) -> Entry | None:
        """The entry under the key; None if there is none. A damaged file is logged and removed, and counts as
        missing."""
        path = self._path(key)
        try:
            with _failures(f"{path}: cannot be read", f"check the disk, or {_ANOTHER}"):
                try:
                    entry = entries.read(path)
                except FileNotFoundError:
                    if self.finished:
                        return self.finished.get(key)
                    return None
        except Damaged as error:
            _log.warning("%s: this entry of the store is damaged and counts as missing: %s", path, error)
            with suppress(OSError):
                path.unlink(missing_ok=True)
            if self.finished:
                return self.finished.get(key)
            return None
        with suppress(OSError):  # eviction needs the time of last use, which a read-only store cannot set
            os.utime(path)
        return entry

    def mapped(self, key: str) -> Entry | None:
        """The entry under the key, without loading it: its arrays are memory maps, and the checksum is not
        checked. None if the folder has no such entry."""
        path = self._path(key)
        with suppress(OSError):
            os.utime(path)
        with suppress(Damaged, OSError, ValueError):
            return entries.map_entry(path)
        return None

    def summary(self, key: str) -> Summary | None:
        """The summary of the entry; None if there is none. This does not count as a use of the entry."""
        own = entries.summary(key, self._path(key, use=False))
        if own or not self.finished:
            return own
        return self.finished.summary(key)

    def summaries(self) -> list[Summary]:
        """The summaries of all entries that can be read, with the most recently used first."""
        return [summary for key in self.entries() if (summary := self.summary(key))]

    def put(
        self,
        key: str,
        arrays: Mapping[str, np.ndarray],
        metadata: Mapping[str, Any] | None = None,
        matrix: tuple[Iterable[np.ndarray], tuple[int, int]] | None = None,
    ) -> None:
        """Save the arrays and the metadata under the key. An earlier entry is replaced.

        `matrix` is that of `entries.write_into`; only one of its blocks is in memory at a time. Raises a
        ValueError if the blocks have another shape, and a StoreError for arrays of objects, invalid JSON, a
        full disk or missing permission. After an error, the earlier entry stays.
        """
        arrays = {name: _writable_form(name, array) for name, array in arrays.items()}
        try:
            text = json.dumps(dict(metadata or {}), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise StoreError(f"metadata: expected JSON values, got {error}") from error
        n_bytes = sum(array.nbytes for array in arrays.values()) + len(text)
        if matrix:
            n_bytes += 4 * matrix[1][0] * matrix[1][1]
        with _failures(f"{self.root}: the entry could not be written", _ELSEWHERE):
            self._require_room(n_bytes)
            path = self._path(key)
            with self.scratch() as folder:
                entries.write(folder / path.name, arrays, text, matrix)
                path.parent.mkdir(exist_ok=True)
                os.replace(folder / path.name, path)
        self._evict(keep=path)

    def identity(self) -> str:
        """A random name, stored in the folder, by which a worker recognises it; "" if it cannot be stored."""
        path = self.root / "id"
        with suppress(OSError, NotWritten), folder_lock(self.root):
            if not path.exists() or not path.stat().st_size:
                write(path, uuid.uuid4().hex.encode())
            return path.read_text(encoding="ascii")
        return ""

    def require_writable(self) -> None:
        """Raise a StoreError if the disk is full or missing, or if permission is denied. Call this before
        long work."""
        with _failures(f"{self.root}: expected a folder to write to", _ELSEWHERE):
            self._require_room(0)
            with self.scratch():
                return

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for this writer's unfinished files. If the process is killed, a later process removes the
        folder."""
        folder = self._partial / own_name()
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def size(self) -> int:
        """The number of bytes of all entries and unfinished files."""
        files = self._files(self._entries, ".safetensors") + self._files(self._partial)
        return sum(size for _, size, _ in files)

    def entries(self) -> list[str]:
        """All keys, with the most recently used first."""
        return [path.stem for *_, path in reversed(self._files(self._entries, ".safetensors"))]

    def remove(self, key: str) -> None:
        """Remove the entry if it exists. Raises a StoreError if that fails."""
        path = self._path(key, use=False)
        if os.path.lexists(path):  # on a read-only disk, removing a missing file would also be an error
            with _failures(f"{path}: cannot be removed", "check the folder's permissions"):
                path.unlink(missing_ok=True)

    def _path(self, key: str, use: bool = True) -> Path:
        """The path of the key's file. With `use`, the entry is not evicted before the surrounding `in_use`
        ends."""
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(
                f"expected a key of 16 to 128 lower-case hexadecimal digits (see digest_of), got {key!r}"
            )
        if use and (pins := _current.get()) is not None:
            pins.add(self.root, [key])
        return self._entries / key[:2] / f"{key}.safetensors"

    def _files(self, folder: Path, suffix: str = "") -> list[tuple[float, int, Path]]:
        files = []
        for place, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    status = os.stat(os.path.join(place, name))
                    if name.endswith(suffix):
                        files.append((status.st_mtime, status.st_size, Path(place, name)))
        return sorted(files)

    def _evict(self, keep: Path) -> None:
        """Remove the least recently used entries until the store is within its size limit. `keep` and entries
        in use are not removed."""
        if self.size() <= self.limit_bytes:
            return
        with folder_lock(self.root):  # meanwhile, no process may list a key or evict an entry
            used = keys_in_use(self.root) | {keep.stem}
            excess = self.size() - self.limit_bytes
            for _, size, path in self._files(self._entries, ".safetensors"):
                if excess > 0 and path.stem not in used:
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
                        excess -= size
        if excess > 0 and len(used) > 1 and not self._above_limit:
            self._above_limit = True
            needed = (self.limit_bytes + excess) / 1e9
            _log.warning(
                "%s: running work uses %.3f GB, more than the limit of %.3f GB, ignored until it ends;"
                " set %s to %.3f",
                *(self.root, needed, self.limit_bytes / 1e9, environment.STORE_GB, needed),
            )

    def _make_folders(self) -> None:
        self._entries.mkdir(parents=True, exist_ok=True)
        self._partial.mkdir(exist_ok=True)

    def _require_room(self, n_bytes: int) -> None:
        self._make_folders()  # another program may have deleted the store
        needed = n_bytes + HEADROOM
        if shutil.disk_usage(self.root).free >= needed:
            return
        self._sweep()
        if (free := shutil.disk_usage(self.root).free) < needed:
            raise StoreError(
                f"{self.root}: expected {needed / 1e6:.0f} MB free for the entry, got {free / 1e6:.0f} MB;"
                f" {_ELSEWHERE}"
            )

    def _sweep(self) -> None:
        with suppress(OSError):
            for path in list(self._partial.iterdir()):
                with suppress(OSError):
                    if not is_orphaned(path):
                        continue
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink(missing_ok=True)
        with folder_lock(self.root):
            keys_in_use(self.root)  # removes the lists of dead processes


def _writable_form(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array, order="C")
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise StoreError(
            f"array {name!r}: expected numbers of at most 64 bits, got {array.dtype}; put text into the"
            " metadata"
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)
