"""Three tasks: score all pairs of several spaces; find differences between groups of rows; audit anchor
pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METRICS, named_in_errors
from relcore.base.numbers import counted, in_cell, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import centred, lengths, mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task
from relcore.compare.columns import LEAST_ROWS, class_groups, clusters_of, queries_of_groups
from relcore.engine.engine import nearest_within
from relcore.figures.charts import Line, Lines, Matrices, MatrixPanel
from relcore.figures.export import Exportable, chart_exportable
from relcore.represent.similarity import FALSE_SHARE, audit_pairs, shared_anchors
from relcore.represent.translation import ProjectionSpec
from relcore.runs.store import Progress, Store, silent
from relcore.scores.cka import cosine_of_units
from relcore.scores.comparison import (
    LIVE_QUERIES,
    MeanCosine,
    Metric,
    held_out,
    score_differences,
    score_pair,
)
from relcore.scores.measures import FEATURE_ROWS
from relcore.scores.neighbours import CONVENTION_HELP, CONVENTIONS, find_neighbours, jaccard_rows
from relcore.scores.score import PAIR_PERMUTATIONS, ChanceLevel, Interval, PairScores, Score, best_by_chance
from relcore.scores.score import SAMPLED_ROWS as BEST_ROWS
from relcore.spaces.space import (
    LatentSpace,
    Match,
    distinct_names,
    known_ids,
    known_rows,
    match,
    with_common_marks,
)
from relcore.spaces.split import Split

MOST_KEPT_BYTES = 512 * 2**20  # larger results of a space are computed again for each pair
SETTINGS = ("anchors", "projection", "k", "n_queries")  # settings that some metrics do not need
Pair = tuple[int, int]


def metrics_among_spaces() -> dict[str, str]:
    """The titles, by name, of the metrics that can compare many spaces."""
    return {name: entry.title for name, entry in METRICS.items() if {"spaces", "more"} & set(entry.of)}


def used_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    need_one_of("metric", settings["metric"], metrics_among_spaces())
    needs = METRICS[settings["metric"]].needs
    return {name: value for name, value in settings.items() if name not in SETTINGS or name in needs}


@dataclass(frozen=True)
class AllPairs(Task[PairScores], kind="all-pairs", version=2):
    """Score every pair of spaces on the rows that both spaces have. Rows are paired by id; the widths may
    differ.

    A pair that cannot be compared (no shared ids, a missing anchor, too few rows) gets a reason instead of a
    score. Settings that the metric does not need (`names.Metric.needs`) must keep their defaults.
    """

    metric: str = "cka"
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = field(default_factory=ProjectionSpec)
    k: int = 10
    n_queries: int | None = None

    def __post_init__(self) -> None:
        need_one_of("metric", self.metric, metrics_among_spaces())
        if "anchors" in METRICS[self.metric].needs:
            shared_anchors(self.anchors)

    @property
    def title(self) -> str:
        return f"All pairs, {METRICS[self.metric].title}"

    @property
    def measure(self) -> Metric:
        return METRICS[self.metric].load()()

    @classmethod
    def of(cls, metric: str, **given: Any) -> AllPairs:
        """The task with only the settings that the metric needs, so that changing any other setting gives the
        same task."""
        return cls(**used_settings({"metric": metric, **given}))

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        sampled = min(max(map(len, spaces)), BEST_ROWS)
        width = len(self.anchors) or sampled
        by_chance = PAIR_PERMUTATIONS * sampled * width * len(spaces) * (2e-9 + len(spaces) * 2e-11)
        n = max(map(len, spaces))
        total = sum(space.dimension for space in spaces)
        products = n * total**2
        if "k" in METRICS[self.metric].needs:
            products = min(self.n_queries or n, n) * n * (total + 20 * len(spaces))
        elif self.anchors:
            products = n * width * (total + len(spaces) ** 2 * width)
        # These metrics draw 50 permutations of each pair, on a sample of rows.
        if "more" in METRICS[self.metric].of:
            products = 50 * len(spaces) ** 2 * min(n, FEATURE_ROWS) * (total / len(spaces)) ** 2
            by_chance = 0.0
        return float(products / 5e10 + by_chance)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> PairScores:
        """
        Raises
        ------
        SpaceError
            Fewer than two spaces; an unknown metric; no anchors for a metric that needs them.
        """
        if len(spaces) < 2:
            raise SpaceError(f"spaces: expected at least two to compare, got {len(spaces)}")
        # A space with the same ids as the first one gets its row order, so that their pair needs no copies.
        ordered = [spaces[0]]
        for space in spaces[1:]:
            rows = space.index.get_indexer(spaces[0].index)
            same_ids = len(space) == len(spaces[0]) and (rows >= 0).all()
            moved = same_ids and not np.array_equal(rows, np.arange(len(space)))
            ordered.append(space.take(rows) if moved else space)
        every = range(len(spaces))
        names = distinct_names(spaces)
        spaces = ordered
        pairs = list(combinations_with_replacement(every, 2))
        own = self._own(spaces)
        scores: dict[Pair, Score | None] = {}
        reasons: dict[Pair, str] = {}
        for done, (i, j) in enumerate(pairs):
            report(done, len(pairs), f"{names[i]} and {names[j]}" if i < j else names[i])
            try:
                both = spaces[i], spaces[j]
                pair = match(*(both if self.anchors else known_rows(both)))
                with named_in_errors(METRICS[self.metric].plugin):
                    scores[i, j] = self.measure.between(pair.source, pair.target, own, self)
                reasons[i, j] = ""
            except SpaceError as error:
                scores[i, j], reasons[i, j] = None, str(error)
        report(len(pairs), len(pairs), "")
        cells = (
            tuple(tuple(by_pair[min(i, j), max(i, j)] for j in every) for i in every)
            for by_pair in (scores, reasons)
        )
        return PairScores(tuple(names), self.metric, *cells, self._best_by_chance(spaces, scores))

    def _own(self, spaces: Sequence[LatentSpace]) -> Callable[[LatentSpace], Any]:
        """A function that computes `Metric.own` of a space. Results for whole spaces are cached for the next
        pair."""
        parts = {}
        whole = {id(space) for space in spaces}

        def own(space: LatentSpace) -> Any:
            if id(space) in parts:
                return parts[id(space)]
            part = self.measure.own(space, self)
            kept = sum(getattr(item, "nbytes", 0) for item in (*parts.values(), part))
            if id(space) in whole and kept <= MOST_KEPT_BYTES:
                parts[id(space)] = part
            return part

        return own

    def _best_by_chance(
        self, spaces: Sequence[LatentSpace], scores: dict[Pair, Score | None]
    ) -> ChanceLevel | None:
        if any(len(space.zero_rows) or not space.index.equals(spaces[0].index) for space in spaces):
            return None
        spaces = with_common_marks(spaces)
        rows = self.measure.held_out(spaces[0], self).queries(BEST_ROWS)
        forms = self.measure.forms(spaces, rows, self)
        if forms is None:
            return None
        return best_by_chance(
            {pair: score for pair, score in scores.items() if pair[0] < pair[1]}, forms[0], both_axes=forms[1]
        )


_MOST_LISTED = 30  # number of pairs in the text alternative


def pair_matrices(scores: PairScores, framed: tuple[str, ...] = ()) -> Matrices:
    """A heat map of the scores, with a frame around the pair of spaces that `framed` names."""
    names = scores.names
    every = range(len(scores.names))
    frames = ()
    if len(framed) == 2 and set(framed) <= set(names):
        i, j = map(names.index, framed)
        frames = tuple({(i, j), (j, i)})

    def text(i: int, j: int) -> str:
        score = scores.scores[i][j]
        chance = ""
        if i != j and score is not None and score.null:
            chance = f"\nchance {in_cell(score.null.mean)}"
        if score is None:
            return ""
        return in_cell(float(score)) + chance

    cells = (tuple(tuple(of(i, j) for j in every) for i in every) for of in (text, scores.describe))
    look = {"marked": tuple((i, i) for i in every), "framed": frames}
    panel = MatrixPanel("", names, names, scores.values, *cells, **look)
    pairs = list(combinations(every, 2))
    listed = "; ".join(
        f"{names[i]} and {names[j]}: {in_cell(scores.values[i, j]) or 'none'}"
        for i, j in pairs[:_MOST_LISTED]
    )
    more = ""
    if len(pairs) > _MOST_LISTED:
        more = "; and more"
    alt = f"Heat map of {scores.title}, {len(every)} by {len(every)} spaces. {listed}{more}."
    return Matrices((panel,), (0.0, 1.0), scores.title, alt)


class RelativeCosine(MeanCosine):
    """The mean cosine of paired relative rows, −1 … 1. Both spaces are relative to the same anchors; anchors
    are not scored."""

    unchanged_by = ("rotation", "scale", "shift")

    def held_out(self, space: LatentSpace, settings: AllPairs) -> Split:
        return Split.held_out(space.ids, space.rows(settings.anchors))

    def own(self, space: LatentSpace, settings: AllPairs) -> np.ndarray:
        return self._relative(space, self.held_out(space, settings).test, settings)

    def between(
        self,
        first: LatentSpace,
        second: LatentSpace,
        own: Callable[[LatentSpace], np.ndarray],
        settings: AllPairs,
    ) -> Score:
        shared_anchors(settings.anchors, first, second)
        return cosine_of_units(own(first), own(second))

    def forms(
        self, spaces: Sequence[LatentSpace], rows: np.ndarray, settings: AllPairs
    ) -> tuple[list[np.ndarray], bool]:
        return [self._relative(space, rows, settings) for space in spaces], False

    def _relative(self, space: LatentSpace, rows: np.ndarray, settings: AllPairs) -> np.ndarray:
        fitted = settings.projection.projection().fit(space.vectors, anchors=space.rows(settings.anchors))
        return unit_rows(fitted.transform(space.vectors[rows]))


# Differences: classes and clusters that keep fewer neighbours than if all rows had noise of the same size.


# A little noise changes the neighbours of rows in dense groups, so agreement differs by class even if no
# class has moved. To correct for this, noise is added until the mean agreement is as measured. This gives the
# expected agreement of each group. Repeated draws give its variation, because the rows of a small, separated
# group keep or lose their neighbours together.

_CALIBRATED_ROWS = 400
_STEPS = 9  # number of times that the range of noise levels is halved
_LEVELS = (-2.0, 2.0)  # range of noise levels: log10 of the noise's size as a share of the spread
_DRAWS = 10  # number of draws of each kind of noise
_AROUND = 0.1  # distance of the drawn noise levels from the fitted level, in log10
_MISFIT = 0.1  # standard deviation, between kinds of noise, of the log odds of a group's agreement


@dataclass(frozen=True)
class NoiseTest:
    """The result of testing g groups against noise. Each group is tested against the noise model that
    explains it best. Arrays have the shape (g,).

    Attributes
    ----------
    p : array
        The p-values, corrected for the number of groups (Bonferroni).
    expected, half_width : arrays
        The mean agreement under this noise, and half the width of its 95 % band.
    by_row : array (m,)
        The mean agreement of each query over all draws of noise.
    """

    z: np.ndarray
    p: np.ndarray
    expected: np.ndarray
    half_width: np.ndarray
    by_row: np.ndarray


def moved_beyond_noise(
    vectors: tuple[np.ndarray, np.ndarray],
    represent: Callable[[np.ndarray], np.ndarray],
    own: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
    agreement: np.ndarray,
    groups: np.ndarray,
    belongs: np.ndarray,
    random_state: int = 0,
) -> NoiseTest:
    """Test whether groups of rows keep fewer neighbours than if every row had noise of the same size.

    Either space may be the noisy one, and noise changes more neighbours in groups that are dense in the other
    space. So there are four explanations: the second space is the first with noise; the first is the second
    with noise; both are noisy copies of one space, which is the first (or the second) without its noise. Each
    is tried with three kinds of noise, because long rows may have more: noise of the same size for all rows,
    noise proportional to the length of a row, and rounding to steps proportional to the largest number of a
    row. A group counts as moved only if all explanations fail. To remove noise, the rows of each group are
    moved towards their mean until the variance has decreased by that of the noise.

    The mean agreement of a group is compared with that in `_DRAWS` draws near the fitted level of noise,
    after regression on the mean of all rows. The standard error is the largest of three: from the scatter of
    the group's draws, of all draws, and of the rows within groups. `_MISFIT` allows for a wrong kind of
    noise.

    Parameters
    ----------
    vectors : two arrays (n, d)
    represent : (n, d) → (t, c)
        A function that returns the rows among which neighbours are searched. Noise is added before, so that
        anchors have noise, too.
    own : two arrays (m, k)
        The neighbours of the queries in each represented space.
    agreement : array (m,)
        The Jaccard overlap of these neighbours in the two spaces.
    groups, belongs : arrays (m,) and (n,)
        Group of each query, 0 … g − 1 (−1 for none); group of each of the n rows, as any number.
    """
    from scipy.special import stdtr, stdtrit  # equals `scipy.stats.t`, which takes longer to import

    rng = np.random.default_rng(random_state)
    every = np.arange(len(queries))
    inside = groups >= 0
    some = np.sort(rng.choice(every, min(_CALIBRATED_ROWS, len(every)), replace=False))
    sizes = np.bincount(groups[inside])

    def means(values: np.ndarray) -> np.ndarray:
        return np.bincount(groups[inside], values[inside]) / sizes

    measured = means(agreement)
    goal = agreement.mean()
    z = np.full(len(sizes), -np.inf)
    p = 0.0
    drawn = []
    expected, half_width = np.zeros((2, len(sizes)))
    for kind, both, side in _EXPLANATIONS:
        overlap = _overlap_under_noise(
            vectors[side], kind, represent, own[side], queries, belongs if both else None, rng
        )
        low, high = _LEVELS
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if overlap(10.0**middle, some).mean() > goal:
                low = middle
            else:
                high = middle
        levels = (low + high) / 2 + np.linspace(-_AROUND, _AROUND, _DRAWS)
        draws = np.stack([overlap(10.0**level, every) for level in levels])
        drawn.append(draws.mean(axis=0))
        level = draws.mean(axis=1) - draws.mean()
        by_group = np.stack([means(draw) for draw in draws])
        squares = max(float(level @ level), 1e-12)
        apart = float(goal - draws.mean())
        slope = level @ by_group / squares
        fitted = by_group.mean(axis=0) + slope * apart
        scatter = np.square(by_group - by_group.mean(axis=0) - np.outer(level, slope)).sum(0) / (_DRAWS - 2)
        residual = agreement - drawn[-1]
        rows = np.square(residual[inside] - means(residual)[groups[inside]]).mean()
        variance = np.maximum(scatter, max((scatter * sizes).mean(), rows) / sizes)
        odds = np.clip(fitted, 0.01, 0.99)
        misfit = np.square(_MISFIT * odds * (1 - odds))
        error = np.sqrt(variance * (1 + 1 / _DRAWS + apart**2 / squares) + misfit)
        better = (measured - fitted) / error > z
        z = np.where(better, (measured - fitted) / error, z)
        expected = np.where(better, fitted, expected)
        half_width = np.where(better, error, half_width)
        p = np.minimum(1, len(sizes) * stdtr(_DRAWS - 2, z))
        if np.all(p >= SIGNIFICANT):
            break
    return NoiseTest(z, p, expected, half_width * stdtrit(_DRAWS - 2, 0.975), np.mean(drawn, axis=0))


EQUAL = "of one size"
BY_LENGTH = "by length"
ROUNDED = "rounded"
# Rounding cannot explain two noisy copies of one space, because they would have the same error.
_EXPLANATIONS = [
    *product((EQUAL, BY_LENGTH), (False, True), (0, 1)),
    *product((ROUNDED,), (False,), (0, 1)),
]


def noisy(rows: np.ndarray, kind: str, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows (n, d) with normal noise of these sizes (n, 1). If the kind is rounding, the rows rounded to
    steps of these sizes."""
    if kind == ROUNDED:
        return np.rint(rows / sizes) * sizes
    moved = rng.standard_normal(rows.shape, dtype=np.float32)
    moved *= sizes
    moved += rows
    return moved


