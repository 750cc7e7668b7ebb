"""Rows: what a reader found in a file, before it is checked and becomes a LatentSpace."""

from __future__ import annotations

import datetime
import os
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote

_ROW_BYTES = 128  # of an id, its place in the list and in the index; measured on three million rows


@dataclass(frozen=True)
class Rows:
    """Vectors (n, d) of a file, and its columns, n items each or None, as the file holds them;
    `row_values` checks them.
    """

    vectors: np.ndarray
    ids: Sequence[Any] | None = None
    labels: Sequence[Any] | None = None
    counts: Sequence[Any] | None = None


class GrowingMatrix:
    """A float32 matrix (n, d) that grows block by block and is never copied as a whole.

    Raises
    ------
    SpaceError
        More than `max_bytes`, before they are taken.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._values = np.empty((0, 0), dtype=np.float32)
        self._n = self.dimension = 0

    def __len__(self) -> int:
        return self._n

    def append(self, block: np.ndarray) -> None:
        """Add rows (m, d); every block has the d of the first."""
        self.dimension = self.dimension or block.shape[1]
        n = self._n + len(block)
        check_size(self._path, n, self.dimension, self._max_bytes)
        if n > len(self._values):
            # The system moves the pages of a large block of memory, so nothing is copied.
            self._values.resize((n + n // 8, self.dimension), refcheck=False)
        with np.errstate(
            over="ignore"
        ):  # too large for float32 becomes infinite, and is reported as such later
            self._values[self._n : n] = block
        self._n = n

    def matrix(self) -> np.ndarray:
        """The rows so far, read-only, without a copy; nothing can be added any more."""
        self._values.resize((self._n, self.dimension), refcheck=False)
        self._values.flags.writeable = False
        return self._values


def check_size(path: Path, n: int, d: int, max_bytes: int) -> None:
    """Refuse vectors (n, d) without columns, and those that would take more than `max_bytes` with their ids,
    before reading.

    What counts is what is used: float32, in whatever form the file holds them, and a Python string for each
    row.
    """
    if d < 1:
        raise SpaceError(
            f"{path.name}: expected at least one column of numbers, got shape ({n:,}, {d}); save the vectors"
            " again"
        )
    values, ids = 4 * n * d, _ROW_BYTES * n
    if values + ids > max_bytes:
        told = readable(values) if values > max_bytes else f"{readable(values)} and their ids {readable(ids)}"
        raise SpaceError(
            f"{path.name}: {n:,} × {d:,} values take {told}, more than max_bytes = {readable(max_bytes)}"
            "; read fewer rows (limit), or allow more memory (max_bytes) if you trust the file"
        )


def cut_short(path: Path) -> SpaceError:
    """The error of a file that is shorter than its header promises."""
    return SpaceError(
        f"{path.name}: expected all the values that its header promises, got the end of the file; copy it"
        " again"
    )


def readable(n_bytes: int) -> str:
    """A size in words: ``'1.7 GB'``."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


# Ids, labels and counts of rows, as any file may hold them, checked and made strings and whole numbers.
#
# Files hold ids as text, bytes or numbers, and numbers change their look on the way: a table with a gap turns
# 7 into 7.0. So that spaces pair by what was meant, 7 and 7.0 are one id; what is no text or whole number is
# an error with its row.

