"""Ctrl-C and SIGTERM of a command: one line, and the exit code that a shell expects, at any moment.

While nothing is open, as during imports, the process ends at once (`leave`). Else the work ends in order, by
a KeyboardInterrupt (`stop`), and a second signal ends it at once.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import warnings
from contextlib import suppress

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any, NoReturn

SIGNALS = signal.SIGINT, signal.SIGTERM
LINE = "Stopped. Finished work is saved; rerun the command to resume."
stopped: list[int] = []  # the signals that came
_done: set[str] = set()
# Formatting the traceback of what was interrupted, Python parses lines of libraries, and can warn of them.
warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")


def listen(handler: Any) -> None:
    """Have the handler called for both signals, but for one that whoever started the process ignores."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def leave(number: int, _: Any = None) -> None:
    stopped.append(number)
    end(say())


def stop(number: int, _: Any = None) -> None:
    if stopped and number in SIGNALS:
        leave(number)
    stopped.append(number)
    raise KeyboardInterrupt


def say() -> int:
    """Print the line, once for all signals; the exit code."""
    if not stopped or "said" not in _done:
        _done.add("said")
        with suppress(OSError):
            try:
                print(f"relscope: {LINE}", file=sys.stderr, flush=True)
            except RuntimeError:  # something else was being printed
                os.write(2, f"\nrelscope: {LINE}\n".encode())
    return 128 + next(iter(stopped), signal.SIGINT)


def end(code: int) -> NoReturn:
    """End the process: the interpreter's own end would print what a signal interrupts."""
    if "ended" not in _done:
        _done.add("ended")
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        atexit._run_exitfuncs()
    os._exit(code)


def _again(ignored: Any) -> None:
    """Where Python swallows the KeyboardInterrupt, in a destructor or a callback: raise it again."""
    if not stopped or not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def in_order() -> None:
    """From now on the work ends in order, where this process would `leave`."""
    if leave in map(signal.getsignal, SIGNALS):
        listen(stop)
        sys.unraisablehook = _again


def hold() -> None:
    """A signal waits until the program that replaces this one listens."""
    if stop in map(signal.getsignal, SIGNALS):
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def at_once() -> None:
    """The work is done: `leave` again."""
    if stop in map(signal.getsignal, SIGNALS):
        signal.setitimer(signal.ITIMER_REAL, 0)
        listen(leave)
