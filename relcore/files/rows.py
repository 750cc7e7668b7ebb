"""Ids, labels and counts of rows, as any file may hold them, checked and made strings and whole numbers.

Files hold ids as text, bytes or numbers, and numbers change their look on the way: a table with a gap turns
7 into 7.0. So that spaces pair by what was meant, 7 and 7.0 are one id; what is no text or whole number is
an error with its row.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote

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
        item.strip(" \t\r\n") for item in ids
    ):  # the former is three times as fast
        row = next(row for row, item in enumerate(ids) if not item.strip(" \t\r\n"))
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
