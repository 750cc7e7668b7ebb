"""`LatentSpace`, the rows of an encoder with their ids, in memory or on disk, and `matrix`, which converts
everything that functions accept as rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import pandas as pd

from relcore.base.arguments import need_ids, need_iterable, row_numbers
from relcore.base.errors import SpaceError, quote
from relcore.base.kinds import takes_kinds
from relcore.base.mapped_rows import MappedRows, as_mapped_rows
from relcore.base.memory import call_content
from relcore.base.rows import NOT_FINITE, DerivedRows, length_reason, lengths
from relcore.spaces.conversion import checked_numbers, plain_array
from relcore.spaces.ids import (
    AuditedIds,
    MarkedIds,
    RowNumbers,
    Texts,
    as_json,
    checked_counts,
    checked_strings,
    need_distinct_ids,
    read_only,
)
from relcore.spaces.shown import rows_html, shape_text
from relcore.spaces.table_ids import ids_of_index, index_of, is_default

# The digest of a space's content, computed block by block. Equal content has an equal digest, in memory and
# on disk.

Columns = Sequence[Texts | None]


def digest_of_content(shape: tuple[int, int], blocks: Iterable[np.ndarray], columns: Columns) -> str:
    """The hexadecimal digest of rows (n, d), which are given as float32 blocks, and of ids, labels and
    counts."""
    digest = hashlib.blake2b(repr(shape).encode(), digest_size=16)
    for block in blocks:
        digest.update(block.data.cast("B"))
    for piece in as_json(*columns):
        digest.update(piece)
    return digest.hexdigest()


def digest_of_columns(columns: Columns) -> str:
    """The hexadecimal digest of ids, labels and counts. If the ids are row numbers, the digest is made from
    their count instead."""
    short: list[Texts | list[int] | None] = []
    for column in columns:
        if isinstance(column, RowNumbers):
            short.append([column.n])
        else:
            short.append(column)
    return hashlib.blake2b(b"".join(as_json(*short)), digest_size=16).hexdigest()


class LatentSpace:
    """The vectors that an encoder gave for n items: a float32 vector and an id for each row. It is immutable.

    Parameters
    ----------
    vectors : matrix (n, d) in any form of `matrix`
        The vectors are kept as float32, read-only. They are copied unless they are already a read-only
        float32 array. `MappedRows` and read-only memory maps of float16 or float32 (``numpy.load(path,
        mmap_mode="r")``) stay on disk. The attribute `vectors` is then a float32 map, or `MappedRows` that
        give float32 for slices, row numbers and masks. Their file must not be rewritten while it is in use.
    ids : n distinct strings, optional
        Rows of two spaces are paired by their ids (see `match`). By default the index of a DataFrame, unless
        it is 0, 1, 2, …, or the ids of a space; otherwise the row numbers "0", "1", …, which take no memory
        until they are used.
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
    >>> LatentSpace(np.eye(3)).ids.tolist()
    ['0', '1', '2']
    """

    note: str = ""

    @takes_kinds
    def __init__(
        self,
        vectors: MatrixLike,
        ids: Sequence[str] | np.ndarray | None = None,
        *,
        name: str = "space",
        labels: Sequence[str] | np.ndarray | None = None,
        payload: Sequence[Any] | None = None,
        counts: Sequence[int] | np.ndarray | None = None,
    ) -> None:
        self.name = name
        stored = as_mapped_rows(vectors)
        self._stored = stored
        self._vectors: np.ndarray
        if stored is None:
            self._vectors = _read_only_rows(matrix(vectors, name, None, finite=False))
        elif stored.plain is None:
            self._vectors = cast(np.ndarray, stored)
        else:
            self._vectors = stored.plain
        n = len(self._vectors)
        self.dimension: int = self._vectors.shape[1]
        if ids is None:
            ids = ids_of_rows(vectors, n, name)
        self._row_numbers: RowNumbers | None = None
        if isinstance(ids, RowNumbers) and ids.n == n:
            self._row_numbers = ids
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
        if stored is None:
            self._need_finite(self._vectors)
        else:
            self._need_finite(stored.lengths)
            if reason := length_reason(stored.lengths, self.dimension):
                raise SpaceError(f"{name}: {reason}")
        if self._row_numbers is None:
            need_distinct_ids(self.index, name)

    def _need_finite(self, numbers: np.ndarray) -> None:
        """Raise a SpaceError that names rows with NaN or infinity among these numbers, (n,) or (n, d)."""
        # A finite sum means that all numbers are finite. The sum takes a fraction of the time of checking
        # each of them.
        if np.isfinite(np.sum(numbers, dtype=np.float64)):
            return
        n = len(numbers)
        bad = np.flatnonzero(~np.isfinite(numbers.reshape(n, -1)).all(axis=1))
        if len(bad):
            raise SpaceError(
                f"{self.name}: {len(bad)} of {n} rows hold NaN or infinite values, first"
                f" {quote(self.ids[bad[:3]])}; leave these rows out (invalid='drop', in a command"
                " FILE#invalid=drop); float32 holds numbers up to 3.4e38"
            )

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

    def _repr_html_(self) -> str:
        columns = {"label": self.labels, "count": self.counts}
        ids = self._row_numbers or self.ids  # row numbers take no memory
        return rows_html(f"{shape_text(self.name, len(self), self.dimension)}.", ids, columns, self.note)

    @cached_property
    def ids(self) -> np.ndarray:
        """The ids of the rows, an array (n,) of Python strings."""
        assert self._row_numbers is not None, "all other ids are set when the space is made"
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
        marks: list[list[str]] = []
        if isinstance(ids, MarkedIds):
            marks.append(sorted(ids.marks))
        if isinstance(ids, AuditedIds):  # so that the digest differs from that of guessed ids
            marks.append([])
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
        ids = need_ids("ids", ids)
        wanted = pd.Index(list(ids), dtype=object)
        if self._row_numbers is None:
            rows: np.ndarray = self.index.get_indexer(wanted)
        else:
            rows = self._row_numbers.rows(wanted)
        if (rows < 0).any():
            unknown = wanted[rows < 0]
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

    @takes_kinds
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
        written = []
        for one in ids:
            if one not in self.index:
                one = self._by_folded_id.get(one.casefold()) or one
            written.append(one)
        return tuple(written)

    def with_columns(self, **changes: Any) -> LatentSpace:
        vectors = self._vectors if self._stored is None else self._stored
        columns = {key: getattr(self, key) for key in ("name", "labels", "payload", "counts")}
        columns["ids"] = self._row_numbers or self.ids
        return LatentSpace(vectors, **columns | changes)

    @takes_kinds
    def take(self, rows: np.ndarray, name: str | None = None) -> LatentSpace:
        mask = isinstance(rows, np.ndarray) and rows.dtype == bool and rows.shape == (len(self),)
        if not mask:
            rows = row_numbers("rows", rows, len(self))
        ids = self._row_numbers.at(rows) if self._row_numbers else self.ids[rows]
        columns: dict[str, Any] = {}
        if self.labels is not None:
            columns["labels"] = self.labels[rows]
        if self.payload is not None:
            columns["payload"] = [self.payload[row] for row in rows]
        if self.counts is not None:
            columns["counts"] = self.counts[rows]
        return LatentSpace(self.vectors[rows], ids, name=name or self.name, **columns)


def _read_only_rows(rows: np.ndarray) -> np.ndarray:
    """The rows as a read-only, contiguous float32 matrix, which no caller can change later."""
    vectors = np.ascontiguousarray(rows, dtype=np.float32)
    shared = np.may_share_memory(vectors, rows)  # if so, the caller could change the rows
    if shared and (vectors.flags.writeable or vectors.base is not None):
        vectors = vectors.copy()
    return read_only(vectors)


def ids_of(X: Any) -> Sequence[str] | np.ndarray | None:
    """The ids of rows: those of a `LatentSpace`, or the index of a DataFrame (see `table_ids`). None if the
    rows have no ids."""
    if isinstance(X, LatentSpace):
        return X._row_numbers or X.ids
    index = index_of(X)
    if index is None or is_default(index):
        return None
    return ids_of_index(index)


def ids_of_rows(X: Any, n: int, name: str) -> Sequence[str] | np.ndarray:
    """The ids of n rows for a new space: those of `ids_of`, or row numbers if there are none. Raises a
    SpaceError for the index of a DataFrame that repeats."""
    index = index_of(X)
    if index is not None and not index.is_unique:
        twice = quote(index[index.duplicated()][:3])
        raise SpaceError(
            f"{name}: expected an index in which each value occurs once, got {twice} more than once;"
            " .reset_index(drop=True) numbers the rows"
        )
    ids = ids_of(X)
    if ids is None:
        return RowNumbers(n)
    return ids


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
