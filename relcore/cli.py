"""relscope on the command line: what the app does, without a screen. Each command is a module of
`relcore.commands`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from functools import partial
from importlib import import_module
from typing import Any, NoReturn, TextIO

from relcore import __version__
from relcore.base import access, environment, stopping
from relcore.base.errors import NoCommonId, SpaceError, did_you_mean
from relcore.base.report import Report
from relcore.base.text import harmless, visible
from relcore.base.writing import sweep_temporary

COMMANDS = {
    "available": "list the spaces on this machine, and those that have to be downloaded",
    "app": "open the app in the browser, with your spaces loaded",
    "encode": "encode pictures, texts or a graph as spaces",
    "project": "describe the rows of a space by their similarities to anchors",
    "compare": "score how similar two spaces are, absolute and relative to anchors, with chance levels",
    "audit": "find anchor pairs that are wrong, and score the spaces without them",
    "drift": "compare two versions of a space, and fail if the drift matters",
    "adapt": "map rows with an adapter from one store of vectors to another, or show its card",
    "stitch": "test every encoder with the head of every other encoder",
    "invert": "translate one space into another through anchors, and measure the error",
    "link": "find rows of two spaces that are the same thing, from a few known pairs or from none",
    "universe": "bring several spaces into one by one map each, add a space to it, or map rows",
    "passport": "publish anchors with their vectors, check what became of them, or bridge two models by them",
    "study": "run or resume a study; without a name, list all studies",
    "migrate": "decide about a new embedding model: keep, bridge, query both models or re-embed",
    "figure": "draw a figure again from its recipe",
    "mcp": "serve commands as tools to an agent, by the Model Context Protocol",
    "config": "show the defaults that relscope.toml sets",
    "completion": "print the script that completes commands and options in a shell",
}
FORMER = {"bootstrap": "link"}  # names of earlier versions


def main(
    arguments: Sequence[str] | None = None, check: Callable[[argparse.Namespace], None] | None = None
) -> int:
    """Run one command: 0 on success, 1 after an alarm of `drift`, 2 after an error that the user can fix,
    told in one line on stderr, 130 after Ctrl-C. With `check`, which refuses options, RELSCOPE_SHARE counts.
    """
    arguments, options, code = sys.argv[1:] if arguments is None else list(arguments), None, 0
    before = dict(os.environ)
    try:
        with ExitStack() as around, warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _fail(message)
            options = parser_of(arguments).parse_args(arguments)
            options.arguments = arguments
            access.check_environment()
            from relcore.files import confined
            from relcore.runs.store import in_use

            stopping.in_order()
            sweep_temporary()
            os.environ.setdefault(environment.CONFINED, "1")
            if options.store:  # in the environment, so that every process opens the same one
                os.environ["RELSCOPE_STORE"] = os.path.abspath(access.expanded(options.store))
            if check:
                check(options)
            if arguments[0] not in ("app", "mcp"):  # which have readers of their own, and may be shared
                if ".npy" not in "".join(
                    arguments
                ):  # which needs no reader, or it starts with the first file
                    confined.start()
                if not check:
                    os.environ.pop("RELSCOPE_SHARE", None)
            around.enter_context(in_use())
            if sys.stdout.isatty():  # no name or id may steer the terminal; a file gets every character
                around.enter_context(redirect_stdout(_Harmless(sys.stdout)))
            if isinstance(code := options.run(options), Report):
                from relcore.commands.output import finish

                code = finish(options, code)
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        stopping.at_once()
        if stopping.stopped or isinstance(error, KeyboardInterrupt):  # some libraries make it another error
            return stopping.say()
        return _told(error, options)
    finally:
        stopping.at_once()
        for name in ("RELSCOPE_STORE", "RELSCOPE_SHARE"):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]
    return stopping.say() if stopping.stopped else code or 0


def _told(error: Exception, options: argparse.Namespace | None) -> int:
    """What a user can mend, in one line; raises all other errors."""
    if isinstance(error, ImportError):
        from relcore.base.libraries import explained

        if (missing := explained(error)) is not error:
            return _fail(missing)
    elif isinstance(error, BrokenPipeError):  # a reader such as `head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    elif isinstance(error, OSError):
        place = f"{str(error.filename)[:200]}: {error.strerror}; check the path"
        return _fail(place if error.filename else error)
    elif isinstance(error, SpaceError) or type(error).__name__ in ("StoreError", "JobQueueError"):
        told = str(error)
        if isinstance(error, NoCommonId) and hasattr(options, "pair_by_row"):
            told += "; or, if row i of both is the same item, add --pair-by-row"
        if isinstance(error, NoCommonId) and hasattr(options, "links"):
            told += "; or add --links links.parquet, a file that relscope link writes"
        return _fail(told)
    raise error


def _fail(message: object, code: int = 2) -> int:
    print(f"relscope: {visible(message).strip()}", file=sys.stderr)
    return code


class _Harmless:
    """A stream that writes only what is `harmless`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._stream.write(harmless(text))
        return len(text)


