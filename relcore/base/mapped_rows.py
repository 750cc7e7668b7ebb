"""Rows in files that are mapped into memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from relcore.base.errors import SpaceError
from relcore.base.rows import as_float32, lengths, row_blocks

# Matrices on disk. Rows are read when they are used, and converted to float32.

BLOCK_ROWS = 4096
_READERS = 8
_BLOCK_BYTES = 1 << 22  # bytes of a block in float32, which stays in cache between passes


class FileStamp(NamedTuple):
    """The state of a file: absolute path, inode, time of the last change (ns) and size in bytes."""

    path: str
    inode: int
    written: int
    size: int

    @classmethod
    def of(cls, path: Path, opened: int | None = None) -> FileStamp:
        """The present state of the file at a path or, if given, of the file that the descriptor `opened` has
        open."""
        if opened is None:
            now = path.stat()
        else:
            now = os.fstat(opened)
        return cls(str(path.absolute()), now.st_ino, now.st_mtime_ns, now.st_size)

    def need_unchanged(self) -> None:
        """Raise a SpaceError if the file was rewritten or truncated since the stamp was taken.

        A removed or replaced file is no error, because a memory map keeps the old content.
        """
        with suppress(OSError):
            if Path(self.path).stat().st_ino == self.inode:
                self.need_same()

    def need_same(self, opened: int | None = None) -> None:
        """Raise a SpaceError if the file has changed (see `need_unchanged`), or if the path or the descriptor
        `opened` now leads to another file."""
        now = None
        path = Path(self.path)
        with suppress(OSError):
            now = FileStamp.of(path, opened)
        if now != self:
            raise SpaceError(
                f"{path.name}: expected a file that stays as it was when it was opened, got one that was"
                " changed since; load it again"
            )


class Origin:
    """The file from which `MappedRows` come. Subclasses in `relcore.files.reading` cache facts about the
    rows."""

    stamp: FileStamp | None = None

    def need_unchanged(self) -> None:
        """Raise a SpaceError if the rows have changed since they were mapped."""
        if self.stamp:
            self.stamp.need_unchanged()

    def known_lengths(self) -> np.ndarray | None:
        """The cached Euclidean lengths (n,) of the rows, all finite; None if they are not cached."""

    def known_digest(self, columns: str) -> str | None:
        """The cached digest of the space that has these rows; None if it is not cached. `columns` is the
        digest of the space's ids, labels and counts."""

    def keep_lengths(self, lengths: np.ndarray) -> None: ...

    def keep_digest(self, columns: str, digest: str) -> None: ...


