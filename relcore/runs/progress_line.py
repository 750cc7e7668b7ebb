"""A line on stderr that tells how far a long call of the library is.

It appears once a call has run for two seconds, and only in a terminal or a notebook: not in commands, which
have their own bar, in other threads, such as those of apps and workers, or in pipes. RELSCOPE_QUIET=1
switches it off.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TextIO, TypeVar

from relcore.base.environment import QUIET, flag
from relcore.base.kinds import takes_kinds
from relcore.base.numbers import percent
from relcore.base.text import visible

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

AFTER_SECONDS = 2.0  # a shorter call draws no line
_EVERY = 0.5  # seconds between two drawings
_ERASE = "\r\x1b[2K"  # erases the line in a terminal
_NOTEBOOK_WIDTH = 80


def long_call(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A decorator for public functions that may take many seconds: `takes_kinds`, and a line that tells how
    far the call is. The function gives `show_step` as `report` to what it calls."""
    checked = takes_kinds(function)

    @wraps(function)
    def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        if _Line.drawn is not None or not _is_watched():
            return checked(*arguments, **options)
        with _line(function.__qualname__, sys.stderr):
            return checked(*arguments, **options)

    return call


def show_step(done: float, total: float, message: str = "", *_: Any) -> None:
    """A `Progress` that shows the step in the line of the present call; without a line, it does nothing."""
    line = _Line.drawn
    if line is not None:
        line.share = done / total if total else 0.0
        line.message = message


@contextmanager
def without_line() -> Iterator[None]:
    """A context in which calls draw no line."""
    before = _Line.drawn
    _Line.drawn = _Line("", None)
    try:
        yield
    finally:
        _Line.drawn = before


class _Line:
    """The line of one call. `drawn` is that of the present call, because a call inside it draws none."""

    drawn: _Line | None = None

    def __init__(self, name: str, stream: TextIO | None) -> None:
        self.name = name
        self.stream = stream
        self.began = time.monotonic()
        self.share = 0.0
        self.message = ""

    def text(self) -> str:
        """The seconds so far, and what is known of the step: ``explain: 12 s · 40 % · search``."""
        parts = [f"{self.name}: {time.monotonic() - self.began:,.0f} s"]
        if self.share:
            parts.append(percent(min(self.share, 1.0)))
        return " · ".join(filter(None, [*parts, visible(self.message)]))

    def draw_until(self, ended: threading.Event) -> None:
        """Draw the line again and again until the call has ended. Then erase it; in a notebook, which erases
        nothing, leave the seconds."""
        if ended.wait(AFTER_SECONDS):
            return
        in_notebook = _is_notebook(self.stream)
        width = _NOTEBOOK_WIDTH
        if not in_notebook:
            width = shutil.get_terminal_size().columns - 1
        running = True
        while running:
            text = self.text()[:width]
            if in_notebook:
                print(f"\r{text:<{width}}", end="", file=self.stream, flush=True)
            else:
                print(f"{_ERASE}{text}", end="", file=self.stream, flush=True)
            running = not ended.wait(_EVERY)
        if in_notebook:
            self.share = 0.0
            self.message = ""
            print(f"\r{self.text():<{width}}", file=self.stream, flush=True)
        else:
            print(_ERASE, end="", file=self.stream, flush=True)


@contextmanager
def _line(name: str, stream: TextIO) -> Iterator[None]:
    line = _Line(name, stream)
    ended = threading.Event()
    thread = threading.Thread(target=line.draw_until, args=(ended,), name="progress-line", daemon=True)
    _Line.drawn = line
    thread.start()
    try:
        yield
    finally:
        _Line.drawn = None
        ended.set()
        thread.join()


def _is_watched() -> bool:
    """Whether somebody can see a line of this thread, and did not switch it off."""
    if flag(QUIET) or threading.current_thread() is not threading.main_thread() or sys.stderr is None:
        return False
    return sys.stderr.isatty() or _is_notebook(sys.stderr)


def _is_notebook(stream: TextIO | None) -> bool:
    return type(stream).__module__.startswith("ipykernel.")
