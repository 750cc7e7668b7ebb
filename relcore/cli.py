"""The command ``relscope``, which offers the functions of the app without a screen. It finds its commands,
each in the room of its feature, by `relcore.base.names.COMMANDS`.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from typing import Any, TextIO

from relcore.base import access, environment, stopping
from relcore.base.errors import NoCommonId, RelscopeError, with_install_hint
from relcore.base.plugins import named_in_errors
from relcore.base.text import harmless, visible
from relcore.base.writing import sweep_temporary
from relcore.commands.parser import parser_of


def main(
    arguments: Sequence[str] | None = None, check: Callable[[argparse.Namespace], None] | None = None
) -> int:
    """Run one command and return its exit code. It is 0 on success, 1 after an alarm, 130 after Ctrl-C, and 2
    after an error that the user can fix, which is printed in one line on stderr.

    `check` is called with the options, and may raise a SpaceError. Without `check`, RELSCOPE_SHARE is ignored
    by all commands except app and mcp.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = None
    before = dict(os.environ)
    try:
        with ExitStack() as around, warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _fail(message)
            parser = parser_of(arguments)
            options = parser.parse_args(arguments)
            options.arguments = arguments
            access.check_environment()
            _prepare(options, parser.called, check, around)
            code = _run(options)
    except (Exception, KeyboardInterrupt) as error:
        stopping.stop_at_once()
        # Ask for the signal, too, because some libraries replace a KeyboardInterrupt by another error.
        if stopping.stopped or isinstance(error, KeyboardInterrupt):
            return stopping.print_stopped()
        return _report_error(error, options)
    finally:
        stopping.stop_at_once()
        _restore_environment(before)
    if stopping.stopped:
        return stopping.print_stopped()
    return code


def _prepare(
    options: argparse.Namespace,
    called: argparse.ArgumentParser | None,
    check: Callable[[argparse.Namespace], None] | None,
    around: ExitStack,
) -> None:
    """Check the options, set the environment, and enter the contexts that a command runs in (`around`).
    `called` is the parser of the command."""
    from relcore.commands.outputs import need_unread
    from relcore.files import confined
    from relcore.runs.progress_line import without_line
    from relcore.runs.store import in_use

    stopping.stop_gracefully()
    sweep_temporary()
    _set_environment(options)
    if check:
        check(options)
    if called:
        need_unread(called, options)
    # Start the process that reads files. If a file ends in .npy, wait until another one is read.
    if not options.serves and ".npy" not in "".join(options.arguments):
        confined.start()
    if not options.serves and not check:
        os.environ.pop("RELSCOPE_SHARE", None)
    around.enter_context(in_use())
    around.enter_context(without_line())  # commands draw their own bar
    if sys.stdout.isatty():  # names and ids must not control a terminal; a file gets every character
        around.enter_context(redirect_stdout(_Harmless(sys.stdout)))


def _run(options: argparse.Namespace) -> int:
    """Run the command, print its report, and return the exit code."""
    from relcore.commands.printing import errors_in_junit, finish
    from relcore.files.saving import need_suffix

    code = 0
    for option, suffixes in options.suffixes.items():
        need_suffix(getattr(options, option), [*suffixes])
    with errors_in_junit(options), named_in_errors(options.plugin):
        report = options.run(options)
    if report is not None:
        code = finish(options, report)
    sys.stdout.flush()
    return code


def _set_environment(options: argparse.Namespace) -> None:
    """Put the device and the store of the options into the environment, so that every process uses them."""
    os.environ.setdefault(environment.CONFINED, "1")
    if options.device:
        environment.use_device(options.device)
    if options.store:
        os.environ["RELSCOPE_STORE"] = os.path.abspath(access.expand_home(options.store))


def _restore_environment(before: Mapping[str, str]) -> None:
    for name in ("RELSCOPE_STORE", "RELSCOPE_SHARE", environment.DEVICE):
        os.environ.pop(name, None)
        if name in before:
            os.environ[name] = before[name]


def _report_error(error: Exception, options: argparse.Namespace | None) -> int:
    """Print an error that the user can fix in one line. All other errors are raised."""
    if isinstance(error, ImportError):
        if (missing := with_install_hint(error)) is not error:
            return _fail(missing)
    elif isinstance(error, BrokenPipeError):  # a reader such as `head` stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    elif isinstance(error, OSError):
        place = f"{str(error.filename)[:200]}: {error.strerror}; check the path"
        return _fail(place if error.filename else error)
    elif isinstance(error, RelscopeError):
        more = {
            "pair_by_row": "; or, if row i of both is the same item, add --pair-by-row",
            "links": "; or add --links links.parquet, a file that relscope link writes",
        }
        known = ()
        if isinstance(error, NoCommonId):
            known = more
        return _fail("".join([str(error), *(more[name] for name in known if hasattr(options, name))]))
    raise error


def _fail(message: object) -> int:
    print(f"relscope: {visible(message).strip()}", file=sys.stderr)
    return 2


class _Harmless:
    """A stream that passes every text through `harmless` before it is written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._stream.write(harmless(text))
        return len(text)
