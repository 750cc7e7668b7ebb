"""The session survives F5, a closed browser and a restarted server: it is saved after each step and restored
when a page opens.

Which saved session a page opens on is decided by the address, which names the tab:

- An address with the tab of a saved session restores that session: this is F5, also after the server was
killed.
- An address without a tab restores the browser's latest session that is not open in another tab.
- An address with other settings than those of the session it would restore is a link, and wins. So do files
that the command
  `relscope app` names. The saved session is then offered.

A tab that was duplicated restores the session, too. The tab it was copied from notices with its next step,
and continues under a name of its own. So two tabs never overwrite each other.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from typing import Any, get_type_hints

import streamlit as st

from app import compute, messages, page_settings, session, sharing, start
from app.sharing import SavedFolder, browser_key
from app.widgets import space_name
from app.workspace import History, Workspace, to_query
from relcore import __version__
from relcore.base import records
from relcore.base.access import OPENED
from relcore.base.errors import SpaceError
from relcore.base.records import MOST_BYTES, parse
from relcore.catalog.catalog import SpaceSpec
from relcore.runs.digest import StoreError

# A session as it is saved: its history, its selection, and what it may open, as JSON that says each setting
# once.
#
# The steps of a history share most of their settings, and a list of 2,000 anchors is long: each step holds,
# for each setting, the number of its value in a list.

_FIELDS = tuple(one.name for one in fields(Workspace))
_TYPES = get_type_hints(Workspace)


@dataclass(frozen=True)
class SavedSession:
    """What F5, a closed browser or a killed server would lose.

    Attributes
    ----------
    history : History
    selection : tuple of str
    address : dict
        The query of the address bar when it was saved, which may be one step behind.
    opened : str
        The files that `relscope app` was given, as JSON.
    digests : tuple
        Of source and target: their content when it was saved, "" where unknown.
    made, found : tuple of str
        Keys of the jobs and encodings that the session may open.
    awaited : tuple of str
        Keys of the encodings that are to join it.
    tabs : dict
        Which tab of a page was open.
    settings : dict
        Those of pages, see `app.page_settings`: JSON texts by the key of their widget.
    """

    history: History
    selection: tuple[str, ...] = ()
    address: dict[str, str] = field(default_factory=dict)
    opened: str = "[]"
    digests: tuple[str, ...] = ("", "")
    made: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()
    tabs: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Written:
    """The JSON: `values` by setting; a step is its name and, for each setting in order, the number of its
    value.
    """

    relscope: str
    values: dict[str, tuple[Any, ...]]
    past: tuple[tuple[str, tuple[int, ...]], ...]
    present: tuple[int, ...]
    future: tuple[tuple[str, tuple[int, ...]], ...]
    rest: dict[str, Any]


_REST = tuple(one.name for one in fields(SavedSession) if one.name != "history")


def to_bytes(saved: SavedSession) -> bytes:
    """The JSON text; without the selection where that would make it too large to be read again."""
    content = _to_bytes(saved)
    if len(content) > MOST_BYTES and saved.selection:
        return _to_bytes(replace(saved, selection=()))
    return content


def _to_bytes(saved: SavedSession) -> bytes:
    values: dict[str, list[str]] = {name: [] for name in _FIELDS}
    numbers: dict[tuple[str, Any], int] = {}

    def numbered(workspace: Workspace) -> list[int]:
        found = []
        for name in _FIELDS:
            value = getattr(workspace, name)
            if (name, value) not in numbers:
                numbers[name, value] = len(values[name])
                values[name].append(_text(name, value))
            found.append(numbers[name, value])
        return found

    past, future = saved.history.steps
    written = {
        "relscope": __version__,
        "past": [(step, numbered(one)) for step, one in past],
        "present": numbered(saved.history.present),
        "future": [(step, numbered(one)) for step, one in future],
        "rest": {name: getattr(saved, name) for name in _REST},
    }
    lists = ",".join(f"{_dumped(name)}:[{','.join(texts)}]" for name, texts in values.items())
    return f'{{"values":{{{lists}}},{_dumped(written)[1:]}'.encode()


@lru_cache(maxsize=1024)
def _text(name: str, value: Any) -> str:
    """The JSON of a setting's value: of 200 steps only the newest is written out again. By name, since 1
    equals True.
    """
    return _dumped(records.to_json(value))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_bytes(content: bytes) -> SavedSession:
    """Back from `to_bytes`.

    Raises
    ------
    SpaceError
        Damaged, or of a version with other settings.
    """
    written = records.from_json(_Written, parse(content, "saved session"), "saved session")
    if written.relscope != __version__:
        raise SpaceError(f"saved session: expected one of version {__version__}, got another version's")
    try:
        values = {
            name: [records.from_json(_TYPES[name], value, name) for value in written.values[name]]
            for name in _FIELDS
        }

        def workspace(numbers: tuple[int, ...]) -> Workspace:
            if min(numbers) < 0:
                raise IndexError(min(numbers))
            return Workspace(
                **{name: values[name][number] for name, number in zip(_FIELDS, numbers, strict=True)}
            )

        history = History(
            workspace(written.present),
            [(step, workspace(numbers)) for step, numbers in written.past],
            [(step, workspace(numbers)) for step, numbers in written.future],
        )
    except (KeyError, IndexError, ValueError) as error:  # a SpaceError is a ValueError
        raise SpaceError(
            f"saved session: expected steps with all their settings, got something else ({error!r:.200})"
        ) from None
    kinds = get_type_hints(SavedSession)
    unknown = set(written.rest) - set(_REST)
    if unknown:
        raise SpaceError(f"saved session: got unknown settings {sorted(unknown)!r:.200}")
    return SavedSession(
        history, **{name: records.from_json(kinds[name], one, name) for name, one in written.rest.items()}
    )


TAB = "tab"  # in the address
_STATE = "relscope.autosave"
_UNCHANGED = to_query(
    Workspace(anchors_from=start.DEFAULT_ANCHORS)
)  # the address of a session in which nothing was done
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
    """Save the session where it has changed since it was last saved; where the disk refuses, one message
    says so.
    """
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
    saved = SavedSession(
        history, session.selection(), query, os.environ.get(OPENED, "[]"), digests, *known, tabs, settings
    )
    try:
        if own.snapshot is not None and not own.folder.has(own.tab, own.owner):
            own.tab = secrets.token_hex(4)  # another tab took the file over
        own.folder.write(own.tab, own.owner, to_bytes(saved))
        own.folder.forget_beyond()
        member.keep_uploads()
    except OSError as error:
        if not own.failed:
            messages.warning(
                f"This session cannot be saved ({error.strerror or error}). It continues, but reloading the"
                " page will lose it. Free some space, or download the session file in the sidebar."
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
            st.button(
                "Open it",
                key="autosave.open",
                type="tertiary",
                icon=":material/history:",
                on_click=_open_offered,
            )
        else:
            n_steps = len(session.history().steps[0])
            steps = "1 step" if n_steps == 1 else f"{n_steps} steps"
            saved = _ago(own.restored_at)
            st.caption(
                f"Your session was restored, with {steps} to undo. It was saved {saved}.", width="content"
            )
            st.button(
                "Start a new one",
                key="autosave.new",
                type="tertiary",
                icon=":material/add:",
                on_click=_start_new,
            )
        st.button(
            "",
            key="autosave.dismiss",
            type="tertiary",
            icon=":material/close:",
            help="Dismiss",
            on_click=_dismiss,
        )


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
        return from_bytes(own.folder.read(*place))
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
        for spec, digest in zip(
            (saved.history.present.source, saved.history.present.target), saved.digests, strict=False
        )
        if digest and (found := _digest(spec)) and found != digest
    ]
    if changed:
        session.notify(
            f"The session was restored, but this file has changed since it was saved: {', '.join(changed)}"
        )


def _digest(spec: SpaceSpec) -> str:
    try:
        return compute.digest_or_blank(spec)
    except StoreError:  # the page says so itself
        return ""


@cache
def _sweep_once() -> None:
    sharing.sweep_saved()
