"""around_the_page: "back" leads to the place before by one press, and menus know whether the app is dark."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "relscope_page", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def around_the_page() -> None:
    """Before the address is written."""
    _mount(key="around-the-page")
