"""The checks of numbers, row numbers and lists that a user passes to a public function. Rows are checked by
`relcore.spaces.space.matrix`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, brief, quote


def need_number(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    whole: bool = False,
) -> None:
    """Raise a SpaceError that names the argument, unless the value is a finite number within these bounds.
    `low` and `high` are allowed values, `above` is not. True and False are no numbers.
    """
    noun = "a number"
    if whole:
        noun = "a whole number"
    fits = (
        is_number(value, whole)
        and (low is None or value >= low)
        and (high is None or value <= high)
        and (above is None or value > above)
    )
    if fits:
        return
    bounds = ""
    if above is not None:
        bounds = f" above {above}"
        if high is not None:
            bounds += f" and at most {high}"
    elif high is not None:
        bounds = f" from {low} to {high}"
    elif low is not None:
        bounds = f" of {low} or more"
    raise SpaceError(f"{name}: expected {noun}{bounds}, got {brief(value)}")


def need_whole(name: str, value: Any, low: int = 1, high: int | None = None) -> None:
    """Raise a SpaceError that names the argument, unless the value is a whole number from `low` to `high`."""
    need_number(name, value, low=low, high=high, whole=True)


def random_generator(random_state: Any) -> np.random.Generator:
    """The generator of a seed. Raises a SpaceError for a value that is no seed, such as −1."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise SpaceError(
            f"random_state: expected a whole number of 0 or more, got {brief(random_state)}"
        ) from None


def row_numbers(name: str, rows: Any, n: int, remedy: str = "") -> np.ndarray:
    """Row numbers (m,) as int64.

    Raises
    ------
    SpaceError
        The rows are no whole numbers, such as a mask or 1.5; a number is outside 0 … n − 1, or repeated.
    """
    array = np.asarray(rows)
    if np.ma.is_masked(rows):
        raise SpaceError(f"{name}: expected row numbers 0 … {n - 1}, got masked cells; leave these out")
    if not array.size and array.ndim == 1:
        return np.empty(0, dtype=np.int64)
    more = ""
    if remedy:
        more = f"; {remedy}"
    if array.ndim != 1 or array.dtype.kind not in "iu":
        got = f"{brief(rows, 60)}"
        if array.dtype.kind == "b":
            got = "a mask"
            more = "; numpy.flatnonzero turns a mask into row numbers"
        raise SpaceError(f"{name}: expected row numbers 0 … {n - 1}, got {got}{more}")
    outside = array[(array < 0) | (array >= n)]
    if len(outside):
        raise SpaceError(f"{name}: expected row numbers 0 … {n - 1}, got {outside[0]}{more}")
    times = np.bincount(array)
    if times.max() > 1:
        raise SpaceError(f"{name}: expected each row once, got row {times.argmax()} more than once{more}")
    return array.astype(np.int64, copy=False)


def need_ids(name: str, ids: Any) -> list[str]:
    """The ids as a list. Raises a SpaceError unless they are a list of texts: not a number, a single text or
    None."""
    if isinstance(ids, str | bytes | Mapping | set | frozenset) or not is_iterable(ids):
        raise SpaceError(f"{name}: expected a list of ids, got {brief(ids)}")
    ids = list(ids)
    others = [one for one in ids if not isinstance(one, str)]
    if others:
        raise SpaceError(
            f"{name}: expected ids as strings, got {quote(others[:1])} of type {type(others[0]).__name__};"
            " ids of rows without ids are their numbers as text, such as '0'"
        )
    return ids


def numbers(name: str, values: Any) -> np.ndarray:
    """Values (m,) as float64; masked values become NaN. Raises a SpaceError for texts, dates, and what is no
    list."""
    masked = np.ma.asarray(values)
    if isinstance(values, np.ma.MaskedArray):
        values = masked.data
    need_sequence(name, values, "numbers")
    try:
        if masked.dtype.kind in "mMc" or masked.ndim != 1:
            raise TypeError(f"{masked.dtype} of shape {masked.shape}")
        return masked.astype(np.float64).filled(np.nan)
    except (TypeError, ValueError) as error:
        raise SpaceError(f"{name}: expected a list of numbers, got {error!s:.80}") from None


def need_iterable(name: str, values: Any, what: str) -> None:
    """Raise a SpaceError that names the argument, unless it is a list or another iterable of items."""
    if not is_iterable(values) or isinstance(values, np.ma.MaskedArray):
        raise SpaceError(f"{name}: expected a list of {what}, got {brief(values)}")


def need_kind(name: str, value: Any, kind: type) -> None:
    """Raise a SpaceError that names the argument, unless the value is an instance of this class."""
    if not isinstance(value, kind):
        raise SpaceError(f"{name}: expected a {kind.__name__}, got {brief(value)}")


def need_sequence(name: str, values: Any, what: str, n: int | None = None) -> None:
    """Raise a SpaceError that names the argument, unless the values are a list (of n items, if n is given).
    `what` describes the items."""
    if not is_list(values):
        raise SpaceError(f"{name}: expected a list of {what}, got {brief(values)}")
    if np.ma.is_masked(values):
        raise SpaceError(f"{name}: expected a list of {what}, got masked cells; leave these out")
    if n is not None and len(values) != n:
        raise SpaceError(f"{name}: expected {n:,} {what}, one per row, got {len(values):,}")


def is_list(value: Any) -> bool:
    """Whether a value is a list, tuple, array (n,) or another collection in a fixed order, but no text."""
    if isinstance(value, str | bytes | bytearray | Mapping | set | frozenset):
        return False
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) == 1
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and not isinstance(value, type)


def is_iterable(values: Any) -> bool:
    """Whether a value has items: no number, class, or array without axes."""
    return hasattr(values, "__iter__") and not isinstance(values, type) and getattr(values, "shape", 1) != ()


def is_number(value: Any, whole: bool = False) -> bool:
    """Whether a value is a finite number, but not True or False. With `whole`, it must be a whole number."""
    kinds: tuple[type, ...] = (int, np.integer)
    if not whole:
        kinds = (int, float, np.integer, np.floating)
    if not isinstance(value, kinds) or isinstance(value, bool):
        return False
    number: Any = value
    try:
        return math.isfinite(number)
    except OverflowError:  # of a whole number that no float holds
        return whole
