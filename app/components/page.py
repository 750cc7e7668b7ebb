"""Scripts for the whole page: the browser's "back" opens the previous place, menus follow the theme."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "relscope_page", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def around_the_page() -> None:
    """Run the scripts of the page; call this before the address is written."""
    _mount(key="around-the-page")