def noise_sizes(X: np.ndarray, kind: str) -> np.ndarray:
    """The size (n, 1) of the noise of each row at level 1. Depending on the kind, it is the standard
    deviation of all centred numbers, the root mean square of the row, or the largest absolute number in the
    row."""
    if kind == EQUAL:
        return np.full((len(X), 1), centred(X, mean_row(X)).std(dtype=np.float64), dtype=np.float32)
    if kind == ROUNDED:
        sizes = np.abs(X).max(axis=1)
    else:
        sizes = lengths(X) / np.sqrt(X.shape[1])
    return np.maximum(sizes, np.finfo(np.float32).tiny)[:, None].astype(np.float32)


def _overlap_under_noise(
    X: np.ndarray,
    kind: str,
    represent: Callable[[np.ndarray], np.ndarray],
    own: np.ndarray,
    queries: np.ndarray,
    belongs: np.ndarray | None,
    rng: np.random.Generator,
) -> Callable[[float, np.ndarray], np.ndarray]:
    """A function of (level, queries) that returns the neighbour overlap of a space and a noisy copy of it.
    With `belongs`, the variance of the noise is first removed from the space, and the function compares two
    noisy copies of the result."""
    k = own.shape[1]
    sizes = noise_sizes(X, kind)

    def near(rows: np.ndarray, level: float, which: np.ndarray) -> np.ndarray:
        moved = noisy(rows, kind, np.float32(level) * sizes, rng)
        return nearest_within(unit_rows(represent(moved)), queries[which], k)

    def overlap(level: float, which: np.ndarray) -> np.ndarray:
        if belongs is None:
            return jaccard_rows(own[which], near(X, level, which))
        shared = X.copy()
        for group in np.unique(belongs[belongs >= 0]):
            members = belongs == group
            rows = X[members]
            rest = rows - rows.mean(axis=0)
            variance = np.square(rest, dtype=np.float64).sum() / max(len(rows) - 1, 1)
            noise = level**2 * float(np.square(sizes[members], dtype=np.float64).mean()) * X.shape[1]
            kept = 0
            if variance > 0:
                kept = 1 - noise / variance
            shared[members] = rows - (1 - np.sqrt(max(kept, 0))) * rest
        return jaccard_rows(near(shared, level, which), near(shared, level, which))

    return overlap


