"""A folder of Qdrant's embedded mode, looked through before the client opens it.

The client keeps each point as a pickle and unpickles all of them when it opens a folder. It is let near a folder only after
every one has been read as instructions, without running them, and asks for nothing but the classes of a point.
"""

from __future__ import annotations

import pickletools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from relcore.plain_json import read_file
from relcore.sources.memory import usable_bytes
from relcore.sources.rows import readable
from relcore.spaces import SpaceError, quote

META, _POINTS = "meta.json", "storage.sqlite"
_HARMLESS = {f"qdrant_client.http.models.models {name}" for name in ("PointStruct", "SparseVector")}
_HIDDEN_NAMES = ("INST", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID")
_TEXTS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
_RECALLED, _KEPT = ("GET", "BINGET", "LONG_BINGET"), ("PUT", "BINPUT", "LONG_BINPUT")
_UNPACKED = 6  # bytes of memory for each byte of pickle: the points, and NumPy arrays of them
_MOST_POINT = 1 << 26


def need_harmless(folder: Path) -> dict[str, int]:
    """The collections of the folder with their numbers of points, once its pickles are known to run nothing.

    Raises
    ------
    SpaceError
        No such folder, a damaged one, more points than fit into memory, a pickle that asks for something else.
    """
    meta = folder / META
    if not meta.is_file():
        raise SpaceError(f"{folder}: expected a folder of Qdrant's embedded mode, got one without {META}; check the path")
    found = read_file(meta, "Qdrant's collections")
    collections = found.get("collections") if isinstance(found, dict) else None
    if not isinstance(collections, dict):
        raise SpaceError(f"{meta}: expected Qdrant's collections by name, got something else; restore the folder")
    strange = [name for name in collections if Path(name).name != name or "\\" in name or name in (".", "..")]
    if strange:
        raise SpaceError(f"{meta}: expected names of collections without folders, got {quote(strange[:2])}; rename them")
    places = {name: folder / "collection" / name / _POINTS for name in collections}
    there = {name: path for name, path in places.items() if path.is_file()}
    size = sum(path.stat().st_size for path in there.values())
    if _UNPACKED * size > usable_bytes():
        raise SpaceError(
            f"{folder}: expected points that fit into memory, which is where the embedded mode reads all collections, got "
            f"{readable(size)} on disk; serve the folder with a Qdrant server and name its address"
        )
    return {name: _look_through(there[name], name) if name in there else 0 for name in collections}


def _look_through(path: Path, name: str) -> int:
    n = 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as storage:
            kinds = storage.execute("SELECT type FROM sqlite_master WHERE type NOT IN ('table', 'index')").fetchall()
            if kinds:
                raise sqlite3.DatabaseError(f"a {kinds[0][0]} beside the table of points")
            largest = storage.execute("SELECT max(length(point)) FROM points").fetchone()[0] or 0
            if largest > _MOST_POINT:
                raise sqlite3.DatabaseError(f"a point of {readable(largest)}")
            for (point,) in storage.execute("SELECT point FROM points"):
                _need_harmless(path, bytes(point))
                n += 1
    except (sqlite3.Error, TypeError, ValueError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(
            f"{path}: expected the points of the collection {name!r:.80}, got a file that cannot be read ({error!s:.200}); "
            "restore the folder"
        ) from error
    return n


def _need_harmless(path: Path, pickled: bytes) -> None:
    strange = sorted(set(strange_names(pickled)))
    if strange:
        raise SpaceError(
            f"{path}: refused, a pickle in it asks for {quote(strange[:3])}, which points never need; nothing of it was run. "
            "Get the folder from a source that you trust; or export its points to a file"
        )


def strange_names(pickled: bytes) -> Iterator[str]:
    """The classes and functions that a pickle asks for beyond those of a point, and instructions that hide a name.

    A name of protocol 4 is the two strings that were pushed last, directly or from the memo; any other origin is strange.
    """
    memo: dict[int, str | None] = {}
    below: str | None = None
    top: str | None = None
    for opcode, argument, _ in pickletools.genops(pickled):
        kind = opcode.name
        if kind in _TEXTS:
            below, top = top, argument
        elif kind in _RECALLED:
            below, top = top, memo.get(int(argument))
        elif kind == "MEMOIZE":
            memo[len(memo)] = top
        elif kind in _KEPT:
            memo[int(argument)] = top
        elif kind == "STACK_GLOBAL":
            named = f"{below} {top}"
            if named not in _HARMLESS:
                yield named
            below = top = None
        elif kind == "GLOBAL":
            if argument not in _HARMLESS:
                yield argument
            below = top = None
        elif kind in _HIDDEN_NAMES:
            yield kind
        elif kind not in ("PROTO", "FRAME"):
            below = top = None
