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


# Which neighbour lists the scores of a pair need, and the pair that has them.


@dataclass(frozen=True)
class Search:
    """Rows of one space as queries among those of one, k for each.

    Attributes
    ----------
    name : str
    queries, base : "source" or "target"
    k : int
    alone : bool
        Whether the query itself is left out, and the rows are searched in the space's own order, in which
        equally near ones count: see `scores.neighbours.neighbours_within`.
    labelled : bool
        Whether only rows with a label take part; the lists then count these.
    """

    name: str
    queries: str
    base: str
    k: int
    alone: bool = False
    labelled: bool = False

    @property
    def place(self) -> tuple[str, bool, bool]:
        """What is searched: searches with the same one share an index."""
        return self.base, self.alone, self.labelled

    def rows(
        self, spaces: Mapping[str, UnitRows], labelled: np.ndarray | None
    ) -> tuple[UnitRows, UnitRows, np.ndarray]:
        """Queries, searched rows, and the number of each searched row among the queries' kind."""
        asked, searched = (
            spaces[side] if not self.labelled else spaces[side].of(labelled)
            for side in (self.queries, self.base)
        )
        order = np.arange(len(searched))
        if self.alone:
            order = np.random.default_rng(order_seed(searched[:SEEDING_ROWS])).permutation(len(searched))
            searched = searched.of(order)
        return asked, searched, order


def searches_of(
    convention: str, k: int, n: int, same_width: bool, labels: np.ndarray | None
) -> tuple[tuple[Search, ...], np.ndarray | None]:
    """The searches among n rows, and the rows with a label (l,) where a vote needs them; `labels` (n,) as
    for `AlignedPair`.
    """
    labelled = None if labels is None or not same_width else np.flatnonzero(labels != "")
    if labelled is not None and not 1 < len(np.unique(labels[labelled].astype(str))) < len(labelled):
        labelled = None
    every = labelled is not None and len(labelled) == n
    longer = max(k, min(k, n - 1) + 1) if every else k
    across = (
        [("other", "source", "target")]
        if convention == "paper"
        else [
            ("forward", "source", "target"),
            ("backward", "target", "source"),
        ]
    )
    found = (
        [Search("own", "target", "target", k)]
        if convention == "paper"
        else [
            Search("own", "source", "source", k, alone=True),
            Search("other", "target", "target", k, alone=True),
        ]
    )
    if same_width:
        found += [Search(name, *sides, longer) for name, *sides in across]
    if labelled is not None and not every:
        votes = min(k, len(labelled) - 1) + 1
        found += [Search(f"{name} labelled", *sides, votes, labelled=True) for name, *sides in across]
    return tuple(found), labelled


@dataclass(frozen=True)
class ListedNeighbours(Neighbours):
    """Neighbours whose lists in the other space are there already; `source` and `target` are `UnitRows`."""

    found: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def retrievals(self) -> tuple[np.ndarray, ...]:
        names = ("other",) if self.convention == "paper" else ("forward", "backward")
        return tuple(self.found[name][:, : self.k] for name in names)


@dataclass(frozen=True, eq=False)
class SearchedPair(AlignedPair):
    """A pair whose neighbour lists, by the names of `searches_of`, have been searched; its rows are
    `UnitRows`.
    """

    lists: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def neighbours(self) -> Neighbours:
        own, other = (self.lists[name][:, : self.k] for name in ("own", "other"))
        every = np.arange(len(self.split.test))
        return ListedNeighbours(
            self.source, self.target, every, own, other, self.convention, "cpu", self.lists
        )

    def nearest_labelled(self, labelled: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        names = ("other",) if self.convention == "paper" else ("forward", "backward")
        some = " labelled" if len(labelled) < len(self.split.test) else ""
        return tuple(self.lists[name + some][:, :k] for name in names)


QUERIES_PER_BLOCK = 8192  # their lists are what a killed worker loses: seconds among a hundred thousand rows
_STREAM = 0x5EA
_TUNING, _MEASURED = (
    200,
    400,
)  # queries that are searched exactly, too: to choose the setting, and to measure it


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
        self.searches, self.kind, self.target_recall, self.parts = (
            searches,
            SEARCHES[kind].load(),
            target_recall,
            parts,
        )
        self._rows = {search.name: search.rows(spaces, labelled) for search in searches}
        self._total = sum(len(queries) for queries, _, _ in self._rows.values())
        self._done, self._settings = 0, {}

    def search(self, report: Report) -> tuple[dict[str, np.ndarray], Recall | None]:
        """Lists (n, k) int32 by the names of the searches, and the recall of approximate ones."""
        lists = {}
        for place in dict.fromkeys(search.place for search in self.searches):
            index = None
            for search in (one for one in self.searches if one.place == place):
                lists[search.name] = found = np.empty(
                    (len(self._rows[search.name][0]), search.k), dtype=np.int32
                )
                for block in row_blocks(len(found), QUERIES_PER_BLOCK):
                    name = f"{search.name} {block.start}"
                    if (kept := self.parts.get(name)) is None:
                        index = index or self._index(search, report)
                        kept = {"lists": self._nearest(index, search, np.arange(block.start, block.stop))}
                        self.parts.put(name, **kept)
                    found[block] = kept["lists"]
                    self._done += block.stop - block.start
                    report(
                        self._done, self._total, f"neighbours of {self._done:,} of {self._total:,} queries"
                    )
        return lists, self._recall(lists) if self.kind.approximate else None

    def _index(self, search: Search, report: Report) -> Any:
        """What is searched; an approximate one with its setting, that of an earlier start if there was
        one.
        """
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
        """Of the lists among all rows; where all blocks were there already, with the settings that were
        kept.
        """
        every = [search for search in self.searches if not search.labelled]
        drawn = self._drawn(every[0], _MEASURED, stream=1)
        exact, told = {}, []
        for search in every:
            rows = self._rows[search.name][1]
            exact[search.name] = self._nearest(ExactSearch(rows, keep=False), search, drawn)
            if search.place not in self._settings:
                kept = self.parts.get(self._setting(search))
                self._settings[search.place] = (
                    int(kept["setting"]) if kept else self.kind.settings(len(rows))[0]
                )
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
