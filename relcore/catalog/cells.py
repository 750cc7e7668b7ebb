"""What the cells of a column hold: quantities, or names of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

_WHOLE_CLASSES = 12  # maximum number of values in a column of whole numbers that holds classes


def numbers_in(cells: Sequence[Any]) -> np.ndarray | None:
    """The cells as numbers (m,), with NaN for empty cells. None if any cell is not a number, or if all are
    empty."""
    written = pd.Series(cells, dtype=object)
    empty = (written.isna() | (written == "")).to_numpy()
    values = pd.to_numeric(written.mask(empty), errors="coerce").to_numpy(dtype=np.float64, copy=True)
    values[~np.isfinite(values)] = np.nan
    if empty.all() or (np.isnan(values) & ~empty).any():
        return None
    return values


def quantities_in(cells: Sequence[Any]) -> np.ndarray | None:
    """The cells as numbers (m,), with NaN for empty cells. None if a cell is not a number, or if the cells
    are few different whole numbers, which name classes.

    Examples
    --------
    >>> quantities_in([1.5, "", "2"])
    array([1.5, nan, 2. ])
    >>> quantities_in([1, 2, 1]) is None
    True
    """
    numbers = numbers_in(cells)
    if numbers is None:
        return None
    known = np.unique(numbers[np.isfinite(numbers)])
    if len(known) > _WHOLE_CLASSES or not np.array_equal(known, np.round(known)):
        return numbers
    return None
