"""Question: what is to be scored; RowNumbers: which rows are what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from relcore.comparison import ProjectionSpec


@dataclass(frozen=True)
class Question:
    """What is to be scored.

    Attributes
    ----------
    forms : representations, of `comparison.REPRESENTATIONS`
    projection : ProjectionSpec
    k, convention : as `metrics.neighbours.find_neighbours` takes them
    sums : bool
        Whether the scores that read all rows are wanted, too; False for further queries of the same rows.
    cosines : bool
        Whether the cosine of each row with its partner is wanted, n numbers.
    spare : int
        Further neighbours of each query: the k nearest are still known when up to this number of rows is left out afterwards.
    """

    forms: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    k: int = 10
    convention: str = "paper"
    sums: bool = True
    cosines: bool = False
    spare: int = 0

    @staticmethod
    def kind(form: str) -> str:
        """ "all" for the absolute representation, which uses no anchors and is scored on all rows; "held out" for others."""
        return "all" if form == "absolute" else "held out"

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(sorted(self.kind(form) for form in self.forms)))


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """The rows 0 … n − 1 without a few that are `taken` (ascending), in their order; never all in memory."""

    n: int
    taken: np.ndarray

    def __len__(self) -> int:
        return self.n - len(self.taken)

    def at(self, places: np.ndarray) -> np.ndarray:
        """The row numbers at these places."""
        return places + np.searchsorted(self.taken - np.arange(len(self.taken)), places, side="right")

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        return self.at(places)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Where these rows are, which are not taken."""
        return rows - np.searchsorted(self.taken, rows)


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """Which of the n rows of a pair are what.

    Attributes
    ----------
    n : int
    anchors : array (a,)
        In the order of the anchors; empty for absolute scores alone.
    queries : array (q,) by `Question.kind`
    labelled : array (n,) bool, optional
        Rows with a class, where the classes of neighbours are wanted.
    left_out : array
        Rows that take no part, except in the means that a projection subtracts.
    """

    n: int
    anchors: np.ndarray
    queries: Mapping[str, np.ndarray]
    labelled: np.ndarray | None = None
    left_out: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def scored(self, kind: str) -> ScoredRows:
        """The rows that scores of a `Question.kind` use."""
        taken = np.unique(self.left_out) if kind == "all" else np.union1d(self.left_out, self.anchors)
        return ScoredRows(self.n, taken)

    def n_scored(self, kind: str) -> int:
        return len(self.scored(kind))

    def without(self, rows: np.ndarray) -> RowNumbers:
        """With these rows left out, and no queries."""
        return replace(self, left_out=rows, queries=dict.fromkeys(self.queries, rows[:0]), labelled=None)
