"""The rule that a command writes to no file that it reads. An option that names a file to write may name
neither a file that another argument names, nor the file of another such option."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError
from relcore.base.names import INDEXES
from relcore.base.records import paths_of, read_json
from relcore.base.settings import Setting
from relcore.commands.parser import written
from relcore.files.formats import suffix_of
from relcore.stores.index import StorePlace, parse_place

_NO_FILES = {"store", "scheduler", "device", "format", "command"}
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt")


@dataclass(frozen=True)
class NamedPath:
    """A path that an argument names. `option` is the argument, `table` is "" unless the path is the folder of
    a database. `searched` says that the command only looks for files in the folder."""

    option: str
    text: str
    path: Path
    table: str = ""
    searched: bool = False


def need_unread(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the parsed options of a command before it begins its work.

    Raises
    ------
    SpaceError
        The command would write to a file that it reads, to a file in a folder that it reads, or to one file
        twice.
    """
    goals = []
    sources = []
    for action in parser._actions:
        value = getattr(options, action.dest, None)
        setting = getattr(action, "setting", Setting())
        if action.dest in _NO_FILES or action.choices or setting.choices or value is None:
            continue
        name = _name_of(action)
        if written(action):
            goals += [goal for text in _texts(value) for goal in goals_of(name, text)]
        else:
            sources += [one for text in _texts(value) for one in sources_of(name, text, setting.searched)]
    need_other_files(goals, sources, numbered=getattr(options, "numbered", False))
    for number, goal in enumerate(goals):
        for other in goals[:number]:
            if goal.option != other.option and (_is_same(goal, other) or _is_one_in_other(goal, other)):
                raise SpaceError(
                    f"{goal.option}: expected another file than {other.option} names, got {goal.text!r:.200};"
                    " choose another name"
                )


def need_other_files(
    goals: Iterable[NamedPath], sources: Iterable[NamedPath], numbered: bool = False
) -> None:
    """Raise a SpaceError if one of the `goals`, which are written, is among the `sources`, which are read.
    `numbered` says that several files may be written, with a number at the end of their stems.
    """
    for source, goal in product(sources, list(goals)):
        got = f"{goal.text!r:.200}, which {source.option} reads"
        if numbered and _is_numbered(goal.path, source.path):
            got = f"{goal.text!r:.200}, of which one file may become {source.text!r:.200}"
        elif not (_is_same(goal, source) or _is_in_folder(goal, source)):
            continue
        raise SpaceError(
            f"{goal.option}: expected a file that this command does not read, got {got}; choose another name"
        )


def _name_of(action: argparse.Action) -> str:
    if action.option_strings:
        return action.option_strings[0]
    return str(action.metavar or action.dest.upper())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def goals_of(option: str, text: str) -> Iterator[NamedPath]:
    """The files that are written to the place with this name. With vectors, a file of ids may be written."""
    place = _place(text)
    path = _path(text)
    if place is not None and place.where != text:
        path = _path(place.where)
    if path is None:
        return
    if path.exists() and not path.is_file() and not path.is_dir():  # a device or a pipe, such as /dev/stdout
        return
    table = ""
    if place is not None and not place.is_file:
        table = place.table
    files = [path]
    if place is not None and place.is_file:
        files = INDEXES[place.kind].load().written_files(path)
    yield from (NamedPath(option, text, file, table) for file in files)


def sources_of(option: str, text: str, searched: bool = False) -> Iterator[NamedPath]:
    """The files that may be read for this text: those of all forms in which options name files."""
    parts = text.split(",")
    forms = dict.fromkeys([text, text.rpartition("=")[2], *parts])
    forms |= dict.fromkeys([form.partition("#")[0] for form in forms])
    for form in filter(None, forms):
        place = _place(form)
        path = _path(form)
        table = ""
        if place is not None and place.where != form:
            path = _path(place.where)
            if not place.is_file:
                table = place.table
        if path is None or not path.exists():
            continue
        yield NamedPath(option, text, path, table, searched)
        if path.is_file():
            yield from (NamedPath(option, text, beside) for beside in _beside(path))
            for name in _names_in_json(path):
                yield from sources_of(option, name)


def _beside(path: Path) -> list[Path]:
    """The files beside a file of vectors from which its ids, labels and tokens are read."""
    stem = path.name[: -len(suffix_of(path) or path.suffix) or None]
    return [path.with_name(name) for name in (f"{stem}.ids.txt", f"{stem}.labels.txt", *_VOCABULARIES)]


def _names_in_json(path: Path) -> list[str]:
    """The files that a .json file names in the specs of spaces and datasets."""
    if path.suffix.lower() != ".json":
        return []
    with suppress(SpaceError, OSError):
        return [name for name in paths_of(read_json(path, "a spec")) if name != str(path)]
    return []


def _place(text: str) -> StorePlace | None:
    with suppress(SpaceError):
        return parse_place(text)
    return None


def _path(text: str) -> Path | None:
    with suppress(SpaceError):
        return expand_home(text)
    return None


def _is_same(goal: NamedPath, other: NamedPath) -> bool:
    return goal.table == other.table and _is_same_file(goal.path, other.path)


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them does not exist yet
        return os.path.realpath(one) == os.path.realpath(other)


def _is_in_folder(goal: NamedPath, source: NamedPath) -> bool:
    """Whether the goal is a file in a folder that is read, or a folder whose files are written and one of
    them is read."""
    if goal.table or source.searched:
        return False
    if source.path.is_dir() and goal.path.is_file():
        within = Path(os.path.realpath(goal.path)).is_relative_to(os.path.realpath(source.path))
        return within or any(_is_same_file(goal.path, one) for one in source.path.iterdir())
    return goal.path.is_dir() and _is_same_file(goal.path, source.path.parent) and source.path.is_file()


def _is_one_in_other(goal: NamedPath, other: NamedPath) -> bool:
    return any(
        one.path.is_dir() and _is_same_file(one.path, two.path.parent)
        for one, two in ((goal, other), (other, goal))
    )


def _is_numbered(goal: Path, source: Path) -> bool:
    name = rf"{re.escape(goal.stem)}-[0-9]+{re.escape(goal.suffix)}"
    return bool(re.fullmatch(name, source.name)) and _is_same_file(goal.parent, source.parent)
