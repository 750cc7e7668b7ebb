"""The process that forks a confined child for each untrusted file. `relcore.files.confined` starts it.

The child may read that file and Python's libraries, with limits on memory and processor time. It may not
write, start programs or connect. It answers in messages.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import os
import platform
import re
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, get_type_hints

if __name__ == "__main__":  # import nothing from this folder or the working folder
    sys.path.insert(0, str(Path(__file__).parents[2]))

import msgspec
import numpy as np

with suppress(ImportError):  # Windows lacks this module
    import resource

from relcore.base.errors import EXTRAS, SpaceError, missing_library
from relcore.base.numbers import counted
from relcore.base.text import visible

LENGTH = struct.Struct("<Q")
# Memory in bytes besides that of libraries: a fixed part, and a multiple of the file's size.
_FREE_BYTES = 1 << 30
_TIMES_FILE = 4
# Processor seconds: a fixed part, and one more for each `_BYTES_PER_SECOND` bytes of the file.
_SECONDS = 60
_BYTES_PER_SECOND = 2 << 20
_FILES = 64
_LIBRARIES = ("/usr", "/lib", "/lib64", "/etc", "/sys", "/dev/null", "/dev/urandom", "/proc/cpuinfo")
_ARRAY = 1  # key that marks an array in a message

# For Landlock: the numbers of three system calls, and the bits of the rights that each version knows.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_READ_FILE = 1 << 2
_READ_FOLDER = 1 << 3
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_FROM = 4
_ALL_TCP = 0b11  # bind and connect
_SCOPES_FROM = 6
_ALL_SCOPES = 0b11  # abstract sockets and signals
_NO_NEW_PRIVILEGES = 38
_SECCOMP = 22
_FILTER = 2
_END_WITH_PARENT = 1
# For seccomp: the processor, and the numbers of the system calls socket, connect, bind, execve, execveat,
# ptrace, process_vm_readv, process_vm_writev, kill, tkill, tgkill, io_uring_setup, pidfd_open and
# pidfd_getfd. On x86-64, fork and vfork follow.
_REFUSED = {
    "x86_64": (0xC000003E, (41, 42, 49, 59, 322, 101, 310, 311, 62, 200, 234, 425, 434, 438, 57, 58)),
    "aarch64": (0xC00000B7, (198, 203, 200, 221, 281, 117, 270, 271, 129, 130, 131, 425, 434, 438)),
}
# The filter: its operations, the places of a call's data, and its answers.
_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_ABOVE = 0x35
_ANSWER = 0x06
_OFFSET_OF_CALL = 0
_OFFSET_OF_MACHINE = 4
_SECOND_NUMBERING = 0x40000000  # x86-64 has each call again from this number on
_ALLOW = 0x7FFF0000
_FAIL_WITH_EPERM = 0x00050001
_is_confined = False
_libc = None
if os.name == "posix":
    _libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """The version of Landlock in the kernel; 0 if there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def refuses_calls() -> bool:
    """Whether seccomp can refuse system calls here."""
    return sys.platform.startswith("linux") and platform.machine() in _REFUSED


def confine(paths: list[Path]) -> None:
    """Give up permanently all rights that parsing these files does not need."""
    global _is_confined
    _is_confined = True
    size = max(sum(file.stat().st_size for file in [path, *path.rglob("*")]) for path in paths)
    seconds = _SECONDS + size // _BYTES_PER_SECOND
    limits = {
        resource.RLIMIT_DATA: _held() + _FREE_BYTES + _TIMES_FILE * size,
        resource.RLIMIT_CPU: int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + seconds,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: _FILES,
        resource.RLIMIT_CORE: 0,
    }
    for limit, most in limits.items():
        hard = resource.getrlimit(limit)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        if limit != resource.RLIMIT_CPU:
            hard = most
        # `allow_seconds` raises the limit of time, so only its soft value is set.
        resource.setrlimit(limit, (most, hard))
    if sys.platform.startswith("linux"):
        _libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _restrict_files(paths)
        _refuse_calls()


