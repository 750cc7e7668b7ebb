"""A collection of Qdrant as an index: of a folder in the embedded mode, or of a server.

The points of a folder are read here: the client, which unpickles whatever it finds, never opens a folder that
is there already.
"""

from __future__ import annotations

import io
import math
import os
import sqlite3
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from operator import ge
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.base.numbers import counted
from relcore.base.records import read_file
from relcore.base.text import visible
from relcore.base.writing import new_folder
from relcore.files import confined
from relcore.files.formats import readable, usable_bytes
from relcore.files.pickles import ListedUnpickler, State
from relcore.represent.similarity import unit_rows
from relcore.runs.progress import Progress, silent
from relcore.stores.index import BLOCK, StoredRows, StorePlace, Target, VectorIndex, need_new, need_width

KEY = "QDRANT_API_KEY"
TIMEOUT_SECONDS = 20
_MOST_SECONDS = 120  # of a request, which may be answered byte by byte
_MOST_ANSWER = (
    1 << 25
)  # bytes; vectors take about a quarter of it, as a page has the more points the shorter they are
_AT_ONCE = 256  # points per request: a server refuses requests of more than 32 MB
_MOST_NUMBER = 2**64
_META = "meta.json"
_ID = "relscope_id"  # in the payload, where an id is neither a whole number nor a UUID, which Qdrant needs
_MOST_POINT = 1 << 26
_NUMBERS = {int, float}
_OF_POINTS = dict.fromkeys(
    (f"qdrant_client.http.models.models.{n}" for n in ("PointStruct", "SparseVector")), State
)
_UNPACKED = 6  # bytes of memory for each byte of the file: the points, and an array of their vectors


class QdrantIndex(VectorIndex):
    """One collection, of a server or of a folder; with ``#COLLECTION/NAME`` one of several named vectors."""

    @classmethod
    def open(cls, place: StorePlace) -> VectorIndex:
        with extra("qdrant"):
            import qdrant_client  # noqa: F401
        return QdrantServer.open(place) if place.address else QdrantFolder(place)

    @classmethod
    def need_target(cls, place: StorePlace, target: Target) -> None:
        if place.address:
            with closing(_client(place)) as client, _told(place):
                _named_vector(client, place, target)
        elif place.path.exists():
            raise SpaceError(
                f"{place.text}: expected a new place, got one that is there already; choose another name. "
                "Rows are added only to a Qdrant server"
            )

    @classmethod
    def is_written(cls, place: StorePlace, target: Target) -> bool:
        return not place.address and place.path.exists()

    @classmethod
    def write(
        cls, place: StorePlace, blocks: Iterable[StoredRows], target: Target, report: Progress = silent
    ) -> None:
        """To a server, where points with equal ids are overwritten; or to a new folder. A killed run begins
        again.
        """
        cls.need_target(place, target)
        if place.address:
            with closing(_client(place)) as client, _told(place):
                _write(client, place, blocks, target, report)
            return
        with new_folder(place.path) as made, _told(place), closing(_client(place, made)) as client:
            _write(client, place, blocks, target, report)


class QdrantFolder(QdrantIndex):
    """A collection of a folder, in memory as a whole; one for cosines gives vectors of length 1, as a server
    does.
    """

    def __init__(self, place: StorePlace) -> None:
        self.place, folder = place, place.path
        self.name, _, chosen = place.table.partition("/")
        collections = collections_of(folder)
        if self.name not in collections:
            raise SpaceError(
                f"{place.text}: expected a collection that exists, got {self.name!r}; there:"
                f" {quote(sorted(collections)[:6])}"
            )
        settings = collections[self.name].get("vectors")
        plain = isinstance(settings, dict) and "size" in settings
        vector, parameters = _vector(place, {"": settings} if plain else settings, chosen)
        self.width = parameters.get("size") if isinstance(parameters, dict) else None
        if type(self.width) is not int or self.width < 1:
            raise SpaceError(f"{place.text}: expected the width of its vectors, got none; restore the folder")
        points = confined.run(
            read_points,
            access.regular_file(folder / "collection" / self.name / "storage.sqlite"),
            libraries=(__name__,),
            vector=vector,
            width=self.width,
        )
        self._ids, self._vectors, self._payload = points["ids"], points["vectors"], points["payload"]
        if parameters.get("distance") == "Cosine":
            self._vectors = unit_rows(self._vectors)
        self.n = len(self._ids)
        if not self.n:
            raise SpaceError(f"{place.text}: expected points, got an empty collection; check its name")

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        has_payload = any(self._payload)
        for first in range(start, self.n, size):
            rows = slice(first, min(first + size, self.n))
            payload = tuple(self._payload[rows]) if has_payload else ()
            yield StoredRows(self._ids[rows], self._vectors[rows], payload)


