"""Uploaded files, in a folder of each session's own that nobody can guess and no other account can open."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from relcore.access import all_uploads
from relcore.spaces import SpaceError


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
    folder = all_uploads() / f"{os.getpid()}~{secrets.token_hex(16)}~{socket.gethostname()}"
    make_folder(folder)
    return folder


def make_folder(folder: Path) -> None:
    """This folder for uploads, open to this account only; nothing where it is there. Errors as in `new_folder`."""
    root = all_uploads()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = root.lstat()
    if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
        raise SpaceError(
            f"{root}: expected a folder that this account made for uploads, got one of somebody else; remove it, or set TMPDIR "
            "to a folder of your own"
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
            if host == socket.gethostname() and not _alive(int(pid)):
                remove_folder(folder)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another account's
        return True
    return True
