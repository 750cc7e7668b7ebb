"""Settings of a page that no step of the history holds: they outlive the page, and the saved session brings
them back.

What was saved is data from outside. A value is taken only when a widget of its name is drawn, and only if
that widget offers it: one of its options, a number within its limits. Everything else is dropped. An option
that is no plain value is saved as its digest, so nothing is made from what was saved.
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

PAGES = (
    "across",
    "bootstrap",
    "invert",
    "languages",
    "papers",
    "stitch",
    "studies",
)
PAGES += ("translate", "words")  # what the names of settings begin with
_STATE = "relscope.page-settings"
_MOST = 500  # settings
_LONGEST = 20_000  # characters of one
_CHOICES = {"selectbox": "index", "radio": "index", "multiselect": "default", "pills": "default"}
_CHOICES |= {"segmented_control": "default", "select_slider": "value"}  # and what their usual value is called
_NUMBERS = ("number_input", "slider")
_UNFIT = object()


@dataclass
class _Settings:
    """JSON texts by the key of a widget: those that wait for their widget, and those that differ from its
    usual value.
    """

    waiting: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    restored: dict[str, Any] = field(default_factory=dict)  # the values with which widgets began


def kept(widget: Callable, *given: Any, **named: Any) -> Any:
    """``kept(st.selectbox, label, options, key=…)``: the widget's value, the one that was saved where it
    still fits.
    """
    call = inspect.signature(widget).bind(*given, **named)
    arguments, settings = call.arguments, _settings()
    name, key = widget.__name__, arguments["key"]
    place, usual = _CHOICES.get(name, "value"), _token(_usual(name, arguments))
    if key in settings.waiting:
        value = _fitting(name, arguments, settings.waiting.pop(key))
        if value is not _UNFIT and key not in st.session_state:  # what the session itself has set comes first
            settings.restored[key] = value
    if key in settings.restored and _accepts(name, arguments, settings.restored[key]):
        value = settings.restored[key]
        arguments[place] = list(arguments["options"]).index(value) if place == "index" else value
    arguments["persist_state"] = "session"
    chosen = widget(*call.args, **call.kwargs)
    if (token := _token(chosen)) == usual:
        settings.changed.pop(key, None)
    elif len(token) <= _LONGEST and (key in settings.changed or len(settings.changed) < _MOST):
        settings.changed[key] = token
    return chosen


def kept_tabs(names: Sequence[str], key: str) -> Sequence[TabContainer]:
    """Tabs of which the open one is remembered when the user comes back to the page."""
    remembered = st.session_state.get(last := f"{key}:last")
    if st.session_state.get(key) not in names:
        st.session_state[key] = remembered if remembered in names else names[0]
    tabs = st.tabs(names, key=key, on_change="rerun")
    st.session_state[last] = st.session_state.get(key)
    return tabs


def open_tab(key: str) -> str:
    """The open tab, or the one that was open when the page was left; "" where there was none."""
    found = st.session_state.get(key) or st.session_state.get(f"{key}:last")
    return found if isinstance(found, str) else ""


def saved() -> dict[str, str]:
    """What the saved session keeps: settings that differ from the usual, and those whose page was not
    opened yet.
    """
    settings = _settings()
    return settings.waiting | settings.changed


def restore(found: Mapping[str, str]) -> None:
    """Have widgets begin with what was saved, once they are drawn; what no page knows or is too much is
    left out.
    """
    known = [
        (key, text) for key, text in found.items() if key.partition(".")[0] in PAGES and len(text) <= _LONGEST
    ]
    st.session_state[_STATE] = _Settings(dict(known[:_MOST]))


def _settings() -> _Settings:
    if _STATE not in st.session_state:
        st.session_state[_STATE] = _Settings()
    return st.session_state[_STATE]


def _usual(name: str, arguments: Mapping[str, Any]) -> Any:
    """The value with which the widget begins where nothing was saved."""
    if name in _CHOICES:
        options, usual = (
            list(arguments["options"]),
            arguments.get(_CHOICES[name], 0 if _CHOICES[name] == "index" else None),
        )
        if _CHOICES[name] == "index":
            return None if usual is None or not options else options[usual]
        return [] if usual is None and _several(name, arguments) else usual
    usual = arguments.get("value", False if name in ("toggle", "checkbox") else "")
    return arguments.get("min_value") if name in _NUMBERS and usual in ("min", "", None) else usual


def _several(name: str, arguments: Mapping[str, Any]) -> bool:
    return name == "multiselect" or arguments.get("selection_mode") == "multi"


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float) else {"digest": digest_of(value)}


def _token(value: Any) -> str:
    """A value as JSON text; of an option that is no plain value its digest."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _fitting(name: str, arguments: Mapping[str, Any], text: str) -> Any:
    """The value that the text names, if the widget offers it; else `_UNFIT`."""
    try:
        value = parse(text, "setting")
    except SpaceError:
        return _UNFIT
    if name in _CHOICES:
        options = {_token(option): option for option in arguments["options"]}
        wanted = [
            json.dumps(one, ensure_ascii=False) for one in (value if isinstance(value, list) else [value])
        ]
        if any(one not in options for one in wanted) or isinstance(value, list) != _several(name, arguments):
            return _UNFIT
        value = [options[one] for one in wanted] if isinstance(value, list) else options[wanted[0]]
    return value if _accepts(name, arguments, value) else _UNFIT


def _accepts(name: str, arguments: Mapping[str, Any], value: Any) -> bool:
    """Whether the widget, as it is drawn now, can show a value."""
    if name in _CHOICES:
        chosen, most = value if isinstance(value, list) else [value], arguments.get("max_selections")
        options = list(arguments["options"])
        return all(one in options for one in chosen) and len(set(chosen)) == len(chosen) <= (
            most or len(chosen)
        )
    if name in _NUMBERS:
        low, high = arguments.get("min_value"), arguments.get("max_value")
        if type(value) is not type(_usual(name, arguments)) or not math.isfinite(value):
            return False
        return (low is None or low <= value) and (high is None or value <= high)
    return isinstance(value, bool) if name in ("toggle", "checkbox") else isinstance(value, str)
