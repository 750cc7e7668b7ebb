"""Folders of files that are one space, and series of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.names import FORMATS
from relcore.base.records import read_file
from relcore.files.formats import suffix_of

STATE = "state.json"
MOST_SPACES = 500
_SHARD = re.compile(r"(?P<name>.*)-\d{5}-of-\d{5}(?P<suffix>\.parquet|\.arrow|\.feather)", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d+)")
_TEXTS = (".csv", ".tsv", ".txt", ".gz", ".vec")  # in a folder of arrays, files with metrics or ids
_TABLES = (".parquet", ".arrow", ".feather")


def natural(path: Path) -> list[tuple[int, str, int]]:
    """A sort key that puts "step-20" before "step-100"."""
    key = []
    for part in filter(None, _NUMBERS.split(str(path).lower())):
        if part.isdecimal():
            key.append((1, "", int(part)))
        else:
            key.append((0, part, 0))
    return key


def parts_of(folder: Path) -> list[Path]:
    """The files, in order, of a folder that is one space: a folder of shards, or one that
    `datasets.save_to_disk` wrote. [] for any other folder.

    Raises
    ------
    SpaceError
        The folder has a state.json that names files which are not in the folder.
    """
    if not (folder / STATE).is_file():
        tables = [path for path in _files(folder) if path.suffix.lower() in _TABLES]
        shards = [_SHARD.fullmatch(path.name) for path in tables]
        if None in shards or len({(shard["name"], shard["suffix"]) for shard in shards}) != 1:
            return []
        return tables
    state = read_file(folder / STATE, "the state of a dataset")
    names = []
    with suppress(TypeError, KeyError):
        names = [item["filename"] for item in state["_data_files"]]
    parts = {path.name: path for path in _files(folder) if path.suffix == ".arrow"}
    missing = [name for name in names if not isinstance(name, str) or name not in parts]
    if not names or missing:
        got = "another list of files"
        if missing:
            got = f"{quote(missing[:3])}, which are not there"
        raise SpaceError(
            f"{folder.name}/{STATE}: expected the .arrow files of datasets.save_to_disk beside it, got {got};"
            " save it again"
        )
    return [parts[name] for name in names]


def shards_of(folder: Path) -> list[Path]:
    """The files, in order, of a folder whose vector files are the shards of one space. Their order is that of
    a space that is read by shard.

    Raises
    ------
    SpaceError
        The folder has no such file, or files of several formats.
    """
    known = tuple(suffix for suffix, entry in FORMATS.own.items() if entry.shard)
    shards = [path for path in _files(folder) if path.suffix.lower() in known]
    suffixes = sorted({path.suffix.lower() for path in shards})
    if len(suffixes) != 1:
        raise SpaceError(
            f"{folder.name}: expected shards of one format ({', '.join(known)}), got"
            f" {', '.join(suffixes) or 'none'}; keep the shards of one space in this folder"
        )
    return shards


def files_in(folder: Path) -> list[Path]:
    """The files of a folder. If the folder is one space, its parts; otherwise all its files."""
    return parts_of(folder) or _files(folder)


def is_one_space(folder: Path) -> bool:
    """Whether the files of a folder form one space; False if its state.json is damaged."""
    with suppress(SpaceError, OSError):
        return bool(parts_of(folder))
    return False


def series_of(folder: Path, is_space: Callable[[Path], bool]) -> list[Path]:
    """The paths of the spaces in a folder: vector files, and sub-folders that are one space each. In natural
    order, "step-20" comes before "step-100".

    `is_space` says whether a file holds vectors. Raises a SpaceError for no space and for more than 500
    spaces.
    """
    spaces = _vector_files(folder, is_space)
    for child in folder.iterdir():
        if child.name.startswith(".") or not access.lies_in(folder, child) or not child.is_dir():
            continue
        if parts_of(child):
            spaces.append(child)
            continue
        inner = _vector_files(child, is_space)
        if len(inner) == 1:
            spaces += inner
    if not 0 < len(spaces) <= MOST_SPACES:
        raise SpaceError(
            f"{folder}: expected 1 to {MOST_SPACES} vector files, or folders that hold one each, got"
            f" {len(spaces) or 'none'}; name one of the files, or another folder"
        )
    return sorted(spaces, key=natural)


def vector_places(folder: Path) -> Iterator[Path]:
    """Yield the vector files in a folder and the sub-folders that are one space. Files inside such a
    sub-folder are omitted."""
    spaces: set[Path] = set()
    for pattern in ("*", "*/*", "*/*/*"):
        for path in sorted(folder.glob(pattern), key=natural):
            if path.parent in spaces or not access.may_read(path):
                continue
            if path.is_dir() and is_one_space(path):
                spaces.add(path)
            if path in spaces or (suffix_of(path) and path.is_file()):
                yield path


def _vector_files(folder: Path, is_space: Callable[[Path], bool]) -> list[Path]:
    spaces = list(islice((path for path in _files(folder) if is_space(path)), MOST_SPACES + 1))
    # Text files and tables are parts of the space only if no other file of the folder holds vectors.
    return [path for path in spaces if path.suffix.lower() not in _TEXTS] or spaces


def _files(folder: Path) -> list[Path]:
    children = (path for path in sorted(folder.iterdir(), key=natural) if not path.name.startswith("."))
    # Leave out symbolic links that lead out of the folder.
    return [path for path in children if access.lies_in(folder, path) and path.is_file()]
