"""Controls of the judge itself: each outcome that it must notice."""

import os
import resource

from relcore.base.errors import SpaceError
from tests.hostile.cases import TABLE, Case, each, link, pipe, rows, space
from tests.hostile.npy import FILE, npy


def cases():
    whole = npy(TABLE)
    right = rows(TABLE)
    clear = "words.npy: expected a number, got 'x'; mend the line"
    for name, read in {
        "refused": _refuse(clear),
        "unclear: no remedy": _refuse("words.npy: expected a number, got 'x'"),
        "unclear: no name": _refuse("expected a number, got 'x'; mend the line"),
        "unclear: a whole file": _refuse(clear.replace("x", "x" * 1000)),
        "wrongly accepted": space(FILE),
        "traceback": lambda folder: [][0],
        "traceback: ends the process": lambda folder: os._exit(3),
        "traceback: stops with a signal": lambda folder: os.kill(os.getpid(), 11),
        "too long": _forever,
        "too large": lambda folder: len(bytearray(3 * 10**9)),
        "too large: in steps": _grow,
        "executed": lambda folder: os.system("true"),
        "executed: leaves a file": lambda folder: (folder / "executed").touch(),
    }.items():
        yield Case(name, read, {FILE: whole})
    yield Case("accepted", space(FILE), {FILE: whole}, right)
    yield Case("wrongly accepted: others", space(FILE), {FILE: whole}, rows(TABLE + 1))
    yield Case("wrongly refused", _refuse(clear), {FILE: whole}, right, accept=True)
    odd = {"a named pipe": pipe, "a link to a device": link("/dev/zero")}
    yield from each(space(FILE), FILE, odd, label="refused: ")


def _refuse(message):
    def read(folder):
        raise SpaceError(message)

    return read


def _forever(folder):
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    while True:
        pass


def _grow(folder):
    parts = []
    while True:
        parts.append(b"x" * (1 << 26))
