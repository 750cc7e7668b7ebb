"""The columns of a space (ids, labels and counts), and the checks of these columns. Also row numbers as
ids."""

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

# The columns of a space are ids, labels and counts. Row numbers as ids are made when they are used.

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
        """The row numbers (m,) of the ids; −1 for an unknown id, as in `pandas.Index.get_indexer`."""
        rows = np.full(len(ids), -1, dtype=np.intp)
        for place, identifier in enumerate(ids):
            if isinstance(identifier, str) and _NUMBER.fullmatch(identifier):
                rows[place] = int(identifier)
        return np.where(rows < self.n, rows, -1)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The ids of these rows as Python strings. `rows` are row numbers or a mask (n,)."""
        return np.array(list(map(str, np.arange(self.n)[rows].tolist())), dtype=object)


def checked_strings(items: Sequence[str], expected: int, name: str, what: str) -> np.ndarray:
    """Ids or labels (n,) as Python strings, read-only.

    Raises
    ------
    SpaceError
        The number of items is wrong. An item is bytes, a fraction or missing, which str() would turn into
        "b'a'" or "nan".
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
    """The ids (n,) of rows of which only some are scored. Each subclass defines the meaning of `marks`."""

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
    return AuditedIds.of(ids, marks) if marks else ids


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


def checked_counts(counts: Sequence[int], name: str) -> np.ndarray:
    """The counts (n,) as int64, read-only. Raises a SpaceError if a count is negative, a fraction or beyond
    int64."""
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


# The digest of a space's content is computed block by block. Equal content has an equal digest, in memory and
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
    """The hexadecimal digest of ids, labels and counts. If the ids are row numbers, the number of rows
    replaces them."""
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
