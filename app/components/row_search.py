"""row_search: a search box; Python finds the matches while one types, a few at a time: 20,000 options would be 300 KB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

LONGEST_QUERY = 200

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "relscope_row_search",
    css=(_HERE / "row_search.css").read_text(encoding="utf-8"),
    js=(_HERE / "row_search.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True)
class Found:
    """A row in the list of matches: what is sent back for it, its first line, and small print below."""

    id: str
    name: str
    note: str = ""


def row_search(
    key: str, placeholder: str, find: Callable[[str], tuple[Sequence[Found], str]], on_pick: Callable[[str], None]
) -> bool:
    """Draw the box; whether a row was picked. `find` gives the matches of a query, and a line about them."""

    def receive() -> None:
        sent = st.session_state[key].get("picked")
        if isinstance(sent, dict) and isinstance(sent.get("id"), str):
            on_pick(sent["id"])

    query = read_query(st.session_state.get(key))
    matches, told = find(query) if query.strip() else ((), "")
    data = {
        "label": "Search rows",
        "placeholder": placeholder,
        "query": query,
        "matches": list(map(asdict, matches)),
        "told": told,
    }
    found = _mount(key=key, data=data, default={"query": ""}, on_query_change=_nothing, on_picked_change=receive)
    return found.picked is not None


def read_query(state: Any) -> str:
    """What is in the box, cut to `LONGEST_QUERY`; "" at first."""
    query = (state or {}).get("query", "")
    return query[:LONGEST_QUERY] if isinstance(query, str) else ""


def _nothing() -> None:
    """Streamlit keeps the query; the run that follows reads it."""
