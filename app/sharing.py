"""Sessions that share an app: the keys of browsers, and the uploads, saved sessions and jobs of each
session."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from itertools import chain, count
from pathlib import Path
from typing import Any
from weakref import WeakSet, finalize

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from relcore.base import records
from relcore.base.access import ENVIRONMENT, AccessContext, all_uploads, data_folder, is_shared, readable_path
from relcore.base.errors import SpaceError
from relcore.base.records import parse
from relcore.base.writing import NotWritten, has_ended, new_folder, own_name, sweep_temporary, write
from relcore.runs.entries import StoreError
from relcore.runs.store import Store


def keep_upload(uploaded: Any, folder: Path, others: Iterable[Path] = ()) -> Path:
    """Write an uploaded file into the session's folder. Its subfolder is named after the file's content.

    If one of the `others` has the same name and another content, the name gets a number: recipes and commands
    name files without their folders.
    """
    content = uploaded.getbuffer()
    place = folder / hashlib.blake2b(content, digest_size=8).hexdigest()
    path = place / _free_name(
        upload_name(uploaded), {other.name for other in others if other.parent != place}
    )
    if not path.exists() or path.stat().st_size != len(content):  # an earlier upload may have been cut short
        try:
            with new_folder(place) as made:
                write(made / path.name, content)
        except NotWritten as error:
            raise SpaceError(
                f"{path.name[:200]}: expected to save this upload, got: {error.strerror}; free some space on"
                " the disk of the uploads, or set TMPDIR to a folder on another disk"
            ) from error
    return path


def upload_name(uploaded: Any) -> str:
    """The name of an uploaded file without folders."""
    name = uploaded.name.replace("\\", "/").rsplit("/", 1)[-1]
    if name.strip(". "):
        return name
    return "upload"


def _free_name(name: str, taken: Collection[str]) -> str:
    """The name, or the name with the first number from 2 on that is not taken: ``vectors-2.npy``."""
    written = Path(name)
    numbered = (f"{written.stem}-{number}{written.suffix}" for number in count(2))
    return next(one for one in chain([name], numbered) if one not in taken)


def make_folder(folder: Path) -> Path:
    """A folder for uploads that only this account can read.

    Raises a SpaceError if another account made the folder that holds all uploads.
    """
    root = all_uploads()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = root.lstat()
    if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
        raise SpaceError(
            f"{root}: expected a folder that this account made for uploads, got another account's; remove it,"
            " or set TMPDIR to a folder of your own"
        )
    root.chmod(0o700)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


# A browser's key is a secret cookie. No script can read it, and no other site can send it. It identifies the
# saved sessions and uploads of the browser. The cookie's name depends on the store, because a browser sends
# the cookies of a host to all ports of this host.

KEPT_DAYS = 7  # days that cookies, sessions and uploads are kept after their last use
_KEY = re.compile(r"([0-9a-f]{64})([0-9a-f]{64})")


@cache
def _secret() -> bytes:
    """The secret that signs browser keys, a file in the store. If the store cannot keep it, each start has a
    new secret."""
    with suppress(OSError, StoreError, NotWritten):
        path = Store().root / "secret"
        if _own_bytes(path) is None:
            path.unlink(missing_ok=True)
            write(path, secrets.token_bytes(32), 0o600)
        if found := _own_bytes(path):
            return found
    return secrets.token_bytes(32)


def _own_bytes(path: Path) -> bytes | None:
    """The content of a 32-byte file that only this account can read and write. Returns None for any other
    file."""
    with suppress(OSError), open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        about = os.fstat(file.fileno())
        content = file.read(33)
        own = about.st_uid == os.getuid() and not about.st_mode & 0o077
        if own and len(content) == 32:
            return content
        return None
    return None


def signature(*parts: str) -> str:
    return hmac.new(_secret(), "\0".join(parts).encode(), "sha256").hexdigest()


def is_same(one: str, other: str) -> bool:
    """Whether two secrets are equal. The comparison takes the same time wherever they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def key_cookie() -> str:
    return f"relscope_{signature('name')[:8]}"


def key_in(cookies: Mapping[str, Any]) -> str:
    """The browser's key in its cookies. Returns "" if there is none, or if this app did not issue it."""
    sent = cookies.get(key_cookie(), "")
    # in AppTest, the cookies are a mock
    found = None
    if isinstance(sent, str):
        found = _KEY.fullmatch(sent)
    if found:
        key, signed = found.groups()
        if is_same(signed, signature("key", key)):
            return key
    return ""


def browser_key() -> str:
    """The key of this session's browser. Returns "" if the browser keeps no cookies."""
    return key_in(st.context.cookies)


# The saved sessions and the uploads of a browser lie in two folders. Two different hashes of its key name the
# folders, so one name does not reveal the other.

MOST_SAVED = 10**9  # number of bytes of all saved sessions together
MOST_UPLOADED = 10 * 10**9  # number of bytes of all kept uploads together


def _hidden_name(key: str, what: bytes) -> str:
    return hashlib.blake2b(key.encode(), digest_size=16, person=what).hexdigest()


