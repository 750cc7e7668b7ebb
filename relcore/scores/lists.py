"""Neighbour lists of all queries, exact or approximate, in blocks that are stored, so that a stopped job
resumes after its last block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from relcore.base.names import SEARCHES
from relcore.base.rows import DerivedRows, row_blocks, unit_rows
from relcore.engine.nearest import common_direction, nearest, order_seed, without_itself
from relcore.runs.digest import digest_of
from relcore.runs.progress import Progress
from relcore.runs.store import Store
from relcore.scores.neighbours import jaccard_rows
from relcore.scores.passes import Search
from relcore.scores.score import Z95, Recall, sampling_interval

BASE_ROWS = 32_768  # rows that are made at a time: 39 MB at a width of 300
KEPT_BYTES = 2**30  # of searched rows in memory; larger matrices are computed again per block of queries
_SAMPLED_ROWS = 64


class UnitRows(DerivedRows):
    """Unit rows (n, w) of one space in one representation, computed when they are used."""

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return unit_rows(super().__getitem__(rows))


class ExactSearch:
    """Exact search of the nearest rows, by `engine.nearest`. The rows are kept in memory if they take at most
    `KEPT_BYTES` and are searched more than once (`keep`).
    """

    approximate = False

    def __init__(self, rows: UnitRows, keep: bool = True) -> None:
        self._rows = rows[:] if keep and rows.nbytes <= KEPT_BYTES else rows

    def nearest(self, queries: np.ndarray, k: int) -> np.ndarray:
        """The numbers of the k rows nearest to each query (m, w), nearest first, (m, k) int64."""
        return nearest(queries, self._rows, k).rows


class FaissSearch:
    """Approximate search of the nearest rows, by a faiss index that compares a query with few rows.

    For unit rows, the order by distance is the order by cosine. Rows that take more than `KEPT_BYTES` are
    kept as float16. A subclass defines, for n rows: `factory`, the index as faiss's `index_factory` reads it
    and the number of rows that train it; `settings`, the values that `tune` tries, fastest first;
    `described`, a setting in words; and `_search`, the search by the setting or through all rows.

    Attributes
    ----------
    setting : int
        It trades time for recall, as the number of searched lists does; `tune` chooses it.
    """

    approximate = True
    title: ClassVar[str]

    def __init__(self, rows: UnitRows) -> None:
        import faiss

        n, self._common = len(rows), common_direction(rows[:: max(1, len(rows) // _SAMPLED_ROWS)])
        index, n_training = self.factory(n)
        storage = "Flat" if rows.nbytes <= KEPT_BYTES else "SQfp16"
        self._index = faiss.index_factory(rows.shape[1], f"{index},{storage}")
        self._index.train(self._moved(rows[np.sort(np.random.default_rng(0).permutation(n)[:n_training])]))
        for block in row_blocks(n, BASE_ROWS):
            self._index.add(self._moved(rows[block]))
        self._settings = self.settings(n)
        self.setting = self._settings[0]

    def tune(self, queries: np.ndarray, exact: np.ndarray, target: float) -> None:
        """Choose the fastest setting with a mean recall of at least `target` for these queries (m, w) with
        the true lists `exact` (m, k); the last setting if none reaches it."""
        for setting in self._settings:
            self.setting = setting
            if recalls(self.nearest(queries, exact.shape[1]), exact).mean() >= target:
                return

    def nearest(self, queries: np.ndarray, k: int) -> np.ndarray:
        """The numbers of about the k rows nearest to each query (m, w), nearest first, (m, k) int64."""
        moved = self._moved(queries)
        rows = self._search(moved, k)
        short = np.flatnonzero((rows < 0).any(axis=1))  # the query was compared with fewer than k rows
        if len(short):
            rows[short] = self._search(moved[short], k, every=True)
        return rows

    def _moved(self, rows: np.ndarray) -> np.ndarray:
        return rows if self._common is None else rows - self._common


_LINKS = 32


class HnswSearch(FaissSearch):
    """HNSW: a layered graph with 32 links per row; a search follows links and keeps the `efSearch` nearest
    rows (Malkov and Yashunin 2020).
    """

    title = "HNSW"

    @classmethod
    def factory(cls, n: int) -> tuple[str, int]:
        return f"HNSW{_LINKS}", 4096  # faiss trains on some rows before it stores rows as float16

    @classmethod
    def settings(cls, n: int) -> Sequence[int]:
        return [2**power for power in range(4, 12)]

    @classmethod
    def described(cls, setting: int, n: int) -> str:
        return f"efSearch {setting:,}, {_LINKS} links per row"

    def _search(self, queries: np.ndarray, k: int, every: bool = False) -> np.ndarray:
        self._index.hnsw.efSearch = max(self.setting, k)
        return (self._index.storage if every else self._index).search(queries, k)[1]


class IvfSearch(FaissSearch):
    """IVF: rows in 4 √n clusters; a query is compared with those of the `nprobe` nearest (Jégou et al.
    2011)."""

    title = "IVF"

    @classmethod
    def factory(cls, n: int) -> tuple[str, int]:
        return f"IVF{_lists(n)}", 64 * _lists(n)

    @classmethod
    def settings(cls, n: int) -> Sequence[int]:
        return [*(2**power for power in range(_lists(n).bit_length()) if 2**power < _lists(n)), _lists(n)]

    @classmethod
    def described(cls, setting: int, n: int) -> str:
        return f"nprobe {setting:,} of {_lists(n):,} lists"

    def _search(self, queries: np.ndarray, k: int, every: bool = False) -> np.ndarray:
        self._index.nprobe = self._index.nlist if every else self.setting
        return self._index.search(queries, k)[1]


def _lists(n: int) -> int:
    return int(np.clip(4 * np.sqrt(n), 1, max(1, n // 39)))  # faiss asks for 39 training rows per cluster


def recalls(lists: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The recall of each list (m, k): the share of its true neighbours `exact` (m, k) in it, (m,), 0 … 1."""
    return (exact[:, :, None] == lists[:, None, :]).any(axis=2).mean(axis=1)


