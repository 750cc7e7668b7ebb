"""Neighbour lists of every query in blocks, each of them kept, so that a stopped job resumes after its
last block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from relcore.base.names import SEARCHES
from relcore.represent.similarity import row_blocks
from relcore.runs.digest import digest_of
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.approximate import ExactSearch, UnitRows, measured_recall
from relcore.scores.metric import AlignedPair
from relcore.scores.neighbours import SEEDING_ROWS, Neighbours, order_seed, without_itself
from relcore.scores.plan import Search
from relcore.scores.score import Recall

# Parts: what a job has finished, in the store, where the next start of the same job finds it.


class Parts:
    """Arrays by name that belong to one result, whose `content` decides them; without a store nothing is
    kept.
    """

    def __init__(self, store: Store | None, *content: object) -> None:
        self._store, self._content = store, content
        self._keys: set[str] = set()

    def get(self, name: str) -> dict[str, np.ndarray] | None:
        """The arrays of a part; None where it is not there, or no longer."""
        entry = None if self._store is None else self._store.get(self._key(name))
        return None if entry is None else entry.arrays

    def put(self, name: str, **arrays: np.ndarray) -> None:
        """Keep a part."""
        if self._store is not None:
            self._store.put(self._key(name), arrays)

    def clear(self) -> None:
        """Remove all parts that were looked for: the result no longer needs them."""
        while self._store is not None and self._keys:
            self._store.remove(self._keys.pop())

    def _key(self, name: str) -> str:
        key = digest_of("part", *self._content, name)
        self._keys.add(key)
        return key


@dataclass(eq=False)
class SearchedPair(AlignedPair):
    """A pair whose neighbour lists, by the names of `scores.plan.searches_of`, have been searched; its rows
    are `UnitRows`, and all of them queries.
    """

    lists: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def neighbours(self) -> Neighbours:
        sides, every = (self.source, self.target), np.arange(len(self.split.test))
        return Neighbours.listed(sides, every, self.lists, self.k, self.convention)

    def nearest_labelled(self, labelled: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        some = " labelled" if len(labelled) < len(self.split.test) else ""
        names = (f"{name}{some}" for name in ("forward", "backward"))
        return tuple(self.lists[name][:, :k] for name in names if name in self.lists)


QUERIES_PER_BLOCK = 8192  # their lists are what a killed worker loses: seconds among a hundred thousand rows
_STREAM = 0x5EA
_TUNING, _MEASURED = 200, 400  # queries that are searched exactly, too: to choose the setting, to measure it


class NeighbourLists:
    """The lists of some searches among the rows of a pair.

    Parameters
    ----------
    spaces : (UnitRows, UnitRows)
    searches : of `scores.plan.searches_of`
    labelled : array (l,)
        The rows with a label.
    kind : one of `names.SEARCHES`
    target_recall : float
        What the setting of an approximate search is chosen for, 0 … 1.
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
        self.searches, self._settings = searches, {}
        self._rows = {}  # of each search: queries, searched rows, and the number of each of these
        for search in searches:
            queries, rows = (
                spaces[side].of(labelled) if search.labelled else spaces[side]
                for side in (search.queries, search.base)
            )
            order = np.arange(len(rows))
            if search.alone:
                order = np.random.default_rng(order_seed(rows[:SEEDING_ROWS])).permutation(len(rows))
                rows = rows.of(order)
            self._rows[search.name] = queries, rows, order

    def search(self, report: Report) -> tuple[dict[str, np.ndarray], Recall | None]:
        """Lists (n, k) int32 by the names of the searches, and the recall of approximate ones."""
        lists, done, total = {}, 0, sum(len(queries) for queries, _, _ in self._rows.values())
        indexes: dict[tuple, Any] = {}  # of one place: searches in the same rows follow each other
        for search in sorted(self.searches, key=self._place):
            queries, rows, _ = self._rows[search.name]
            k = min(search.k, len(rows) - search.alone)
            lists[search.name] = np.empty((len(queries), k), dtype=np.int32)
            for block in row_blocks(len(queries), QUERIES_PER_BLOCK):
                name = f"{search.name} {block.start}"
                if (kept := self.parts.get(name)) is None:
                    if self._place(search) not in indexes:
                        report(
                            done, total, "building the index" if self.kind.approximate else "reading the rows"
                        )
                        indexes = {self._place(search): self._index(search)}
                    index = indexes[self._place(search)]
                    kept = {"lists": self._nearest(index, search, np.arange(block.start, block.stop))}
                    self.parts.put(name, **kept)
                lists[search.name][block] = kept["lists"]
                done += block.stop - block.start
                report(done, total, f"neighbours of {done:,} of {total:,} queries")
        return lists, self._recall(lists) if self.kind.approximate else None

    @staticmethod
    def _place(search: Search) -> tuple:
        """What is searched: searches with the same one share an index."""
        return search.base, search.alone, search.labelled

    def _index(self, search: Search) -> Any:
        """What is searched; an approximate one with its setting, that of an earlier start if there was
        one.
        """
        queries, rows, _ = self._rows[search.name]
        index = self.kind(rows)
        if self.kind.approximate:
            if (kept := self.parts.get(f"setting {self._place(search)}")) is None:
                asked = queries[self._drawn(search, _TUNING, stream=0)]
                exact = ExactSearch(rows, keep=False).nearest(asked, min(search.k, len(rows)))
                index.tune(asked, exact, self.target_recall)
                kept = {"setting": np.array(index.setting)}
                self.parts.put(f"setting {self._place(search)}", **kept)
            self._settings[self._place(search)] = index.setting = int(kept["setting"])
        return index

    def _nearest(self, index: Any, search: Search, numbers: np.ndarray) -> np.ndarray:
        """Lists (m, k) of the queries with these numbers (m,)."""
        queries, rows, order = self._rows[search.name]
        nearest = order[index.nearest(queries[numbers], min(search.k + search.alone, len(rows)))]
        return without_itself(numbers, nearest) if search.alone else nearest

    def _recall(self, lists: Mapping[str, np.ndarray]) -> Recall:
        """Of the lists among all rows; where all blocks were there already, with the settings that were
        kept.
        """
        every = [search for search in self.searches if not search.labelled]
        drawn = self._drawn(every[0], _MEASURED, stream=1)
        exact, settings = {}, []
        for search in every:
            rows, place = self._rows[search.name][1], self._place(search)
            exact[search.name] = self._nearest(ExactSearch(rows, keep=False), search, drawn)
            if place not in self._settings:
                kept = self.parts.get(f"setting {place}")
                self._settings[place] = int(kept["setting"]) if kept else self.kind.settings(len(rows))[0]
            settings.append(self.kind.described(self._settings[place], len(rows)))
        found = {name: lists[name][drawn] for name in exact}
        setting = " and ".join(dict.fromkeys(settings))
        return measured_recall(found, exact, len(lists["own"]), self.kind.title, setting, self.target_recall)

    def _drawn(self, search: Search, n_drawn: int, stream: int) -> np.ndarray:
        """Numbers of random queries; another stream draws others."""
        n = len(self._rows[search.name][0])
        return np.sort(np.random.default_rng((_STREAM, stream)).choice(n, min(n, n_drawn), replace=False))
