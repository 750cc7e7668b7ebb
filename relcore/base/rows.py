"""Matrices of rows (n, d) that are read block by block: arrays, files on disk, and rows that are computed
from other rows when they are used."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from relcore.base.errors import SpaceError

Made = TypeVar("Made")


def is_constant(array: np.ndarray) -> bool:
    """Whether an array cannot change, because neither it nor any array of which it is a view is writeable."""
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    return base is None  # False for views of writeable arrays and of memory that NumPy does not own


@dataclass(eq=False)
class MadeOnce(Generic[Made]):
    """Wraps a function of an array, and caches its result for each read-only array.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.base.rows import MadeOnce
    >>> calls, array = [], np.arange(3)
    >>> count = MadeOnce(lambda array: calls.append(1) or len(array))
    >>> array.flags.writeable = False
    >>> count(array), count(array), len(calls)
    (3, 3, 1)
    """

    make: Callable[[np.ndarray], Made]
    _kept: dict[int, tuple[weakref.ref, Made]] = field(default_factory=dict, repr=False)

    def __call__(self, array: np.ndarray) -> Made:
        if not is_constant(array):
            return self.make(array)
        number = id(array)
        known = self._kept.get(number)
        if known is None or known[0]() is not array:
            # When the array dies, this callback runs before another array can get the same id().
            ref = weakref.ref(array, lambda _: self._kept.pop(number, None))
            self._kept[number] = known = ref, self.make(array)
        return known[1]


_contents: dict[int, Hashable] = {}  # id() of an array in memory → digest of its content


def call_content(X: np.ndarray, content: Hashable) -> None:
    """Record the digest `content` of an array that cannot change, for `content_of`."""
    if id(X) not in _contents:
        _contents[id(X)] = content
        weakref.finalize(X, _contents.pop, id(X), None)


def content_of(X: np.ndarray) -> Hashable:
    """A key for the content of an array: the digest that `call_content` recorded, or else the array's
    identity."""
    return _contents.get(id(X), id(X))


ROWS_PER_BLOCK = 4096  # 4,096 × 300 float32 is 5 MB, which stays in cache between passes
_IN_CACHE = 2**17  # number of values in a block of half a megabyte
_ROUNDED = 2.0**-17  # maximum error of the mean, as a share of the rows' spread; scores change by ≤ 1e-5
_SAMPLED_ROWS = 64  # number of rows from which the spread is estimated


class Rows(Protocol):
    """The type of rows (n, d) that every computation accepts: a NumPy array, or an object that yields float32
    rows when it is indexed by a slice or by row numbers.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> np.ndarray: ...


