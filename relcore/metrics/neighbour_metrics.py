"""The metrics that read neighbour lists: overlap and reciprocal rank of a pair, and mutual kNN among many spaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relcore.metrics.calibration import Score
from relcore.metrics.metric import AlignedPair, Metric
from relcore.metrics.neighbours import Neighbours, neighbours_within
from relcore.metrics.paired import Difference, mean_difference
from relcore.metrics.searched_rows import overlap_difference
from relcore.similarity import unit_rows
from relcore.spaces import LatentSpace


class Jaccard(Metric):
    """Mean overlap of the neighbourhoods; spaces of two widths have one in the convention "mutual" alone."""

    reads = "lists"

    def score(self, pair: AlignedPair) -> Score | None:
        return pair.neighbours.jaccard() if _comparable(pair) else None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        if not _comparable(before):
            return None
        return overlap_difference(before.neighbours, now.neighbours)


def _comparable(pair: AlignedPair) -> bool:
    return pair.same_width or pair.convention == "mutual"


class MeanReciprocalRank(Metric):
    """1 / rank of a row's own partner among its neighbours."""

    reads = "lists"

    def score(self, pair: AlignedPair) -> Score | None:
        return pair.neighbours.mrr() if pair.same_width else None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        if not before.same_width:
            return None
        return mean_difference(before.neighbours.reciprocal_rank, now.neighbours.reciprocal_rank)


class MutualKNN(Jaccard):
    """The same overlap in the convention "mutual": each space has its own neighbours, so their lists serve all its pairs."""

    def own(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return neighbours_within(unit_rows(space.vectors), self._queries(space, settings), settings.k)

    def between(self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any) -> Score:
        lists, queries = (own(first), own(second)), self._queries(first, settings)
        return Neighbours(first.vectors, second.vectors, queries, *lists, "mutual", "cpu").jaccard()

    def _queries(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return self.held_out(space, settings).queries(settings.n_queries)

    def forms(self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any) -> tuple[list[np.ndarray], bool]:
        every = np.arange(len(rows))
        k = min(settings.k, len(rows) - 1)
        lists = [neighbours_within(unit_rows(space.vectors[rows]), every, k) for space in spaces]
        return [(found[:, :, None] == every).any(axis=1) for found in lists], True

    def products(self, spaces: Sequence[LatentSpace], settings: Any) -> float:
        n_pairs, rows = len(spaces) * (len(spaces) + 1) / 2, max(map(len, spaces))
        asked = min(settings.n_queries or rows, rows)
        widths = sum(space.dimension for space in spaces)
        return asked * rows * (widths + 20 * len(spaces)) + n_pairs * (rows + 20 * asked) * 5e4
