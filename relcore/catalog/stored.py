"""Encodings in the store: under which key a space that an encoder gave is kept, and how it is read again."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from relcore.base.names import ENCODERS
from relcore.encoders.encoder import Encoder
from relcore.files.on_disk import MAP_FROM
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.store import Store
from relcore.spaces.space import (
    BLOCK_ROWS,
    AuditedIds,
    GuessedIds,
    LatentSpace,
    MappedRows,
    Origin,
    digest_of_columns,
)

_MARKED = {"confirmed": GuessedIds, "unscored": AuditedIds}


def key_of(what: str, dataset_digest: str, encoder: Encoder, *parts: str | int) -> str:
    """The store's key of anything that an encoder makes of a dataset; a change in either gives another."""
    name = ENCODERS.name_of(type(encoder))
    of = [ENCODERS[name].plugin] if name and ENCODERS[name].plugin else []
    return digest_of(what, dataset_digest, encoder, encoder.version, encoder.content(), *parts, *of)


def encoding_key(dataset_digest: str, encoder: Encoder, output: str = "") -> str:
    """The store's key of one space: the same for a layer by itself and for that layer of a pass over
    several.
    """
    return key_of("encoding", dataset_digest, encoder.only(output), output)


def put_encoding(store: Store, key: str, space: LatentSpace, metadata: dict) -> None:
    """Keep a space whole: vectors, ids, labels, counts, its name and digest, and what `metadata` tells of
    its making.
    """
    arrays = {"ids": packed(list(space.ids))}
    for name, kind in _MARKED.items():
        if isinstance(space.ids, kind):
            arrays[name] = packed(sorted(space.ids.marks))
    if space.labels is not None:
        arrays["labels"] = packed(list(space.labels))
    if space.counts is not None:
        arrays["counts"] = space.counts
    shape, facts = space.vectors.shape, {"name": space.name, "digest": space.digest, **metadata}
    if 4 * math.prod(shape) < MAP_FROM:
        store.put(key, {"vectors": np.asarray(space.vectors), **arrays}, facts)
    else:
        blocks = (space.vectors[start : start + BLOCK_ROWS] for start in range(0, len(space), BLOCK_ROWS))
        store.put(key, arrays, facts, (blocks, shape))


def space_of(entry: Entry) -> LatentSpace:
    """The space that `put_encoding` put."""
    ids, labels = (unpacked(entry.arrays.get(name)) for name in ("ids", "labels"))
    vectors, counts = entry.arrays["vectors"], entry.arrays.get("counts")
    if isinstance(vectors, np.memmap):
        origin = _KnownDigest(entry.metadata.get("digest"), digest_of_columns((ids, labels, counts)))
        vectors = MappedRows([vectors.view(np.ndarray)], origin)
    for name, kind in _MARKED.items():
        if name in entry.arrays:
            ids = kind.of(ids, unpacked(entry.arrays[name]))
    return LatentSpace(vectors, ids, name=entry.metadata["name"], labels=labels, counts=counts)


@dataclass
class _KnownDigest(Origin):
    """Rows of an entry of the store, which tells the digest of the whole space with these columns."""

    digest: str | None
    columns: str

    def known_digest(self, columns: str) -> str | None:
        return self.digest if columns == self.columns else None


def packed(value: Any) -> np.ndarray:
    """JSON as an array: metadata may not grow beyond 100 MB, which the ids of a large dataset would."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def unpacked(array: np.ndarray | None) -> list[Any] | None:
    value = None if array is None else json.loads(array.tobytes())
    if array is not None and not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value
