"""Arrays that cannot change, and what is computed from them once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

Made = TypeVar("Made")


def is_constant(array: np.ndarray) -> bool:
    """Whether an array cannot change, because neither it nor any array of which it is a view is writeable."""
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    return base is None  # False for views of writeable arrays and of memory that NumPy does not own


@dataclass(eq=False)
class MadeOnce(Generic[Made]):
    """Wraps a function of an array, and caches its result for each read-only array.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore.base.memory import MadeOnce
    >>> calls, array = [], np.arange(3)
    >>> count = MadeOnce(lambda array: calls.append(1) or len(array))
    >>> array.flags.writeable = False
    >>> count(array), count(array), len(calls)
    (3, 3, 1)
    """

    make: Callable[[np.ndarray], Made]
    _kept: dict[int, tuple[weakref.ref, Made]] = field(default_factory=dict, repr=False)

    def __call__(self, array: np.ndarray) -> Made:
        if not is_constant(array):
            return self.make(array)
        number = id(array)
        known = self._kept.get(number)
        if known is None or known[0]() is not array:
            # When the array dies, this callback runs before another array can get the same id().
            ref = weakref.ref(array, lambda _: self._kept.pop(number, None))
            known = (ref, self.make(array))
            self._kept[number] = known
        return known[1]


_contents: dict[int, Hashable] = {}  # id() of an array in memory → digest of its content


def call_content(X: np.ndarray, content: Hashable) -> None:
    """Record the digest `content` of an array that cannot change, for `content_of`."""
    if id(X) not in _contents:
        _contents[id(X)] = content
        weakref.finalize(X, _contents.pop, id(X), None)


def content_of(X: object) -> Hashable:
    """A key for the content of an array or of mapped rows: the digest that `call_content` recorded, or
    else their identity."""
    return _contents.get(id(X), id(X))
