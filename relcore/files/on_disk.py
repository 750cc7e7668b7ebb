"""Large vector files that stay on disk: their memory maps, and facts that the store keeps until the files
change."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import FileStamp, MappedRows, Origin
from relcore.files.formats import Regions
from relcore.runs.digest import StoreError, digest_of
from relcore.runs.store import Store

MAP_FROM = 64 << 20  # bytes; smaller files are read into memory
_SETTLED_NS = 2 * 10**9  # from this age on, every change of a file changes its time stamp
_TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64, "bfloat16": np.uint16}


@dataclass(frozen=True)
class OnDisk:
    """A file to map, its stamp at opening, and the store that keeps facts about it, if any."""

    path: Path
    stamp: FileStamp
    store: Store | None = None

    @classmethod
    def of(cls, path: Path, store: Store | None = None) -> OnDisk:
        """The file with this store, or the environment's store if that works."""
        with suppress(StoreError):
            store = store or Store()
        return cls(path, FileStamp.of(path), store)

    def mapped(self, regions: Regions) -> MappedRows | None:
        """The rows as memory maps; None if a part is not aligned. Raises SpaceError for a truncated file."""
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
        """The rows as a map of a store entry, written from `blocks` once; None if it cannot be kept."""
        shape, region = regions.decoded, regions.region
        if not self.keeps or 8 * shape[0] * shape[1] > self.store.limit_bytes:
            return None
        key = digest_of("decoded rows", 1, *self.stamp, region, shape)
        with suppress(StoreError):
            if (entry := self.store.mapped(key)) is None:
                self.store.put(key, {}, {"rows of": self.path.name}, (blocks, shape))
                self.stamp.need_unchanged()
                entry = self.store.mapped(key)
            if entry is not None and entry.arrays["vectors"].shape == shape:
                parts = [entry.arrays["vectors"].view(np.ndarray)]
                return self._rows(parts, "decoded", region, copied=True)
        return None

    def _rows(self, parts: list[np.ndarray], *region: Any, copied: bool = False) -> MappedRows:
        return MappedRows(
            parts, FileOrigin(self, digest_of(*self.stamp, *region, sum(map(len, parts))), copied)
        )

    @property
    def keeps(self) -> bool:
        """Whether facts can be stored: there is a store, and the file was not written just before."""
        return self.store is not None and time.time_ns() - self.stamp.written > _SETTLED_NS


class FileOrigin(Origin):
    """Mapped rows of a file with a key; the store keeps their lengths and digests until the file changes.

    `copied` rows do not change with the file.
    """

    def __init__(self, file: OnDisk, key: str, copied: bool = False) -> None:
        self._file, self.key, self._copied = file, key, copied

    def need_unchanged(self) -> None:
        if not self._copied:
            self._file.stamp.need_unchanged()

    def known_lengths(self) -> np.ndarray | None:
        entry = self._entry("lengths")
        return None if entry is None else entry.arrays.get("lengths")

    def keep_lengths(self, lengths: np.ndarray) -> None:
        self._keep({"lengths": lengths}, {}, "lengths")

    def known_digest(self, columns: str) -> str | None:
        entry = self._entry("digest", columns)
        return None if entry is None else entry.metadata.get("digest")

    def keep_digest(self, columns: str, digest: str) -> None:
        self._keep({}, {"digest": digest}, "digest", columns)

    def _entry(self, *parts: str) -> Any:
        with suppress(StoreError):
            return self._file.store.get(self._entry_key(*parts)) if self._file.keeps else None
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
    """Mapped rows of several files."""

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
