"""A collection of Qdrant as an index: of a folder in the embedded mode, or of a server."""

from __future__ import annotations

import os
import shutil
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.base.text import visible
from relcore.files import confined
from relcore.represent.similarity import unit_rows
from relcore.runs.progress import Report, silent
from relcore.stores.index import BLOCK, Place, StoredRows, Target, VectorIndex, need_new, need_width
from relcore.stores.qdrant_folder import ID, collections_of, read_points

KEY = "QDRANT_API_KEY"
TIMEOUT_SECONDS = 20
_AT_ONCE = 256  # points per request: a server refuses requests of more than 32 MB
_MOST_NUMBER = 2**64


class QdrantIndex(VectorIndex):
    """One collection, of a server or of a folder; with ``#COLLECTION/NAME`` one of several named vectors."""

    @classmethod
    def open(cls, place: Place) -> VectorIndex:
        with extra("qdrant"):
            import qdrant_client  # noqa: F401
        return QdrantServer.open(place) if place.address else QdrantFolder(place)

    @classmethod
    def need_target(cls, place: Place, target: Target) -> None:
        if place.address:
            with closing(_client(place)) as client, _told(place):
                _named_vector(client, place, target)
        elif place.path.exists():
            raise SpaceError(
                f"{place.text}: expected a new place, got one that is there already; choose another name. "
                "Rows are added only to a Qdrant server"
            )

    @classmethod
    def write(
        cls, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report = silent
    ) -> None:
        """To a server, where points with equal ids are overwritten; or to a new folder, which appears under
        its name once it is whole. A killed run begins again.
        """
        cls.need_target(place, target)
        if place.address:
            with closing(_client(place)) as client, _told(place):
                _write(client, place, blocks, target, report)
            return
        partial = place.path.with_name(f"{place.path.name}.partial")
        with suppress(FileNotFoundError):  # of a killed run: the client opens only what this one made
            shutil.rmtree(partial)
        try:
            with _told(place):
                partial.mkdir()
                with closing(_client(place, partial)) as client:
                    _write(client, place, blocks, target, report)
                os.rename(partial, place.path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


class QdrantFolder(QdrantIndex):
    """A collection of a folder, in memory as a whole, as in the embedded mode itself.

    A collection for cosines gives its vectors back at length 1, as a server does.
    """

    def __init__(self, place: Place) -> None:
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
            vector=vector,
            width=self.width,
        )
        self._ids, self._vectors, self._payload = points["ids"], points["vectors"], points["payload"]
        if parameters.get("distance") == "Cosine":
            self._vectors = unit_rows(self._vectors)
        self.n = len(self._ids)
        if not self.n:
            raise SpaceError(f"{place.text}: expected points, got an empty collection; check its name")

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        has_payload = any(self._payload)
        for first in range(start, self.n, size):
            rows = slice(first, min(first + size, self.n))
            payload = tuple(self._payload[rows]) if has_payload else ()
            yield StoredRows(self._ids[rows], self._vectors[rows], payload)


class QdrantServer(QdrantIndex):
    """A collection of a server. A collection for cosines holds its vectors at length 1, and gives them back
    so.
    """

    def __init__(self, place: Place, client: Any) -> None:
        self.place, self._client = place, client
        self._collection, _, vector = place.table.partition("/")
        with _told(place):
            if not client.collection_exists(self._collection):
                names = quote(sorted(one.name for one in client.get_collections().collections)[:6])
                raise SpaceError(
                    f"{place.text}: expected a collection that exists, got {self._collection!r}; there:"
                    f" {names}"
                )
            facts = client.get_collection(self._collection)
            self.n = client.count(self._collection, exact=True).count
        self._vector, parameters = _vector(place, facts.config.params.vectors, vector)
        self.name, self.width = self._collection, parameters.size
        if not self.n:
            raise SpaceError(f"{place.text}: expected points, got an empty collection; check its name")

    @classmethod
    def open(cls, place: Place) -> QdrantServer:
        client = _client(place)
        try:
            return cls(place, client)
        except BaseException:
            client.close()
            raise

    def close(self) -> None:
        self._client.close()

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[StoredRows]:
        offset, skipped = None, 0
        while skipped < start:
            points, offset = self._scroll(min(BLOCK, start - skipped), offset, vectors=False)
            skipped += len(points)
            if offset is None:
                return
        while True:
            points, offset = self._scroll(size, offset, vectors=True)
            if points:
                yield self._block(points)
            if offset is None:
                return

    def _scroll(self, limit: int, offset: Any, vectors: bool) -> tuple[list[Any], Any]:
        wanted = ([self._vector] if self._vector else True) if vectors else False
        with _told(self.place):
            return self._client.scroll(
                self._collection,
                limit=limit,
                offset=offset,
                with_payload=vectors,
                with_vectors=wanted,
                timeout=TIMEOUT_SECONDS,
            )

    def _block(self, points: list[Any]) -> StoredRows:
        vectors = [one.vector[self._vector] if self._vector and one.vector else one.vector for one in points]
        for one, vector in zip(points, vectors, strict=True):
            if np.shape(vector) != (self.width,):
                raise SpaceError(
                    f"{self.place.text}: expected a vector of {self.width} numbers at point {one.id},"
                    " got none"
                )
        payload = [dict(one.payload or {}) for one in points]
        ids = [str(kept.pop(ID, one.id)) for one, kept in zip(points, payload, strict=True)]
        return StoredRows(ids, np.array(vectors, np.float32), tuple(payload) if any(payload) else ())


