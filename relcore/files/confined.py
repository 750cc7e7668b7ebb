"""The confined reader: files that others made are parsed in a process of their own, see
`relcore.files.confined_process`. A crash of a library, or a file that takes too much, is one clear error.

The app and the commands set RELSCOPE_CONFINED=1. Whoever calls the library on files of his own reads them in
place, through the same functions.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from relcore.base.access import shared
from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.files.confined_process import (
    clear_error,
    landlock_version,
    receive,
    refuses_calls,
    resolve,
    send,
    unreadable,
)

SWITCH = "RELSCOPE_CONFINED"
_LONGEST = 1 << 34
_SECONDS = 900  # without a word, for what waits instead of working
_lock = threading.Lock()
_ready: tuple[int, socket.socket, subprocess.Popen] | None = None


def wanted(*paths: Path) -> bool:
    """Whether files are parsed in a process of their own. NumPy maps a plain .npy of the person who started
    this safely, so it needs none.
    """
    if os.environ.get(SWITCH) != "1" or not hasattr(os, "fork"):
        return False
    return shared() or not paths or {path.suffix.lower() for path in paths} != {".npy"}


def start() -> None:
    """Have a process ready for the first file."""
    if wanted():
        with _lock:
            _control()


def offers() -> str:
    """How files are confined on this machine, for people."""
    if not hasattr(os, "fork"):
        return "files are parsed without confinement: this system has no fork"
    version, calls = landlock_version(), refuses_calls()
    has = ["limits on memory and time"]
    has += [f"Landlock {version}"] * bool(version) + ["seccomp"] * calls
    lacks = ["Landlock"] * (not version) + ["seccomp"] * (not calls)
    without = f"; without {' and '.join(lacks)}, which this system does not offer" * bool(lacks)
    return f"files are parsed in a process with {', '.join(has)}{without}"


def run(name: str, path: Path, returns: Any = Any, libraries: Sequence[str] = (), **arguments: Any) -> Any:
    """What the function "module:function" of a file returns, called in the confined process if that is
    wanted.

    Raises
    ------
    SpaceError
        The function's own; or that its process ended, of a crash or at a limit.
    """
    if not wanted(path):
        with _clear_errors(path):
            return resolve(name)(path, **arguments)
    with Process(path, libraries) as process:
        return process.call(name, returns, **arguments)


def stream(
    name: str, path: Path, libraries: Sequence[str] = (), others: Sequence[Path] = (), **arguments: Any
) -> Generator[Any, None, Any]:
    """What a generator function yields and returns, likewise; it may read the other files, too."""
    if not wanted(path, *others):
        with _clear_errors(path):
            return (yield from resolve(name)(path, **arguments))
    with Process(path, libraries, others) as process:
        return (yield from process.stream(name, **arguments))


class Opened:
    """An object that the function "module:function" makes of a file, for several calls of its methods.

    Attributes
    ----------
    facts : dict
        What its method `confined_facts` tells.
    """

    def __init__(self, name: str, path: Path, libraries: Sequence[str] = ()) -> None:
        self._path, self._process, self._lock = path, None, threading.Lock()
        if wanted():
            self._process = Process(path, libraries)
            self.facts = self._process.call(name)
        else:
            with _clear_errors(path):
                self._object = resolve(name)(path)
                self.facts = self._object.confined_facts()

    def call(self, method: str, returns: Any = Any, **arguments: Any) -> Any:
        """What a method of the object returns."""
        with self._lock:
            if self._process is not None:
                return self._process.call(method, returns, **arguments)
            with _clear_errors(self._path):
                return getattr(self._object, method)(**arguments)

    def close(self) -> None:
        """End the process, where there is one."""
        if self._process is not None:
            self._process.close()


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        raise clear_error(path, error) from error


class Process:
    """A process that parses one file, until it is closed."""

    def __init__(self, path: Path, libraries: Sequence[str] = (), others: Sequence[Path] = ()) -> None:
        self._path = path.absolute()
        ours, theirs = socket.socketpair()
        self._connection = ours
        ours.settimeout(_SECONDS)
        paths = [str(one.absolute()) for one in (path, *others)]
        request = msgspec.msgpack.encode([paths, list(libraries)])
        with _lock, theirs:
            try:
                socket.send_fds(_control(), [request], [theirs.fileno()])
            except OSError:  # it was ended from outside: try again with another
                _forget()
                socket.send_fds(_control(), [request], [theirs.fileno()])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._connection.close()

    def call(self, name: str, returns: Any = Any, **arguments: Any) -> Any:
        """What the function returns, checked against this type."""
        blocks = self.stream(name, **arguments)
        try:
            next(blocks)
        except StopIteration as end:
            return msgspec.convert(end.value, returns) if returns is not Any else end.value
        raise unreadable(self._path, "several answers")

    def stream(self, name: str, **arguments: Any) -> Generator[Any, None, Any]:
        try:
            send(self._connection, [name, str(self._path), arguments])
            while True:
                kind, value = receive(self._connection, _LONGEST)
                if kind == "value":
                    return value
                if kind == "refused":
                    raise SpaceError(visible(value, 1000))
                yield value
        except (OSError, EOFError, ValueError, TypeError) as error:
            if isinstance(error, SpaceError):
                raise
            got = "one on which its reader ends: it crashes, or needs too much memory or time"
            raise unreadable(self._path, got) from None


def _control() -> socket.socket:
    """The connection to the process that is ready; a new one where this process has none."""
    global _ready
    if _ready is None or _ready[0] != os.getpid() or _ready[2].poll() is not None:
        ours, theirs = socket.socketpair()
        with theirs:
            script = str(Path(__file__).with_name("confined_process.py"))
            quiet = {
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
                "ARROW_DEFAULT_MEMORY_POOL": "system",
            }
            quiet |= {"HDF5_PLUGIN_PRELOAD": "::"}  # no filters of HDF5 from shared libraries
            process = subprocess.Popen(
                [sys.executable, "-P", script, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | quiet,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        _ready = (os.getpid(), ours, process)
    return _ready[1]


@atexit.register
def _forget() -> None:
    """End the process that is ready."""
    global _ready
    if _ready is not None and _ready[0] == os.getpid():
        _ready[1].close()
        _ready[2].wait()
    _ready = None
