"""Matrices on disk: their rows are read, and become float32, when they are used, block by block."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from relcore.base.errors import SpaceError
from relcore.base.magnitude import brought, lengths, scaled

BLOCK_ROWS = 4096
_BLOCK_BYTES = 1 << 22  # as float32: a block stays in cache between its passes
_TO_FLOAT32, _SIGN_AND_DIGITS = np.float32(2.0**112), np.array(0x8FFFE000, np.uint32).view(np.int32)[()]
_HIGHEST_HALF = 65504


class Origin:
    """Where mapped rows come from; by itself a place of which nothing is known. `relcore.files.on_disk`
    knows files.
    """

    def need_unchanged(self) -> None:
        """Raise a SpaceError where the rows are no longer those that were mapped."""

    def known_lengths(self) -> np.ndarray | None:
        """The Euclidean lengths (n,) of the rows, all finite, where they were found before."""

    def keep_lengths(self, lengths: np.ndarray) -> None:
        """Keep the lengths for the next time."""

    def known_digest(self, columns: str) -> str | None:
        """The digest of a space of these rows and of columns of this digest, where it was found before."""

    def keep_digest(self, columns: str, digest: str) -> None:
        """Keep the digest for the next time."""


class FileStamp(NamedTuple):
    """A file as it was: its absolute path, its number on the disk, when it was last written (ns), and its
    bytes.
    """

    path: str
    inode: int
    written: int
    size: int

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        found = path.stat()
        return cls(str(path.absolute()), found.st_ino, found.st_mtime_ns, found.st_size)

    def need_unchanged(self) -> None:
        """Raise a SpaceError where the file was written again or cut since.

        One that was removed or replaced is no harm: a map keeps what was there.
        """
        path = Path(self.path)
        try:
            now = FileStamp.of(path)
        except OSError:
            return
        if now.inode == self.inode and now != self:
            raise SpaceError(
                f"{path.name}: expected a file that stays as it was when it was opened, got one that was"
                " changed since; load it again"
            )


class StampedFile(Origin):
    """A file of which no more is known than that it has to stay as it is."""

    def __init__(self, stamp: FileStamp) -> None:
        self._stamp = stamp

    def need_unchanged(self) -> None:
        self._stamp.need_unchanged()


class MappedRows(NDArrayOperatorsMixin):
    """A matrix (n, d) whose rows lie in files, in one part or several; what is read of it is float32.

    Rows, slices and masks read only those rows; NumPy's functions take the whole matrix as float32, which
    needs its memory.

    Parameters
    ----------
    parts : matrices (n₁, d), (n₂, d), …
        Rows one after the other: float16, float32, float64, or bfloat16 as uint16; read-only maps, or kept in
        memory.
    origin : Origin, optional
        Where they come from.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.spaces.rows import MappedRows
    >>> rows = MappedRows([np.eye(2, dtype=np.float16), np.ones((1, 2), np.float16)])
    >>> rows.shape, rows[1:].tolist(), rows[[2, 0]].dtype
    ((3, 2), [[0.0, 1.0], [1.0, 1.0]], dtype('float32'))
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, parts: Sequence[np.ndarray], origin: Origin | None = None) -> None:
        self.origin = origin or Origin()
        self._parts = [part for part in parts if len(part)] or list(parts[:1])
        self._ends = np.cumsum([len(part) for part in self._parts])
        self.shape = (int(self._ends[-1]), self._parts[0].shape[1])

    @classmethod
    def joined(cls, rows: Sequence[MappedRows], origin: Origin) -> MappedRows:
        """The rows of several, one after the other."""
        return cls([part for one in rows for part in one._parts], origin)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """The bytes of all rows as float32."""
        return 4 * self.size

    @property
    def plain(self) -> np.ndarray | None:
        """The map itself where it is one part of float32, which NumPy's functions take as it is; else
        None.
        """
        return self._parts[0] if len(self._parts) == 1 and self._parts[0].dtype == np.float32 else None

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, tuple):
            return self[rows[0]][:, *rows[1:]] if isinstance(rows[0], slice) else np.asarray(self)[rows]
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return (
                self._slice(start, max(start, stop))
                if step == 1
                else self._some(np.arange(start, stop, step))
            )
        rows = np.asarray(rows)
        if rows.dtype == bool and rows.shape != (len(self),):
            raise IndexError(f"expected a mask of {len(self)} rows, got one of shape {rows.shape}")
        found = self._some(np.flatnonzero(rows) if rows.dtype == bool else rows.ravel())
        return found if rows.dtype == bool else found.reshape(*rows.shape, self.shape[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """Euclidean lengths (n,) of the rows, from one pass over them; finite where, and only where, a row
        is.
        """
        found = self.origin.known_lengths()
        if found is None or found.shape != (len(self),):
            found = np.concatenate([lengths(block) for _, block in self.blocks()])
            if np.isfinite(np.sum(found, dtype=np.float64)):
                self.origin.keep_lengths(found)
        found.flags.writeable = False
        return found

    def blocks(self, size: int = 0) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices that cut the rows into blocks, each with its rows as float32 (m, d)."""
        size = size or max(1, min(BLOCK_ROWS, _BLOCK_BYTES // (4 * self.shape[1])))
        for start in range(0, len(self), size):
            block = slice(start, min(start + size, len(self)))
            yield block, self[block]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self.plain
        if whole is None:
            if copy is False:
                raise ValueError("these rows lie in a file in another form than float32, which takes a copy")
            whole = self._slice(0, len(self))
        elif copy:
            whole = whole.copy()
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        whole = (np.asarray(one) if isinstance(one, MappedRows) else one for one in inputs)
        return getattr(ufunc, method)(*whole, **settings)

    @property
    def T(self) -> np.ndarray:
        return np.asarray(self).T

    def astype(self, dtype: Any, **settings: Any) -> np.ndarray:
        """The whole matrix in this type."""
        return np.asarray(self).astype(dtype, **settings)

    def mean(self, axis: int | None = None, dtype: Any = None, **settings: Any) -> Any:
        """As NumPy's; block by block along rows in float64, with the digits of NumPy's sum of one row
        after another.
        """
        if axis != 0 or dtype != np.float64:
            return np.asarray(self).mean(axis=axis, dtype=dtype, **settings)
        total = np.zeros((1, self.shape[1]))
        for _, rows in self.blocks():
            total = np.add.reduce(np.concatenate([total, rows]), axis=0, keepdims=True)
        return total[0] / len(self)

    def max(self, axis: int | None = None, **settings: Any) -> Any:
        """As NumPy's, block by block."""
        return self._reduced(np.max, axis, settings)

    def min(self, axis: int | None = None, **settings: Any) -> Any:
        """As NumPy's, block by block."""
        return self._reduced(np.min, axis, settings)

    def _reduced(self, function: Callable[..., Any], axis: int | None, settings: dict[str, Any]) -> Any:
        found = [function(rows, axis=axis, **settings) for _, rows in self.blocks()]
        return np.concatenate(found) if axis in (1, -1) else function(found, axis=axis)

    def _slice(self, start: int, stop: int) -> np.ndarray:
        """Rows start … stop − 1: of one part of float32 the map itself, else a matrix of their own."""
        self.origin.need_unchanged()
        first, last = np.searchsorted(self._ends, (start, max(start, stop - 1)), side="right").clip(
            max=len(self._parts) - 1
        )
        if first == last:
            begin = self._begin(first)
            return as_float32(self._parts[first][start - begin : stop - begin])
        found = np.empty((stop - start, self.shape[1]), np.float32)
        for number in range(first, last + 1):
            begin = self._begin(number)
            low, high = max(start, begin), min(stop, int(self._ends[number]))
            as_float32(self._parts[number][low - begin : high - begin], found[low - start : high - start])
        return found

    def _some(self, rows: np.ndarray) -> np.ndarray:
        """A matrix of these rows, in their order."""
        self.origin.need_unchanged()
        n = len(self)
        if rows.size and not (-n <= rows.min() and rows.max() < n):
            raise IndexError(f"expected rows 0 … {n - 1}, got {rows.min()} … {rows.max()}")
        rows = np.where(rows < 0, rows + n, rows).astype(np.intp)
        if len(self._parts) == 1:
            return as_float32(self._parts[0][rows])
        found = np.empty((len(rows), self.shape[1]), np.float32)
        where = np.searchsorted(self._ends, rows, side="right")
        order = np.argsort(where, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(where[order])) + 1) if len(rows) else ():
            number = where[own[0]]
            found[own] = as_float32(self._parts[number][rows[own] - self._begin(number)])
        return found

    def _begin(self, number: int) -> int:
        return int(self._ends[number]) - len(self._parts[number])


def mapped(vectors: Any) -> MappedRows | None:
    """The rows of a matrix on disk that no copy has to be made of: `MappedRows`, or a read-only map of
    float16 or float32.
    """
    if isinstance(vectors, MappedRows):
        return vectors
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or 0 in vectors.shape:
        return None
    fits = vectors.dtype in (np.float16, np.float32) and vectors.flags.c_contiguous and vectors.dtype.isnative
    if not fits or vectors.flags.writeable or not _of_read_only_map(vectors):
        return None
    return MappedRows([vectors.view(np.ndarray)], _origin(vectors))


def as_float32(rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Rows (m, d) of float16, float32, float64, or bfloat16 as uint16, as float32, into `out` if given; else
    float32 as it is.

    float16 by shifts of its bits, to the same numbers as NumPy's cast, which takes six times as long where it
    is not a single instruction of the processor.
    """
    if out is None:
        if rows.dtype == np.float32:
            return rows
        out = np.empty(rows.shape, np.float32)
    if rows.dtype == np.uint16:
        bits = out.view(np.uint32)
        bits[...] = rows
        np.left_shift(bits, 16, out=bits)
    elif rows.dtype == np.float16 and rows.flags.c_contiguous:
        bits = out.view(np.int32)
        bits[...] = rows.view(np.int16)
        np.left_shift(bits, 13, out=bits)  # the sign, which the wider integer repeats, stays in front
        np.bitwise_and(bits, _SIGN_AND_DIGITS, out=bits)
        np.multiply(out, _TO_FLOAT32, out=out)  # the exponents of float32 begin 112 lower
        if (
            out.size and max(out.max(), -out.min()) > _HIGHEST_HALF
        ):  # NaN and infinity, as if they were numbers
            out[...] = rows
    else:
        with np.errstate(
            over="ignore"
        ):  # too large for float32 becomes infinite, and is reported as such later
            out[...] = rows
    return out


def _origin(array: np.ndarray) -> Origin | None:
    """The file of a map that NumPy made, where it says which one."""
    name = next((one.filename for one in _bases(array) if isinstance(one, np.memmap) and one.filename), None)
    with suppress(OSError):
        return StampedFile(FileStamp.of(Path(name))) if name else None
    return None


def _of_read_only_map(array: np.ndarray) -> bool:
    *_, owner = _bases(array)
    return isinstance(owner, mmap.mmap) and memoryview(owner).readonly


def _bases(array: np.ndarray) -> Iterator[Any]:
    """The array, what it is a view of, and so on until what owns the memory."""
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        yield base
        base = base.obj if isinstance(base, memoryview) else base.base
    yield base


# MadeRows: some rows of a space in a representation, each block made when it is used; the whole matrix is
# never formed.

_FIRST = 4096  # rows that tell the magnitude of all


class MadeRows:
    """Rows (n, w) that are made from the rows of a space.

    Parameters
    ----------
    vectors : array (N, d)
        A space; a memory map, too.
    made : function (m, d) → (m, w)
        Brings rows of the space to the representation.
    numbers : array (n,)
        Rows of the space, in the order in which they count here.
    """

    def __init__(
        self, vectors: np.ndarray, made: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray
    ) -> None:
        self.vectors, self.made, self.numbers = vectors, made, numbers
        self.shape = (len(numbers), made(np.asarray(vectors[numbers[:1]])).shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """(m, w) float32; the rows of the space are taken as a view where they stand one after the other."""
        numbers = self.numbers[rows]
        if len(numbers) and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + len(numbers))):
            return self.made(np.asarray(self.vectors[numbers[0] : numbers[0] + len(numbers)]))
        return self.made(np.asarray(self.vectors[numbers]))

    @property
    def nbytes(self) -> int:
        """Of all rows as float32."""
        return 4 * self.shape[0] * self.shape[1]

    def of(self, rows: np.ndarray) -> Self:
        """Some of these rows, or all in another order."""
        return type(self)(self.vectors, self.made, self.numbers[rows])


def exponent_of(rows: np.ndarray | MadeRows) -> int:
    """See `magnitude.brought`; of made rows by the first ones."""
    return brought(rows[:_FIRST] if isinstance(rows, MadeRows) else rows)[1]


def rows_scaled(rows: np.ndarray | MadeRows, exponent: int) -> np.ndarray | MadeRows:
    """Rows · 2⁻ᵉ, see `magnitude.scaled`."""
    if not exponent or not isinstance(rows, MadeRows):
        return scaled(rows, exponent)
    return MadeRows(rows.vectors, lambda X: scaled(rows.made(X), exponent), rows.numbers)
