"""A folder of Qdrant's embedded mode as an index. Its points are read here: the client, which unpickles
whatever it finds, never opens a folder that is there already.
"""

from __future__ import annotations

import io
import math
import pickle
import sqlite3
import uuid
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.records import read_file
from relcore.base.text import visible
from relcore.files.formats import readable, usable_bytes

META = "meta.json"
ID = "relscope_id"  # in the payload, where an id is neither a whole number nor a UUID, which Qdrant needs
_MOST_POINT = 1 << 26
_UNPACKED = 6  # bytes of memory for each byte of the file: the points, and an array of their vectors


class Record:
    """Stands for a point where the pickle asks for one: it keeps the state, and does nothing."""

    def __setstate__(self, state: Any) -> None:
        self.fields = state["__dict__"]


class PointUnpickler(pickle.Unpickler):
    """Makes numbers, texts, lists, dicts and `Record`s; every other name ends the reading.

    What is checked is what is used: the names are looked at while the point is made, not before.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (
            ("qdrant_client.http.models.models", "PointStruct"),
            ("qdrant_client.http.models.models", "SparseVector"),
        ):
            return Record
        raise pickle.UnpicklingError(f"a pickle that asks for {module}.{name}, which points never need")


def collections_of(folder: Path) -> dict[str, Any]:
    """The collections of a folder by name, with their settings.

    Raises
    ------
    SpaceError
        No such folder, a damaged one.
    """
    meta = folder / META
    if not meta.is_file():
        raise SpaceError(
            f"{folder}: expected a folder of Qdrant's embedded mode, got one without {META}; check the path"
        )
    content = read_file(meta, "Qdrant's collections")
    collections = content.get("collections") if isinstance(content, dict) else None
    if not isinstance(collections, dict) or not all(isinstance(one, dict) for one in collections.values()):
        raise SpaceError(
            f"{meta}: expected Qdrant's collections by name, got something else; restore the folder"
        )
    strange = [name for name in collections if Path(name).name != name or "\\" in name or name in (".", "..")]
    if strange:
        raise SpaceError(
            f"{meta}: expected names of collections without folders, got {quote(strange[:2])}; rename them"
        )
    return collections


def read_points(path: Path, vector: str, width: int) -> dict[str, Any]:
    """Ids, vectors (n, width) float32 and payloads of a storage.sqlite, in the order of their ids.

    One statement reads the table, without its indexes, whose content a hostile file may choose.

    Raises
    ------
    SpaceError
        A damaged file, more points than fit into memory, a pickle that asks for anything but a point.
    """
    size = path.stat().st_size
    if _UNPACKED * size > usable_bytes():
        raise SpaceError(
            f"{path}: expected points that fit into memory, got {readable(size)} on disk; serve the folder"
            " with a Qdrant server and name its address"
        )
    points: dict[int | str, Any] = {}
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as storage:
            storage.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_POINT)
            storage.execute("PRAGMA trusted_schema = OFF")
            rows = storage.execute("SELECT point FROM points NOT INDEXED ORDER BY rowid DESC")
            for (content,) in rows:  # the latest comes first, and older ones of the same id do not count
                fields = PointUnpickler(io.BytesIO(content)).load().fields
                points.setdefault(_number_or_uuid(fields["id"]), fields)
        keys = sorted(points, key=lambda key: (key, 0) if isinstance(key, str) else ("", key))
        vectors = np.empty((len(keys), width), np.float32)
        for row, key in enumerate(keys):
            values = points[key]["vector"]
            values = values[vector] if isinstance(values, dict) else values
            if not isinstance(values, list) or len(values) != width:
                raise ValueError(f"no vector of {width} numbers at point {key}")
            vectors[row] = values
        payload = [dict(points[key].get("payload") or {}) for key in keys]
        ids = [str(kept.pop(ID, key)) for kept, key in zip(payload, keys, strict=True)]
        return {"ids": ids, "vectors": vectors, "payload": payload}
    except SpaceError:
        raise
    except Exception as error:  # an unpickler may raise anything
        raise SpaceError(
            f"{path}: expected the points of a collection of Qdrant, got {visible(error, 200)}; restore the"
            " folder, or get it from a source that you trust. Nothing of it was run"
        ) from error


def _number_or_uuid(key: Any) -> int | str:
    if isinstance(key, str):
        with suppress(ValueError):
            return str(uuid.UUID(key))
        return key
    if isinstance(key, int) and math.isfinite(key):
        return int(key)
    raise ValueError(f"a point of id {key!r:.80}")
