"""The session survives F5, a closed browser and a restarted server: it is saved after each step and restored when a page opens.

Which saved session a page opens on is decided by the address, which names the tab:

- An address with the tab of a saved session restores that session: this is F5, also after the server was killed.
- An address without a tab restores the browser's latest session that is not open in another tab.
- An address with other settings than those of the session it would restore is a link, and wins. So do files that the command
  `relscope app` names. The saved session is then offered.

A tab that was duplicated restores the session, too. The tab it was copied from notices with its next step, and continues under
a name of its own. So two tabs never overwrite each other.
"""

from __future__ import annotations

import os
import secrets
import time
from functools import cache

import streamlit as st

from app import compute, messages, page_settings, saved_folder, saved_session, session, sharing, start
from app.browser_key import browser_key
from app.permalink import to_query
from app.saved_folder import SavedFolder
from app.saved_session import SavedSession
from app.widgets import space_name
from app.workspace import Workspace
from relcore.access import OPENED
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import SpaceError
from relcore.store import StoreError

TAB = "tab"  # in the address
_STATE = "relscope.autosave"
_UNCHANGED = to_query(Workspace(anchors_from=start.DEFAULT_ANCHORS))  # the address of a session in which nothing was done
_TABS = ("anchors.tabs", "spaces.tab", "stitch.tab", "invert.tab", "studies.kind")


class _Autosave:
    """What one session knows about its saved form."""

    def __init__(self, folder: SavedFolder, tab: str) -> None:
        self.folder, self.tab = folder, tab
        self.snapshot: tuple | None = None  # what was saved last
        self.failed = False
        self.restored_at = 0.0
        self.offered: tuple[str, str] | None = None
        self.offered_at = 0.0
        self.noticed: Workspace | None = None

    @property
    def owner(self) -> str:
        return session.member().owner


def begin() -> None:
    """Restore what this browser's tab left, if the session is new; to be called first in a run."""
    if _STATE in st.session_state or session.begun():
        return
    key = browser_key()
    if not key:
        return
    try:
        _sweep_once()
        folder = SavedFolder(key)
    except StoreError:  # the page says so itself
        return
    own = st.session_state[_STATE] = _Autosave(folder, secrets.token_hex(4))
    query = st.query_params.to_dict()
    asked = query.pop(TAB, "")
    tabs = folder.tabs()
    same = [one for one in tabs if one[0] == asked]
    free = [one for one in tabs if not sharing.is_open(one[1])]
    candidate = next(iter(same or free or tabs), None)
    if candidate is None:
        return
    at = folder.saved_at(*candidate)
    saved = _read(own, candidate)
    if saved is None:
        return
    opened = os.environ.get(OPENED, "[]")
    linked = query and query not in (to_query(saved.history.present), saved.address, _UNCHANGED)
    if linked or opened not in ("[]", saved.opened) or not (same or free):
        own.offered, own.offered_at = candidate, at
    elif folder.claim(*candidate, own.owner):
        own.tab, own.restored_at = candidate[0], at
        _restore(saved)


def save() -> None:
    """Save the session where it has changed since it was last saved; where the disk refuses, one message says so."""
    own: _Autosave | None = st.session_state.get(_STATE)
    if own is None:
        return
    member, history = session.member(), session.history()
    tabs = {name: found for name in _TABS if (found := page_settings.open_tab(name))}
    known = tuple(sorted(member.made)), tuple(sorted(member.found)), session.awaited_jobs()
    settings = page_settings.saved()
    snapshot = (history.steps, history.present, session.selection(), known, tabs, settings)
    done = (*history.steps, session.selection(), *known, settings)
    untouched = own.snapshot is None and not own.restored_at and not any(done)
    if untouched or snapshot == own.snapshot:
        return
    query = {name: value for name, value in st.query_params.to_dict().items() if name != TAB}
    ends = history.present.source, history.present.target
    digests = tuple(map(_digest, ends))
    saved = SavedSession(history, session.selection(), query, os.environ.get(OPENED, "[]"), digests, *known, tabs, settings)
    try:
        if own.snapshot is not None and not own.folder.has(own.tab, own.owner):
            own.tab = secrets.token_hex(4)  # another tab took the file over
        own.folder.write(own.tab, own.owner, saved_session.to_bytes(saved))
        own.folder.forget_beyond()
        member.keep_uploads()
    except OSError as error:
        if not own.failed:
            messages.warning(
                f"This session cannot be saved ({error.strerror or error}). It continues, but reloading the page will lose it. "
                "Free some space, or download the session file in the sidebar."
            )
        own.failed = True
    else:
        own.failed = False
    own.snapshot = snapshot