class _Help(argparse.HelpFormatter):
    """The example at the end keeps its lines."""

    def _format_action(self, action: argparse.Action) -> str:
        """List the commands without a heading of their own."""
        if isinstance(action, argparse._SubParsersAction):
            return "".join(map(self._format_action, action._get_subactions()))
        return super()._format_action(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others are; `called` is that of the command, `commands`
    holds those of all.
    """

    called: argparse.ArgumentParser | None = None
    commands: argparse._SubParsersAction | None = None

    def error(self, message: str) -> NoReturn:
        message, near, prog = message.removeprefix("argument "), "", self.prog
        if wrong := re.match(r"command: invalid choice: '(.*?)'", message):
            message = f"{wrong[1]!r:.80}: expected one of {', '.join(COMMANDS)}"
            near = did_you_mean(wrong[1], COMMANDS)
        elif (wrong := re.match(r"unrecognized arguments: (-[^ =]+)", message)) and self.called:
            near, prog = did_you_mean(wrong[1], self.called._option_string_actions), self.called.prog
        raise SpaceError(f"{message}{near or ';'} see {prog} --help")


def parser_of(arguments: Sequence[str], every: bool = False) -> argparse.ArgumentParser:
    """All commands with one line each, and the arguments of the one that is called, with the defaults of
    relscope.toml; with `every` the arguments of all, without these.
    """
    width = min(100, shutil.get_terminal_size().columns)
    style = {"formatter_class": partial(_Help, max_help_position=28, width=width)}
    parser = _Parser(
        prog="relscope",
        description="Relscope on the command line: the same spaces, settings and numbers as in the app.",
        epilog="Help for one command: relscope compare --help",
        **style,
    )
    version = ""
    if "--version" in arguments:
        from relcore.files.confined import offers

        version = f"relscope {__version__}; {offers()}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.commands = parser.add_subparsers(
        dest="command", metavar="command", required=True, title="commands"
    )
    for name, about in COMMANDS.items():
        sentence = f"{about[0].upper()}{about[1:]}."
        former = [one for one in FORMER if FORMER[one] == name]
        command = commands.add_parser(name, help=about, description=sentence, aliases=former, **style)
        called = arguments[:1] and arguments[0] in (name, *former)
        if called or every:
            module = import_module(f"relcore.commands.{name}")
            module.add_arguments(command)
            store = "folder for encodings and results (default: $RELSCOPE_STORE, or the user's cache)"
            command.add_argument("--store", metavar="FOLDER", help=store)
            command.add_argument("--quiet", action="store_true", help="do not show progress")
            command.set_defaults(run=module.run)
        if called:
            from relcore.commands.config import set_defaults

            set_defaults(command, name)
            parser.called = command
    return parser
