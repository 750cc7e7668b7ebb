"""What the approximate searches share: an index of faiss, and the setting at which it reaches a recall."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from relcore.metrics.search import common_direction
from relcore.searching.exact import KEPT_BYTES
from relcore.searching.measured_recall import recalls
from relcore.searching.unit_rows import UnitRows

_SEED = 0


class FaissSearch(ABC):
    """The nearest of some rows by an index that compares a query with few of them, by distance.

    Of rows of length 1 the distance orders as the cosine does. Rows that take more than `KEPT_BYTES` are kept as float16.

    Attributes
    ----------
    setting : int
        What trades time for recall, such as the number of lists that are searched; `tune` chooses it.
    """

    approximate = True
    title: ClassVar[str]

    def __init__(self, rows: UnitRows) -> None:
        import faiss

        self._rows, self._common = rows, common_direction(rows.sample())
        kept = "Flat" if rows.nbytes <= KEPT_BYTES else "SQfp16"
        self._index = faiss.index_factory(rows.shape[1], self.factory(len(rows), kept))
        drawn = np.sort(np.random.default_rng(_SEED).permutation(len(rows))[: self.training_rows(len(rows))])
        self._index.train(self._moved(rows[drawn]))
        for _, block in rows.blocks():
            self._index.add(self._moved(block))
        self.setting = self.settings(len(rows))[0]

    @classmethod
    @abstractmethod
    def factory(cls, n: int, kept: str) -> str:
        """The index of n rows as faiss's `index_factory` reads it; `kept` is how it keeps rows."""

    @classmethod
    @abstractmethod
    def training_rows(cls, n: int) -> int:
        """How many of n rows it learns from."""

    @classmethod
    @abstractmethod
    def settings(cls, n: int) -> Sequence[int]:
        """What `tune` tries with n rows, the fastest first."""

    @classmethod
    @abstractmethod
    def described(cls, setting: int, n: int) -> str:
        """A setting in words: ``nprobe 8 of 1,264 lists``."""

    @abstractmethod
    def use(self, index: Any, setting: int, k: int) -> None:
        """Give the index a setting, for searches of k rows."""

    @abstractmethod
    def search_all(self, index: Any, queries: np.ndarray, k: int) -> np.ndarray:
        """The rows that a comparison with all of them finds, (m, k)."""

    def tune(self, queries: np.ndarray, exact: np.ndarray, target: float) -> None:
        """Take the fastest setting with a mean recall of `target` or more for these queries (m, w), whose true lists (m, k)
        are known; the last one where none has it."""
        for setting in self.settings(len(self._rows)):
            self.setting = setting
            if recalls(self.nearest(queries, exact.shape[1]), exact).mean() >= target:
                return

    def nearest(self, queries: np.ndarray, k: int) -> np.ndarray:
        """(m, w) → numbers of the k nearest rows that it finds, the nearest first, (m, k) int64."""
        self.use(self._index, self.setting, k)
        moved = self._moved(queries)
        found = self._index.search(moved, k)[1]
        short = np.flatnonzero((found < 0).any(axis=1))  # fewer than k rows were looked at
        if len(short):
            found[short] = self.search_all(self._index, moved[short], k)
        return found

    def _moved(self, rows: np.ndarray) -> np.ndarray:
        return rows if self._common is None else rows - self._common
