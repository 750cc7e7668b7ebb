"""`LatentSpace`, the rows of an encoder with their ids, in memory or on disk, and `matrix`, which converts
everything that functions accept as rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import count
from operator import attrgetter
from typing import Any, Protocol, Self, TypeAlias, cast

import numpy as np
import pandas as pd

from relcore.base.arguments import need_iterable, need_sequence
from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.base.rows import (
    BLOCK_ROWS,
    NOT_FINITE,
    DerivedRows,
    MappedRows,
    as_mapped_rows,
    call_content,
    length_reason,
    lengths,
)
from relcore.spaces.conversion import checked_numbers, plain_array
from relcore.spaces.table_ids import ids_of_index, index_of, is_default, need_no_other_numbers

# The columns of a space are ids, labels and counts, and they are checked here. Ids that are row numbers are
# made only when they are used.

_NO_TEXTS = {bytes, bytearray, float, np.float16, np.float32, np.float64, np.bytes_, type(None)}
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_WHOLE = re.compile(r"\+?\d{1,19}(\.0*)?", re.ASCII)
_MOST = 2**63 - 1


@dataclass(frozen=True)
class RowNumbers(Sequence[str]):
    """The ids "0", "1", … of n rows, which take no memory until they are used."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: int | slice) -> str | list[str]:
        numbers = range(self.n)[rows]
        if isinstance(numbers, int):
            return str(numbers)
        return list(map(str, numbers))

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """The row numbers (m,) of the ids; −1 for an unknown id, as in `pandas.Index.get_indexer`."""
        numbers = (isinstance(item, str) and _NUMBER.fullmatch(item) for item in ids)
        rows = np.array([int(number[0]) if number else -1 for number in numbers], dtype=np.intp)
        return np.where(rows < self.n, rows, -1)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The ids of these rows as Python strings. `rows` are row numbers or a mask (n,)."""
        return np.array(list(map(str, np.arange(self.n)[rows].tolist())), dtype=object)


def checked_strings(items: Sequence[str], expected: int, name: str, what: str) -> np.ndarray:
    """Ids or labels (n,) as a read-only array of Python strings.

    Raises
    ------
    SpaceError
        The number of items is wrong. An item is bytes, a fraction or missing; str() would turn it into a text
        such as "b'a'" or "nan".
    """
    need_sequence(name, items, what)
    if len(items) != expected:
        raise SpaceError(f"{name}: expected {expected} {what}, one per row, got {len(items)}")
    types = set(map(type, items))
    if not _NO_TEXTS.isdisjoint(types):
        row, item = next((row, item) for row, item in enumerate(items) if type(item) in _NO_TEXTS)
        raise SpaceError(
            f"{name}, row {row + 1}: expected {what} as strings, got {item!r:.40}; convert them first"
        )
    strings = np.empty(expected, dtype=object)
    if types == {str} and not isinstance(items, str):
        strings[:] = items
    else:
        strings[:] = list(map(str, items))
    return read_only(strings)


class MarkedIds(np.ndarray):
    """The ids (n,) of rows of which only some are scored. `marks` are ids; each subclass says what they
    mean."""

    marks: frozenset[str] = frozenset()

    def __array_finalize__(self, whole: np.ndarray | None) -> None:
        self.marks = getattr(whole, "marks", frozenset())

    @classmethod
    def of(cls, ids: Sequence[str], marks: Iterable[str]) -> Self:
        marked = np.array(ids, dtype=object).view(cls)
        marked.marks = frozenset(marks)
        return marked

    def like(self, ids: Sequence[str]) -> Self:
        marked = np.array(ids, dtype=object).view(type(self))
        marked.__array_finalize__(self)
        return marked


class GuessedIds(MarkedIds):
    """The ids of rows whose partners an algorithm chose. The marks are the ids that a user confirmed, and
    only these rows are scored. `unlinked` is the number of rows without a partner, which are not included."""

    unlinked: int = 0

    def __array_finalize__(self, whole: np.ndarray | None) -> None:
        super().__array_finalize__(whole)
        self.unlinked = getattr(whole, "unlinked", 0)


class AuditedIds(MarkedIds):
    """The ids of rows that were audited. The marks are the ids that the audit found to be paired wrongly;
    these rows are not scored."""


def mark_unscored(ids: np.ndarray, removed: Iterable[str]) -> np.ndarray:
    """The ids, with marks such that the rows in `removed` are no longer scored."""
    if isinstance(ids, GuessedIds):
        fewer = ids.copy()
        fewer.marks = ids.marks.difference(removed)
        return fewer
    marks = getattr(ids, "marks", frozenset()).union(removed)
    if marks:
        return AuditedIds.of(ids, marks)
    return ids


def scored_rows(ids: Sequence[str]) -> np.ndarray:
    """A mask (n,) of the rows that may be scored. For guessed pairs, these are the confirmed rows; for
    audited pairs, the rows that were not removed."""
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


def checked_counts(counts: Sequence[Any], name: str) -> np.ndarray:
    """The counts (n,) as int64, all at least 0, read-only. Texts and fractions such as "3" and 3.0 are whole
    numbers.

    Raises
    ------
    SpaceError
        A value is not a whole number from 0 to 2⁶³ − 1. The message tells its row, counted from 1.
    """
    need_sequence(name, counts, "counts")
    if isinstance(counts, np.ndarray) and counts.ndim != 1:
        raise SpaceError(
            f"{name}: expected a list of counts (n,), got shape {counts.shape}; save one count per row"
        )
    known = isinstance(counts, np.ndarray) and counts.dtype.kind in "iu" and len(counts)
    if known and 0 <= counts.min() <= counts.max() <= _MOST:
        return read_only(counts.astype(np.int64))
    whole = [_count(value) for value in counts]
    if None in whole:
        row = whole.index(None)
        if counts[row] is None:
            got = "an empty cell"
        else:
            got = f"{counts[row]!r:.40}"
        raise SpaceError(
            f"{name}, row {row + 1}: expected whole numbers as counts, 0 to 2⁶³ − 1, got {got}; mend the"
            " cell, or leave the column out"
        )
    return read_only(np.array(whole, dtype=np.int64))


def _count(value: Any) -> int | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if _WHOLE.fullmatch(value := value.strip()):
            value = int(value.partition(".")[0])
        else:
            value = None
    fits = isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 <= value <= _MOST
    if fits and value == value // 1:
        return int(value)
    return None


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


# The digest of a space's content, computed block by block. Equal content has an equal digest, in memory and
# on disk.

Columns = Sequence[Sequence[str] | np.ndarray | None]
_BLOCK = 1 << 16


def digest_of_content(shape: tuple[int, int], blocks: Iterable[np.ndarray], columns: Columns) -> str:
    """The hexadecimal digest of rows (n, d), which are given as float32 blocks, and of ids, labels and
    counts."""
    digest = hashlib.blake2b(repr(shape).encode(), digest_size=16)
    for block in blocks:
        digest.update(memoryview(block).cast("B"))
    for piece in as_json(*columns):
        digest.update(piece)
    return digest.hexdigest()


def digest_of_columns(columns: Columns) -> str:
    """The hexadecimal digest of ids, labels and counts. If the ids are row numbers, the digest is made from
    their count instead."""
    short = ([column.n] if isinstance(column, RowNumbers) else column for column in columns)
    return hashlib.blake2b(b"".join(as_json(*short)), digest_size=16).hexdigest()


def as_json(*columns: Sequence[str] | np.ndarray | None) -> Iterator[bytes]:
    """Yield the pieces of the text that `json.dumps` returns for the list of these columns. A missing column
    is null."""
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
    """The number of float32 rows (n, d) that have the same bytes as another row. Rows are compared by 64-bit
    hashes."""
    return int(row_hashes(vectors).duplicated(keep=False).sum())


def row_hashes(vectors: np.ndarray) -> pd.Series:
    """The 64-bit hashes (n,) of the bytes of the float32 rows (n, d)."""
    return pd.Series(
        [
            hash(bytes(row))
            for start in range(0, len(vectors), BLOCK_ROWS)
            for row in np.ascontiguousarray(vectors[start : start + BLOCK_ROWS])
        ]
    )


class LatentSpace:
    """The vectors that an encoder gave for n items: a float32 vector and an id for each row. It is immutable.

    Parameters
    ----------
    vectors : matrix (n, d) in any form of `matrix`
        The vectors are kept as float32, read-only. They are copied unless they are already a read-only
        float32 array. `MappedRows` and read-only memory maps of float16 or float32 (``numpy.load(path,
        mmap_mode="r")``) stay on disk. The attribute `vectors` is then a float32 map, or `MappedRows` that
        give float32 for slices, row numbers and masks. Their file must not be rewritten while it is in use.
    ids : n distinct strings
        Rows of two spaces are paired by their ids (see `match`). `RowNumbers` take no memory until they are
        used.
    name : str
        The name that is shown, such as ``"word2vec-novels"``.
    labels : n strings, optional
        The category of each row, for colours and class-balanced anchors; ``""`` for a row without one.
    payload : n items, optional
        The item of each row, such as a sentence or the path of a picture.
    counts : n non-negative integers, optional
        How often each row occurs in its corpus. The "most frequent" anchors are chosen by counts; without
        counts, by row order.

    Attributes
    ----------
    note : str
        Warnings of `load_space`, for example that rows were left out or that metadata were joined by order.

    Raises
    ------
    SpaceError
        The vectors have not two axes, have no rows, or hold NaN or infinite values. Columns differ in length.
        An id repeats or is empty. An id or a label is bytes, a fraction or missing. A count is negative, a
        fraction or beyond int64.

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
        self._stored = stored = as_mapped_rows(vectors)
        given = stored
        if stored is None:
            given = matrix(vectors, name, None, finite=False)
        if stored is None:
            kept = np.ascontiguousarray(given, dtype=np.float32)
            shared = np.may_share_memory(kept, given)  # if so, the caller could change the rows
            writable = shared and (kept.flags.writeable or kept.base is not None)
            self._vectors = read_only(kept.copy() if writable else kept)
        else:
            if stored.plain is None:
                self._vectors = stored
            else:
                self._vectors = stored.plain
        n = len(given)
        self.dimension: int = given.shape[1]
        if isinstance(ids, RowNumbers) and ids.n == n:
            self._row_numbers = ids
        else:
            self._row_numbers = None
        if self._row_numbers is None:
            checked = checked_strings(ids, n, name, "ids")
            if isinstance(ids, MarkedIds):
                self.ids = ids.like(checked)
            else:
                self.ids = checked
        self.labels: np.ndarray | None = (
            None if labels is None else checked_strings(labels, n, name, "labels")
        )
        if payload is not None:
            need_iterable(name, payload, "items as payload")
        self.payload: tuple[Any, ...] | None = None if payload is None else tuple(payload)
        self.counts: np.ndarray | None = None if counts is None else checked_counts(counts, name)
        for what, column in (("payload", self.payload), ("counts", self.counts)):
            if column is not None and len(column) != n:
                raise SpaceError(f"{name}: expected {n} {what}, one per row, got {len(column)}")
        # A finite sum means that all rows are finite. The sum takes a fraction of the time of checking every
        # value.
        if stored is None:
            known = self._vectors
        else:
            known = stored.lengths
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
        """The vectors (n, d), float32 and read-only. If they are mapped from a file, each access checks that
        the file has not changed.

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
        """The ids of the rows, an array (n,) of Python strings."""
        return read_only(self._row_numbers.at(slice(None)))

    @cached_property
    def index(self) -> pd.Index:
        return pd.Index(self.ids, dtype=object)

    @cached_property
    def norms(self) -> np.ndarray:
        if self._stored is None:
            return read_only(lengths(self._vectors))
        return self._stored.lengths

    @cached_property
    def zero_rows(self) -> np.ndarray:
        """The row numbers of zero vectors. These have no direction, so cosines with them are undefined."""
        return read_only(np.flatnonzero(self.norms == 0))

    @cached_property
    def digest(self) -> str:
        """The hexadecimal digest of vectors, ids, labels and counts. It does not depend on the name."""
        ids = self._row_numbers or self.ids
        marks = []
        if isinstance(ids, MarkedIds):
            marks = [sorted(ids.marks)]
        marks += [[]] * isinstance(ids, AuditedIds)
        columns = ids, self.labels, self.counts, *marks
        if self._stored is None:
            content = digest_of_content(self._vectors.shape, [self._vectors], columns)
            call_content(self._vectors, content)
            return content
        of_columns = digest_of_columns(columns)
        origin = self._stored.origin
        origin.need_unchanged()
        known = origin.known_digest(of_columns)
        if known is None:
            known = digest_of_content(
                self._stored.shape, (rows for _, rows in self._stored.blocks()), columns
            )
            origin.keep_digest(of_columns, known)
        return known

    def rows(self, ids: Sequence[str] | np.ndarray) -> np.ndarray:
        """The row numbers (m,) of the ids, in the order of the ids.

        Raises
        ------
        SpaceError
            The space lacks some of the ids. The message names the first three.
        """
        need_iterable("ids", ids, "ids")
        ids = pd.Index(list(ids), dtype=object)
        if self._row_numbers is None:
            rows = self.index.get_indexer(ids)
        else:
            rows = self._row_numbers.rows(ids)
        if (rows < 0).any():
            unknown = ids[rows < 0]
            raise SpaceError(
                f"expected ids of {self.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}"
            )
        return rows

    @cached_property
    def _by_folded_id(self) -> dict[str, str]:
        """The id for each case-folded form that only one id has."""
        folded = [identifier.casefold() for identifier in self.ids]
        times = Counter(folded)
        return {key: item for key, item in zip(folded, self.ids, strict=True) if times[key] == 1}

    def as_written(self, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids, spelled in upper and lower case as in this space. "Paris" becomes "paris" if that is the
        only id of the space that differs from it only in case.

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


# The types of rows (n, d) that public functions accept. One function converts all of them.


class HasShape(Protocol):
    """The type of arrays, DataFrames, tensors and sparse matrices."""

    @property
    def shape(self) -> tuple[int, ...]: ...


MatrixLike: TypeAlias = LatentSpace | HasShape | Sequence[Sequence[float] | np.ndarray]


def matrix(
    X: Any,
    name: str = "X",
    dtype: type | None = np.float32,
    by_block: bool = False,
    *,
    finite: bool = True,
) -> np.ndarray:
    """Convert a `LatentSpace`, array, DataFrame, tensor on any device, sparse matrix or list of rows to a
    matrix (n, d) of real numbers. This is the front door of all rows: code behind it trusts them.

    Without a `dtype`, real numbers keep their type. With `by_block`, `MappedRows` (rows in files) and
    `DerivedRows` (rows that are computed when used) are returned unchanged. Without it, they are read as a
    whole. Without `finite`, NaN and infinity are allowed.

    Raises
    ------
    SpaceError
        X is no matrix, holds complex numbers, dates, masked values, NaN, infinity or items that are no
        numbers, or is a sparse matrix that is too large in dense form.
    """
    known = isinstance(X, LatentSpace)  # its numbers were checked when it was made
    if known:
        X = X.vectors
    if isinstance(X, MappedRows) and finite and not (known or np.isfinite(X.lengths).all()):
        raise SpaceError(f"{name}: {NOT_FINITE}")
    if isinstance(X, MappedRows | DerivedRows):
        if by_block:
            return cast(np.ndarray, X)
        if isinstance(X, DerivedRows):
            X = X[:]
    if known:
        return np.asarray(X, dtype=dtype)
    return checked_numbers(plain_array(X, name), name, dtype, finite)


def ids_of(X: Any) -> Sequence[str] | np.ndarray | None:
    """The ids of rows: those of a `LatentSpace`, or the index of a DataFrame (see `table_ids`). None if the
    rows have no ids."""
    if isinstance(X, LatentSpace):
        return X._row_numbers or X.ids
    index = index_of(X)
    if index is None or is_default(index):
        return None
    return ids_of_index(index)


def _need_no_guess(X: Any, Y: Any) -> None:
    """Raise a SpaceError if one of X and Y has only row numbers, and the other is a table whose index has
    other numbers (see `table_ids`)."""
    for one, other in ((X, Y), (Y, X)):
        index = index_of(one)
        numbered = index is not None and is_default(index)
        numbered |= isinstance(one, LatentSpace) and one._row_numbers is not None
        if numbered and index_of(other) is not None:
            need_no_other_numbers(len(one), index_of(other), "pairs")


def partner_rows(X: Any, Y: Any) -> np.ndarray | None:
    """For each row of X, the number (n,) of the row of Y with the same id; None if rows are paired by their
    order, because the ids are equal or one side has none.

    Raises
    ------
    SpaceError
        The ids differ; they have another order, and repeat; one side is numbered only by the default index.
    """
    index = index_of(X)
    other = index_of(Y)
    if index is not None and other is not None and index.equals(other):
        return None
    _need_no_guess(X, Y)
    first = ids_of(X)
    second = ids_of(Y)
    if first is None or second is None or len(first) != len(second):
        return None
    if isinstance(first, RowNumbers) and isinstance(second, RowNumbers):
        return None
    first = np.asarray(first[:])
    second = np.asarray(second[:])
    if np.array_equal(first, second):
        return None
    index = pd.Index(second, dtype=object)
    if index.is_unique:
        rows = index.get_indexer(pd.Index(first, dtype=object))
        if len(np.unique(rows[rows >= 0])) == len(first):
            return rows
    raise SpaceError(
        f"expected the same ids on both sides, each once, got {quote(first[:3])} and {quote(second[:3])};"
        " pair the spaces with match()"
    )


def paired_matrices(
    X: Any,
    Y: Any,
    names: tuple[str, str],
    by_block: bool = False,
    dtype: type | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The paired rows of X and Y as matrices (n, d_x) and (n, d_y), converted by `matrix`, in the order of X.
    Rows are paired by id, or by their order if one side has no ids (see `partner_rows`).

    Raises
    ------
    SpaceError
        The numbers of rows differ; the ids cannot be paired.
    """
    first = matrix(X, names[0], dtype, by_block)
    second = matrix(Y, names[1], dtype, by_block)
    rows = partner_rows(X, Y)
    if len(first) != len(second):
        raise SpaceError(
            f"expected row-aligned spaces, got {len(first)} and {len(second)} rows; pair them with match()"
        )
    return first, second if rows is None else second[rows]