def allow_seconds(seconds: int) -> None:
    """Let a confined process take this number of processor seconds from now on. An object that works longer
    than its file takes to read, such as a model, calls this before each piece of work."""
    if _is_confined:
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        most = int(used) + seconds
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _held() -> int:
    with suppress(OSError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    return 1 << 30


def _restrict_files(paths: list[Path]) -> None:
    version = landlock_version()
    if not version:
        return
    rights = _RIGHTS[max(known for known in _RIGHTS if known <= version)]
    fields = [rights]
    if version >= _TCP_FROM:
        fields.append(_ALL_TCP)
    if version >= _SCOPES_FROM:
        fields.append(_ALL_SCOPES)
    attributes = struct.pack(f"<{len(fields)}Q", *fields)
    rules = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    own = str(Path(__file__).parents[1])
    libraries = {*_LIBRARIES, own, sys.prefix, sys.base_prefix, *filter(os.path.isabs, sys.path[1:])}
    for place in (*map(str, paths), *sorted(libraries)):
        with suppress(OSError):
            opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
            right = _READ_FILE
            if os.path.isdir(place):
                right |= _READ_FOLDER
            rule = struct.pack("<Qi", right, opened)
            _libc.syscall(_ADD_RULE, rules, ctypes.c_int(1), rule, ctypes.c_uint32(0))
            os.close(opened)
    _libc.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0))
    os.close(rules)


def _refuse_calls() -> None:
    """Install a filter of seccomp, which refuses the system calls in `_REFUSED` with an error.

    The filter is a program of the kernel's packet filter. Each step is (operation, steps to skip if true,
    steps to skip if false, operand). The last step refuses; the step before it allows.
    """
    if not refuses_calls():
        return
    machine, calls = _REFUSED[platform.machine()]
    n = len(calls)
    steps = [
        (_LOAD, 0, 0, _OFFSET_OF_MACHINE),
        (_IF_EQUAL, 0, n + 3, machine),  # another machine: refuse
        (_LOAD, 0, 0, _OFFSET_OF_CALL),
        (_IF_ABOVE, n + 1, 0, _SECOND_NUMBERING),  # refuse
    ]
    for place, call in enumerate(calls):
        steps.append((_IF_EQUAL, n - place, 0, call))  # refuse
    steps.append((_ANSWER, 0, 0, _ALLOW))
    steps.append((_ANSWER, 0, 0, _FAIL_WITH_EPERM))
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    header = struct.pack("@HP", len(steps), ctypes.addressof(program))
    _libc.prctl(_SECCOMP, _FILTER, header, 0, 0)


