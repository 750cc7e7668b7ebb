"""require_texts: what every text encoder asks of its dataset before it starts."""

from __future__ import annotations

from relcore.sources.dataset import Dataset
from relcore.spaces import SpaceError, quote

_BLOCK = 1024


def require_texts(dataset: Dataset) -> None:
    """Look through all texts, a block at a time, so that an empty one is an error now and not after an hour of encoding.

    Raises
    ------
    SpaceError
        Items that are no texts; empty texts, with how many there are and the ids of the first three.
    """
    if dataset.kind != "texts":
        raise SpaceError(f"{dataset.name}: expected texts, got {dataset.kind}; choose an encoder for {dataset.kind}")
    empty = [
        dataset.ids[start + row]
        for start in range(0, len(dataset), _BLOCK)
        for row, text in enumerate(dataset.items(start, min(start + _BLOCK, len(dataset))))
        if not text.strip()
    ]
    if empty:
        raise SpaceError(
            f"{dataset.name}: expected text in every row, got {len(empty)} empty of {len(dataset)}, rows {quote(empty[:3])}; "
            "fill them, or leave them out"
        )