def checked_names(ids: Any, n: int) -> np.ndarray | None:
    """The argument `ids` of a score: the names (n,) of the rows, or None. Raises a SpaceError unless they are
    n distinct texts."""
    if ids is None:
        return None
    need_sequence("ids", ids, "ids", n)
    names = checked_strings(ids, n, "ids", "ids")
    need_distinct_ids(pd.Index(names, dtype=object), "ids")
    return names


def as_space(X: Any, name: str = "space") -> LatentSpace:
    """Convert anything that `matrix` accepts to a space. Rows without ids get the ids "0", "1", …. A space is
    returned unchanged."""
    if isinstance(X, LatentSpace):
        return X
    rows = matrix(X, name, None, by_block=True)
    index = index_of(X)
    if index is not None and not index.is_unique:
        twice = quote(index[index.duplicated()][:3])
        raise SpaceError(
            f"{name}: expected an index in which each value occurs once, got {twice} more than once;"
            " .reset_index(drop=True) numbers the rows"
        )
    ids = ids_of(X)
    return LatentSpace(rows, RowNumbers(len(rows)) if ids is None else ids, name=name)


def need_spaces(name: str, spaces: Any) -> None:
    """Raise a SpaceError that names the argument, unless it is a list of spaces: not one matrix."""
    need_sequence(name, spaces, "spaces")
    if hasattr(spaces, "shape"):
        raise SpaceError(f"{name}: expected a list of spaces, got one of shape {tuple(spaces.shape)}")