def address() -> dict[str, str]:
    """The tab's name, for the address bar; nothing where nothing is saved."""
    own: _Autosave | None = st.session_state.get(_STATE)
    return {TAB: own.tab} if own and own.snapshot and not own.failed else {}


def draw_notice() -> None:
    """One line about what was restored or could be, with a button, until the first step after it."""
    own: _Autosave | None = st.session_state.get(_STATE)
    if own is None or not (own.restored_at or own.offered):
        return
    present = session.workspace()
    if own.noticed is None:
        own.noticed = present
    if own.noticed is not present and own.noticed != present:
        own.restored_at, own.offered = 0.0, None
        return
    with st.container(horizontal=True, vertical_alignment="center", key="autosave"):
        if own.offered:
            st.caption(f"This browser has a saved session of {_ago(own.offered_at)}.", width="content")
            st.button("Open it", key="autosave.open", type="tertiary", icon=":material/history:", on_click=_open_offered)
        else:
            n_steps = len(session.history().steps[0])
            steps = "1 step" if n_steps == 1 else f"{n_steps} steps"
            saved = _ago(own.restored_at)
            st.caption(f"Your session was restored, with {steps} to undo. It was saved {saved}.", width="content")
            st.button("Start a new one", key="autosave.new", type="tertiary", icon=":material/add:", on_click=_start_new)
        st.button("", key="autosave.dismiss", type="tertiary", icon=":material/close:", help="Dismiss", on_click=_dismiss)


def _ago(at: float) -> str:
    """When something was saved, in words that hold in every time zone."""
    minutes = max(0, int((time.time() - at) / 60))
    for size, unit in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size:
            n = minutes // size
            return f"{n} {unit}{'s' * (n > 1)} ago"
    return "a moment ago"


def _start_new() -> None:
    session.become("start a new session", start.plain_workspace())
    session.select(())
    _dismiss()


def _open_offered() -> None:
    own = st.session_state[_STATE]
    saved = _read(own, own.offered)
    own.offered = None
    if saved:
        _restore(saved)


def _dismiss() -> None:
    own = st.session_state[_STATE]
    own.restored_at, own.offered = 0.0, None


def _read(own: _Autosave, place: tuple[str, str]) -> SavedSession | None:
    """The saved session; of one that cannot be read the page says so, and it is not offered again."""
    try:
        return saved_session.from_bytes(own.folder.read(*place))
    except SpaceError as error:
        own.folder.put_aside(*place)
        session.notify(f"The saved session cannot be restored, so this is a new one. {error}")
        return None


def _restore(saved: SavedSession) -> None:
    member = session.member()
    member.made.update(saved.made)
    member.found.update(saved.found)
    session.resume(saved.history)
    session.select(saved.selection)
    session.await_jobs(saved.awaited)
    page_settings.restore(saved.settings)
    for name, value in saved.tabs.items():
        if name in _TABS:
            st.session_state.setdefault(name, value)
    changed = [
        space_name(spec)
        for spec, digest in zip((saved.history.present.source, saved.history.present.target), saved.digests, strict=False)
        if digest and (found := _digest(spec)) and found != digest
    ]
    if changed:
        session.notify(f"The session was restored, but this file has changed since it was saved: {', '.join(changed)}")


def _digest(spec: SpaceSpec) -> str:
    try:
        return compute.digest_or_blank(spec)
    except StoreError:  # the page says so itself
        return ""


@cache
def _sweep_once() -> None:
    saved_folder.sweep()
