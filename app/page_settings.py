"""Settings of a page that no step of the history holds: they outlive the page, and the saved session brings
them back.

What was saved is data from outside. A value is taken only when a widget of its name is drawn, and only if
that widget offers it: one of its options, a number within its limits. An option that is no plain value is
saved as its digest, so nothing is made from what was saved.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import streamlit as st

from relcore.base.errors import SpaceError
from relcore.base.records import parse
from relcore.runs.digest import digest_of

if TYPE_CHECKING:
    from streamlit.elements.layouts import TabContainer

# What the names of settings begin with.
PAGES = (
    *("across", "audit", "bootstrap", "differences", "drift", "encode", "invert", "languages"),
    *("migrate", "papers", "sets", "stitch", "studies", "threshold", "translate", "words", "worse"),
)
_STATE = "relscope.page-settings"
_MOST = 500  # settings
_LONGEST = 20_000  # characters of one


@dataclass
class _Settings:
    """JSON texts by the key of a widget: those that wait for their widget, and those that differ from its
    usual value.
    """

    waiting: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)


def kept(widget: Callable, *given: Any, **named: Any) -> Any:
    """``kept(st.selectbox, label, options, key=…)``: the widget's value, the one that was saved where it
    still fits.
    """
    call = inspect.signature(widget).bind(*given, **named)
    arguments, settings = call.arguments, _settings()
    key, usual = arguments["key"], _usual(widget.__name__, arguments)
    saved = settings.waiting.pop(key, None)
    if saved is not None and key not in st.session_state:  # what the session itself has set comes first
        for value in _offered(arguments, usual, saved):
            st.session_state[key] = value
    chosen = widget(*call.args, **call.kwargs, persist_state="session")
    text = _text(chosen)
    settings.changed.pop(key, None)
    if text != _text(usual) and len(text) <= _LONGEST and len(settings.changed) < _MOST:
        settings.changed[key] = text
    return chosen


def segments(label: str, options: Sequence | Mapping, key: str, usual: Any = None, **look: Any) -> Any:
    """`kept` of a segmented control of which one is always chosen, at first `usual` or the first; a mapping
    gives the labels, texts or with a title.
    """
    if isinstance(options, Mapping):
        titles = {name: one if isinstance(one, str) else one.title for name, one in options.items()}
        look["format_func"] = titles.get
    default = next(iter(options)) if usual is None else usual
    look = {"default": default, "required": True} | look
    return kept(st.segmented_control, label, list(options), key=key, **look)


def kept_tabs(names: Sequence[str], key: str) -> Sequence[TabContainer]:
    """Tabs of which the open one is remembered when the user comes back to the page."""
    remembered = st.session_state.get(f"{key}:last")
    if st.session_state.get(key) not in names:
        st.session_state[key] = remembered if remembered in names else names[0]
    tabs = st.tabs(names, key=key, on_change="rerun")
    st.session_state[f"{key}:last"] = st.session_state.get(key)
    return tabs


def open_tab(key: str) -> str:
    """The open tab, or the one that was open when the page was left; "" where there was none."""
    name = st.session_state.get(key) or st.session_state.get(f"{key}:last")
    return name if isinstance(name, str) else ""


def saved() -> dict[str, str]:
    """What the saved session keeps: settings that differ from the usual, and those whose page was not
    opened yet.
    """
    return _settings().waiting | _settings().changed


def restore(texts: Mapping[str, str]) -> None:
    """Have widgets begin with what was saved, once they are drawn; what no page knows or is too much is
    left out.
    """
    known = [(key, text) for key, text in texts.items() if key.partition(".")[0] in PAGES]
    st.session_state[_STATE] = _Settings({key: text for key, text in known[:_MOST] if len(text) <= _LONGEST})


def _settings() -> _Settings:
    return st.session_state.setdefault(_STATE, _Settings())


def _usual(name: str, arguments: Mapping[str, Any]) -> Any:
    """The value with which the widget begins where nothing was saved."""
    if name in ("selectbox", "radio"):
        options, index = list(arguments["options"]), arguments.get("index", 0)
        return options[index] if options and index is not None else None
    if "options" in arguments:
        several = name == "multiselect" or arguments.get("selection_mode") == "multi"
        return arguments.get("value" if name == "select_slider" else "default") or ([] if several else None)
    usual = arguments.get("value", False if name in ("toggle", "checkbox") else "")
    number = name in ("number_input", "slider") and usual in ("min", "", None)
    return arguments.get("min_value") if number else usual


def _text(value: Any) -> str:
    """A value as JSON; of an option that is no plain value its digest."""

    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return list(map(plain, value))
        return value if isinstance(value, str | int | float | None) else {"digest": digest_of(value)}

    return json.dumps(plain(value), ensure_ascii=False)


def _offered(arguments: Mapping[str, Any], usual: Any, saved: str) -> list[Any]:
    """The value that the text names, alone in a list, if the widget offers it; else nothing."""
    try:
        value = parse(saved, "setting")
    except SpaceError:
        return []
    several = isinstance(value, list)
    if "options" in arguments:
        options = {_text(option): option for option in arguments["options"]}
        texts = [json.dumps(text, ensure_ascii=False) for text in (value if several else [value])]
        most = arguments.get("max_selections") or len(texts)
        fits = set(texts) <= set(options) and len(set(texts)) == len(texts) <= most
        if not fits or several != isinstance(usual, list | tuple):
            return []
        chosen = [options[text] for text in texts]
        return [chosen] if several else chosen
    fits = type(value) is type(usual)
    if fits and type(value) in (int, float):
        low, high = arguments.get("min_value"), arguments.get("max_value")
        fits = math.isfinite(value) and (low is None or low <= value) and (high is None or value <= high)
    return [value] * fits
