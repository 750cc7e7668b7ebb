"""A collection of Chroma, in the folder of its embedded mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from relcore.base.errors import SpaceError
from relcore.stores.file_index import ADAPTER
from relcore.stores.index import StoredRows
from relscope_stores.database import Database


class ChromaIndex(Database):
    """``chroma:FOLDER#COLLECTION``. Vectors come back to 1e-6; a payload holds texts and numbers.

    The folder is opened by Chroma, in this process: open only folders that you trust.
    """

    _client = None

    def connect(self) -> None:
        import chromadb
        from chromadb.config import Settings

        if self.place.address:
            raise SpaceError(f"{self.place.text}: expected a folder, got an address; copy the folder")
        folder = self.place.path
        if folder.exists() and any(folder.iterdir()) and not (folder / "chroma.sqlite3").is_file():
            raise SpaceError(f"{folder}: expected a folder of Chroma, got another; check the path")
        self._client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))

    def close(self) -> None:
        if self._client:
            self._client.close()

    def facts(self) -> tuple[int, int] | None:
        if self.name not in [one.name for one in self._client.list_collections()]:
            return None
        self._rows = self._client.get_collection(self.name, embedding_function=None)
        some = self._rows.get(limit=1, include=["embeddings"])["embeddings"]
        return self._rows.count(), len(some[0]) if len(some) else 0

    def create(self, width: int, adapter: str) -> None:
        self._rows = self._client.create_collection(
            self.name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        if adapter:
            self.record(adapter)

    def recorded(self) -> str:
        return str((self._rows.metadata or {}).get(ADAPTER, ""))

    def record(self, adapter: str) -> None:
        # Chroma refuses to change its own keys here, so leave them out.
        kept = {key: value for key, value in (self._rows.metadata or {}).items() if key[:5] != "hnsw:"}
        self._rows.modify(metadata={**kept, ADAPTER: adapter})

    def rows(self, size: int, start: int) -> Iterator[StoredRows]:
        for first in range(start, self.n, size):
            found = self._rows.get(limit=size, offset=first, include=["embeddings", "metadatas"])
            payload = tuple(item or {} for item in found["metadatas"])
            vectors = np.asarray(found["embeddings"], np.float32)
            yield StoredRows(found["ids"], vectors, payload if any(payload) else ())

    def put(self, block: StoredRows) -> None:
        for item in block.payload:
            if strange := [key for key, value in item.items() if not isinstance(value, str | int | float)]:
                raise SpaceError(
                    f"{self.place.text}: expected a payload of texts and numbers, got another value of"
                    f" {strange[0]!r:.80}; write to a store that takes any payload, as pgvector"
                )
        most = self._client.get_max_batch_size()
        for first in range(0, len(block.ids), most):
            some = slice(first, first + most)
            payload = [item or None for item in block.payload[some]] or None
            self._rows.upsert(block.ids[some], block.vectors[some], payload)
