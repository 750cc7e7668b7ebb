"""A session file for each browser tab, so that a session survives a reload and a restarted server.

Restores the session of the tab named in the address or, if none is named, the browser's newest session. If
another tab already shows that session, a copy is restored. If a link has other settings, or files were given
to `relscope app`, these are shown first, and the page offers to open the saved session.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import streamlit as st

from app import compute, messages, page_settings, session, sharing
from app.places import EXPLORE, PLACES, START, go
from app.plain_text import plain
from app.widgets import space_name
from app.workspace import (
    BUNDLED,
    OPENING_INVERSION,
    History,
    Step,
    Workspace,
    from_query,
    from_session_file,
    session_json,
    to_query,
    with_selection,
)
from relcore.base import records
from relcore.base.access import OPENED
from relcore.base.errors import SpaceError
from relcore.base.records import MOST_BYTES, parse
from relcore.base.version import __version__
from relcore.base.writing import NotWritten, write
from relcore.catalog.catalog import SpaceSpec
from relcore.files import selections
from relcore.invert.inversion import InversionSpec
from relcore.maps.pane_maps import GRID, OWN
from relcore.runs.entries import StoreError

DEFAULT_ANCHORS = "random 300 0"
_STARTED = time.time()
TAB = "tab"  # parameter of the address: the id of the browser tab
STEP = "step"  # parameter of the address: the step of the lesson on Start
MOST_TABS = 20  # number of saved sessions of a browser; older ones are removed
_STATE = "relscope.autosave"
_told: set[str] = set()  # the tabs whose restored session was announced since the server started
_OPENING = {"anchors_from": DEFAULT_ANCHORS, "inversion": OPENING_INVERSION, "panes": (OWN,)}
_UNCHANGED = to_query(Workspace(**_OPENING))  # the address of a session without changes
_WITH_SETTINGS = "relscope.begins-with-settings"
_BY_HAND = "by-hand"  # stands in a link if the anchors were chosen by hand
_TABS = ("data.kind", "studies.kind", *(place.key for place in PLACES.values() if place.tabs))
_TYPES = get_type_hints(Workspace)
_Change = tuple[str, dict[str, Any]]  # the name of an undo step, and its changed settings as JSON


@dataclass(frozen=True)
class TabState:
    """What a browser tab's file holds besides the content of a session file.

    `past` and `future` are the steps for undo and redo, beginning with the one nearest to the present. Each
    holds only the settings that differ from the neighbouring step. `address` may be one step behind. `opened`
    holds the files given to `relscope app`.
    """

    past: tuple[_Change, ...] = ()
    future: tuple[_Change, ...] = ()
    address: dict[str, str] = field(default_factory=dict)
    opened: str = "[]"
    made: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()
    tabs: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SavedSession:
    """A restored session. `digests` has the digest of each space when the session was saved, "" if
    unknown."""

    history: History
    selection: tuple[str, ...]
    state: TabState
    digests: dict[SpaceSpec, str]


def to_bytes(
    history: History, selection: tuple[str, ...], state: TabState, digests: dict[SpaceSpec, str]
) -> bytes:
    """The session as JSON text. If the text would be too large to read, the selection is left out."""
    (past_steps, future_steps) = history.steps
    past = _changes(history.present, past_steps)
    future = _changes(history.present, future_steps)
    tab = records.to_json(replace(state, past=past, future=future))
    return with_selection(session_json(history.present, digests) | {"tab": tab}, selection).encode()


def from_bytes(content: bytes) -> SavedSession:
    """The session that `to_bytes` wrote. Raises a SpaceError for damaged bytes or another version."""
    present, digests = from_session_file(content)
    written = parse(content, "saved session")
    if (version := written.get("relscope")) != __version__:
        raise SpaceError(
            f"saved session: made by version {version!s:.20}, this is {__version__}; open it with that"
            " version"
        )
    state = records.from_json(TabState, written.get("tab"), "saved session")
    past = _steps(present, state.past)
    future = _steps(present, state.future)
    selection = selections.from_session_file(content) or ()
    return SavedSession(History(present, past, future), selection, state, digests)


def _changes(present: Workspace, steps: Sequence[Step]) -> tuple[_Change, ...]:
    changes = []
    for step, workspace in reversed(steps):
        pairs = ((name, getattr(workspace, name), getattr(present, name)) for name in _TYPES)
        changes.append((step, {name: records.to_json(old) for name, old, new in pairs if old != new}))
        present = workspace
    return tuple(changes)


def _steps(present: Workspace, changes: Sequence[_Change]) -> list[Step]:
    steps = []
    for step, settings in changes:
        if unknown := settings.keys() - _TYPES.keys():
            raise SpaceError(f"saved session: got unknown settings {sorted(unknown)!r:.200}")
        values = {name: records.from_json(_TYPES[name], value, name) for name, value in settings.items()}
        present = replace(present, **values)
        steps.append((step, present))
    return steps[::-1]


def first_workspace() -> Workspace:
    """The workspace of a session that restores nothing: a new one, with the settings of the link."""
    # A link without "inverse" means the published method; a link without "panes" means four panes.
    query = _settings()
    new = new_workspace()
    if query.get("anchors") == _BY_HAND:
        session.announce(
            "This link does not contain its anchors, which were chosen by hand. Ask its sender for the"
            " session file (Session, Save session)."
        )
    former = {}
    if query:
        former = {"inversion": InversionSpec(), "panes": GRID}
    return from_query(query, replace(new, **former))


def new_workspace() -> Workspace:
    """A new workspace with the spaces given to `relscope app`. It compares the first two, paired by row order
    if only one of them has ids. If fewer than two were given, the bundled spaces are added and compared."""
    opened = [records.from_json(SpaceSpec, spec) for spec in parse(os.environ.get(OPENED, "[]"), OPENED)]
    if len(opened) > 1 and (paired := compute.likely_by_rows(*opened[:2])):
        opened[:2] = paired
        session.announce("The first two spaces are paired by row order, because only one of them has ids.")
    ends = BUNDLED
    if len(opened) > 1:
        ends = opened[:2]
    return Workspace(tuple(dict.fromkeys((*opened, *ends))), *ends, **_OPENING)


# A file's name holds the tab and the file's owner, the session that writes it. When a tab is reloaded, its
# new session renames the file and so becomes the owner. If a tab was duplicated, the earlier session no
# longer finds its file and starts another one, so no session overwrites another one's file.


def saved_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*~*.json"), key=sharing.age)


def write_file(path: Path, content: bytes) -> None:
    """Replace the saved session atomically, and remove the files of the oldest tabs."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(path, content, mode=0o600)
    for old in saved_files(path.parent)[MOST_TABS:]:
        old.unlink(missing_ok=True)


