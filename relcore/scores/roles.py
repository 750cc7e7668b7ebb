"""What a pass is asked for: which scores, which rows are queries, and which anchors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from relcore.represent.representations import ProjectionSpec

NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class ScoreRequest:
    """A request to score representations with k neighbours.

    Attributes
    ----------
    representations : tuple of str
        Some of `REPRESENTATIONS`. "absolute" has a request of its own, because it is scored on other rows.
    sums : bool
        Whether to collect the sums for scores that read all rows. False if a pass only searches for further
        queries among the same rows.
    cosines : bool
        Whether to keep the cosine of each row with its partner (n numbers).
    extra_neighbours : int
        Number of additional neighbours per query, so that k remain if up to this many rows are left out
        later.
    """

    representations: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    k: int = 10
    convention: str = "paper"
    sums: bool = True
    cosines: bool = False
    extra_neighbours: int = 0


@dataclass(frozen=True, eq=False)
class RowRoles:
    """Which of the n rows of two paired spaces are anchors, which are queries, and which are left out.

    Attributes
    ----------
    n : int
    anchors, queries : arrays (a,), (q,)
        The row numbers of the anchors, in their order (empty for absolute scores), and of the queries.
    left_out : array (l,)
        The numbers of the rows that are not scored, such as anchors, ascending. The means that a projection
        subtracts include these rows.
    labelled : "", "some" or "all"
        Whether no row, some rows or all rows have a class. It is "" if classes are not needed.
    """

    n: int
    anchors: np.ndarray = field(default_factory=NO_ROWS.copy)
    queries: np.ndarray = field(default_factory=NO_ROWS.copy)
    left_out: np.ndarray = field(default_factory=NO_ROWS.copy)
    labelled: str = ""

    def __len__(self) -> int:
        return self.n - len(self.left_out)

    def without(self, rows: np.ndarray) -> RowRoles:
        """Return the same roles, but leave out these rows as well, and have no queries."""
        return replace(self, left_out=np.union1d(self.left_out, rows), queries=rows[:0], labelled="")


def to_full_index(places: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Convert positions to row numbers: `places` are positions among the rows that remain after the rows
    `without` (ascending) are removed."""
    return places + np.searchsorted(without - np.arange(len(without)), places, side="right")


def to_kept_index(rows: np.ndarray, without: np.ndarray) -> np.ndarray:
    """Convert row numbers to positions among the rows that remain after the rows `without` (ascending) are
    removed."""
    return rows - np.searchsorted(without, rows)


class Search(NamedTuple):
    """A search for the k nearest rows in the space `base`, with queries from the space `queries` (0 source, 1
    target).

    If `alone`, the query is one of the searched rows and is left out of its k nearest rows. Then equally near
    rows have a random order, which differs between the spaces; ordered by row number, they would agree
    between unrelated spaces. If `labelled`, only rows with a label are searched.
    """

    name: str
    queries: int
    base: int
    k: int
    alone: bool = False
    labelled: bool = False
