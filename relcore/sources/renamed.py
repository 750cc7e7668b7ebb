"""Renamed spaces: rows take the ids of their partners in another space, or their numbers, so that spaces without shared ids
can be paired."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from relcore.row_columns import RowNumbers
from relcore.spaces import LatentSpace, SpaceError
from relcore.store import Store, digest_of


def put_pairing(store: Store, pairs: Sequence[tuple[str, str]]) -> str:
    """Keep pairs of (new id, id of the space that is renamed) in the store: the key that `load_pairing` takes."""
    pairs = [tuple(pair) for pair in pairs]
    key = digest_of("pairing", pairs)
    if not store.has(key):
        store.put(key, {"pairs": np.frombuffer(json.dumps(pairs).encode(), dtype=np.uint8)}, {"n_pairs": len(pairs)})
    return key


def load_pairing(store: Store, key: str) -> list[tuple[str, str]]:
    """The pairs of (new id, id of the space that is renamed).

    Raises
    ------
    SpaceError
        They are not in the store (any more).
    """
    entry = store.get(key)
    if entry is None or "pairs" not in entry.arrays:
        raise SpaceError(
            f"expected the pairing {key[:8]}… in {store.root}, got none (removed to make room); bootstrap it again"
        )
    return [tuple(pair) for pair in json.loads(entry.arrays["pairs"].tobytes())]


def rename(space: LatentSpace, pairs: Sequence[tuple[str, str]], name: str) -> LatentSpace:
    """The paired rows of the space under their new ids, in the order of the pairs; vectors, labels and counts stay.

    Raises
    ------
    SpaceError
        No pairs, ids that the space lacks, new ids that are not distinct.
    """
    if not pairs:
        raise SpaceError(f"{name}: expected one pair of ids or more, got none; bootstrap anchors first")
    kept = space.take(space.rows([old for _, old in pairs]), name)
    ids = [new for new, _ in pairs]
    return kept.with_columns(ids=ids)


def number_rows(space: LatentSpace, name: str) -> LatentSpace:
    """The space with its row numbers as ids; the ids before are the payload."""
    numbers = RowNumbers(len(space))
    before = space.ids.tolist()
    payload = None if before == list(numbers) else before
    return space.with_columns(ids=numbers, name=name, payload=payload)
