"""Pins: entries that a running command, job or page uses are not evicted, by whichever process shares the store.

Each of them lists its keys in a file of its own, which it keeps locked. The lock ends with the process, even with one that is
killed, and an unlocked list counts for nothing. A lock of the whole folder, held for milliseconds, orders listing and evicting.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from relcore.store.partial import own_name

FOLDER, _LOCK = "pins", "lock"


@dataclass
class _List:
    """The keys that one use of one store's folder has listed, and the locked file that holds them."""

    path: Path
    file: IO[str]
    keys: set[str] = field(default_factory=set)


class Pins:
    """The entries that one command, job or page uses, of any store's folder, until `close`."""

    def __init__(self) -> None:
        self._lists: dict[Path, _List] = {}
        self._guard = threading.Lock()

    def add(self, root: Path, keys: Iterable[str]) -> None:
        """Keep these entries; those that do not exist yet, too. Nothing happens where the folder cannot be written to."""
        with self._guard, suppress(OSError):
            kept = self._lists.get(root)
            missing = set(keys) - (kept.keys if kept else set())
            if not missing:
                return
            with locked(root, fcntl.LOCK_SH):
                if kept is None or not kept.path.exists():  # the folder was deleted, and made again
                    missing |= kept.keys if kept else set()
                    kept = self._lists[root] = _begin(root)
                kept.file.writelines(f"{key}\n" for key in missing)
                kept.file.flush()
            kept.keys |= missing

    def close(self) -> None:
        """Let go of all entries."""
        with self._guard:
            for kept in self._lists.values():
                with suppress(OSError):
                    kept.path.unlink(missing_ok=True)
                with suppress(OSError):
                    kept.file.close()
            self._lists.clear()


_current: ContextVar[Pins | None] = ContextVar("pins", default=None)


@contextmanager
def in_use() -> Iterator[None]:
    """Entries that this thread looks for, reads or writes inside are not evicted before the end."""
    if _current.get() is not None:
        yield
        return
    pins = Pins()
    token = _current.set(pins)
    try:
        yield
    finally:
        _current.reset(token)
        pins.close()


def note(root: Path, key: str) -> None:
    """This thread uses the entry: keep it until the `in_use` around it ends; without one nothing is kept."""
    if (pins := _current.get()) is not None:
        pins.add(root, [key])


def pinned(root: Path) -> set[str]:
    """The keys that living processes use; lists of dead ones are removed. Call it with the folder `locked` exclusively."""
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
def locked(root: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the folder's lock. A folder that cannot be written to, or whose disk knows no locks, is used without."""
    with ExitStack() as held:
        with suppress(OSError):
            fcntl.flock(held.enter_context(open(root / _LOCK, "a")), kind)
        yield


def _begin(root: Path) -> _List:
    (root / FOLDER).mkdir(exist_ok=True)  # not its parents: a store whose disk is gone is not made again to note a use
    path = root / FOLDER / own_name()
    file = open(path, "a", encoding="ascii")  # noqa: SIM115, its lock lasts as long as it is open
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return _List(path, file)
