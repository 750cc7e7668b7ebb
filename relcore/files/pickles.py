"""Pickles of the two formats that have them, read by a closed list of names, in the confined process."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, BinaryIO


class State:
    """Stands for an object where a pickle asks for one: it keeps the state, and does nothing."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


class ListedUnpickler(pickle.Unpickler):
    """Makes numbers, texts, lists, dicts, and what `listed` has by "module.name"; another name is an error.

    What is checked is what is used: names are looked up while the objects are made, not before.
    """

    def __init__(self, stream: BinaryIO, listed: Mapping[str, Any], **options: Any) -> None:
        super().__init__(stream, **options)
        self._listed = listed

    def find_class(self, module: str, name: str) -> Any:
        if (item := f"{module}.{name}") not in self._listed:
            raise pickle.UnpicklingError(f"a pickle that asks for {item}, which this format never needs")
        return self._listed[item]
