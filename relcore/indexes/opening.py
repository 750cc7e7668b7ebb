"""Open and write what a place names."""

from __future__ import annotations

from collections.abc import Iterable

from relcore.indexes.index import Block, Target, VectorIndex
from relcore.names import INDEXES
from relcore.progress import Report, silent
from relcore.sources.index_place import Place


def open_index(place: Place) -> VectorIndex:
    """The index at a place; errors as in `VectorIndex.open` and `Place.need_access`."""
    place.need_access()
    return INDEXES[place.kind].load().open(place)


def need_target(place: Place, target: Target) -> None:
    """Raise the errors of `write_index` that are known before the first row."""
    place.need_access()
    INDEXES[place.kind].load().need_target(place, target)


def write_index(place: Place, blocks: Iterable[Block], target: Target, report: Report = silent) -> None:
    """Write rows to a place; errors as in `VectorIndex.write` and `Place.need_access`."""
    place.need_access()
    INDEXES[place.kind].load().write(place, blocks, target, report)
