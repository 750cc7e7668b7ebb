"""Parts: what a job has finished, in the store, where the next start of the same job finds it."""

from __future__ import annotations

import numpy as np

from relcore.store import Store, digest_of


class Parts:
    """Arrays by name that belong to one result, whose `content` decides them; without a store nothing is kept."""

    def __init__(self, store: Store | None, *content: object) -> None:
        self._store, self._content = store, content
        self._keys: set[str] = set()

    def get(self, name: str) -> dict[str, np.ndarray] | None:
        """The arrays of a part; None where it is not there, or no longer."""
        entry = None if self._store is None else self._store.get(self._key(name))
        return None if entry is None else entry.arrays

    def put(self, name: str, **arrays: np.ndarray) -> None:
        """Keep a part."""
        if self._store is not None:
            self._store.put(self._key(name), arrays)

    def clear(self) -> None:
        """Remove all parts that were looked for: the result no longer needs them."""
        while self._store is not None and self._keys:
            self._store.remove(self._keys.pop())

    def _key(self, name: str) -> str:
        key = digest_of("part", *self._content, name)
        self._keys.add(key)
        return key
