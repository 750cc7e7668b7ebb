"""The list of spaces that can be loaded, and what the columns of their tables are read as, cached for a
moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from app.compute import cached
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog import catalog
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.row_tables import joined as joined_files
from relcore.files import items, reading
from relcore.files.columns import NO_CHOICES, Choices, Columns
from relcore.files.items import SUFFIXES, is_metadata
from relcore.files.series import series_around, series_of

Result = TypeVar("Result")
_MOST_TABLES = 50  # in one folder
_FEW = 8  # number columns that could still be ids


def available(folder: str | None) -> list[catalog.CatalogEntry]:
    """The catalogue; files that come or go are seen within half a minute."""
    return _available(str(access.allowed(folder)) if folder else None)


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _available(folder: str | None) -> list[catalog.CatalogEntry]:
    return catalog.available(folder)


def columns_of(spec: SpaceSpec) -> list[str]:
    """The columns that a space could take its ids from: of its metadata, or of its own table; none where
    it has neither.
    """
    path = Path(spec.option("metadata") or spec.name)
    if spec.source != "file" or path.suffix.lower() not in SUFFIXES:
        return []
    found = metadata_columns(path) if spec.option("metadata") else column_roles(path)
    roles = ("dimension", "pictures") if found.dimension and found.dimension > _FEW else ("pictures",)
    return [column.name for column in found.columns if column.role not in roles]


def _read(read: Callable[..., Result], path: Path, *settings: Any) -> Result:
    """What a function reads of a file that this session may open; read again when the file has changed."""
    path = access.regular_file(access.allowed(path))
    about = path.stat()
    return _kept(read, path, (about.st_mtime_ns, about.st_size), *settings)


@cached(128)
def _kept(read: Callable[..., Result], path: Path, stamp: tuple[int, int], *settings: Any) -> Result:
    return read(path, *settings)


def metadata_columns(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """What each column of a table of metadata is read as."""
    return _read(items.metadata_columns, path, choices)


def column_roles(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """What each column of a table is read as."""
    return _read(reading.column_roles, path, choices)


def first_cells(path: Path) -> dict[str, list[str]]:
    """The first cells of each column of a table as short texts; of wide tables only the first columns."""
    return _read(items.first_cells, path)


def matrices(path: Path) -> tuple[dict[str, tuple[int, int]], str | None]:
    """The matrices of a file by name, and the one that is read where none is chosen; ({}, None) where it
    has no names.
    """
    return _read(_matrices, path) if access.allowed(path).is_file() else ({}, None)


def _matrices(path: Path) -> tuple[dict[str, tuple[int, int]], str | None]:
    description = reading.description_of(path)
    return description.choosable, description.usual


def tables_beside(path: Path) -> list[Path]:
    """Tables without vectors in the folder of a file: they may describe its rows."""
    return [Path(one) for one in _tables_beside(str(access.allowed(path).parent)) if access.may_read(one)]


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _tables_beside(folder: str) -> list[str]:
    tables = (one for one in sorted(Path(folder).iterdir()) if one.suffix.lower() in SUFFIXES)
    return [str(one) for one in islice(tables, _MOST_TABLES) if is_metadata(one)]


def series(folder: str | None, path: Path | None = None) -> list[Path]:
    """The spaces of one series, such as checkpoints: those around a file of the catalogue, else those of
    the data folder.
    """
    known = {Path(entry.spec.name) for entry in available(folder) if entry.spec.source == "file"}
    root = access.allowed(folder) if folder else access.data_folder()
    if path is not None:
        return series_around(path, known, root) if root else []
    try:
        return series_of(root, known.__contains__) if folder else []
    except (SpaceError, OSError):
        return []


def together(paths: Sequence[Path]) -> list[tuple[Path, Path | None]]:
    """Which files are spaces, each with the table of metadata that belongs to it; see `row_tables.joined`."""
    paths = [access.regular_file(access.allowed(path)) for path in paths]
    stamps = [(about.st_mtime_ns, about.st_size) for path in paths if (about := path.stat())]
    return _together(tuple(paths), tuple(stamps))


@cached(32, "Looking at the files …")
def _together(paths: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> list[tuple[Path, Path | None]]:
    described = {path for path in paths if is_metadata(path)}
    specs = [SpaceSpec("file", str(path)) for path in sorted(paths, key=lambda path: path in described)]
    joined = joined_files(specs, in_order=False)
    return [
        (Path(spec.name), Path(spec.option("metadata")) if spec.option("metadata") else None)
        for spec in joined
    ]
