"""The index of a DataFrame as ids of its rows. One rule holds for text, integers, floats, dates, categories
and several levels:

- Tables with equal indexes are paired row by row.
- If the same ids are in another order, rows are joined by id.
- Other ids are refused, and so is another order of ids that repeat.
- The default index 0, 1, 2, … means that the table has no ids, as an array. Such a table is paired by row
  order, but not with a table whose index has other numbers, or the same numbers in another order: nobody can
  know whether order or value pairs them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError


def index_of(X: Any) -> pd.Index | None:
    """The index of a DataFrame or of a column of rows, or the words of KeyedVectors of gensim; None for
    everything else."""
    if isinstance(X, pd.DataFrame | pd.Series):
        return X.index
    if hasattr(X, "index_to_key"):
        return pd.Index(X.index_to_key)
    return None


def is_default(index: pd.Index) -> bool:
    """Whether an index is the one that pandas makes, 0 … n − 1."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def ids_of_index(index: pd.Index) -> np.ndarray:
    """The ids (n,) that an index means: texts as they are, a whole number or float as "5", a date as
    "2026-11-28 00:00:00", several levels as "('a', '5')". A missing value is None.

    Each text depends only on its value, so that two tables have the same id for the same value.
    """
    if index.inferred_type == "string":
        return index.to_numpy(dtype=object)
    if index.inferred_type == "integer" and not index.hasnans:
        return np.array(list(map(str, index.tolist())), dtype=object)
    ids = np.empty(len(index), dtype=object)
    ids[:] = [_id_of(value) for value in index.tolist()]
    return ids


def _id_of(value: Any) -> str | bytes | None:
    if isinstance(value, str | bytes):
        return value  # bytes are refused where ids are checked
    if isinstance(value, tuple):
        parts = [_id_of(part) for part in value]
        return None if None in parts else str(tuple(parts))
    if value is None or pd.isna(value):
        return None
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def need_no_other_numbers(default: int, other: pd.Index, name: str) -> None:
    """Raise a SpaceError if a table with the default index of `default` rows would be paired by order with a
    table whose index has other numbers, or the same numbers in another order."""
    if is_default(other):
        return
    ids = ids_of_index(other)
    numbers = list(map(str, range(len(ids))))
    if len(ids) != default and other.inferred_type not in ("integer", "floating"):
        return
    if ids.tolist() == numbers:
        return
    same = set(ids.tolist()) == set(numbers)
    if not same and not pd.api.types.is_numeric_dtype(_values(other)):
        return  # texts or dates cannot be confused with row numbers
    what = "other numbers"
    if same:
        what = "the same numbers in another order"
    some = ", ".join(map(str, ids[:3]))
    raise SpaceError(
        f"{name}: expected indexes that tell which rows are partners, got the default index 0 … {default - 1}"
        f" and an index with {what} ({some}, …). To pair by row order, give both as .to_numpy(); to pair by"
        " value, give both an index of ids, such as .set_index('id')"
    )


def _values(index: pd.Index) -> Any:
    if isinstance(index, pd.CategoricalIndex):
        return index.categories.dtype
    return index.dtype
