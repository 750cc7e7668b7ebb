"""A faiss index file as an index: Flat, IDMap and HNSWFlat are read here; IVF by faiss, once a process of its own could.

faiss believes the sizes that a file states, and a damaged one can end the process that reads it. So a file that is not one of
whole vectors in a row is opened by another process first.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relcore import access
from relcore.indexes.index import BLOCK, Block, Neighbours, Target, VectorIndex
from relcore.indexes.npy_file import IdsBeside, id_lines, ids_path, replacing
from relcore.progress import Report, silent
from relcore.sources.faiss_index import FlatLayout, flat_header, flat_layout
from relcore.sources.index_place import Place
from relcore.spaces import SpaceError

_PROBE = """
import faiss, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
except (ImportError, OSError, ValueError):
    pass  # a system without such limits
faiss.read_index(sys.argv[1], faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
"""
_PROBE_SECONDS = 300
_PROBE_BYTES = 6 << 30  # of addresses, beside twice the file: the libraries alone take two or three gigabytes of them


class FaissIndex(VectorIndex):
    """Ids are those of the index; where they are row numbers, the lines of ``<stem>.ids.txt`` beside the file, if it exists."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = access.regular_file(path), path.stem
        self._loaded: Any = None
        self._layout = _layout(path)
        if self._layout:
            self.n, self.width = self._layout.n, self._layout.d
            self._own_ids = self._layout.ids_at is not None
        else:
            index = self._faiss()
            self.n, self.width = index.ntotal, index.d
            self._rows = _stored_ids(path, index)
            self._own_ids = not np.array_equal(self._rows, np.arange(self.n))

    @classmethod
    def open(cls, place: Place) -> FaissIndex:
        return cls(place.path)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[Block]:
        beside = IdsBeside(self.path, self.n)
        with beside.lines(start) as lines:
            for first in range(start, self.n, size):
                m = min(size, self.n - first)
                numbers, vectors = self._read(first, m)
                ids = [str(one) for one in numbers.tolist()] if self._own_ids else beside.of(lines, first, m)
                yield Block(ids, vectors)

    def _read(self, first: int, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (m,) and vectors (m, width) of m rows from `first` on."""
        if not self._layout:
            numbers = self._rows[first : first + m]
            return numbers, self._faiss().reconstruct_batch(numbers)
        with self.path.open("rb") as stream:
            stream.seek(self._layout.vectors_at + 4 * first * self.width)
            vectors = np.fromfile(stream, "<f4", m * self.width).reshape(m, self.width)
            numbers = np.arange(first, first + m)
            if self._layout.ids_at is not None:
                stream.seek(self._layout.ids_at + 8 * first)
                numbers = np.fromfile(stream, "<i8", m)
        return numbers, vectors.astype(np.float32, copy=False)

    def search(self, queries: np.ndarray, k: int) -> Neighbours:
        """By the index itself, approximate where it is, by its own metric; distances come back negative."""
        import faiss

        index = self._faiss()
        scores, rows = index.search(np.ascontiguousarray(self._checked(queries)), k)
        if index.metric_type != faiss.METRIC_INNER_PRODUCT:
            scores = -scores
        ids = rows.astype(str).astype(object)
        if not self._own_ids and ids_path(self.path).is_file():
            ids = np.array(self.ids(), object)[rows]
        ids[rows < 0], scores[rows < 0] = "", -np.inf
        return Neighbours(ids, scores)

    def _faiss(self) -> Any:
        import faiss

        if self._loaded is None:
            flags = 0 if self._layout else faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY
            self._loaded = faiss.read_index(str(self.path), flags)
        return self._loaded

    @classmethod
    def write(cls, place: Place, blocks: Iterable[Block], target: Target, report: Report = silent) -> None:
        """A flat index for inner products; ids go beside it. Its bytes are written here, so memory stays at one block."""
        cls.need_target(place, target)
        path = place.path
        with replacing(path) as stream, replacing(ids_path(path)) as ids:
            stream.write(flat_header(target.n, target.width))
            for block in blocks:
                stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
                ids.write(id_lines(path, block.ids))


def _layout(path: Path) -> FlatLayout | None:
    """Of whole vectors in a row; None for another index that faiss reads."""
    try:
        with path.open("rb") as stream:
            return flat_layout(path, stream)
    except SpaceError as error:
        if "got an IVF index" not in str(error):
            raise
    command = [sys.executable, "-c", _PROBE, str(path), str(_PROBE_BYTES + 2 * path.stat().st_size)]
    try:
        failed = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        failed = True
    if failed:
        raise SpaceError(f"{path.name}: expected an IVF index that faiss can read, got a damaged one; write or copy it again")
    return None


def _stored_ids(path: Path, index: Any) -> np.ndarray:
    """The ids (n,) int64 in ascending order of an IVF index of whole vectors, ready to be reconstructed."""
    import faiss

    found = faiss.downcast_index(index)
    if not isinstance(found, faiss.IndexIVFFlat):
        raise SpaceError(
            f"{path.name}: expected an IVF index of whole vectors (IVF…,Flat), got {type(found).__name__}; "
            "take the vectors from where the index was made"
        )
    lists = [faiss.rev_swig_ptr(found.invlists.get_ids(one), found.get_list_size(one)) for one in range(found.nlist)]
    ids = np.sort(np.concatenate([one.copy() for one in lists])) if lists else np.empty(0, np.int64)
    if len(np.unique(ids)) != len(ids):
        raise SpaceError(f"{path.name}: expected distinct ids, got some twice; write the index again")
    found.set_direct_map_type(faiss.DirectMap.Hashtable)
    return ids