class _Tab:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rename()
        self.snapshot: tuple | None = None  # the state saved last
        self.restored = self.failed = False
        self.tells = False  # whether the page must say that the session was restored
        self.offered: Path | None = None  # file of a saved session that the page offers to open
        self.noticed: tuple[Workspace, str] | None = None  # workspace and page of the notice

    def rename(self, name: str = "") -> None:
        self.name = name or secrets.token_hex(4)
        self.path = self.folder / f"{self.name}~{session.member().owner}.json"


def restore() -> None:
    """Restore the session of this browser tab if the run starts a new session. Call this first in a run."""
    if session.begun():
        st.session_state[_WITH_SETTINGS] = False
        return
    st.session_state[_WITH_SETTINGS] = bool(_settings()) or os.environ.get(OPENED, "[]") != "[]"
    _sweep_once()
    key = sharing.browser_key()
    with suppress(StoreError):  # the page itself reports errors of the store
        if key:
            _find(sharing.session_folder(key))


def _find(folder: Path) -> None:
    own = _Tab(folder)
    st.session_state[_STATE] = own
    query = _settings()
    tab = st.query_params.get(TAB, "")
    files = saved_files(folder)
    same = [path for path in files if path.name.startswith(f"{tab}~")]
    path = next(iter(same or files), None)
    if path is None or (saved := _read(path)) is None:
        return
    opened = os.environ.get(OPENED, "[]")
    linked = query and query not in (_address_of(saved.history.present), saved.state.address, _UNCHANGED)
    if linked or opened not in ("[]", saved.state.opened):
        own.offered = path
        return
    # The page shows a notice after a restart of the server and once at a new visit, but none after a reload,
    # even if the address does not name the tab.
    name = path.name.partition("~")[0]
    came_back = name not in _told and (not same or path.stat().st_mtime < _STARTED)
    own.tells = came_back and bool(saved.history.steps[0])
    _told.update((name, own.name) if own.tells else ())
    if not same and sharing.is_open(path.stem.partition("~")[2]):
        _restore(saved)
        return
    own.rename(name)
    try:
        path.rename(own.path)
    except OSError:  # another session renamed the file first
        own.rename()
    else:
        _restore(saved)


def was_given_settings() -> bool:
    """Whether this is the first run of a session that got its settings from a link or `relscope app`."""
    return st.session_state.get(_WITH_SETTINGS, False)


