"""`Metric`, and the metrics of two spaces with the same rows.

To add a metric, write a class, and add a line to `METRICS` in `relcore.base.names`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import centred, mean_row, unit_rows
from relcore.engine.nearest import nearest_within, without_itself
from relcore.scores.cka import OwnMoments, cka_influence, cka_of_arrays, cka_value
from relcore.scores.neighbours import Neighbours, number_of_draws, overlap_difference
from relcore.scores.passes import AlignedPair, LabelledNeighbours
from relcore.scores.score import ChanceLevel, Interval, Score, difference, mean_difference, sampling_interval
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split, derangement


class Metric(ABC):
    """The base class of metrics. A metric scores the similarity of two spaces, with a chance level. It has no
    state.

    A subclass needs only `score`. `difference` computes the change of a score. The other methods save work
    when many spaces are compared; their `settings` are a `compare.scoring.AllPairs`.

    `reads` says what `score` needs of a pair: only the lists of neighbours ("lists"), only sums over the rows
    ("sums"), or the rows themselves ("rows"). Only "rows" needs all rows in memory.

    `unchanged_by` lists the `CHANGES` of one space, such as a rotation, that leave the score unchanged; a
    test applies them. `paired` is False if the metric ignores which rows are partners. Such a metric has no
    chance level.
    """

    reads: ClassVar[Literal["lists", "sums", "rows"]] = "rows"
    unchanged_by: ClassVar[tuple[str, ...]] = ()
    paired: ClassVar[bool] = True

    @abstractmethod
    def score(self, pair: AlignedPair) -> Score | None:
        """The score of the held-out rows. None if the metric needs equal widths or labels, and the pair lacks
        them."""

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        """The change of the score on the same rows, with its 95 % interval. None if this metric cannot
        compute it."""
        return None

    def held_out(self, space: LatentSpace, settings: Any) -> Split:
        """The split whose test rows `between` compares. By default, these are all rows."""
        return Split.held_out(space.ids)

    def own(self, space: LatentSpace, settings: Any) -> Any:
        """The part of the computation that needs only one space. It is done once for all pairs with this
        space."""
        return None

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        """The score of two absolute spaces with the same rows. ``own(space)`` returns the cached result of
        `own`.

        Raises
        ------
        SpaceError
            The two spaces cannot be compared.
        """
        options = {"k": settings.k, "convention": "mutual", "n_queries": settings.n_queries}
        split = self.held_out(first, settings)
        score = self.score(AlignedPair.of_arrays(first.vectors, second.vectors, split, **options))
        if score is None:
            raise SpaceError(f"expected spaces of one width, got {first.dimension} and {second.dimension}")
        return score

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool] | None:
        """For `best_by_chance`: one matrix per space, computed from these sampled rows, and whether both of
        its axes are permuted. None if the metric has no chance level for the best pair."""
        return None


def _with_chance(pair: AlignedPair, score: Score) -> Score:
    """Remove the chance level of a score if rows are repeated, because it would be too low."""
    if pair.neighbours.repeated:
        score.null = None
    return score


class Jaccard(Metric):
    """The mean overlap of the neighbourhoods. Spaces of different widths get a score only by the convention
    "mutual"."""

    reads = "lists"
    unchanged_by: ClassVar[tuple[str, ...]] = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        usable = pair.same_width or pair.convention == "mutual"
        if usable:
            return _with_chance(pair, pair.neighbours.jaccard())
        return None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        usable = before.same_width or before.convention == "mutual"
        if usable:
            return overlap_difference(before.neighbours, now.neighbours)
        return None


class MeanReciprocalRank(Metric):
    """The mean of 1 / rank, where rank is that of a row's partner among its neighbours."""

    reads = "lists"
    unchanged_by = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        if pair.same_width:
            return _with_chance(pair, pair.neighbours.mrr())
        return None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        ranks = (pair.neighbours.reciprocal_rank for pair in (before, now))
        if before.same_width:
            return mean_difference(*ranks)
        return None


class MutualKNN(Jaccard):
    """The mean Jaccard overlap of the k nearest neighbours of a row, searched within each space, 0 … 1."""

    unchanged_by = ("rotation", "scale")

    def own(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return nearest_within(unit_rows(space.vectors), self._queries(space, settings), settings.k)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        lists = (own(first), own(second))
        queries = self._queries(first, settings)
        return Neighbours(first.vectors, second.vectors, queries, *lists, "mutual", "cpu").jaccard()

    def _queries(self, space: LatentSpace, settings: Any) -> np.ndarray:
        return self.held_out(space, settings).queries(settings.n_queries)

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool]:
        every = np.arange(len(rows))
        k = min(settings.k, len(rows) - 1)
        lists = [nearest_within(unit_rows(space.vectors[rows]), every, k) for space in spaces]
        return [(rows[:, :, None] == every).any(axis=1) for rows in lists], True


# Class agreement: whether the neighbours of a row in the other space have the class of the row.


