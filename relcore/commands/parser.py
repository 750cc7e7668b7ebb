"""The commands and their parser; relscope.toml, which only this module reads, sets its defaults."""

from __future__ import annotations

import argparse
import re
import shutil
import tomllib
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from relcore.base.access import regular_file
from relcore.base.environment import DEVICE, DEVICE_HELP
from relcore.base.errors import SpaceError, did_you_mean
from relcore.base.version import __version__

FILE = "relscope.toml"
_MOST_BYTES = 1 << 20
# Options that a file in a downloaded folder must not set: where results go, who computes, and who may enter.
_TYPED = {"help", "store", "scheduler", "share", "no_token", "format", "print_thresholds"}

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
    "check": "tell whether a collection of vectors was made by one model or by two",
    "study": "run or resume a study; without a name, list all studies",
    "migrate": "decide about a new embedding model: keep, bridge, query both models or re-embed",
    "export": "write a map, its rows and their neighbours as a table for Embedding Atlas",
    "figure": "draw a figure again from its recipe",
    "mcp": "serve commands as tools to an agent, by the Model Context Protocol",
    "config": "show the defaults that relscope.toml sets",
    "completion": "print the script that completes commands and options in a shell",
}
FORMER = {"bootstrap": "link"}  # names of earlier versions
# Names of our options in other tools: the first one that the command has is suggested.
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
    """A parser that prints its errors in one line; `called` is the parser of the command, `commands` holds
    those of all.
    """

    called: argparse.ArgumentParser | None = None
    commands: argparse._SubParsersAction | None = None

    def error(self, message: str) -> NoReturn:
        message, near, prog = message.removeprefix("argument "), "", self.prog
        if wrong := re.match(r"command: invalid choice: '(.*?)'", message):
            message = f"{wrong[1]!r:.80}: expected one of {', '.join(COMMANDS)}"
            near = did_you_mean(wrong[1], COMMANDS)
        elif (wrong := re.match(r"unrecognized arguments: (-[^ =]+)", message)) and self.called:
            flags = [
                flag
                for flag, action in self.called._option_string_actions.items()
                if action.help != argparse.SUPPRESS
            ]
            near, prog = similar_option(wrong[1], flags), self.called.prog
        elif wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)$", message):
            near = did_you_mean(wrong[1], re.findall(r"[\w.-]+", wrong[2]))
        raise SpaceError(f"{message}{near or ';' * (not message.endswith('?'))} see {prog} --help")


def similar_option(text: str, known: Sequence[str]) -> str:
    """``"; did you mean '--random-state'?"`` for a similar option, or one that another tool calls so."""
    names = {name.lstrip("-").replace("_", "-"): name for name in known}
    meant = SYNONYMS.get(text.lstrip("-").replace("_", "-"), ())
    return did_you_mean(next((names[name] for name in meant if name in names), text), known)


def parser_of(arguments: Sequence[str], every: bool = False) -> argparse.ArgumentParser:
    """A parser of all commands with one line each, and of the called one with its arguments and the defaults
    of relscope.toml. With `every`, it has the arguments of all and no such defaults.
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
        from relcore.base.environment import described
        from relcore.files.confined import offers

        version = f"relscope {__version__}; device {described()}; {offers()}"
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
            module.OPTIONS.add_to(command, name)
            store = "folder for encodings and results (default: $RELSCOPE_STORE, or the user's cache)"
            command.add_argument("--store", metavar="FOLDER", help=store)
            command.add_argument("--device", metavar="NAME", help=f"{DEVICE_HELP} (default: ${DEVICE})")
            command.add_argument("--quiet", action="store_true", help="do not show progress")
            command.set_defaults(run=module.run)
        if called:
            set_defaults(command, name)
            parser.called = command
    return parser


def written(action: argparse.Action) -> bool:
    """Whether an argument names a file or place that a command writes to."""
    return action.dest == "output" or getattr(getattr(action, "setting", None), "written", False)


# Defaults from relscope.toml, in the working folder or above it.


def place() -> Path | None:
    """The relscope.toml that applies here; outside of the home folder only one in the working folder."""
    try:
        folders = [Path.cwd(), *Path.cwd().parents]
        end = folders.index(Path.home()) + 1 if Path.home() in folders else 1
        return next((folder / FILE for folder in folders[:end] if (folder / FILE).is_file()), None)
    except (OSError, RuntimeError):  # no working folder (any more), or no home
        return None


def tables(path: Path) -> dict[str, dict[str, Any]]:
    """Command → option → value. Raises a SpaceError for text that is not TOML, and for tables of unknown
    commands."""
    try:
        if regular_file(path).stat().st_size > _MOST_BYTES:
            raise ValueError("more than 1 MB")
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"{path}: expected defaults as TOML, got {error}") from None
    for name, table in record.items():
        if name not in COMMANDS or not isinstance(table, dict):
            got = f"[{name}]" if isinstance(table, dict) else f"{name} outside of a table"
            near = did_you_mean(name, COMMANDS) or f"; commands are {', '.join(COMMANDS)}"
            raise SpaceError(
                f"{path}: expected a table for a command, such as [compare], got {got:.80}{near}"
            )
    return record


def set_defaults(command: argparse.ArgumentParser, name: str) -> None:
    """Give a command's options the defaults of the file, and add them to its help."""
    if (path := place()) and (told := defaults(command, name)):
        command.epilog += f"\n\n{path} sets: {', '.join(f'{flag} {text}' for flag, text in told)}"


def defaults(command: argparse.ArgumentParser, name: str) -> list[tuple[str, str]]:
    """Set the file's defaults in a command's parser; returns each option with its value.

    Raises
    ------
    SpaceError
        An option that the command lacks, or that a file may not set; a value that it refuses.
    """
    path, told = place(), []
    known = {
        action.dest: action
        for action in command._actions
        if action.option_strings and action.dest not in _TYPED and not written(action)
    }
    for key, value in (tables(path).get(name, {}) if path else {}).items():
        where = f"{path}: [{name}] {key:.80}"
        if (action := known.get(key.replace("-", "_"))) is None:
            names = [dest.replace("_", "-") for dest in known]
            near = similar_option(key, names) or f"; it sets {', '.join(names)}"
            raise SpaceError(f"{where}: expected an option of relscope {name}{near}")
        action.default, action.required = _read(command, action, value, where), False
        text = str(value).lower() if isinstance(value, bool) else value
        told.append(
            (action.option_strings[0], ",".join(map(str, text if isinstance(text, list) else [text])))
        )
    return told


def _read(command: argparse.ArgumentParser, action: argparse.Action, value: Any, where: str) -> Any:
    """The option's value, converted as if it were typed."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise SpaceError(f"{where}: expected true or false, got {value!r:.80}")
        return value
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, bool | dict | list) for one in values):
        raise SpaceError(f"{where}: expected a number, a text or a list of them, got {value!r:.80}")
    appends = isinstance(action, argparse._AppendAction)
    try:
        texts = map(str, values) if appends else [",".join(map(str, values))]
        read = [command._get_value(action, text) for text in texts]
        for one in read:
            command._check_value(action, one)
    except argparse.ArgumentError as error:
        raise SpaceError(f"{where}: {error.message}") from None
    return read if appends else read[0]