_MOST = 2**63 - 1
_EXACT = 2.0**53  # up to here a float64 holds every whole number
_WHOLE = re.compile(r"\+?\d{1,19}(\.0*)?", re.ASCII)
_TEXTS = (datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def checked_ids(values: Sequence[Any], where: str) -> list[str]:
    """Ids as text, none of them empty.

    Raises
    ------
    SpaceError
        An empty id, a fraction, true or false, what is no Unicode text; with its row, counted from 1.
    """
    ids = _plain(values)
    if set(map(type, ids)) != {str}:
        ids = [_text(value, where, row, "an id") for row, value in enumerate(ids)]
    if not all(map(str.strip, ids)) and not all(
        one.strip(" \t\r\n") for one in ids
    ):  # the former is three times as fast
        row = next(row for row, one in enumerate(ids) if not one.strip(" \t\r\n"))
        raise SpaceError(
            f"{where}, row {row + 1}: expected an id, got an empty one; fill it, or take ids from elsewhere"
        )
    _check_unicode(ids, where)
    return ids


def checked_labels(values: Sequence[Any], where: str) -> list[str]:
    """Labels as text; missing ones and NaN are "", which is no class. 3 and 3.0 are one class."""
    labels = _plain(values)
    if set(map(type, labels)) != {str}:
        labels = [_text(value, where, row, "a label") for row, value in enumerate(labels)]
    _check_unicode(labels, where)
    return labels


def checked_counts(values: Sequence[Any], where: str) -> np.ndarray:
    """Counts (n,) as int64, none below 0.

    Raises
    ------
    SpaceError
        A negative number, a fraction, NaN, a number beyond 2⁶³ − 1, no number; with its row, counted from 1.
    """
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise SpaceError(
            f"{where}: expected a list of counts (n,), got shape {values.shape}; save one count per row"
        )
    if (
        isinstance(values, np.ndarray)
        and values.dtype.kind in "iu"
        and len(values)
        and 0 <= values.min() <= values.max() <= _MOST
    ):
        return values.astype(np.int64, copy=False)
    counts = [_count(value) for value in _plain(values)]
    if None in counts:
        row = counts.index(None)
        raise SpaceError(
            f"{where}, row {row + 1}: expected whole numbers as counts, 0 to 2⁶³ − 1, got"
            f" {_shown(_plain(values)[row])}; mend the cell, or leave the column out"
        )
    return np.array(counts, dtype=np.int64)


def distinct(texts: Sequence[str]) -> list[str]:
    """Ids of texts that may repeat or be blank: "yes", "yes (2)", "row 3". The same list gives the same ids
    in every space.

    Examples
    --------
    >>> distinct(["yes", "no", "yes", ""])
    ['yes', 'no', 'yes (2)', 'row 3']
    """
    seen: dict[str, int] = {}
    used = set(texts)
    found = []
    for row, text in enumerate(texts):
        plain = text if text.strip(" \t\r\n") else f"row {row}"
        number = seen.get(plain, 1 if plain != text and plain in used else 0) + 1
        name = plain
        while number > 1 and (name := f"{plain} ({number})") in used:
            number += 1
        seen[plain] = number
        used.add(name)
        found.append(name)
    return found


def _plain(values: Sequence[Any]) -> list[Any]:
    return (
        values
        if isinstance(values, list)
        else values.tolist()
        if isinstance(values, np.ndarray)
        else list(values)
    )


def _text(value: Any, where: str, row: int, what: str) -> str:
    """One value as text; "" where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    elif isinstance(value, bool):
        if what == "a label":
            return str(value)
    elif isinstance(value, int | float | Decimal):
        if isinstance(value, int) or (value == value // 1 and abs(value) <= _EXACT):
            return str(int(value))
        if what == "a label" and abs(value) != float("inf"):
            return str(value)
    elif isinstance(value, _TEXTS):
        return str(value)
    expected = "text" if what == "a label" else "text or a whole number"
    raise SpaceError(
        f"{where}, row {row + 1}: expected {what} as {expected}, got {_shown(value)}; save the column as text"
    )


def _count(value: Any) -> int | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        value = int(value.partition(".")[0]) if _WHOLE.fullmatch(value := value.strip()) else None
    fits = isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 <= value <= _MOST
    return int(value) if fits and value == value // 1 else None


def _check_unicode(texts: list[str], where: str) -> None:
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError:
        row = next(
            row
            for row, text in enumerate(texts)
            if any("\ud800" <= character <= "\udfff" for character in text)
        )
        raise SpaceError(
            f"{where}, row {row + 1}: expected Unicode text, got {_shown(texts[row])} with half a character;"
            " save it as UTF-8"
        ) from None


def _shown(value: Any) -> str:
    return (
        "an empty cell" if value is None else quote([value]) if isinstance(value, str) else f"{value!r:.40}"
    )


# How much memory a file's vectors may take on this machine; a clear error before that is better than the
# system's kill.

MOST = 8 << 30
_SHARE = 0.6  # of what is free: pages, jobs and the results of both need the rest
_GROUP = Path("/sys/fs/cgroup")


def usable_bytes() -> int:
    """8 GiB, or 60 % of the memory that is free where that is less: of the machine, and of the container
    that runs this.
    """
    free = [MOST / _SHARE, *_of_machine(), *_of_container()]
    return int(_SHARE * max(0, min(free)))


def _of_machine() -> list[float]:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return [int(line.split()[1]) * 1024]
    with suppress(OSError, ValueError, AttributeError):
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return []


def _of_container() -> list[float]:
    """Its limit less what it holds; files that it has read do not count, since the system gives their
    pages back.
    """
    with suppress(OSError, ValueError):
        limit = int((_GROUP / "memory.max").read_text(encoding="ascii"))  # "max" where there is none
        facts = dict(
            line.split() for line in (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
        )
        return [limit - int(facts["anon"])] if "anon" in facts else [limit]
    return []
