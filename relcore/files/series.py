"""Folders of vector files: one space in several parts, as `datasets` saves it, or a series of spaces, as
checkpoints are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.records import read_file
from relcore.files.formats import check_size, suffix_of
from relcore.files.on_disk import JoinedOrigin
from relcore.spaces.space import MappedRows

STATE = "state.json"
MOST_SPACES = 500
_SHARD = re.compile(r"(.*)-\d{5}-of-\d{5}(\.parquet|\.arrow|\.feather)", re.IGNORECASE)
_NUMBERS = re.compile(r"(\d+)")
_TEXTS = (".csv", ".tsv", ".txt", ".gz", ".vec")  # beside arrays these are metrics, ids and the like
_TABLES = (".parquet", ".arrow", ".feather")


def natural(path: Path) -> list[tuple[int, str, int]]:
    """A key that sorts "step-20" before "step-100"."""
    parts = _NUMBERS.split(str(path).lower())
    return [(1, "", int(part)) if part.isdecimal() else (0, part, 0) for part in parts if part]


def parts_of(folder: Path) -> list[Path]:
    """The files that make one space of a folder, in their order: of `datasets.save_to_disk`, or shards of one
    table; else [].

    Raises
    ------
    SpaceError
        A state.json that names no files of the folder.
    """
    if not (folder / STATE).is_file():
        tables = [path for path in _files(folder) if path.suffix.lower() in _TABLES]
        shards = [_SHARD.fullmatch(path.name) for path in tables]
        of_one = None not in shards and len({(shard[1], shard[2]) for shard in shards}) == 1
        return tables if of_one else []
    state, names = read_file(folder / STATE, "the state of a dataset"), []
    with suppress(TypeError, KeyError):
        names = [item["filename"] for item in state["_data_files"]]
    there = {path.name: path for path in _files(folder) if path.suffix == ".arrow"}
    missing = [name for name in names if not isinstance(name, str) or name not in there]
    if not names or missing:
        got = f"{quote(missing[:3])}, which are not there" if missing else "another list of files"
        raise SpaceError(
            f"{folder.name}/{STATE}: expected the .arrow files of datasets.save_to_disk beside it, got {got};"
            " save it again"
        )
    return [there[name] for name in names]


def files_in(folder: Path) -> list[Path]:
    """The files of a space that is a folder: its parts, else all."""
    return parts_of(folder) or _files(folder)


def is_one_space(folder: Path) -> bool:
    """Whether a folder has parts that make one space; False where what names them is damaged."""
    with suppress(SpaceError, OSError):
        return bool(parts_of(folder))
    return False


def series_of(folder: Path, is_space: Callable[[Path], bool]) -> list[Path]:
    """The spaces in a folder, in natural order: its vector files, and its sub-folders that hold one space
    each.

    Parameters
    ----------
    folder : Path
        A folder such as "checkpoints", with step-100.npy, step-200.npy, … or step-100/embeddings.npy, …
    is_space : path → bool
        Whether a file holds vectors.

    Raises
    ------
    SpaceError
        There is none, or more than 500.
    """
    spaces = _vector_files(folder, is_space)
    for child in folder.iterdir():
        if not child.name.startswith(".") and _may_read(folder, child) and child.is_dir():
            inner = [child] if parts_of(child) else _vector_files(child, is_space)
            spaces += inner if len(inner) == 1 else []
    if not 0 < len(spaces) <= MOST_SPACES:
        raise SpaceError(
            f"{folder}: expected 1 to {MOST_SPACES} vector files, or folders that hold one each, got"
            f" {len(spaces) or 'none'}; name one of the files, or another folder"
        )
    return sorted(spaces, key=natural)


def vector_places(folder: Path) -> Iterator[Path]:
    """Vector files, and folders that are one space each, whose files are not listed on their own."""
    spaces: set[Path] = set()
    for pattern in ("*", "*/*", "*/*/*"):
        for path in sorted(folder.glob(pattern), key=natural):
            if path.parent in spaces or not access.may_read(path):
                continue
            if path.is_dir() and is_one_space(path):
                spaces.add(path)
            if path in spaces or (suffix_of(path) and path.is_file()):
                yield path


def read_parts(
    folder: Path,
    read: Callable[[Path, int | None], tuple[Any, dict[str, Any]]],
    limit: int | None,
    max_bytes: int,
) -> tuple[Any, dict[str, Any]]:
    """The vectors and the columns of all parts of a folder, one after the other, as `read(part, limit)` gives
    them: on disk where all are.
    """
    vectors, columns, n = [], {}, 0
    for part in parts_of(folder):
        if n == limit:
            break
        rows, cells = read(part, None if limit is None else limit - n)
        got = rows.shape[1], sorted(cells)
        before = (vectors[0].shape[1], sorted(columns)) if vectors else got
        if got != before:
            raise SpaceError(
                f"{folder.name}, {part.name}: expected vectors of {before[0]} numbers with columns"
                f" {before[1]} as in the files before it, got {got[0]} numbers with {got[1]}; write the"
                " parts again"
            )
        n += len(rows)
        if not isinstance(rows, MappedRows):
            check_size(folder, n, rows.shape[1], max_bytes)
        vectors.append(rows)
        for name, items in cells.items():
            columns.setdefault(name, []).extend(items)
    if all(isinstance(rows, MappedRows) for rows in vectors):
        return MappedRows.joined(vectors, JoinedOrigin(vectors)), columns
    whole = np.concatenate([np.asarray(rows) for rows in vectors])
    whole.flags.writeable = False
    return whole, columns


def _vector_files(folder: Path, is_space: Callable[[Path], bool]) -> list[Path]:
    """The files that hold vectors; texts and tables only where nothing else does."""
    spaces = list(islice(filter(is_space, _files(folder)), MOST_SPACES + 1))
    return [path for path in spaces if path.suffix.lower() not in _TEXTS] or spaces


def _files(folder: Path) -> list[Path]:
    children = (path for path in sorted(folder.iterdir(), key=natural) if not path.name.startswith("."))
    return [path for path in children if _may_read(folder, path) and path.is_file()]


def _may_read(folder: Path, path: Path) -> bool:
    """Whether a child of an open folder may be read: always, unless it is a link that leads out."""
    return access.beside(folder / "x", path)
