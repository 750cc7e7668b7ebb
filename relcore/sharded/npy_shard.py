"""A .npy file as a shard; ids and labels in ``<stem>.ids.txt`` and ``<stem>.labels.txt`` beside it, one per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from relcore.sharded.files import beside, lines, opened
from relcore.sharded.shard import Block, Shard
from relcore.sources.arrays import promised
from relcore.spaces import SpaceError


class NpyShard:
    """Reads with a buffer of one block; rows by number are read alone."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    @staticmethod
    def header(url: str, size: int, names: Sequence[str]) -> dict[str, Any]:
        """Rows, width, and the files of ids and labels, of the file at an address, with `names` beside it."""
        folder, name = url.rsplit("/", 1)
        with opened(url) as stream:
            (n, width), _, _ = _layout(stream, size, name)
        stem = name.rsplit(".", 1)[0]
        columns = {what: f"{stem}.{what}.txt" for what in ("ids", "labels")}
        found = {what: beside(folder, text) for what, text in columns.items() if text in names}
        return {"n": n, "width": width, **found}

    def blocks(self, rows: int, labels: bool) -> Iterator[Block]:
        shard = self.shard
        ids = lines(shard.ids) if shard.ids else None
        classes = lines(shard.labels) if shard.labels and labels else None
        with opened(shard.url) as stream:
            (n, width), dtype, at = _layout(stream, stream.seek(0, 2), shard.name)
            stream.seek(at)
            for first in range(0, n, rows):
                m = min(rows, n - first)
                texts = [None if column is None else self._some(column, m) for column in (ids, classes)]
                if texts[0] is not None and "" in texts[0]:
                    row = first + texts[0].index("") + 1
                    raise SpaceError(f"{shard.name}, row {row:,}: expected an id, got an empty line; write an id for every row")
                yield Block(first, self._read(stream, m, width, dtype), *texts)
        if any(column is not None and next(column, None) is not None for column in (ids, classes)):
            raise self._unpaired("more")

    def take(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), self.shard.width), dtype=np.float32)
        with opened(self.shard.url) as stream:
            (_, width), dtype, at = _layout(stream, stream.seek(0, 2), self.shard.name)
            for place in np.argsort(rows, kind="stable"):
                stream.seek(at + int(rows[place]) * width * dtype.itemsize)
                out[place] = self._read(stream, 1, width, dtype)
        return out

    def _read(self, stream: Any, m: int, width: int, dtype: np.dtype) -> np.ndarray:
        raw = stream.read(m * width * dtype.itemsize)
        if len(raw) < m * width * dtype.itemsize:
            raise SpaceError(f"{self.shard.name}: expected {self.shard.n:,} rows, got the end of the file; copy it again")
        with np.errstate(over="ignore"):
            return np.frombuffer(raw, dtype).reshape(m, width).astype(np.float32, copy=False)

    def _some(self, column: Iterator[str], m: int) -> list[str]:
        found = list(islice(column, m))
        if len(found) < m:
            raise self._unpaired("fewer")
        return found

    def _unpaired(self, got: str) -> SpaceError:
        name, n = self.shard.name, self.shard.n
        return SpaceError(f"{name}: expected {n:,} ids or labels beside it, one per row, got {got}; write both again")


def _layout(stream: Any, size: int, name: str) -> tuple[tuple[int, int], np.dtype, int]:
    """Shape, type, and where the rows begin, of rows that follow each other."""
    stream.seek(0)
    shape, fortran, dtype = promised(stream, size, name, dimensions=2)
    if dtype.kind not in "fiu" or not shape[1] or (fortran and 1 not in shape):
        got = f"{dtype!s:.40} of shape {shape!s:.60}{' in Fortran order' * fortran}"
        raise SpaceError(f"{name}: expected rows of real numbers, one after the other, got {got}; save them as float32")
    return shape, dtype, stream.tell()
