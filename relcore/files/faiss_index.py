"""faiss indexes that keep whole vectors: Flat, IDMap of Flat, and HNSW over Flat. The file is read here, not
by faiss.

`faiss.read_index` believes the sizes in a file, and a hostile one can end the process. Here every size is
compared with the bytes that are left before it is used. The layout is that of faiss/impl/index_write.cpp.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from relcore.base.errors import SpaceError
from relcore.files.rows import Rows, check_size, readable, rows_to_read

_HEADER = struct.Struct("<iqqq?i")  # d, n, two unused numbers, whether it is trained, metric
_FLAT = (b"IxF2", b"IxFI", b"IxFl")
_WITH_IDS = (b"IxMp", b"IxM2")
_HNSW = b"IHNf"
_HNSW_LISTS = (
    8,
    4,
    4,
    8,
    4,
)  # bytes per item: probabilities, neighbours per level, levels, offsets, neighbours
_HNSW_NUMBERS = 20  # bytes: entry point, highest level, two search widths, beam
_NAMES = {
    b"Iw": "an IVF index",
    b"IH": "an HNSW index of compressed vectors",
    b"IxPT": "an index with a transform",
    b"IxP": "an index of product-quantised vectors",
    b"IxS": "a scalar-quantised index",
    b"IxH": "an LSH index",
    b"IB": "an index of binary codes",
}
_SAVE = (
    "where you trust the file, save its vectors once: index = faiss.read_index(path);"
    ' numpy.save("vectors.npy", index.reconstruct_n(0, index.ntotal)); an IVF index needs'
    " index.make_direct_map() before"
)
_MOST_NESTED = 3


@dataclass(frozen=True)
class FlatLayout:
    """Where n vectors of d little-endian float32 begin, and where their n int64 ids begin, if they have
    ids.
    """

    n: int
    d: int
    vectors_at: int
    ids_at: int | None = None


def read_faiss(path: Path, *, limit: int | None = None, max_bytes: int) -> Rows:
    """The vectors of a .faiss or .index file; ids are those of an IDMap, else row numbers.

    Raises
    ------
    SpaceError
        An index that keeps no whole vectors, with how to save them; sizes that the file does not hold.
    """
    with path.open("rb") as stream:
        found = flat_layout(path, stream)
        n = rows_to_read(path, found.n, limit)
        check_size(path, n, found.d, max_bytes)
        vectors = np.empty((n, found.d), dtype="<f4")
        _fill(path, stream, found.vectors_at, vectors)
        ids = None
        if found.ids_at is not None:
            ids = np.empty(n, dtype="<i8")
            _fill(path, stream, found.ids_at, ids)
    vectors = vectors.astype(np.float32, copy=False)
    vectors.flags.writeable = False
    return Rows(vectors, ids)


def faiss_shape(path: Path) -> tuple[int, int]:
    """(n, d) of the vectors in an index file, without reading them."""
    with path.open("rb") as stream:
        found = flat_layout(path, stream)
    return found.n, found.d


def flat_header(n: int, d: int) -> bytes:
    """What stands before the n × d float32 numbers of a flat index for inner products."""
    return _FLAT[1] + _HEADER.pack(d, n, 1 << 20, 1 << 20, True, 0) + struct.pack("<Q", n * d)


def flat_layout(path: Path, stream: BinaryIO) -> FlatLayout:
    """Where the vectors of an open index file are; errors as in `read_faiss`."""
    source = _Source(path, stream)
    found = _index(source, 0)
    if source.left:
        raise SpaceError(
            f"{path.name}: expected the end of the index, got {readable(source.left)} more; write it again"
        )
    return found


def _index(source: _Source, depth: int) -> FlatLayout:
    kind = source.take(4)
    if kind not in (*_FLAT, *_WITH_IDS, _HNSW) or depth > _MOST_NESTED:
        raise source.unfit(kind)
    d, n, _, _, _, metric = _HEADER.unpack(source.take(_HEADER.size))
    if metric > 1:
        source.take(4)  # the metric's own number, as the exponent of Lp
    if n < 0 or d < 1:
        raise SpaceError(
            f"{source.name}: expected an index of vectors, got {n:,} rows of {d:,} numbers; write it again"
        )
    if kind in _FLAT:
        length, at = source.skip_list(4)
        if length != n * d:
            raise SpaceError(
                f"{source.name}: the header promises {n:,} × {d:,} numbers, but {length:,} follow; copy or"
                " write it again"
            )
        return FlatLayout(n, d, at)
    if kind == _HNSW:
        for size in _HNSW_LISTS:
            source.skip_list(size)
        source.take(_HNSW_NUMBERS)
    inner = _index(source, depth + 1)
    if (inner.n, inner.d) != (n, d):
        raise SpaceError(
            f"{source.name}: the header promises {n:,} × {d:,} numbers, but the index inside has {inner.n:,}"
            f" × {inner.d:,}; write it again"
        )
    if kind == _HNSW:
        return inner
    length, at = source.skip_list(8)
    if length != n:
        raise SpaceError(f"{source.name}: expected {n:,} ids, one per row, got {length:,}; write it again")
    return FlatLayout(n, d, inner.vectors_at, at)


class _Source:
    """An open file; whatever is taken from it is checked against the bytes that are left."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self.name, self._stream, self._size = path.name, stream, path.stat().st_size

    @property
    def left(self) -> int:
        return self._size - self._stream.tell()

    def take(self, n_bytes: int) -> bytes:
        content = self._stream.read(n_bytes)
        if len(content) < n_bytes:
            raise SpaceError(
                f"{self.name}: expected a faiss index, got the end of the file within it; copy or write it"
                " again"
            )
        return content

    def skip_list(self, item_bytes: int) -> tuple[int, int]:
        """The length of the list that follows, and where its items begin."""
        length = int.from_bytes(self.take(8), "little")
        if length * item_bytes > self.left:
            raise SpaceError(
                f"{self.name}: a list of {length:,} items promises {readable(length * item_bytes)}, but only "
                f"{readable(self.left)} follow; copy or write it again"
            )
        at = self._stream.tell()
        self._stream.seek(length * item_bytes, 1)
        return length, at

    def unfit(self, kind: bytes) -> SpaceError:
        got = next((name for start, name in _NAMES.items() if kind.startswith(start)), "")
        if not got:
            return SpaceError(
                f"{self.name}: expected a file written by faiss.write_index, got another; write it again"
            )
        return SpaceError(
            f"{self.name}: expected an index of whole vectors (Flat, IDMap, HNSWFlat), got {got}; {_SAVE}"
        )


def _fill(path: Path, stream: BinaryIO, at: int, array: np.ndarray) -> None:
    """Read an array's values from the place where they begin."""
    stream.seek(at)
    if stream.readinto(memoryview(array).cast("B")) != array.nbytes:
        raise SpaceError(
            f"{path.name}: expected {array.size:,} more values, got the end of the file; copy it again"
        )
