"""Metric: a question about spaces whose rows are paired; AlignedPair: what the metrics of two spaces share.

A new metric is a class with a `score`, and a line in `relcore.base.names.METRICS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.magnitude import brought, centred
from relcore.represent.similarity import mean_row, unit_rows
from relcore.scores.cka import OwnMoments, cka_influence, cka_value, cosine_score, cosine_sums, linear_cka
from relcore.scores.neighbours import (
    Neighbours,
    find_neighbours,
    nearest_directions,
    neighbours_within,
    number_of_draws,
    overlap_difference,
    without_fixed_points,
    without_itself,
)
from relcore.scores.score import (
    Difference,
    Null,
    Score,
    difference,
    mean_difference,
    sampling_interval,
)
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
    same_width : bool
        Whether the two spaces have one.
    """

    source: np.ndarray
    target: np.ndarray
    split: Split
    k: int = 10
    convention: str = "paper"
    n_queries: int | None = None
    labels: np.ndarray | None = None
    same_width: bool = True

    @classmethod
    def of(
        cls,
        source: np.ndarray,
        target: np.ndarray,
        split: Split,
        labels: np.ndarray | None = None,
        **settings: Any,
    ) -> AlignedPair:
        """From all rows of both spaces, and their labels, those of the split; no copy where every row is a
        test row.

        Raises
        ------
        SpaceError
            Matrices of other rows than the split's.
        """
        n = len(split.ids)
        if not len(source) == len(target) == n:
            raise SpaceError(
                f"expected {n:,} rows in both spaces, those of the split, got {len(source):,} and"
                f" {len(target):,}"
            )
        pair = (source, target) if len(split.test) == n else (source[split.test], target[split.test])
        settings["labels"] = None if labels is None else labels[split.test]
        return cls(*pair, split, same_width=source.shape[1] == target.shape[1], **settings)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Looked up among the test rows when the first metric asks for them; its rows have length 1."""
        places = np.searchsorted(self.split.test, self.split.queries(self.n_queries))
        return find_neighbours(self.source, self.target, self.k, self.convention, queries=places)

    @cached_property
    def cosines(self) -> np.ndarray:
        """Of each test row with its partner, (t,); for spaces of one width."""
        return np.vecdot(self.neighbours.source, self.neighbours.target)

    def linear_cka(self) -> Score:
        return linear_cka(self.source, self.target, ids=self.split.ids[self.split.test])

    def mean_cosine(self) -> Score:
        return cosine_score(**cosine_sums(self.neighbours.source, self.neighbours.target))

    def some_rows(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """These test rows (m,) of both spaces, each space perhaps turned, moved and scaled: enough for
        linear CKA.
        """
        return self.source[places], self.target[places]

    def of_some_rows(self, make: Callable[[np.ndarray, np.ndarray], Any], places: np.ndarray) -> Any:
        """What `make` gives of `some_rows`; a pair that is kept may know it."""
        return make(*self.some_rows(places))

    def labelled_neighbours(self) -> LabelledNeighbours | None:
        """The classes of the labelled queries and of their neighbours; None without labels, with spaces of
        two widths, or where all labelled rows have one class, or each has its own."""
        if self.labels is None or not self.same_width:
            return None
        labelled = np.flatnonzero(self.labels != "")
        # in any order: sorting takes longer
        classes, names = pd.factorize(self.labels[labelled], use_na_sentinel=False)
        queries, n = np.flatnonzero(np.isin(labelled, self.neighbours.queries)), len(classes)
        if not 1 < len(names) < n or not len(queries):
            return None
        lists = self.nearest_labelled(labelled, queries, min(self.k, n - 1) + 1)
        return LabelledNeighbours(n, queries, classes[queries], lists, tuple(classes[rows] for rows in lists))

    def nearest_labelled(self, labelled: np.ndarray, queries: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
        """Of the test rows `labelled` (l,) the k nearest to each of the `queries` (m,), which count the
        labelled rows, in the other space: (m, k) of the same count, one array for "paper", one per direction
        for "mutual"."""
        unit = self.neighbours
        spaces = [
            rows if len(labelled) == len(rows) else rows[labelled] for rows in (unit.source, unit.target)
        ]
        directions = [spaces] if self.convention == "paper" else [spaces, spaces[::-1]]
        return tuple(nearest_directions(first[queries], base, k, unit.device) for first, base in directions)


class LabelledNeighbours(NamedTuple):
    """Of n labelled rows the numbers of the queries (m,), their classes (m,), the k + 1 rows (m, k + 1)
    nearest to each query in the other space, one array per direction, and the classes of these. Classes are
    any numbers."""

    n: int
    queries: np.ndarray
    own: np.ndarray
    lists: tuple[np.ndarray, ...]
    classes: tuple[np.ndarray, ...]


class Metric(ABC):
    """How alike are two spaces? A score with its chance level. A metric has no state.

    A subclass needs no more than `score`. The other methods tell how a score changed, and spare work where
    many spaces are compared with each other: there `settings` is a `compare.scoring.AllPairs`.

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
        asked = {"k": settings.k, "convention": "mutual", "n_queries": settings.n_queries}
        split = self.held_out(first, settings)
        score = self.score(AlignedPair.of(first.vectors, second.vectors, split, **asked))
        if score is None:
            raise SpaceError(f"expected spaces of one width, got {first.dimension} and {second.dimension}")
        return score

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool] | None:
        """What `best_by_chance` permutes, of a sample of the rows; None: the best pair has no
        chance level.
        """
        return None


