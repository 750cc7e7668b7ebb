"""One file of vectors before it is loaded: which of its matrices, what its columns are, and which table describes its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from app import catalogue, compute, messages
from app.column_panel import ChosenColumns, choose_columns
from relcore.sources.belonging import is_numbered
from relcore.sources.catalog import SpaceSpec, shape_of
from relcore.sources.column_overview import what_loads
from relcore.sources.tables import TABLES
from relcore.spaces import SpaceError
from relcore.store import digest_of

_NO_TABLE = "None"


@dataclass(frozen=True)
class Found:
    """A space in the files, ready to be loaded.

    Attributes
    ----------
    n : int or None
        Its rows, where they are known before it is read.
    numbered : bool
        Its files have no ids, so that its rows are numbered.
    size : str
        ``"12 rows × 4 dimensions"``, as far as it is known.
    """

    spec: SpaceSpec
    n: int | None
    numbered: bool
    size: str


@dataclass(frozen=True)
class ChosenMatrix:
    """The matrix to read: the options of a spec that choose it, and its shape as far as it is known."""

    options: tuple[tuple[str, str], ...]
    shape: tuple[int | None, int | None]


def describe(
    path: Path,
    options: Sequence[tuple[str, str]],
    limit: int,
    table: Path | None = None,
    about: ChosenColumns | None = None,
) -> Found | None:
    """A file with what its table of metadata is read as, or its own columns; None while a column or the matrix is unclear."""
    own = choose_columns(path) if path.suffix.lower() in TABLES and not table else None
    columns = about if table else own
    matrix = choose_matrix(path, options)
    if matrix is None or (columns is None and (table or path.suffix.lower() in TABLES)):
        return None
    options = (*options, *matrix.options)
    numbered = (columns is None or columns.columns.place("ids") is None) and _numbered(path, options)
    options = (*options, *((("metadata", str(table)),) if table else ()), *(columns.options if columns else ()))
    n, dimension = own.shape if own else matrix.shape
    n = about.columns.n if about and n is None else n
    size = what_loads(n, dimension, limit)
    if not own:
        st.caption(f"{size}{' · no ids, so its rows are numbered from 0' * numbered}")
    return Found(SpaceSpec("file", str(path), limit, options), n if n is None else min(n, limit), numbered, size)


def choose_matrix(path: Path, options: Sequence[tuple[str, str]] = ()) -> ChosenMatrix | None:
    """A chooser where a file has several matrices and the options choose none; None, with a message, until one is chosen."""
    matrices, usual = catalogue.matrices(path)
    if named := dict(options).get("matrix"):
        return ChosenMatrix((), matrices.get(named, (None, None)))
    if len(matrices) < 2:
        return ChosenMatrix((), shape_of(path) or (None, None))
    names = list(matrices)
    chosen = st.selectbox(
        "Matrix",
        names,
        index=None if usual is None else names.index(usual),
        format_func=lambda name: f"{name} · {what_loads(*matrices[name])}",
        key=f"import.matrix-{digest_of([str(path), *names])[:12]}",
        placeholder="Choose a matrix",
        help="The array, tensor or layer of the file that has a vector for each row.",
        width=400,
    )
    if chosen is None:
        messages.warning(f"{path.name} has {len(names):,} matrices. Choose the one to load.")
        return None
    return ChosenMatrix((("matrix", chosen),) * (chosen != usual), matrices[chosen])


def choose_table(path: Path, tables: Sequence[Path], proposed: Path | None) -> Path | None:
    """A chooser of the table of metadata; None where there is none, or none is chosen."""
    if not tables:
        return None
    options = [_NO_TABLE, *range(len(tables))]
    chosen = st.selectbox(
        "Metadata",
        options,
        index=options.index(tables.index(proposed)) if proposed in tables else 0,
        format_func=lambda one: one if isinstance(one, str) else tables[one].name,
        key=f"import.metadata-{digest_of([str(path), *map(str, tables)])[:12]}",
        help="The table that gives this file's ids, labels, texts, pictures and counts, one row per vector.",
        width=320,
    )
    return None if chosen == _NO_TABLE else tables[chosen]


def _numbered(path: Path, options: Sequence[tuple[str, str]]) -> bool:
    """Whether the first rows of a file have no ids; False where that cannot be seen yet."""
    matrix = [(name, value) for name, value in options if name == "matrix"]
    try:
        return is_numbered(compute.load_space(SpaceSpec("file", str(path), 3, matrix)))
    except SpaceError:  # told when it is loaded
        return False
