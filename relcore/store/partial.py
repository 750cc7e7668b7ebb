"""Files that are being written: whose they are, and whether that process was killed."""

from __future__ import annotations

import os
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path

STALE_SECONDS = 24 * 3600
STALE_TEMPORARY_SECONDS = 600


def own_name() -> str:
    """A new name that says which process of which machine it belongs to."""
    return f"{os.getpid()}~{uuid.uuid4().hex}~{socket.gethostname()}"


def orphaned(path: Path, name: str = "") -> bool:
    """Whether nobody writes to this any more: its process is dead, or, where that cannot be known, it is old.

    `name` is what `own_name` gave, where the file is called otherwise.
    """
    seconds = time.time() - path.stat().st_mtime
    if path.name.startswith(".tmp"):  # the library's, which earlier versions left beside ours: one write takes seconds
        return seconds > STALE_TEMPORARY_SECONDS
    pid, _, host = (*(name or path.name).split("~", 2), "", "")[:3]
    return (host == socket.gethostname() and pid.isdecimal() and not _alive(int(pid))) or seconds > STALE_SECONDS


def bytes_in(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    try:
        return sum(file.stat().st_size for file in files)
    except OSError:  # it was finished meanwhile
        return 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    with suppress(OSError):  # a dead process that nobody has waited for, as in a container without init, still has its number
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return True
