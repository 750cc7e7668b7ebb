"""Differences: which rows, classes and clusters have other neighbours in the second space, and is it more than chance?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relcore.anchors.selection import shared_anchors
from relcore.comparing.noise_level import agreement_under_noise
from relcore.comparing.row_groups import LEAST_ROWS, classes_of, clusters_of
from relcore.comparison import ProjectionSpec, held_out
from relcore.magnitude import centred
from relcore.metrics.group_test import lowest_groups
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
        Mean Jaccard overlap of its rows, and what the same noise everywhere would leave, 0 … 1.
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
    belongs : array (n_pair,)
        The place of each matched row's group in `groups`, anchors included, −1 for none.
    between : float
        Variance of group means beyond that of random groups: rows of a group share neighbours and anchors, so their agreement
        rises and falls together; estimated from the draws of noise.
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
    "absolute" after centring, other representations as they are, their anchors left out. The test is that of
    `metrics.group_test.lowest_groups`, of agreement less what `noise_level.agreement_under_noise` expects. Without this
    correction a dense class would count as moved although every row got the same noise.
    """

    kind = "differences"
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
        queries = np.searchsorted(rows, split.queries(self.n_queries))
        found = find_neighbours(*made, k=k, convention="mutual", queries=queries)
        report(1, 3, "measuring what noise would leave")
        lists, vectors = (found.own, found.other), (pair.source.vectors, pair.target.vectors)
        under_noise = agreement_under_noise(vectors, remake, lists, queries, found.overlap.mean(), _DRAWS, self.random_state)
        report(2, 3, "comparing groups with random ones")
        return self._grouped(pair, rows, queries, found.overlap, under_noise, k)

    def _representation(self, pair: Match, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """From the vectors (n, d) of either space to those rows of it in which neighbours are searched."""
        if self.representation == "absolute":
            return lambda vectors: centred(vectors[rows], mean_row(vectors[rows]))
        projection = self.projection.projection(whiten=self.representation == "whitened")
        anchors = pair.source.rows(shared_anchors(self.anchors, pair.source, pair.target))
        return lambda vectors: projection.fit(vectors, anchors=anchors).transform(vectors)[rows]

    def _grouped(
        self, pair: Match, rows: np.ndarray, queries: np.ndarray, agreement: np.ndarray, under_noise: np.ndarray, k: int
    ) -> FoundDifferences:
        numbers, names = (
            classes_of(pair.source)
            if self.groups == "classes"
            else clusters_of(pair.source, min(self.n_clusters, len(pair)), self.random_state)
        )
        compared = numbers[rows[queries]]
        enough = np.flatnonzero(np.bincount(compared[compared >= 0], minlength=len(names)) >= LEAST_ROWS)
        if not len(enough):
            raise SpaceError(f"differences: expected a group of {LEAST_ROWS} compared rows or more, got none; compare clusters")
        renumbered = np.full(len(names) + 1, -1)  # the last place is that of −1
        renumbered[enough] = np.arange(len(enough))
        compared = renumbered[compared]
        expected = under_noise.mean(axis=0, dtype=np.float64)
        residual, between = agreement - expected, _between(under_noise, compared)
        test = lowest_groups(residual, compared, between=between, random_state=self.random_state)
        every, order = renumbered[numbers], np.argsort(test.z, kind="stable")
        groups = tuple(
            {"name": names[enough[number]], "n": int(np.count_nonzero(every[rows] == number))}
            | {"z": float(test.z[number]), "p": float(test.p[number])}
            | _of_rows(pair.ids[rows[queries]], compared == number, agreement, expected, residual.mean(), test.reach[number])
            for number in order.tolist()
        )
        places = np.append(np.argsort(order), -1)
        return FoundDifferences(
            tuple(MovedGroup(**group) for group in groups),
            len(rows),
            k,
            rows[queries],
            agreement,
            expected,
            places[every],
            between,
            test.n_permutations,
            len(names) - len(enough),
        )


def _of_rows(
    ids: np.ndarray, members: np.ndarray, agreement: np.ndarray, expected: np.ndarray, shift: float, reach: float
) -> dict[str, object]:
    """What the compared rows of a group tell: means, the band, and examples."""
    lost = (agreement - expected)[members]
    middle = float(expected[members].mean() + shift)
    return {
        "n_queries": int(members.sum()),
        "agreement": float(agreement[members].mean()),
        "expected": middle,
        "low": middle - float(reach),
        "high": middle + float(reach),
        "examples": tuple(ids[members][np.argsort(lost, kind="stable")[:_EXAMPLES]].tolist()),
    }


def _between(under_noise: np.ndarray, groups: np.ndarray) -> float:
    """Variance of group means under noise beyond that of random groups of the same size, 0 or more.

    Each draw is compared with the mean of the others of the same space, m of them, which raises all variances by (1 + 1/m); the
    measured agreement is compared with the mean of all draws.
    """
    belongs, sizes, n = groups[groups >= 0], np.bincount(groups[groups >= 0]), len(groups)
    excess = []
    for side in (under_noise[::2], under_noise[1::2]):
        others = len(side) - 1
        for draw in side:
            residual = draw - (side.sum(axis=0) - draw) / others
            means = np.bincount(belongs, residual[groups >= 0]) / sizes - residual.mean()
            random = residual.var() / sizes * (n - sizes) / max(n - 1, 1)
            excess.append((means**2 - random) / (1 + 1 / others))
    return float(max(0.0, np.mean(excess) * (1 + 1 / len(under_noise))))


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
