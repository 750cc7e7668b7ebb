"""Ctrl-C and SIGTERM of a command: one line, and the exit code that a shell expects, at any moment.

While nothing is open, as during imports, the process ends at once (`leave`). Else the work ends in order, by
a KeyboardInterrupt (`stop`), and a second signal ends it at once.
"""

# Until the process listens, Ctrl-C ends in a traceback, so nothing is imported that is not built in. What the
# module signal adds to that are names of numbers.
import _signal as signal
import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

SIGNALS = signal.SIGINT, signal.SIGTERM
LINE = "Stopped. Finished work is saved; rerun the command to resume."
stopped: list[int] = []  # the signals that came
_done: set[str] = set()


def listen(handler: "Any") -> None:
    """Have the handler called for both signals, but for one that whoever started the process ignores."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def leave(number: int, _: "Any" = None) -> None:
    stopped.append(number)
    end(say())


def stop(number: int, _: "Any" = None) -> None:
    if stopped and number in SIGNALS:
        leave(number)
    stopped.append(number)
    raise KeyboardInterrupt


def say() -> int:
    """Print the line, once for all signals; the exit code."""
    if not stopped or "said" not in _done:
        _done.add("said")
        try:
            try:
                print(f"relscope: {LINE}", file=sys.stderr, flush=True)
            except RuntimeError:  # something else was being printed
                os.write(2, f"\nrelscope: {LINE}\n".encode())
        except OSError:
            pass
    return 128 + next(iter(stopped), signal.SIGINT)


def end(code: int) -> "NoReturn":
    """End the process: the interpreter's own end would print what a signal interrupts."""
    if "ended" not in _done:
        _done.add("ended")
        try:  # noqa: SIM105 – contextlib is not built in
            sys.stdout.flush()
        except (OSError, ValueError):
            pass
        atexit._run_exitfuncs()
    os._exit(code)


def _again(ignored: "Any") -> None:
    """Where Python swallows the KeyboardInterrupt, in a destructor or a callback: raise it again."""
    if not stopped or not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def in_order() -> None:
    """From now on the work ends in order, where this process would `leave`."""
    if leave in map(signal.getsignal, SIGNALS):
        import warnings

        # Formatting the traceback of what was interrupted, Python parses lines of libraries, and may warn.
        warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")
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
