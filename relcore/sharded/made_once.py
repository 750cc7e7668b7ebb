"""What a process makes of an entry of the store once, for all shards that it works on one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from relcore.spaces import SpaceError
from relcore.store import Entry, Store

T = TypeVar("T")


def made_once(kept: dict[str, T], store: Store, key: str, make: Callable[[Entry], T], what: str) -> T:
    """``make(entry)`` of the entry under a key, from `kept` where it is there; `kept` holds the last one only.

    Raises
    ------
    SpaceError
        The store has no such entry; the message calls it `what`.
    """
    found = kept.get(key)  # another thread may clear what is kept at any time
    if found is None:
        entry = store.get(key)
        if entry is None:
            raise SpaceError(f"expected {what} in the store, got none; run the same command again")
        found = make(entry)
        kept.clear()
        kept[key] = found
    return found
