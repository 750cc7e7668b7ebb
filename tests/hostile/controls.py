"""Controls of the judge itself: each outcome that it must notice."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from tests.hostile.cases import Case, link, pipe, rows, space
from tests.hostile.npy import FILE, TABLE, npy


def cases() -> Iterator[Case]:
    whole, right = {FILE: npy(TABLE)}, rows(TABLE)
    yield Case("accepted", space(FILE), whole, right)
    yield Case("refused", _refuse("words.npy, line 3: expected a number, got 'x'; mend the line"), whole)
    yield Case("unclear: no remedy", _refuse("words.npy: expected a number, got 'x'"), whole)
    yield Case("unclear: no name", _refuse("expected a number, got 'x'; mend the line"), whole)
    long = f"words.npy: expected a number, got {'x' * 1000}; mend the line"
    yield Case("unclear: a whole file", _refuse(long), whole)
    clear = _refuse("words.npy: expected a number, got 'x'; mend the line")
    yield Case("wrongly refused", clear, whole, right, accept=True)
    yield Case("wrongly accepted", space(FILE), whole)
    yield Case("wrongly accepted: others", space(FILE), whole, rows(TABLE + 1))
    yield Case("traceback", lambda folder: [][0], whole)
    yield Case("traceback: ends the process", lambda folder: os._exit(3), whole)
    yield Case("traceback: stops with a signal", lambda folder: os.kill(os.getpid(), 11), whole)
    yield Case("too long", _forever, whole)
    yield Case("too large", lambda folder: len(bytearray(3 * 10**9)), whole)
    yield Case("too large: in steps", _grow, whole)
    yield Case("executed", lambda folder: os.system("true"), whole)
    yield Case("executed: leaves a file", lambda folder: (folder / "executed").touch(), whole)
    yield Case("refused: a named pipe", space("words.npy"), {FILE: pipe})
    yield Case("refused: a link to a device", space("words.npy"), {FILE: link("/dev/zero")})


def _refuse(message: str):
    def read(folder: Path) -> None:
        from relcore.base.errors import SpaceError

        raise SpaceError(message)

    return read


def _forever(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    while True:
        pass


def _grow(folder: Path) -> int:
    parts = []
    while True:
        parts.append(b"x" * (1 << 26))