FORMS = ("absolute", "relative", "whitened")
GROUPS = ("classes", "clusters")
NEIGHBOURS = 50
SIGNIFICANT = 0.05
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
    representation: str = setting("absolute", choices=FORMS)
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
        searches = (6 * _DRAWS + 2) * min(self.n_queries, n) + 6 * _STEPS * _CALIBRATED_ROWS
        return n * searches * (width + 100) / 2e10 + 6 * (_DRAWS + _STEPS) * n * width / 1e8 + 0.3

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


SHOWN = 30  # maximum number of groups whose names can be read below the chart
_LONGEST = 28  # maximum number of letters of a group's name on the axis


@dataclass(frozen=True, kw_only=True)
class GroupDifferences(DifferenceSettings, Recipe, figure="differences"):
    """A figure of the share of neighbours that the second space keeps, for each class or cluster."""

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
            pair = match(*self.loaded())
            result = with_anchors(self.task.run((pair.source, pair.target)), pair, self.anchors)
        chart = differences_lines(result, self.groups)
        drawn = chart_exportable(chart, self.to_json(), "relscope-differences")
        table = partial(differences_table, result)
        latex = partial(printed_table, result)
        return replace(drawn, table=table, latex=latex)


def differences_lines(found: FoundDifferences, kind: str) -> Lines:
    """A chart of the groups, those that moved most first, with 95 % bands under noise of the same size for
    all rows."""
    shown = found.groups[:SHOWN]
    ends = ([getattr(group, name) for group in shown] for name in ("expected", "low", "high"))
    lines = [Line("equal noise, 95 %", range(len(shown)), *ends)]
    rest = [group for group in found.groups if group not in found.moved + found.too_small]
    for groups, name in (
        (found.moved, f"moved more than equal noise, p < {short(SIGNIFICANT, 2)}"),
        (rest, "not more than equal noise"),
        (found.too_small, f"too small to be judged with k = {found.k}"),
    ):
        if some := [place for place, group in enumerate(shown) if group in groups]:
            labels = [f"{shown[place].name}: {p_in_words(shown[place])}" for place in some]
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
    """The result in words: ``"2 of 10 classes moved more than equal noise explains (p < .05, corrected for 10
    classes)"``."""
    n = len(found.groups)
    moved = f"{len(found.moved)} of {n} {kind} moved more than equal noise explains"
    text = f"{moved} (p < .05, corrected for {n} {kind})"
    if small := len(found.too_small):
        those = f"{small} with at most {found.k + 1} rows {'is' if small == 1 else 'are'}"
        text += f"; {those} too small to be judged with k = {found.k}"
    if n > SHOWN:
        return f"{text}; the {SHOWN} that moved most are shown"
    return text


