"""Folders and files at addresses: read, list and replace them by fsspec."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from relcore.base import access, writing
from relcore.base.errors import SpaceError, extra, quote
from relcore.base.text import visible
from relcore.catalog.catalog import is_address
from relcore.files.formats import readable

READABLE = "a file that can be read", "check the address"
_MOST_SECONDS = 600  # maximum seconds of an answer
_MOST_LISTING = 1 << 24  # number of bytes of an answer to a request without a range
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


def filesystem(place: str) -> tuple[Any, str]:
    """Return the fsspec file system of an address or a path, and the path in that file system."""
    with extra():
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem
    if not is_address(place):  # otherwise `url_to_fs` would take "a::b" for a chain of file systems
        return LocalFileSystem(), os.path.abspath(access.readable_path(place))
    access.need_own_machine(place)
    with naming_place(place, "an address that fsspec opens", "install what it names, or check the address"):
        return url_to_fs(place, **{kind: _bounded() for kind in ("http", "https") if f"{kind}://" in place})


def _bounded() -> dict[str, Any]:
    """Settings for HTTP in fsspec that limit the bytes, the unpacking and the waiting, which have no limit by
    default."""
    from aiohttp import ClientResponse, ClientTimeout

    class Bounded(ClientResponse):
        async def read(self) -> bytes:
            if self._body is None:
                wanted = _RANGE.fullmatch(self.request_info.headers.get("Range", ""))
                most = _MOST_LISTING
                if wanted:
                    most = int(wanted[2]) - int(wanted[1]) + 1
                content = bytearray()
                async for some in self.content.iter_any():
                    content += some
                    if len(content) > most:
                        raise OSError(f"an answer of more than {readable(most)}")
                self._body = bytes(content)
            return self._body

    return {
        "client_kwargs": {
            "timeout": ClientTimeout(total=_MOST_SECONDS, sock_connect=20, sock_read=20),
            "headers": {"Accept-Encoding": "identity"},
            "auto_decompress": False,
            "response_class": Bounded,
        }
    }


@contextmanager
def naming_place(
    place: str, expected: str, remedy: str, errors: type[Exception] = Exception
) -> Iterator[None]:
    try:
        yield
    except SpaceError:
        raise
    except errors as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise SpaceError(
            f"{place!r:.200}: expected {expected}, got {visible(said, 200)}; {remedy}"
        ) from error


@contextmanager
def open_url(url: str) -> Iterator[BinaryIO]:
    files, path = filesystem(url)
    with naming_place(url, *READABLE, OSError), ExitStack() as around:
        with naming_place(url, *READABLE):
            stream = around.enter_context(files.open(path, "rb"))
        yield stream


def list_files(place: str) -> dict[str, dict[str, Any]]:
    """The files of a folder: by name, what the file system reports on each, such as its size. Files whose
    name starts with a dot or an underscore are left out, and links to places that the session may not read.
    """
    files, path = filesystem(place)
    with naming_place(place, "a folder of shards", "check the spelling"):
        files.invalidate_cache()
        entries = files.ls(path, detail=True)
    names = {
        entry["name"].rstrip("/").rsplit("/", 1)[-1]: entry
        for entry in entries
        if entry["type"] == "file" or entry.get("islink")
    }
    if is_address(place) and (chains := [name for name in names if "::" in name]):
        raise SpaceError(
            f"{place!r:.200}: expected names of files without '::', which chains file systems, got"
            f" {quote(chains[:2])}; rename them"
        )
    return {
        name: entry
        for name, entry in names.items()
        if not name.startswith((".", "_"))
        and (is_address(place) or access.lies_in(Path(path), Path(path) / name))
    }


def beside(place: str, name: str) -> str:
    return f"{place.rstrip('/')}/{name}"


@contextmanager
def replacing(url: str) -> Iterator[BinaryIO]:
    """A context that yields a file to write, which appears under its name only when it is complete, and never
    after an error.

    A local file is written under another name and then renamed. Object stores show an object only after it is
    closed.
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
    with writing.replacing(Path(path)) as stream:
        yield stream
