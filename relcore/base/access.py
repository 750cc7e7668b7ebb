"""Access control: which files a user may open by a path. Code that takes a path from a user calls
`readable_path`.

Usually users may open all files that the account may read, because the app and the command line serve the
person who started them. With ``RELSCOPE_SHARE`` the app also serves other people. They may open only files in
``RELSCOPE_DATA``, their session's own uploads, and files that `relscope app` was given; symbolic links are
followed before the check. A session never opens an upload of another session.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Any

from relcore.base import environment
from relcore.base.errors import SpaceError, brief

ENVIRONMENT = "RELSCOPE_SHARE"
DATA = "RELSCOPE_DATA"
TOKEN = "RELSCOPE_TOKEN"
NO_TOKEN = "RELSCOPE_NO_TOKEN"
SEND_TO = "RELSCOPE_SEND_TO"  # hosts to which a shared app may send texts, separated by commas
OPENED = "RELSCOPE_OPEN"  # JSON list: what the app opens, or the folders given to `relscope mcp`
# Linux's limits; other systems allow at least as much
_LONGEST_NAME = 255
_LONGEST_PATH = 4095
_SHORTEST_TOKEN = 8
_KINDS = {
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


@dataclass(frozen=True)
class AccessContext:
    """What one session of the app may read: the folder of its uploads, and the results that it `made`, by
    their keys. `limits` is the text shown when a file is refused; if it is "", the default text is shown."""

    uploads: Path | None = None
    made: Container[str] = ()
    limits: str = ""


_find_asker: Callable[[], AccessContext] | None = None


def set_asker(find: Callable[[], AccessContext] | None) -> None:
    """Set the function that returns the rights of the session on whose behalf code runs. Worker processes set
    none and may read the uploads of all sessions, because the app checks access before it submits a job."""
    global _find_asker
    _find_asker = find


def all_uploads() -> Path:
    """The folder that holds the uploads of every session of this account on this machine."""
    if hasattr(os, "getuid"):
        user = os.getuid()
    else:
        user = getuser()
    return Path(tempfile.gettempdir()) / f"relscope-uploads-{user}"


def is_shared() -> bool:
    """Whether the app serves people other than the one who started it."""
    return environment.flag(ENVIRONMENT)


def chosen_token() -> str:
    """The token in RELSCOPE_TOKEN, "" if unset. Raises a SpaceError if the token is too short."""
    token = os.environ.get(TOKEN, "")
    if token and (len(token) < _SHORTEST_TOKEN or not token.isprintable()):
        raise SpaceError(
            f"{TOKEN}: expected at least {_SHORTEST_TOKEN} printable characters, got {len(token)}; unset it,"
            " and each start makes a token of its own"
        )
    return token


def put_by_session(key: str) -> bool:
    """Whether this session stored the result with this key. Always True in a worker process, and in an app
    that is not shared."""
    return not is_shared() or _find_asker is None or key in _find_asker().made


def expand_home(path: str | Path) -> Path:
    """The path with ``~`` replaced.

    Raises
    ------
    SpaceError
        The path names the home folder of an unknown user, contains a zero byte, or is too long.
    """
    if not isinstance(path, str | os.PathLike):
        raise SpaceError(f"expected the path of a file or folder, got {brief(path, 80)}; write it as a text")
    try:
        place = Path(path).expanduser()
        if "\0" in str(place):
            raise ValueError("it contains a zero byte")
        longest = max((len(os.fsencode(part)) for part in place.parts), default=0)
        if longest > _LONGEST_NAME or len(os.fsencode(place)) > _LONGEST_PATH:
            raise ValueError("it is too long")
    except (RuntimeError, ValueError) as error:
        raise SpaceError(
            f"expected the path of a file or folder, got {str(path)!r:.200} ({error}); write it in full"
        ) from None
    return place


def data_folder() -> Path | None:
    """The folder in RELSCOPE_DATA; None if it is not set."""
    data = os.environ.get(DATA)
    return expand_home(data) if data else None


def check_environment() -> None:
    """Raise a SpaceError if an environment variable has an invalid value. Call this when a program starts."""
    for name in (ENVIRONMENT, NO_TOKEN, environment.CONFINED):
        environment.flag(name)
    chosen_token()
    environment.store_bytes()
    if (data := data_folder()) and not data.is_dir():
        raise environment.wrong(DATA, "a folder that exists", str(data))


def readable_path(path: str | Path, *, uploads: bool = True) -> Path:
    """The path with ``~`` replaced, after a check that the current session may read it.

    In a shared app, a relative path starts in the data folder, and the returned path has its links followed.
    With ``uploads=False`` uploads are refused; use this for a folder whose files name other files.

    Raises
    ------
    SpaceError
        The path leads to the upload of another session, or outside the allowed folders of a shared app. The
        message does not reveal whether the file exists.
    """
    place = expand_home(path)
    confined = is_shared()
    if not confined and _find_asker is None:
        return place
    data = data_folder()
    if confined and data:
        place = data / place
    end = resolve_links(place)
    every = all_uploads()
    if end and end.is_relative_to(every.resolve()):
        own = every
        if _find_asker:
            own = _find_asker().uploads
        if own and end.is_relative_to(own.resolve()) and (uploads or not confined):
            return end if confined else place
        raise SpaceError(
            f"{str(path)!r:.200} is not open to this session: it is an upload, and only the session that"
            " uploaded a file opens it; upload it again"
        )
    if not confined:
        return place
    folders = [Path(one["name"]) for one in _opened_records() if one["source"] == "folder"]
    if data:
        folders.append(data)
    inside = end and any(end.is_relative_to(folder.resolve()) for folder in folders)
    if inside or (end and end in _files_of_command_line()):
        return end
    limits = (_find_asker and _find_asker().limits) or (
        f"this app is shared, so it reads only its data folder ({DATA}) and your own uploads; upload the file"
    )
    raise SpaceError(f"{str(path)!r:.200} is not open to this session: {limits}")


def need_own_machine(what: str) -> None:
    """Raise a SpaceError if the app is shared. Call this before a library opens an address or a database's
    folder.

    A visitor must not make this machine connect to other machines, and a vector database writes into the
    folder that it opens. Addresses of shards that were given to `relscope app` stay allowed.
    """
    if is_shared() and what not in [spec["name"] for spec in _opened_records() if spec["source"] == "sample"]:
        usual = (
            "this app is shared, so it opens no databases and no addresses; export the vectors to a file and"
            " upload that"
        )
        limits = (_find_asker and _find_asker().limits) or usual
        raise SpaceError(f"{what!r:.200} is not open to this session: {limits}")


def may_read(path: str | Path) -> bool:
    """Whether `readable_path` accepts the path. Lists on pages omit the paths that it refuses."""
    with suppress(SpaceError):
        return not is_shared() or bool(readable_path(path))
    return False


def beside(path: Path, other: Path) -> bool:
    """Whether the file `other` may be read together with the opened file `path`, beside which it lies. False
    for a link to a place that the session may not read."""
    if not is_shared():
        return True
    ends = resolve_links(path), resolve_links(other)
    return all(ends) and (ends[1].parent == ends[0].parent or may_read(other))


def lies_in(folder: Path, child: Path) -> bool:
    """Whether the file `child` of an opened folder may be read. False for a link to a place that the session
    may not read."""
    if not is_shared():
        return True
    end = resolve_links(child)
    return end is not None and (end.parent == resolve_links(folder) or may_read(child))


def resolve_links(path: Path) -> Path | None:
    """The path with its symbolic links followed; None if the links form a circle."""
    with suppress(OSError, RuntimeError):
        end = path.resolve()
        if not _is_circle(end):
            return end
    return None


def _is_circle(path: Path) -> bool:
    """Whether opening the path follows links without end. Since Python 3.13, `Path.resolve` returns a path
    within such a circle, where it raised a RuntimeError before."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _files_of_command_line() -> list[Path]:
    """The files given to `relscope app`, which every session may open."""
    paths = []
    for spec in _opened_records():
        if spec["source"] in ("file", "sample"):
            paths.append(spec["name"])
            options = spec.get("options") or {}
            if options.get("metadata"):
                paths.append(options["metadata"])
    return [Path(path).resolve() for path in paths]