def p_in_words(group: MovedGroup) -> str:
    """The p-value in words: ``"p = .012"`` or ``"p < .001"``."""
    if group.p < 0.001:
        return "p < .001"
    return f"p = {short(group.p)}"


def differences_table(found: FoundDifferences) -> pd.DataFrame:
    """A table with one row per group. The columns low and high give the 95 % band under noise of the same
    size in all rows; p is corrected for the number of groups."""
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
            "equal noise (95 %)": [f"{group.low:.3f} to {group.high:.3f}" for group in found.groups],
            "p": ["< .001" if group.p < 0.001 else f"{group.p:.3f}" for group in found.groups],
        }
    )


# The audit: find wrong anchor pairs of two spaces, and score the spaces without them.


ALL = "all anchors"
KEPT = "without the suspects"
_FEWEST_SCORED = 5
_MOST_PRINTED = 40
_MOST_SUSPECTS = 20
_QUANTILES = np.linspace(0, 1, 201)


@dataclass(frozen=True, eq=False)
class AuditOutcome(Reported):
    """The result of `PairAudit`, which looks for wrong pairs among k anchor pairs.

    Attributes
    ----------
    agreement : array (k,)
        The agreement of each pair, −1 … 1, see `represent.similarity.Audit`.
    suspects : array (s,)
        Positions of the suspect pairs in `anchors`, least agreement first.
    mismatched : array (201,)
        The quantiles 0, .005, … 1 of the agreement of mismatched pairs.
    n_wrong, wrong_interval : float, (int, int)
        The estimated number of wrong pairs, and its 95 % interval.
    decided : bool
        False if the pairs have too little in common to decide. Then there are no suspects.
    scores : set of anchors → metric → Score
        The scores with all anchors and with all except suspects, on the same held-out rows. Empty if there
        are no held-out rows.
    differences : metric → Interval
        The change of each score when the suspects are removed, with its 95 % interval.
    """

    anchors: tuple[str, ...]
    partners: tuple[str, ...]
    agreement: np.ndarray
    suspects: np.ndarray
    mismatched: np.ndarray
    n_wrong: float
    decided: bool
    scores: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    differences: Mapping[str, Interval] = field(default_factory=dict)
    wrong_interval: tuple[int, int] = (0, 0)

    @property
    def headline(self) -> str:
        k = len(self.anchors)
        n = len(self.suspects)
        (low, high) = self.wrong_interval
        if self.decided:
            about = f"bout {round(self.n_wrong):,} of {k:,} pairs are wrong (95 %: {low:,} to {high:,})"
            if n:
                return f"{n:,} of {k:,} pairs {'is' if n < 2 else 'are'} suspect. A{about}."
            if not high:
                return f"None of {k:,} pairs is suspect."
            if round(self.n_wrong) == 0:
                return f"At most {high:,} of {k:,} pairs may be wrong (95 %); none can be named."
            return (
                f"A{about}, but every list of suspects would have too many right pairs. The pairs that agree"
                " least are listed."
            )
        return (
            f"Cannot tell: of {k:,} pairs, right ones may agree as little as mismatched ones. The spaces have"
            " too little in common, the pairs are too few, or more than 40 % of them are wrong."
        )

    def report(self, **figures: Any) -> Report:
        """A report of the suspects, and of the scores with and without them."""
        facts = {"decided": self.decided, "n_wrong": self.n_wrong, "wrong_interval": [*self.wrong_interval]}
        facts["suspects"] = [self.anchors[position] for position in self.suspects]
        facts["scores"] = {
            name: {metric: score.to_record() for metric, score in scores.items()}
            for name, scores in self.scores.items()
        }
        changes = self.differences.items()
        facts["differences"] = {metric: [one.value, one.low, one.high] for metric, one in changes}
        every = self.table()
        notes = []
        suspects = self.doubtful().head(_MOST_SUSPECTS)
        shown = [["anchor", "partner", "agreement"]]
        shown += [[row.anchor, row.partner, short(row.agreement)] for row in suspects.itertuples()]
        if (more := len(self.suspects) - len(suspects)) > 0:
            notes = [f"{more:,} more pairs are suspect; --csv lists all."]
        tables = [Table("rows", every, shown if len(suspects) else ())]
        if self.scores:
            before, *after = self.scores.values()
            rows = [["metric", "all anchors", *(["without suspects", "change, 95 %"] if after else [])]]
            for metric, score in before.items():
                cells = [METRICS[metric].title, short(score)]
                if after:
                    change = self.differences.get(metric)
                    cells += [short(after[0][metric]), change.describe() if change else "–"]
                rows.append(cells)
            n = counted(next(iter(before.values())).n, "held-out row")
            tables.append(Table(shown=rows, caption=f"Relative scores on {n}, no anchor among them."))
        return Report(self.headline, tables, facts, notes, figures)

    def doubtful(self) -> pd.DataFrame:
        """The rows of `table` for the suspects. If there are none, the pairs with the least agreement, as
        many as may be wrong."""
        high = 0
        if self.decided:
            high = self.wrong_interval[1]
        return self.table().head(len(self.suspects) or high)

    def table(self) -> pd.DataFrame:
        """A table with one row per pair, least agreement first. The column `mismatched` is the share of
        mismatched pairs that agree less than this pair."""
        share = np.interp(self.agreement, self.mismatched, _QUANTILES)
        suspect = np.isin(np.arange(len(self.anchors)), self.suspects)
        pairs = {"anchor": self.anchors, "partner": self.partners, "agreement": self.agreement}
        table = pd.DataFrame({**pairs, "mismatched": share, "suspect": suspect})
        return table.sort_values("agreement", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class PairAudit(Task[AuditOutcome], kind="audit", version=4, title="Audit of the anchors"):
    """The task that finds suspect anchor pairs by `audit_pairs`, and computes scores with and without them.
    `partners` are the ids of the anchors in the target, if they differ from those in the source."""

    anchors: tuple[str, ...]
    partners: tuple[str, ...] = ()
    false_share: float = setting(
        FALSE_SHARE,
        above=0,
        below=1,
        metavar="SHARE",
        help="Largest share of right pairs among the suspects, on average. If it cannot be guaranteed, no"
        " pair is suspect.",
    )
    projection: ProjectionSpec = ProjectionSpec()
    k: int = setting(10, label="Neighbours k", low=1, help="Number of neighbours of the scores.")
    convention: str = setting("paper", choices=CONVENTIONS, help=CONVENTION_HELP)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partners and len(self.partners) != len(self.anchors):
            raise SpaceError(
                f"partners: expected {len(self.anchors):,}, one per anchor, got {len(self.partners):,}"
            )

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """The expected time in seconds on two idle cores: twenty Procrustes fits, and two sets of scores."""
        low, high = sorted(space.dimension for space in spaces)
        return 0.2 + 5e-8 * low**2 * high + 4e-10 * len(spaces[0]) * len(self.anchors) * (low + high)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> AuditOutcome:
        """
        Raises
        ------
        SpaceError
            Anchors that a space lacks or has twice; fewer than 10 anchors.
        """
        report(0, 2, "comparing the pairs")
        source, target = spaces
        if not self.partners or self.partners == self.anchors:
            pair = match(source, target)
            source = pair.source
            target = pair.target
        anchors = shared_anchors(self.anchors, source)
        partners = shared_anchors(self.partners or self.anchors, target)
        rows = source.rows(anchors), target.rows(partners)
        directions = (
            unit_rows(space.vectors[own], mean_row(space.vectors))
            for space, own in zip((source, target), rows, strict=True)
        )
        audited = audit_pairs(*directions, self.false_share)
        report(1, 2, "scoring with and without the suspects")
        # Rows of both spaces that are in no anchor pair, but whose partners are known.
        places = target.index.get_indexer(source.index)
        taken = np.isin(np.arange(len(source)), rows[0]) | np.isin(places, rows[1])
        free = np.flatnonzero(source.index.isin(known_ids(spaces)) & ~taken)
        others = free, places[free]
        scores, differences = self._scored(source, target, rows, others, audited.suspects)
        return AuditOutcome(
            tuple(anchors),
            tuple(partners),
            audited.of_pairs,
            audited.suspects,
            np.quantile(audited.mismatched, _QUANTILES),
            audited.n_wrong,
            audited.decided,
            scores,
            differences,
            audited.wrong_interval,
        )

    def _scored(
        self,
        source: LatentSpace,
        target: LatentSpace,
        anchors: tuple[np.ndarray, np.ndarray],
        others: tuple[np.ndarray, np.ndarray],
        suspects: np.ndarray,
    ) -> tuple[dict[str, dict[str, Score]], dict[str, Interval]]:
        kept = np.setdiff1d(np.arange(len(anchors[0])), suspects)
        if len(others[0]) < _FEWEST_SCORED or not len(kept):
            return {}, {}
        split = Split.held_out(source.ids[others[0]])
        k = max(1, min(self.k, len(split.test) - (self.convention == "mutual")))
        settings = {"k": k, "convention": self.convention, "n_queries": LIVE_QUERIES}
        projection = self.projection.projection()

        def relative(chosen: np.ndarray) -> list[np.ndarray]:
            return [
                projection.fit(space.vectors, anchors=own[chosen]).transform(space.vectors[rows])
                for space, own, rows in zip((source, target), anchors, others, strict=True)
            ]

        before = relative(np.arange(len(anchors[0])))
        scores = {ALL: score_pair(*before, split, **settings)}
        if not len(suspects):
            return scores, {}
        after = relative(kept)
        scores[KEPT] = score_pair(*after, split, **settings)
        return scores, score_differences(before, after, split, **settings)


@dataclass(frozen=True, kw_only=True)
class AnchorAudit(Recipe, figure="anchor-audit"):
    """A figure of the agreement of all anchor pairs, least agreement first. Suspects are marked."""

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    audit: PairAudit

    def draw(self, result: AuditOutcome | None = None) -> Exportable:
        outcome = self.computed(result)
        drawn = chart_exportable(audit_chart(outcome), self.to_json(), "relscope-anchor-audit")
        return replace(drawn, table=outcome.table, latex=lambda: outcome.table().head(_MOST_PRINTED))


def audit_chart(outcome: AuditOutcome) -> Lines:
    """A chart of the agreement of pairs by rank. A line marks the value below which 95 % of mismatched pairs
    lie."""
    table = outcome.table()
    rank = np.arange(1, len(table) + 1)
    agreement = table.agreement.to_numpy()
    lines = []
    pairs = zip(table.anchor, table.partner, strict=True)
    names = np.array([anchor if anchor == other else f"{anchor} = {other}" for anchor, other in pairs])
    for name, is_suspect in (("suspects", True), ("other pairs", False)):
        rows = np.flatnonzero(table.suspect == is_suspect)
        if len(rows):
            lines.append(Line(name, rank[rows], agreement[rows], labels=names[rows].tolist()))
    mismatched = float(np.quantile(outcome.mismatched, 0.95))
    verdict = ": cannot tell"
    if outcome.decided:
        verdict = f", {len(outcome.suspects):,} suspects"
    return Lines(
        tuple(lines),
        "pair, by agreement",
        "agreement, −1 … 1",
        kind="points",
        baselines=(("95 % of mismatched pairs are below", mismatched),),
        note=f"Trimmed Procrustes{verdict}",
    )
