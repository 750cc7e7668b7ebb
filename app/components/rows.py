"""Clickable rows of neighbour lists (`row_links`), and a search box. In the HTML, each list has the attribute
``data-pair``, and each of its rows the attribute ``data-row``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

_mount = st.components.v2.component(
    "relscope_row_links",
    js=(Path(__file__).parent / "row_links.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def row_links(key: str, pair: str, n: int, on_pick: Callable[[int], None]) -> None:
    """Make the rows of all neighbour lists on the page clickable. After a click in a list of `pair`,
    `on_pick` gets the number of the row, which is below `n`."""

    def receive() -> None:
        row = read_pick(st.session_state[key].get("picked"), pair, n)
        if row is not None:
            on_pick(row)

    _mount(key=key, on_picked_change=receive)


def read_pick(sent: Any, pair: str, n: int) -> int | None:
    """The row number that the browser sent. Returns None if the number is invalid or belongs to another
    pair."""
    if not isinstance(sent, dict) or sent.get("pair") != pair:
        return None
    row = sent.get("row")
    if type(row) is int and 0 <= row < n:
        return row
    return None


# `row_search` is a search box. Python sends a few matches for each query, because 20,000 options would take
# 300 KB.

LONGEST_QUERY = 60_000  # characters; a vector of 3,072 numbers needs about 40,000

_HERE = Path(__file__).parent
_mount_of_row_search = st.components.v2.component(
    "relscope_row_search",
    css=(_HERE / "row_search.css").read_text(encoding="utf-8"),
    js=(_HERE / "row_search.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True)
class SearchAnswer:
    """A search result: the id that the browser returns if the user picks it, its first line, and its small
    print."""

    id: str
    name: str
    note: str = ""


def row_search(
    key: str,
    placeholder: str,
    find: Callable[[str], tuple[Sequence[SearchAnswer], str]],
    on_pick: Callable[[str, str], None],
) -> bool:
    """Draw a search box. Returns True if the user picked a result. The function `find` returns the results of
    a query, and a line of text about them. `on_pick` gets the id of the picked result and the query."""

    def receive() -> None:
        sent = st.session_state[key].get("picked")
        if isinstance(sent, dict) and isinstance(sent.get("id"), str):
            on_pick(sent["id"], read_query(sent))

    query = read_query(st.session_state.get(key))
    if query.strip():
        matches, note = find(query)
    else:
        matches = ()
        note = ""
    data = {
        "label": "Search rows",
        "placeholder": placeholder,
        "query": query,
        "matches": list(map(asdict, matches)),
        "told": note,
    }
    # The callback need not do anything: Streamlit keeps the query for the next run.
    state = _mount_of_row_search(
        key=key, data=data, default={"query": ""}, on_query_change=lambda: None, on_picked_change=receive
    )
    return state.picked is not None


def read_query(state: Any) -> str:
    query = (state or {}).get("query", "")
    if isinstance(query, str):
        return query[:LONGEST_QUERY]
    return ""
