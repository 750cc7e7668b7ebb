"""The first rows of a vector index as a space; `relcore.base.names.INDEXES` knows who reads it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np

from relcore.base.names import INDEXES
from relcore.files.formats import check_size, usable_bytes
from relcore.files.places import Place
from relcore.spaces.space import LatentSpace

_BLOCK = 4096


def load_rows(place: Place, limit: int | None = None, max_bytes: int | None = None) -> LatentSpace:
    """The first rows of an index as a space, with their ids; what else it keeps with them is the payload.

    Raises
    ------
    SpaceError
        More rows than fit into memory; and as `relcore.stores.index.open_index`.
    """
    place.need_access()
    with INDEXES[place.kind].load().open(place) as index:
        n = index.n if limit is None else min(index.n, limit)
        check_size(Path(index.name), n, index.width, usable_bytes() if max_bytes is None else max_bytes)
        vectors, ids, payload = np.empty((n, index.width), np.float32), [], []
        for block in islice(index.blocks(_BLOCK), -(-n // _BLOCK)):
            some = slice(None, n - len(ids))
            vectors[len(ids) : len(ids) + _BLOCK] = block.vectors[some]
            ids += block.ids[some]
            payload += block.payload[some]
        vectors.flags.writeable = False
        return LatentSpace(vectors, ids, name=index.name, payload=payload or None)
