"""A table of all rows beside the map: sorted, searched, and linked with the map in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, session
from app.items import Items, cut, items_of
from app.page_settings import remembered, saved_value
from app.plain_text import plain
from app.selection import selected_rows
from app.tables import rows_of_state
from app.workspace import Workspace
from relcore.base.rows import unit_rows
from relcore.compare.agreement import neighbour_agreement
from relcore.compare.columns import values_of
from relcore.represent.similarity import mean_of
from relcore.spaces.matching import Match, distinct_names, short_names

_OPEN = "explore.table"
_STATE = "relscope.row-table"
_HEIGHT = 330  # pixels
_MOST_ROWS = 20_000  # maximum number of rows in the table
_MOST_TICKED = 1000  # maximum number of rows that are ticked when the map selects them
_COSINE = " · cosine"  # the end of the name of a column
_LONGEST_TITLE = 12  # number of characters that a column shows
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


@dataclass
class _Shown:
    """The table that the browser shows: the ids of its rows in order, the selection and the settings by which
    it was drawn, the selection that its ticks made since, and a number that names its widget."""

    ids: np.ndarray
    selection: tuple[str, ...] = ()
    settings: tuple | None = None
    ticked: tuple[str, ...] | None = None
    number: int = 0

    def tick(self, rows: Sequence[int]) -> tuple[str, ...]:
        """The ids of the ticked rows, which become the selection."""
        self.ticked = tuple(self.ids[list(rows)])
        return self.ticked


def is_open() -> bool:
    return bool(st.session_state.get(_OPEN, saved_value(_OPEN)))


def switch() -> None:
    about = "All rows in a table beside the map. Rows selected in one are selected in the other."
    remembered(st.toggle, "Table", key=_OPEN, help=about)


def draw(workspace: Workspace, pair: Match) -> None:
    """Draw the table, with a box that searches it and the order of its rows."""
    chosen, selected = selected_rows(pair)
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
            list(_ORDERS),
            format_func=_ORDERS.get,
            label_visibility="collapsed",
            key="row-table.order",
            width=185,
        )
        only = remembered(st.toggle, "Selected only", key="row-table.only")
    shown: _Shown = st.session_state.setdefault(_STATE, _Shown(np.empty(0, dtype=object)))
    settings = (compute.pair_key(pair), query, order, only, workspace.tags)
    # Ticks change no order, so that the rows stay under the pointer, except in an order that depends on them.
    by_ticks = shown.ticked == chosen and shown.settings == settings
    if not by_ticks or order == _NEAREST:
        if (shown.selection, shown.settings) != (chosen, settings):
            shown.number += 1
        shown.selection = chosen
        shown.settings = settings
        shown.ticked = None
    marked = np.flatnonzero(pair.source.index.isin(list(shown.selection)))
    table = _table(workspace, pair, selected, items_of(workspace))
    table = _sorted(_found(table, query), order, marked)
    if only:
        table = table[table.index.isin(marked)]
    n = len(table)
    table = table[:_MOST_ROWS]
    shown.ids = table["id"].to_numpy()
    _draw(table, shown, np.flatnonzero(table.index.isin(marked)))
    st.caption(_about(pair, n, table, len(selected)))


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
    return compute.rows_table(pair, workspace, np.arange(len(pair)), items)


def _known(pair: Match, workspace: Workspace, items: Items | None) -> pd.DataFrame:
    return _known_rows(pair, workspace, items).copy(deep=False)


@compute.cached(4, "Comparing neighbourhoods …")
def _agreement(pair: Match) -> np.ndarray:
    """The share of the neighbours of each row that both models have, (n,). Of more rows than
    `_MOST_ROWS`, only a sample is compared; the others are NaN."""
    rows = np.arange(len(pair))
    if len(pair) > _MOST_ROWS:
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
    if not len(marked):
        return table
    if order == _NEAREST:
        near = table.filter(like=_COSINE).mean(axis=1)
        return table.loc[near.sort_values(ascending=False, kind="stable").index]
    is_marked = table.index.isin(marked)
    return pd.concat([table[is_marked], table[~is_marked]])


def _draw(table: pd.DataFrame, shown: _Shown, ticked: np.ndarray) -> None:
    key = f"row-table-{shown.number}"

    def brush() -> None:
        session.select(shown.tick(rows_of_state(st.session_state[key])))

    number = partial(st.column_config.NumberColumn, format="%.2f", width=100)
    look = {"agreement": number(help="The share of a row's 50 nearest rows that both models have")}
    for column in table.filter(like=_COSINE):
        name = column.removesuffix(_COSINE)
        about = plain(f"Cosine in {name} with the mean of the selected rows, after centring")
        look[column] = number(cut(name, _LONGEST_TITLE), help=about)
    default = None
    if 0 < len(ticked) <= _MOST_TICKED:
        default = {"selection": {"rows": ticked.tolist()}}
    st.dataframe(
        table,
        key=key,
        height=_HEIGHT,
        hide_index=True,
        on_select=brush,
        selection_mode=("multi-row", "single-cell"),
        selection_default=default,
        column_config=look,
    )


def _about(pair: Match, n_found: int, table: pd.DataFrame, n_selected: int) -> str:
    """A caption: how many rows the table has, and what its numbers are."""
    parts = [f"{len(table):,} of {len(pair):,} rows, {n_selected:,} selected."]
    if n_found > len(table):
        parts.append("Search or select to see others.")
    parts.append("Agreement: the share of a row’s 50 nearest rows that both models have.")
    if len(pair) > _MOST_ROWS:
        parts.append("It is known for a sample of the rows.")
    if len(table.filter(like=_COSINE).columns):
        parts.append("Under the name of a model: cosine with the mean of the selected rows, after centring.")
    return " ".join(parts)
