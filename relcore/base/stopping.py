"""Handle Ctrl-C and SIGTERM in commands: a stopped command prints one line and exits with the code that a
shell expects.

While no file is open, for example during imports, a signal ends the process at once (`_stop_on_signal`).
Later, the first signal raises a KeyboardInterrupt (`stop`), so that the work can close its files; a second
signal ends the process at once.
"""

# Until `listen` has run, Ctrl-C prints a traceback. So this module must load fast: it imports `_signal`, the
# built-in part of `signal`.
import _signal as signal
import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

SIGNALS = signal.SIGINT, signal.SIGTERM
LINE = "Stopped. Finished work is saved; rerun the command to resume."
stopped: list[int] = []  # the numbers of the signals that arrived
_done: set[str] = set()


def listen(handler: "Any") -> None:
    """Call the handler for both signals. A signal that the parent process set to be ignored stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _stop_on_signal(number: int, _: "Any" = None) -> None:
    stopped.append(number)
    end(print_stopped())


def stop(number: int, frame: "Any" = None) -> None:
    """Raise a KeyboardInterrupt. During an import, it is raised as soon as the import is done, because many
    compiled modules do not withstand an interruption while they are initialised: the process would crash."""
    if stopped and number in SIGNALS:
        _stop_on_signal(number)
    if number in SIGNALS:
        stopped.append(number)
    if _imports(frame):
        _stop_later()
        return
    raise KeyboardInterrupt


def _imports(frame: "Any") -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _stop_later() -> None:
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01)


def print_stopped() -> int:
    """Print `LINE`, and return the exit code. The line is printed only once, even after several signals."""
    if not stopped or "said" not in _done:
        _done.add("said")
        try:
            try:
                print(f"relscope: {LINE}", file=sys.stderr, flush=True)
            except RuntimeError:  # the signal came while the program was printing
                os.write(2, f"\nrelscope: {LINE}\n".encode())
        except OSError:
            pass
    return 128 + next(iter(stopped), signal.SIGINT)


def end(code: int) -> "NoReturn":
    """End the process at once. The interpreter's own shutdown would print tracebacks of the interruption."""
    if "ended" not in _done:
        _done.add("ended")
        try:  # noqa: SIM105 – contextlib is not built in
            sys.stdout.flush()
        except (OSError, ValueError):
            pass
        atexit._run_exitfuncs()
    os._exit(code)


def _again(ignored: "Any") -> None:
    """Raise a KeyboardInterrupt again if Python ignored it because it was raised in a destructor."""
    if not stopped or not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    _stop_later()


def stop_gracefully() -> None:
    """From now on, a signal raises a KeyboardInterrupt, so that the work can close its files before the
    process ends."""
    if _stop_on_signal in map(signal.getsignal, SIGNALS):
        import warnings

        # To format the traceback of the interruption, Python parses source lines of libraries, which may
        # cause warnings.
        warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")
        listen(stop)
        sys.unraisablehook = _again


def block_signals() -> None:
    """Hold signals back until the program that replaces this one can handle them."""
    if stop in map(signal.getsignal, SIGNALS):
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def stop_at_once() -> None:
    """From now on, a signal ends the process at once, because the work is done."""
    if stop in map(signal.getsignal, SIGNALS):
        signal.setitimer(signal.ITIMER_REAL, 0)
        listen(_stop_on_signal)
