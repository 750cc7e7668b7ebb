"""Encodings in the store: under which key a space that an encoder gave is kept, and how it is read again."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from relcore.mapped import BLOCK_ROWS, MappedRows, Origin
from relcore.sources.encoder import Encoder
from relcore.sources.on_disk import MAP_FROM
from relcore.space_digest import digest_of_columns
from relcore.spaces import LatentSpace, SpaceError
from relcore.store import Entry, Store, digest_of

if TYPE_CHECKING:
    from relcore.sources.catalog import SpaceSpec


def key_of(what: str, dataset_digest: str, encoder: Encoder, *parts: str | int) -> str:
    """The store's key of anything that an encoder makes of a dataset; what is changed in either gives another key."""
    return digest_of(what, dataset_digest, encoder, encoder.version, encoder.content(), *parts)


def encoding_key(dataset_digest: str, encoder: Encoder, output: str = "") -> str:
    """The store's key of one space: the same for a layer by itself and for that layer of a pass over several."""
    return key_of("encoding", dataset_digest, encoder.only(output), output)


def put_encoding(store: Store, key: str, space: LatentSpace, metadata: dict) -> None:
    """Keep a space whole: vectors, ids, labels, counts, its name and digest, and what `metadata` tells of its making."""
    arrays = {"ids": _bytes(space.ids)}
    if space.labels is not None:
        arrays["labels"] = _bytes(space.labels)
    if space.counts is not None:
        arrays["counts"] = space.counts
    shape, facts = space.vectors.shape, {"name": space.name, "digest": space.digest, **metadata}
    if 4 * shape[0] * shape[1] < MAP_FROM:
        store.put(key, {"vectors": np.asarray(space.vectors), **arrays}, facts)
    else:
        blocks = (space.vectors[start : start + BLOCK_ROWS] for start in range(0, len(space), BLOCK_ROWS))
        store.put_matrix(key, blocks, shape, facts, **arrays)


def put_space(store: Store, space: LatentSpace) -> str:
    """Put a space where workers find it: its key."""
    key = digest_of("space", 2, space.digest, space.name)  # 2: with its counts
    if not store.has(key):
        put_encoding(store, key, space, {})
    return key


def load_encoding(store: Store, key: str) -> LatentSpace:
    """The space under an encoding's key; the entry's metadata say what made it, and how its training went.

    Raises
    ------
    SpaceError
        It is not in the store (any more).
    """
    summary = store.summary(key)
    large = summary is not None and 4 * math.prod(summary.shapes.get("vectors", ())) >= MAP_FROM
    entry = (store.mapped(key) if large else None) or store.get(key)
    if entry is None:
        raise SpaceError(
            f"expected the encoding {key[:8]}… in {store.root}, got none (removed: damaged, or to make room); encode it again"
        )
    try:
        return space_of(entry)
    except SpaceError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise SpaceError(
            f"expected an encoding under the key {key[:8]}… in {store.root}, got another result; encode it again"
        ) from error


def space_of(entry: Entry) -> LatentSpace:
    """The space that `put_encoding` put."""
    labels = _strings(entry.arrays["labels"]) if "labels" in entry.arrays else None
    ids, name, counts = _strings(entry.arrays["ids"]), entry.metadata["name"], entry.arrays.get("counts")
    vectors = entry.arrays["vectors"]
    if isinstance(vectors, np.memmap):
        origin = KnownDigest(entry.metadata.get("digest"), digest_of_columns((ids, labels, counts)))
        vectors = MappedRows([vectors.view(np.ndarray)], origin)
    return LatentSpace(vectors, ids, name=name, labels=labels, counts=counts)


class KnownDigest(Origin):
    """Rows of an entry of the store, which tells the digest of the whole space with the columns of this digest."""

    def __init__(self, digest: str | None, columns: str) -> None:
        self._digest, self._columns = digest, columns

    def known_digest(self, columns: str) -> str | None:
        return self._digest if columns == self._columns else None


def held_out_ids(
    specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], ids: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Ids of rows whose labels no encoder of these spaces saw in training, those of `ids` and in their order where given.

    () where no encoder saw any labels, or where each row was seen by one.
    """
    unseen: dict[str, None] | None = None
    for spec, space in zip(specs, spaces, strict=True):
        encoder = spec.rows_of.encoder
        seen = encoder.seen_rows(space) if encoder else ()
        if len(seen):
            others = dict.fromkeys(np.delete(space.ids, seen).tolist())
            unseen = others if unseen is None else {one: None for one in unseen if one in others}
    if not unseen:
        return ()
    return tuple(unseen if ids is None else (one for one in ids if one in unseen))


def _bytes(strings: Sequence[str]) -> np.ndarray:
    """As an array: a file's metadata may not grow beyond 100 MB, which the ids of a large dataset would."""
    return np.frombuffer(json.dumps(list(strings)).encode(), dtype=np.uint8)


def _strings(array: np.ndarray) -> list[str]:
    found = json.loads(array.tobytes())
    if not isinstance(found, list):
        raise TypeError(f"expected a list of strings, got {type(found).__name__}")
    return found
