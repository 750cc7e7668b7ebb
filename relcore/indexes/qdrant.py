"""A collection of Qdrant as an index: of a folder in the embedded mode, or of a server."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.extras import extra
from relcore.indexes.index import BLOCK, Block, Neighbours, Target, VectorIndex, need_new, need_width
from relcore.indexes.qdrant_folder import META, need_harmless
from relcore.plain_text import visible
from relcore.progress import Report, silent
from relcore.sources.index_place import Place
from relcore.spaces import SpaceError, quote

KEY = "QDRANT_API_KEY"
TIMEOUT_SECONDS = 20
ID = "relscope_id"  # in the payload, where an id is neither a whole number nor a UUID, which are all that Qdrant takes
_AT_ONCE = 256  # points per request: a server refuses requests of more than 32 MB
_MOST_NUMBER = 2**64


class QdrantIndex(VectorIndex):
    """One collection. A collection for cosines holds its vectors at length 1, and gives them back so.

    With ``#COLLECTION/NAME`` one of several named vectors.
    """

    def __init__(self, place: Place, client: Any) -> None:
        self.place, self._client = place, client
        self._collection, _, vector = place.table.partition("/")
        with _told(place):
            if not client.collection_exists(self._collection):
                names = quote(sorted(one.name for one in client.get_collections().collections)[:6])
                raise SpaceError(f"{place.text}: expected a collection that exists, got {self._collection!r}; there: {names}")
            facts = client.get_collection(self._collection)
            self.n = client.count(self._collection, exact=True).count
        self._vector, parameters = _vector(place, facts.config.params.vectors, vector)
        self.name, self.width = self._collection, parameters.size
        if not self.n:
            raise SpaceError(f"{place.text}: expected points, got an empty collection; check its name")

    @classmethod
    def open(cls, place: Place) -> QdrantIndex:
        client = _client(place)
        try:
            return cls(place, client)
        except BaseException:
            client.close()
            raise

    def close(self) -> None:
        self._client.close()

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[Block]:
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
                self._collection, limit=limit, offset=offset, with_payload=vectors, with_vectors=wanted, timeout=TIMEOUT_SECONDS
            )

    def _block(self, points: list[Any]) -> Block:
        found = [one.vector[self._vector] if self._vector and one.vector else one.vector for one in points]
        odd = next((one for one, vector in zip(points, found, strict=True) if np.shape(vector) != (self.width,)), None)
        if odd is not None:
            raise SpaceError(f"{self.place.text}: expected a vector of {self.width} numbers at point {odd.id}, got none")
        payload = [dict(one.payload or {}) for one in points]
        ids = [str(kept.pop(ID, one.id)) for one, kept in zip(points, payload, strict=True)]
        return Block(ids, np.array(found, np.float32), tuple(payload) if any(payload) else ())

    def search(self, queries: np.ndarray, k: int) -> Neighbours:
        """By the collection itself: approximate on a server, exact in the embedded mode; by its own distance."""
        from qdrant_client import models

        queries = self._checked(queries)
        ids, scores = np.full((len(queries), k), "", object), np.full((len(queries), k), -np.inf, np.float32)
        requests = [
            models.QueryRequest(query=one.tolist(), limit=k, with_payload=True, using=self._vector or None) for one in queries
        ]
        distance = _vector(self.place, self._parameters(), self._vector)[1].distance
        sign = 1 if distance in (models.Distance.COSINE, models.Distance.DOT) else -1
        with _told(self.place):
            answers = self._client.query_batch_points(self._collection, requests, timeout=TIMEOUT_SECONDS)
        for row, answer in enumerate(answers):
            for place, one in enumerate(answer.points):
                ids[row, place], scores[row, place] = str((one.payload or {}).get(ID, one.id)), sign * one.score
        return Neighbours(ids, scores)

    def _parameters(self) -> Any:
        with _told(self.place):
            return self._client.get_collection(self._collection).config.params.vectors

    @classmethod
    def need_target(cls, place: Place, target: Target) -> None:
        if place.address or (place.path / META).exists():
            with closing(_client(place)) as client, _told(place):
                _named_vector(client, place, target)
        else:
            _need_free(place.path)

    @classmethod
    def write(cls, place: Place, blocks: Iterable[Block], target: Target, report: Report = silent) -> None:
        """Points with equal ids are overwritten where rows are added; a killed run begins again with the same ids."""
        if not place.address and not (place.path / META).exists():
            _need_free(place.path)
        with closing(_client(place, new=True)) as client, _told(place):
            _write(client, place, blocks, target, report)


def _named_vector(client: Any, place: Place, target: Target) -> str | None:
    """The name of the vector that rows are added to, "" for the unnamed one; None where there is no such collection yet."""
    if "/" in place.table:
        raise SpaceError(f"{place.text}: expected the name of a collection, got one with a vector; leave that out")
    exists = client.collection_exists(place.table)
    need_new(place.text, exists, target)
    if not exists:
        return None
    name, parameters = _vector(place, client.get_collection(place.table).config.params.vectors, "")
    need_width(place.text, parameters.size, target)
    return name


def _need_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpaceError(f"{folder}: expected a folder of Qdrant's embedded mode or a new one, got another; choose another")


def _write(client: Any, place: Place, blocks: Iterable[Block], target: Target, report: Report) -> None:
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


def _points(block: Block, name: str) -> Iterator[Any]:
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


def _vector(place: Place, found: Any, chosen: str) -> tuple[str, Any]:
    """The name of the vector, "" for the unnamed one, and its parameters."""
    if not isinstance(found, dict):
        if found is None or chosen:
            raise SpaceError(
                f"{place.text}: expected one dense vector per point, got {'none' if found is None else 'no names'}"
            )
        return "", found
    if chosen in found:
        return chosen, found[chosen]
    if chosen or len(found) != 1:
        raise SpaceError(f"{place.text}: expected one of its vectors, {quote(found)}; name it as #COLLECTION/NAME")
    return next(iter(found.items()))


def _client(place: Place, new: bool = False) -> Any:
    with extra("qdrant"):
        from qdrant_client import QdrantClient
    with _told(place):
        if place.address:
            key = os.environ.get(KEY) or None
            return QdrantClient(url=place.address, api_key=key, timeout=TIMEOUT_SECONDS, check_compatibility=False)
        folder = place.path
        if new and not (folder / META).exists():
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise SpaceError(
                    f"{folder}: expected a folder of Qdrant's embedded mode or a new one, got another; choose another"
                )
        else:
            need_harmless(folder)
        return QdrantClient(path=str(folder))


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Whatever the client raises, as one sentence with the place."""
    from httpx import HTTPError
    from qdrant_client.http.exceptions import ApiException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the client's advice on large collections, and on addresses without TLS
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
            f"{place.text}: expected an answer from the Qdrant server at {place.address} within {TIMEOUT_SECONDS} seconds, "
            f"got: {said}; check the address, that it runs, and {KEY}"
        ) from error
    except RuntimeError as error:
        if "already accessed" not in str(error):
            raise
        raise SpaceError(
            f"{place.text}: expected a folder that no other program has open, got a locked one; close that program, or serve "
            "the folder with a Qdrant server"
        ) from error
    except ValueError as error:
        raise SpaceError(
            f"{place.text}: expected a collection that can be used, got: {visible(error, 200)}; check it"
        ) from error