class Parts:
    """Stored arrays of an unfinished job, which the next start of the same job reads; `content` identifies
    the job. Without a store nothing is kept.
    """

    def __init__(self, store: Store | None, *content: object) -> None:
        self._store, self._content = store, content
        self._keys: set[str] = set()

    def get(self, name: str) -> np.ndarray | None:
        """The array of this name; None if it is not stored."""
        entry = None if self._store is None else self._store.get(self._key(name))
        return None if entry is None else entry.arrays["part"]

    def put(self, name: str, array: np.ndarray) -> None:
        if self._store is not None:
            self._store.put(self._key(name), {"part": array})

    def clear(self) -> None:
        """Remove all arrays that were read or written, once the result is complete."""
        while self._store is not None and self._keys:
            self._store.remove(self._keys.pop())

    def _key(self, name: str) -> str:
        key = digest_of("part", *self._content, name)
        self._keys.add(key)
        return key


QUERIES_PER_BLOCK = 8192  # a killed worker loses one block: seconds of search in a hundred thousand rows
_STREAM = 0x5EA
_TUNING, _MEASURED = (
    200,
    400,
)  # queries searched exactly, too, to choose the setting and to measure its recall


class NeighbourLists:
    """Neighbour lists of several searches among the rows of a pair.

    Parameters
    ----------
    spaces : (UnitRows, UnitRows)
    searches : as `scores.passes.searches_of` returns them
    labelled : array (l,)
        The rows with a label.
    kind : one of `names.SEARCHES`
    target_recall : float
        The recall for which the setting of an approximate search is chosen, 0 … 1.
    parts : Parts
        Where finished blocks are kept.
    """

    def __init__(
        self,
        spaces: Sequence[UnitRows],
        searches: Sequence[Search],
        labelled: np.ndarray,
        kind: str,
        target_recall: float,
        parts: Parts,
    ) -> None:
        self.kind, self.target_recall, self.parts = SEARCHES[kind].load(), target_recall, parts
        # searches in the same rows come one after the other, because they share an index
        self.searches, self._rows = sorted(searches, key=self._place), {}
        for search in searches:
            queries, rows = (
                spaces[side].of(labelled) if search.labelled else spaces[side]
                for side in (search.queries, search.base)
            )
            order = labelled if search.labelled else np.arange(len(rows))
            if search.alone:
                order = np.random.default_rng(order_seed(rows[:_SAMPLED_ROWS])).permutation(len(rows))
                rows = rows.of(order)
            self._rows[search.name] = queries, rows, order  # order[i] is the number of searched row i

    def search(self, report: Progress) -> tuple[dict[str, np.ndarray], Recall | None]:
        """Search name → neighbour lists (n, k) int32, and the recall of approximate ones."""
        lists, done, total = {}, 0, sum(len(queries) for queries, _, _ in self._rows.values())
        place, index = None, None
        for search in self.searches:
            queries, rows, _ = self._rows[search.name]
            k = min(search.k, len(rows) - search.alone)
            lists[search.name] = np.empty((len(queries), k), dtype=np.int32)
            for block in row_blocks(len(queries), QUERIES_PER_BLOCK):
                name = f"{search.name} {block.start}"
                if (part := self.parts.get(name)) is None:
                    if self._place(search) != place:
                        what = "building the index" if self.kind.approximate else "reading the rows"
                        report(done, total, what)
                        place, index = self._place(search), self._index(search)
                    part = self._nearest(index, search, np.arange(block.start, block.stop))
                    self.parts.put(name, part)
                lists[search.name][block] = part
                done += block.stop - block.start
                report(done, total, f"neighbours of {done:,} of {total:,} queries")
        return lists, self._recall(lists) if self.kind.approximate else None

    @staticmethod
    def _place(search: Search) -> tuple:
        return search.base, search.alone, search.labelled

    def _index(self, search: Search) -> Any:
        """The index of a search; an approximate one with its setting, of an earlier start if there was
        one."""
        queries, rows, _ = self._rows[search.name]
        index, name = self.kind(rows), f"setting {self._place(search)}"
        if self.kind.approximate:
            if (setting := self.parts.get(name)) is None:
                some = queries[self._drawn(search, _TUNING, stream=0)]
                exact = ExactSearch(rows, keep=False).nearest(some, min(search.k, len(rows)))
                index.tune(some, exact, self.target_recall)
                setting = np.array(index.setting)
                self.parts.put(name, setting)
            index.setting = self._settings[self._place(search)] = int(setting)
        return index

    @cached_property
    def _settings(self) -> dict[tuple, int]:
        """The settings by place; those stored earlier if no block had to be searched again."""
        stored = {place: self.parts.get(f"setting {place}") for place in map(self._place, self.searches)}
        return {place: int(setting) for place, setting in stored.items() if setting is not None}

    def _nearest(self, index: Any, search: Search, numbers: np.ndarray) -> np.ndarray:
        """Lists (m, k) of the queries with these numbers (m,)."""
        queries, rows, order = self._rows[search.name]
        k = min(search.k + search.alone, len(rows))
        lists = order[index.nearest(queries[numbers], k)]
        return without_itself(numbers, lists) if search.alone else lists

    def _recall(self, lists: Mapping[str, np.ndarray]) -> Recall:
        """The recall of the lists among all rows on random queries, as the mean over a query's lists, and the
        change of their mean Jaccard overlap by the approximation, with 95 % intervals.
        """
        every = [search for search in self.searches if not search.labelled]
        queries, n = self._drawn(every[0], _MEASURED, stream=1), len(lists["own"])
        exact, settings = {}, {}
        for search in every:
            rows = self._rows[search.name][1]
            exact[search.name] = self._nearest(ExactSearch(rows, keep=False), search, queries)
            setting = self._settings.get(self._place(search), self.kind.settings(len(rows))[0])
            settings[self.kind.described(setting, len(rows))] = None
        shares = np.mean([recalls(lists[name][queries], true) for name, true in exact.items()], axis=0)
        mean = float(shares.mean())
        low, high = sampling_interval(shares, n) or (mean, mean)
        k, other = exact["own"].shape[1], "other" if "other" in exact else "forward"
        now, before = (
            jaccard_rows(own, others[:, :k])
            for own, others in (
                (lists["own"][queries], lists[other][queries]),
                (exact["own"], exact[other]),
            )
        )
        half_width = float(Z95 * (now - before).std(ddof=1) / np.sqrt(len(now)))
        return Recall(
            self.kind.title,
            " and ".join(settings),
            mean,
            float(low),
            min(float(high), 1.0),
            len(shares),
            self.target_recall,
            float((now - before).mean()),
            half_width,
        )

    def _drawn(self, search: Search, n_drawn: int, stream: int) -> np.ndarray:
        n = len(self._rows[search.name][0])
        return np.sort(np.random.default_rng((_STREAM, stream)).choice(n, min(n, n_drawn), replace=False))
