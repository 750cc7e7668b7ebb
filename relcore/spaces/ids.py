"""The checked columns of a space: ids, labels and counts; and row numbers as ids, which are created when
used."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote

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
        """The ids, as Python strings, of these rows or of those where a mask (n,) is true."""
        return np.array(list(map(str, np.arange(self.n)[rows].tolist())), dtype=object)


def checked_strings(items: Sequence[str], expected: int, name: str, what: str) -> np.ndarray:
    """Ids or labels (n,) as Python strings, read-only.

    Raises
    ------
    SpaceError
        A wrong number of items; bytes, fractions or missing ones, which str() would turn into "b'a'" or
        "nan".
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
    return read_only(strings)


class MarkedIds(np.ndarray):
    """Ids (n,) of rows that are not all scored; each subclass defines what `marks` mean."""

    marks: frozenset[str] = frozenset()

    def __array_finalize__(self, whole: np.ndarray | None) -> None:
        self.marks = getattr(whole, "marks", frozenset())

    @classmethod
    def of(cls, ids: Sequence[str], marks: Iterable[str]) -> Self:
        marked = np.array(ids, dtype=object).view(cls)
        marked.marks = frozenset(marks)
        return marked

    def like(self, ids: Sequence[str]) -> Self:
        """These ids (n,) with the same marks as `self`."""
        marked = np.array(ids, dtype=object).view(type(self))
        marked.__array_finalize__(self)
        return marked


class GuessedIds(MarkedIds):
    """Ids of rows whose partners an algorithm chose: only marked ones, which a user confirmed, are scored.
    `unlinked` is the number of rows without a partner, which are not included."""

    unlinked: int = 0

    def __array_finalize__(self, whole: np.ndarray | None) -> None:
        super().__array_finalize__(whole)
        self.unlinked = getattr(whole, "unlinked", 0)


class AuditedIds(MarkedIds):
    """Ids of rows of which an audit found the marked ones to be paired wrongly: only the others are
    scored."""


def mark_unscored(ids: np.ndarray, removed: Iterable[str]) -> np.ndarray:
    """The ids, marked so that those in `removed` are no longer scored."""
    if isinstance(ids, GuessedIds):
        fewer = ids.copy()
        fewer.marks = ids.marks.difference(removed)
        return fewer
    marks = getattr(ids, "marks", frozenset()).union(removed)
    return AuditedIds.of(ids, marks) if marks else ids


def scored_rows(ids: Sequence[str]) -> np.ndarray:
    """Which rows (n,) may be scored: of guessed pairs the confirmed ones, of audited pairs those not
    removed."""
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
    """Counts (n,) as int64, read-only; a SpaceError if some are negative, fractions or beyond int64."""
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
    return read_only(given.astype(np.int64))


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


# The digest of a space's content, block by block: equal content has an equal digest, in memory and on disk.

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
    """Hexadecimal digest of ids, labels and counts; for row numbers, their count replaces the ids."""
    short = ([column.n] if isinstance(column, RowNumbers) else column for column in columns)
    return hashlib.blake2b(b"".join(as_json(*short)), digest_size=16).hexdigest()


def as_json(*columns: Sequence[str] | np.ndarray | None) -> Iterator[bytes]:
    """The pieces of the text that `json.dumps` returns for the list of these columns, with null for a missing
    one."""
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
