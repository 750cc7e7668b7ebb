"""A task that finds groups of rows whose neighbours differ between two spaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import centred, mean_row, unit_rows
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.compare.clusters import LEAST_ROWS, class_groups, clusters_of, queries_of_groups
from relcore.compare.noise import CALIBRATED_ROWS, DRAWS, SIGNIFICANT, STEPS, moved_beyond_noise
from relcore.represent.representations import ProjectionSpec
from relcore.represent.strategies import shared_anchors
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.comparison import held_out
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.matching import Match, match
from relcore.spaces.space import LatentSpace

COMPARED = ("absolute", "relative", "whitened")
GROUPS = ("classes", "clusters")
NEIGHBOURS = 50
_EXAMPLES = 6
_ANCHORS = 3


@dataclass(frozen=True)
class MovedGroup:
    """A group (a class or a cluster), and the share of the neighbours of its rows that the second space
    keeps.

    Attributes
    ----------
    n, n_queries : int
        The number of held-out rows of the group, and the number of those that were compared.
    agreement, expected : float
        The mean Jaccard overlap of the rows of the group, 0 … 1: as measured, and as expected if all rows
        have the same noise.
    low, high : float
        The 95 % band for a group of `n_queries` rows under this noise.
    z, p : float
        The z-score, and the p-value corrected for the number of groups.
    examples : ids
        The rows of the group that lost most neighbours, compared with the expected loss.
    source_anchors, target_anchors : ids
        The anchors nearest to the group's mean direction, nearest first; see `with_anchors`.
    """

    name: str
    n: int
    n_queries: int
    agreement: float
    expected: float
    low: float
    high: float
    z: float
    p: float
    examples: tuple[str, ...] = ()
    source_anchors: tuple[str, ...] = ()
    target_anchors: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANT


@dataclass(frozen=True, eq=False)
class FoundDifferences:
    """The result of `Differences`: all groups, those that moved most first, and the rows that were compared.

    Attributes
    ----------
    n : int
        Number of rows among which neighbours were searched.
    rows : array (m,)
        Indices of the compared rows in the matched spaces, ascending.
    agreement, expected : arrays (m,)
        For each compared row, the measured agreement, and the mean agreement over all draws of noise.
    belongs : array (n_pair,)
        For each matched row, anchors included, the index of its group in `groups`; −1 for none.
    left_out : int
        Number of groups that are left out because they have fewer than `LEAST_ROWS` compared rows.
    """

    groups: tuple[MovedGroup, ...]
    n: int
    k: int
    rows: np.ndarray
    agreement: np.ndarray
    expected: np.ndarray
    belongs: np.ndarray
    left_out: int

    @property
    def moved(self) -> tuple[MovedGroup, ...]:
        return tuple(group for group in self.groups if group.significant)

    @property
    def too_small(self) -> tuple[MovedGroup, ...]:
        """The groups that are so small that the k neighbours of a row can include the whole group."""
        return tuple(group for group in self.groups if group.n <= self.k + 1 and not group.significant)


@dataclass(frozen=True)
class DifferenceSettings:
    representation: str = setting("absolute", choices=COMPARED)
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    groups: str = setting("classes", choices=GROUPS)
    n_clusters: int = setting(20, low=2)
    k: int = setting(NEIGHBOURS, low=1)
    n_queries: int = setting(4000, low=2 * LEAST_ROWS)


@dataclass(frozen=True)
class Differences(DifferenceSettings, Task[FoundDifferences], kind="differences", version=4):
    """The task that finds where two spaces with the same rows differ. It tests the agreement of
    neighbourhoods, by class or cluster, against noise of the same size in all rows.

    Agreement is the Jaccard overlap between the k nearest neighbours of a row in the two spaces (mutual kNN).
    It is tested by `moved_beyond_noise`. Without this test, dense classes seem to move when every row gets
    the same noise.
    """

    random_state: int = 0

    @property
    def title(self) -> str:
        return f"Differences, {self.representation}"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = len(spaces[0])
        absolute = self.representation == "absolute"
        if absolute:
            width = spaces[0].dimension
        else:
            width = len(self.anchors)
        searches = (6 * DRAWS + 2) * min(self.n_queries, n) + 6 * STEPS * CALIBRATED_ROWS
        return n * searches * (width + 100) / 2e10 + 6 * (DRAWS + STEPS) * n * width / 1e8 + 0.3

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> FoundDifferences:
        report(0, 2, "searching the neighbours in both spaces")
        pair = match(*spaces)
        split = held_out(pair, self.anchors, self.representation)
        rows = split.test
        k = min(self.k, len(rows) - 1)
        if k < 1:
            raise SpaceError(
                f"differences: expected two held-out rows or more, got {len(rows)}; choose fewer anchors"
            )
        vectors = (pair.source.vectors, pair.target.vectors)
        represented = self._representation(pair, rows)
        if self.groups == "classes":
            numbers, names = class_groups(pair.source)
        else:
            n_clusters = min(self.n_clusters, len(pair))
            numbers, names = clusters_of(pair.source, n_clusters, self.random_state)
        queries = queries_of_groups(numbers[rows], pair.ids[rows], self.n_queries)
        near = find_neighbours(*map(represented, vectors), k=k, convention="mutual", queries=queries)
        agreement = near.overlap
        compared = numbers[rows[queries]]
        enough = np.flatnonzero(np.bincount(compared[compared >= 0], minlength=len(names)) >= LEAST_ROWS)
        if not len(enough):
            raise SpaceError(
                f"differences: expected a group of {LEAST_ROWS} compared rows or more, got none; compare"
                " clusters"
            )
        renumbered = np.full(len(names) + 1, -1)  # the last place is for the number −1, no group
        renumbered[enough] = np.arange(len(enough))
        compared = renumbered[compared]
        every = renumbered[numbers]
        report(1, 2, "measuring what noise would leave")
        test = moved_beyond_noise(
            vectors,
            represented,
            (near.first_lists, near.second_lists),
            queries,
            agreement,
            compared,
            numbers,
            self.random_state,
        )
        expected = test.by_row
        ids = pair.ids[rows[queries]]
        groups = []
        order = np.argsort(test.z, kind="stable")
        for number in order.tolist():
            members = np.flatnonzero(compared == number)
            lost = members[np.argsort((agreement - expected)[members], kind="stable")[:_EXAMPLES]]
            middle = float(test.expected[number])
            half_width = float(test.half_width[number])
            groups.append(
                MovedGroup(
                    name=names[enough[number]],
                    n=int(np.count_nonzero(every[rows] == number)),
                    n_queries=len(members),
                    agreement=float(agreement[members].mean()),
                    expected=middle,
                    low=middle - half_width,
                    high=middle + half_width,
                    z=float(test.z[number]),
                    p=float(test.p[number]),
                    examples=tuple(ids[lost].tolist()),
                )
            )
        return FoundDifferences(
            groups=tuple(groups),
            n=len(rows),
            k=k,
            rows=rows[queries],
            agreement=agreement,
            expected=expected,
            belongs=np.append(np.argsort(order), -1)[every],
            left_out=len(names) - len(enough),
        )

    def _representation(self, pair: Match, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        if self.representation == "absolute":
            return lambda vectors: centred(vectors[rows], mean_row(vectors[rows]))
        projection = self.projection.projection(whiten=self.representation == "whitened")
        anchors = pair.source.rows(shared_anchors(self.anchors, pair.source, pair.target))
        return lambda vectors: projection.fit(vectors, anchors=anchors).transform(vectors)[rows]


def with_anchors(found: FoundDifferences, pair: Match, anchors: Sequence[str]) -> FoundDifferences:
    """The same differences, where each group also has the anchors with the highest cosine to its mean
    direction."""
    if not len(anchors):
        return found
    nearest = {}
    for side, space in (("source", pair.source), ("target", pair.target)):
        units = unit_rows(space.vectors, mean_row(space.vectors))
        stars = units[space.rows(anchors)]
        centres = [units[found.belongs == place].mean(axis=0) for place in range(len(found.groups))]
        order = np.argsort(-(np.array(centres) @ stars.T), axis=1, kind="stable")[:, :_ANCHORS]
        nearest[f"{side}_anchors"] = [tuple(anchors[place] for place in row) for row in order.tolist()]
    return replace(
        found,
        groups=tuple(
            replace(group, **{side: lists[place] for side, lists in nearest.items()})
            for place, group in enumerate(found.groups)
        ),
    )