def session_folder(key: str) -> Path:
    return Store().root / "sessions" / _hidden_name(key, b"session")


def uploads_of(key: str) -> Path:
    return all_uploads() / f"kept~{_hidden_name(key, b'uploads')}"


def sweep() -> None:
    """Remove what killed servers left behind. Also remove saved sessions and uploads that are too old, and
    the oldest ones if all together are too large."""
    sweep_temporary()
    for folder in all_uploads().glob("*~*~*~*"):
        if has_ended(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
    kept = (Store().root / "sessions", "*", MOST_SAVED), (all_uploads(), "kept~*", MOST_UPLOADED)
    for root, names, most_bytes in kept:
        total = 0
        marked = _marks(root)
        unused: dict[str, float] = {}
        for folder in sorted(filter(Path.is_dir, root.glob(names)), key=age):
            with suppress(OSError):
                total += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            too_old = age(folder) > KEPT_DAYS * DAY
            since = min(marked.get(folder.name, _now()), _now())
            if total > most_bytes or (too_old and _now() - since > DAY):
                shutil.rmtree(folder, ignore_errors=True)
            elif too_old:
                unused[folder.name] = since
        if unused != marked:
            with suppress(NotWritten):
                write(root / _MARKS, json.dumps(unused).encode())


# A wrong clock may be days off. So what looks too old is removed only by a later start of the app, at least a
# day after the start that first found it too old. During a run, a monotonic clock limits the time.
DAY = 86_400
_MARKS = "unused"
_started = time.time(), time.monotonic()


def _now() -> float:
    began, ticks = _started
    return min(time.time(), began + time.monotonic() - ticks)


def _marks(root: Path) -> dict[str, float]:
    """For each folder, the time at which a start of the app first found it too old."""
    with suppress(OSError, SpaceError):
        return records.from_json(dict[str, float], parse((root / _MARKS).read_bytes(), _MARKS), _MARKS)
    return {}


def age(path: Path) -> float:
    try:
        return _now() - path.stat().st_mtime
    except OSError:
        return float("inf")


def confine_if_reachable() -> None:
    """Treat the app as shared if other machines can reach the server."""
    # AppTest replaces the runtime by a mock.
    server = st.runtime.exists() and type(st.runtime.get_instance()) is Runtime
    if server and not own_address(st.config.get_option("server.address")):
        os.environ[ENVIRONMENT] = "1"


def own_address(address: str | None) -> bool:
    """Whether only this machine can reach a server at this address. An empty address means all network
    interfaces."""
    try:
        return address == "localhost" or ip_address(address or "0.0.0.0").is_loopback
    except ValueError:
        return False


_members: WeakSet[Member] = WeakSet()


class Member:
    """One session of a shared app.

    Attributes
    ----------
    made : set of str
        Keys of the jobs and encodings that the session submitted.
    found : set of str
        Keys of encodings of the session's data that the store had already.
    stopped : set of str
        Keys of jobs that the session no longer waits for.
    owner : str
        A random name, under which the session is saved.
    """

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.found: set[str] = set()
        self.stopped: set[str] = set()
        self.owner = secrets.token_hex(8)
        if context := get_script_run_ctx():
            self._session = context.session_id
        else:
            self._session = ""
        self._key = browser_key()
        self._folder: Path | None = uploads_of(self._key) if self._key else None
        _members.add(self)

    @property
    def asker(self) -> AccessContext:
        return AccessContext(self._folder, self.made | self.found)

    @property
    def is_active(self) -> bool:
        return st.runtime.get_instance().is_active_session(self._session)

    def uploads_folder(self) -> Path:
        """The folder for uploads. If the browser has a key, it is the browser's folder and is kept. If the
        browser has none, the folder is removed when the session ends."""
        if self._key:
            return make_folder(self._folder)
        if self._folder is None:
            self._folder = make_folder(all_uploads() / own_name())
            finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def keep_uploads(self) -> None:
        if self._key and self._folder.exists():
            os.utime(self._folder)

    def wanted_by_others(self, key: str) -> bool:
        """Whether another active session also submitted this job or made this encoding."""
        others = [member for member in list(_members) if member is not self]
        return any(key in member.made - member.stopped and member.is_active for member in others)


def is_open(owner: str) -> bool:
    return any(member.owner == owner and member.is_active for member in list(_members))


def open_folder() -> str | None:
    """The data folder that this session chose. Returns None if there is none, or if the session may not read
    it."""
    folder = st.session_state.get("spaces.folder")
    with suppress(SpaceError):
        if folder and readable_path(folder):
            return folder
        return None
    return None


def paths() -> str:
    if not is_shared():
        return ""
    if data_folder() is None:
        return "This app is shared, so it reads only your own uploads. It has no data folder."
    return (
        "This app is shared, so it reads only its data folder and your own uploads. A path that does not"
        " begin with “/” starts in the data folder."
    )


def help_with_paths(text: str) -> str:
    return f"{text} {paths()}".strip()
