"""The list of spaces that can be loaded, and what the columns of their tables are read as, cached for a moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from relcore import access
from relcore.sources import belonging, catalog, metadata, tables
from relcore.sources.catalog import SpaceSpec
from relcore.sources.columns import NO_CHOICES, Choices, Columns
from relcore.sources.metadata import SUFFIXES

_FEW = 8  # number columns that could still be ids


def available(folder: str | None) -> list[catalog.Entry]:
    """The catalogue; files that come or go are seen within half a minute."""
    return _available(str(access.allowed(folder)) if folder else None)


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _available(folder: str | None) -> list[catalog.Entry]:
    return catalog.available(folder)


def columns_of(spec: SpaceSpec) -> list[str]:
    """The columns that a space could take its ids from: of its metadata, or of its own table; none where it has neither."""
    path = Path(spec.option("metadata") or spec.name)
    if spec.source != "file" or path.suffix.lower() not in SUFFIXES:
        return []
    found = metadata_columns(path) if spec.option("metadata") else column_roles(path)
    roles = ("dimension", "pictures") if found.dimension and found.dimension > _FEW else ("pictures",)
    return [column.name for column in found.columns if column.role not in roles]


def metadata_columns(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """What each column of a table of metadata is read as; looked at again when the file has changed."""
    path = access.regular_file(access.allowed(path))
    about = path.stat()
    return _metadata_columns(str(path), (about.st_mtime_ns, about.st_size), choices)


@st.cache_data(max_entries=32, show_spinner=False)
def _metadata_columns(path: str, stamp: tuple[int, int], choices: Choices) -> Columns:
    return metadata.metadata_columns(Path(path), choices)


def first_cells(path: Path) -> dict[str, list[str]]:
    """The first cells of each column of a table as short texts; of wide tables only the first columns."""
    path = access.regular_file(access.allowed(path))
    about = path.stat()
    return _first_cells(str(path), (about.st_mtime_ns, about.st_size))


@st.cache_data(max_entries=32, show_spinner=False)
def _first_cells(path: str, stamp: tuple[int, int]) -> dict[str, list[str]]:
    return metadata.first_cells(Path(path))


def together(paths: Sequence[Path]) -> list[tuple[Path, Path | None]]:
    """Which files are spaces, each with the table of metadata that belongs to it; see `belonging.joined`."""
    paths = [access.regular_file(access.allowed(path)) for path in paths]
    stamps = [(about.st_mtime_ns, about.st_size) for path in paths if (about := path.stat())]
    return _together(tuple(map(str, paths)), tuple(stamps))


@st.cache_data(max_entries=32, show_spinner="Looking at the files …")
def _together(paths: tuple[str, ...], stamps: tuple[tuple[int, int], ...]) -> list[tuple[Path, Path | None]]:
    tables = {path for path in paths if belonging.is_metadata(Path(path))}
    specs = [SpaceSpec("file", path) for path in sorted(paths, key=lambda path: path in tables)]
    found = belonging.joined(specs, in_order=False)
    return [(Path(one.name), Path(one.option("metadata")) if one.option("metadata") else None) for one in found]


def column_roles(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """What each column of a table is read as; looked at again when the file has changed."""
    path = access.regular_file(access.allowed(path))
    about = path.stat()
    return _column_roles(str(path), (about.st_mtime_ns, about.st_size), choices)


@st.cache_data(max_entries=32, show_spinner=False)
def _column_roles(path: str, stamp: tuple[int, int], choices: Choices) -> Columns:
    return tables.column_roles(Path(path), choices)
