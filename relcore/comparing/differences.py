"""Differences: which rows, classes and clusters have other neighbours in the second space, and is it more than chance?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relcore.anchors.selection import shared_anchors
from relcore.comparing.noise_level import agreement_under_noise
from relcore.comparing.noise_test import moved_beyond_noise
from relcore.comparing.row_groups import LEAST_ROWS, classes_of, clusters_of, queries_of_groups
from relcore.comparison import ProjectionSpec, held_out
from relcore.magnitude import centred
from relcore.metrics.neighbours import find_neighbours
from relcore.progress import Report, silent
from relcore.similarity import mean_row, unit_rows
from relcore.spaces import LatentSpace, Match, SpaceError, match, need_one_of, need_whole
from relcore.store import Store
from relcore.task import Task

FORMS = ("absolute", "relative", "whitened")
GROUPS = ("classes", "clusters")
NEIGHBOURS = 50
SIGNIFICANT = 0.05
_DRAWS = 8  # of noise; even, as the two spaces take turns
_EXAMPLES, _ANCHORS = 6, 3


@dataclass(frozen=True)
class MovedGroup:
    """A class or a cluster: how much of its neighbourhoods the other space keeps.

    Attributes
    ----------
    name : str
    n, n_queries : int
        Its held-out rows, and those of them that were compared.
    agreement, expected : float
        Mean Jaccard overlap of its rows, and what the same noise everywhere would leave, 0 … 1: noise in the source or in the
        target, whichever explains the group better.
    low, high : float
        95 % band of a random group of `n_queries` rows with this expectation.
    z, p : float
        Of the test; p is corrected for the number of groups.
    examples : ids
        Its rows that lost most neighbours, compared with what was expected.
    source_anchors, target_anchors : ids
        The anchors nearest to its mean direction in either absolute space, nearest first; see `with_anchors`.
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
    """All groups, the one that moved most first, and the rows that were compared.

    Attributes
    ----------
    n : int
        Rows among which neighbours were searched.
    rows : array (m,)
        Numbers of the compared rows in the matched spaces, ascending.
    agreement, expected : arrays (m,)
        Expected is the mean of both spaces' noise.
    belongs : array (n_pair,)
        The place of each matched row's group in `groups`, anchors included, −1 for none.
    between : float
        Variance of group means beyond that of random groups: rows of a group share neighbours and anchors, so their agreement
        rises and falls together; estimated from the draws of noise, the larger one of the two spaces.
    left_out : int
        Groups with fewer than `LEAST_ROWS` compared rows.
    """

    groups: tuple[MovedGroup, ...]
    n: int
    k: int
    rows: np.ndarray
    agreement: np.ndarray
    expected: np.ndarray
    belongs: np.ndarray
    between: float
    n_permutations: int
    left_out: int

    @property
    def moved(self) -> tuple[MovedGroup, ...]:
        """The groups that moved more than chance."""
        return tuple(group for group in self.groups if group.significant)


