"""Which neighbour lists the scores of a pair need, and the pair that has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from relcore.metrics.metric import AlignedPair
from relcore.metrics.neighbours import SEEDING_ROWS, Neighbours, order_seed
from relcore.searching.unit_rows import UnitRows


@dataclass(frozen=True)
class Search:
    """Rows of one space as queries among those of one, k for each.

    Attributes
    ----------
    name : str
    queries, base : "source" or "target"
    k : int
    alone : bool
        Whether the query itself is left out, and the rows are searched in the space's own order, in which equally near ones
        count: see `metrics.neighbours.neighbours_within`.
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

    def rows(self, spaces: Mapping[str, UnitRows], labelled: np.ndarray | None) -> tuple[UnitRows, UnitRows, np.ndarray]:
        """Queries, searched rows, and the number of each searched row among the queries' kind."""
        asked, searched = (
            spaces[side] if not self.labelled else spaces[side].of(labelled) for side in (self.queries, self.base)
        )
        order = np.arange(len(searched))
        if self.alone:
            order = np.random.default_rng(order_seed(searched[:SEEDING_ROWS])).permutation(len(searched))
            searched = searched.of(order)
        return asked, searched, order


def searches_of(
    convention: str, k: int, n: int, same_width: bool, labels: np.ndarray | None
) -> tuple[tuple[Search, ...], np.ndarray | None]:
    """The searches among n rows, and the rows with a label (l,) where a vote needs them; `labels` (n,) as for `AlignedPair`."""
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
    """A pair whose neighbour lists, by the names of `searches_of`, have been searched; its rows are `UnitRows`."""

    lists: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def neighbours(self) -> Neighbours:
        own, other = (self.lists[name][:, : self.k] for name in ("own", "other"))
        every = np.arange(len(self.split.test))
        return ListedNeighbours(self.source, self.target, every, own, other, self.convention, "cpu", self.lists)

    def nearest_labelled(self, labelled: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        names = ("other",) if self.convention == "paper" else ("forward", "backward")
        some = " labelled" if len(labelled) < len(self.split.test) else ""
        return tuple(self.lists[name + some][:, :k] for name in names)
