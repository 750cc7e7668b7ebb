"""What the approximate searches share: an index of faiss, and the setting at which it reaches a recall."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from relcore.represent.similarity import row_blocks, unit_rows
from relcore.scores.neighbours import jaccard_rows
from relcore.scores.score import Z95, Recall, sampling_interval
from relcore.scores.search import apart, common_direction, nearest, nearest_with_products
from relcore.spaces.space import MadeRows

# UnitRows: some rows of one space in one representation, scaled to length 1 when they are used.

BASE_ROWS = 32_768  # rows that are made at a time: 39 MB at a width of 300
_SAMPLED_ROWS = 64


class UnitRows(MadeRows):
    """Rows (n, w) of length 1 that are never all in memory, unless somebody asks for all; parameters as of
    `MadeRows`.
    """

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """(m, w) float32."""
        return unit_rows(super().__getitem__(rows))

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices that cut the rows into blocks, each with its rows."""
        return ((block, self[block]) for block in row_blocks(len(self), BASE_ROWS))

    def whole(self) -> np.ndarray:
        """All rows, (n, w)."""
        found = np.empty(self.shape, dtype=np.float32)
        for block, rows in self.blocks():
            found[block] = rows
        return found

    def sample(self) -> np.ndarray:
        """Some of the rows, evenly spaced."""
        return self[:: max(1, len(self) // _SAMPLED_ROWS)]


# Exact search, over rows that are kept where they fit, else made block by block.

KEPT_BYTES = 2**30  # of the rows that are searched; larger ones are made again for each block of queries


class ExactSearch:
    """The nearest of some rows, as `scores.search.nearest_directions` finds them.

    Parameters
    ----------
    rows : UnitRows
    keep : bool
        Whether all rows may be kept in memory, where they take at most `KEPT_BYTES`.
    """

    approximate = False

    def __init__(self, rows: UnitRows, keep: bool = True) -> None:
        self._rows, self._common = rows, common_direction(rows.sample())
        self._kept = apart(rows.whole(), self._common) if keep and rows.nbytes <= KEPT_BYTES else None

    def nearest(self, queries: np.ndarray, k: int) -> np.ndarray:
        """(m, w) → numbers of the k nearest rows, the nearest first, (m, k) int64."""
        queries = apart(queries, self._common, queries=True)
        if self._kept is not None:
            return nearest(queries, self._kept, k)
        best, found = (
            np.empty((len(queries), 0), dtype=np.float32),
            np.empty((len(queries), 0), dtype=np.int64),
        )
        for block, rows in self._rows.blocks():
            products, nearer = nearest_with_products(queries, apart(rows, self._common), min(k, len(rows)))
            best, found = (
                np.concatenate([best, products], axis=1),
                np.concatenate([found, nearer + block.start], axis=1),
            )
            order = np.argsort(-best, axis=1, kind="stable")[:, :k]
            best, found = np.take_along_axis(best, order, 1), np.take_along_axis(found, order, 1)
        return found


# Recall of approximate neighbours, measured on queries whose true neighbours are known.


def recalls(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The share of the true neighbours (m, k) that is in each list (m, k), (m,), 0 … 1."""
    return (exact[:, :, None] == found[:, None, :]).any(axis=2).mean(axis=1)


def measured_recall(
    found: dict[str, np.ndarray],
    exact: dict[str, np.ndarray],
    n: int,
    search: str,
    setting: str,
    target: float,
) -> Recall:
    """Of lists (m, k) by name for m of n queries: the mean over the lists of a query, with its 95 % interval.

    `change` is that of the mean Jaccard overlap of a query's two lists by the approximation, on the
    same queries.
    """
    shares = np.mean([recalls(found[name], true) for name, true in exact.items()], axis=0)
    low, high = sampling_interval(shares, n) or (float(shares.mean()),) * 2
    k = exact["own"].shape[1]
    other = "other" if "other" in exact else "forward"
    overlaps = (jaccard_rows(lists["own"], lists[other][:, :k]) for lists in (found, exact))
    moved = np.subtract(*overlaps)
    reach = float(Z95 * moved.std(ddof=1) / np.sqrt(len(moved)))
    change = float(moved.mean())
    return Recall(
        search,
        setting,
        float(shares.mean()),
        float(low),
        min(float(high), 1.0),
        len(shares),
        target,
        change,
        reach,
    )


_SEED = 0


class FaissSearch(ABC):
    """The nearest of some rows by an index that compares a query with few of them, by distance.

    Of rows of length 1 the distance orders as the cosine does. Rows that take more than `KEPT_BYTES` are kept
    as float16.

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
        """Take the fastest setting with a mean recall of `target` or more for these queries (m, w), whose
        true lists (m, k) are known; the last one where none has it."""
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


# HNSW: a graph in layers, in which a query walks to its neighbours (Malkov and Yashunin 2020).

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


# IVF: rows in clusters, of which a query is compared with the nearest few (Jégou et al. 2011).

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