def as_spaces(given: Sequence[Any], names: Sequence[str]) -> list[LatentSpace]:
    """Convert several inputs, whose rows are paired by id, by `as_space`. Raises a SpaceError if one has only
    row numbers, and another is a table whose index has other numbers."""
    spaces = [as_space(one, name) for one, name in zip(given, names, strict=True)]
    for place, one in enumerate(given):
        for other in given[:place]:
            _need_no_guess(one, other)
    return spaces


# Pair the rows of two or more spaces by id, and find which pairs scores may use.


def as_pair(source: Any, target: Any) -> tuple[LatentSpace, LatentSpace]:
    """The source and the target as spaces. If a space has no ids, rows are paired by order, so it gets the
    ids of its partner.

    Raises
    ------
    SpaceError
        One of them has no ids, and their numbers of rows differ.
    """
    sides = as_spaces((source, target), ("source", "target"))
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
    """Two spaces whose rows were matched by id: they have the same ids in the same order. There may be
    `others`, which have these ids as well. Rows that only one of the two spaces has (or that have no link)
    are left out and counted, and so are zero rows."""

    source: LatentSpace
    target: LatentSpace
    n_source_only: int
    n_target_only: int
    n_zero: int
    others: tuple[LatentSpace, ...] = ()

    @property
    def spaces(self) -> tuple[LatentSpace, ...]:
        return self.source, self.target, *self.others

    @property
    def ids(self) -> np.ndarray:
        return self.source.ids

    def pair(self, number: int = 1) -> Match:
        """The match of the source with one of the other spaces, by default the target. Its rows are those
        that all spaces share."""
        return replace(self, target=self.spaces[number], others=())

    def __len__(self) -> int:
        return len(self.source)


