"""require_texts: the check of a dataset that every text encoder starts with."""

from __future__ import annotations

from relcore.sources.dataset import Dataset
from relcore.spaces import SpaceError, quote


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
        dataset.ids[start + row] for start, texts in dataset.blocks() for row, text in enumerate(texts) if not text.strip()
    ]
    if empty:
        raise SpaceError(
            f"{dataset.name}: expected text in every row, got {len(empty)} empty of {len(dataset)}, rows {quote(empty[:3])}; "
            "fill them, or leave them out"
        )
