"""The user's own features: texts or regular expressions that rows may match."""

from __future__ import annotations

import streamlit as st

from app import messages
from app.page_settings import save_value, saved_value
from app.plain_text import plain_name
from relcore.base.errors import SpaceError
from relcore.explain.columns import CONTAINS, MATCHES, rule_of

_CHOSEN = "explain.own"
_TEXT = "explain.own-text"
_KIND = "explain.own-kind"
_PROBLEM = "explain.own-problem"
_MOST = 6
_KINDS = {CONTAINS: "contains …", MATCHES: "regular expression"}


def chosen() -> tuple[str, ...]:
    """The user's features, which the widgets add and remove, as `Explain` names them."""
    st.segmented_control(
        "Your own feature",
        list(_KINDS),
        format_func=_KINDS.get,
        default=CONTAINS,
        required=True,
        key=_KIND,
        help="Rows whose text or word contains these letters or matches this expression. The feature is"
        " tested like all others.",
    )
    st.text_input(
        "Text of the feature",
        key=_TEXT,
        label_visibility="collapsed",
        placeholder="such as ing",
        on_change=_add,
        width=220,
    )
    own = _saved()
    for feature in own:
        kind, _, text = feature.partition(":")
        st.button(
            f"{kind} “{plain_name(text)}”",
            key=f"explain.own-{feature}",
            icon=":material/close:",
            on_click=_remove,
            args=(feature,),
            help="Remove this feature",
        )
    if problem := st.session_state.pop(_PROBLEM, ""):
        messages.error(problem)
    return own


def _saved() -> tuple[str, ...]:
    """The saved features that can be read. A session file may hold anything."""
    saved = saved_value(_CHOSEN)
    if not isinstance(saved, list):
        return ()
    return tuple(one for one in saved[:_MOST] if isinstance(one, str) and not _problem(one))


def _problem(feature: str) -> str:
    try:
        rule_of(feature)
    except SpaceError as error:
        return str(error)
    return ""


def _add() -> None:
    text = st.session_state[_TEXT].strip()
    if not text:
        return
    feature = f"{st.session_state[_KIND]}{text}"
    present = _saved()
    problem = _problem(feature)
    if len(present) == _MOST and feature not in present:
        problem = f"At most {_MOST} features of your own. Remove one first."
    if problem:
        st.session_state[_PROBLEM] = problem
        return
    save_value(_CHOSEN, list(dict.fromkeys((*present, feature))))
    st.session_state[_TEXT] = ""


def _remove(feature: str) -> None:
    save_value(_CHOSEN, [one for one in _saved() if one != feature])
