"""The parser of the command line."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from relcore.base.environment import DEVICE, DEVICE_HELP
from relcore.base.errors import SpaceError, did_you_mean
from relcore.base.families import Named
from relcore.base.names import COMMANDS
from relcore.base.plugins import named_in_errors
from relcore.base.version import __version__
from relcore.commands.completion import SHELLS, script

# Option of another tool → options of Relscope. The first of these that the command has is suggested.
SYNONYMS = {
    "seed": ("random-state", "pairs"),
    "limit": ("limit", "rows", "sample"),
    "topk": ("k",),
    "top-k": ("k",),
    "neighbors": ("k",),
    "out": ("output",),
    "metric": ("metric", "metrics"),
    "gpu": ("device",),
    "cuda": ("device",),
    "seeds": ("pairs", "states", "random-state"),
    "runs": ("states",),
    "draws": ("states",),
    "verbose": ("quiet",),
}


class _Help(argparse.HelpFormatter):
    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, argparse._SubParsersAction):
            return "".join(map(self._format_action, action._get_subactions()))
        return super()._format_action(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """A parser that raises each error as an exception with a one-line message. `called` is the parser of the
    command that the user called."""

    called: argparse.ArgumentParser | None = None

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        near = ""
        prog = self.prog
        if wrong := re.match(r"command: invalid choice: '(.*?)'", message):
            message = f"{wrong[1]!r:.80}: expected one of {', '.join(COMMANDS)}"
            near = did_you_mean(wrong[1], COMMANDS)
        elif (wrong := re.match(r"unrecognized arguments: (-[^ =]+)", message)) and self.called:
            flags = [
                flag
                for flag, action in self.called._option_string_actions.items()
                if action.help != argparse.SUPPRESS
            ]
            near = similar_option(wrong[1], flags)
            prog = self.called.prog
        elif wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)$", message):
            near = did_you_mean(wrong[1], re.findall(r"[\w.-]+", wrong[2]))
        if not near and not message.endswith("?"):
            near = ";"
        raise SpaceError(f"{message}{near} see {prog} --help")


class _PrintCompletion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, options: Any, shell: Any, *_) -> None:
        print(script(parser_of((), every=True), shell), end="")
        parser.exit()


def similar_option(text: str, known: Sequence[str]) -> str:
    """A suggestion for an unknown option `text`, such as ``"; did you mean '--random-state'?"``. It names the
    option that other tools call `text`; if there is none, the option with the most similar name."""
    names = {name.lstrip("-").replace("_", "-"): name for name in known}
    meant = SYNONYMS.get(text.lstrip("-").replace("_", "-"), ())
    return did_you_mean(next((names[name] for name in meant if name in names), text), known)


def parser_of(arguments: Sequence[str], every: bool = False) -> _Parser:
    """A parser for these arguments. Its help lists every command in one line, but only the command that is
    called gets its options, or `every` command."""
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
        from relcore.base.environment import device_in_words
        from relcore.files.confined import offers

        version = f"relscope {__version__}; device {device_in_words()}; {offers()}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=SHELLS,
        help=f"print the script that completes commands in a shell ({', '.join(SHELLS)}), and exit",
        metavar="SHELL",
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True, title="commands")
    table: Mapping[str, Named] = COMMANDS
    if arguments and arguments[0] in COMMANDS.own:
        table = COMMANDS.own  # without those of plugins, whose search takes a tenth of a second
    elif every:
        COMMANDS.working()  # warns of commands that cannot be loaded, and leaves them out
    for name, entry in table.items():
        about = entry.help.replace("%", "%%")
        sentence = f"{about[0].upper()}{about[1:]}."
        command = commands.add_parser(name, help=about, description=sentence, **style)
        if every or arguments[:1] == [name]:
            with named_in_errors(entry.plugin):
                entry.load().add_to(command, name)
            command.set_defaults(plugin=entry.plugin)
            store = "folder for encodings and results (default: $RELSCOPE_STORE, or the user's cache)"
            command.add_argument("--store", metavar="FOLDER", help=store)
            command.add_argument("--device", metavar="NAME", help=f"{DEVICE_HELP} (default: ${DEVICE})")
            command.add_argument("--quiet", action="store_true", help="do not show progress")
            parser.called = command
    return parser


def written(action: argparse.Action) -> bool:
    """Whether this argument of a command names the file or folder to which the command writes."""
    return action.dest == "output" or getattr(getattr(action, "setting", None), "written", False)
