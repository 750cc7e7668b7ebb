"""Write files and folders that get their name only when they are complete; make temporary folders that end
with their process.

An unfinished file lies beside its target under a hidden name, which tells the process that writes it. The
next writer removes the unfinished files of killed processes.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

from relcore.base.errors import SpaceError

STALE_SECONDS = 24 * 3600
_HIDDEN = ".relscope~"
_TEMPORARY = "relscope-"
_REMEDIES = {
    "free some space, or choose a place on another disk": (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    "choose a place that you may write to": (errno.EACCES, errno.EPERM, errno.EROFS),
    "choose a name that no folder has": (errno.EISDIR, errno.ENOTEMPTY),
    "create its folder first": (errno.ENOENT, errno.ENOTDIR),
}
_REMEDY = {number: remedy for remedy, numbers in _REMEDIES.items() for number in numbers}


class NotWritten(SpaceError):
    """A file or a folder could not be written, and no part of it is left. `strerror` is the system's
    message."""

    strerror = ""


@contextmanager
def disk_errors(path: Path | str) -> Iterator[None]:
    """Turn disk errors while this path is written into a `NotWritten` that names the path."""
    try:
        yield
    except BrokenPipeError:  # a reader such as `head` has read enough
        raise
    except OSError as error:
        place = str(error.filename or "")
        others = place and _HIDDEN not in place and place not in (str(path), str(Path(path).parent))
        if others or _HIDDEN in str(path):  # the error concerns another file, or an unfinished folder
            raise
        reason = error.strerror or str(error)
        # Libraries in Rust state the number of an error only in its text.
        number = error.errno or next(map(int, re.findall(r"\(os error (\d+)\)", reason)), 0)
        remedy = _REMEDY.get(number, "check the disk")
        not_written = NotWritten(f"{str(path)[:200]}: expected to write it, got: {reason}; {remedy}")
        not_written.strerror = reason
        raise not_written from error


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a new file for the duration of the block. At the end, it replaces the file at `path`. After an
    error in the block, `path` is unchanged.

    A library that opens files itself can use the `name` of the open file. Raises `NotWritten` if the disk
    refuses the file.
    """
    if path.exists() and not path.is_file():  # a device or a pipe, such as /dev/stdout
        with disk_errors(path), path.open("wb") as stream:
            yield stream
        return
    with _beside(path) as partial:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            with suppress(OSError):  # an existing file keeps its permissions, if the system allows it
                os.fchmod(stream.fileno(), path.stat().st_mode & 0o777)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if os.fstat(stream.fileno()).st_size < stream.tell():
                raise OSError(errno.EIO, "The file is shorter than what was written")
        os.replace(partial, os.path.realpath(path))


def write(path: Path, content: bytes, mode: int = 0o666) -> None:
    with replacing(path, mode) as stream:
        stream.write(content)


@contextmanager
def new_folder(path: Path, last: str = "") -> Iterator[Path]:
    """Make a new folder for the duration of the block. It gets the name `path` at the end, when all its files
    are on disk.

    If the folder already exists, the new files are moved into it, with the file `last` at the end.
    """
    with _beside(path / "any" if path.is_dir() else path) as partial:
        partial.mkdir()
        yield partial
        finish_folder(partial, path, last)


def finish_folder(partial: Path, path: Path, last: str = "") -> None:
    """Move the folder `partial` to `path`, as `new_folder` does at the end of its block."""
    sweep(partial)
    _sync_files(partial)
    if not path.is_dir() or not any(path.iterdir()):
        os.rename(partial, path)
        return
    for item in sorted(partial.iterdir(), key=lambda item: item.name == last):
        os.replace(item, path / item.name)


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside `path` for the duration of the block, which `claim_name` may rename."""
    with _beside(path) as partial:
        partial.mkdir()
        yield partial


def claim_name(partial: Path, path: Path) -> Path:
    """Rename a folder to `path`, or if files are there, to the first free name of ``path-2``, ``path-3``, …

    Two processes never get the same name. Returns the name.
    """
    _sync_files(partial)
    place = path
    for number in count(2):
        try:
            os.rename(partial, place)
            return place
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        place = path.with_name(f"{path.name}-{number}")
    raise AssertionError("no end of numbers")


def _sync_files(folder: Path) -> None:
    for file in filter(Path.is_file, folder.rglob("*")):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def sweep(folder: Path) -> None:
    with suppress(OSError):  # the folder cannot be listed, or another writer removes the file
        for left in folder.iterdir():
            if left.name.startswith(_HIDDEN) and is_orphaned(left, left.name.removeprefix(_HIDDEN)):
                remove(left)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield an unused path in the folder of `path`. A file or folder that is still there at the end of the
    block is removed."""
    folder = Path(os.path.realpath(path)).parent
    with disk_errors(path):
        sweep(folder)
        partial = folder / f"{_HIDDEN}{own_name()}"
        try:
            yield partial
        finally:
            remove(partial)


def remove(path: Path) -> None:
    """Remove a file or a folder. Errors are ignored."""
    shutil.rmtree(path, ignore_errors=True)  # of a folder; this neither removes a file nor follows a link
    with suppress(OSError):
        path.unlink(missing_ok=True)


def discard(path: Path) -> None:
    """Remove a file or a folder. It loses its name first, so that nobody reads a part of it."""
    hidden = path.with_name(f"{_HIDDEN}{own_name()}")
    with suppress(OSError):
        path.rename(hidden)
    remove(hidden)


def own_name() -> str:
    """A new file name that identifies this process, so that `has_ended` can tell whether it still runs."""
    return "~".join((socket.gethostname(), str(os.getpid()), _began(os.getpid()), uuid.uuid4().hex))


def is_orphaned(path: Path, name: str = "") -> bool:
    """Whether the process that made this name with `own_name` has ended. If that is unknown, whether the file
    is old."""
    known = has_ended(name or path.name)
    if known is None:
        return time.time() - path.stat().st_mtime > STALE_SECONDS
    return known


def has_ended(name: str) -> bool | None:
    """Whether the process that made this name with `own_name` has ended; None if it ran on another
    machine."""
    host, pid, began, *_ = *name.split("~"), "", ""
    if host != socket.gethostname() or not pid.isdecimal():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    now = _began(int(pid))
    return now == "ended" or (now != began and bool(now and began))


def _began(pid: int) -> str:
    """The start time of a process in kernel ticks, by which it differs from a later process with the same
    number. "ended" for a zombie process, which can remain in a container; "" if the time is unknown."""
    with suppress(OSError):
        state, *facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "ended" if state in "ZX" else facts[18]
    return ""


def temporary() -> tempfile.TemporaryDirectory:
    """A temporary folder, removed when this process closes it or ends. If the process is killed,
    `sweep_temporary` removes it."""
    return tempfile.TemporaryDirectory(prefix=f"{_TEMPORARY}{own_name()}~", ignore_cleanup_errors=True)


def sweep_temporary() -> None:
    """Remove the temporary folders that ended processes of this account left."""
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*~*~*~*"):
            with suppress(OSError):
                own = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
                if own and has_ended(folder.name.removeprefix(_TEMPORARY)):
                    remove(folder)
