"""The glossary card. It shows the entry of a clicked term beside the term, without another run of the
page."""

from __future__ import annotations

from html import escape
from pathlib import Path

import streamlit as st

from app.glossary.terms import ENTRIES, Term, with_links

_HERE = Path(__file__).parent


def _entry(key: str, entry: Term) -> str:
    source = ""
    if entry.source:
        source = f"<small>{escape(entry.source)}</small>"
    return (
        f'<article data-term="{key}"><h2 tabindex="-1" id="relscope-term-{key}">{escape(entry.title)}</h2>'
        f"{entry.picture}<p>{escape(entry.text)}</p>{source}</article>"
    )


def html() -> str:
    entries = "".join(
        _entry(key, ENTRIES[key]) for key in sorted(ENTRIES, key=lambda key: ENTRIES[key].title)
    )
    return (
        '<div class="relscope-glossary" popover="auto" role="dialog">'
        '<button type="button" aria-label="Close">×</button>'
        f'<h2 tabindex="-1" id="relscope-term-all">Terms</h2>{entries}<a href="#what-all">All terms</a></div>'
    )


_mount = st.components.v2.component(
    "relscope_glossary",
    html=html(),
    css=(_HERE / "card.css").read_text(encoding="utf-8"),
    js=(_HERE / "card.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def caption(text: str) -> None:
    """Draw a caption. The first mention of each term is a link."""
    st.caption(with_links(text))


def draw() -> None:
    """Let every link to a term on the page open the entry of the term."""
    _mount(key="glossary")
