"""The one registry of what a browser session keeps in Streamlit's session state, and the verbs that change it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.reducer import reduce
from app.sharing import Member
from app.workspace import History, Workspace
from relcore.access import Asker, set_asker
from relcore.engine import EngineError
from relcore.spaces import SpaceError
from relcore.store import StoreError

_HISTORY = "relscope.history"
_SELECTION = "relscope.selection"
_MEMBER = "relscope.member"
_NOTICE = "relscope.notice"
_NEWS = "relscope.news"
_MAPS = "relscope.maps"
_AWAITED = "relscope.encodings-awaited"
_MOST_MAPS = 8  # of 20,000 rows they take 3 MB


def history(first: Callable[[], Workspace] = Workspace) -> History:
    """This session's history; made of `first()` when the session begins."""
    if _HISTORY not in st.session_state:
        begun = first()
        st.session_state[_HISTORY] = History(reduce(begun, begun))
    return st.session_state[_HISTORY]


def begun() -> bool:
    """Whether this session has a history already."""
    return _HISTORY in st.session_state


def resume(saved: History) -> None:
    """Take a saved history for this session's own."""
    st.session_state[_HISTORY] = saved


def workspace() -> Workspace:
    """What this session has chosen, now."""
    return history().present


def become(step: str, changed: Workspace) -> None:
    """Make this the workspace as one undoable step; the one place where steps are made.

    Raises
    ------
    SpaceError
        As `app.reducer.reduce`.
    """
    history().edit(step, reduce(workspace(), changed))


def amend(changed: Workspace) -> None:
    """Make this the workspace within the step that led to it."""
    history().amend(reduce(workspace(), changed))


def edit(step: str, **changes: Any) -> None:
    """Change fields of the workspace as one undoable step."""
    become(step, dataclasses.replace(workspace(), **changes))


def edit_spec(step: str, field: str, **changes: Any) -> None:
    """Change settings inside `projection`, `view`, `reduction`, `look` or `inversion`."""
    edit(step, **{field: dataclasses.replace(getattr(workspace(), field), **changes)})


def turn(to: tuple[float, ...]) -> None:
    """Turn the maps of three dimensions; turns that follow one another are one step."""
    step, look = "turn the maps", dataclasses.replace(workspace().look, turn=to)
    if history().undo_step == step:
        amend(dataclasses.replace(workspace(), look=look))
    else:
        edit(step, look=look)


def guarded(change: Callable[..., None], *arguments: Any) -> None:
    """A change as a callback: an error becomes a message and leaves everything unchanged."""
    try:
        change(*arguments)
    except (SpaceError, EngineError, StoreError) as error:
        notify(str(error))


def set_anchors(step: str, ids: tuple[str, ...], anchors_from: str = "") -> None:
    """Replace the anchors as one step; above the app's limit an error is shown."""
    guarded(become, step, workspace().with_anchors(ids, anchors_from))


def add_anchors(ids: tuple[str, ...]) -> None:
    """Add anchors after the current ones."""
    present = set(workspace().anchors)
    new = tuple(dict.fromkeys(identifier for identifier in ids if identifier not in present))
    if new:
        set_anchors(f"add {_count(new)}", workspace().anchors + new)


def remove_anchors(ids: tuple[str, ...]) -> None:
    """Remove anchors, except pinned ones."""
    asked, pinned = set(ids), set(workspace().pinned)
    gone = tuple(identifier for identifier in workspace().anchors if identifier in asked and identifier not in pinned)
    if gone:
        taken = set(gone)
        set_anchors(f"remove {_count(gone)}", tuple(one for one in workspace().anchors if one not in taken))


def pin_anchors(ids: tuple[str, ...]) -> None:
    """Keep these anchors through every new strategy and removal."""
    pinned = tuple(dict.fromkeys(workspace().pinned + ids))
    edit(f"pin {_count(ids)}", pinned=pinned)


def unpin_anchors(ids: tuple[str, ...]) -> None:
    """Unpin these anchors."""
    free = set(ids)
    edit(f"unpin {_count(ids)}", pinned=tuple(one for one in workspace().pinned if one not in free))


def _count(ids: tuple[str, ...]) -> str:
    return f"“{ids[0]}”" if len(ids) == 1 else f"{len(ids)} anchors"


def selection() -> tuple[str, ...]:
    """Selected ids, the same on every page."""
    return st.session_state.get(_SELECTION, ())


def select(ids: tuple[str, ...]) -> None:
    """Select these ids; this is not a step of the history."""
    st.session_state[_SELECTION] = ids


def keep_map(place: tuple, found: Any) -> None:
    """Remember the last finished map of a pane, to be shown until the next one is done."""
    kept = st.session_state.setdefault(_MAPS, {})
    kept.pop(place, None)
    kept[place] = found
    while len(kept) > _MOST_MAPS:
        del kept[next(iter(kept))]


def kept_map(place: tuple) -> Any:
    """What `keep_map` remembers for this place; None where it has nothing."""
    return st.session_state.get(_MAPS, {}).get(place)


def uploads_folder() -> Path:
    """A folder of this session's own for uploaded files; that of a browser without a key is removed when the session ends."""
    return member().uploads_folder()


def member() -> Member:
    """This session among the others; it lives as long as the session's state."""
    if _MEMBER not in st.session_state:
        st.session_state[_MEMBER] = Member()
    return st.session_state[_MEMBER]


def _asker() -> Asker:
    """What the session may open whose script runs in this thread; nothing of its own where none does."""
    return member().asker if get_script_run_ctx(suppress_warning=True) else Asker()


set_asker(_asker)


def notify(text: str) -> None:
    """An error for the next run, shown once."""
    st.session_state[_NOTICE] = text


def pop_notice() -> str | None:
    """The error that `notify` left, if any."""
    return st.session_state.pop(_NOTICE, None)


def announce(text: str) -> None:
    """A message for the next run, shown briefly."""
    st.session_state[_NEWS] = text


def pop_news() -> str | None:
    """What `announce` left, if anything."""
    return st.session_state.pop(_NEWS, None)


def awaited_jobs() -> tuple[str, ...]:
    """Keys of the encodings whose spaces are to join this session when they are there."""
    return st.session_state.get(_AWAITED, ())


def await_jobs(keys: tuple[str, ...]) -> None:
    """Wait for these keys only."""
    st.session_state[_AWAITED] = keys