class QdrantServer(QdrantIndex):
    """A collection of a server; one for cosines holds its vectors at length 1."""

    def __init__(self, place: StorePlace, client: Any) -> None:
        self.place, self._client, self._most = place, client, BLOCK
        self._collection, _, vector = place.table.partition("/")
        with _told(place):
            if not client.collection_exists(self._collection):
                names = quote(sorted(item.name for item in client.get_collections().collections)[:6])
                raise SpaceError(
                    f"{place.text}: expected a collection that exists, got {self._collection!r}; there:"
                    f" {names}"
                )
            facts = client.get_collection(self._collection)
            self.n = client.count(self._collection, exact=True).count
        self._vector, parameters = _vector(place, facts.config.params.vectors, vector)
        self.name, self.width = self._collection, parameters.size
        if self.n < 1 or self.width < 1:
            got = f"{self.n} of width {self.width}"
            raise SpaceError(f"{place.text}: expected points with vectors, got {got}; check its name")

    @classmethod
    def open(cls, place: StorePlace) -> QdrantServer:
        client = _client(place)
        try:
            return cls(place, client)
        except BaseException:
            client.close()
            raise

    def close(self) -> None:
        self._client.close()

    def read(self, size: int, start: int) -> Iterator[StoredRows]:
        row, offset, keys = 0, None, []
        while True:
            skips = row < start
            most = start - row if skips else min(size, max(1, _MOST_ANSWER // (64 * self.width)))
            points, offset = self._scroll(min(most, BLOCK), offset, vectors=not skips)
            keys = keys[-1:] + [(isinstance(point.id, str), point.id) for point in points]
            if len(points) > most or any(map(ge, keys, keys[1:])) or (offset is not None and not points):
                raise SpaceError(
                    f"{self.place.text}: expected 1 to {most:,} more points in the order of their ids, got"
                    f" {len(points):,}, or some again; check what answers at this address"
                )
            if points and not skips:
                yield self._block(points)
            row += len(points)
            if offset is None:
                return

    def holding(self, ids: Sequence[str]) -> Iterator[StoredRows]:
        wanted = [_key_of(item) if (key := _number(item)) is None else key for item in ids]
        most = min(_AT_ONCE, max(1, _MOST_ANSWER // (64 * self.width)))
        for first in range(0, len(wanted), most):
            with _told(self.place):
                points = self._client.retrieve(
                    self._collection,
                    wanted[first : first + most],
                    with_payload=[_ID],
                    with_vectors=[self._vector] if self._vector else True,
                    timeout=TIMEOUT_SECONDS,
                )
            yield self._block(points)

    def _scroll(self, limit: int, offset: Any, vectors: bool) -> tuple[list[Any], Any]:
        from qdrant_client.http.exceptions import ResponseHandlingException

        wanted = ([self._vector] if self._vector else True) if vectors else False
        with _told(self.place):
            while True:
                try:
                    return self._client.scroll(
                        self._collection,
                        limit=min(limit, self._most),
                        offset=offset,
                        with_payload=vectors,
                        with_vectors=wanted,
                        timeout=TIMEOUT_SECONDS,
                    )
                except ResponseHandlingException as error:
                    self._most = min(limit, self._most) // 8  # of points with a long payload
                    if not isinstance(error.source, _TooLongError) or not self._most:
                        raise

    def _block(self, points: list[Any]) -> StoredRows:
        vectors = np.empty((len(points), self.width), np.float32)
        for row, item in enumerate(points):
            values = item.vector
            values = values.get(self._vector) if isinstance(values, dict) else values
            if not isinstance(values, list) or len(values) != self.width or {*map(type, values)} - _NUMBERS:
                raise SpaceError(
                    f"{self.place.text}: expected a vector of {self.width} numbers at point {item.id},"
                    " got none"
                )
            with _told(self.place):
                vectors[row] = values
        payload = tuple(dict(item.payload or {}) for item in points)
        ids = [_id_of(item.id, kept) for item, kept in zip(points, payload, strict=True)]
        return StoredRows(ids, vectors, payload)


def _named_vector(client: Any, place: StorePlace, target: Target) -> str | None:
    """The vector that rows are added to, "" for the unnamed one; None where there is no collection yet."""
    if "/" in place.table:
        raise SpaceError(
            f"{place.text}: expected the name of a collection, got one with a vector; leave that out"
        )
    exists = client.collection_exists(place.table)
    need_new(place.text, exists, target)
    if not exists:
        return None
    name, parameters = _vector(place, client.get_collection(place.table).config.params.vectors, "")
    need_width(place.text, parameters.size, target)
    return name


def _write(
    client: Any, place: StorePlace, blocks: Iterable[StoredRows], target: Target, report: Progress
) -> None:
    from qdrant_client import models

    name = _named_vector(client, place, target)
    if name is None:
        parameters = models.VectorParams(size=target.width, distance=models.Distance.COSINE)
        client.create_collection(place.table, vectors_config=parameters, timeout=TIMEOUT_SECONDS)
    done = 0
    for block in blocks:
        points = _points(block, name or "")
        while some := list(islice(points, _AT_ONCE)):
            client.upsert(place.table, some, wait=True)
            done += len(some)
            report(done, target.n, place.text)
    if not target.add and (there := client.count(place.table, exact=True).count) != target.n:
        raise SpaceError(
            f"{place.text}: expected {counted(target.n, 'point')} after writing, got {there:,}; some ids are"
            " one point for Qdrant: make them distinct, and write to a new place"
        )


def _points(block: StoredRows, name: str) -> Iterator[Any]:
    from qdrant_client import models

    payload = block.payload or ({},) * len(block.ids)
    for item, vector, kept in zip(block.ids, block.vectors, payload, strict=True):
        number = _number(item)
        values = vector.tolist()
        if number is None:
            if _ID in kept:
                raise SpaceError(
                    f"{item!r:.80}: expected a payload without {_ID!r}, which holds ids, got one; rename it"
                )
            number, kept = _key_of(item), {**kept, _ID: item}
        yield models.PointStruct(id=number, vector={name: values} if name else values, payload=kept)


def _key_of(text: str) -> str:
    """The point of an id that is neither a whole number nor a UUID."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, text))


def _id_of(key: int | str, payload: dict[str, Any]) -> str:
    """The text in the payload if this is its point, else the point's own id: any program may use the name."""
    text = payload.get(_ID)
    return payload.pop(_ID) if isinstance(text, str) and _key_of(text) == str(key) else str(key)


def _number(text: str) -> int | str | None:
    """A point's id of this text, if it comes back as the same text: a whole number or a UUID."""
    if text.isascii() and text.isdigit() and str(int(text)) == text and int(text) < _MOST_NUMBER:
        return int(text)
    try:
        return text if str(uuid.UUID(text)) == text else None
    except ValueError:
        return None


def _vector(place: StorePlace, vectors: Any, chosen: str) -> tuple[str, Any]:
    """The name of the vector, "" for the unnamed one, and its parameters."""
    from qdrant_client import models

    vectors = {"": vectors} if isinstance(vectors, models.VectorParams) else vectors
    if not isinstance(vectors, dict) or not vectors:
        raise SpaceError(
            f"{place.text}: expected one dense vector per point, got none; name another collection"
        )
    if not chosen and len(vectors) == 1:
        return next(iter(vectors.items()))
    if chosen not in vectors:
        raise SpaceError(
            f"{place.text}: expected one of its vectors, {quote(vectors)}; name it as #COLLECTION/NAME"
        )
    return chosen, vectors[chosen]


def _client(place: StorePlace, new: Path | None = None) -> Any:
    """A client of a server, or of a folder that this run has just made."""
    with extra("qdrant"):
        from qdrant_client import QdrantClient
    with _told(place):
        if new is not None:
            return QdrantClient(path=str(new))
        client = QdrantClient(
            url=place.address,
            api_key=os.environ.get(KEY) or None,
            timeout=TIMEOUT_SECONDS,
            check_compatibility=False,
            event_hooks={"response": [_read_bounded]},
        )
        client.http.client.add_middleware(_plain_and_in_time(client.http.client))
        return client


class _TooLongError(ValueError):
    pass


def _read_bounded(answer: Any) -> None:
    """Read the body of an answer of httpx, which would itself take any number of bytes, and unpack them."""
    from httpx import ByteStream

    if (packed := answer.headers.get("Content-Encoding", "identity")) != "identity":
        raise ValueError(f"an answer packed by {packed:.40}, which was not asked for")
    content = bytearray()
    with closing(answer.stream) as stream:
        for some in stream:
            content += some
            if len(content) > _MOST_ANSWER:
                raise _TooLongError(f"an answer of more than {readable(_MOST_ANSWER)}")
    answer.stream = ByteStream(bytes(content))


def _plain_and_in_time(client: Any) -> Callable[[Any, Any], Any]:
    """A middleware: it asks for no compression, and ends a request whose answer drips, since the timeouts of
    httpx begin again with each byte.
    """

    def send(request: Any, following: Callable[[Any], Any]) -> Any:
        request.headers["Accept-Encoding"] = "identity"
        timer = threading.Timer(_MOST_SECONDS, client.close)
        timer.daemon = True
        timer.start()
        try:
            return following(request)
        finally:
            timer.cancel()

    return send


@contextmanager
def _told(place: StorePlace) -> Iterator[None]:
    """Whatever the client raises, as one sentence with the place."""
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ApiException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # advice on large collections, and on addresses without TLS
            yield
    except SpaceError:
        raise
    except (ApiException, HTTPError, OSError, sqlite3.Error) as error:
        if not place.address:
            raise SpaceError(
                f"{place.text}: expected a folder that can be used, got {visible(error, 200)}; check it and"
                " the room on its disk"
            ) from error
        said = visible(error, 200).strip() or type(error).__name__
        raise SpaceError(
            f"{place.text}: expected an answer from the Qdrant server at {place.address} within"
            f" {TIMEOUT_SECONDS} seconds, got: {said}; check the address, that it runs, and {KEY}"
        ) from error
    except (ValueError, OverflowError) as error:
        raise SpaceError(
            f"{place.text}: expected a collection that can be used, got: {visible(error, 200)}; check it"
        ) from error


def collections_of(folder: Path) -> dict[str, Any]:
    """The collections of a folder by name, with their settings; raises a SpaceError where it is none, or
    damaged.
    """
    meta = folder / _META
    if not meta.is_file():
        raise SpaceError(
            f"{folder}: expected a folder of Qdrant's embedded mode, got one without {_META}; check the path"
        )
    content = read_file(meta, "Qdrant's collections")
    collections = content.get("collections") if isinstance(content, dict) else None
    if not isinstance(collections, dict) or not all(isinstance(item, dict) for item in collections.values()):
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
                fields = ListedUnpickler(io.BytesIO(content), _OF_POINTS).load().state["__dict__"]
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
        ids = list(map(_id_of, keys, payload))
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
