"""Ids of rows: numbers, marks of rows that are not scored, and checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self, TypeAlias, overload

import numpy as np
import pandas as pd

from relcore.base.arguments import need_sequence
from relcore.base.errors import SpaceError, quote

# The columns of a space are ids, labels and counts, and they are checked here. Ids that are row numbers are
# made only when they are used.

_NO_TEXTS = {bytes, bytearray, float, np.float16, np.float32, np.float64, np.bytes_, type(None)}
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_WHOLE = re.compile(r"\+?\d{1,19}(\.0*)?", re.ASCII)
_MOST = 2**63 - 1

Texts: TypeAlias = Sequence[str] | np.ndarray  # n ids or labels


@dataclass(frozen=True)
class RowNumbers(Sequence[str]):
    """The ids "0", "1", … of n rows, which take no memory until they are used."""

    n: int

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, rows: int) -> str: ...

    @overload
    def __getitem__(self, rows: slice) -> list[str]: ...

    def __getitem__(self, rows: int | slice) -> str | list[str]:
        numbers = range(self.n)[rows]
        if isinstance(numbers, int):
            return str(numbers)
        return list(map(str, numbers))

    def rows(self, ids: Texts) -> np.ndarray:
        """The row numbers (m,) of the ids; −1 for an unknown id, as in `pandas.Index.get_indexer`."""
        numbers = (isinstance(item, str) and _NUMBER.fullmatch(item) for item in ids)
        rows = np.array([int(number[0]) if number else -1 for number in numbers], dtype=np.intp)
        return np.where(rows < self.n, rows, -1)

    def at(self, rows: np.ndarray | slice) -> np.ndarray:
        """The ids of these rows as Python strings. `rows` are row numbers or a mask (n,)."""
        return np.array(list(map(str, np.arange(self.n)[rows].tolist())), dtype=object)


def checked_strings(items: Texts, expected: int, name: str, what: str) -> np.ndarray:
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
    def of(cls, ids: Texts, marks: Iterable[str]) -> Self:
        marked = np.array(ids, dtype=object).view(cls)
        marked.marks = frozenset(marks)
        return marked

    def like(self, ids: Texts) -> Self:
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


def scored_rows(ids: Texts) -> np.ndarray:
    """A mask (n,) of the rows that may be scored. For guessed pairs, these are the confirmed rows; for
    audited pairs, the rows that were not removed."""
    if not isinstance(ids, MarkedIds):
        return np.ones(len(ids), dtype=bool)
    is_marked = pd.Index(ids).isin(ids.marks)
    if isinstance(ids, GuessedIds):
        return is_marked
    return ~is_marked


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


def checked_counts(counts: Sequence[Any] | np.ndarray, name: str) -> np.ndarray:
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
    if (
        isinstance(counts, np.ndarray)
        and counts.dtype.kind in "iu"
        and len(counts)
        and 0 <= counts.min() <= counts.max() <= _MOST
    ):
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


_BLOCK = 1 << 16


def as_json(*columns: Sequence[str] | Sequence[int] | np.ndarray | None) -> Iterator[bytes]:
    """Yield the pieces of the text that `json.dumps` returns for the list of these columns. A missing column
    is null."""
    before_column = b"["
    for column in columns:
        yield before_column
        before_column = b", "
        if column is None:
            yield b"null"
            continue
        before_part = "["
        for start in range(0, len(column), _BLOCK):
            part = column[start : start + _BLOCK]
            if isinstance(part, np.ndarray):
                part = part.tolist()
            text = json.dumps(part)
            yield f"{before_part}{text[1:-1]}".encode()
            before_part = ", "
        yield b"]"
    yield b"]"
