"""config: defaults of options in relscope.toml, in the working folder or above it; this is its one reader."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError, did_you_mean
from relcore.base.report import Report, Table
from relcore.commands.arguments import Printed, add, written

FILE = "relscope.toml"
_MOST_BYTES = 1 << 20
# What a file that came with a folder must not decide: where results go, who computes, and who may enter.
_TYPED = {"help", "store", "scheduler", "share", "no_token", "format", "print_thresholds"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        f" {FILE} lies in the working folder, or in the nearest one above it up to your home folder. It has a"
        " table for each command, whose keys are options: [compare] with anchors = 500 makes --anchors 500"
        " the default. What is typed wins. Options that write files, --store, --scheduler, --share and"
        " --no-token are only typed."
    )
    add(parser, Printed)
    parser.epilog = "example:\n  relscope config --json"


def run(options: argparse.Namespace) -> Report:
    from relcore.cli import parser_of

    path = place()
    rows = [
        (name, *one)
        for name in (tables(path) if path else ())
        for one in defaults(parser_of([name]).called, name)
    ]
    head = ("command", "option", "default")
    sentence = str(path) if path else f"No {FILE} in {Path.cwd()} or above it."
    table = Table("defaults", pd.DataFrame(rows, columns=head), [head, *rows] if rows else ())
    return Report(sentence, [table], {"file": path and str(path)})


def place() -> Path | None:
    """The file that counts here; outside of the home folder only one in the working folder."""
    try:
        folders = [Path.cwd(), *Path.cwd().parents]
        end = folders.index(Path.home()) + 1 if Path.home() in folders else 1
        return next((folder / FILE for folder in folders[:end] if (folder / FILE).is_file()), None)
    except (OSError, RuntimeError):  # no working folder (any more), or no home
        return None


def tables(path: Path) -> dict[str, dict[str, Any]]:
    """Command → option → value. Raises a SpaceError for what is not TOML, and tables of no command."""
    from relcore.cli import COMMANDS

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
    """Set the defaults of the file in a command's parser; each option with its value.

    Raises
    ------
    SpaceError
        An option that the command has not, or that is only typed; a value that it refuses.
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
            near = did_you_mean(key, names) or f"; it sets {', '.join(names)}"
            raise SpaceError(f"{where}: expected an option of relscope {name}{near}")
        action.default, action.required = _read(command, action, value, where), False
        text = str(value).lower() if isinstance(value, bool) else value
        told.append(
            (action.option_strings[0], ",".join(map(str, text if isinstance(text, list) else [text])))
        )
    return told


def _read(command: argparse.ArgumentParser, action: argparse.Action, value: Any, where: str) -> Any:
    """What the option makes of a value, as if it were typed."""
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
