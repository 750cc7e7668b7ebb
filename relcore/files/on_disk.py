"""Large vector files that are read where they lie: their maps, and what is known of them as long as they
do not change.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relcore.files.rows import cut_short
from relcore.runs.digest import StoreError, digest_of
from relcore.runs.store import Store
from relcore.spaces.space import FileStamp, MappedRows, Origin

MAP_FROM = 64 << 20  # bytes of a file; a smaller one is read into memory, where nobody can change it
_SETTLED_NS = 2 * 10**9  # a file that was written within these may be written again without another time
_TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64, "bfloat16": np.uint16}


@dataclass(frozen=True)
class OnDisk:
    """A file that is to be mapped, as it was when it was opened, and the store that keeps what is known of
    it, if any.
    """

    path: Path
    stamp: FileStamp
    store: Store | None = None

    @classmethod
    def of(cls, path: Path, store: Store | None = None) -> OnDisk:
        """A file, and this store, else the environment's where that can be used."""
        with suppress(StoreError):
            store = store or Store()
        return cls(path, FileStamp.of(path), store)

    def map(self, stream: BinaryIO, kind: str, begin: int, shape: tuple[int, int]) -> np.ndarray | None:
        """A matrix of float16, float32, float64 or bfloat16 (as uint16) that begins at this byte of the open
        file.

        None where it has another type, or begins where the processor cannot read it.

        Raises
        ------
        SpaceError
            The file is shorter.
        """
        dtype = np.dtype(_TYPES[kind]) if kind in _TYPES else None
        if dtype is None or begin % dtype.itemsize:
            return None
        if os.fstat(stream.fileno()).st_size < begin + dtype.itemsize * shape[0] * shape[1]:
            raise cut_short(self.path)
        return np.memmap(stream, dtype, "r", begin, shape).view(np.ndarray)

    def rows(self, parts: list[np.ndarray], *region: Any) -> MappedRows:
        """The rows of these parts; `region` says which matrix of the file they are."""
        return MappedRows(parts, FileOrigin(self, digest_of(*self.stamp, *region, sum(map(len, parts)))))

    def copied_rows(self, parts: list[np.ndarray], *region: Any) -> MappedRows:
        """Rows that were decoded from the file into maps of their own, which do not change with it."""
        return MappedRows(parts, CopyOrigin(self, digest_of(*self.stamp, *region, sum(map(len, parts)))))

    def decoded_key(self, *region: Any) -> str:
        """The store's key of a matrix that has to be decoded; "" where nothing can be kept of the file."""
        return digest_of("decoded rows", 1, *self.stamp, *region) if self.keeps else ""

    @property
    def keeps(self) -> bool:
        """Whether what is found can be kept: there is a store, and the file was not written just now."""
        return self.store is not None and time.time_ns() - self.stamp.written > _SETTLED_NS

    def need_unchanged(self) -> None:
        """See `FileStamp.need_unchanged`."""
        self.stamp.need_unchanged()


class FileOrigin(Origin):
    """Where mapped rows come from: a file, whose lengths and digests the store keeps until the file
    changes.
    """

    def __init__(self, file: OnDisk, key: str) -> None:
        self._file, self.key = file, key

    def need_unchanged(self) -> None:
        self._file.need_unchanged()

    def known_lengths(self) -> np.ndarray | None:
        entry = self._entry("lengths")
        return None if entry is None else entry.arrays.get("lengths")

    def keep_lengths(self, lengths: np.ndarray) -> None:
        self._keep("lengths", {"lengths": lengths}, {})

    def known_digest(self, columns: str) -> str | None:
        entry = self._entry("digest", columns)
        return None if entry is None else entry.metadata.get("digest")

    def keep_digest(self, columns: str, digest: str) -> None:
        self._keep("digest", {}, {"digest": digest}, columns)

    def _entry(self, what: str, *more: str) -> Any:
        with suppress(StoreError):
            return self._file.store.get(self._entry_key(what, *more)) if self._file.keeps else None
        return None

    def _keep(self, what: str, arrays: dict[str, np.ndarray], metadata: dict[str, str], *more: str) -> None:
        self.need_unchanged()
        with suppress(StoreError):
            if self._file.keeps:
                self._file.store.put(
                    self._entry_key(what, *more), arrays, {"of file": self._file.path.name, **metadata}
                )

    def _entry_key(self, *parts: str) -> str:
        return digest_of("of a file", 1, self.key, *parts)


class JoinedOrigin(Origin):
    """Where the rows of several files come from, each of which the store knows by itself."""

    def __init__(self, rows: list[MappedRows]) -> None:
        self._rows = rows

    def need_unchanged(self) -> None:
        for one in self._rows:
            one.origin.need_unchanged()

    def known_lengths(self) -> np.ndarray:
        return np.concatenate([one.lengths for one in self._rows])

    def known_digest(self, columns: str) -> str | None:
        return self._rows[0].origin.known_digest(self._all(columns))

    def keep_digest(self, columns: str, digest: str) -> None:
        self.need_unchanged()
        self._rows[0].origin.keep_digest(self._all(columns), digest)

    def _all(self, columns: str) -> str:
        return digest_of(columns, [one.origin.key for one in self._rows])


class CopyOrigin(FileOrigin):
    """Where rows come from that were copied from a file: what is known of them goes by the file's state at
    that time.
    """

    def need_unchanged(self) -> None:
        pass
