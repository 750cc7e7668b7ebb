"""Metric: a question about spaces whose rows are paired; AlignedPair: what the metrics of two spaces share.

A new metric is a class with a `score`, in a file of its own, and a line in `relcore.names.METRICS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from relcore.evaluation import Split
from relcore.metrics.calibration import Score
from relcore.metrics.neighbours import Neighbours, find_neighbours
from relcore.metrics.paired import Difference
from relcore.spaces import LatentSpace, SpaceError


@dataclass(frozen=True, eq=False)
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

    @classmethod
    def of(
        cls, source: np.ndarray, target: np.ndarray, split: Split, *settings: Any, labels: np.ndarray | None = None
    ) -> AlignedPair:
        """From all rows of both spaces, and their labels, those of the split; no copy where every row is a test row.

        Raises
        ------
        SpaceError
            Matrices of other rows than the split's.
        """
        if not len(source) == len(target) == split.n:
            raise SpaceError(
                f"expected {split.n:,} rows in both spaces, those of the split, got {len(source):,} and {len(target):,}"
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


class Metric(ABC):
    """How alike are two spaces? A score with its chance level. A metric has no state.

    A subclass needs no more than `score`. The other methods tell how a score changed, and spare work where many spaces are
    compared with each other: there `settings` is a `comparing.all_pairs.AllPairs`.
    """

    @abstractmethod
    def score(self, pair: AlignedPair) -> Score | None:
        """The score of the held-out rows; None where it needs spaces of one width, or labels, and these lack it."""

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        """How far the score moved on the same rows, with its 95 % interval; None where this metric does not tell it."""
        return None

    def held_out(self, space: LatentSpace, settings: Any) -> Split:
        """The rows that are compared where whole spaces are: all of them."""
        return Split.held_out(space.ids)

    def own(self, space: LatentSpace, settings: Any) -> Any:
        """What concerns one space alone; it is worked out once for all pairs of the space."""
        return None

    def between(self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any) -> Score:
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

    def forms(self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any) -> tuple[list[np.ndarray], bool] | None:
        """What `best_pair.best_by_chance` permutes, of a sample of the rows; None: the best pair has no chance level."""
        return None

    def products(self, spaces: Sequence[LatentSpace], settings: Any) -> float:
        """Roughly how many multiplications all pairs take."""
        widths = np.array([space.dimension for space in spaces], dtype=float)
        return max(map(len, spaces)) * float(np.outer(widths, widths).sum() / 2 + (widths**2).sum())