@dataclass(frozen=True)
class Differences(Task[FoundDifferences]):
    """Where two spaces with the same rows differ: neighbourhood agreement by class or by cluster, tested against chance.

    Agreement is the Jaccard overlap of a row's k nearest neighbours in either space, each space with its own (mutual kNN):
    "absolute" after centring, other representations as they are, their anchors left out. `noise_test.moved_beyond_noise`
    tests it against `noise_level.agreement_under_noise`: without this correction a dense class would count as moved although
    every row got the same noise. Where there are more rows than `n_queries`, half of these are shared among the groups.
    """

    kind = "differences"
    version = 2
    result = "relcore.comparing.differences:FoundDifferences"

    representation: str = "absolute"
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    groups: str = "classes"
    n_clusters: int = 20
    k: int = NEIGHBOURS
    n_queries: int = 4000
    random_state: int = 0

    def __post_init__(self) -> None:
        need_one_of("representation", self.representation, FORMS)
        need_one_of("groups", self.groups, GROUPS)
        need_whole(self, n_clusters=2, k=1, n_queries=2 * LEAST_ROWS)

    @property
    def title(self) -> str:
        return f"Differences, {self.representation}"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, width = len(spaces[0]), spaces[0].dimension if self.representation == "absolute" else len(self.anchors)
        searches = (_DRAWS + 2) * min(self.n_queries, n) + 18 * 400
        return n * searches * (width + 100) / 2e10 + 26 * n * width / 1e8 + 0.3

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> FoundDifferences:
        report(0, 3, "searching the neighbours in both spaces")
        pair = match(*spaces)
        split = held_out(pair, self.anchors, self.representation)
        rows = split.test
        k = min(self.k, len(rows) - 1)
        if k < 1:
            raise SpaceError(f"differences: expected two held-out rows or more, got {len(rows)}; choose fewer anchors")
        remake = self._representation(pair, rows)
        made = tuple(remake(space.vectors) for space in (pair.source, pair.target))
        numbers, names = self._groups(pair)
        queries = queries_of_groups(numbers[rows], pair.ids[rows], self.n_queries)
        found = find_neighbours(*made, k=k, convention="mutual", queries=queries)
        report(1, 3, "measuring what noise would leave")
        lists, vectors = (found.own, found.other), (pair.source.vectors, pair.target.vectors)
        under_noise = agreement_under_noise(vectors, remake, lists, queries, found.overlap.mean(), _DRAWS, self.random_state)
        report(2, 3, "comparing groups with random ones")
        return _grouped(pair, numbers, names, rows, queries, found.overlap, under_noise, k, self.random_state)

    def _representation(self, pair: Match, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """From the vectors (n, d) of either space to those rows of it in which neighbours are searched."""
        if self.representation == "absolute":
            return lambda vectors: centred(vectors[rows], mean_row(vectors[rows]))
        projection = self.projection.projection(whiten=self.representation == "whitened")
        anchors = pair.source.rows(shared_anchors(self.anchors, pair.source, pair.target))
        return lambda vectors: projection.fit(vectors, anchors=anchors).transform(vectors)[rows]

    def _groups(self, pair: Match) -> tuple[np.ndarray, list[str]]:
        """The number of each row's group (n,), −1 for none, and the names of the groups."""
        if self.groups == "classes":
            return classes_of(pair.source)
        return clusters_of(pair.source, min(self.n_clusters, len(pair)), self.random_state)


def _grouped(
    pair: Match,
    numbers: np.ndarray,
    names: Sequence[str],
    rows: np.ndarray,
    queries: np.ndarray,
    agreement: np.ndarray,
    under_noise: np.ndarray,
    k: int,
    random_state: int,
) -> FoundDifferences:
    compared = numbers[rows[queries]]
    enough = np.flatnonzero(np.bincount(compared[compared >= 0], minlength=len(names)) >= LEAST_ROWS)
    if not len(enough):
        raise SpaceError(f"differences: expected a group of {LEAST_ROWS} compared rows or more, got none; compare clusters")
    renumbered = np.full(len(names) + 1, -1)  # the last place is that of −1
    renumbered[enough] = np.arange(len(enough))
    compared = renumbered[compared]
    expected = under_noise.mean(axis=0, dtype=np.float64)
    test = moved_beyond_noise(agreement, under_noise, compared, random_state)
    every, order = renumbered[numbers], np.argsort(test.z, kind="stable")
    groups = tuple(
        MovedGroup(
            name=names[enough[number]],
            n=int(np.count_nonzero(every[rows] == number)),
            n_queries=int(np.count_nonzero(compared == number)),
            agreement=float(agreement[compared == number].mean()),
            expected=float(test.expected[number]),
            low=float(test.expected[number] - test.reach[number]),
            high=float(test.expected[number] + test.reach[number]),
            z=float(test.z[number]),
            p=float(test.p[number]),
            examples=_examples(pair.ids[rows[queries]], agreement - expected, compared == number),
        )
        for number in order.tolist()
    )
    return FoundDifferences(
        groups,
        len(rows),
        k,
        rows[queries],
        agreement,
        expected,
        np.append(np.argsort(order), -1)[every],
        test.between,
        test.n_permutations,
        len(names) - len(enough),
    )


def _examples(ids: np.ndarray, residual: np.ndarray, members: np.ndarray) -> tuple[str, ...]:
    """The compared rows of a group that lost most neighbours, compared with what noise would cost them."""
    return tuple(ids[members][np.argsort(residual[members], kind="stable")[:_EXAMPLES]].tolist())


def with_anchors(found: FoundDifferences, pair: Match, anchors: Sequence[str]) -> FoundDifferences:
    """The same differences, each group with the anchors nearest to it: those of highest cosine to its mean direction."""
    if not len(anchors):
        return found
    nearest = {}
    for side, space in (("source", pair.source), ("target", pair.target)):
        directions = unit_rows(space.vectors, mean_row(space.vectors))
        stars = directions[space.rows(anchors)]
        centres = [directions[found.belongs == place].mean(axis=0) for place in range(len(found.groups))]
        order = np.argsort(-(np.array(centres) @ stars.T), axis=1, kind="stable")[:, :_ANCHORS]
        nearest[f"{side}_anchors"] = [tuple(anchors[place] for place in row) for row in order.tolist()]
    groups = (
        replace(group, **{side: lists[place] for side, lists in nearest.items()}) for place, group in enumerate(found.groups)
    )
    return replace(found, groups=tuple(groups))