class MappedRows(NDArrayOperatorsMixin):
    """A matrix (n, d) whose rows lie in one or several files and are read as float32.

    Indexing by row numbers, a slice or a mask reads only those rows. A NumPy function reads the whole matrix
    into memory.

    Parameters
    ----------
    parts : matrices (n₁, d), (n₂, d), …
        Consecutive rows, as read-only memory maps or arrays. Their types are float16, float32, float64, or
        uint16 that holds bfloat16.
    origin : Origin, optional
        The files in which the rows lie.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.base.mapped_rows import MappedRows
    >>> rows = MappedRows([np.eye(2, dtype=np.float16), np.ones((1, 2), np.float16)])
    >>> rows.shape, rows[1:].tolist(), rows[[2, 0]].dtype
    ((3, 2), [[0.0, 1.0], [1.0, 1.0]], dtype('float32'))
    """

    ndim: int = 2
    dtype: np.dtype = np.dtype(np.float32)

    def __init__(self, parts: Sequence[np.ndarray], origin: Origin | None = None) -> None:
        self.origin: Origin = origin or Origin()
        self._parts = [part for part in parts if len(part)] or list(parts[:1])
        self._ends = np.cumsum([len(part) for part in self._parts])
        self.shape: tuple[int, int] = (int(self._ends[-1]), self._parts[0].shape[1])
        self.size: int = self.shape[0] * self.shape[1]

    @classmethod
    def joined(cls, rows: Sequence[MappedRows], origin: Origin) -> MappedRows:
        return cls([part for one in rows for part in one._parts], origin)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def plain(self) -> np.ndarray | None:
        """The memory map itself, if the rows are a single part stored as float32; otherwise None."""
        if len(self._parts) == 1 and self._parts[0].dtype == np.float32:
            return self._parts[0]
        return None

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, tuple):
            if isinstance(rows[0], slice):
                return self[rows[0]][:, *rows[1:]]
            return np.asarray(self)[rows]
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            return self._take(np.arange(start, stop, step))
        rows = np.asarray(rows)
        if rows.dtype != bool:
            return self._take(rows.ravel()).reshape(*rows.shape, self.shape[1])
        if rows.shape != (len(self),):
            raise IndexError(f"expected a mask of {len(self)} rows, got one of shape {rows.shape}")
        return self._take(np.flatnonzero(rows))

    @cached_property
    def lengths(self) -> np.ndarray:
        """The Euclidean lengths (n,) of the rows, read once. A length is finite if and only if its row is."""
        norms = self.origin.known_lengths()
        if norms is None or norms.shape != (len(self),):
            # Several threads read faster than one, and reading takes most of the time.
            with ThreadPoolExecutor(min(_READERS, os.cpu_count() or 1)) as pool:
                norms = np.concatenate(list(pool.map(lambda block: lengths(self[block]), self._slices())))
            if np.isfinite(np.sum(norms, dtype=np.float64)):
                self.origin.keep_lengths(norms)
        norms.flags.writeable = False
        return norms

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices that cut the rows into blocks, each with its rows (m, d) as float32."""
        for block in self._slices():
            yield block, self[block]

    def _slices(self) -> list[slice]:
        return list(row_blocks(len(self), max(1, min(BLOCK_ROWS, _BLOCK_BYTES // (4 * self.shape[1])))))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self.plain
        if whole is None:
            if copy is False:
                raise ValueError("the file of these rows does not hold float32, so they must be copied")
            whole = self._slice(0, len(self))
        elif copy:
            whole = whole.copy()
        if dtype is None:
            return whole
        return whole.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        arrays = []
        for part in inputs:
            if isinstance(part, MappedRows):
                part = np.asarray(part)
            arrays.append(part)
        return getattr(ufunc, method)(*arrays, **settings)

    @property
    def T(self) -> np.ndarray:
        return np.asarray(self).T

    def astype(self, dtype: Any, **settings: Any) -> np.ndarray:
        return np.asarray(self).astype(dtype, **settings)

    def mean(self, axis: int | None = None, dtype: Any = None, **settings: Any) -> Any:
        """The mean, as NumPy's method computes it. For ``axis=0`` and float64, rows are summed block by
        block, and the result has the same digits as NumPy's."""
        if axis != 0 or dtype != np.float64:
            return np.asarray(self).mean(axis=axis, dtype=dtype, **settings)
        total = np.zeros((1, self.shape[1]))
        for _, rows in self.blocks():
            # NumPy adds row after row. With the total as the first row, the order of additions is the same.
            total = np.add.reduce(np.concatenate([total, rows]), axis=0, keepdims=True)
        return total[0] / len(self)

    def max(self, axis: None = None) -> np.float32:
        return np.max([rows.max() for _, rows in self.blocks()])

    def min(self, axis: None = None) -> np.float32:
        return np.min([rows.min() for _, rows in self.blocks()])

    def _slice(self, start: int, stop: int) -> np.ndarray:
        """The rows start … stop − 1. If they lie in one part stored as float32, this is a view; otherwise a
        copy."""
        first, last = np.searchsorted(self._ends, (start, max(start, stop - 1)), side="right")
        first = min(first, len(self._parts) - 1)
        if first < last < len(self._parts):
            return self._take(np.arange(start, stop))
        self.origin.need_unchanged()
        begin = self._first_row(first)
        return as_float32(self._parts[first][start - begin : stop - begin])

    def _take(self, rows: np.ndarray) -> np.ndarray:
        self.origin.need_unchanged()
        n = len(self)
        if rows.size and not (-n <= rows.min() and rows.max() < n):
            raise IndexError(f"expected rows 0 … {n - 1}, got {rows.min()} … {rows.max()}")
        rows = np.where(rows < 0, rows + n, rows).astype(np.intp)
        if len(self._parts) == 1:
            return as_float32(self._parts[0][rows])
        out = np.empty((len(rows), self.shape[1]), np.float32)
        owner = np.searchsorted(self._ends, rows, side="right")
        for part in np.unique(owner):
            own = np.flatnonzero(owner == part)
            out[own] = as_float32(self._parts[part][rows[own] - self._first_row(part)])
        return out

    def _first_row(self, part: int) -> int:
        return int(self._ends[part]) - len(self._parts[part])


def as_mapped_rows(vectors: Any) -> MappedRows | None:
    """The matrix as `MappedRows`, if this needs no copy: if it is one already, or a read-only memory map of
    float16 or float32. Otherwise None."""
    if isinstance(vectors, MappedRows):
        return vectors
    is_plain = isinstance(vectors, np.ndarray) and not isinstance(vectors, np.ma.MaskedArray)
    if not is_plain or vectors.ndim != 2 or 0 in vectors.shape:
        return None
    fits = vectors.dtype in (np.float16, np.float32) and vectors.flags.c_contiguous and vectors.dtype.isnative
    if not fits or vectors.flags.writeable:
        return None
    origin = Origin()
    base = vectors
    while isinstance(base, np.ndarray | memoryview):  # follow the views to the owner of their memory
        if isinstance(base, np.memmap) and base.filename and origin.stamp is None:
            with suppress(OSError):
                origin.stamp = FileStamp.of(Path(base.filename))
        if isinstance(base, memoryview):
            base = base.obj
        else:
            base = base.base
    if not isinstance(base, mmap.mmap) or not memoryview(base).readonly:
        return None
    return MappedRows([vectors.view(np.ndarray)], origin)
