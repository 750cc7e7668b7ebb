"""Scripts for the whole page: the browser's "back" opens the previous place, and menus follow the theme."""

from __future__ import annotations

from pathlib import Path

import streamlit as st


def scripts(*names: str) -> str:
    """The scripts with these names in this folder, joined to one text."""
    return "\n".join((Path(__file__).parent / f"{name}.js").read_text(encoding="utf-8") for name in names)


_mount = st.components.v2.component("relscope_page", js=scripts("page"))


def around_the_page(addresses: list[str]) -> None:
    """Run the scripts of the page. Call this before the address is written. `addresses` are those of all
    places (see `app.places`)."""
    _mount(key="around-the-page", data=addresses, on_back_change=lambda: None)
