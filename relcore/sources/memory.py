"""How much memory a file's vectors may take on this machine; a clear error before that is better than the system's kill."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOST = 8 << 30
_SHARE = 0.6  # of what is free: pages, jobs and the results of both need the rest
_GROUP = Path("/sys/fs/cgroup")


def usable_bytes() -> int:
    """8 GiB, or 60 % of the memory that is free where that is less: of the machine, and of the container that runs this."""
    free = [MOST / _SHARE, *_of_machine(), *_of_container()]
    return int(_SHARE * max(0, min(free)))


def _of_machine() -> list[float]:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return [int(line.split()[1]) * 1024]
    with suppress(OSError, ValueError, AttributeError):
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return []


def _of_container() -> list[float]:
    """Its limit less what it holds; files that it has read do not count, since the system gives their pages back."""
    with suppress(OSError, ValueError):
        limit = int((_GROUP / "memory.max").read_text(encoding="ascii"))  # "max" where there is none
        facts = dict(line.split() for line in (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines())
        return [limit - int(facts["anon"])] if "anon" in facts else [limit]
    return []
