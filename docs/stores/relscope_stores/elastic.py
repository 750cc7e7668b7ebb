"""An index of Elasticsearch or OpenSearch, by HTTP and JSON alone."""

from __future__ import annotations

import base64
import json
import os
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit

import numpy as np

from relcore.base.errors import SpaceError
from relcore.stores.index import StoredRows
from relscope_stores.database import Database

KEY, LOGIN = "ELASTICSEARCH_API_KEY", "ELASTICSEARCH_LOGIN"
_MOST = 64 << 20  # bytes of an answer; pages of vectors are as short as that requires
_SCROLL = "5m"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Credentials go to the host that was named, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


class ElasticIndex(Database):
    """``elasticsearch:https://HOST:9200#INDEX``, or ``#INDEX/FIELD`` for one of several fields of vectors.

    The key is in ELASTICSEARCH_API_KEY, or name and password as NAME:PASSWORD in ELASTICSEARCH_LOGIN. Other
    fields are payload. Pages come in the order of the index: a run that was killed and finds another order
    ends with an error about ids that occur twice.
    """

    def connect(self) -> None:
        if not self.place.address.startswith(("http://", "https://")):
            raise SpaceError(f"{self.place.text}: expected an address with http:// or https://, got another")
        parts = urlsplit(self.place.address)
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
        login = login or os.environ.get(LOGIN, "")
        self._where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self._headers = {"Accept": "application/json"}
        if login:
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        elif key := os.environ.get(KEY):
            self._headers["Authorization"] = f"ApiKey {key}"
        self._open = urllib.request.build_opener(_NoRedirect).open
        self._is_opensearch = self._ask("GET", "/")["version"].get("distribution") == "opensearch"
        self._index = f"/{quote(self.name, safe='')}"

    def _ask(self, method: str, path: str, body: Any = None, missing: Any = None) -> Any:
        lines = isinstance(body, bytes)
        content = body if lines or body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/x-ndjson" if lines else "application/json"}
        request = urllib.request.Request(
            self._where + path, content, self._headers | (kind if content else {}), method=method
        )
        try:
            with self._open(request, timeout=60) as answer:
                text = answer.read(_MOST + 1)
        except HTTPError as error:
            if error.code == 404 and missing is not None:
                return missing
            raise ValueError(f"HTTP {error.code}: {error.read(300).decode(errors='replace')}") from None
        if len(text) > _MOST:
            raise ValueError(f"an answer of more than {_MOST:,} bytes")
        return json.loads(text)

    def facts(self) -> tuple[int, int] | None:
        mapping = self._ask("GET", f"{self._index}/_mapping", missing={})
        if not mapping:
            return None
        (one,) = mapping.values()
        fields = one["mappings"].get("properties", {})
        widths = {name: one.get("dims", one.get("dimension")) for name, one in fields.items()}
        kinds = ("dense_vector", "knn_vector")
        vectors = [name for name, one in fields.items() if one.get("type") in kinds]
        if self.column not in vectors and (self.column or len(vectors) != 1):
            expected = f"{self.place.text}: expected one field of vectors"
            raise SpaceError(f"{expected}, got {len(vectors)}; name it as #INDEX/FIELD")
        self._vector = self.column or vectors[0]
        return self._ask("GET", f"{self._index}/_count")["count"], int(widths[self._vector] or 0)

    def create(self, width: int) -> None:
        vector, settings = {"type": "dense_vector", "dims": width, "similarity": "cosine"}, {}
        if self._is_opensearch:
            vector, settings = {"type": "knn_vector", "dimension": width}, {"index": {"knn": True}}
        fields = {"vector": vector, "payload": {"type": "object", "enabled": False}}
        self._ask("PUT", self._index, {"settings": settings, "mappings": {"properties": fields}})
        self._vector = "vector"

    def rows(self, size: int, start: int) -> Iterator[StoredRows]:
        """By scrolling, which shows the index as it was when reading began."""
        # Since 9.2 Elasticsearch leaves vectors out of _source; OpenSearch has them there alone.
        vectors = {} if self._is_opensearch else {"fields": [self._vector]}
        page = {"size": max(1, min(size, _MOST // (32 * self.width))), "sort": ["_doc"], **vectors}
        answer = self._ask("POST", f"{self._index}/_search?scroll={_SCROLL}", page)
        row = 0
        while hits := answer["hits"]["hits"]:
            some = hits[max(0, start - row) :]
            row += len(hits)
            if some:
                yield self._block(some)
            answer = self._ask(
                "POST", "/_search/scroll", {"scroll": _SCROLL, "scroll_id": answer["_scroll_id"]}
            )
        self._ask("DELETE", "/_search/scroll", {"scroll_id": answer["_scroll_id"]}, missing={})

    def _block(self, hits: list[dict[str, Any]]) -> StoredRows:
        vectors, payload = np.empty((len(hits), self.width), np.float32), []
        for row, hit in enumerate(hits):
            kept = dict(hit.get("_source") or {})
            told = kept.pop(self._vector, None) or hit.get("fields", {}).get(self._vector)
            vectors[row] = np.asarray(told, np.float32)
            payload.append(kept["payload"] if set(kept) == {"payload"} else kept)
        return StoredRows([hit["_id"] for hit in hits], vectors, tuple(payload) if any(payload) else ())

    def put(self, block: StoredRows) -> None:
        payload, step = (
            block.payload or ({},) * len(block.ids),
            max(1, (8 << 20) // (24 * block.vectors.shape[1])),
        )
        rows = [*zip(block.ids, block.vectors, payload, strict=True)]
        for first in range(0, len(rows), step):
            lines = []
            for key, vector, kept in rows[first : first + step]:
                fields = {self._vector: vector.tolist()} | ({"payload": kept} if kept else {})
                lines += [json.dumps({"index": {"_id": key}}), json.dumps(fields, default=str)]
            answer = self._ask("POST", f"{self._index}/_bulk", ("\n".join(lines) + "\n").encode())
            if answer["errors"]:
                errors = (item["index"]["error"] for item in answer["items"] if "error" in item["index"])
                raise ValueError(json.dumps(next(errors)))

    def finish(self) -> None:
        self._ask("POST", f"{self._index}/_refresh")
