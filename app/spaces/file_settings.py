"""How a file is read: its matrix, its table, and its columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages, sources
from app.plain_text import plain, plain_name
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.numbers import and_list
from relcore.catalog import row_tables
from relcore.catalog.catalog import SpaceSpec
from relcore.files import item_rows, reading
from relcore.files.columns import (
    NO_CHOICES,
    OPTIONS,
    TEXT_OR,
    Choices,
    Columns,
    overview,
    shown_name,
    size_in_words,
)
from relcore.files.table_formats import TABLES
from relcore.runs.entries import digest_of

Result = TypeVar("Result")
Options = tuple[tuple[str, str], ...]  # the options of a `SpaceSpec`
ToLoad = tuple[SpaceSpec, str]  # a spec, and the size of the space in words if it is known
Read = tuple[Columns, Options]  # how to read a table
AUTOMATIC = "Automatic"
_NONE = "None"
_CHOOSERS = {
    "id_column": ("Ids", "Rows of two spaces are paired by their ids."),
    "label_column": ("Labels", "One category per row, for colours and classifiers."),
    "count_column": ("Counts", "How often each row occurs; “most frequent” anchors use it."),
    "text_column": ("Text", "Shown on hover and in the inspector."),
    "picture_column": (
        "Pictures",
        "Pictures, or paths of picture files. Shown on hover and in the inspector.",
    ),
}
_ROLES = {option: role for role, option in OPTIONS.items()}
_MOST_READ = 5_000_000  # numbers of a file that the preview reads, to say whether it has ids and labels
_MOST_NAMES = 2_000  # number of columns offered in a chooser


@compute.cached(128, key=lambda read, path, *settings: (read, path, compute.file_stamps([path]), *settings))
def read_about(read: Callable[..., Result], path: Path, *settings: Any) -> Result:
    """The result of a function that reads a file. The session must have access to the file. If the file has
    changed, it is read again."""
    return read(access.regular_file(access.readable_path(path)), *settings)


@compute.cached(32, key=lambda paths: (paths, compute.file_stamps(paths)))
def tables_of(paths: tuple[Path, ...]) -> dict[Path, Path | None]:
    """A dictionary from each file that is a space to the table that describes its rows, None if there is no
    table."""
    described = {path for path in paths if item_rows.is_metadata(path)}
    specs = [SpaceSpec("file", str(path)) for path in sorted(paths, key=described.__contains__)]
    joined = row_tables.with_their_tables(specs, in_order=False)
    tables = ((Path(spec.name), spec.option("metadata")) for spec in joined)
    return {path: Path(table) if table else None for path, table in tables}


def describe(
    path: Path,
    options: Options,
    limit: int,
    tables: Sequence[Path] = (),
    proposed: Path | None = None,
    known: dict[Path, Read | None] | None = None,
    below: DeltaGenerator | None = None,
) -> ToLoad | None:
    """The spec for a file, with the metadata, columns and matrix that the user chooses. While a choice is
    unclear, a message says so, and None is returned.

    `tables` are tables that may describe the rows of the file, and `proposed` is the most likely one. `known`
    has the result of each table that was read before, and `below` is the container that shows its columns.
    """
    known = {} if known is None else known
    table = None
    if tables:
        table = _choose_table(path, tables, proposed)
    if table and table not in known:
        with (below or st.container()).container(border=True):
            st.markdown(f"**{plain_name(table.name)}**")
            known[table] = choose_columns(table, metadata=True)
    is_table = not table and path.suffix.lower() in TABLES
    if table:
        read = known[table]
    elif is_table:
        read = choose_columns(path)
    else:
        read = None
    matrix = _choose_matrix(path, options)
    if matrix is None or (read is None and (table or is_table)):
        return None
    chosen, (n, dimension) = matrix
    if not is_table and dimension is None:
        compute.load_space(SpaceSpec("file", str(path), limit, options))  # an invalid file raises its error
    if read:
        if is_table:
            n = read[0].n
            dimension = read[0].dimension
        else:
            n = read[0].n if n is None else n
    size = size_in_words(n, dimension, limit)
    if not is_table:
        parts = [size]
        if table:
            parts.append(_joined(path, table, read[0]))
        elif n and dimension and n * dimension <= _MOST_READ:
            parts.append(_found_in(SpaceSpec("file", str(path), limit, (*options, *chosen))))
        st.caption(". ".join(filter(None, parts)))
    options = (*options, *chosen)
    if table:
        options = (*options, ("metadata", str(table)))
    if read:
        options = (*options, *read[1])
    return SpaceSpec("file", str(path), limit, options), size


def _choose_matrix(path: Path, options: Options) -> tuple[Options, tuple[int | None, int | None]] | None:
    """The options that choose a matrix in the file, and its shape if it is known. Returns None until the user
    has chosen a matrix."""
    about = None
    if access.readable_path(path).is_file():
        about = read_about(reading.description_of, path)
    if about:
        matrices = about.choosable
        usual = about.usual
    else:
        matrices = {}
        usual = None
    if named := dict(options).get("matrix"):
        return (), matrices.get(named, (None, None))
    if len(matrices) < 2:
        return (), reading.shape_of(path) or (None, None)
    names = list(matrices)
    chosen = st.selectbox(
        "Matrix",
        names,
        index=None if usual is None else names.index(usual),
        format_func=lambda name: f"{name} · {size_in_words(*matrices[name])}",
        key=f"import.matrix-{digest_of([str(path), *names])[:12]}",
        placeholder="Choose a matrix",
        help="The array, tensor or layer of the file that has a vector for each row.",
        width=400,
    )
    if chosen is None:
        messages.warning(f"{path.name} has {len(names):,} matrices. Choose the one to load.")
        return None
    if chosen == usual:
        return (), matrices[chosen]
    return (("matrix", chosen),), matrices[chosen]


def _found_in(spec: SpaceSpec) -> str:
    """A sentence on the ids and labels that a file of vectors has."""
    space = compute.load_space(spec)
    names = []
    if not row_tables.is_numbered(space):
        names.append("ids")
    if space.labels is not None:
        names.append("labels")
    if not names:
        return "No ids and no labels found"
    return f"Found: {and_list(names)}"


def _joined(path: Path, table: Path, columns: Columns) -> str:
    """A sentence on how `read_metadata` joins a table to a file of vectors."""
    if columns.place("ids") is not None and path.suffix.lower() != ".npy":
        return f"{plain_name(table.name)} is joined by id if this file has ids, else by row order."
    return f"Row 1 of {plain_name(table.name)} describes row 1 of this file, and so on."


def _choose_table(path: Path, tables: Sequence[Path], proposed: Path | None) -> Path | None:
    index = 0
    if proposed in tables:
        index = 1 + tables.index(proposed)
    chosen = st.selectbox(
        "Texts and labels",
        [_NONE, *range(len(tables))],
        index=index,
        format_func=lambda number: number if number == _NONE else tables[number].name,
        key=f"import.metadata-{digest_of([str(path), *map(str, tables)])[:12]}",
        help="The table that gives this file's ids, labels, texts, pictures and counts, one row per vector.",
        width=320,
    )
    if chosen == _NONE:
        return None
    return tables[chosen]


def choose_columns(path: Path, metadata: bool = False) -> Read | None:
    """Draw the columns and their choosers, and return how to read the table. While a column is unclear, a
    message says so, and None is returned.

    For metadata, the options state the role of every column, so a later change of the automatic roles has no
    effect.
    """
    if metadata:
        read = item_rows.metadata_columns
    else:
        read = reading.column_roles
    encoding = sources.choose_encoding(path)
    if encoding is None:
        return None

    def roles(choices: Choices = NO_CHOICES) -> Columns:
        return read_about(read, path, replace(choices, encoding=encoding))

    try:
        choices = _column_choosers([column.name for column in roles().columns], path, roles)
        columns = roles(choices)
    except SpaceError as error:
        messages.error(error)
        return None
    if columns.note:
        st.caption(f"Read with {plain(columns.note)}.")
    _draw_columns(columns, path, encoding)
    if metadata:
        places = {option: columns.place(role) for option, role in _ROLES.items()}
        chosen = {option: columns.columns[at].name for option, at in places.items() if at is not None}
    else:
        try:
            columns.check(path.name)
        except SpaceError as error:
            messages.warning(error)
            return None
        chosen = {option: value for option in _CHOOSERS if (value := getattr(choices, option)) is not None}
    if choices.ignore:
        chosen["ignore"] = json.dumps(list(choices.ignore), ensure_ascii=False)
    if encoding:
        chosen["encoding"] = encoding
    return columns, tuple(chosen.items())


def _column_choosers(names: Sequence[str], path: Path, roles: Callable[[Choices], Columns]) -> Choices:
    key = f"columns.{digest_of([str(path), list(names)])[:12]}"
    offered = list(names[:_MOST_NAMES])
    chosen: dict[str, Any] = {}
    with st.popover("Change columns", icon=":material/view_column:"):
        for option, (label, help_) in _CHOOSERS.items():
            none = _NONE
            if option == "id_column":
                none = "Row numbers"
            chosen[option] = st.selectbox(
                label,
                [AUTOMATIC, none, *range(len(offered))],
                format_func=lambda choice: choice if isinstance(choice, str) else shown_name(offered[choice]),
                key=f"{key}.{option}",
                help=help_,
            )
        left_out = st.multiselect(
            "Leave out",
            range(len(offered)),
            format_func=lambda number: shown_name(offered[number]),
            key=f"{key}.ignore",
            placeholder="No column",
            help="Columns to skip: they are no dimensions and have none of the roles above.",
        )
    named = {option: offered[number] for option, number in chosen.items() if isinstance(number, int)}
    choices = Choices(**named, ignore=tuple(offered[number] for number in left_out))
    for option, number in chosen.items():
        if option in named or number == AUTOMATIC:
            continue
        # Ignore columns that have this role by default, because the user chose no column for it.
        while taken := _columns_of_role(roles(choices), option):
            choices = replace(choices, ignore=(*choices.ignore, *taken))
    return choices


def _columns_of_role(columns: Columns, option: str) -> list[str]:
    ids = option == "id_column"
    role = _ROLES[option]
    return [item.name for item in columns.columns if item.role == role or (ids and item.reason == TEXT_OR)]


def _draw_columns(columns: Columns, path: Path, encoding: str) -> None:
    table = pd.DataFrame(overview(columns), columns=["column", "read as", "why"])
    cells = read_about(item_rows.first_cells, path, 3, encoding)
    names = {column.name for column in columns.columns}
    # A row of the overview may stand for several columns; show the cells of the first.
    firsts = []
    for title in table["column"]:
        if title not in names:
            title = title.partition(" … ")[0]
        firsts.append(title)
    for row in range(max(map(len, cells.values()), default=0)):
        table[f"row {row + 1}"] = [cells[name][row] if name in cells else "" for name in firsts]
    widths = {"column": 160, "read as": 120, "why": 220}
    look = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
    height = min(35 * (len(table) + 1) + 3, 320)
    st.dataframe(table, hide_index=True, height=height, column_config=look)
