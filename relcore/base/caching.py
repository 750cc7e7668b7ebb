"""A cache of values derived from large arrays; an entry lives as long as its array."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

Made = TypeVar("Made")


def is_constant(array: np.ndarray) -> bool:
    """Whether an array cannot change: it is not writeable, and neither is an array of which it is a view."""
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    return base is None  # otherwise a writeable array, or memory that is not NumPy's, lies below it


@dataclass(eq=False)
class MadeOnce(Generic[Made]):
    """A function of an array, called once for each read-only array.

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

    make: Callable[[np.ndarray], Made]
    _kept: dict[int, tuple[weakref.ref, Made]] = field(default_factory=dict, repr=False)

    def __call__(self, array: np.ndarray) -> Made:
        if not is_constant(array):
            return self.make(array)
        number = id(array)
        known = self._kept.get(number)
        if known is None or known[0]() is not array:
            # The callback runs before another array can get the same id().
            ref = weakref.ref(array, lambda _: self._kept.pop(number, None))
            self._kept[number] = known = ref, self.make(array)
        return known[1]


_contents: dict[int, Hashable] = {}  # digests of arrays in memory, by identity


def call_content(X: np.ndarray, content: Hashable) -> None:
    """Record the digest of the content of an array that cannot change."""
    if id(X) not in _contents:
        _contents[id(X)] = content
        weakref.finalize(X, _contents.pop, id(X), None)


def content_of(X: np.ndarray) -> Hashable:
    """The recorded digest of an array's content, equal for equal arrays; its identity if none was
    recorded."""
    return _contents.get(id(X), id(X))
