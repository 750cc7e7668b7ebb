"""Open and write what a place names, and load a bounded number of its rows as a space."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from relcore.indexes.index import BLOCK, Block, Target, VectorIndex
from relcore.indexes.place import Place
from relcore.names import INDEXES
from relcore.progress import Report, silent
from relcore.sources.memory import usable_bytes
from relcore.sources.rows import check_size
from relcore.spaces import LatentSpace


def open_index(place: Place) -> VectorIndex:
    """The index at a place; errors as in `VectorIndex.open` and `Place.need_access`."""
    place.need_access()
    return INDEXES[place.kind].load().open(place)


def write_index(place: Place, blocks: Iterable[Block], target: Target, report: Report = silent) -> None:
    """Write rows to a place; errors as in `VectorIndex.write` and `Place.need_access`."""
    place.need_access()
    INDEXES[place.kind].load().write(place, blocks, target, report)


def load_rows(place: Place, limit: int | None = None, max_bytes: int | None = None) -> LatentSpace:
    """The first rows of an index as a space, with their ids; what else it keeps with them is the payload.

    Raises
    ------
    SpaceError
        More rows than fit into memory; and as `open_index`.
    """
    with open_index(place) as index:
        n = index.n if limit is None else min(index.n, limit)
        check_size(Path(index.name), n, index.width, usable_bytes() if max_bytes is None else max_bytes)
        vectors, ids, payload = np.empty((n, index.width), np.float32), [], []
        for block in islice(index.blocks(), -(-n // BLOCK)):
            some = slice(None, n - len(ids))
            vectors[len(ids) : len(ids) + BLOCK] = block.vectors[some]
            ids += block.ids[some]
            payload += block.payload[some]
        vectors.flags.writeable = False
        return LatentSpace(vectors, ids, name=index.name, payload=payload or None)
