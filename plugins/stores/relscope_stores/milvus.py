"""A collection of Milvus Lite, in a folder, or of a Milvus server."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from relcore.stores.file_index import ADAPTER
from relcore.stores.index import StoredRows
from relscope_stores.database import Database


class MilvusIndex(Database):
    """``milvus:FOLDER.db#COLLECTION`` or ``milvus:http://HOST:19530#COLLECTION``, a token in MILVUS_TOKEN.

    Payload goes to dynamic fields. The adapter is recorded in a property of the collection. Earlier versions
    recorded it in the description, which newer clients of Milvus Lite leave empty.
    """

    _client = None

    def connect(self) -> None:
        from pymilvus import MilvusClient

        logging.getLogger("pymilvus").setLevel(logging.ERROR)  # advice at each read
        where = self.place.address or str(self.place.path.absolute())
        self._client = MilvusClient(where, token=os.environ.get("MILVUS_TOKEN", ""), timeout=60)

    def close(self) -> None:
        if self._client:
            self._client.close()

    def facts(self) -> tuple[int, int] | None:
        from pymilvus import DataType

        if not self._client.has_collection(self.name):
            return None
        fields = self._client.describe_collection(self.name)["fields"]
        kinds = {one["name"]: one["type"] for one in fields}
        vectors = [name for name, kind in kinds.items() if kind == DataType.FLOAT_VECTOR]
        self._id = next(one["name"] for one in fields if one.get("is_primary"))
        self._vector = self.column or vectors[0]
        self._number = kinds[self._id] == DataType.INT64
        self._client.load_collection(self.name)
        width = next(one["params"]["dim"] for one in fields if one["name"] == self._vector)
        return self._client.query(self.name, output_fields=["count(*)"])[0]["count(*)"], int(width)

    def recorded(self) -> str:
        facts = self._client.describe_collection(self.name)
        _, _, described = facts.get("description", "").partition(f"{ADAPTER}:")
        return str(facts.get("properties", {}).get(ADAPTER, described))

    def record(self, adapter: str) -> None:
        self._client.alter_collection_properties(self.name, {ADAPTER: adapter})

    def create(self, width: int, adapter: str) -> None:
        from pymilvus import DataType

        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field("id", DataType.VARCHAR, max_length=65_535, is_primary=True)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=width)
        index = self._client.prepare_index_params()
        index.add_index("vector", index_type="AUTOINDEX", metric_type="COSINE")
        self._client.create_collection(self.name, schema=schema, index_params=index)
        if adapter:
            self.record(adapter)
        self._id = "id"
        self._vector = "vector"
        self._number = False

    def rows(self, size: int, start: int) -> Iterator[StoredRows]:
        pages = self._client.query_iterator(
            self.name, batch_size=size, output_fields=["*"], consistency_level="Strong"
        )
        row = 0
        while page := pages.next():
            some = page[max(0, start - row) :]
            row += len(page)
            if some:
                yield self._block(some)
        pages.close()

    def _block(self, page: list[dict[str, Any]]) -> StoredRows:
        ids = [str(item.pop(self._id)) for item in page]
        vectors = np.array([item.pop(self._vector) for item in page], np.float32)
        return StoredRows(ids, vectors, tuple(page) if any(page) else ())

    def put(self, block: StoredRows) -> None:
        payload = block.payload or ({},) * len(block.ids)
        if self._number:
            keys = map(int, block.ids)
        else:
            keys = block.ids
        rows = zip(keys, block.vectors, payload, strict=True)
        items = [{**kept, self._id: key, self._vector: vector} for key, vector, kept in rows]
        for first in range(0, len(items), 1000):  # a server takes 64 MB at once
            self._client.upsert(self.name, items[first : first + 1000])

    def finish(self) -> None:
        self._client.flush(self.name)
