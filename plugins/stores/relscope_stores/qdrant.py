"""A collection of a Qdrant server, by the public calls of its client."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.stores.file_index import ADAPTER
from relcore.stores.index import StoredRows, StorePlace
from relscope_stores.database import Database, clear_errors

KEY = "QDRANT_API_KEY"
TIMEOUT_SECONDS = 20
_AT_ONCE = 256  # points per request: a server refuses requests of more than 32 MB
_ID = "relscope_id"  # in the payload, where an id is neither a whole number nor a UUID, which Qdrant needs


class QdrantIndex(Database):
    """``qdrant:http://HOST:6333#COLLECTION``, with ``#COLLECTION/NAME`` one of several named vectors.

    The key is in QDRANT_API_KEY. A collection for cosines holds its vectors at length 1.
    """

    _client = None

    def __init__(self, place: StorePlace) -> None:
        super().__init__(place)
        if not place.address:
            line = (
                "from qdrant_client import QdrantClient as Q;"
                f' Q(path={place.where!r}).migrate(Q(url="http://127.0.0.1:6333"))'
            )
            raise SpaceError(
                f"{place.text}: expected the address of a Qdrant server, got a folder of its embedded mode,"
                " whose points are pickles, which can run code; where you trust it, start a server, move the"
                f" points there once by python -c '{line}', and name qdrant:http://127.0.0.1:6333#{self.name}"
            )

    def connect(self) -> None:
        from qdrant_client import QdrantClient

        key = os.environ.get(KEY) or None
        self._client = QdrantClient(
            url=self.place.address, api_key=key, timeout=TIMEOUT_SECONDS, check_compatibility=False
        )

    def close(self) -> None:
        if self._client:
            self._client.close()

    def facts(self) -> tuple[int, int] | None:
        if not self._client.collection_exists(self.name):
            return None
        vectors = self._client.get_collection(self.name).config.params.vectors
        if not isinstance(vectors, dict):
            vectors = {"": vectors}
        self._vector = self.column or next(iter(vectors), "")
        if self._vector not in vectors or (len(vectors) > 1 and not self.column):
            raise SpaceError(
                f"{self.place.text}: expected one of its vectors, {quote(vectors)}; name it as"
                " #COLLECTION/NAME"
            )
        return self._client.count(self.name, exact=True).count, vectors[self._vector].size

    def create(self, width: int, adapter: str) -> None:
        from qdrant_client import models

        parameters = models.VectorParams(size=width, distance=models.Distance.COSINE)
        self._client.create_collection(self.name, vectors_config=parameters)
        self._vector = ""
        if adapter:
            self.record(adapter)

    def recorded(self) -> str:
        metadata = getattr(self._client.get_collection(self.name).config, "metadata", None) or {}
        return str(metadata.get(ADAPTER, ""))

    def record(self, adapter: str) -> None:
        self._client.update_collection(self.name, metadata={ADAPTER: adapter})
        if self.recorded() != adapter:
            warnings.warn(
                f"{self.place.text}: this server keeps no metadata, so rows of another adapter will not be"
                " refused; update Qdrant to 1.16",
                stacklevel=2,
            )

    @property
    def _wanted(self) -> Any:
        return [self._vector] if self._vector else True

    def rows(self, size: int, start: int) -> Iterator[StoredRows]:
        row = 0
        offset = None
        while row == 0 or offset is not None:
            skips = row < start  # without vectors, since a scroll has no number of rows to begin at
            if skips:
                most = min(start - row, 16 * _AT_ONCE)
                wanted = False
            else:
                most = min(size, _AT_ONCE)
                wanted = self._wanted
            points, offset = self._client.scroll(self.name, limit=most, offset=offset, with_vectors=wanted)
            if points and not skips:
                yield self._block(points)
            row += len(points)
            if not points:
                return

    def holding(self, ids: Sequence[str]) -> Iterator[StoredRows]:
        keys = [_key_of(item) for item in ids]
        with clear_errors(self.place):
            for first in range(0, len(keys), _AT_ONCE):
                some = keys[first : first + _AT_ONCE]
                found = self._client.retrieve(self.name, some, with_payload=[_ID], with_vectors=self._wanted)
                yield self._block(found)

    def _block(self, points: list[Any]) -> StoredRows:
        values = [item.vector for item in points]
        if self._vector:
            values = [vectors[self._vector] for vectors in values]
        payload = tuple(dict(item.payload or {}) for item in points)
        ids = [_id_of(item.id, kept) for item, kept in zip(points, payload, strict=True)]
        return StoredRows(ids, np.array(values, np.float32).reshape(-1, self.width), payload)

    def put(self, block: StoredRows) -> None:
        from qdrant_client import models

        points = []
        for item, vector, kept in zip(
            block.ids, block.vectors.tolist(), block.payload or ({},) * len(block.ids), strict=True
        ):
            if (key := _key_of(item)) != item and str(key) != item:
                if _ID in kept:
                    raise SpaceError(
                        f"{item!r:.80}: expected a payload without {_ID!r}, which holds ids, got one; rename"
                        " it"
                    )
                kept = {**kept, _ID: item}
            named = vector
            if self._vector:
                named = {self._vector: vector}
            points.append(models.PointStruct(id=key, vector=named, payload=kept))
        for first in range(0, len(points), _AT_ONCE):
            self._client.upsert(self.name, points[first : first + _AT_ONCE], wait=True)


def _key_of(text: str) -> int | str:
    """The point of an id: a whole number or a UUID as it is, else a UUID that is made of the text."""
    if text.isascii() and text.isdigit() and str(int(text)) == text and int(text) < 2**64:
        return int(text)
    with suppress(ValueError):
        if str(uuid.UUID(text)) == text:
            return text
    return str(uuid.uuid5(uuid.NAMESPACE_OID, text))


def _id_of(key: int | str, payload: dict[str, Any]) -> str:
    """The text in the payload if this is its point, else the point's own id: any program may use the name."""
    text = payload.get(_ID)
    if isinstance(text, str) and _key_of(text) == str(key):
        return payload.pop(_ID)
    return str(key)
