"""The list of spaces that can be loaded, and what the columns of their tables are read as, cached for a moment."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from relcore import access
from relcore.sources import catalog, metadata, tables
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


def column_roles(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """What each column of a table is read as; looked at again when the file has changed."""
    path = access.regular_file(access.allowed(path))
    about = path.stat()
    return _column_roles(str(path), (about.st_mtime_ns, about.st_size), choices)


@st.cache_data(max_entries=32, show_spinner=False)
def _column_roles(path: str, stamp: tuple[int, int], choices: Choices) -> Columns:
    return tables.column_roles(Path(path), choices)