def match(source: MatrixLike, target: MatrixLike, *others: MatrixLike) -> Match:
    """Pair the rows of two spaces by id, in the source's order. Rows that are zero in one of the spaces are
    left out and counted. With `others`, only rows that are also in all of these spaces remain.

    The ids of a DataFrame are its index, of any type (see `table_ids`). Arrays, and tables with the default
    index, have no ids and are paired by row order (see `as_pair`).

    Raises
    ------
    NoCommonId
        The spaces share no id. This is a SpaceError.
    SpaceError
        No row is left after zero vectors are removed.

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
    matched = _match_pair(source, target)
    for other in others:
        matched = _join_match(matched, _match_pair(source, other))
    return matched


def _join_match(matched: Match, pair: Match) -> Match:
    """The matched spaces, reduced to the rows that `pair` has too, and the target of `pair` as a further
    space. Both have the same source."""
    in_pair = pair.source.index.get_indexer(matched.source.index)
    rows = np.flatnonzero(in_pair >= 0)
    if not len(rows):
        names = ", ".join(repr(space.name) for space in (*matched.spaces, pair.target))
        raise NoCommonId(
            f"{names}: expected ids that all of them share, got none; leave {pair.target.name!r} out"
        )
    taken = [_take_rows(space, rows) for space in matched.spaces] + [_take_rows(pair.target, in_pair[rows])]
    if matched.source._row_numbers is None:
        source, target, *others = with_common_marks(taken)
    else:
        source, target, *others = taken
    return replace(matched, source=source, target=target, others=tuple(others))


def _take_rows(space: LatentSpace, rows: np.ndarray) -> LatentSpace:
    whole = len(rows) == len(space) and np.array_equal(rows, np.arange(len(space)))
    return space if whole else space.take(rows)


def _match_pair(source: MatrixLike, target: MatrixLike) -> Match:
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
    taken = [_take_rows(source, in_source[alive]), _take_rows(target, in_target[alive])]
    n_zero = int(np.count_nonzero(~alive))
    # Pairs that are given as row numbers do not count as guessed.
    if None in numbers:
        taken = with_common_marks(taken)
    alone = (
        len(space) - len(in_source) + (0 if of is not None else getattr(space.ids, "unlinked", 0))
        for space, of in zip((source, target), numbers, strict=True)
    )
    return Match(*taken, *alone, n_zero)


def with_common_marks(spaces: Sequence[LatentSpace]) -> list[LatentSpace]:
    """Spaces with the same ids, all with the same marks. If the ids of one space are guessed or audited, all
    spaces get its marks."""
    named = [space.ids for space in spaces if space._row_numbers is None]
    guessed = [ids.marks for ids in named if isinstance(ids, GuessedIds)]
    audited = [ids.marks for ids in named if isinstance(ids, AuditedIds)]
    if not guessed and not audited:
        return list(spaces)
    ids = np.asarray(spaces[0].ids)
    if guessed:
        ids = GuessedIds.of(ids, frozenset.intersection(*guessed))
    ids = mark_unscored(ids, frozenset().union(*audited))
    return [space.with_columns(ids=ids) for space in spaces]


def distinct_names(spaces: Sequence[LatentSpace]) -> list[str]:
    """A distinct name for each space. Equal names are numbered: ``"words (1)"``, ``"words (2)"``."""
    names = list(map(attrgetter("name"), spaces))
    distinct = []
    for name in names:
        if names.count(name) > 1:
            name = next(
                free for number in count(1) if (free := f"{name} ({number})") not in {*names, *distinct}
            )
        distinct.append(name)
    return distinct


def shared_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The ids that all spaces have, in the order of the first space; empty if there are none."""
    ids = spaces[0].index
    for space in spaces[1:]:
        ids = ids[ids.isin(space.index)]
    return ids