def send(connection: socket.socket, value: Any) -> None:
    """Send a value as a message: its length, its plain values and the bytes of its arrays."""
    arrays: list[np.ndarray] = []

    def described(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            arrays.append(np.ascontiguousarray(item))
            return msgspec.msgpack.Ext(_ARRAY, msgspec.msgpack.encode([item.dtype.str, item.shape]))
        if isinstance(item, np.generic):
            return item.item()
        return str(item)

    content = msgspec.msgpack.encode(value, enc_hook=described)
    connection.sendall(LENGTH.pack(len(content)) + content)
    for array in arrays:
        connection.sendall(memoryview(array).cast("B") if array.size else b"")


def receive(stream: BinaryIO, most: int) -> Any:
    """Receive the next message, which has at most `most` bytes. Raises EOFError at the end of the stream."""
    arrays: list[np.ndarray] = []

    def array(code: int, data: memoryview) -> np.ndarray:
        dtype, shape = msgspec.msgpack.decode(data, type=tuple[str, tuple[int, ...]])
        dtype = np.dtype(dtype)
        if dtype.kind not in "fiub" or np.prod(shape, dtype=float) * dtype.itemsize > most:
            raise EOFError("an array that is too large")
        arrays.append(np.empty(shape, dtype))
        return arrays[-1]

    head = stream.read(LENGTH.size)
    if len(head) == LENGTH.size:
        length = LENGTH.unpack(head)[0]
    else:
        length = most + 1
    content = b""
    if length <= most:
        content = stream.read(length)
    if len(content) < length:
        raise EOFError("no whole message")
    value = msgspec.msgpack.decode(content, ext_hook=array)
    for item in arrays:
        if item.size and stream.readinto(memoryview(item).cast("B")) < item.nbytes:
            raise EOFError("the end within an array")
    return value


def clear_error(path: Path, error: Exception) -> SpaceError:
    """Turn a library's error on a file into a SpaceError that names the file and its format."""
    if isinstance(error, SpaceError):
        return error
    library = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and library in EXTRAS:
        return missing_library(library)
    if isinstance(error, MemoryError | RecursionError) or "memory" in type(error).__name__.lower():
        return unreadable(path, "a file that needs more memory than its size allows")
    if isinstance(error, EOFError) or str(error).startswith("EOF"):
        return unreadable(path, f"one that ends too soon ({counted(path.stat().st_size, 'byte')})")
    said = re.sub(" at 0x[0-9a-f]+", "", getattr(error, "strerror", None) or str(error))
    return unreadable(path, visible(said, 200).strip() or type(error).__name__)


def unreadable(path: Path, got: str) -> SpaceError:
    suffix = path.suffix.lower()
    instead = ", or save the vectors as .npy"
    if suffix == ".npy":
        instead = ""
    return SpaceError(
        f"{path.name}: expected a {suffix or 'vector'} file that can be read, got {got}; copy it again, or"
        f" write it again with the program that made it{instead}"
    )


def name_of(function: Any) -> str:
    """The name by which `resolve` finds a function or a method."""
    owner = getattr(function, "__self__", None)
    if owner is None:
        module = function.__module__
    else:
        module = type(owner).__module__
    return f"{module}:{function.__qualname__}"


def resolve(name: str) -> Any:
    """The function that "module:function" names, or the method that "module:Class.method" names."""
    module, _, attributes = name.partition(":")
    owner, _, method = attributes.partition(".")
    owned = getattr(importlib.import_module(module), owner)
    if method:
        return getattr(owned(), method)
    return owned


def _typed(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    # Also read the annotations of the base classes, because a plugin's method may lack them.
    members = [vars(kind).get(function.__name__) for kind in type(getattr(function, "__self__", 0)).__mro__]
    hints: dict[str, Any] = {}
    for member in [*filter(inspect.isfunction, reversed(members)), function]:
        hints |= get_type_hints(member)
    return {name: msgspec.convert(item, hints.get(name, Any)) for name, item in arguments.items()}


def _answer(connection: socket.socket) -> None:
    held = None
    questions = connection.makefile("rb")
    while True:
        try:
            name, path, arguments = receive(questions, 1 << 26)
        except EOFError:
            return
        try:
            if held:
                function = getattr(held, name)
                value = function(**_typed(function, arguments))
            else:
                function = resolve(name)
                value = function(Path(path), **_typed(function, arguments))
            if inspect.isgenerator(value):
                value = _stream(connection, value)
            # An open table stays here, and the parent calls its methods later.
            if hasattr(value, "confined_facts"):
                held, value = value, value.confined_facts()
            send(connection, ["value", value])
        except Exception as error:
            send(connection, ["refused", str(clear_error(Path(path), error))])


def _stream(connection: socket.socket, values: Iterator[Any]) -> Any:
    while True:
        try:
            send(connection, ["block", next(values)])
        except StopIteration as end:
            return end.value


def main(control: socket.socket, idle: Sequence[str]) -> None:
    """Fork a child for each request, until the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for library in idle:  # import libraries while no request has come
        if not select.select([control], [], [], 0.05)[0]:
            with suppress(ImportError):
                importlib.import_module(library)
    while True:
        content, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 1)
        if not content or not descriptors:
            return
        paths, libraries = msgspec.msgpack.decode(content)
        for library in libraries:
            with suppress(ImportError):
                importlib.import_module(library)
        with socket.socket(fileno=descriptors[0]) as connection:
            if os.fork() == 0:
                control.close()
                try:
                    confine(list(map(Path, paths)))
                    _answer(connection)
                finally:
                    os._exit(0)


if __name__ == "__main__":
    # The module by its name is another one than this script, and confined objects import it.
    from relcore.files.confined_process import main as serve
    from relcore.files.formats import ARROW

    serve(socket.socket(fileno=int(sys.argv[1])), ARROW)
