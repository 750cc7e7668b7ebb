"""A .npy file as an index: rows in C order, their ids in ``<stem>.ids.txt`` beside it, one per line, else row numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np

from relcore import access
from relcore.indexes.index import BLOCK, Block, Target, VectorIndex
from relcore.progress import Report, silent
from relcore.sources.index_place import Place
from relcore.sources.npy_rows import npy_layout
from relcore.spaces import SpaceError


class NpyIndex(VectorIndex):
    """Reads with a buffer of one block; never maps the file, whose pages would count as memory."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = access.regular_file(path), path.stem
        self._layout = npy_layout(path)
        self.n, self.width = self._layout.n, self._layout.d

    @classmethod
    def open(cls, place: Place) -> NpyIndex:
        return cls(place.path)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[Block]:
        layout, ids = self._layout, IdsBeside(self.path, self.n)
        with self.path.open("rb") as stream, ids.lines(start) as lines:
            stream.seek(layout.at + start * layout.d * layout.dtype.itemsize)
            for first in range(start, self.n, size):
                m = min(size, self.n - first)
                found = np.fromfile(stream, layout.dtype, m * layout.d)
                if len(found) < m * layout.d:
                    raise SpaceError(f"{self.path.name}: expected {self.n:,} rows, got the end of the file; copy it again")
                with np.errstate(over="ignore"):
                    vectors = found.reshape(m, layout.d).astype(np.float32, copy=False)
                yield Block(ids.of(lines, first, m), vectors)

    @classmethod
    def write(cls, place: Place, blocks: Iterable[Block], target: Target, report: Report = silent) -> None:
        cls.need_target(place, target)
        path = place.path
        with replacing(path) as stream, replacing(ids_path(path)) as ids:
            header = {"descr": "<f4", "fortran_order": False, "shape": (target.n, target.width)}
            np.lib.format.write_array_header_1_0(stream, header)
            for block in blocks:
                stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
                ids.write(id_lines(path, block.ids))


class IdsBeside:
    """The ids beside a file of vectors, streamed: one line per row, or row numbers where there is no such file."""

    def __init__(self, path: Path, n: int) -> None:
        beside = ids_path(path)
        self._path = beside if access.beside(path, beside) and beside.is_file() else None
        self._n = n

    @contextmanager
    def lines(self, start: int) -> Iterator[TextIO | None]:
        """The open file behind its first `start` lines."""
        if self._path is None:
            yield None
            return
        with self._path.open(encoding="utf-8-sig", newline=None) as stream:
            for _ in islice(stream, start):
                pass
            yield stream

    def of(self, lines: TextIO | None, first: int, m: int) -> list[str]:
        """The ids of m rows from `first` on."""
        if lines is None:
            return [str(row) for row in range(first, first + m)]
        try:
            found = [line.rstrip("\n") for line in islice(lines, m)]
        except UnicodeDecodeError as error:
            raise SpaceError(f"{self._path.name}: expected UTF-8 text, got {error.reason}; save it as UTF-8") from None
        if len(found) < m or (first + m == self._n and lines.read(1)):
            got = f"{first + len(found):,}" if len(found) < m else "more"
            raise SpaceError(
                f"{self._path.name}: expected {self._n:,} ids, one per row, got {got}; write both from the same rows"
            )
        return found


def ids_path(path: Path) -> Path:
    """Where the ids of a file of vectors are: `load_space` looks for them there, too."""
    return path.with_name(f"{path.stem}.ids.txt")


def id_lines(path: Path, ids: list[str]) -> bytes:
    """Ids as lines."""
    text = "\n".join(ids)
    if text.count("\n") != len(ids) - 1 or "\r" in text:
        raise SpaceError(f"{path.name}: expected ids without line breaks, got one with a line break; write .parquet instead")
    return f"{text}\n".encode()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name once it is whole and on the disk, and not at all after an error."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