NONE_KNOWN = (
    "expected known pairs to score, got links that are guesses; confirm some in Connect, Link, or write"
    " “confirmed” as their kind in the file of --links"
)


def known_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The `shared_ids` of those rows that may be scored in all spaces (see `scored_rows`)."""
    ids = shared_ids(spaces)
    for space in spaces:
        if isinstance(space.ids, MarkedIds):
            ids = ids[ids.isin(space.ids[scored_rows(space.ids)])]
    return ids


def known_rows(spaces: Sequence[LatentSpace]) -> Sequence[LatentSpace]:
    """The spaces, reduced to the shared rows that may be scored in all of them. If all rows may be scored,
    the spaces are returned unchanged.

    Raises
    ------
    SpaceError
        None of the shared rows may be scored.
    """
    if not any(isinstance(space.ids, MarkedIds) for space in spaces) or not len(shared_ids(spaces)):
        return spaces
    ids = known_ids(spaces)
    if not len(ids):
        raise SpaceError(f"pairs: {NONE_KNOWN}")
    return [space.take(space.rows(ids)) for space in spaces]


def agreed_labels(spaces: Sequence[LatentSpace]) -> np.ndarray | None:
    """The common labels (n,) of spaces with the same rows. A space may lack labels; None if all do.

    Raises
    ------
    SpaceError
        Two spaces have different labels for the same row.
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


def short_names(names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return two things: the names without the last words that all of them share, such as the dataset's name;
    and those words."""
    words = [name.split(" ") for name in names]
    n = 0
    while n + 1 < min(map(len, words)) and len({tuple(name[-n - 1 :]) for name in words}) == 1:
        n += 1
    kept = tuple(" ".join(name[: len(name) - n]).rstrip(" ,·") for name in words)
    if not n or len(set(kept)) < len(kept):
        return tuple(names), ""
    return kept, " ".join(words[0][-n:]).lstrip(" ,·")