def row_blocks(n_rows: int, size: int = ROWS_PER_BLOCK) -> Iterator[slice]:
    """Slices that cut n rows into blocks of at most `size`."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def unit_rows(X: np.ndarray, mean: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
    """The rows of X (n, d), minus the mean if given, scaled to length 1, as float32. A zero row stays zero.
    If `out` is given, the result is written to it.
    """
    if out is None:
        out = np.empty(X.shape, np.float32)
    for part in row_blocks(len(X), max(1, _IN_CACHE // max(X.shape[1], 1))):
        if mean is not None:
            rows = X[part]
        else:
            rows = np.asarray(X[part], dtype=np.float32)
        rows = centred(rows, mean, out[part])
        np.multiply(rows, inverse_lengths(rows)[:, None], out=out[part])
    return out


def inverse_lengths(rows: np.ndarray) -> np.ndarray:
    """The inverse of the Euclidean length of each float32 row, (n,); 0 for a row too short to have a
    direction."""
    squares = np.vecdot(rows, rows)
    norms = np.sqrt(squares)
    return np.divide(1, norms, out=np.zeros_like(norms), where=squares >= NO_LENGTH)


def mean_row(X: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """The mean (d,) of the rows of X (n, d), as float32. It is float64 if rounding to float32 would be
    noticeable relative to the distances of the rows from the mean. A given `mean` is not computed again but
    only converted; X may then be a sample of the rows."""
    # The sum is float64, because a float32 sum of many rows loses digits if the mean is far from zero.
    if mean is None:
        mean = X.mean(axis=0, dtype=np.float64)
    kept = mean.astype(np.float32)
    sample = X[:: max(1, len(X) // _SAMPLED_ROWS)]
    spread = np.linalg.norm(sample - mean.astype(np.float64)) / np.sqrt(len(sample))
    if np.linalg.norm(kept - mean) > _ROUNDED * spread > 0:
        return mean
    return kept


class DerivedRows:
    """Rows (n, w) of a representation, computed from the rows of a space when they are used.

    Parameters
    ----------
    vectors : rows (N, d)
        The rows of a space, in memory or on disk.
    made : function (m, d) → (m, w)
        Computes the representation of rows of the space.
    numbers : array (n,), optional
        The numbers of the rows of the space that are used, in this order. By default all rows.
    """

    def __init__(
        self, vectors: Rows, made: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray | None = None
    ) -> None:
        self.vectors = vectors
        self.made = made
        self.numbers = numbers
        if numbers is None:
            n = len(vectors)
        else:
            n = len(numbers)
        self.shape: tuple[int, int] = (n, made(np.asarray(vectors[:1])).shape[1])
        self.nbytes: int = 4 * self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """The requested rows (m, w) as float32. If they are consecutive rows of the space, its vectors are
        not copied."""
        if self.numbers is None:
            numbers = rows
        else:
            numbers = self.numbers[rows]
        if isinstance(numbers, slice):
            n = 0
        else:
            n = len(numbers)
        if n and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + n)):
            numbers = slice(int(numbers[0]), int(numbers[0]) + n)
        return self.made(np.asarray(self.vectors[numbers]))

    def of(self, rows: np.ndarray) -> Self:
        """The rows with these numbers, in this order."""
        return type(self)(self.vectors, self.made, rows if self.numbers is None else self.numbers[rows])


def directions(X: Rows, mean: np.ndarray | None = None) -> DerivedRows:
    """The rows of X, minus a mean row if given, scaled to length 1. They are computed when they are used."""
    return DerivedRows(X, lambda rows: unit_rows(rows, mean))


# Matrices on disk. Rows are read when they are used, and converted to float32.

BLOCK_ROWS = 4096
_READERS = 8
_BLOCK_BYTES = 1 << 22  # bytes of a block in float32, which stays in cache between passes
_TO_FLOAT32 = np.float32(2.0**112)
_SIGN_AND_DIGITS = np.array(0x8FFFE000, np.uint32).view(np.int32)[()]
_HIGHEST_HALF = 65504


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
    >>> from relcore.base.rows import MappedRows
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
        whole = (np.asarray(part) if isinstance(part, MappedRows) else part for part in inputs)
        return getattr(ufunc, method)(*whole, **settings)

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


def as_float32(rows: np.ndarray) -> np.ndarray:
    """Convert rows (m, d) to float32. Their type is float16, float32, float64, or uint16 that holds bfloat16.

    float32 is returned unchanged. float16 is converted by shifting bits, which gives the same numbers as
    NumPy's cast in a fifth of the time.
    """
    if rows.dtype == np.float32:
        return rows
    out = np.empty(rows.shape, np.float32)
    if rows.dtype == np.uint16:
        bits = out.view(np.uint32)
        bits[...] = rows
        np.left_shift(bits, 16, out=bits)
        return out
    if rows.dtype == np.float16 and rows.flags.c_contiguous:
        bits = out.view(np.int32)
        bits[...] = rows.view(np.int16)
        np.left_shift(bits, 13, out=bits)  # the wider integer repeats the sign bit, which stays in front
        np.bitwise_and(bits, _SIGN_AND_DIGITS, out=bits)
        np.multiply(out, _TO_FLOAT32, out=out)  # float32 adds 112 more to exponents than float16
        if not out.size or max(out.max(), -out.min()) <= _HIGHEST_HALF:
            return out  # no NaN and no infinity, which would now be larger numbers
    with np.errstate(over="ignore"):  # too large numbers become infinite and are reported later
        out[...] = rows
    return out


# The accepted range of numbers, and the lengths of rows.

# Float32 can hold the sum of squares of numbers in this range, over all columns and thousands of rows. A
# space with other numbers is refused when it is loaded, so no later code checks the range.
SMALLEST = 1e-12
LARGEST = 1e12
NOT_FINITE = "expected finite numbers, got NaN or infinity; drop these rows"
NO_LENGTH = 2.0**-120  # squared length; below it, digits are lost, so the row counts as having no direction


def out_of_range(given: np.ndarray, finite: bool = False) -> str:
    """The reason why these numbers are too large or too small, with the remedy. "" if they are neither, or
    all zero. NaN and infinity are a reason only if `finite`."""
    if given.dtype in (np.float32, np.float64) and given.flags.c_contiguous:
        # The root mean square is a lower limit of the largest number, and the root of the sum of squares is
        # an upper limit. So one fast pass decides for most spaces.
        with np.errstate(over="ignore"):
            total = float(np.vdot(given, given))
        if SMALLEST**2 * given.size < total < LARGEST**2:
            return ""
    largest = 0.0
    if given.dtype.kind in "fiu" and given.size:
        largest = max(float(given.max()), -float(given.min()))
    if finite and not np.isfinite(largest):
        return NOT_FINITE
    if not 0 < largest < np.inf:
        return ""
    return range_reason(largest)


def range_reason(largest: float) -> str:
    """Why a space with this largest number is refused; "" if it is accepted."""
    if SMALLEST <= largest <= LARGEST:
        return ""
    power = int(np.floor(np.log10(largest)))
    return (
        f"expected a largest number from {SMALLEST:.0e} to {LARGEST:.0e}, whose square float32 holds, got"
        f" {largest:.2g}; divide all numbers by 1e{power}, which changes no score"
    )


def length_reason(lengths: np.ndarray, width: int) -> str:
    """The same reason as `out_of_range` gives, found from the lengths (n,) of rows and from their number of
    columns."""
    longest = float(lengths.max())
    # The largest number is at most the largest length, and at least this length / √d.
    if longest == 0:
        return ""
    return range_reason(longest) and range_reason(longest / np.sqrt(width))


def centred(X: np.ndarray, mean: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
    """X − mean (n, d) as float32, written to `out` if given. Without a mean, X is returned unchanged."""
    if mean is None:
        return X
    if out is None:
        out = np.empty(X.shape, np.float32)
    return np.subtract(X, mean, out=out, casting="same_kind")


def lengths(X: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """The Euclidean lengths (n,) of the rows of X − mean, as float32; 0 for a row too short to have a
    direction."""
    squares = np.empty(len(X), np.float32)
    for block in row_blocks(len(X)):
        rows = centred(np.asarray(X[block], dtype=np.float32), mean)
        with np.errstate(over="ignore", invalid="ignore"):  # infinite and missing numbers are reported later
            np.vecdot(rows, rows, out=squares[block])
    squares[squares < NO_LENGTH] = 0
    return np.sqrt(squares, out=squares)
