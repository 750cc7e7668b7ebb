"""LatentSpace: the rows of an encoder with their ids; match() pairs two spaces by id."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import NoCommonId, SpaceError, quote
from relcore.base.magnitude import lengths, too_large, too_small
from relcore.spaces.rows import mapped

# The parts of a space, checked: vectors in memory, ids, labels and counts; and row numbers as ids, made when
# they are used.

# str() would give "nan", "b'a'"
_NO_TEXTS = {bytes, bytearray, float, np.float16, np.float32, np.float64, np.bytes_, type(None)}
_NUMBER = re.compile(r"0|[1-9][0-9]*")


class RowNumbers(Sequence[str]):
    """The ids "0", "1", … of n rows, which take no memory until they are used."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: int | slice) -> str | list[str]:
        found = range(self.n)[rows]
        return str(found) if isinstance(found, int) else list(map(str, found))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowNumbers) and other.n == self.n

    def __hash__(self) -> int:
        return hash((RowNumbers, self.n))

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Row numbers (m,) of the ids, −1 for others, as `pandas.Index.get_indexer` finds them."""
        found = (
            int(one) if isinstance(one, str) and len(one) < 19 and _NUMBER.fullmatch(one) else -1
            for one in ids
        )
        return np.array([row if row < self.n else -1 for row in found], dtype=np.intp)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The ids of these rows, or where a mask (n,) is true, as Python strings."""
        numbers = np.arange(self.n)[rows].tolist()
        strings = np.empty(len(numbers), dtype=object)
        strings[:] = list(map(str, numbers))
        return strings


def checked_vectors(given: np.ndarray, name: str) -> np.ndarray:
    """A matrix (n, d) in memory as read-only float32 that nobody else can change: a copy, or a read-only
    array itself.

    Raises
    ------
    SpaceError
        Numbers that float32 cannot hold.
    """
    if reason := too_large(given) or too_small(given):
        raise SpaceError(f"{name}: {reason}")
    vectors = np.ascontiguousarray(given, dtype=np.float32)
    if np.may_share_memory(vectors, given) and (vectors.flags.writeable or vectors.base is not None):
        vectors = (
            vectors.copy()
        )  # the caller's array, or one that it is a view of, stays the caller's to change
    vectors.flags.writeable = False
    return vectors


