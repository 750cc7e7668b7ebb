"""`LatentSpace`, the rows of an encoder with their ids, in memory or on disk, and `matrix`, which converts
everything that functions accept as rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.base.rows import (
    BLOCK_ROWS,
    DerivedRows,
    MappedRows,
    as_mapped_rows,
    call_content,
    length_reason,
    lengths,
    out_of_range,
)
from relcore.spaces.ids import (
    AuditedIds,
    MarkedIds,
    RowNumbers,
    checked_counts,
    checked_strings,
    digest_of_columns,
    digest_of_content,
    need_distinct_ids,
    read_only,
)


def n_equal_rows(vectors: np.ndarray) -> int:
    """The number of float32 rows (n, d) that have the same bytes as another row. Rows are compared by a hash
    of 64 bits."""
    return int(row_hashes(vectors).duplicated(keep=False).sum())


def row_hashes(vectors: np.ndarray) -> pd.Series:
    """A hash of 64 bits for each float32 row (n, d), computed from its bytes, (n,)."""
    return pd.Series(
        [
            hash(bytes(row))
            for start in range(0, len(vectors), BLOCK_ROWS)
            for row in np.ascontiguousarray(vectors[start : start + BLOCK_ROWS])
        ]
    )


class LatentSpace:
    """An absolute space, which has a float32 vector and an id for each row. It is immutable.

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
        self._stored = stored = as_mapped_rows(vectors)
        given = matrix(vectors, name, None) if stored is None else stored
        if stored is None:
            kept = np.ascontiguousarray(given, dtype=np.float32)
            shared = np.may_share_memory(kept, given)  # the caller may still change the array that it gave
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
            self.ids = ids.like(checked) if isinstance(ids, MarkedIds) else checked
        self.labels = None if labels is None else checked_strings(labels, n, name, "labels")
        self.payload = None if payload is None else tuple(payload)
        self.counts = None if counts is None else checked_counts(counts, name)
        for what, column in (("payload", self.payload), ("counts", self.counts)):
            if column is not None and len(column) != n:
                raise SpaceError(f"{name}: expected {n} {what}, one per row, got {len(column)}")
        # If the sum is finite, all rows are finite. This takes a fraction of the time of checking every
        # value.
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
        """The vectors (n, d), float32 and read-only. If they are mapped from a file, first check that it has
        not changed.

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
        return read_only(lengths(self._vectors)) if self._stored is None else self._stored.lengths

    @cached_property
    def zero_rows(self) -> np.ndarray:
        """The row numbers of zero vectors. These have no direction, so cosines with them are undefined."""
        return read_only(np.flatnonzero(self.norms == 0))

    @cached_property
    def digest(self) -> str:
        """The hexadecimal digest of vectors, ids, labels and counts. It does not depend on the name."""
        ids = self._row_numbers or self.ids
        marks = [sorted(ids.marks)] if isinstance(ids, MarkedIds) else []
        marks += [[]] * isinstance(ids, AuditedIds)
        columns = ids, self.labels, self.counts, *marks
        if self._stored is None:
            content = digest_of_content(self._vectors.shape, [self._vectors], columns)
            call_content(self._vectors, content)
            return content
        of_columns, origin = digest_of_columns(columns), self._stored.origin
        origin.need_unchanged()
        known = origin.known_digest(of_columns)
        if known is None:
            blocks = (block for _, block in self._stored.blocks())
            known = digest_of_content(self._stored.shape, blocks, columns)
            origin.keep_digest(of_columns, known)
        return known

    def rows(self, ids: Sequence[str] | np.ndarray) -> np.ndarray:
        """The row numbers (m,) of the ids, in the order of the ids.

        Raises
        ------
        SpaceError
            The space lacks some of the ids. The message names the first three.
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
        """The id for each case-folded form; "" if several ids have the same form."""
        folded: dict[str, str] = {}
        for identifier in self.ids:
            key = identifier.casefold()
            folded[key] = "" if key in folded else identifier
        return folded

    def as_written(self, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids as they are written in this space. "Paris" becomes "paris" if that is the only id of the
        space that differs from it only in case.

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
_MOST_DENSE = 8 << 30  # most bytes of a sparse matrix in dense form


def matrix(X: Any, name: str = "X", dtype: type | None = np.float32, by_block: bool = False) -> np.ndarray:
    """Convert a `LatentSpace`, array, DataFrame, tensor on any device, sparse matrix or list of rows to a
    matrix (n, d) of real numbers. The numbers may be NaN or infinite (see `need_finite`).

    Without a `dtype`, real numbers keep their type. With `by_block`, `MappedRows` (rows in files) and
    `DerivedRows` (rows that are computed when used) are returned unchanged. Without it, they are read as a
    whole.

    Raises
    ------
    SpaceError
        X has another shape, complex numbers or items that are no numbers, or is a sparse matrix that is too
        large in dense form.
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
    except ValueError as error:  # the lists have different lengths
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
    """The ids of rows: those of a `LatentSpace`, or the index of a DataFrame if it holds texts. None if the
    rows have no ids."""
    if isinstance(X, LatentSpace):
        return X._row_numbers or X.ids
    index = X.index if isinstance(X, pd.DataFrame) else None
    return None if index is None or index.inferred_type != "string" else index.to_numpy(dtype=object)


def need_paired(X: Any, Y: Any) -> None:
    """Raise a SpaceError if X and Y both have ids, and these differ or have another order. A function that
    pairs by row order would then pair wrong rows.
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


def paired_matrices(
    X: Any, Y: Any, names: tuple[str, str], by_block: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The paired rows of X and Y as matrices (n, d_x) and (n, d_y), converted by `matrix`.

    Raises
    ------
    SpaceError
        The numbers of rows differ. The errors of `matrix` and `need_paired` are raised, too.
    """
    need_paired(X, Y)
    X, Y = (matrix(side, name, None, by_block) for side, name in zip((X, Y), names, strict=True))
    if len(X) != len(Y):
        raise SpaceError(
            f"expected row-aligned spaces, got {len(X)} and {len(Y)} rows; pair them with match()"
        )
    return X, Y


def as_space(X: Any, name: str = "space") -> LatentSpace:
    """Convert anything that `matrix` accepts to a space. Rows without ids get the ids "0", "1", …. A space is
    returned unchanged."""
    if isinstance(X, LatentSpace):
        return X
    rows, ids = matrix(X, name, None, by_block=True), ids_of(X)
    return LatentSpace(rows, RowNumbers(len(rows)) if ids is None else ids, name=name)