# The metrics that read neighbour lists.


class Jaccard(Metric):
    """Mean overlap of the neighbourhoods; spaces of two widths have one in the convention "mutual" alone."""

    reads = "lists"

    def score(self, pair: AlignedPair) -> Score | None:
        return pair.neighbours.jaccard() if pair.same_width or pair.convention == "mutual" else None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        if not before.same_width and before.convention != "mutual":
            return None
        return overlap_difference(before.neighbours, now.neighbours)


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
        return [(rows[:, :, None] == every).any(axis=1) for rows in lists], True


# Class agreement: do a row's neighbours in the other space have the row's class?


class ClassAgreement(Metric):
    """Share of the held-out rows whose k nearest neighbours in the other space have mostly the row's label, 0
    … 1.

    A row's vector in the source is the query, the held-out rows of the target are searched, the row itself
    left out. Its label has to be more frequent among the k than any other: a tie does not count. For "mutual"
    the score is the mean of both directions. Rows without a label are left out.

    Chance level: the rows of one space permuted, the vote repeated. Two spaces whose classes lie in clusters
    may have these in one place or another by coincidence, so read the relative score, not the absolute one.
    """

    reads = "lists"

    def score(self, pair: AlignedPair) -> Score | None:
        votes = pair.labelled_neighbours()
        if votes is None:
            return None
        hits, null = _hits(votes), None
        if len(votes.queries) > 1:
            rng = np.random.default_rng(0)
            drawn = np.empty(number_of_draws(len(votes.queries)))
            for draw in range(len(drawn)):  # each query has the neighbours of another one
                drawn[draw] = _hits(votes, without_fixed_points(len(votes.queries), rng)).mean()
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
    hits = [
        _wins(votes.own, without_itself(votes.queries, rows[order], classes[order]))
        for rows, classes in zip(votes.lists, votes.classes, strict=True)
    ]
    return np.mean(hits, axis=0)


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


# The metrics that read sums.

_DIFFERENCE_ROWS, _INFLUENCE_ROWS = 4000, 1000  # that tell a difference, and how sure it is


class LinearCKA(Metric):
    """`linear_cka` as a metric."""

    reads = "sums"
    debiased = False

    def score(self, pair: AlignedPair) -> Score:
        return pair.linear_cka()

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference:
        """Of samples of the held-out rows; the interval is by `cka_influence`."""
        split = before.split
        drawn = Split.held_out(split.ids[split.test], random_state=split.random_state)
        rows, few = drawn.queries(_DIFFERENCE_ROWS), drawn.queries(_INFLUENCE_ROWS)
        scores = [pair.of_some_rows(cka_value, rows) for pair in (before, now)]
        pulls = [pair.of_some_rows(cka_influence, few) for pair in (before, now)]
        error = np.std(pulls[1] - pulls[0], ddof=1) / np.sqrt(len(split.test))
        return difference(scores[1] - scores[0], error)

    def own(self, space: LatentSpace, settings: Any) -> OwnMoments:
        return OwnMoments.of(space.vectors)

    def between(
        self, first: LatentSpace, second: LatentSpace, own: Callable[[LatentSpace], Any], settings: Any
    ) -> Score:
        settings = {"debiased": self.debiased, "own": (own(first), own(second)), "ids": first.ids}
        return linear_cka(first.vectors, second.vectors, **settings)

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: Any
    ) -> tuple[list[np.ndarray], bool]:
        sampled = [brought(space.vectors[rows])[0] for space in spaces]
        moved = [centred(X, mean_row(X)) for X in sampled]
        return [X @ X.T for X in moved], True


class DebiasedCKA(LinearCKA):
    """`linear_cka` without its bias for few rows."""

    debiased = True

    def score(self, pair: AlignedPair) -> Score:
        return linear_cka(pair.source, pair.target, debiased=True, ids=pair.split.ids[pair.split.test])


class MeanCosine(Metric):
    """`mean_cosine` as a metric."""

    reads = "sums"

    def score(self, pair: AlignedPair) -> Score | None:
        return pair.mean_cosine() if pair.same_width else None

    def difference(self, before: AlignedPair, now: AlignedPair) -> Difference | None:
        if not before.same_width:
            return None
        return mean_difference(before.cosines, now.cosines)
