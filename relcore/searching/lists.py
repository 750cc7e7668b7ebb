"""Neighbour lists of every query in blocks, each of them kept, so that a stopped job resumes after its last block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relcore.metrics.neighbours import without_itself
from relcore.metrics.recall import Recall
from relcore.names import SEARCHES
from relcore.progress import Report
from relcore.searching.exact import ExactSearch
from relcore.searching.measured_recall import measured_recall
from relcore.searching.parts import Parts
from relcore.searching.searches import Search
from relcore.searching.unit_rows import UnitRows
from relcore.similarity import row_blocks

QUERIES_PER_BLOCK = 8192  # their lists are what a killed worker loses: seconds among a hundred thousand rows
_STREAM = 0x5EA
_TUNING, _MEASURED = 200, 400  # queries that are searched exactly, too: to choose the setting, and to measure it


class NeighbourLists:
    """The lists of some searches among the rows of a pair.

    Parameters
    ----------
    spaces : {"source": UnitRows, "target": UnitRows}
    searches, labelled : see `searches_of`
    kind : one of `names.SEARCHES`
    target_recall : float
        What the setting of an approximate search is chosen for, 0 … 1.
    parts : Parts
        Where finished blocks are kept.
    """

    def __init__(
        self,
        spaces: Mapping[str, UnitRows],
        searches: Sequence[Search],
        labelled: np.ndarray | None,
        kind: str,
        target_recall: float,
        parts: Parts,
    ) -> None:
        self.searches, self.kind, self.target_recall, self.parts = searches, SEARCHES[kind].load(), target_recall, parts
        self._rows = {search.name: search.rows(spaces, labelled) for search in searches}
        self._total = sum(len(queries) for queries, _, _ in self._rows.values())
        self._done, self._settings = 0, {}

    def search(self, report: Report) -> tuple[dict[str, np.ndarray], Recall | None]:
        """Lists (n, k) int32 by the names of the searches, and the recall of approximate ones."""
        lists = {}
        for place in dict.fromkeys(search.place for search in self.searches):
            index = None
            for search in (one for one in self.searches if one.place == place):
                lists[search.name] = found = np.empty((len(self._rows[search.name][0]), search.k), dtype=np.int32)
                for block in row_blocks(len(found), QUERIES_PER_BLOCK):
                    name = f"{search.name} {block.start}"
                    if (kept := self.parts.get(name)) is None:
                        index = index or self._index(search, report)
                        kept = {"lists": self._nearest(index, search, np.arange(block.start, block.stop))}
                        self.parts.put(name, **kept)
                    found[block] = kept["lists"]
                    self._done += block.stop - block.start
                    report(self._done, self._total, f"neighbours of {self._done:,} of {self._total:,} queries")
        return lists, self._recall(lists) if self.kind.approximate else None

    def _index(self, search: Search, report: Report) -> Any:
        """What is searched; an approximate one with its setting, that of an earlier start if there was one."""
        report(self._done, self._total, "building the index" if self.kind.approximate else "reading the rows")
        queries, rows, _ = self._rows[search.name]
        index = self.kind(rows)
        if self.kind.approximate:
            if (kept := self.parts.get(self._setting(search))) is None:
                asked = queries[self._drawn(search, _TUNING, stream=0)]
                index.tune(asked, ExactSearch(rows, keep=False).nearest(asked, search.k), self.target_recall)
                kept = {"setting": np.array(index.setting)}
                self.parts.put(self._setting(search), **kept)
            self._settings[search.place] = index.setting = int(kept["setting"])
        return index

    def _nearest(self, index: Any, search: Search, numbers: np.ndarray) -> np.ndarray:
        """Lists (m, k) of the queries with these numbers (m,)."""
        queries, _, order = self._rows[search.name]
        found = order[index.nearest(queries[numbers], search.k + search.alone)]
        return without_itself(numbers, found) if search.alone else found

    def _recall(self, lists: Mapping[str, np.ndarray]) -> Recall:
        """Of the lists among all rows; where all blocks were there already, with the settings that were kept."""
        every = [search for search in self.searches if not search.labelled]
        drawn = self._drawn(every[0], _MEASURED, stream=1)
        exact, told = {}, []
        for search in every:
            rows = self._rows[search.name][1]
            exact[search.name] = self._nearest(ExactSearch(rows, keep=False), search, drawn)
            if search.place not in self._settings:
                kept = self.parts.get(self._setting(search))
                self._settings[search.place] = int(kept["setting"]) if kept else self.kind.settings(len(rows))[0]
            told.append(self.kind.described(self._settings[search.place], len(rows)))
        found = {name: lists[name][drawn] for name in exact}
        setting = " and ".join(dict.fromkeys(told))
        return measured_recall(found, exact, len(lists["own"]), self.kind.title, setting, self.target_recall)

    def _drawn(self, search: Search, n_drawn: int, stream: int) -> np.ndarray:
        """Numbers of random queries; another stream draws others."""
        n = len(self._rows[search.name][0])
        return np.sort(np.random.default_rng((_STREAM, stream)).choice(n, min(n, n_drawn), replace=False))

    @staticmethod
    def _setting(search: Search) -> str:
        return f"setting {search.place}"
