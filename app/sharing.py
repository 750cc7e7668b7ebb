"""Sharing: each session with its uploads and what it made, so that a shared app shows everybody their own work only."""

from __future__ import annotations

import os
import secrets
from ipaddress import ip_address
from pathlib import Path
from weakref import WeakSet, finalize

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import uploads
from app.browser_key import browser_key
from app.saved_folder import uploads_of
from relcore.access import ENVIRONMENT, Asker, allowed, data_folder, shared
from relcore.spaces import SpaceError


def confine_if_reachable() -> None:
    """Count the app as shared where the server listens on more than this machine's own address, however it was started."""
    server = st.runtime.exists() and type(st.runtime.get_instance()) is Runtime  # AppTest puts a stand-in there
    if server and not _own_address(st.config.get_option("server.address")):
        os.environ[ENVIRONMENT] = "1"


def _own_address(address: str | None) -> bool:
    """Whether only this machine reaches a server there; no address means all."""
    if not address or address == "localhost":
        return bool(address)
    try:
        return ip_address(address).is_loopback
    except ValueError:  # a name, or a socket's file: who reaches it is not known here
        return False


_members: WeakSet[Member] = WeakSet()


class Member:
    """One session, as far as the others are concerned; made when the session begins.

    Attributes
    ----------
    made : set of str
        Keys of the jobs and encodings that the session submitted.
    found : set of str
        Keys of encodings that the store had already, of data that the session has.
    stopped : set of str
        Keys of jobs that the session no longer waits for.
    owner : str
        A random name, under which the session is saved.
    """

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.found: set[str] = set()
        self.stopped: set[str] = set()
        self._session = context.session_id if (context := get_script_run_ctx()) else ""
        self.owner = secrets.token_hex(8)
        self._key = browser_key()
        self._folder: Path | None = uploads_of(self._key) if self._key else None
        _members.add(self)

    @property
    def asker(self) -> Asker:
        """What this session may open."""
        return Asker(self._folder, self.made | self.found)

    def uploads_folder(self) -> Path:
        """The folder of this session's uploads: its browser's, which stays, or one that is removed when the session ends."""
        if self._key:
            uploads.make_folder(self._folder)
        elif self._folder is None:
            self._folder = uploads.new_folder()
            finalize(self, uploads.remove_folder, self._folder)
        return self._folder

    def keep_uploads(self) -> None:
        """Count the uploads as used now, so that they are kept as long as the session."""
        if self._key and self._folder.exists():
            os.utime(self._folder)

    def wanted_by_others(self, key: str) -> bool:
        """Whether another session, which is still there, submitted this job or made this encoding, too."""
        return any(
            key in one.made and key not in one.stopped and st.runtime.get_instance().is_active_session(one._session)
            for one in list(_members)
            if one is not self
        )


def is_open(owner: str) -> bool:
    """Whether the session of this owner is connected to this server."""
    return any(one.owner == owner and st.runtime.get_instance().is_active_session(one._session) for one in list(_members))


def open_folder() -> str | None:
    """The data folder that this session chose on the Spaces page, where it may read that."""
    folder = st.session_state.get("spaces.folder")
    try:
        return folder if folder and allowed(folder) else None
    except SpaceError:
        return None


def paths() -> str:
    """What a shared app reads, for where paths are typed; "" where the app is not shared."""
    if not shared():
        return ""
    if data_folder() is None:
        return "This app is shared, so it reads only your own uploads. It has no data folder."
    return (
        "This app is shared, so it reads only its data folder and your own uploads. A path that does not begin with “/” starts "
        "in the data folder."
    )


def help_with_paths(text: str) -> str:
    """A help text of a box for paths, with what a shared app reads."""
    return f"{text} {paths()}".strip()
