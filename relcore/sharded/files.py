"""Files of shards, here or at an address that fsspec opens (``s3://``, ``gs://``, ``memory://``, …)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any, BinaryIO

from relcore import access
from relcore.extras import extra
from relcore.spaces import SpaceError
from relcore.store import digest_of
from relcore.store.partial import orphaned, own_name

_CHANGED = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "md5Hash", "created")
_PARTIAL = ".partial"


def is_address(text: str) -> bool:
    """Whether this names something that fsspec opens, rather than a path of this machine."""
    return "://" in text


def filesystem(place: str) -> tuple[Any, str]:
    """The fsspec file system of an address or a path, and the path in it.

    Raises
    ------
    SpaceError
        An address while the app is shared, a protocol that is not installed, a path that whoever asks may not read.
    """
    with extra():
        from fsspec.core import url_to_fs
    if not is_address(place):
        return url_to_fs(os.path.abspath(access.allowed(place)))
    access.need_own_machine(place)
    try:
        return url_to_fs(place)
    except (ImportError, ValueError) as error:
        raise SpaceError(
            f"{place!r:.200}: expected an address that fsspec opens, got {error!s:.200}; install what it names"
        ) from error


@contextmanager
def opened(url: str) -> Iterator[BinaryIO]:
    """A file, open for reading in binary; errors name it."""
    files, path = filesystem(url)
    try:
        with files.open(path, "rb") as stream:
            yield stream
    except OSError as error:
        said = error.strerror or str(error)
        raise SpaceError(f"{url!r:.200}: expected a file that can be read, got {said:.200}; check the address") from error


def lines(url: str) -> Iterator[str]:
    """The lines of a UTF-8 text file."""
    import io

    with opened(url) as stream:
        try:
            for line in io.TextIOWrapper(stream, encoding="utf-8-sig", newline=None):
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise SpaceError(f"{url!r:.200}: expected UTF-8 text, got {error.reason}; save it as UTF-8") from None


def listed(place: str) -> dict[str, dict[str, Any]]:
    """The files of a folder by name, with what the file system says of each; hidden ones are left out.

    Raises
    ------
    SpaceError
        No such folder.
    """
    files, path = filesystem(place)
    try:
        found = files.ls(path, detail=True)
    except (OSError, ValueError) as error:
        raise SpaceError(f"{place!r:.200}: expected a folder of shards, got none there; check the spelling") from error
    kept = {one["name"].rstrip("/").rsplit("/", 1)[-1]: one for one in found if one["type"] == "file" or one.get("islink")}
    readable = {
        name: one for name, one in kept.items() if is_address(place) or access.beside(Path(path) / "x", Path(path) / name)
    }
    return {name: one for name, one in readable.items() if not name.startswith((".", "_"))}


def stamp_of(facts: dict[str, Any]) -> str:
    """Changes when a file is written again: a digest of its size and of its time or the tag that the store gives it."""
    return digest_of(str(facts.get("size")), [str(facts[name]) for name in _CHANGED if facts.get(name) is not None])


def beside(place: str, name: str) -> str:
    """The address of a file in a folder."""
    return f"{place.rstrip('/')}/{name}"


@contextmanager
def replacing(url: str) -> Iterator[BinaryIO]:
    """A file that appears under its name once it is whole, and not at all after an error.

    A path of this machine is written beside and renamed; stores of objects show an object once it is closed.
    """
    files, path = filesystem(url)
    if is_address(url):
        with files.open(path, "wb") as stream:
            try:
                yield stream
            except BaseException:
                with suppress(Exception):
                    stream.discard()
                raise
        return
    folder, name = os.path.split(path)
    _drop_orphans(Path(folder), name)
    # A name of its own: a worker that was given up may still write. Hidden: what a killed one leaves is no part of a shard.
    partial = os.path.join(folder, f".{name}.{own_name()}{_PARTIAL}")
    try:
        with open(partial, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _drop_orphans(folder: Path, name: str) -> None:
    """Remove what killed writers of this file left."""
    for partial in folder.glob(f".{escape(name)}.*{_PARTIAL}"):
        with suppress(OSError):  # another writer removes it, too
            if orphaned(partial, partial.name.removeprefix(f".{name}.").removesuffix(_PARTIAL)):
                partial.unlink()
