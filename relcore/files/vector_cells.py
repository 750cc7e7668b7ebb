"""Cells of tables that are vectors: which columns have them, and their numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from pyarrow import types

from relcore.base.errors import SpaceError

NUMBER_TEXT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
NUMBER = re.compile(NUMBER_TEXT)


def is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell.strip()) is not None


def vectors_of(columns: list[Any], name: str, n_before: int, d: int) -> np.ndarray:
    """Convert Arrow columns of numbers, or one column of lists, to a matrix (m, d). Missing numbers become
    NaN.

    Raises a SpaceError if a list has another length than d. If d is 0, the length of the first list is used.
    """
    first = decode_array(columns[0])
    if not is_vectors(first.type):
        return np.column_stack([_floats(column) for column in columns])
    lengths = compute.fill_null(compute.list_value_length(first), 0).to_numpy(zero_copy_only=False)
    if len(lengths):
        d = d or int(lengths[0])
    odd = np.flatnonzero(lengths != d)
    if len(odd) or d == 0:
        if len(odd):
            row = odd[0]
            got = lengths[odd[0]]
        else:
            row = 0
            got = 0
        raise SpaceError(
            f"{name}, row {n_before + row + 1:,}: expected a vector of {d or 'some'} numbers, got {got};"
            " mend or remove the row"
        )
    return _floats(first.flatten()).reshape(-1, d)


def _floats(column: Any) -> np.ndarray:
    # Missing numbers become NaN. Numbers that are too large become infinite.

    column = decode_array(column)
    if types.is_decimal(column.type):
        column = column.cast(pa.float64())
    with np.errstate(over="ignore"):
        return column.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)


def decode_array(column: Any) -> Any:
    """The Arrow array, decoded if it has a dictionary or extension type."""

    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if types.is_dictionary(column.type):
        return column.dictionary_decode()
    return column


def is_number_type(kind: Any) -> bool:
    """Whether the cells of an Arrow type are numbers."""
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def is_list_type(kind: Any) -> bool:
    """Whether the cells of an Arrow type are lists."""
    lists = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(types, test)(kind) for test in lists)


def is_vectors(kind: Any, of: Callable[[Any], bool] = is_number_type) -> bool:
    """Whether an Arrow type is a list whose items are accepted by `of`. By default, items must be numbers."""
    return is_list_type(kind) and of(kind.value_type)
