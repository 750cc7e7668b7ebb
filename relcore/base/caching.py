"""What is made of a large array is kept as long as the array: a page draws and scores the same rows again
with every step.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

Made = TypeVar("Made")


class MadeOnce(Generic[Made]):
    """A function of an array that nobody can write to, called once for each such array; others are made again
    each time.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.base.caching import MadeOnce
    >>> calls, array = [], np.arange(3)
    >>> count = MadeOnce(lambda array: calls.append(1) or len(array))
    >>> array.flags.writeable = False
    >>> count(array), count(array), len(calls)
    (3, 3, 1)
    """

    def __init__(self, make: Callable[[np.ndarray], Made]) -> None:
        self._make = make
        self._kept: dict[int, tuple[weakref.ref, Made]] = {}

    def __call__(self, array: np.ndarray) -> Made:
        if _may_change(array):
            return self._make(array)
        number = id(array)
        known = self._kept.get(number)
        if known is None or known[0]() is not array:
            # The callback runs before the number of the array can be given to another one.
            ref = weakref.ref(array, lambda _: self._kept.pop(number, None))
            self._kept[number] = known = ref, self._make(array)
        return known[1]


def _may_change(array: Any) -> bool:
    """Whether somebody can write to the array, or to the memory that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None  # memory that is not NumPy's
