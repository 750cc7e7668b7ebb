"""The texts behind the rows of two spaces, from the datasets that they encode or the tables that came with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import Dataset
from relcore.sources.datasets import load_dataset
from relcore.sources.row_items import row_items
from relcore.spaces import LatentSpace

_AT_ONCE = 256
Texts = Callable[[Sequence[str]], list[str]]


def row_texts(specs: Sequence[SpaceSpec], load: Callable[[SpaceSpec], LatentSpace]) -> Texts | None:
    """What reads the texts of ids, "" where an id has none; None where the rows have no texts. Errors as in `row_items`."""
    found: list[Dataset] = []
    for spec in specs:
        datasets = row_items(spec, load(spec)) if spec.source == "file" else _encoded(spec)
        found += [dataset for dataset in datasets if dataset.kind == "texts"]
    if not found:
        return None
    return lambda ids: [" ".join(dict.fromkeys(texts)) for texts in zip(*(_texts(one, ids) for one in found), strict=True)]


def _encoded(spec: SpaceSpec) -> list[Dataset]:
    dataset = spec.dataset
    return [load_dataset(dataset)] if dataset is not None and dataset.source != "planetoid" else []


def _texts(dataset: Dataset, ids: Sequence[str]) -> list[str]:
    rows = pd.Index(dataset.ids, dtype=object).get_indexer(pd.Index(list(ids), dtype=object))
    texts: dict[int, str] = {}
    for start in np.unique(rows[rows >= 0] // _AT_ONCE) * _AT_ONCE:
        block = dataset.items(int(start), min(int(start) + _AT_ONCE, len(dataset.ids)))
        texts.update(enumerate(block, start=int(start)))
    return [texts.get(int(row), "") for row in rows]
