"""Declare a command: turn dataclasses into its options, and read the values that a user gave."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

from relcore.base import junit
from relcore.base.errors import SpaceError
from relcore.base.families import Named
from relcore.base.report import Report
from relcore.base.settings import UNSET, Setting, settings_of
from relcore.catalog.catalog import is_address
from relcore.commands.options import PRINTED, REPORT_FILES, JUnit, Printed, Results

_LONGEST_LIST = 80  # characters of the names of choices; in longer lists, they are not explained
_NAMES_OF_VALUES: Mapping[type | None, str] = {int: "N", float: "X", None: "NAME"}


@dataclass
class Command:
    """A command of the command line: its options, the texts of its ``--help``, and the function that runs it.

    Attributes
    ----------
    run : function of the parsed options that returns a report
    kinds : dataclasses whose fields are the options; if a name repeats, its first field counts
    about : sentences that explain the command
    examples : calls, without the name of the command
    output : help of ``-o``; "" if the command writes only its report, or nothing
    suffixes : the allowed suffixes of each file that is written, by the option that names the file
    more : function that adds options that no field can declare
    serves : whether the command runs until it is stopped, and starts the processes that read files by itself
    numbered : whether -o may become several files, with a number at the end of their stems
    """

    run: Callable[[argparse.Namespace], Report | None]
    kinds: tuple[type, ...]
    about: str = ""
    examples: tuple[str, ...] = ()
    output: str = ""
    suffixes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    more: Callable[[argparse.ArgumentParser], None] | None = None
    serves: bool = False
    numbered: bool = False

    def add_to(self, parser: argparse.ArgumentParser, name: str) -> None:
        parser.description = f"{parser.description} {self.about}".strip()
        output = self.output
        suffixes = {**self.suffixes}
        if not output and {Printed, Results} & {*self.kinds}:
            output = f"Also write the report ({', '.join(REPORT_FILES)})."
            suffixes["output"] = REPORT_FILES
        if JUnit in self.kinds:
            suffixes["junit"] = (junit.SUFFIX,)
        if output:
            parser.add_argument("-o", "--output", type=_path_or_address, metavar="FILE", help=output)
        add(parser, *self.kinds)
        if self.more:
            self.more(parser)
        parser.set_defaults(run=self.run, suffixes=suffixes, serves=self.serves, numbered=self.numbered)
        parser.epilog = "\n".join(["example:", *(f"  relscope {name} {call}" for call in self.examples)])


@dataclass(frozen=True)
class Tool:
    """A command as a tool of AI agents. `fixed` has the values of the options that an agent must not set;
    None is the default."""

    fixed: Mapping[str, str | None] = field(default_factory=dict)


FREE_TOOL = Tool()


def command(*declared: Any, **more: Any) -> Callable[..., Command]:
    """A decorator that turns a function into a `Command`; its arguments are the fields of `Command` after
    `run`."""
    return lambda run: Command(run, *declared, **more)


def add(parser: argparse.ArgumentParser, *kinds: type) -> None:
    """Add a command-line option for each field of these dataclasses that has a help text. If a field is
    itself a dataclass, options are added for its fields. A field without a default becomes a positional
    argument.
    """
    for kind in kinds:
        for name, one in settings_of(kind).items():
            if is_dataclass(one.kind):
                add(parser, one.kind)
            if not one.help or flag(one.option) in parser._option_string_actions:
                continue
            usual = one.start()
            keywords = {"help": help_text(one), "metavar": one.metavar or None}
            plain = {"type": Path if one.kind is Path else str}
            if one.nargs == "append":
                keywords |= plain | {"action": "append", "required": usual is UNSET, "default": []}
            elif usual is UNSET:
                keywords |= plain | {"nargs": one.nargs or None, "choices": tuple(one.choices) or None}
            elif one.kind is bool:
                action = "store_true"
                if usual:
                    action = argparse.BooleanOptionalAction
                keywords = {"help": keywords["help"], "default": usual, "action": action}
            else:
                name_of_value = one.metavar or _NAMES_OF_VALUES[one.number]
                keywords |= {"default": usual, "metavar": name_of_value, "type": partial(_read, one)}
            positional = usual is UNSET and one.nargs != "append"
            parser.add_argument(name if positional else flag(one.option), **keywords).setting = one
            if name == "format":
                for short, kind in PRINTED.items():
                    keywords = {"const": short, "help": f"print {kind}, with all digits"}
                    parser.add_argument(f"--{short}", dest=name, action="store_const", **keywords)


def _path_or_address(text: str) -> Path | str:
    return text if is_address(text) else Path(text)


def flag(name: str) -> str:
    if len(name) == 1:
        return f"-{name}"
    return f"--{name.replace('_', '-')}"


def help_text(one: Setting) -> str:
    """The help text of a setting, with its choices and its default."""
    if callable(one.usual):
        usual = "depends on the data"
    elif one.several:
        usual = one.default
    else:
        usual = one.start()
    if isinstance(usual, tuple):
        usual = ",".join(map(str, usual))
    parts = [one.help.rstrip(".") or one.label]
    if one.choices:
        parts.append(f"one of {_listed_choices(one.choices)}")
    if not (usual is UNSET or usual is None or usual is False or usual == ""):
        parts.append(f"default: {usual}")
    return "; ".join(parts).replace("%", "%%")


def _listed_choices(choices: Mapping[Any, Any]) -> str:
    """The names of choices. If the list is short, each has its help text in brackets."""
    names = ", ".join(map(str, choices))
    if len(names) >= _LONGEST_LIST:
        return names
    return ", ".join(_name_and_help(name, choice) for name, choice in choices.items())


def _name_and_help(name: Any, choice: Any) -> str:
    if isinstance(choice, Named) and choice.help:
        return f"{name} ({choice.help})"
    return str(name)


def _read(one: Setting, text: str) -> Any:
    """Convert a text from the command line into the value of a setting. If it is invalid, raise an error, to
    which argparse adds the option's name."""
    try:
        if one.kind is Path:
            value = Path(text)
        else:
            value = one.read(text)
        one.check(value)
    except SpaceError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(f"{one.name}: ")) from None
    return value


def values_of(options: argparse.Namespace, kind: type) -> dict[str, Any]:
    """The values of the options that `add` made for a dataclass, by the name of the field."""
    values = {}
    for name, one in settings_of(kind).items():
        if is_dataclass(one.kind) and (inner := values_of(options, one.kind)):
            values[name] = one.kind(**inner)
        elif one.help and hasattr(options, one.option):
            values[name] = getattr(options, one.option)
    return values
