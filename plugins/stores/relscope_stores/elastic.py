"""An index of Elasticsearch or OpenSearch, by `scan` and `bulk` of their clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.stores.index import StoredRows
from relscope_stores.database import Database

KEY, LOGIN = "ELASTICSEARCH_API_KEY", "ELASTICSEARCH_LOGIN"
_PAGE_BYTES = 64 << 20  # of an answer: vectors are numbers as text there, of about 32 bytes


class ElasticIndex(Database):
    """``elasticsearch:https://HOST:9200#INDEX``, or ``#INDEX/FIELD`` for one of several fields of vectors.

    The key is in ELASTICSEARCH_API_KEY, or name and password as NAME:PASSWORD in ELASTICSEARCH_LOGIN. Other
    fields are payload. Pages come in the order of the index: a run that was killed and finds another order
    ends with an error about ids that occur twice.
    """

    _client = None
    _kinds = ("dense_vector", "knn_vector")

    def connect(self) -> None:
        from elasticsearch import Elasticsearch, helpers

        login = tuple(os.environ.get(LOGIN, "").split(":", 1))
        given = {"basic_auth": login} if len(login) == 2 else {"api_key": os.environ.get(KEY)}
        self._client, self._helpers = Elasticsearch(self._address(), **given, request_timeout=60), helpers

    def _address(self) -> str:
        if not self.place.address.startswith(("http://", "https://")):
            raise SpaceError(f"{self.place.text}: expected an address with http:// or https://, got another")
        return self.place.address

    def close(self) -> None:
        if self._client:
            self._client.close()

    def facts(self) -> tuple[int, int] | None:
        if not self._client.indices.exists(index=self.name):
            return None
        (one,) = dict(self._client.indices.get_mapping(index=self.name)).values()
        fields = one["mappings"].get("properties", {})
        vectors = [name for name, field in fields.items() if field.get("type") in self._kinds]
        if self.column not in vectors and (self.column or len(vectors) != 1):
            expected = f"{self.place.text}: expected one field of vectors"
            raise SpaceError(f"{expected}, got {len(vectors)}; name it as #INDEX/FIELD")
        self._vector = self.column or vectors[0]
        width = fields[self._vector].get("dims", fields[self._vector].get("dimension"))
        return self._client.count(index=self.name)["count"], int(width or 0)

    def _mapping(self, width: int) -> dict[str, Any]:
        vector = {"type": "dense_vector", "dims": width, "similarity": "cosine"}
        return {"mappings": {"properties": {"vector": vector, "payload": _KEPT}}}

    def create(self, width: int) -> None:
        self._client.indices.create(index=self.name, body=self._mapping(width))
        self._vector = "vector"

    def rows(self, size: int, start: int) -> Iterator[StoredRows]:
        # Since 9.2 Elasticsearch leaves vectors out of _source; OpenSearch has them there alone.
        query = {"query": {"match_all": {}}, "sort": ["_doc"]}
        query |= {"fields": [self._vector]} if self._kinds[0] == "dense_vector" else {}
        page = max(1, min(size, _PAGE_BYTES // (32 * self.width)))
        found = self._helpers.scan(self._client, query=query, index=self.name, size=page, preserve_order=True)
        for hits in _batches(islice(found, start, None), page):
            yield self._block(hits)

    def _block(self, hits: list[dict[str, Any]]) -> StoredRows:
        vectors, payload = np.empty((len(hits), self.width), np.float32), []
        for row, hit in enumerate(hits):
            kept = dict(hit.get("_source") or {})
            vectors[row] = kept.pop(self._vector, None) or hit["fields"][self._vector]
            payload.append(kept["payload"] if set(kept) == {"payload"} else kept)
        return StoredRows([hit["_id"] for hit in hits], vectors, tuple(payload) if any(payload) else ())

    def put(self, block: StoredRows) -> None:
        payload = block.payload or ({},) * len(block.ids)
        rows = zip(block.ids, block.vectors.tolist(), payload, strict=True)
        fields = ((key, {self._vector: row} | ({"payload": kept} if kept else {})) for key, row, kept in rows)
        self._helpers.bulk(
            self._client, ({"_index": self.name, "_id": key, "_source": kept} for key, kept in fields)
        )

    def finish(self) -> None:
        self._client.indices.refresh(index=self.name)


_KEPT = {"type": "object", "enabled": False}  # a payload is kept and not indexed


class OpenSearchIndex(ElasticIndex):
    """``opensearch:https://HOST:9200#INDEX``; all else as for Elasticsearch."""

    _kinds = ("knn_vector",)

    def connect(self) -> None:
        from opensearchpy import OpenSearch, helpers

        login = tuple(os.environ.get(LOGIN, "").split(":", 1))
        given = {"http_auth": login} if len(login) == 2 else {}
        self._client, self._helpers = OpenSearch(self._address(), **given, timeout=60), helpers

    def _mapping(self, width: int) -> dict[str, Any]:
        fields = {"vector": {"type": "knn_vector", "dimension": width}, "payload": _KEPT}
        return {"settings": {"index": {"knn": True}}, "mappings": {"properties": fields}}


def _batches(hits: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    while some := [*islice(hits, size)]:
        yield some
