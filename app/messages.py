"""Messages on the page. They are shown as plain text, because an error may quote content of users and
files."""

from __future__ import annotations

import streamlit as st

from app.plain_text import plain


def error(text: object, icon: str = ":material/error:") -> None:
    st.error(plain(text), icon=icon)


def warning(text: object, icon: str = ":material/warning:") -> None:
    st.warning(plain(text), icon=icon)


def info(text: object, icon: str) -> None:
    st.info(plain(text), icon=icon)


def success(text: object) -> None:
    st.success(plain(text), icon=":material/check:")


def toast(text: object) -> None:
    st.toast(plain(text), icon=":material/check:")


def lead(html: str) -> None:
    st.html(f'<p class="relscope-lead">{html}</p>')


def no_anchors() -> None:
    info("No anchors yet: choose some above (★), or pick them in Explore.", ":material/star:")
