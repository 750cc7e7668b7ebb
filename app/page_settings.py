"""Settings of a page that are not steps of the history. A saved session restores them.

Saved values come from outside, so a value is used only if the widget offers it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from relcore.base.earlier import FORMER_TABS

if TYPE_CHECKING:
    from streamlit.elements.layouts import TabContainer

_STATE = "relscope.page-settings"


@dataclass
class _Settings:
    """The values of widgets, by key: `chosen` holds those that were saved or chosen, `usual` the initial
    values."""

    chosen: dict[str, Any] = field(default_factory=dict)
    usual: dict[str, Any] = field(default_factory=dict)


def remembered(widget: Callable, *given: Any, **named: Any) -> Any:
    """The value of a widget, called as ``remembered(st.selectbox, label, options, key=…)``. It begins with
    the saved value if the widget still offers it."""
    call = inspect.signature(widget).bind(*given, **named)
    settings = _settings()
    key = call.arguments["key"]
    saved = settings.chosen.get(key)
    begins = key not in st.session_state  # a value that code has set in the session state has priority
    restored = begins and saved is not None and _fits(widget.__name__, call.arguments, saved)
    if restored:
        st.session_state[key] = saved
    value = widget(*call.args, **call.kwargs, persist_state="session")
    if begins and not restored:
        settings.usual[key] = value
    settings.chosen.pop(key, None)
    if _is_plain(value) and value != settings.usual.get(key):
        settings.chosen[key] = value
    return value


def _is_plain(value: Any) -> bool:
    """Whether a value can be written as JSON and read back unchanged."""
    if isinstance(value, list):
        return all(isinstance(item, str | int | float) for item in value)
    return isinstance(value, str | int | float)


def _fits(name: str, arguments: Mapping[str, Any], value: Any) -> bool:
    """Whether the widget would accept a saved value."""
    if "options" in arguments:
        several = name == "multiselect" or arguments.get("selection_mode") == "multi"
        if isinstance(value, list):
            items = value
        else:
            items = [value]
        most = arguments.get("max_selections") or len(items)
        return (
            several == isinstance(value, list)
            and all(_is_plain(item) and item in arguments["options"] for item in items)
            and len(set(items)) == len(items) <= most
        )
    if name in ("number_input", "slider"):
        low = arguments.get("min_value")
        high = arguments.get("max_value")
        usual = next((bound for bound in (arguments.get("value"), low, high) if bound is not None), value)
        return (
            type(value) is type(usual) and (low is None or low <= value) and (high is None or value <= high)
        )
    if name in ("toggle", "checkbox"):
        return isinstance(value, bool)
    return isinstance(value, str)


def segments(label: str, options: Sequence | Mapping, key: str, usual: Any = None, **look: Any) -> Any:
    """The value of a segmented control. It begins with the saved value (see `remembered`), `usual` or the
    first option.

    If `options` is a mapping, its values are the texts that are shown, or objects with a title.
    """
    if isinstance(options, Mapping):
        titles = {name: label if isinstance(label, str) else label.title for name, label in options.items()}
        look["format_func"] = titles.get
    default = usual
    if usual is None:
        default = next(iter(options))
    look = {"default": default, "required": True} | look
    return remembered(st.segmented_control, label, list(options), key=key, **look)


def kept_tabs(names: Sequence[str], key: str) -> Sequence[TabContainer]:
    """Tabs that remember which of them is open. `ask_for_tab` opens another tab."""
    if st.session_state.get(key) not in names or f"{key}:asked" in st.session_state:
        wanted = open_tab(key)
        st.session_state[key] = wanted if wanted in names else names[0]
        st.session_state.pop(f"{key}:asked", None)
    keep = partial(_keep_tab, key)
    tabs = st.tabs(names, key=key, on_change=keep)
    keep()
    return tabs


def _keep_tab(key: str) -> None:
    """Remember the open tab. Also called as soon as the user clicks a tab: if another page is opened at once,
    the run for the click ends before it draws the tabs."""
    st.session_state[f"{key}:last"] = st.session_state.get(key)


@contextmanager
def menu(label: str, key: str, **look: Any) -> Iterator[bool]:
    """A popover that draws its content only while it is open: ``with menu("View", "view") as is_open``.

    For a closed popover, the browser would send the last values of its widgets, even if the user has undone a
    change meanwhile. The panes also appear sooner if these widgets are not drawn.
    """
    with st.popover(label, key=key, on_change="rerun", **look) as opened:
        yield bool(opened.open)


def save_value(key: str, value: Any) -> None:
    """Save a JSON value that no widget shows."""
    _settings().chosen[key] = value


def saved_value(key: str) -> Any:
    """The value that `save_value` saved in this session or in a restored one."""
    return _settings().chosen.get(key)


def ask_for_tab(key: str, name: str) -> None:
    """Open this tab in the next run, even if this run has already drawn the tabs."""
    st.session_state[f"{key}:asked"] = name


def open_tab(key: str) -> str:
    kept = (st.session_state.get(one) for one in (f"{key}:asked", key, f"{key}:last"))
    name = next(filter(None, kept), "")
    if isinstance(name, str):
        return FORMER_TABS.get(name, name)
    return ""


def saved_settings() -> dict[str, Any]:
    return dict(_settings().chosen)


def restore(values: Mapping[str, Any]) -> None:
    st.session_state[_STATE] = _Settings(dict(values))


def _settings() -> _Settings:
    return st.session_state.setdefault(_STATE, _Settings())
