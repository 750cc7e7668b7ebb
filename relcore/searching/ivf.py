"""IVF: rows in clusters, of which a query is compared with the nearest few (Jégou et al. 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relcore.searching.faiss_search import FaissSearch

_ROWS_PER_LIST = 39  # faiss's least for training


class IvfSearch(FaissSearch):
    """4 √n lists, of which `nprobe` are searched."""

    title = "IVF"

    @classmethod
    def factory(cls, n: int, kept: str) -> str:
        return f"IVF{_lists(n)},{kept}"

    @classmethod
    def training_rows(cls, n: int) -> int:
        return 64 * _lists(n)

    @classmethod
    def settings(cls, n: int) -> Sequence[int]:
        return [*(2**power for power in range(_lists(n).bit_length()) if 2**power < _lists(n)), _lists(n)]

    @classmethod
    def described(cls, setting: int, n: int) -> str:
        return f"nprobe {setting:,} of {_lists(n):,} lists"

    def use(self, index: Any, setting: int, k: int) -> None:
        index.nprobe = setting

    def search_all(self, index: Any, queries: np.ndarray, k: int) -> np.ndarray:
        index.nprobe = index.nlist
        return index.search(queries, k)[1]


def _lists(n: int) -> int:
    return int(np.clip(4 * np.sqrt(n), 1, max(1, n // _ROWS_PER_LIST)))
