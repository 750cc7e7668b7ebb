"""Differences: which rows, classes and clusters have other neighbours in the second space than by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.magnitude import brought, centred
from relcore.base.numbers import short
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.columns import LEAST_ROWS, class_groups, clusters_of, queries_of_groups
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.represent.anchors import shared_anchors
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec, held_out
from relcore.scores.groups import lowest_groups
from relcore.scores.neighbours import find_neighbours, jaccard_rows, neighbours_within
from relcore.spaces.space import LatentSpace, Match, match
from relcore.tasks.recipe import Recipe, load_all
from relcore.tasks.task import Task

# Dense rows lose their neighbours to a little noise, so agreement differs by class even if none has moved.
# Noise that lowers the mean agreement to what was measured tells how much each row would keep.

_CALIBRATED_ROWS = 400
_STEPS = 9  # halvings of the range of noise levels
_LEVELS = (-2.0, 2.0)  # log10 of shares of the spread


def agreement_under_noise(
    vectors: tuple[np.ndarray, np.ndarray],
    represent: Callable[[np.ndarray], np.ndarray],
    own: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
    agreement: float,
    n_draws: int,
    random_state: int = 0,
) -> np.ndarray:
    """Jaccard overlap of each query's neighbours in a space with those in the same space with noise,
    (n_draws, m), 0 … 1.

    Even draws add the noise to the first space, odd ones to the second. Noise comes before the projection,
    so that relative spaces get that of their anchors, too.

    Parameters
    ----------
    vectors : two arrays (n, d)
    represent : (n, d) → (t, c)
        The rows among which neighbours are searched.
    own : two arrays (m, k)
        The neighbours of the queries in each represented space, without noise.
    agreement : float
        The mean overlap that the noise is to leave.
    """
    rng = np.random.default_rng(random_state)
    some = np.sort(rng.choice(len(queries), min(_CALIBRATED_ROWS, len(queries)), replace=False))
    spaces = tuple(brought(X)[0] for X in vectors)
    spreads = tuple(float(centred(X, mean_row(X)).std(dtype=np.float64)) for X in spaces)

    def noisy_overlap(side: int, level: float, which: np.ndarray) -> np.ndarray:
        moved = rng.standard_normal(spaces[side].shape, dtype=np.float32)
        moved *= level * spreads[side]
        moved += spaces[side]
        near = neighbours_within(unit_rows(represent(moved)), queries[which], own[side].shape[1])
        return jaccard_rows(own[side][which], near)

    levels = []
    for side in (0, 1):
        low, high = _LEVELS
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if noisy_overlap(side, 10.0**middle, some).mean() > agreement:
                low = middle
            else:
                high = middle
        levels.append(10.0 ** ((low + high) / 2))
    every = np.arange(len(queries))
    return np.stack([noisy_overlap(draw % 2, levels[draw % 2], every) for draw in range(n_draws)])


@dataclass(frozen=True)
class NoiseTest:
    """Groups compared with what noise leaves, by the noise that explains each better; arrays (g,).

    Attributes
    ----------
    expected, reach : arrays
        Mean agreement under this noise, and half the width of its 95 % band.
    between : float
        Variance of group means beyond that of random groups, the larger one of the two spaces.
    """

    z: np.ndarray
    p: np.ndarray
    expected: np.ndarray
    reach: np.ndarray
    between: float
    n_permutations: int


def moved_beyond_noise(
    agreement: np.ndarray, under_noise: np.ndarray, groups: np.ndarray, random_state: int = 0
) -> NoiseTest:
    """Test the agreement (m,) of rows against `agreement_under_noise`, (n_draws, m), in which the two spaces
    take turns; groups (m,) are 0 … g − 1, −1 for none.

    Nobody knows which of two spaces has the noise, and dense groups lose more neighbours to noise in the
    space that is sharper. So each space's noise has a test of its own, with its own variance between groups,
    and a
    group has moved only if neither explains it. The mean of both expectations gave up to 11 % false findings
    at p < .05; this test gives 1 to 3 %.
    """
    shared = groups[groups >= 0]
    sizes = np.bincount(shared)
    tests, expected, variances = [], [], []
    for draws in (under_noise[::2], under_noise[1::2]):
        under = draws.mean(axis=0, dtype=np.float64)
        variances.append(_between(draws, groups))
        residual = agreement - under
        tests.append(lowest_groups(residual, groups, between=variances[-1], random_state=random_state))
        expected.append(np.bincount(shared, under[groups >= 0]) / sizes + residual.mean())
    sides, every = np.argmax([test.z for test in tests], axis=0), np.arange(len(sizes))
    return NoiseTest(
        z=np.maximum(*(test.z for test in tests)),
        p=np.maximum(*(test.p for test in tests)),
        expected=np.array(expected)[sides, every],
        reach=np.array([test.reach for test in tests])[sides, every],
        between=max(variances),
        n_permutations=tests[0].n_permutations,
    )


def _between(draws: np.ndarray, groups: np.ndarray) -> float:
    """Variance of group means under the noise of one space beyond that of random groups, 0 or more.

    Each draw is compared with the mean of the others, m of them, which raises all variances by (1 + 1/m); the
    measured agreement is compared with the mean of all draws.
    """
    belongs, sizes, n = groups[groups >= 0], np.bincount(groups[groups >= 0]), len(groups)
    excess, others = [], len(draws) - 1
    for draw in draws:
        residual = draw - (draws.sum(axis=0) - draw) / others
        means = np.bincount(belongs, residual[groups >= 0]) / sizes - residual.mean()
        random = residual.var() / sizes * (n - sizes) / max(n - 1, 1)
        excess.append((means**2 - random) / (1 + 1 / others))
    return float(max(0.0, np.mean(excess) * (1 + 1 / len(draws))))


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
    n, n_queries : int
        Its held-out rows, and those of them that were compared.
    agreement, expected : float
        Mean Jaccard overlap of its rows, and what the same noise everywhere would leave, 0 … 1.
    low, high : float
        95 % band of a random group of `n_queries` rows with this expectation.
    z, p : float
        p is corrected for the number of groups.
    examples : ids
        Its rows that lost most neighbours, compared with what was expected.
    source_anchors, target_anchors : ids
        The anchors nearest to its mean direction, nearest first; see `with_anchors`.
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
        As `NoiseTest.between`.
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
        return tuple(group for group in self.groups if group.significant)


@dataclass(frozen=True)
class DifferenceSettings:
    representation: str = setting("absolute", choices=FORMS)
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    groups: str = setting("classes", choices=GROUPS)
    n_clusters: int = setting(20, low=2)
    k: int = setting(NEIGHBOURS, low=1)
    n_queries: int = setting(4000, low=2 * LEAST_ROWS)


@dataclass(frozen=True)
class Differences(DifferenceSettings, Task[FoundDifferences]):
    """Where two spaces with the same rows differ: neighbourhood agreement by class or by cluster, tested
    against chance.

    Agreement is the Jaccard overlap of a row's k nearest neighbours in either space (mutual kNN).
    `moved_beyond_noise` tests it against `agreement_under_noise`: without this correction a dense class would
    count as moved although every row got the same noise.
    """

    kind: ClassVar[str] = "differences"
    version: ClassVar[int] = 2
    result: ClassVar[str] = "relcore.compare.differences:FoundDifferences"

    random_state: int = 0

    @property
    def title(self) -> str:
        return f"Differences, {self.representation}"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, absolute = len(spaces[0]), self.representation == "absolute"
        width = spaces[0].dimension if absolute else len(self.anchors)
        searches = (_DRAWS + 2) * min(self.n_queries, n) + 18 * 400
        return n * searches * (width + 100) / 2e10 + 26 * n * width / 1e8 + 0.3

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> FoundDifferences:
        report(0, 3, "searching the neighbours in both spaces")
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
        report(1, 3, "measuring what noise would leave")
        agreement, lists = near.overlap, (near.own, near.other)
        drawn = queries, agreement.mean(), _DRAWS, self.random_state
        under_noise = agreement_under_noise(vectors, represented, lists, *drawn)
        report(2, 3, "comparing groups with random ones")
        compared = numbers[rows[queries]]
        enough = np.flatnonzero(np.bincount(compared[compared >= 0], minlength=len(names)) >= LEAST_ROWS)
        if not len(enough):
            raise SpaceError(
                f"differences: expected a group of {LEAST_ROWS} compared rows or more, got none; compare"
                " clusters"
            )
        renumbered = np.full(len(names) + 1, -1)  # the last place is that of −1
        renumbered[enough] = np.arange(len(enough))
        compared, every = renumbered[compared], renumbered[numbers]
        test = moved_beyond_noise(agreement, under_noise, compared, self.random_state)
        expected, ids = under_noise.mean(axis=0, dtype=np.float64), pair.ids[rows[queries]]
        groups, order = [], np.argsort(test.z, kind="stable")
        for number in order.tolist():
            members = np.flatnonzero(compared == number)
            lost = members[np.argsort((agreement - expected)[members], kind="stable")[:_EXAMPLES]]
            middle, reach = float(test.expected[number]), float(test.reach[number])
            groups.append(
                MovedGroup(
                    name=names[enough[number]],
                    n=int(np.count_nonzero(every[rows] == number)),
                    n_queries=len(members),
                    agreement=float(agreement[members].mean()),
                    expected=middle,
                    low=middle - reach,
                    high=middle + reach,
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
            between=test.between,
            n_permutations=test.n_permutations,
            left_out=len(names) - len(enough),
        )

    def _representation(self, pair: Match, rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        if self.representation == "absolute":
            return lambda vectors: centred(vectors[rows], mean_row(vectors[rows]))
        projection = self.projection.projection(whiten=self.representation == "whitened")
        anchors = pair.source.rows(shared_anchors(self.anchors, pair.source, pair.target))
        return lambda vectors: projection.fit(vectors, anchors=anchors).transform(vectors)[rows]


def with_anchors(found: FoundDifferences, pair: Match, anchors: Sequence[str]) -> FoundDifferences:
    """The same differences, each group with the anchors of highest cosine to its mean direction."""
    if not len(anchors):
        return found
    nearest = {}
    for side, space in (("source", pair.source), ("target", pair.target)):
        directions = unit_rows(space.vectors, mean_row(space.vectors))
        stars = directions[space.rows(anchors)]
        centres = [directions[found.belongs == place].mean(axis=0) for place in range(len(found.groups))]
        order = np.argsort(-(np.array(centres) @ stars.T), axis=1, kind="stable")[:, :_ANCHORS]
        nearest[f"{side}_anchors"] = [tuple(anchors[place] for place in row) for row in order.tolist()]
    return replace(
        found,
        groups=tuple(
            replace(group, **{side: lists[place] for side, lists in nearest.items()})
            for place, group in enumerate(found.groups)
        ),
    )


SHOWN = 30  # groups with a name beneath that can still be read
_LONGEST = 28  # characters of a group's name on the axis


@dataclass(frozen=True, kw_only=True)
class GroupDifferences(DifferenceSettings, Recipe):
    """Classes or clusters by how much of their neighbourhoods the other space keeps."""

    figure: ClassVar[str] = "differences"

    spaces: tuple[SpaceSpec, SpaceSpec]
    digests: tuple[str, ...] = ()

    __post_init__ = check

    @property
    def task(self) -> Differences:
        settings = {item.name: getattr(self, item.name) for item in fields(DifferenceSettings)}
        if self.representation == "absolute":
            del settings["anchors"], settings["projection"]
        return Differences(**settings)

    def draw(self, result: FoundDifferences | None = None) -> Exportable:
        if result is None:
            pair = match(*load_all(self.spaces, self.digests, self.figure))
            result = with_anchors(self.task.run((pair.source, pair.target)), pair, self.anchors)
        chart = differences_lines(result, self.groups)
        drawn = chart_exportable(chart, self.to_json(), "relscope-differences")
        table, latex = partial(differences_table, result), partial(printed_table, result)
        return replace(drawn, table=table, latex=latex)


def differences_lines(found: FoundDifferences, kind: str) -> Lines:
    """Groups side by side, the one that moved most first, with 95 % bands of random groups."""
    shown = found.groups[:SHOWN]
    ends = ([getattr(group, name) for group in shown] for name in ("expected", "low", "high"))
    lines = [Line("random group of that size, 95 %", range(len(shown)), *ends)]
    for significant, name in (
        (True, f"moved more than chance, p < {short(SIGNIFICANT, 2)}"),
        (False, "not more than chance"),
    ):
        some = [place for place, group in enumerate(shown) if group.significant == significant]
        if some:
            labels = [f"{shown[place].name}: {p_told(shown[place], found)}" for place in some]
            lines.append(Line(name, some, [shown[place].agreement for place in some], labels=labels))
    names = (group.name for group in shown)
    return Lines(
        tuple(lines),
        "",
        f"neighbours kept (Jaccard, k = {found.k})",
        kind="points",
        note=summary(found, kind),
        x_names=tuple(
            name if len(name) <= _LONGEST else name[: _LONGEST - 1].rstrip(" ,") + "…" for name in names
        ),
    )


def summary(found: FoundDifferences, kind: str) -> str:
    """``"2 of 10 classes moved more than chance (p < .05, corrected for 10 classes)"``."""
    n = len(found.groups)
    text = f"{len(found.moved)} of {n} {kind} moved more than chance (p < .05, corrected for {n} {kind})"
    return f"{text}; the {SHOWN} that moved most are shown" if n > SHOWN else text


def p_told(group: MovedGroup, found: FoundDifferences) -> str:
    """``"p = .012"``, or ``"p < .001"`` at the smallest p that the permutations can give."""
    least = 1 / (1 + found.n_permutations)
    return "p < .001" if group.p <= max(least, 0.0009) else f"p = {short(group.p)}"


def differences_table(found: FoundDifferences) -> pd.DataFrame:
    """A row per group; low and high are the 95 % band of a random group, p is corrected for the number of
    groups.
    """
    names = {"name": "group", "n": "rows", "n_queries": "compared"}
    table = pd.DataFrame([vars(group) for group in found.groups]).rename(columns=names)
    for column in ("examples", "source_anchors", "target_anchors"):
        table[column] = table[column].map("; ".join)
    table.insert(9, "k", found.k)
    table.insert(10, "n", found.n)
    return table


def printed_table(found: FoundDifferences) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "group": [group.name for group in found.groups],
            "n": [group.n_queries for group in found.groups],
            f"agreement, k = {found.k}": [f"{group.agreement:.3f}" for group in found.groups],
            "chance (95 %)": [f"{group.low:.3f} to {group.high:.3f}" for group in found.groups],
            "p": ["< .001" if group.p < 0.001 else f"{group.p:.3f}" for group in found.groups],
        }
    )
