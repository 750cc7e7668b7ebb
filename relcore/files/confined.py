"""Parse untrusted files in a confined process (see `relcore.files.confined_process`).

The app and the commands set RELSCOPE_CONFINED=1. Without it, the same functions read files in the calling
process.
"""

from __future__ import annotations

import atexit
import inspect
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from relcore.base.access import is_shared
from relcore.base.environment import CONFINED, flag
from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.files.confined_process import (
    clear_error,
    landlock_version,
    name_of,
    receive,
    refuses_calls,
    send,
    unreadable,
)

_LONGEST = 1 << 34
_SECONDS = 900  # maximum seconds without an answer
_lock = threading.RLock()


class _Ready(NamedTuple):
    """The process that forks a confined child for each file."""

    owner: int  # the id of the process that started it
    connection: socket.socket
    process: subprocess.Popen


_ready: _Ready | None = None


def needs_process(*paths: Path) -> bool:
    """Whether files are parsed in a confined process. A single .npy file, which NumPy can map without
    parsing, is parsed in one only if the app is shared."""
    if not flag(CONFINED) or not hasattr(os, "fork"):
        return False
    return is_shared() or len(paths) != 1 or paths[0].suffix.lower() != ".npy"


def start() -> socket.socket | None:
    """Start, if needed, the process that forks a confined child for each file. Return the connection to it;
    None if files are not confined."""
    global _ready
    if not needs_process():
        return None
    with _lock:
        if _ready is None or _ready.owner != os.getpid() or _ready.process.poll() is not None:
            ours, theirs = socket.socketpair()
            with theirs:
                script = str(Path(__file__).with_name("confined_process.py"))
                quiet = {
                    "OPENBLAS_NUM_THREADS": "1",
                    "OMP_NUM_THREADS": "1",
                    "TOKIO_WORKER_THREADS": "2",  # number of threads of LanceDB, whose stacks count as memory
                    "LANCE_CPU_THREADS": "2",
                    "ARROW_DEFAULT_MEMORY_POOL": "system",
                    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),  # so that glibc reuses freed blocks
                    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
                }
                process = subprocess.Popen(
                    [sys.executable, "-P", script, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    env=os.environ | quiet,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            _ready = _Ready(os.getpid(), ours, process)
        return _ready.connection


@atexit.register
def _forget() -> None:
    global _ready
    if _ready is not None and _ready.owner == os.getpid():
        _ready.connection.close()
        _ready.process.wait()
    _ready = None


def offers() -> str:
    """A sentence on how the parsing of files is confined on this machine."""
    if not hasattr(os, "fork"):
        return "files are parsed without confinement: this system has no fork"
    offered = {"Landlock": landlock_version(), "seccomp": refuses_calls()}
    has = []
    for name, version in offered.items():
        if version > 1:
            has.append(f"{name} {version}")
        elif version:
            has.append(name)
    lacks = " and ".join(name for name, there in offered.items() if not there)
    without = ""
    if lacks:
        without = f"; without {lacks}, which this system does not offer"
    limits = "a limit on time"
    if sys.platform.startswith("linux"):
        limits = "limits on memory and time"
    return f"files are parsed in a process with {', '.join([limits, *has])}{without}"


def run(
    function: Callable[..., Any],
    path: Path,
    returns: Any = Any,
    libraries: Sequence[str] = (),
    **arguments: Any,
) -> Any:
    """The result of ``function(path, **arguments)``. If `needs_process(path)`, the call is made in the
    confined process.

    The function belongs to a module, or is a method of an object whose class takes no arguments. The result
    is checked against the type `returns`. The `libraries` are imported before the process is confined. Raises
    the function's SpaceError, and a SpaceError if the process crashes or reaches a limit.
    """
    return _yield_all(stream(function, path, libraries, **arguments), returns)


def _yield_all(values: Generator[Any, None, Any], returns: Any) -> Any:
    try:
        next(values)
    except StopIteration as end:
        if returns is Any:
            return end.value
        return msgspec.convert(end.value, returns, from_attributes=True)
    raise RuntimeError("expected one value, got a stream")


def stream(
    function: Callable[..., Any],
    path: Path,
    libraries: Sequence[str] = (),
    others: Sequence[Path] = (),
    **arguments: Any,
) -> Generator[Any, None, Any]:
    """Call a generator function as in `run`, yield its items and return its result. The function may also
    read the files `others`."""
    if needs_process(path, *others):
        with closing(Process(path, libraries, others)) as process:
            return (yield from process.stream(name_of(function), **arguments))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = function(path, **arguments)
            if inspect.isgenerator(value):
                return (yield from value)
            return value
    except Exception as error:
        raise clear_error(path, error) from error


class Opened:
    """An object that is made from a file or folder in the confined process, and stays there. Its methods can
    be called repeatedly, even by several threads. `facts` is the result of its method `confined_facts()`."""

    def __init__(
        self,
        make: Callable[..., Any],
        path: Path,
        libraries: Sequence[str] = (),
        others: Sequence[Path] = (),
        **arguments: Any,
    ) -> None:
        self._path = path
        self._process = None
        self._lock = threading.Lock()
        if needs_process(path, *others):
            self._process = Process(path, libraries, others)
            self.facts = _yield_all(self._process.stream(name_of(make), **arguments), Any)
        else:
            self._object = run(make, path, **arguments)
            self.facts = self.call("confined_facts")

    def call(self, method: str, returns: Any = Any, **arguments: Any) -> Any:
        with self._lock:
            if self._process is not None:
                return _yield_all(self._process.stream(method, **arguments), returns)
            return run(lambda _: getattr(self._object, method)(**arguments), self._path, returns)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()


class Process:
    def __init__(self, path: Path, libraries: Sequence[str] = (), others: Sequence[Path] = ()) -> None:
        self._path = path.absolute()
        self._connection, theirs = socket.socketpair()
        self._connection.settimeout(_SECONDS)
        self._answers = self._connection.makefile("rb")
        request = msgspec.msgpack.encode(
            [[str(item.absolute()) for item in (path, *others)], list(libraries)]
        )
        with _lock, theirs:
            try:
                socket.send_fds(start(), [request], [theirs.fileno()])
            except OSError:  # another program has ended the process
                _forget()
                socket.send_fds(start(), [request], [theirs.fileno()])

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        self._answers.close()
        self._connection.close()

    def stream(self, name: str, **arguments: Any) -> Generator[Any, None, Any]:
        try:
            send(self._connection, [name, str(self._path), arguments])
            while True:
                kind, value = receive(self._answers, _LONGEST)
                if kind == "value":
                    return value
                if kind == "refused":
                    raise SpaceError(visible(value, 1000))
                yield value
        except SpaceError:
            raise
        except (OSError, EOFError, ValueError, TypeError):
            got = "a file whose reader crashes, or needs too much memory or time"
            raise unreadable(self._path, got) from None
