"""Options of commands, generated from the fields of tasks, and the tasks that they describe."""

from __future__ import annotations

import argparse
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

from relcore.base.errors import SpaceError
from relcore.base.names import Named
from relcore.base.settings import UNSET, Setting, complete, settings_of

_MOST_DIGITS = 18  # within 64 bits


def add(parser: argparse.ArgumentParser, kind: type, *skipped: str) -> None:
    """An option for each field of a dataclass with a help text, also of the dataclasses in its fields, but
    for those skipped.
    """
    for name, one in settings_of(kind).items():
        if is_dataclass(one.kind):
            add(parser, one.kind, *skipped)
        elif one.help and name not in skipped:
            _add(parser, one)


def option(
    parser: argparse.ArgumentParser, name: str, kind: Any = str, default: Any = None, short: str = "", **shown
) -> None:
    """One option that is no field; `shown` as in `Setting`."""
    _add(parser, complete(Setting(**shown), name, kind, default), short)


def alias(parser: argparse.ArgumentParser, old: str, dest: str, kind: type = str) -> None:
    """A spelling of version 0.1.0, which --help does not show."""
    parser.add_argument(
        old,
        dest=dest,
        type=partial(_read, complete(Setting(), dest, kind, None)),
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )


def values_of(options: argparse.Namespace, kind: type) -> dict[str, Any]:
    """Field → value of the options that `add` made for a dataclass."""
    values = {}
    for name, one in settings_of(kind).items():
        if is_dataclass(one.kind):
            values[name] = one.kind(**values_of(options, one.kind))
        elif one.help and hasattr(options, one.option):
            values[name] = getattr(options, one.option)
    return values


def flag(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def described(one: Setting) -> str:
    """What a setting does, its choices and its default."""
    usual = "depends on the data" if callable(one.usual) else one.default if one.several else one.start()
    usual = ",".join(map(str, usual)) if isinstance(usual, tuple) else usual
    listed = ", ".join(map(str, one.choices))
    if any(isinstance(choice, Named) and choice.help for choice in one.choices.values()) and len(listed) < 80:
        listed = ", ".join(f"{name} ({choice.help})" for name, choice in one.choices.items())
    parts = [one.help.rstrip(".") or one.label, f"one of {listed}" if listed else ""]
    known = not any(usual is none for none in (UNSET, None, "", False))  # 0 is a default like any other
    parts.append(f"default: {usual}" if known else "")
    return "; ".join(part for part in parts if part).replace("%", "%%")


def is_number(option: str, text: str) -> bool:
    """Whether the text of an option that also takes a file or ids is a whole number without a sign.

    Raises
    ------
    SpaceError
        A number of more digits than any row has.
    """
    if not text.isascii() or not text.isdecimal():
        return False
    if len(text) > _MOST_DIGITS:
        raise SpaceError(
            f"{option}: expected a number of at most {_MOST_DIGITS} digits, got {len(text):,} digits; choose"
            " fewer"
        )
    return True


def _add(parser: argparse.ArgumentParser, one: Setting, short: str = "") -> None:
    usual = one.start()
    flags = [*([flag(short)] if short else []), flag(one.option)]
    shown = {"dest": one.option, "default": None if usual is UNSET else usual, "help": described(one)}
    if one.kind is bool:
        action = argparse.BooleanOptionalAction if usual else "store_true"
        parser.add_argument(*flags, action=action, **shown)
    else:
        metavar = one.metavar or {int: "N", float: "X"}.get(one.number, "NAME")
        parser.add_argument(*flags, type=partial(_read, one), metavar=metavar, **shown)


def _read(one: Setting, text: str) -> Any:
    """The value of a text; argparse puts the option's name before the error."""
    try:
        value = Path(text) if one.kind is Path else one.read(text)
        one.check(value)
    except SpaceError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(f"{one.name}: ")) from None
    return value
