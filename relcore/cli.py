"""The command `relscope`: what the app does, without a screen; each command is a module of `relcore.commands`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from relcore import __version__

COMMANDS = {
    "available": "list the spaces that can be loaded here and now, and those that need the network",
    "app": "open the app in the browser, with spaces of yours loaded",
    "encode": "turn pictures, texts or a graph into spaces",
    "project": "describe the rows of a space by their similarities to anchors",
    "compare": "score how alike two spaces are, absolute and relative to anchors, beside chance",
    "stitch": "read every encoder with every other one's head",
    "invert": "carry a space into another through their anchors, and tell what comes back",
    "bootstrap": "find the anchors that two spaces share, from a few known pairs or none",
    "study": "run a study of the papers, or go on with it; without a name, list them",
    "figure": "draw a figure again from its recipe",
}
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if all went well, 2 with one line on stderr where the user can mend it, 130 after Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser(arguments).parse_args(arguments)
    try:
        with _own_store(options.store), _plain_warnings():
            options.run(options)
    except KeyboardInterrupt:
        return _fail("Stopped. Finished work is saved; rerun the command to resume.", INTERRUPTED)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except _mendable() as error:
        return _fail(str(error))
    return 0


def _mendable() -> tuple[type[Exception], ...]:
    """What a user can mend; looked up only when something went wrong, by which time it is imported."""
    from relcore.engine import EngineError
    from relcore.spaces import SpaceError
    from relcore.store import StoreError

    return SpaceError, StoreError, EngineError


def _fail(message: str, code: int = 2) -> int:
    print(f"relscope: {' '.join(message.split())}", file=sys.stderr)
    return code


@contextmanager
def _own_store(folder: str | None) -> Iterator[None]:
    """The environment names the store: so whatever opens one, in whichever process, opens the same."""
    before = os.environ.get("RELSCOPE_STORE")
    if folder:
        os.environ["RELSCOPE_STORE"] = os.path.abspath(os.path.expanduser(folder))
    try:
        yield
    finally:
        if folder:
            os.environ.pop("RELSCOPE_STORE")
            if before is not None:
                os.environ["RELSCOPE_STORE"] = before


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """A warning is a line for the reader, without the place in the code that it comes from."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: _fail(str(message))
        yield


class _Help(argparse.HelpFormatter):
    """Room for the names of options; the example at the end stays as it is typed."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(100, shutil.get_terminal_size().columns))

    def _format_action(self, action: argparse.Action) -> str:
        """The commands as a list, without a heading for what they all are."""
        if isinstance(action, argparse._SubParsersAction):
            return "".join(map(self._format_action, action._get_subactions()))
        return super()._format_action(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """All commands by name and purpose; the one that is called with its arguments."""
    parser = argparse.ArgumentParser(
        prog="relscope",
        description="Relscope without a screen: the same spaces, settings and numbers as in the app.",
        epilog="Each command explains itself: relscope compare --help",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"relscope {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True, title="commands")
    for name, about in COMMANDS.items():
        sentence = f"{about[0].upper()}{about[1:]}."
        command = commands.add_parser(name, help=about, description=sentence, formatter_class=_Help)
        if arguments[:1] == [name]:
            module = import_module(f"relcore.commands.{name}")
            module.add_arguments(command)
            if hasattr(module, "add_settings"):  # options that depend on what else is given
                module.add_settings(command, arguments)
            command.set_defaults(run=module.run)
            _add_common(command)
    return parser


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--store", metavar="FOLDER", help="where encodings and results are kept (default: $RELSCOPE_STORE, or the user's cache)"
    )
    command.add_argument("--quiet", action="store_true", help="no progress on the terminal")