def checked_strings(items: Sequence[str], expected: int, name: str, what: str) -> np.ndarray:
    """Ids or labels (n,) as Python strings.

    Raises
    ------
    SpaceError
        Another number than expected; bytes, fractions, missing ones.
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
    strings[:] = items if types == {str} and not isinstance(items, str) else [str(item) for item in items]
    return strings


def need_distinct_ids(index: pd.Index, name: str) -> None:
    """Raise a SpaceError where an id is empty or occurs twice."""
    if "" in index:
        raise SpaceError(
            f"{name}, row {index.get_indexer_for([''])[0] + 1}: expected an id, got an empty one; fill it"
        )
    if index.is_unique:
        return
    twice = index[index.duplicated()].unique()
    raise SpaceError(
        f"{name}: ids must be distinct, {len(twice)} occur more than once, first {quote(twice[:3])}; "
        "make them distinct, or keep only the first of duplicate ids (duplicates='first', in a command"
        " FILE#duplicates=first)"
    )


def checked_counts(counts: Sequence[int], name: str) -> np.ndarray:
    """Counts (n,) as int64, none below 0.

    Raises
    ------
    SpaceError
        Negative ones, fractions, beyond int64.
    """
    given = np.asarray(counts)
    whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and np.array_equal(given, np.floor(given)))
    if (
        not whole
        or given.ndim != 1
        or (given < 0).any()
        or (given >= (2.0**63 if given.dtype.kind == "f" else 2**63)).any()
    ):
        raise SpaceError(
            f"{name}: expected one whole number from 0 to 2⁶³ − 1 per row as counts, got {given!r:.60}; round"
            " or leave them out"
        )
    return given.astype(np.int64)


# The digest of a space's content, block by block: equal content, equal digest, in memory or on disk.

Columns = Sequence[Sequence[str] | np.ndarray | None]
_BLOCK, _ROWS = 1 << 16, 4096


def digest_of_content(shape: tuple[int, int], blocks: Iterable[np.ndarray], columns: Columns) -> str:
    """Hexadecimal digest of float32 rows (n, d), given in blocks, and of ids, labels and counts."""
    digest = hashlib.blake2b(repr(shape).encode(), digest_size=16)
    for block in blocks:
        digest.update(memoryview(block).cast("B"))
    for piece in as_json(*columns):
        digest.update(piece)
    return digest.hexdigest()


def digest_of_columns(columns: Columns) -> str:
    """Hexadecimal digest of ids, labels and counts; of row numbers without making them."""
    digest = hashlib.blake2b(digest_size=16)
    numbers = [len(one) if isinstance(one, RowNumbers) else None for one in columns]
    digest.update(json.dumps(numbers).encode())
    for piece in as_json(*(None if isinstance(one, RowNumbers) else one for one in columns)):
        digest.update(piece)
    return digest.hexdigest()


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
    """How many rows (n, d) float32 have the very bytes of another row; of a mapped file with the memory of a
    block.

    Rows of different hashes (64 bits) differ. Those of equal hashes, few unless rows are equal, are compared
    by their bytes.
    """
    hashes = np.empty(len(vectors), dtype=np.int64)
    for start in range(0, len(vectors), _ROWS):
        block = np.ascontiguousarray(vectors[start : start + _ROWS])
        hashes[start : start + len(block)] = [hash(row.tobytes()) for row in block]
    order = np.argsort(hashes)
    alike = np.diff(hashes[order]) == 0
    rows = order[np.append(alike, False) | np.append(False, alike)]
    found = np.ascontiguousarray(vectors[np.sort(rows)])
    _, counts = np.unique(found.view(f"V{found.itemsize * found.shape[1]}"), return_counts=True)
    return int(counts[counts > 1].sum())


_COLUMNS = ("labels", "payload", "counts")


class LatentSpace:
    """An absolute space: a float32 vector and an id per row; immutable.

    Parameters
    ----------
    vectors : array (n, d)
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

    def __init__(
        self,
        vectors: np.ndarray,
        ids: Sequence[str],
        *,
        name: str = "space",
        labels: Sequence[str] | None = None,
        payload: Sequence[Any] | None = None,
        counts: Sequence[int] | None = None,
    ) -> None:
        self._stored = stored = mapped(vectors)
        given = np.asarray(vectors) if stored is None else stored
        if given.ndim != 2 or 0 in given.shape:
            raise SpaceError(
                f"{name}: expected a matrix (n, d) with rows and columns, got shape {given.shape}"
            )
        self.name = name
        self._vectors = (
            checked_vectors(given, name)
            if stored is None
            else stored
            if stored.plain is None
            else stored.plain
        )
        n = len(given)
        self._row_numbers = ids if isinstance(ids, RowNumbers) and len(ids) == n else None
        if self._row_numbers is None:
            self.ids = _read_only(checked_strings(ids, n, name, "ids"))
        self.labels = None if labels is None else _read_only(checked_strings(labels, n, name, "labels"))
        self.payload = None if payload is None else tuple(payload)
        self.counts = None if counts is None else _read_only(checked_counts(counts, name))
        for what, column in (("payload", self.payload), ("counts", self.counts)):
            if column is not None and len(column) != n:
                raise SpaceError(f"{name}: expected {n} {what}, one per row, got {len(column)}")
        self._check_finite()
        if self._row_numbers is None:
            need_distinct_ids(self.index, name)

    def _check_finite(self) -> None:
        # A finite sum proves finite rows at a fraction of the cost of looking at every value; of a map the
        # lengths are known.
        known = None if self._stored is None else self._stored.lengths
        if np.isfinite(np.sum(self.vectors if known is None else known, dtype=np.float64)):
            return
        bad = np.flatnonzero(~np.isfinite(self.vectors).all(axis=1) if known is None else ~np.isfinite(known))
        if len(bad):
            raise SpaceError(
                f"{self.name}: {len(bad)} of {len(self)} rows hold NaN or infinite values, first"
                f" {quote(self.ids[bad[:3]])}; leave these rows out (invalid='drop', in a command"
                " FILE#invalid=drop); float32 holds numbers up to 3.4e38"
            )

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

    @property
    def dimension(self) -> int:
        return self._vectors.shape[1]

    @cached_property
    def ids(self) -> np.ndarray:
        """The id of each row, (n,) Python strings."""
        return _read_only(self._row_numbers.at(slice(None)))

    @cached_property
    def index(self) -> pd.Index:
        return pd.Index(self.ids, dtype=object)

    @cached_property
    def norms(self) -> np.ndarray:
        """Euclidean length of each row, (n,)."""
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
        columns = self._row_numbers or self.ids, self.labels, self.counts
        if self._stored is None:
            return digest_of_content(self._vectors.shape, [self._vectors], columns)
        told, origin = digest_of_columns(columns), self._stored.origin
        origin.need_unchanged()
        if (known := origin.known_digest(told)) is None:
            known = digest_of_content(
                self._stored.shape, (block for _, block in self._stored.blocks()), columns
            )
            origin.keep_digest(told, known)
        return known

    def same_ids(self, other: LatentSpace) -> bool:
        """Whether another space has the same ids in the same order."""
        if self._row_numbers is not None and other._row_numbers is not None:
            return self._row_numbers == other._row_numbers
        return np.array_equal(self.ids, other.ids)

    def rows(self, ids: Sequence[str]) -> np.ndarray:
        """Row numbers (m,) of the ids, in their order.

        Raises
        ------
        SpaceError
            Ids that the space lacks, naming the first three.
        """
        ids = list(ids)
        rows = (
            self._row_numbers.rows(ids)
            if self._row_numbers
            else self.index.get_indexer(pd.Index(ids, dtype=object))
        )
        unknown = [identifier for identifier, row in zip(ids, rows, strict=True) if row < 0]
        if unknown:
            raise SpaceError(
                f"expected ids of {self.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}"
            )
        return rows

    def with_columns(self, **changes: Any) -> LatentSpace:
        """The same vectors with another name, ids, labels, payload or counts."""
        columns = {
            "ids": self._row_numbers or self.ids,
            **{key: getattr(self, key) for key in ("name", *_COLUMNS)},
        }
        return LatentSpace(self._vectors if self._stored is None else self._stored, **columns | changes)

    def take(self, rows: np.ndarray, name: str | None = None) -> LatentSpace:
        """The space of these rows, in this order."""
        rows = np.asarray(rows)
        ids = self.ids if self._row_numbers is None else self._row_numbers
        return LatentSpace(
            self.vectors[rows],
            ids[rows] if isinstance(ids, np.ndarray) else ids.at(rows),
            name=name or self.name,
            labels=None if self.labels is None else self.labels[rows],
            payload=None if self.payload is None else [self.payload[row] for row in rows],
            counts=None if self.counts is None else self.counts[rows],
        )


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


