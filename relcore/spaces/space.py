"""LatentSpace: rows of an encoder with their ids, in memory or on disk; match() pairs two spaces by id;
Split: which rows are anchors, which are trained on and which are scored, disjoint by construction.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.lib.mixins import NDArrayOperatorsMixin

from relcore.base.caching import MadeOnce
from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.base.magnitude import length_reason, lengths, out_of_range
from relcore.engine.rows import DerivedRows

# Matrices on disk: their rows are read, and become float32, when they are used, block by block.

BLOCK_ROWS = 4096
_BLOCK_BYTES = 1 << 22  # as float32: a block stays in cache between its passes
_TO_FLOAT32, _SIGN_AND_DIGITS = np.float32(2.0**112), np.array(0x8FFFE000, np.uint32).view(np.int32)[()]
_HIGHEST_HALF = 65504


class FileStamp(NamedTuple):
    """A file as it was: its absolute path, its number on the disk, when it was written (ns), its bytes."""

    path: str
    inode: int
    written: int
    size: int

    @classmethod
    def of(cls, path: Path, opened: int | None = None) -> FileStamp:
        """Of the file at a path, or of the one that was opened there, by its descriptor."""
        now = path.stat() if opened is None else os.fstat(opened)
        return cls(str(path.absolute()), now.st_ino, now.st_mtime_ns, now.st_size)

    def need_unchanged(self) -> None:
        """Raise a SpaceError where the file was written again or cut since.

        One that was removed or replaced is no harm to a map, which keeps what was there.
        """
        with suppress(OSError):
            if Path(self.path).stat().st_ino == self.inode:
                self.need_same()

    def need_same(self, opened: int | None = None) -> None:
        """As `need_unchanged`, also where another file is at the path now, or was `opened` there."""
        now, path = None, Path(self.path)
        with suppress(OSError):
            now = FileStamp.of(path, opened)
        if now != self:
            raise SpaceError(
                f"{path.name}: expected a file that stays as it was when it was opened, got one that was"
                " changed since; load it again"
            )


class Origin:
    """Where mapped rows come from, and what is known of them; `relcore.files.on_disk` keeps more."""

    stamp: FileStamp | None = None

    def need_unchanged(self) -> None:
        """Raise a SpaceError where the rows are no longer those that were mapped."""
        if self.stamp:
            self.stamp.need_unchanged()

    def known_lengths(self) -> np.ndarray | None:
        """The Euclidean lengths (n,) of the rows, all finite, where they were kept."""

    def known_digest(self, columns: str) -> str | None:
        """The digest of a space of these rows and of columns of this digest, where it was kept."""

    def keep_lengths(self, lengths: np.ndarray) -> None: ...

    def keep_digest(self, columns: str, digest: str) -> None: ...


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
    >>> from relcore.spaces.space import MappedRows
    >>> rows = MappedRows([np.eye(2, dtype=np.float16), np.ones((1, 2), np.float16)])
    >>> rows.shape, rows[1:].tolist(), rows[[2, 0]].dtype
    ((3, 2), [[0.0, 1.0], [1.0, 1.0]], dtype('float32'))
    """

    ndim: int = 2
    dtype: np.dtype = np.dtype(np.float32)
    origin: Origin
    shape: tuple[int, int]
    size: int

    def __init__(self, parts: Sequence[np.ndarray], origin: Origin | None = None) -> None:
        self.origin = origin or Origin()
        self._parts = [part for part in parts if len(part)] or list(parts[:1])
        self._ends = np.cumsum([len(part) for part in self._parts])
        self.shape = (int(self._ends[-1]), self._parts[0].shape[1])
        self.size = self.shape[0] * self.shape[1]

    @classmethod
    def joined(cls, rows: Sequence[MappedRows], origin: Origin) -> MappedRows:
        return cls([part for one in rows for part in one._parts], origin)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def plain(self) -> np.ndarray | None:
        """The map itself where it is one part of float32, which NumPy takes as it is; else None."""
        return self._parts[0] if len(self._parts) == 1 and self._parts[0].dtype == np.float32 else None

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, tuple):
            return self[rows[0]][:, *rows[1:]] if isinstance(rows[0], slice) else np.asarray(self)[rows]
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            return self._some(np.arange(start, stop, step))
        rows = np.asarray(rows)
        if rows.dtype != bool:
            return self._some(rows.ravel()).reshape(*rows.shape, self.shape[1])
        if rows.shape != (len(self),):
            raise IndexError(f"expected a mask of {len(self)} rows, got one of shape {rows.shape}")
        return self._some(np.flatnonzero(rows))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Euclidean lengths (n,) of the rows, from one pass; finite where, and only where, a row is."""
        norms = self.origin.known_lengths()
        if norms is None or norms.shape != (len(self),):
            norms = np.concatenate([lengths(block) for _, block in self.blocks()])
            if np.isfinite(np.sum(norms, dtype=np.float64)):
                self.origin.keep_lengths(norms)
        return _read_only(norms)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices that cut the rows into blocks, each with its rows as float32 (m, d)."""
        size = max(1, min(BLOCK_ROWS, _BLOCK_BYTES // (4 * self.shape[1])))
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
        whole = (np.asarray(part) if isinstance(part, MappedRows) else part for part in inputs)
        return getattr(ufunc, method)(*whole, **settings)

    @property
    def T(self) -> np.ndarray:
        return np.asarray(self).T

    def astype(self, dtype: Any, **settings: Any) -> np.ndarray:
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

    def max(self, axis: None = None) -> np.float32:
        return np.max([rows.max() for _, rows in self.blocks()])

    def min(self, axis: None = None) -> np.float32:
        return np.min([rows.min() for _, rows in self.blocks()])

    def _slice(self, start: int, stop: int) -> np.ndarray:
        """Rows start … stop − 1: of one part of float32 the map itself, else a matrix of their own."""
        first, last = np.searchsorted(self._ends, (start, max(start, stop - 1)), side="right")
        first = min(first, len(self._parts) - 1)
        if first < last < len(self._parts):
            return self._some(np.arange(start, stop))
        self.origin.need_unchanged()
        begin = self._begin(first)
        return as_float32(self._parts[first][start - begin : stop - begin])

    def _some(self, rows: np.ndarray) -> np.ndarray:
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
            out[own] = as_float32(self._parts[part][rows[own] - self._begin(part)])
        return out

    def _begin(self, part: int) -> int:
        return int(self._ends[part]) - len(self._parts[part])


def mapped(vectors: Any) -> MappedRows | None:
    """The rows of a matrix on disk that no copy has to be made of: `MappedRows`, or a read-only map of
    float16 or float32.
    """
    if isinstance(vectors, MappedRows):
        return vectors
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or 0 in vectors.shape:
        return None
    fits = vectors.dtype in (np.float16, np.float32) and vectors.flags.c_contiguous and vectors.dtype.isnative
    if not fits or vectors.flags.writeable:
        return None
    origin, base = Origin(), vectors
    while isinstance(base, np.ndarray | memoryview):  # what it is a view of, until what owns the memory
        if isinstance(base, np.memmap) and base.filename and origin.stamp is None:
            with suppress(OSError):
                origin.stamp = FileStamp.of(Path(base.filename))
        base = base.obj if isinstance(base, memoryview) else base.base
    if not isinstance(base, mmap.mmap) or not memoryview(base).readonly:
        return None
    return MappedRows([vectors.view(np.ndarray)], origin)


def as_float32(rows: np.ndarray) -> np.ndarray:
    """Rows (m, d) of float16, float32, float64, or bfloat16 as uint16, as float32; float32 as it is.

    float16 by shifts of its bits, to the same numbers as NumPy's cast, which takes five times as long.
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
        np.left_shift(bits, 13, out=bits)  # the sign, which the wider integer repeats, stays in front
        np.bitwise_and(bits, _SIGN_AND_DIGITS, out=bits)
        np.multiply(out, _TO_FLOAT32, out=out)  # the exponents of float32 begin 112 lower
        if not out.size or max(out.max(), -out.min()) <= _HIGHEST_HALF:  # NaN and infinity look like numbers
            return out
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is reported later
        out[...] = rows
    return out


# The columns of a space, checked: ids, labels and counts; and row numbers as ids, made when they are used.

_NO_TEXTS = {bytes, bytearray, float, np.float16, np.float32, np.float64, np.bytes_, type(None)}
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class RowNumbers(Sequence[str]):
    """The ids "0", "1", … of n rows, which take no memory until they are used."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: int | slice) -> str | list[str]:
        numbers = range(self.n)[rows]
        return str(numbers) if isinstance(numbers, int) else list(map(str, numbers))

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Row numbers (m,) of the ids, −1 for others, as `pandas.Index.get_indexer` does."""
        rows = np.full(len(ids), -1, dtype=np.intp)
        for place, identifier in enumerate(ids):
            if isinstance(identifier, str) and _NUMBER.fullmatch(identifier):
                rows[place] = int(identifier)
        return np.where(rows < self.n, rows, -1)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The ids of these rows, or where a mask (n,) is true, as Python strings."""
        return np.array(list(map(str, np.arange(self.n)[rows].tolist())), dtype=object)


def checked_strings(items: Sequence[str], expected: int, name: str, what: str) -> np.ndarray:
    """Ids or labels (n,) as Python strings, read-only.

    Raises
    ------
    SpaceError
        Another number than expected; bytes, fractions, missing ones, of which str() would make "b'a'", "nan".
    """
    if len(items) != expected:
        raise SpaceError(f"{name}: expected {expected} {what}, one per row, got {len(items)}")
    types = set(map(type, items))
    if not _NO_TEXTS.isdisjoint(types):
        row, item = next((row, item) for row, item in enumerate(items) if type(item) in _NO_TEXTS)
        raise SpaceError(
            f"{name}, row {row + 1}: expected {what} as strings, got {item!r:.40}; convert them first"
        )
    strings = np.empty(expected, dtype=object)
    strings[:] = items if types == {str} and not isinstance(items, str) else list(map(str, items))
    return _read_only(strings)


class MarkedIds(np.ndarray):
    """Ids (n,) of rows that are not all scored; what it means to be among the `marks`, subclasses say."""

    marks: frozenset[str] = frozenset()

    def __array_finalize__(self, whole: np.ndarray | None) -> None:
        self.marks = getattr(whole, "marks", frozenset())

    @classmethod
    def of(cls, ids: Sequence[str], marks: Iterable[str]) -> Self:
        marked = np.array(ids, dtype=object).view(cls)
        marked.marks = frozenset(marks)
        return marked


class GuessedIds(MarkedIds):
    """Of rows whose partners an algorithm chose: only the marked ones, which a user confirmed, are scored."""


class AuditedIds(MarkedIds):
    """Of rows of which an audit found the marked ones paired wrongly: only the others are scored."""


def without_scores(ids: np.ndarray, removed: Iterable[str]) -> np.ndarray:
    """The ids, of which those `removed` are no longer scored."""
    if isinstance(ids, GuessedIds):
        return GuessedIds.of(ids, ids.marks.difference(removed))
    marks = getattr(ids, "marks", frozenset()).union(removed)
    return AuditedIds.of(ids, marks) if marks else ids


def scored_rows(ids: Sequence[str]) -> np.ndarray:
    """Which rows (n,) may be scored: of guessed pairs the confirmed, of audited ones those not removed."""
    if not isinstance(ids, MarkedIds):
        return np.ones(len(ids), dtype=bool)
    return pd.Index(ids).isin(ids.marks) == isinstance(ids, GuessedIds)


def need_distinct_ids(index: pd.Index, name: str) -> None:
    if "" in index:
        raise SpaceError(
            f"{name}, row {index.get_indexer_for([''])[0] + 1}: expected an id, got an empty one; fill it"
        )
    if not index.is_unique:
        twice = index[index.duplicated()].unique()
        raise SpaceError(
            f"{name}: ids must be distinct, {len(twice)} occur more than once, first {quote(twice[:3])}; "
            "make them distinct, or keep only the first of duplicate ids (duplicates='first', in a command"
            " FILE#duplicates=first)"
        )


def checked_counts(counts: Sequence[int], name: str) -> np.ndarray:
    """Counts (n,) as int64, read-only; a SpaceError where some are negative, fractions or beyond int64."""
    given = np.asarray(counts)
    kind = given.dtype.kind
    whole = kind in "iu" or (kind == "f" and np.array_equal(given, np.floor(given)))
    if (
        not whole
        or given.ndim != 1
        or (given < 0).any()
        or (given >= (2.0**63 if kind == "f" else 2**63)).any()
    ):
        raise SpaceError(
            f"{name}: expected one whole number from 0 to 2⁶³ − 1 per row as counts, got {given!r:.60}; round"
            " or leave them out"
        )
    return _read_only(given.astype(np.int64))


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


# The digest of a space's content, block by block: equal content, equal digest, in memory or on disk.

Columns = Sequence[Sequence[str] | np.ndarray | None]
_BLOCK = 1 << 16


def digest_of_content(shape: tuple[int, int], blocks: Iterable[np.ndarray], columns: Columns) -> str:
    """Hexadecimal digest of float32 rows (n, d), given in blocks, and of ids, labels and counts."""
    digest = hashlib.blake2b(repr(shape).encode(), digest_size=16)
    for block in blocks:
        digest.update(memoryview(block).cast("B"))
    for piece in as_json(*columns):
        digest.update(piece)
    return digest.hexdigest()


def digest_of_columns(columns: Columns) -> str:
    """Hexadecimal digest of ids, labels and counts; of row numbers by their number, which no id is."""
    short = ([column.n] if isinstance(column, RowNumbers) else column for column in columns)
    return hashlib.blake2b(b"".join(as_json(*short)), digest_size=16).hexdigest()


def as_json(*columns: Sequence[str] | np.ndarray | None) -> Iterator[bytes]:
    """What `json.dumps` makes of the list of these columns, null for a missing one, in pieces."""
    for place, column in enumerate(columns):
        yield b", " if place else b"["
        if column is None:
            yield b"null"
            continue
        for start in range(0, len(column), _BLOCK):
            part = column[start : start + _BLOCK]
            text = json.dumps(part.tolist() if isinstance(part, np.ndarray) else part)
            yield ((", " if start else "[") + text[1:-1]).encode()
        yield b"]"
    yield b"]"


def n_equal_rows(vectors: np.ndarray) -> int:
    """How many rows (n, d) float32 have the bytes, by a hash of 64 bits, of another row."""
    return int(row_hashes(vectors).duplicated(keep=False).sum())


def row_hashes(vectors: np.ndarray) -> pd.Series:
    """A hash of 64 bits of the bytes of each row (n, d) float32, (n,)."""
    return pd.Series(
        [
            hash(bytes(row))
            for start in range(0, len(vectors), BLOCK_ROWS)
            for row in np.ascontiguousarray(vectors[start : start + BLOCK_ROWS])
        ]
    )


class LatentSpace:
    """An absolute space: a float32 vector and an id per row; immutable.

    Parameters
    ----------
    vectors : matrix (n, d) in any form of `matrix`
        Kept as float32, read-only; copied unless it is a read-only float32 array already. A read-only memory
        map of float16 or float32 (``numpy.load(path, mmap_mode="r")``), or `MappedRows`, stays on disk:
        `vectors` then is a float32 map, or `MappedRows`, of which slices, rows and masks are float32. Its
        file must not be written again while it is in use.
    ids : n distinct strings
        What pairs this space with another; see `match`. `RowNumbers` are made when they are used.
    name : str
        Its display name: ``"word2vec-novels"``.
    labels : n strings, optional
        One category per row, for colours and class-balanced anchors; ``""`` where a row has none.
    payload : n items, optional
        The item of each row (a sentence, the path of a picture).
    counts : n non-negative integers, optional
        How often each row occurs in its corpus; "most frequent" anchors go by it, or by row order where it is
        absent.

    Attributes
    ----------
    note : str
        What `load_space` warned of: rows left out, or joined to metadata by their order.

    Raises
    ------
    SpaceError
        Not two dimensions, no rows, NaN or infinite values, lengths that differ, duplicate or empty ids; ids
        or labels that are bytes, fractions or missing; counts that are negative, fractions or beyond int64.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace
    >>> space = LatentSpace(np.eye(3), ["king", "queen", "river"], name="words")
    >>> len(space), space.dimension
    (3, 3)
    >>> space.rows(["river", "king"])
    array([2, 0])
    """

    note: str = ""
    dimension: int
    labels: np.ndarray | None
    payload: tuple[Any, ...] | None
    counts: np.ndarray | None

    def __init__(
        self,
        vectors: MatrixLike,
        ids: Sequence[str] | np.ndarray,
        *,
        name: str = "space",
        labels: Sequence[str] | np.ndarray | None = None,
        payload: Sequence[Any] | None = None,
        counts: Sequence[int] | None = None,
    ) -> None:
        self.name = name
        self._stored = stored = mapped(vectors)
        given = matrix(vectors, name, None) if stored is None else stored
        if stored is None:
            kept = np.ascontiguousarray(given, dtype=np.float32)
            shared = np.may_share_memory(kept, given)  # the caller's array stays the caller's to change
            self._vectors = (
                kept.copy() if shared and (kept.flags.writeable or kept.base is not None) else kept
            )
            self._vectors.flags.writeable = False
        else:
            self._vectors = stored if stored.plain is None else stored.plain
        n, self.dimension = given.shape
        self._row_numbers = ids if isinstance(ids, RowNumbers) and ids.n == n else None
        if self._row_numbers is None:
            checked = checked_strings(ids, n, name, "ids")
            self.ids = type(ids).of(checked, ids.marks) if isinstance(ids, MarkedIds) else checked
        self.labels = None if labels is None else checked_strings(labels, n, name, "labels")
        self.payload = None if payload is None else tuple(payload)
        self.counts = None if counts is None else checked_counts(counts, name)
        for what, column in (("payload", self.payload), ("counts", self.counts)):
            if column is not None and len(column) != n:
                raise SpaceError(f"{name}: expected {n} {what}, one per row, got {len(column)}")
        # A finite sum proves finite rows at a fraction of the cost of a look at every value.
        known = self._vectors if stored is None else stored.lengths
        if not np.isfinite(np.sum(known, dtype=np.float64)):
            bad = np.flatnonzero(~np.isfinite(known.reshape(n, -1)).all(axis=1))
            if len(bad):
                raise SpaceError(
                    f"{name}: {len(bad)} of {n} rows hold NaN or infinite values, first"
                    f" {quote(self.ids[bad[:3]])}; leave these rows out (invalid='drop', in a command"
                    " FILE#invalid=drop); float32 holds numbers up to 3.4e38"
                )
        if stored is not None and (reason := length_reason(stored.lengths, self.dimension)):
            raise SpaceError(f"{name}: {reason}")
        if self._row_numbers is None:
            need_distinct_ids(self.index, name)

    @property
    def vectors(self) -> np.ndarray:
        """The vectors (n, d), float32 and read-only; of a file that is mapped, once it is known to be as it
        was.

        Raises
        ------
        SpaceError
            The file was changed since the space was loaded.
        """
        if self._stored is not None:
            self._stored.origin.need_unchanged()
        return self._vectors

    def __len__(self) -> int:
        return len(self._vectors)

    def __repr__(self) -> str:
        return f"LatentSpace({self.name!r}, n={len(self)}, d={self.dimension}, digest={self.digest[:8]})"

    @cached_property
    def ids(self) -> np.ndarray:
        """The id of each row, (n,) Python strings."""
        return _read_only(self._row_numbers.at(slice(None)))

    @cached_property
    def index(self) -> pd.Index:
        return pd.Index(self.ids, dtype=object)

    @cached_property
    def norms(self) -> np.ndarray:
        return _read_only(lengths(self._vectors)) if self._stored is None else self._stored.lengths

    @cached_property
    def zero_rows(self) -> np.ndarray:
        """Row numbers of zero vectors: they have no direction, so no cosine."""
        return _read_only(np.flatnonzero(self.norms == 0))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of vectors, ids, labels and counts: equal content, equal digest, whatever the
        name.
        """
        ids = self._row_numbers or self.ids
        marks = [sorted(ids.marks)] if isinstance(ids, MarkedIds) else []
        marks += [[]] * isinstance(ids, AuditedIds)
        columns = ids, self.labels, self.counts, *marks
        if self._stored is None:
            return digest_of_content(self._vectors.shape, [self._vectors], columns)
        of_columns, origin = digest_of_columns(columns), self._stored.origin
        origin.need_unchanged()
        known = origin.known_digest(of_columns)
        if known is None:
            blocks = (block for _, block in self._stored.blocks())
            known = digest_of_content(self._stored.shape, blocks, columns)
            origin.keep_digest(of_columns, known)
        return known

    def rows(self, ids: Sequence[str] | np.ndarray) -> np.ndarray:
        """Row numbers (m,) of the ids, in their order.

        Raises
        ------
        SpaceError
            Ids that the space lacks, naming the first three.
        """
        ids = pd.Index(list(ids), dtype=object)
        rows = self.index.get_indexer(ids) if self._row_numbers is None else self._row_numbers.rows(ids)
        if (rows < 0).any():
            unknown = ids[rows < 0]
            raise SpaceError(
                f"expected ids of {self.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}"
            )
        return rows

    @cached_property
    def _by_folded_id(self) -> dict[str, str]:
        """Each id by itself without regard to case; "" where several ids differ in case only."""
        folded: dict[str, str] = {}
        for identifier in self.ids:
            key = identifier.casefold()
            folded[key] = "" if key in folded else identifier
        return folded

    def as_written(self, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids as they are written here: "Paris" becomes "paris" if just this id is equal but for case.

        Examples
        --------
        >>> import numpy as np
        >>> space = LatentSpace(np.eye(3), ["paris", "US", "us"], name="words")
        >>> space.as_written(["Paris", "us", "Us", "Rome"])
        ('paris', 'us', 'Us', 'Rome')
        """
        return tuple(
            one if one in self.index else self._by_folded_id.get(one.casefold()) or one for one in ids
        )

    def with_columns(self, **changes: Any) -> LatentSpace:
        columns = {key: getattr(self, key) for key in ("name", "labels", "payload", "counts")}
        columns["ids"] = self._row_numbers or self.ids
        return LatentSpace(self._vectors if self._stored is None else self._stored, **columns | changes)

    def take(self, rows: np.ndarray, name: str | None = None) -> LatentSpace:
        rows = np.asarray(rows)
        return LatentSpace(
            self.vectors[rows],
            self._row_numbers.at(rows) if self._row_numbers else self.ids[rows],
            name=name or self.name,
            labels=None if self.labels is None else self.labels[rows],
            payload=None if self.payload is None else [self.payload[row] for row in rows],
            counts=None if self.counts is None else self.counts[rows],
        )


# What a public function takes as rows (n, d): one coercion for all of them.


class HasShape(Protocol):
    """An array, a DataFrame or a tensor."""

    @property
    def shape(self) -> tuple[int, ...]: ...


class Sparse(Protocol):
    """A sparse matrix or array of SciPy's."""

    def toarray(self) -> Any: ...


MatrixLike: TypeAlias = LatentSpace | HasShape | Sparse | Sequence[Sequence[float] | np.ndarray]
_MOST_DENSE = 8 << 30  # bytes that a sparse matrix may take once it is dense


def matrix(X: Any, name: str = "X", dtype: type | None = np.float32, by_block: bool = False) -> np.ndarray:
    """A `LatentSpace`, array, DataFrame, tensor of any device, sparse matrix or list of rows as a matrix of
    real numbers (n, d) with rows and columns; not whether they are finite, see `need_finite`.

    Without a `dtype` real numbers stay of their own type. Matrices that lie in files (`MappedRows`), or are
    made when they are used (`DerivedRows`), are read as a whole, unless the caller takes them `by_block`.

    Raises
    ------
    SpaceError
        Another shape, complex numbers, what is no number, a sparse matrix that is too large when dense.
    """
    if isinstance(X, LatentSpace):
        X = X.vectors
    if isinstance(X, MappedRows | DerivedRows):
        if by_block:
            return cast(np.ndarray, X)
        X = X[:] if isinstance(X, DerivedRows) else X
    if hasattr(X, "detach"):  # a tensor, perhaps on a GPU, sparse, or of a type that NumPy lacks
        X = X.detach().cpu().to_dense()
        X = (X.float() if "bfloat16" in str(X.dtype) else X).numpy()
    if hasattr(X, "tocsr"):
        if (needed := 8 * X.shape[0] * X.shape[-1]) > _MOST_DENSE:
            raise SpaceError(
                f"{name}: expected a sparse matrix of at most {_MOST_DENSE >> 30} GB when dense, got"
                f" {needed >> 30:,} GB; lower its width, for instance with sklearn's TruncatedSVD"
            )
        X = X.toarray()
    try:
        given = np.asarray(X)
    except ValueError as error:  # lists of different lengths
        raise SpaceError(
            f"{name}: expected a matrix (n, d), got {error!s:.120}; make the rows equally long"
        ) from error
    if given.dtype.kind == "c":
        raise SpaceError(
            f"{name}: expected real numbers, got {given.dtype}. Complex data not supported; give the"
            " .real part"
        )
    if given.ndim != 2:
        got = f"shape {given.shape}" if given.ndim else f"{X!r:.40}"
        raise SpaceError(
            f"{name}: expected a matrix (n, d), an array, DataFrame, tensor, sparse matrix, list of rows or"
            f" LatentSpace, got {got}. Reshape your data: rows.reshape(1, -1) makes a single row a matrix"
        )
    if 0 in given.shape:
        what = "feature(s)" if given.shape[1] == 0 else "sample(s)"
        raise SpaceError(
            f"{name}: expected a matrix (n, d) with rows and columns, got 0 {what} (shape={given.shape})"
            " while a minimum of 1 is required."
        )
    if reason := out_of_range(given):
        raise SpaceError(f"{name}: {reason}")
    if dtype is None:
        dtype = None if given.dtype.kind in "fiu" else np.float64
    try:
        return np.asarray(given, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"{name}: expected a matrix of numbers, got {given.dtype}: {error}; leave other columns out,"
            " or make them the index"
        ) from error


def ids_of(X: Any) -> Sequence[str] | np.ndarray | None:
    """The ids of rows that have some: of a `LatentSpace`, and the index of a DataFrame that is of texts."""
    if isinstance(X, LatentSpace):
        return X._row_numbers or X.ids
    index = X.index if isinstance(X, pd.DataFrame) else None
    return None if index is None or index.inferred_type != "string" else index.to_numpy(dtype=object)


def need_paired(X: Any, Y: Any) -> None:
    """Raise a SpaceError where both sides have ids and these are not the same in the same order: a function
    that takes rows in pairs would take others.
    """
    first, second = ids_of(X), ids_of(Y)
    if first is None or second is None or len(first) != len(second):
        return
    numbers = isinstance(first, RowNumbers) and isinstance(second, RowNumbers)
    if not numbers and not np.array_equal(np.asarray(first[:]), np.asarray(second[:])):
        raise SpaceError(
            f"expected the same ids in the same order on both sides, got {quote(first[:3])} and"
            f" {quote(second[:3])}; pair the spaces with match()"
        )


def as_space(X: Any, name: str = "space") -> LatentSpace:
    """What `matrix` takes as a space; rows without ids are "0", "1", …; a space as it is."""
    if isinstance(X, LatentSpace):
        return X
    rows, ids = matrix(X, name, None, by_block=True), ids_of(X)
    return LatentSpace(rows, RowNumbers(len(rows)) if ids is None else ids, name=name)


def as_pair(source: Any, target: Any) -> tuple[LatentSpace, LatentSpace]:
    """Both sides as spaces; rows without ids are paired by row, so they take the ids of the other side.

    Raises
    ------
    SpaceError
        Numbers of rows that differ where one side has no ids; what `matrix` refuses.
    """
    sides = [as_space(source, "source"), as_space(target, "target")]
    named = [ids_of(source) is not None, ids_of(target) is not None]
    for side, other in ((0, 1), (1, 0)):
        if not named[side] and len(sides[side]) != len(sides[other]):
            raise SpaceError(
                f"{sides[side].name}: an array is paired by row, expected {len(sides[other]):,} rows, got"
                f" {len(sides[side]):,}; make both a LatentSpace with ids to pair them by id"
            )
        if not named[side] and named[other]:
            sides[side] = sides[side].with_columns(ids=sides[other]._row_numbers or sides[other].ids)
    return sides[0], sides[1]


@dataclass(frozen=True)
class Match:
    """Two spaces over the same ids in the same order, and the number of rows left out."""

    source: LatentSpace
    target: LatentSpace
    n_source_only: int
    n_target_only: int
    n_zero: int

    @property
    def ids(self) -> np.ndarray:
        return self.source.ids

    def __len__(self) -> int:
        return len(self.source)


def match(source: MatrixLike, target: MatrixLike) -> Match:
    """Pair two spaces by id, in the source's order; rows that are zero in either are left out and counted.

    Arrays and tables without ids are paired by row, see `as_pair`.

    Raises
    ------
    NoCommonId
        No shared id; a SpaceError.
    SpaceError
        None left after zero vectors are taken out; different numbers of rows where one side has no ids.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, match
    >>> first = LatentSpace(np.eye(3), ["king", "queen", "river"])
    >>> second = LatentSpace(2 * np.eye(3), ["river", "sea", "king"])
    >>> pair = match(first, second)
    >>> pair.ids.tolist(), pair.n_target_only
    (['king', 'river'], 1)
    >>> pair.target.vectors.tolist()
    [[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]]
    """
    source, target = as_pair(source, target)
    numbers = source._row_numbers, target._row_numbers
    if numbers[0] == numbers[1] if None not in numbers else np.array_equal(source.ids, target.ids):
        in_source = in_target = np.arange(len(source))
    else:
        rows = target.index.get_indexer(source.index)
        in_source = np.flatnonzero(rows >= 0)
        in_target = rows[in_source]
    if not len(in_source):
        raise NoCommonId(
            f"{source.name!r} and {target.name!r} share no ids (for instance {quote(source.ids[:2])} and"
            f" {quote(target.ids[:2])}); encode the same items with both, give both files the same id"
            " column, or find the pairs by relcore.link"
        )
    alive = (source.norms[in_source] > 0) & (target.norms[in_target] > 0)
    if not alive.any():
        raise SpaceError(
            f"{source.name!r} and {target.name!r} share {len(alive)} ids, but every shared row is a zero"
            " vector; expected vectors with a direction in both"
        )
    taken = []
    for space, rows in ((source, in_source[alive]), (target, in_target[alive])):
        whole = len(rows) == len(space) and np.array_equal(rows, np.arange(len(space)))
        taken.append(space if whole else space.take(rows))
    n_zero = int(np.count_nonzero(~alive))
    taken = marked(taken) if None in numbers else taken  # row numbers are no guesses
    return Match(*taken, len(source) - len(in_source), len(target) - len(in_target), n_zero)


def marked(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    """Spaces over the same ids; where those of one are guessed or audited, those of all are."""
    named = [space.ids for space in spaces if space._row_numbers is None]
    guessed = [ids.marks for ids in named if isinstance(ids, GuessedIds)]
    audited = [ids.marks for ids in named if isinstance(ids, AuditedIds)]
    if not guessed and not audited:
        return list(spaces)
    ids = np.asarray(spaces[0].ids)
    ids = GuessedIds.of(ids, frozenset.intersection(*guessed)) if guessed else ids
    ids = without_scores(ids, frozenset().union(*audited))
    return [space.with_columns(ids=ids) for space in spaces]


def distinct_names(spaces: Sequence[LatentSpace]) -> list[str]:
    """A distinct name for each space; equal names are numbered, ``"words (1)"``, ``"words (2)"``."""
    names, distinct = list(map(attrgetter("name"), spaces)), []
    for name in names:
        if names.count(name) > 1:
            numbered = (f"{name} ({number})" for number in count(1))
            name = next(free for free in numbered if free not in {*names, *distinct})
        distinct.append(name)
    return distinct


def shared_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The ids that every space has, in the first one's order; empty where there are none."""
    ids = spaces[0].index
    for space in spaces[1:]:
        ids = ids[ids.isin(space.index)]
    return ids


_NONE_KNOWN = (
    "expected known pairs to score, got links that are guesses; confirm some in Connect, Link, or write"
    " “confirmed” as their kind in the file of --links"
)


def known_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The `shared_ids` of rows that may be scored in all spaces, see `scored_rows`."""
    ids = shared_ids(spaces)
    for space in spaces:
        if isinstance(space.ids, MarkedIds):
            ids = ids[ids.isin(space.ids[scored_rows(space.ids)])]
    return ids


def known_rows(spaces: Sequence[LatentSpace]) -> Sequence[LatentSpace]:
    """The rows of `known_ids`, where not all rows may be scored; else the spaces themselves.

    Raises
    ------
    SpaceError
        None of the shared rows may be scored.
    """
    if not any(isinstance(space.ids, MarkedIds) for space in spaces) or not len(shared_ids(spaces)):
        return spaces
    ids = known_ids(spaces)
    if not len(ids):
        raise SpaceError(f"pairs: {_NONE_KNOWN}")
    return [space.take(space.rows(ids)) for space in spaces]


def agreed_labels(spaces: Sequence[LatentSpace]) -> np.ndarray | None:
    """The labels of spaces over the same rows, (n,), of those that have any; None where none has.

    Raises
    ------
    SpaceError
        Labels that differ.
    """
    labelled = [space for space in spaces if space.labels is not None]
    for space in labelled[1:]:
        differ = np.flatnonzero(space.labels != labelled[0].labels)
        if len(differ):
            names = f"{labelled[0].name!r} and {space.name!r}"
            raise SpaceError(
                f"{names} have different labels for {len(differ)} shared rows, first"
                f" {quote(space.ids[differ[:1]])}: a head knows only the labels that it was trained on;"
                " choose the same label column for both"
            )
    return labelled[0].labels if labelled else None


# Split. Anchors are data that a method was fitted on: a relative space reproduces its own anchors, and a map
# fitted on pairs fits these pairs. A score on them is optimistic for every method. So everything that
# computes a score takes a `Split` and uses its test rows only.

TEST_FRACTION = 0.2
_DRAWN_AT_ONCE = 1 << 20
_MOST_PERMUTED = 50_000_000
_QUERY_KEYS: MadeOnce[dict[int, np.ndarray]] = MadeOnce(lambda ids: {})


def row_keys(ids: Sequence[str], stream: str, random_state: int = 0) -> np.ndarray:
    """A number in [0, 1) for each id, (n,) float64: uniform over ids, and the same for an id wherever it
    stands.

    It depends on the id, the stream and the random state alone, so one more or one less row in one of two
    spaces changes no other row. Two streams are independent.
    """
    key = hashlib.blake2b(
        f"{stream}/{random_state}".encode(), digest_size=8
    ).hexdigest()  # SipHash takes 16 characters
    hashed = pd.util.hash_array(np.asarray(ids, dtype=object), hash_key=key, categorize=False)
    return hashed / 2.0**64


def smallest_keys(
    n: int, m: int, stream: str, random_state: int = 0, without: np.ndarray | None = None
) -> np.ndarray:
    """The m of the numbers 0 … n − 1, but those in `without`, that have the smallest `row_keys` as ids,
    ascending by number; all where there are fewer. Block by block, so that the memory does not depend on n.
    """
    keys, smallest = np.empty(0), np.empty(0, dtype=np.int64)
    for start in range(0, n if m > 0 else 0, _DRAWN_AT_ONCE):
        numbers = np.arange(start, min(start + _DRAWN_AT_ONCE, n))
        numbers = numbers if without is None else numbers[~np.isin(numbers, without)]
        keys = np.concatenate([keys, row_keys(numbers.astype(str), stream, random_state)])
        order = np.argsort(keys, kind="stable")[:m]
        keys, smallest = keys[order], np.concatenate([smallest, numbers])[order]
    return np.sort(smallest)


def drawn_rows(n: int, m: int, random_state: int = 0) -> np.ndarray:
    """At most m of the numbers 0 … n − 1 at random, ascending."""
    rng = np.random.default_rng(random_state)
    # A permutation of more numbers takes gigabytes; what is drawn without one is as random, and other rows.
    return np.sort(rng.permutation(n)[:m] if n <= _MOST_PERMUTED else rng.choice(n, m, replace=False))


def _testable(ids: Sequence[str], anchors: np.ndarray) -> np.ndarray:
    """Which rows (n,) may be tested on: no anchors, and none that is not to be scored."""
    testable = scored_rows(ids)
    testable[anchors] = False
    if len(anchors) < len(ids) and not testable.any() and isinstance(ids, GuessedIds):
        raise SpaceError(f"split: {_NONE_KNOWN}")
    return testable


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of n rows: no row is in two of the three parts, and a row may be in none.

    Attributes
    ----------
    ids : array (n,)
    anchors : array (k,)
        In the order of the anchors; any map between two spaces is fitted on them.
    train : array (m,)
        Ascending; rows that may be learned from in addition, such as their labels.
    test : array (t,)
        Ascending; what is scored.
    random_state : int

    Examples
    --------
    >>> from relcore import Split
    >>> split = Split.held_out([f"row {row}" for row in range(100)], anchors=range(30))
    >>> len(split.anchors), len(split.test)
    (30, 70)
    """

    ids: np.ndarray
    anchors: np.ndarray
    train: np.ndarray
    test: np.ndarray
    random_state: int = 0

    def __post_init__(self) -> None:
        n, owner = len(self.ids), np.zeros(len(self.ids), dtype=np.int64)
        for name, rows in (("anchors", self.anchors), ("train", self.train), ("test", self.test)):
            if len(rows) and (rows.min() < 0 or rows.max() >= n):
                raise SpaceError(
                    f"split: expected {name} among rows 0 … {n - 1}, got {rows.min()} … {rows.max()}"
                )
            owner += np.bincount(rows, minlength=n) if len(rows) else 0
        if owner.max(initial=0) > 1:
            twice = self.ids[owner > 1]
            raise SpaceError(
                f"split: expected each row in one part, got {len(twice)} in two, first {quote(twice[:3])}"
            )

    @property
    def n(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> np.ndarray:
        """Anchors and training rows together, ascending: what a head may be trained on, as the papers do."""
        return np.sort(np.concatenate([self.anchors, self.train]))

    @property
    def untested(self) -> np.ndarray:
        """The rows that are not test rows, ascending."""
        return np.delete(np.arange(self.n), self.test)

    def queries(self, n_queries: int | None = None) -> np.ndarray:
        """The queries, ascending: all test rows, or `n_queries` of them at random, drawn by their own stream.

        One more test row replaces at most one query.

        Raises
        ------
        SpaceError
            Fewer than one query.
        """
        if n_queries is not None and n_queries < 1:
            raise SpaceError(f"n_queries: expected 1 or more queries, got {n_queries}")
        if n_queries is None or n_queries >= len(self.test):
            return self.test
        keys = self._query_keys()
        return np.sort(self.test[np.argpartition(keys, n_queries - 1)[:n_queries]])

    def _query_keys(self) -> np.ndarray:
        """(t,). Where most rows are test rows the keys of all are kept with the ids: every step of a page
        asks for them.
        """
        if 2 * len(self.test) < self.n:
            return row_keys(self.ids[self.test], "queries", self.random_state)
        kept = _QUERY_KEYS(self.ids)
        if self.random_state not in kept:
            kept.clear()  # of one random state: a study of many would fill the memory
            kept[self.random_state] = row_keys(self.ids, "queries", self.random_state)
        return kept[self.random_state][self.test]

    @classmethod
    def held_out(
        cls, ids: Sequence[str] | np.ndarray, anchors: Sequence[int] | np.ndarray = (), random_state: int = 0
    ) -> Split:
        """Every row that is not an anchor is a test row: for scores of methods that were fitted on the
        anchors only.

        Raises
        ------
        SpaceError
            No row is left, or a row is an anchor twice.
        """
        anchors = np.asarray(anchors, dtype=np.int64)
        test, others = np.flatnonzero(_testable(ids, anchors)), " or suspects" * isinstance(ids, AuditedIds)
        if not len(test):
            raise SpaceError(
                f"split: all {len(ids):,} rows are anchors{others}, none is held out to be scored; choose"
                " fewer anchors"
            )
        ids = np.asarray(ids, dtype=object)
        return cls(ids, anchors, np.empty(0, dtype=np.int64), test, random_state)

    @classmethod
    def draw(
        cls,
        ids: Sequence[str] | np.ndarray,
        *,
        anchors: Sequence[int] | np.ndarray = (),
        test_fraction: float = TEST_FRACTION,
        test_ids: Sequence[str] = (),
        labels: Sequence[str] | np.ndarray | None = None,
        random_state: int = 0,
    ) -> Split:
        """Test rows by their ids' keys, so the same in every space and every dataset; anchors are taken out
        of them.

        Parameters
        ----------
        test_fraction : float
            Share of the rows to test on, above 0 and below 1; each row is drawn independently, so the share
            is met on average.
        test_ids : ids, optional
            Test on these instead; unknown ids are ignored.
        labels : n labels, optional
            One row of each class that has no anchor always stays in the training part.

        Raises
        ------
        SpaceError
            A share outside 0 … 1, or no test row left.
        """
        anchors = np.asarray(anchors, dtype=np.int64)
        testable, ids = _testable(ids, anchors), np.asarray(ids, dtype=object)
        if not 0 < test_fraction < 1:
            raise SpaceError(f"test_fraction: expected a share between 0 and 1, got {test_fraction!r}")
        keys = row_keys(ids, "test", random_state)
        drawn = pd.Index(ids).isin(list(test_ids)) if len(test_ids) else keys < test_fraction
        drawn &= testable
        rest = np.flatnonzero(testable)
        if not (len(test_ids) or drawn.any()) and len(rest) > 1:
            drawn[rest[np.argmin(keys[rest])]] = True  # of few rows the one whose turn would come first
        if labels is not None and not len(test_ids):
            labels = np.asarray(labels)
            for label in set(labels[drawn]) - set(labels[~drawn]):
                members = np.flatnonzero(labels == label)
                drawn[members[np.argmax(keys[members])]] = False
        test = np.flatnonzero(drawn)
        if not len(test):
            listed = f"none of the {len(test_ids):,} test ids belongs to a row that is not an anchor"
            raise SpaceError(
                f"split: expected a row to test on, got {len(ids):,} rows and {len(anchors):,} anchors:"
                f" {listed if len(test_ids) else 'too few rows'}"
            )
        return cls(ids, anchors, np.setdiff1d(np.flatnonzero(~drawn), anchors), test, random_state)
