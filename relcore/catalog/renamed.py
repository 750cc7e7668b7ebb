"""Renamed spaces: their ids are row numbers, or the ids of the partners of their rows in another space. Thus
spaces without shared ids can be paired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relcore.base.errors import SpaceError
from relcore.catalog.encodings import json_array, list_from_json_array, missing_entry
from relcore.runs.entries import digest_of
from relcore.runs.store import Store
from relcore.spaces.ids import GuessedIds, RowNumbers
from relcore.spaces.space import LatentSpace


def put_pairing(store: Store, pairs: Sequence[tuple[str, str]], confirmed: Sequence[str] = ()) -> str:
    """Store guessed pairs (new id, previous id) of rows that get new ids, and return the key of the pairs.

    Only pairs whose new ids are in `confirmed` are scored.
    """
    pairs = [tuple(pair) for pair in pairs]
    parts: list[Any] = ["pairing", pairs]
    if len(confirmed):
        parts.append(sorted(confirmed))
    key = digest_of(*parts)
    if not store.has(key):
        arrays = {"pairs": json_array(pairs), "confirmed": json_array(sorted(confirmed))}
        store.put(key, arrays, {"n_pairs": len(pairs)})
    return key


def with_new_ids(space: LatentSpace, store: Store, key: str, name: str) -> LatentSpace:
    """Give new ids to those rows of the space that the stored pairs name, and return these rows in the order
    of the pairs. Vectors, labels and counts are unchanged.

    Raises
    ------
    SpaceError
        There are no pairs, or the store lacks them. The space lacks an id, or the new ids are not distinct.
    """
    entry = store.get(key)
    if entry is None or "pairs" not in entry.arrays:
        raise missing_entry(
            store,
            f"the links {key[:8]}…",
            "none: recipes and scripts do not contain links. Run this where the links were found, or link"
            " again here (Link reads a links file as known pairs), use the new links, and export again",
        )
    pairs = list_from_json_array(entry.arrays["pairs"])
    if not pairs:
        raise SpaceError(f"{name}: expected one pair of ids or more, got none; link the spaces first")
    kept = space.take(space.rows([old for _, old in pairs]), name)
    confirmed = list_from_json_array(entry.arrays.get("confirmed"))
    ids = GuessedIds.of([new for new, _ in pairs], confirmed or ())
    ids.unlinked = len(space) - len(kept)
    return kept.with_columns(ids=ids)


def with_row_numbers(space: LatentSpace, name: str) -> LatentSpace:
    """The space with its row numbers as ids. The previous ids become the payload."""
    numbers = RowNumbers(len(space))
    before = space.ids.tolist()
    payload = before
    if before == list(numbers):
        payload = None
    return space.with_columns(ids=numbers, name=name, payload=payload)
