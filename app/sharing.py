"""Sharing: each session with its uploads and what it made, so that a shared app shows everybody their own
work only.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import time
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from weakref import WeakSet, finalize

import streamlit as st
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from relcore.base.access import ENVIRONMENT, Asker, all_uploads, allowed, data_folder, shared
from relcore.base.errors import SpaceError
from relcore.runs.store import Store, alive, own_name

# Uploaded files, in a folder of each session's own that nobody can guess and no other account can open.


def keep_upload(uploaded: Any, folder: Path) -> Path:
    """Write an uploaded file into the session's folder; the same content under the same name is written once.

    Only the last part of the name the browser sent is used, below a folder named after the content.
    """
    content = uploaded.getbuffer()
    place = folder / hashlib.blake2b(content, digest_size=8).hexdigest()
    name = uploaded.name.replace("\\", "/").rsplit("/", 1)[-1]
    path = place / (name if name.strip(". ") else "upload")
    if not path.exists():
        place.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


def new_folder() -> Path:
    """A new folder for one session's uploads, open to this account only.

    Raises
    ------
    SpaceError
        Another account made the folder that holds them all.
    """
    folder = all_uploads() / own_name()
    make_folder(folder)
    return folder


def make_folder(folder: Path) -> None:
    """This folder for uploads, open to this account only; nothing where it is there. Errors as in
    `new_folder`.
    """
    root = all_uploads()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = root.lstat()
    if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
        raise SpaceError(
            f"{root}: expected a folder that this account made for uploads, got one of somebody else; remove"
            " it, or set TMPDIR to a folder of your own"
        )
    root.chmod(0o700)
    folder.mkdir(mode=0o700, exist_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a session's folder with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Remove the folders of killed servers: those whose process has ended on this machine."""
    root = all_uploads()
    for folder in root.iterdir() if root.is_dir() else ():
        with suppress(ValueError):
            pid, _, host = folder.name.split("~", 2)
            if host == socket.gethostname() and not alive(int(pid)):
                remove_folder(folder)


# A browser's key: a random secret in a cookie, by which the server finds the sessions that this browser left.
#
# No script can read the cookie, and no page of another site can make the browser send it. It is set with the
# answer that the page's own script fetches before it connects, so the first run of a session knows it.

COOKIE = "relscope_browser"
KEPT_DAYS = (
    7  # for which a browser keeps its key, and the server what was saved under it, after they were last used
)
_FETCHED_FIRST = "/_stcore/host-config"
_KEY = re.compile(r"[0-9a-f]{64}")


class Recognised:
    """Gives each browser that has no key a new one of 256 random bits, and prolongs the key of the others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith(_FETCHED_FIRST):
            await self._app(scope, receive, send)
            return
        own = key_in(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1")) or secrets.token_hex(32)
        secure = "; Secure" * (scope.get("scheme") == "https")
        cookie = f"{COOKIE}={own}; Max-Age={KEPT_DAYS * 86_400}; Path=/; HttpOnly; SameSite=Strict{secure}"

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"set-cookie", cookie.encode())]}
            await send(message)

        await self._app(scope, receive, with_cookie)


class UncompressedHere:
    """Takes the wish for compression out of requests for files that come from this machine, before Streamlit
    reads it.

    Coordinates hardly shrink, and to compress those of a million rows takes longer than to send them over the
    loopback.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client") or ("",)
        if scope["type"] == "http" and "/media/" in scope["path"] and client[0] in ("127.0.0.1", "::1"):
            kept = [header for header in scope["headers"] if header[0].lower() != b"accept-encoding"]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)


def key_in(cookies: str) -> str:
    """The key in a Cookie header; "" where there is none, or another text than a key."""
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found and _KEY.fullmatch(found.value) else ""


def browser_key() -> str:
    """The key of the browser of this session; "" where it keeps no cookies."""
    found = st.context.cookies.get(COOKIE, "")
    return (
        found if isinstance(found, str) and _KEY.fullmatch(found) else ""
    )  # AppTest has a stand-in for cookies


# What is kept of a browser, in folders that are named by a hash of its key: saved sessions and uploads.

MOST_SAVED = 10**9  # bytes of all saved sessions
MOST_UPLOADED = 10 * 10**9  # bytes of all uploads that are kept


def named(key: str, what: str) -> str:
    """A name from a browser's key, from which nobody finds the key, nor the name of something else."""
    return hashlib.blake2b(key.encode(), digest_size=16, person=what.encode()).hexdigest()


def session_folder(key: str) -> Path:
    """The folder for the saved sessions of the browser with this key."""
    return _root() / named(key, "session")


def uploads_of(key: str) -> Path:
    """The folder for the uploads of the browser with this key; it is made where it is first used."""
    return all_uploads() / f"kept~{named(key, 'uploads')}"


def sweep_saved() -> None:
    """Remove saved sessions and kept uploads that are too old, and the oldest above the limits."""
    _sweep(_root(), "*", MOST_SAVED)
    _sweep(all_uploads(), "kept~*", MOST_UPLOADED)


def _sweep(root: Path, names: str, most_bytes: int) -> None:
    """What is used is touched, so the oldest folder is the one that was not used for longest."""
    total = 0
    for folder in sorted(root.glob(names), key=age):
        files = [path for path in folder.rglob("*") if path.is_file()]
        with suppress(OSError):
            total += sum(path.stat().st_size for path in files)
        if total > most_bytes or age(folder) > KEPT_DAYS * 86_400:
            shutil.rmtree(folder, ignore_errors=True)


def age(path: Path) -> float:
    """Seconds since it was last changed; a folder changes when a file in it is replaced."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")


def _root() -> Path:
    return Store().root / "sessions"


def confine_if_reachable() -> None:
    """Count the app as shared where the server listens on more than this machine's own address, however it
    was started.
    """
    server = (
        st.runtime.exists() and type(st.runtime.get_instance()) is Runtime
    )  # AppTest puts a stand-in there
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
        """The folder of this session's uploads: its browser's, which stays, or one that is removed when
        the session ends.
        """
        if self._key:
            make_folder(self._folder)
        elif self._folder is None:
            self._folder = new_folder()
            finalize(self, remove_folder, self._folder)
        return self._folder

    def keep_uploads(self) -> None:
        """Count the uploads as used now, so that they are kept as long as the session."""
        if self._key and self._folder.exists():
            os.utime(self._folder)

    def wanted_by_others(self, key: str) -> bool:
        """Whether another session, which is still there, submitted this job or made this encoding, too."""
        return any(
            key in one.made
            and key not in one.stopped
            and st.runtime.get_instance().is_active_session(one._session)
            for one in list(_members)
            if one is not self
        )


def is_open(owner: str) -> bool:
    """Whether the session of this owner is connected to this server."""
    return any(
        one.owner == owner and st.runtime.get_instance().is_active_session(one._session)
        for one in list(_members)
    )


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
        "This app is shared, so it reads only its data folder and your own uploads. A path that does not"
        " begin with “/” starts in the data folder."
    )


def help_with_paths(text: str) -> str:
    """A help text of a box for paths, with what a shared app reads."""
    return f"{text} {paths()}".strip()
