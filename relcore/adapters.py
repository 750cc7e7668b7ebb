"""Adapters map the queries of a new model to the vectors of an old one. `relcore.migrate` chooses an adapter,
`load` reads its file, and `index_with_map` puts it in front of a faiss index.
"""

from relcore.migrate.adapter_files import Card, LoadedAdapter, index_with_map, load
from relcore.migrate.adapters import (
    Adapter,
    InPlaceAdapter,
    ProcrustesAdapter,
    RidgeAdapter,
    WhitenedInverseAdapter,
    WhitenedRelativeAdapter,
)

__all__ = [
    "Adapter",
    "Card",
    "InPlaceAdapter",
    "LoadedAdapter",
    "ProcrustesAdapter",
    "RidgeAdapter",
    "WhitenedInverseAdapter",
    "WhitenedRelativeAdapter",
    "index_with_map",
    "load",
]


def __dir__() -> list[str]:
    return __all__
