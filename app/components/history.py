"""one_entry_each: "back" leads to the place before by one press."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "relscope_history", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def one_entry_each() -> None:
    """Let each place stand in the browser's history once; mounted before the address is written."""
    _mount(key="one-entry-each")
