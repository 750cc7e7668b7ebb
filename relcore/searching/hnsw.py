"""HNSW: a graph in layers, in which a query walks to its neighbours (Malkov and Yashunin 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relcore.searching.faiss_search import FaissSearch

_LINKS = 32
_TRIED = tuple(2**power for power in range(4, 12))


class HnswSearch(FaissSearch):
    """32 links per row, and a walk that keeps the `efSearch` best rows."""

    title = "HNSW"

    @classmethod
    def factory(cls, n: int, kept: str) -> str:
        return f"HNSW{_LINKS},{kept}"

    @classmethod
    def training_rows(cls, n: int) -> int:
        return 4096  # faiss wants some before it keeps rows as float16

    @classmethod
    def settings(cls, n: int) -> Sequence[int]:
        return _TRIED

    @classmethod
    def described(cls, setting: int, n: int) -> str:
        return f"efSearch {setting:,}, {_LINKS} links per row"

    def use(self, index: Any, setting: int, k: int) -> None:
        index.hnsw.efSearch = max(setting, k)

    def search_all(self, index: Any, queries: np.ndarray, k: int) -> np.ndarray:
        return index.storage.search(queries, k)[1]
