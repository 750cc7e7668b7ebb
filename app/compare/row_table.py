"""A table of all rows beside the map: sorted, searched, and linked with the map in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, session
from app.items import Items, cut, items_of
from app.page_settings import remembered, saved_value
from app.plain_text import plain
from app.selection import selected_rows
from app.tables import short_numbers
from app.workspace import Workspace
from relcore.base.numbers import counted
from relcore.base.rows import unit_rows
from relcore.catalog.cells import numbers_in
from relcore.compare.agreement import neighbour_agreement
from relcore.compare.columns import values_of
from relcore.figures.colorings import number_text
from relcore.represent.similarity import mean_of
from relcore.spaces.matching import Match, distinct_names, short_names

_OPEN = "explore.table"
_STATE = "relscope.row-table"
_HEIGHT = 250  # pixels, so that the neighbours of a row are in sight below
_MOST_ROWS = 5_000  # maximum number of rows in the table, because all of its numbers are written out
_MOST_CELLS = 200_000
_MOST_COMPARED = 20_000  # maximum number of rows whose neighbourhoods are compared
_MOST_TICKED = 1000  # maximum number of rows that are ticked when the map selects them
_COSINE = " · cosine"  # the end of the name of a column
_LONGEST_TITLE = 18  # number of characters that a column shows
_LETTER = 7.5  # width of a character of a title, pixels
_SELECTED = "selected first"
_LEAST = "agreement, lowest first"
_MOST = "agreement, highest first"
_NEAREST = "nearest to the selection"
_ORDERS = {
    _SELECTED: "Selected first",
    _LEAST: "Agreement, lowest first",
    _MOST: "Agreement, highest first",
    _NEAREST: "Nearest to the selection",
}
_ENDS = (", highest first", ", lowest first")  # the ends of the orders by other columns of numbers


@dataclass
class _Shown:
    """The table that the browser shows: the ids of its rows in order, the selection and the settings by which
    it was drawn, the selection that was made in it since, the cell that was clicked, and a number that names
    its widget."""

    ids: np.ndarray
    selection: tuple[str, ...] = ()
    settings: tuple | None = None
    chosen: tuple[str, ...] | None = None
    cell: tuple[int, str] | None = None
    number: int = 0

    def choose(self, ticked: Sequence[int], cells: Sequence[tuple[int, str]]) -> tuple[str, ...]:
        """The ids that become the selection: of the row whose cell was clicked now or, if none was, of the
        ticked rows. A click takes ticks away, for which the table gets a new widget."""
        rows = list(ticked)
        cell = None
        if cells:
            cell = cells[0]
        if cell not in (None, self.cell):
            rows = [cell[0]]
            if ticked:
                self.number += 1
        self.cell = cell
        self.chosen = tuple(self.ids[rows])
        return self.chosen

    def default(self, marked: Sequence[int]) -> dict[str, Any] | None:
        """What a new widget shows as selected: the clicked cell or else, if they are few, the marked
        rows."""
        if self.cell:
            return {"selection": {"cells": [self.cell]}}
        if 0 < len(marked) <= _MOST_TICKED:
            return {"selection": {"rows": list(marked)}}
        return None


def is_open() -> bool:
    return bool(st.session_state.get(_OPEN, saved_value(_OPEN)))


def switch() -> None:
    about = "All rows in a table beside the map. Rows selected in one are selected in the other."
    remembered(st.toggle, "Table", key=_OPEN, help=about)


def draw(workspace: Workspace, pair: Match) -> None:
    """Draw the table, with a box that searches it and the order of its rows."""
    _, selected = selected_rows(pair)
    table = _table(workspace, pair, selected, items_of(workspace))
    query, order = _choosers(table)
    with st.container(horizontal=True, vertical_alignment="center", key="row-table-state"):
        only = remembered(st.toggle, "Selected only", key="row-table.only")
        about = st.empty()
    shown: _Shown = st.session_state.setdefault(_STATE, _Shown(np.empty(0, dtype=object)))
    _follow(shown, pair, order, (query, order, only, workspace.tags, workspace.look.filter))
    marked = np.flatnonzero(pair.source.index.isin(list(shown.selection)))
    kept = table[compute.passing_rows(pair, workspace)]
    table = _sorted(_found(kept, query), order, marked)
    if only:
        table = table[table.index.isin(marked)]
    n = len(table)
    table = table[: min(_MOST_ROWS, _MOST_CELLS // table.shape[1])]
    shown.ids = table["id"].to_numpy()
    about.caption(_about(pair, n, len(table), len(kept), len(selected)))
    _draw(table, shown, np.flatnonzero(table.index.isin(marked)).tolist())


def _choosers(table: pd.DataFrame) -> tuple[str, str]:
    """Draw the box that searches the table, and the choice of the order of its rows."""
    numbers = table.select_dtypes("number").columns.difference(["agreement"], sort=False)
    by_numbers = [f"{name}{end}" for name in numbers if not name.endswith(_COSINE) for end in _ENDS]
    with st.container(horizontal=True, vertical_alignment="center", key="row-table-choosers"):
        query = st.text_input(
            "Search the table",
            placeholder="Search the table",
            label_visibility="collapsed",
            key="row-table.query",
        )
        order = remembered(
            st.selectbox,
            "Order",
            [*_ORDERS, *by_numbers],
            format_func=lambda name: _ORDERS.get(name, f"{name[0].upper()}{name[1:]}"),
            label_visibility="collapsed",
            key="row-table.order",
            width=220,
        )
    return query, order


def _follow(shown: _Shown, pair: Match, order: str, settings: tuple) -> None:
    """Take the selection and the settings. A choice in the table changes no order, so that the rows stay
    under the pointer, except in an order that depends on it."""
    chosen, _ = selected_rows(pair)
    settings = (compute.pair_key(pair), *settings)
    if shown.chosen == chosen and shown.settings == settings and order != _NEAREST:
        return
    if (shown.selection, shown.settings) != (chosen, settings):
        shown.number += 1
        shown.cell = None
    shown.selection = chosen
    shown.settings = settings
    shown.chosen = None


def _table(workspace: Workspace, pair: Match, selected: np.ndarray, items: Items | None) -> pd.DataFrame:
    """All rows: what is known about them, their agreement, and their cosines with the selected rows."""
    table = _known(pair, workspace, items)
    names, _ = short_names(distinct_names((pair.source, pair.target)))
    if len(selected):
        for name, cosines in zip(names[::-1], _similarities(pair, selected)[::-1], strict=True):
            table.insert(1, f"{name}{_COSINE}", cosines)
    table.insert(1, "agreement", _agreement(pair))
    return table


def _known_key(pair: Match, workspace: Workspace, items: Items | None) -> tuple:
    ends = (workspace.source, workspace.target)
    return (pair, items, workspace.tags, *((end, compute.table_stamp(end)) for end in ends))


@compute.cached(2, "Reading the columns …", key=_known_key)
def _known_rows(pair: Match, workspace: Workspace, items: Items | None) -> pd.DataFrame:
    table = compute.rows_table(pair, workspace, np.arange(len(pair)), items)
    written = table.select_dtypes(exclude=["number", "bool"]).columns.difference(["id", "text", "label"])
    for name in written:
        numbers = numbers_in(table[name].tolist())
        if numbers is not None:
            table[name] = numbers
    return table


def _known(pair: Match, workspace: Workspace, items: Items | None) -> pd.DataFrame:
    return _known_rows(pair, workspace, items).copy(deep=False)


@compute.cached(4, "Comparing neighbourhoods …")
def _agreement(pair: Match) -> np.ndarray:
    """The share of the neighbours of each row that both models have, (n,). Of more rows than
    `_MOST_COMPARED`, only a sample is compared; the others are NaN."""
    rows = np.arange(len(pair))
    if len(pair) > _MOST_COMPARED:
        return values_of(pair, "agreement", rows)
    compared = neighbour_agreement(pair, rows)
    shares = np.empty(len(pair))
    shares[compared["row"]] = compared["overlap"]
    return shares


@compute.cached(8)
def _similarities(pair: Match, rows: np.ndarray) -> list[np.ndarray]:
    """For each model, the cosine of every row with the mean of these rows (m,), after centring: arrays
    (n,)."""
    similarities = []
    for space in (pair.source, pair.target):
        mean = mean_of(space)
        unit = unit_rows(space.vectors, mean)
        similarities.append(unit @ unit_rows(unit[rows].mean(axis=0, keepdims=True))[0])
    return similarities


def _found(table: pd.DataFrame, query: str) -> pd.DataFrame:
    """The rows in which an id, a text or a class contains the query: first the row with this id, then those
    whose id begins with it. Case does not matter."""
    wanted = " ".join(query.casefold().split())
    if not wanted:
        return table
    met = np.zeros(len(table), dtype=bool)
    for name in table.select_dtypes(exclude=["number", "bool"]):
        written = table[name].fillna("").astype(str).str.casefold()
        met |= written.str.contains(wanted, regex=False).to_numpy(dtype=bool)
    ids = table["id"].astype(str).str.casefold()[met]
    rank = pd.Series(2, index=ids.index).mask(ids.str.startswith(wanted), 1).mask(ids.eq(wanted), 0)
    return table[met].loc[rank.sort_values(kind="stable").index]


def _sorted(table: pd.DataFrame, order: str, marked: np.ndarray) -> pd.DataFrame:
    """The table in this order. Without selected rows, an order that needs them leaves it as it is."""
    if order in (_LEAST, _MOST):
        return table.sort_values("agreement", ascending=order == _LEAST, kind="stable")
    for end, ascending in zip(_ENDS, (False, True), strict=True):
        if order.endswith(end):
            return table.sort_values(order.removesuffix(end), ascending=ascending, kind="stable")
    if not len(marked):
        return table
    if order == _NEAREST:
        near = table.filter(like=_COSINE).mean(axis=1)
        return table.loc[near.sort_values(ascending=False, kind="stable").index]
    is_marked = table.index.isin(marked)
    return pd.concat([table[is_marked], table[~is_marked]])


def _draw(table: pd.DataFrame, shown: _Shown, marked: list[int]) -> None:
    key = f"row-table-{shown.number}"

    def brush() -> None:
        selection = st.session_state[key].selection
        session.select(shown.choose(selection.rows, list(map(tuple, selection.cells))))

    look = {"agreement": _column("agreement", "The share of a row's 50 nearest rows that both models have")}
    for column in table.filter(like=_COSINE):
        name = column.removesuffix(_COSINE)
        about = plain(f"Cosine in {name} with the mean of the selected rows, after centring")
        look[column] = _column(cut(name, _LONGEST_TITLE), about)
    written = short_numbers(table, 2)
    others = table.select_dtypes("float").columns.difference(list(look))
    written.format(number_text, subset=list(others), na_rep="")
    st.dataframe(
        written,
        key=key,
        height=_HEIGHT,
        hide_index=True,
        on_select=brush,
        selection_mode=("multi-row", "single-cell"),
        selection_default=shown.default(marked),
        column_config=look,
    )


def _column(title: str, about: str) -> Any:
    """A column of numbers with two decimals, as wide as its title."""
    width = max(70, round(_LETTER * len(title)) + 24)
    return st.column_config.NumberColumn(title, help=about, width=width)


def _about(pair: Match, n_found: int, n_shown: int, n_kept: int, n_selected: int) -> str:
    """A caption: how many rows the table has, and why it has no more."""
    among = counted(n_kept, "row")
    if n_kept < len(pair):
        among += " in the filter"
    parts = [f"{n_shown:,} of {among}"]
    if n_shown < n_found:
        parts[0] = f"First {parts[0]}"
    if n_selected:
        parts.append(f"{n_selected:,} selected")
    return " · ".join(parts)