def _named_vector(client: Any, place: Place, target: Target) -> str | None:
    """The name of the vector that rows are added to, "" for the unnamed one; None where there is no such
    collection yet.
    """
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


def _write(client: Any, place: Place, blocks: Iterable[StoredRows], target: Target, report: Report) -> None:
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


def _points(block: StoredRows, name: str) -> Iterator[Any]:
    from qdrant_client import models

    payload = block.payload or ({},) * len(block.ids)
    for one, vector, kept in zip(block.ids, block.vectors, payload, strict=True):
        number = _number(one)
        values = vector.tolist()
        told = dict(kept) if number is not None else {**kept, ID: one}
        key = str(uuid.uuid5(uuid.NAMESPACE_OID, one)) if number is None else number
        yield models.PointStruct(id=key, vector={name: values} if name else values, payload=told)


def _number(text: str) -> int | str | None:
    """A point's id of this text, if it comes back as the same text: a whole number or a UUID."""
    if text.isascii() and text.isdigit() and str(int(text)) == text and int(text) < _MOST_NUMBER:
        return int(text)
    try:
        return text if str(uuid.UUID(text)) == text else None
    except ValueError:
        return None


def _vector(place: Place, vectors: Any, chosen: str) -> tuple[str, Any]:
    """The name of the vector, "" for the unnamed one, and its parameters."""
    from qdrant_client import models

    vectors = {"": vectors} if isinstance(vectors, models.VectorParams) else vectors
    if not isinstance(vectors, dict) or not vectors:
        raise SpaceError(f"{place.text}: expected one dense vector per point, got none")
    if not chosen and len(vectors) == 1:
        return next(iter(vectors.items()))
    if chosen not in vectors:
        raise SpaceError(
            f"{place.text}: expected one of its vectors, {quote(vectors)}; name it as #COLLECTION/NAME"
        )
    return chosen, vectors[chosen]


def _client(place: Place, new: Path | None = None) -> Any:
    """A client of a server, or of a folder that this run has just made."""
    with extra("qdrant"):
        from qdrant_client import QdrantClient
    with _told(place):
        if new is not None:
            return QdrantClient(path=str(new))
        key = os.environ.get(KEY) or None
        return QdrantClient(
            url=place.address, api_key=key, timeout=TIMEOUT_SECONDS, check_compatibility=False
        )


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Whatever the client raises, as one sentence with the place."""
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ApiException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the client's advice on large collections, and on addresses without TLS
            yield
    except SpaceError:
        raise
    except (ApiException, HTTPError, OSError) as error:
        if not place.address:
            raise SpaceError(
                f"{place.text}: expected a folder that can be used, got {visible(error, 200)}; check it"
            ) from error
        said = visible(error, 200).strip() or type(error).__name__
        raise SpaceError(
            f"{place.text}: expected an answer from the Qdrant server at {place.address} within"
            f" {TIMEOUT_SECONDS} seconds, got: {said}; check the address, that it runs, and {KEY}"
        ) from error
    except ValueError as error:
        raise SpaceError(
            f"{place.text}: expected a collection that can be used, got: {visible(error, 200)}; check it"
        ) from error
