"""Rows of large files that stay on disk, as memory maps."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.mapped_rows import FileStamp, MappedRows, Origin
from relcore.files.formats import Regions
from relcore.runs.entries import StoreError, digest_of
from relcore.runs.store import Store

# Large files that stay on disk.

MAP_FROM = 64 << 20  # bytes from which a file stays on disk
_SETTLED_NS = 2 * 10**9  # nanoseconds after a change; then the next change gets another time stamp
_TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64, "bfloat16": np.uint16}


@dataclass(frozen=True)
class OnDisk:
    """A file to map, its `FileStamp` when it was opened, and the store that caches facts about it, if there
    is one."""

    path: Path
    stamp: FileStamp
    store: Store | None = None

    @classmethod
    def of(cls, path: Path, store: Store | None = None) -> OnDisk:
        """The file at a path with a store, by default the environment's store if that one works."""
        with suppress(StoreError):
            store = store or Store()
        return cls(path, FileStamp.of(path), store)

    def mapped(self, regions: Regions) -> MappedRows | None:
        """The rows as memory maps; None if a part is not aligned in the file to the size of its numbers.
        Raises a SpaceError for a truncated file."""
        parts = []
        with self.path.open("rb") as stream:
            self.stamp.need_same(stream.fileno())
            for begin, kind, (n, d) in regions.parts:
                dtype = np.dtype(_TYPES[kind])
                if begin % dtype.itemsize:
                    return None
                if self.stamp.size < begin + dtype.itemsize * n * d:
                    raise SpaceError(
                        f"{self.path.name}: expected all the values that its header promises, got the end of"
                        " the file; copy it again"
                    )
                parts.append(np.memmap(stream, dtype, "r", begin, (n, d)).view(np.ndarray))
        return self._rows(parts, *regions.region)

    def decoded(self, regions: Regions, blocks: Iterable[np.ndarray]) -> MappedRows | None:
        """Write the rows of `blocks` to a store entry, unless it exists, and return them as a memory map of
        that entry. None if the store cannot keep them."""
        shape = regions.decoded
        region = regions.region
        if not self.keeps or 8 * shape[0] * shape[1] > self.store.limit_bytes:
            return None
        key = digest_of("decoded rows", 1, *self.stamp, region, shape)
        with suppress(StoreError):
            if (entry := self.store.mapped(key)) is None:
                self.store.put(key, {}, {"rows of": self.path.name}, (blocks, shape))
                self.stamp.need_unchanged()
                entry = self.store.mapped(key)
            if entry is not None and entry.arrays["vectors"].shape == shape:
                return self._rows([entry.arrays["vectors"].view(np.ndarray)], "decoded", region, copied=True)
        return None

    def _rows(self, parts: list[np.ndarray], *region: Any, copied: bool = False) -> MappedRows:
        return MappedRows(
            parts, FileOrigin(self, digest_of(*self.stamp, *region, sum(map(len, parts))), copied)
        )

    @property
    def keeps(self) -> bool:
        """Whether facts about the file can be cached. There must be a store, and the file's last change must
        lie back some time: a second change at nearly the same time could go unnoticed."""
        return self.store is not None and time.time_ns() - self.stamp.written > _SETTLED_NS


class FileOrigin(Origin):
    """The origin of rows that are mapped from a file. Until the file changes, the store caches the lengths of
    the vectors and the digests of spaces.

    `copied` says that the rows are a copy, which does not change with the file.
    """

    def __init__(self, file: OnDisk, key: str, copied: bool = False) -> None:
        self._file = file
        self.key = key
        self._copied = copied

    def need_unchanged(self) -> None:
        if not self._copied:
            self._file.stamp.need_unchanged()

    def known_lengths(self) -> np.ndarray | None:
        entry = self._entry("lengths")
        if entry is None:
            return None
        return entry.arrays.get("lengths")

    def keep_lengths(self, lengths: np.ndarray) -> None:
        self._keep({"lengths": lengths}, {}, "lengths")

    def known_digest(self, columns: str) -> str | None:
        entry = self._entry("digest", columns)
        if entry is None:
            return None
        return entry.metadata.get("digest")

    def keep_digest(self, columns: str, digest: str) -> None:
        self._keep({}, {"digest": digest}, "digest", columns)

    def _entry(self, *parts: str) -> Any:
        with suppress(StoreError):
            if self._file.keeps:
                return self._file.store.get(self._entry_key(*parts))
            return None
        return None

    def _keep(self, arrays: dict[str, np.ndarray], metadata: dict[str, str], *parts: str) -> None:
        self.need_unchanged()
        with suppress(StoreError):
            if self._file.keeps:
                facts = {"of file": self._file.path.name, **metadata}
                self._file.store.put(self._entry_key(*parts), arrays, facts)

    def _entry_key(self, *parts: str) -> str:
        return digest_of("of a file", 1, self.key, *parts)


class JoinedOrigin(Origin):
    def __init__(self, rows: list[MappedRows]) -> None:
        self._rows = rows

    def need_unchanged(self) -> None:
        for item in self._rows:
            item.origin.need_unchanged()

    def known_lengths(self) -> np.ndarray:
        return np.concatenate([item.lengths for item in self._rows])

    def known_digest(self, columns: str) -> str | None:
        return self._rows[0].origin.known_digest(self._all(columns))

    def keep_digest(self, columns: str, digest: str) -> None:
        self.need_unchanged()
        self._rows[0].origin.keep_digest(self._all(columns), digest)

    def _all(self, columns: str) -> str:
        return digest_of(columns, [item.origin.key for item in self._rows])