def _opened_records() -> list[dict[str, Any]]:
    return json.loads(os.environ.get(OPENED, "[]"))


def regular_file(path: Path) -> Path:
    """The path, if it leads to a regular file. Other kinds are refused: reading a device or a named pipe
    might never end.

    Raises
    ------
    SpaceError
        The path does not exist, or is not a regular file.
    """
    quoted = f"{str(path)!r:.200}"
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError) and path.is_relative_to(all_uploads()):
            raise SpaceError(
                f"{path.name!r:.200}: this upload is no longer kept; upload the file again"
            ) from None
        if isinstance(error, FileNotFoundError):
            got = f"{quoted}, where there is none"
        else:
            got = f"{quoted}: {reason}"
        raise SpaceError(f"expected a file, got {got}; check the path") from None
    if stat.S_ISDIR(mode):
        raise SpaceError(f"expected a file, got the folder {quoted}; name one of the files in it")
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS.items() if test(mode)), "something else")
        raise SpaceError(f"expected a file, got {kind}: {quoted}; copy its content to a file and load that")
    return path


def read_at_most(path: Path, most: int, what: str) -> bytes:
    """The content of a regular file. Raises a SpaceError that says what was expected, if it has more than
    `most` bytes."""
    size = regular_file(path).stat().st_size
    if size > most:
        got = f"{size >> 20:,} MB; is it the right file?"
        raise SpaceError(f"{path.name}: expected {what} of at most {most >> 20} MB, got {got}")
    return path.read_bytes()
