"""The metrics that read neighbour lists: overlap and reciprocal rank of a pair, and mutual kNN among many
spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relcore.represent.similarity import unit_rows
from relcore.scores.metric import AlignedPair, LabelledNeighbours, Metric
from relcore.scores.neighbours import (
    Neighbours,
    neighbours_within,
    number_of_draws,
    overlap_difference,
    without_fixed_points,
    without_itself,
)
from relcore.scores.score import Difference, Null, Score, mean_difference, sampling_interval
from relcore.spaces.space import LatentSpace


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
    """The same overlap in the convention "mutual": each space has its own neighbours, so their lists serve
    all its pairs.
    """

    def own(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return neighbours_within(unit_rows(space.vectors), self._queries(space, settings), settings.k)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        lists, queries = (own(first), own(second)), self._queries(first, settings)
        return Neighbours(first.vectors, second.vectors, queries, *lists, "mutual", "cpu").jaccard()

    def _queries(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return self.held_out(space, settings).queries(settings.n_queries)

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool]:
        every = np.arange(len(rows))
        k = min(settings.k, len(rows) - 1)
        lists = [neighbours_within(unit_rows(space.vectors[rows]), every, k) for space in spaces]
        return [(found[:, :, None] == every).any(axis=1) for found in lists], True

    def products(self, spaces: Sequence[LatentSpace], settings: Any) -> float:
        n_pairs, rows = len(spaces) * (len(spaces) + 1) / 2, max(map(len, spaces))
        asked = min(settings.n_queries or rows, rows)
        widths = sum(space.dimension for space in spaces)
        return asked * rows * (widths + 20 * len(spaces)) + n_pairs * (rows + 20 * asked) * 5e4


# Class agreement: do a row's neighbours in the other space have the row's class?


class ClassAgreement(Metric):
    """Share of the held-out rows whose k nearest neighbours in the other space have mostly the row's label, 0
    … 1.

    A row's vector in the source is the query, the held-out rows of the target are searched, the row itself
    left out. Its label has to be more frequent among the k than any other: a tie does not count. For "mutual"
    the score is the mean of both directions. Rows without a label are left out.

    Chance level: the rows of one space permuted, the vote repeated. It is below the classes' shares where k
    is near n, as a row does not vote for itself. Two spaces whose classes lie in clusters may have their
    clusters in one place or another by coincidence, so an absolute score outside the band need not mean that
    the spaces are alike: the relative one is to be read.
    """

    reads = "lists"

    def score(self, pair: AlignedPair) -> Score | None:
        votes = pair.labelled_neighbours()
        if votes is None:
            return None
        hits, null = _hits(votes), None
        if len(votes.queries) > 1:
            rng = np.random.default_rng(0)
            drawn = np.array([_permuted(votes, rng) for _ in range(number_of_draws(len(votes.queries)))])
            drawn += (hits.mean() - drawn.mean()) / votes.n  # of all n rows one in n stays where it is
            null = Null.from_draws(drawn)
        return Score(
            hits.mean(),
            metric="class agreement",
            convention=pair.convention,
            k=votes.lists[0].shape[1] - 1,
            n=votes.n,
            n_queries=len(votes.queries),
            interval=sampling_interval(hits, votes.n),
            null=null,
            note=pair.neighbours.note,
        )

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        votes = before.labelled_neighbours(), now.labelled_neighbours()
        return None if None in votes else mean_difference(*map(_hits, votes))


def _hits(votes: LabelledNeighbours, order: np.ndarray | slice = slice(None)) -> np.ndarray:
    """1 for a query whose class wins the vote of its neighbours, 0 for others, the mean of both directions;
    (m,).

    By `order` each query has the neighbours of another one, itself left out of these.
    """
    found = zip(votes.lists, votes.classes, strict=True)
    return np.mean(
        [
            _wins(votes.own, without_itself(votes.queries, rows[order], classes[order]))
            for rows, classes in found
        ],
        axis=0,
    )


def _permuted(votes: LabelledNeighbours, rng: np.random.Generator) -> float:
    """The score when each query has the neighbours of another one."""
    return float(_hits(votes, without_fixed_points(len(votes.queries), rng)).mean())


def _wins(own: np.ndarray, voted: np.ndarray) -> np.ndarray:
    """Whether the class of each row (m,) is more frequent than any other among those of its neighbours (m,
    k).
    """
    voted = np.sort(voted, axis=1)
    run, most = np.zeros(len(own), dtype=np.int64), np.zeros((2, len(own)), dtype=np.int64)
    for place in range(voted.shape[1]):
        same = voted[:, place] == voted[:, place - 1] if place else np.zeros(len(own), dtype=bool)
        run = np.where(same, run + 1, 1)
        mine = voted[:, place] == own
        most[0], most[1] = np.maximum(most[0], run * ~mine), np.maximum(most[1], run * mine)
    return most[1] > most[0]