def match(source: LatentSpace, target: LatentSpace) -> Match:
    """Pair two spaces by id, in the source's order; rows that are zero in either are left out and counted.

    Raises
    ------
    NoCommonId
        No shared id; a SpaceError.
    SpaceError
        None left after zero vectors are taken out.

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
    if source.same_ids(target):
        in_source = in_target = np.arange(len(source))
    else:
        rows = target.index.get_indexer(source.index)
        in_source = np.flatnonzero(rows >= 0)
        in_target = rows[in_source]
    if not len(in_source):
        raise NoCommonId(
            f"{source.name!r} and {target.name!r} share no ids (for instance {quote(source.ids[:2])} and"
            f" {quote(target.ids[:2])}); encode the same items with both, or give both files the same id"
            " column"
        )
    alive = (source.norms[in_source] > 0) & (target.norms[in_target] > 0)
    if not alive.any():
        raise SpaceError(
            f"{source.name!r} and {target.name!r} share {len(alive)} ids, but every shared row is a zero"
            " vector"
        )
    return Match(
        source=_take_unless_all(source, in_source[alive]),
        target=_take_unless_all(target, in_target[alive]),
        n_source_only=len(source) - len(in_source),
        n_target_only=len(target) - len(in_target),
        n_zero=int(np.count_nonzero(~alive)),
    )


def _take_unless_all(space: LatentSpace, rows: np.ndarray) -> LatentSpace:
    whole = len(rows) == len(space) and np.array_equal(rows, np.arange(len(space)))
    return space if whole else space.take(rows)


def distinct_names(spaces: Sequence[LatentSpace]) -> list[str]:
    """A distinct name for each space; equal names are numbered, ``"words (1)"``, ``"words (2)"``."""
    names = [space.name for space in spaces]
    taken, distinct = set(names), []
    for name in names:
        if names.count(name) > 1:
            name = next(numbered for number in count(1) if (numbered := f"{name} ({number})") not in taken)
            taken.add(name)
        distinct.append(name)
    return distinct


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def shared_ids(spaces: Sequence[LatentSpace]) -> pd.Index:
    """The ids that every space has, in the first one's order; empty where there are none."""
    ids = spaces[0].index
    for space in spaces[1:]:
        ids = ids[ids.isin(space.index)]
    return ids
