"""Metric: a question about spaces whose rows are paired; AlignedPair: what the metrics of two spaces share.

A new metric is a class with a `score`, in a file of its own, and a line in `relcore.base.names.METRICS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.scores.neighbours import Neighbours, find_neighbours
from relcore.scores.score import Difference, Score
from relcore.scores.search import nearest_directions
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split


@dataclass(eq=False)
class AlignedPair:
    """The held-out rows of two spaces, and the neighbour lists of their queries.

    Attributes
    ----------
    source, target : arrays (t, d_source) and (t, d_target)
        The test rows of the split.
    split : Split
    k : int
        Neighbours looked at.
    convention : {"paper", "mutual"}
    n_queries : int, optional
        Number of test rows to draw as queries; default all.
    labels : array (t,), optional
        The class of each test row; "" where it has none.
    """

    source: np.ndarray
    target: np.ndarray
    split: Split
    k: int = 10
    convention: str = "paper"
    n_queries: int | None = None
    labels: np.ndarray | None = None
    sums: ClassVar[RowsSummed | None] = None  # where a pass over the rows has summed up what a metric needs

    @classmethod
    def of(
        cls,
        source: np.ndarray,
        target: np.ndarray,
        split: Split,
        *settings: Any,
        labels: np.ndarray | None = None,
    ) -> AlignedPair:
        """From all rows of both spaces, and their labels, those of the split; no copy where every row is a
        test row.

        Raises
        ------
        SpaceError
            Matrices of other rows than the split's.
        """
        if not len(source) == len(target) == split.n:
            raise SpaceError(
                f"expected {split.n:,} rows in both spaces, those of the split, got {len(source):,} and"
                f" {len(target):,}"
            )
        pair = (source, target) if len(split.test) == split.n else (source[split.test], target[split.test])
        return cls(*pair, split, *settings, labels=None if labels is None else labels[split.test])

    @property
    def same_width(self) -> bool:
        return self.source.shape[1] == self.target.shape[1]

    @cached_property
    def neighbours(self) -> Neighbours:
        """Looked up among the test rows when the first metric asks for them; its rows have length 1."""
        places = np.searchsorted(self.split.test, self.split.queries(self.n_queries))
        return find_neighbours(self.source, self.target, self.k, self.convention, queries=places)

    @cached_property
    def cosines(self) -> np.ndarray:
        """Of each test row with its partner, (t,); for spaces of one width."""
        return np.vecdot(self.neighbours.source, self.neighbours.target)

    def some_rows(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """These test rows (m,) of both spaces, each space perhaps turned, moved and scaled: enough for
        linear CKA.
        """
        return self.source[places], self.target[places]

    def labelled_neighbours(self) -> LabelledNeighbours | None:
        """The classes of the labelled queries and of their neighbours; None without labels, with spaces of
        two widths, or where all labelled rows have one class, or each has its own."""
        if self.labels is None or not self.same_width:
            return None
        labelled = np.flatnonzero(self.labels != "")
        classes, names = pd.factorize(
            self.labels[labelled], use_na_sentinel=False
        )  # in any order: sorting takes longer
        queries = np.flatnonzero(np.isin(labelled, self.neighbours.queries))
        if not 1 < len(names) < len(classes) or not len(queries):
            return None
        lists = self.nearest_labelled(labelled, queries, min(self.k, len(classes) - 1) + 1)
        return LabelledNeighbours(
            len(classes), queries, classes[queries], lists, tuple(classes[found] for found in lists)
        )

    def of_some_rows(
        self, name: str, places: np.ndarray, make: Callable[[np.ndarray, np.ndarray], Any]
    ) -> Any:
        """What `make` finds in `some_rows` of these places; a pair that is kept may know it by its name."""
        return make(*self.some_rows(places))

    def nearest_labelled(self, labelled: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        """Of the test rows `labelled` (l,) the k nearest to each of the `queries` (m,), which count the
        labelled rows, in the other space: (m, k) of the same count, one array for "paper", one per direction
        for "mutual"."""
        found = self.neighbours
        spaces = [
            rows if len(labelled) == len(rows) else rows[labelled] for rows in (found.source, found.target)
        ]
        directions = [spaces] if self.convention == "paper" else [spaces, spaces[::-1]]
        return tuple(nearest_directions(one[queries], other, k, found.device) for one, other in directions)


class LabelledNeighbours(NamedTuple):
    """Of n labelled rows the numbers of the queries (m,), their classes (m,), the k + 1 rows (m, k + 1)
    nearest to each query in the other space, one array per direction, and the classes of these. Classes are
    any numbers."""

    n: int
    queries: np.ndarray
    own: np.ndarray
    lists: tuple[np.ndarray, ...]
    classes: tuple[np.ndarray, ...]


class RowsSummed(Protocol):
    """Scores from sums over the rows of a pair that are no longer at hand."""

    def linear_cka(self, ids: np.ndarray) -> Score: ...

    def mean_cosine(self) -> Score: ...


class Metric(ABC):
    """How alike are two spaces? A score with its chance level. A metric has no state.

    A subclass needs no more than `score`. The other methods tell how a score changed, and spare work where
    many spaces are compared with each other: there `settings` is a `compare.all_pairs.AllPairs`.

    `reads` says what `score` takes of a pair: "lists", its neighbours; "sums", where a pass over the rows has
    these; or "rows", anything. Where there are many rows, the first two never have them in memory.
    """

    reads: ClassVar[Literal["lists", "sums", "rows"]] = "rows"

    @abstractmethod
    def score(self, pair: AlignedPair) -> Score | None:
        """The score of the held-out rows; None where it needs spaces of one width, or labels, and these
        lack it.
        """

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        """How far the score moved on the same rows, with its 95 % interval; None where this metric does
        not tell it.
        """
        return None

    def held_out(self, space: LatentSpace, settings: Any) -> Split:
        """The rows that are compared where whole spaces are: all of them."""
        return Split.held_out(space.ids)

    def own(self, space: LatentSpace, settings: Any) -> Any:
        """What concerns one space alone; it is worked out once for all pairs of the space."""
        return None

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        """The score of two spaces with the same rows, each absolute; `own` gives `self.own` of either.

        Raises
        ------
        SpaceError
            The two cannot be compared.
        """
        split = self.held_out(first, settings)
        pair = AlignedPair.of(first.vectors, second.vectors, split, settings.k, "mutual", settings.n_queries)
        score = self.score(pair)
        if score is None:
            raise SpaceError(f"expected spaces of one width, got {first.dimension} and {second.dimension}")
        return score

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool] | None:
        """What `best_pair.best_by_chance` permutes, of a sample of the rows; None: the best pair has no
        chance level.
        """
        return None

    def products(self, spaces: Sequence[LatentSpace], settings: Any) -> float:
        """Roughly how many multiplications all pairs take."""
        widths = np.array([space.dimension for space in spaces], dtype=float)
        return max(map(len, spaces)) * float(np.outer(widths, widths).sum() / 2 + (widths**2).sum())
