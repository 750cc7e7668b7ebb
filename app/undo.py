"""Undo and redo: each belongs to what the page shows.

If the present page does not show a step of the session, undo opens the page that does. In the story, undo
moves the stars that were dragged there, and takes back no step of the session.
"""

from __future__ import annotations

from dataclasses import fields

import streamlit as st

from app import session
from app.page_settings import open_tab
from app.places import CONNECT, DATA, EXPLORE, MIGRATE, RESEARCH, START, Place, go
from app.plain_text import plain_html, plain_name
from app.saving import STEP
from app.start.stars import Stars, stars
from app.workspace import BUNDLED, History, Workspace

_MOVED = "relscope.moved-in-history"
_MOVES = "relscope.moves-in-history"
_SETTINGS = frozenset(field.name for field in fields(Workspace))
_ANCHORS = frozenset({"anchors", "anchors_from", "pinned", "projection", "k", "convention"})
_MODELS = frozenset({"spaces", "source", "target"})
# The settings of the workspace that a place shows.
_SHOWN = {
    EXPLORE: _SETTINGS - {"example", "inversion"},
    DATA: _MODELS | _ANCHORS,
    CONNECT: _MODELS,
    MIGRATE: _MODELS | {"example"},
    RESEARCH: frozenset({"spaces"}),
    START: frozenset(),
}
_SHOWN_IN_TAB = {(CONNECT, "Invert"): _ANCHORS | {"inversion"}, (CONNECT, "Link"): _ANCHORS}


def _history(place: Place) -> History | Stars:
    if place is START and STEP in st.query_params:
        return stars()
    return session.history()


def _present(place: Place) -> tuple:
    history = _history(place)
    return history.undo_step, history.redo_step, session.workspace()


def buttons(place: Place) -> None:
    """Draw the buttons Undo and Redo, and a note on the last click on them."""
    history = _history(place)
    note, state = st.session_state.get(_MOVED, ("", None))
    if state != _present(place):  # another step followed
        note = ""
    st.html(f'<p role="status" title="{plain_html(note)}">{plain_html(note)}</p>')
    undo = ("Undo", history.undo_step, "Ctrl+Z")
    redo = ("Redo", history.redo_step, "Ctrl+Y")
    for verb, step, keys in (undo, redo):
        name = verb.lower()
        look = {"icon": f":material/{name}:", "type": "tertiary", "shortcut": keys, "disabled": not step}
        if step:
            help_ = f"{verb}: {plain_name(step)} ({keys})"
        else:
            help_ = f"Nothing to {name}"
        # Undo and redo wait until all callbacks of this run are done, because the run may also handle an
        # earlier click.
        st.button(verb, key=f"history.{name}", help=help_, on_click=_ask_to_move, args=(verb,), **look)


def _ask_to_move(verb: str) -> None:
    st.session_state[_MOVES] = verb


def move(place: Place | None) -> None:
    """Undo or redo a step if the user clicked the button. Open the page that shows the step."""
    if place is None or not (verb := st.session_state.pop(_MOVES, None)):
        return
    history = _history(place)
    before = session.workspace()
    undoes = verb == "Undo"
    if undoes:
        text = f"Undone: {history.undo_step}"
        history.undo()
    else:
        text = f"Done again: {history.redo_step}"
        history.redo()
    st.session_state[_MOVED] = text, _present(place)
    if opens := _place_of(before, session.workspace(), place, undoes):
        go(*opens)


def _place_of(before: Workspace, now: Workspace, place: Place, undoes: bool) -> tuple[Place, str] | None:
    """The place and tab that show what differs between two workspaces. None if the present place does."""
    changed = {name for name in _SETTINGS if getattr(before, name) != getattr(now, name)}
    # With the bundled pair, Migrate shows its example with and without this step, which Start offers.
    if undoes and before.example and not now.example and now.models[:2] == BUNDLED:
        return (START, "") if place is MIGRATE else None
    shown = _SHOWN[place] | _SHOWN_IN_TAB.get((place, open_tab(place.key)), frozenset())
    if not changed or changed & shown:
        return None
    if changed == {"example"}:
        return MIGRATE, "New model"
    if changed == {"inversion"}:
        return CONNECT, "Invert"
    return EXPLORE, ""
