"""Where a browser's sessions are saved: a folder of the store, named by a hash of the browser's key, with a file for each tab.

A file's name holds its tab and its owner, the session that writes it. A session that reloads a tab takes the file over by
renaming it. The session before, if it is still there because the tab was duplicated, no longer finds its file and takes another
tab's name: no session overwrites what another one saved.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from app.browser_key import KEPT_DAYS
from relcore.access import all_uploads
from relcore.plain_json import MOST_BYTES
from relcore.spaces import SpaceError
from relcore.store import Store

MOST_TABS = 20  # of one browser; beyond, the oldest are forgotten
MOST_SAVED = 10**9  # bytes of all saved sessions
MOST_UPLOADED = 10 * 10**9  # bytes of all uploads that are kept


def named(key: str, what: str) -> str:
    """A name from a browser's key, from which nobody finds the key, nor the name of something else."""
    return hashlib.blake2b(key.encode(), digest_size=16, person=what.encode()).hexdigest()


class SavedFolder:
    """The saved sessions of the browser with this key."""

    def __init__(self, key: str) -> None:
        self._folder = _root() / named(key, "session")

    def tabs(self) -> list[tuple[str, str]]:
        """Tab and owner of each saved session, the latest first."""
        return [tuple(path.stem.split("~", 1)) for path in self._paths() if "~" in path.stem]

    def saved_at(self, tab: str, owner: str) -> float:
        """When it was saved, in seconds since 1970; 0 where it is gone."""
        try:
            return self._path(tab, owner).stat().st_mtime
        except OSError:
            return 0.0

    def read(self, tab: str, owner: str) -> bytes:
        """What was saved.

        Raises
        ------
        SpaceError
            It is gone, cannot be read, or is larger than any session.
        """
        path = self._path(tab, owner)
        try:
            if path.stat().st_size > MOST_BYTES:
                raise SpaceError(f"saved session: expected at most {MOST_BYTES >> 20} MB")
            return path.read_bytes()
        except OSError as error:
            raise SpaceError(f"saved session: it cannot be read ({error.strerror or error})") from None

    def claim(self, tab: str, owner: str, new_owner: str) -> bool:
        """Make another session the owner; False where somebody else did."""
        with suppress(OSError):
            os.rename(self._path(tab, owner), self._path(tab, new_owner))
            return True
        return False

    def put_aside(self, tab: str, owner: str) -> None:
        """Offer it no longer; the file stays until it is too old."""
        path = self._path(tab, owner)
        with suppress(OSError):
            path.rename(path.with_suffix(".damaged"))

    def has(self, tab: str, owner: str) -> bool:
        return self._path(tab, owner).exists()

    def write(self, tab: str, owner: str, content: bytes) -> None:
        """Replace what was saved, all or nothing; raises OSError where the disk refuses."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        partial = self._folder / f"{secrets.token_hex(8)}.partial"
        try:
            with open(partial, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path(tab, owner))
        finally:
            partial.unlink(missing_ok=True)

    def forget_beyond(self, most: int = MOST_TABS) -> None:
        """Remove the oldest tabs above this number."""
        for path in self._paths()[most:]:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _path(self, tab: str, owner: str) -> Path:
        return self._folder / f"{tab}~{owner}.json"

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"), key=_age)


def uploads_of(key: str) -> Path:
    """The folder for the uploads of the browser with this key; it is made where it is first used."""
    return all_uploads() / f"kept~{named(key, 'uploads')}"


def sweep() -> None:
    """Remove saved sessions and kept uploads that are too old, and the oldest above the limits."""
    _sweep(_root(), "*", MOST_SAVED)
    _sweep(all_uploads(), "kept~*", MOST_UPLOADED)


def _sweep(root: Path, names: str, most_bytes: int) -> None:
    """What is used is touched, so the oldest folder is the one that was not used for longest."""
    total = 0
    for folder in sorted(root.glob(names), key=_age):
        files = [path for path in folder.rglob("*") if path.is_file()]
        with suppress(OSError):
            total += sum(path.stat().st_size for path in files)
        if total > most_bytes or _age(folder) > KEPT_DAYS * 86_400:
            shutil.rmtree(folder, ignore_errors=True)


def _age(path: Path) -> float:
    """Seconds since it was last changed; a folder changes when a file in it is replaced."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")


def _root() -> Path:
    return Store().root / "sessions"
