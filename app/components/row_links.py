"""row_links: makes the rows of neighbour lists clickable; lists carry ``data-pair``, their rows ``data-row``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

_mount = st.components.v2.component(
    "relscope_row_links",
    js=(Path(__file__).parent / "row_links.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def row_links(key: str, pair: str, n: int, on_pick: Callable[[int], None]) -> None:
    """Listen for all lists of the page; `on_pick` gets a row number below `n` of a list whose ``data-pair`` is `pair`."""

    def receive() -> None:
        row = read_pick(st.session_state[key].get("picked"), pair, n)
        if row is not None:
            on_pick(row)

    _mount(key=key, on_picked_change=receive)


def read_pick(sent: Any, pair: str, n: int) -> int | None:
    """The row that the browser sent; None for another pair's, whose rows are others, and for anything else."""
    if not isinstance(sent, dict) or sent.get("pair") != pair:
        return None
    row = sent.get("row")
    return row if type(row) is int and 0 <= row < n else None
