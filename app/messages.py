"""Messages on the page: whole texts that are shown as they are, since an error quotes what users and files
bring.
"""

from __future__ import annotations

import streamlit as st

from app.plain_text import plain


def error(text: object, icon: str = ":material/error:") -> None:
    """What went wrong, mostly a SpaceError."""
    st.error(plain(text), icon=icon)


def warning(text: object, icon: str = ":material/warning:") -> None:
    """What the user should know before trusting what is shown."""
    st.warning(plain(text), icon=icon)


def info(text: object, icon: str) -> None:
    """Why nothing is shown yet, and what to do."""
    st.info(plain(text), icon=icon)


def success(text: object) -> None:
    """What is done."""
    st.success(plain(text), icon=":material/check:")


def toast(text: object) -> None:
    """What is done, for some seconds."""
    st.toast(plain(text), icon=":material/check:")


def lead(html: str) -> None:
    """The result of a page in one sentence, as HTML."""
    st.html(f'<p class="relscope-lead">{html}</p>')


def no_anchors() -> None:
    """What a page without anchors shows."""
    info("No anchors yet: choose some in the sidebar, or pick them on the Anchors page.", ":material/star:")