class ClassAgreement(Metric):
    """The share of the held-out rows whose label wins the vote of the k nearest rows in the other space, 0 …
    1.

    The query is the vector of a row in the source. Its k nearest rows are searched among the held-out rows of
    the target, without the row itself. A tie does not count as won. For "mutual", the score is the mean of
    both directions. Rows without a label are left out. There is no score (None) if most rows have at most k /
    2 other rows of their class, too few for a majority.

    Chance level: the vote after a permutation of the rows of one space. In two absolute spaces, clusters of
    classes may coincide by chance, so use the relative score.
    """

    reads = "lists"
    unchanged_by = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        votes = pair.labelled_neighbours()
        if votes is None:
            return None
        hits = _hits(votes)
        null = None
        if len(votes.queries) > 1:
            rng = np.random.default_rng(0)
            draws = np.empty(number_of_draws(len(votes.queries)))
            for draw in range(len(draws)):  # gives each query the neighbours of another query
                draws[draw] = _hits(votes, derangement(len(votes.queries), rng)).mean()
            # Correct the mean, because a permutation keeps one row in its place on average, and these draws
            # none.
            draws += (hits.mean() - draws.mean()) / votes.n
            null = ChanceLevel.from_draws(draws)
        score = Score(
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
        return _with_chance(pair, score)

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        first = before.labelled_neighbours()
        second = now.labelled_neighbours()
        if first is None or second is None:
            return None
        return mean_difference(_hits(first), _hits(second))


def _hits(votes: LabelledNeighbours, order: np.ndarray | slice = slice(None)) -> np.ndarray:
    """For each query, 1 if its class wins the vote of its neighbours, otherwise 0; averaged over both
    directions, (m,).

    With `order`, each query gets the neighbours of another query, without itself if it is one of them.
    """
    hits = [
        has_majority_class(votes.own, without_itself(votes.queries, rows[order], classes[order]))
        for rows, classes in zip(votes.lists, votes.classes, strict=True)
    ]
    return np.mean(hits, axis=0)


def has_majority_class(own: np.ndarray, voted: np.ndarray) -> np.ndarray:
    """Whether the class `own` (m,) of each row is the most frequent class among its neighbours `voted` (m,
    k): (m,) bool."""
    voted = np.sort(voted, axis=1)
    run = np.zeros(len(own), dtype=np.int64)
    most = np.zeros((2, len(own)), dtype=np.int64)
    for place in range(voted.shape[1]):
        if place:
            same = voted[:, place] == voted[:, place - 1]
        else:
            same = np.zeros(len(own), dtype=bool)
        run = np.where(same, run + 1, 1)
        mine = voted[:, place] == own
        most[0], most[1] = np.maximum(most[0], run * ~mine), np.maximum(most[1], run * mine)
    return most[1] > most[0]


# Number of rows for the difference of two scores, and for the interval of the difference.
_DIFFERENCE_ROWS = 4000
_INFLUENCE_ROWS = 1000


class LinearCKA(Metric):
    """The function `linear_cka` as a metric."""

    reads = "sums"
    unchanged_by = ("rotation", "scale", "shift")
    debiased = False

    def score(self, pair: AlignedPair) -> Score:
        return pair.linear_cka()

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval:
        """The change of CKA, on samples of the held-out rows. The interval comes from `cka_influence`."""
        split = before.known_split
        sampled = Split.held_out(split.ids[split.test], random_state=split.random_state)
        rows = sampled.queries(_DIFFERENCE_ROWS)
        few = sampled.queries(_INFLUENCE_ROWS)
        scores = [pair.of_some_rows(cka_value, rows) for pair in (before, now)]
        pulls = [pair.of_some_rows(cka_influence, few) for pair in (before, now)]
        error = np.std(pulls[1] - pulls[0], ddof=1) / np.sqrt(len(split.test))
        return difference(scores[1] - scores[0], error)

    def own(self, space: LatentSpace, settings: Any) -> OwnMoments:
        return OwnMoments.of(space.vectors)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        moments = own(first), own(second)
        return cka_of_arrays(first.vectors, second.vectors, self.debiased, moments, lambda: first.ids)

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool]:
        sampled = [space.vectors[rows] for space in spaces]
        moved = [centred(X, mean_row(X)) for X in sampled]
        return [X @ X.T for X in moved], True


class DebiasedCKA(LinearCKA):
    """The function `linear_cka` as a metric, without the bias that few rows cause."""

    debiased = True

    def score(self, pair: AlignedPair) -> Score:
        return cka_of_arrays(pair.source, pair.target, debiased=True, names_of_rows=lambda: pair.scored_ids)


class MeanCosine(Metric):
    """The function `mean_cosine` as a metric."""

    reads = "sums"
    unchanged_by = ("scale",)

    def score(self, pair: AlignedPair) -> Score | None:
        if pair.same_width:
            return pair.mean_cosine()
        return None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Interval | None:
        if before.same_width:
            return mean_difference(before.cosines, now.cosines)
        return None
