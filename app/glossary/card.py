"""The glossary card: shows a clicked term's entry beside it, without another run of the page."""

from __future__ import annotations

from html import escape
from pathlib import Path

import streamlit as st

from app.glossary.terms import ENTRIES, Term, with_links

_HERE = Path(__file__).parent


def _entry(key: str, entry: Term) -> str:
    source = f"<small>{escape(entry.source)}</small>" if entry.source else ""
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
    """A caption in which the first mention of each term is a link."""
    st.caption(with_links(text))


def draw() -> None:
    """Make all links to terms on the page open their entry."""
    _mount(key="glossary")
