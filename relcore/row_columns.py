"""The parts of a space, checked: vectors in memory, ids, labels and counts; and row numbers as ids, made when they are used."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from relcore.errors import SpaceError, quote
from relcore.magnitude import too_large, too_small

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
        found = (int(one) if isinstance(one, str) and len(one) < 19 and _NUMBER.fullmatch(one) else -1 for one in ids)
        return np.array([row if row < self.n else -1 for row in found], dtype=np.intp)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The ids of these rows, or where a mask (n,) is true, as Python strings."""
        numbers = np.arange(self.n)[rows].tolist()
        strings = np.empty(len(numbers), dtype=object)
        strings[:] = list(map(str, numbers))
        return strings


def checked_vectors(given: np.ndarray, name: str) -> np.ndarray:
    """A matrix (n, d) in memory as read-only float32 that nobody else can change: a copy, or a read-only array itself.

    Raises
    ------
    SpaceError
        Numbers that float32 cannot hold.
    """
    if reason := too_large(given) or too_small(given):
        raise SpaceError(f"{name}: {reason}")
    vectors = np.ascontiguousarray(given, dtype=np.float32)
    if np.may_share_memory(vectors, given) and (vectors.flags.writeable or vectors.base is not None):
        vectors = vectors.copy()  # the caller's array, or one that it is a view of, stays the caller's to change
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
        raise SpaceError(f"{name}, row {row + 1}: expected {what} as strings, got {item!r:.40}; convert them first")
    strings = np.empty(expected, dtype=object)
    strings[:] = items if types == {str} and not isinstance(items, str) else [str(item) for item in items]
    return strings


def need_distinct_ids(index: pd.Index, name: str) -> None:
    """Raise a SpaceError where an id is empty or occurs twice."""
    if "" in index:
        raise SpaceError(f"{name}, row {index.get_indexer_for([''])[0] + 1}: expected an id, got an empty one; fill it")
    if index.is_unique:
        return
    twice = index[index.duplicated()].unique()
    raise SpaceError(
        f"{name}: ids must be distinct, {len(twice)} occur more than once, first {quote(twice[:3])}; "
        "make them distinct, or load the file with duplicates='first' (in a command FILE#duplicates=first)"
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
    if not whole or given.ndim != 1 or (given < 0).any() or (given >= (2.0**63 if given.dtype.kind == "f" else 2**63)).any():
        raise SpaceError(
            f"{name}: expected one whole number from 0 to 2⁶³ − 1 per row as counts, got {given!r:.60}; round or leave them out"
        )
    return given.astype(np.int64)