def save() -> None:
    """Save the session if it has changed. If the file cannot be written, show a warning once."""
    own: _Tab | None = st.session_state.get(_STATE)
    if own is None:
        return
    member = session.member()
    history = session.history()
    selection = session.selection()
    state = TabState(
        opened=os.environ.get(OPENED, "[]"),
        made=tuple(sorted(member.made)),
        found=tuple(sorted(member.found)),
        awaited=session.awaited_jobs(),
        tabs={name: tab for name in _TABS if (tab := page_settings.open_tab(name))},
        settings=page_settings.saved_settings(),
    )
    snapshot = history.steps, history.present, selection, state
    done = *history.steps, selection, state.made, state.found, state.awaited, state.settings
    if snapshot == own.snapshot or not (own.snapshot or own.restored or any(done)):
        return
    digests = {spec: _digest(spec) for spec in (history.present.source, history.present.target)}
    try:
        if own.snapshot and not own.path.exists():
            own.rename()  # another tab took the file over
        write_file(own.path, to_bytes(history, selection, replace(state, address=_settings()), digests))
        member.keep_uploads()
        own.failed = False
    except (NotWritten, OSError) as error:
        if not own.failed:
            messages.warning(
                f"This session cannot be saved ({error.strerror or error}). It continues, but reloading the"
                " page will lose it. Free some space, or download the session file (Session)."
            )
        own.failed = True
    own.snapshot = snapshot


def _address_of(workspace: Workspace) -> dict[str, str]:
    by_hand = workspace.anchors and not workspace.by_strategy
    query = to_query(workspace)
    if by_hand:
        query["anchors"] = _BY_HAND
    return query


def _settings() -> dict[str, str]:
    return {name: text for name, text in st.query_params.to_dict().items() if name not in (TAB, STEP)}


def address(settings: bool = True) -> dict[str, str]:
    """The parameters of the address. They are the small settings, with a mark if hand-picked anchors are
    left out; on Start, they are the step of the story. If the session is saved, the tab's name is added."""
    own: _Tab | None = st.session_state.get(_STATE)
    step = {}
    if STEP in st.query_params:
        step = {STEP: st.query_params[STEP]}
    linked = step
    if settings:
        linked = _address_of(session.workspace())
    if own and own.snapshot and not own.failed:
        return linked | {TAB: own.name}
    return linked


def draw_notice(page: str) -> None:
    """Say that a session was restored, or can be opened, with a button. The notice stays until the next step
    or until another page is opened."""
    own = st.session_state.get(_STATE)
    present = (session.workspace(), page)
    if own is None or not (own.offered or own.tells):
        return
    if page == START.title and STEP in st.query_params:  # the story needs no session, and its whole screen
        return
    own.noticed = own.noticed or present
    if own.noticed != present:
        _dismiss()
        return
    names = " and ".join(plain(space_name(spec)) for spec in present[0].models)
    text = f"Last session restored: {names}."
    button = "Start new", "autosave.new", ":material/add:", start_new
    if own.offered:
        text = "This page shows what you opened."
        button = "Open my last session", "autosave.open", ":material/history:", _open_offered
    dismiss = "Dismiss", "autosave.dismiss", ":material/close:", _dismiss
    with st.container(horizontal=True, vertical_alignment="center", key="autosave"):
        st.caption(text, width="content")
        if (
            page == START.title
            and own.tells
            and st.button(
                "Continue in Explore", key="autosave.go", type="tertiary", icon=":material/arrow_forward:"
            )
        ):
            go(EXPLORE)
        for label, key, icon, act in (button, dismiss):
            st.button(label, key=key, type="tertiary", icon=icon, on_click=act)


def start_new() -> None:
    """Begin a new session, as one step that can be undone."""
    session.set_workspace("start a new session", new_workspace())
    session.select(())
    _dismiss()


def _open_offered() -> None:
    if saved := _read(st.session_state[_STATE].offered):
        _restore(saved)
    _dismiss()


def _dismiss() -> None:
    own = st.session_state[_STATE]
    own.tells = False
    own.offered = None


def _read(path: Path) -> SavedSession | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SpaceError(f"saved session: expected at most {MOST_BYTES >> 20} MB")
        return from_bytes(path.read_bytes())
    except (OSError, SpaceError) as error:
        with suppress(OSError):
            path.rename(path.with_suffix(".damaged"))
        session.notify(f"The saved session cannot be restored, so this is a new one. {error}")
        return None


def _restore(saved: SavedSession) -> None:
    member = session.member()
    state = saved.state
    st.session_state[_STATE].restored = True
    member.made.update(state.made)
    member.found.update(state.found)
    session.resume(saved.history)
    session.select(saved.selection)
    session.await_jobs(state.awaited)
    page_settings.restore(state.settings)
    for name in state.tabs.keys() & set(_TABS):
        st.session_state.setdefault(name, state.tabs[name])
    then = {spec: digest for spec, digest in saved.digests.items() if digest}
    if changed := [space_name(spec) for spec in then if _digest(spec) not in ("", then[spec])]:
        session.notify(
            f"The session was restored, but this file has changed since it was saved: {', '.join(changed)}"
        )


def _digest(spec: SpaceSpec) -> str:
    with suppress(StoreError):  # the page itself reports errors of the store
        return compute.digest_or_blank(spec)
    return ""


@cache
def _sweep_once() -> None:
    with suppress(StoreError):
        sharing.sweep()
