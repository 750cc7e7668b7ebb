"""Columns of a table: what each is for and why, its first cells, and choosers to change it, before
anything is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app import messages
from app.spaces import catalogue
from relcore.base.errors import SpaceError
from relcore.files.columns import OPTIONS, TEXT_OR, Choices, Columns, overview, shown_name
from relcore.runs.digest import digest_of

_AUTOMATIC = "Automatic"
_NONE = {"id_column": "Row numbers"}
_LABELS = {
    "id_column": "Ids",
    "label_column": "Labels",
    "count_column": "Counts",
    "text_column": "Text",
    "picture_column": "Pictures",
}
_ROLES = {option: role for role, option in OPTIONS.items()}
_HELP = {
    "id_column": "Rows of two spaces are paired by their ids.",
    "label_column": "One category per row, for colours and heads.",
    "count_column": "How often each row occurs; “most frequent” anchors use it.",
    "text_column": "Shown on hover and in the inspector.",
    "picture_column": "Pictures, or the paths of picture files. Shown on hover and in the inspector.",
}
_MOST_NAMES = 2_000  # in a chooser


@dataclass(frozen=True)
class ChosenColumns:
    """What a table is read as: its columns, and the options of its spec."""

    columns: Columns
    options: tuple[tuple[str, str], ...]

    @property
    def shape(self) -> tuple[int | None, int | None]:
        return self.columns.n, self.columns.dimension


def choose_columns(path: Path, *, metadata: bool = False) -> ChosenColumns | None:
    """Draw the columns with their roles and the choosers; None, with a message, while a column is unclear.

    Of a table of metadata all roles are written down as options, so that a later guess changes nothing.
    """
    roles = catalogue.metadata_columns if metadata else catalogue.column_roles
    try:
        found = roles(path)
    except SpaceError as error:
        messages.error(error)
        return None
    try:
        choices = _choosers([column.name for column in found.columns], path, roles)
        found = roles(path, choices)
    except SpaceError as error:
        messages.error(error)
        return None
    _draw(found, path)
    if metadata:
        chosen = {
            option: found.columns[place].name
            for option, role in _ROLES.items()
            if (place := found.place(role)) is not None
        }
    else:
        try:
            found.check(path.name)
        except SpaceError as error:
            messages.warning(error)
            return None
        chosen = {option: value for option in _LABELS if (value := getattr(choices, option)) is not None}
    options = list(chosen.items())
    options += [("ignore", json.dumps(list(choices.ignore), ensure_ascii=False))] if choices.ignore else []
    return ChosenColumns(found, tuple(options))


def _choosers(names: Sequence[str], path: Path, roles: Callable[..., Columns]) -> Choices:
    key = f"columns.{digest_of([str(path), list(names)])[:12]}"
    offered = list(names[:_MOST_NAMES])
    chosen: dict[str, Any] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for option, label in _LABELS.items():
            chosen[option] = st.selectbox(
                label,
                [_AUTOMATIC, _NONE.get(option, "None"), *range(len(offered))],
                format_func=lambda one: one if isinstance(one, str) else shown_name(offered[one]),
                key=f"{key}.{option}",
                help=_HELP[option],
                width=150,
            )
        left_out = st.multiselect(
            "Leave out",
            range(len(offered)),
            format_func=lambda one: shown_name(offered[one]),
            key=f"{key}.ignore",
            placeholder="No column",
            help="Columns that have none of these roles and are no dimensions.",
            width=240,
        )
    named = {option: offered[one] for option, one in chosen.items() if isinstance(one, int)}
    choices = Choices(**named, ignore=tuple(offered[one] for one in left_out))
    for option, one in chosen.items():
        if one == _NONE.get(option, "None"):
            choices = _without(path, choices, option, roles)
    return choices


def _without(path: Path, choices: Choices, option: str, roles: Callable[..., Columns]) -> Choices:
    """The choices that leave out every column which would get this role by itself."""
    while True:
        columns = roles(path, choices).columns
        taken = [column.name for column in columns if column.role == _ROLES[option]]
        if option == "id_column":
            taken += [column.name for column in columns if column.reason == TEXT_OR]
        if not taken:
            return choices
        choices = replace(choices, ignore=(*choices.ignore, *taken))


def _draw(found: Columns, path: Path) -> None:
    table = pd.DataFrame(overview(found), columns=["column", "read as", "why"])
    cells, names = catalogue.first_cells(path), {column.name for column in found.columns}
    # A line of the overview may hold several columns: then the first is shown.
    firsts = [title if title in names else title.partition(" … ")[0] for title in table["column"]]
    for row in range(max(map(len, cells.values()), default=0)):
        table[f"row {row + 1}"] = [cells[name][row] if name in cells else "" for name in firsts]
    st.dataframe(
        table,
        hide_index=True,
        height=min(35 * (len(table) + 1) + 3, 320),
        column_config={
            "column": st.column_config.TextColumn(width=160),
            "read as": st.column_config.TextColumn(width=120),
            "why": st.column_config.TextColumn(width=220),
        },
    )
