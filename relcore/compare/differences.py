"""Differences: classes and clusters that keep fewer neighbours than under noise of one size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.rows import centred, lengths, mean_row, unit_rows
from relcore.base.settings import check, setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task, load_all
from relcore.compare.columns import LEAST_ROWS, class_groups, clusters_of, queries_of_groups
from relcore.engine.nearest import nearest_within
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.represent.anchors import shared_anchors
from relcore.represent.representations import ProjectionSpec
from relcore.runs.progress import Progress, silent
from relcore.runs.store import Store
from relcore.scores.comparison import held_out
from relcore.scores.neighbours import find_neighbours, jaccard_rows
from relcore.spaces.matching import Match, match
from relcore.spaces.space import LatentSpace

# A little noise changes the neighbours of dense rows, so agreement differs by class even if no class has
# moved. So noise is added until the mean agreement is as measured. This gives the agreement expected of each
# group; repeated draws give its variation, since the rows of a small, separated group keep or lose neighbours
# together.

_CALIBRATED_ROWS = 400
_STEPS = 9  # halvings of the range of noise levels
_LEVELS = (-2.0, 2.0)  # log10 of the noise's share of the spread
_DRAWS = 10  # for each kind of noise
_AROUND = 0.1  # log10 distance of the draws' levels from the fitted level
_MISFIT = 0.1  # standard deviation of a group's log odds of agreement between kinds of noise


@dataclass(frozen=True)
class NoiseTest:
    """The test of groups against noise, each by the noise model that explains it best; arrays (g,).

    Attributes
    ----------
    p : array
        Corrected for the number of groups (Bonferroni).
    expected, half_width : arrays
        Mean agreement under this noise, and half the width of its 95 % band.
    by_row : array (m,)
        Mean agreement of each query over all draws of noise.
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
    """Test whether groups keep fewer neighbours than if every row had noise of the same size.

    Either space may have the noise, and the sharper one loses more neighbours in dense groups. So there are
    four explanations: the second space is the first with noise; the first is the second with noise; both are
    one space with noise, which is the first or the second after its noise is removed. Long rows may have more
    noise. So each explanation is tried with noise of one size, with noise proportional to a row's length, and
    with numbers rounded to steps of their row's largest one. A group counts as moved only if all explanations
    fail. The space without noise is estimated group by group: rows are drawn towards the mean of their group
    until its variance is smaller by that of the noise.

    The mean agreement of a group is compared with `_DRAWS` draws around the level that fits, regressed on the
    mean agreement of all rows. The error is the largest of three: the scatter of the group's draws, of all
    groups' draws, and of the rows within groups. It includes the effect of another kind of noise (`_MISFIT`).

    Parameters
    ----------
    vectors : two arrays (n, d)
    represent : (n, d) → (t, c)
        The rows among which neighbours are searched. Noise is added before it, so that relative
        representations include the noise of their anchors.
    own : two arrays (m, k)
        The neighbours of the queries in each represented space.
    agreement : array (m,)
        Jaccard overlap of these.
    groups, belongs : arrays (m,) and (n,)
        Group of each query, 0 … g − 1 or −1; group of each of the n rows, as any number.
    """
    from scipy.special import stdtr, stdtrit  # as `scipy.stats.t`, which takes longer to import

    rng = np.random.default_rng(random_state)
    every, inside = np.arange(len(queries)), groups >= 0
    some = np.sort(rng.choice(every, min(_CALIBRATED_ROWS, len(every)), replace=False))
    sizes = np.bincount(groups[inside])

    def means(values: np.ndarray) -> np.ndarray:
        return np.bincount(groups[inside], values[inside]) / sizes

    measured, goal, z, p, drawn = means(agreement), agreement.mean(), np.full(len(sizes), -np.inf), 0.0, []
    expected, half_width = np.zeros((2, len(sizes)))
    for kind, both, side in _EXPLANATIONS:
        overlap = _overlap_under_noise(
            vectors[side], kind, represent, own[side], queries, belongs if both else None, rng
        )
        low, high = _LEVELS
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if overlap(10.0**middle, some).mean() > goal else (low, middle)
        levels = (low + high) / 2 + np.linspace(-_AROUND, _AROUND, _DRAWS)
        draws = np.stack([overlap(10.0**level, every) for level in levels])
        drawn.append(draws.mean(axis=0))
        level = draws.mean(axis=1) - draws.mean()
        by_group = np.stack([means(draw) for draw in draws])
        squares, apart = max(float(level @ level), 1e-12), float(goal - draws.mean())
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
        expected, half_width = np.where(better, fitted, expected), np.where(better, error, half_width)
        p = np.minimum(1, len(sizes) * stdtr(_DRAWS - 2, z))
        if np.all(p >= SIGNIFICANT):
            break
    return NoiseTest(z, p, expected, half_width * stdtrit(_DRAWS - 2, 0.975), np.mean(drawn, axis=0))


EQUAL, BY_LENGTH, ROUNDED = "of one size", "by length", "rounded"
# Rounded copies have the same error, so both spaces cannot be rounded copies of one.
_EXPLANATIONS = [
    *product((EQUAL, BY_LENGTH), (False, True), (0, 1)),
    *product((ROUNDED,), (False,), (0, 1)),
]


def noisy(rows: np.ndarray, kind: str, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, d) with normal noise of these sizes (n, 1), or rounded to steps of that size."""
    if kind == ROUNDED:
        return np.rint(rows / sizes) * sizes
    moved = rng.standard_normal(rows.shape, dtype=np.float32)
    moved *= sizes
    moved += rows
    return moved


def noise_sizes(X: np.ndarray, kind: str) -> np.ndarray:
    """The size (n, 1) of noise of level 1: the standard deviation of the centred numbers, each row's standard
    deviation from 0, or each row's largest number."""
    if kind == EQUAL:
        return np.full((len(X), 1), centred(X, mean_row(X)).std(dtype=np.float64), dtype=np.float32)
    sizes = np.abs(X).max(axis=1) if kind == ROUNDED else lengths(X) / np.sqrt(X.shape[1])
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
    """A function of (level, queries) that returns the neighbour overlap of a space and a noisy copy. With
    `belongs`, it compares two noisy copies of the space without the noise's variance."""
    k, sizes = own.shape[1], noise_sizes(X, kind)

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
            kept = 1 - noise / variance if variance > 0 else 0
            shared[members] = rows - (1 - np.sqrt(max(kept, 0))) * rest
        return jaccard_rows(near(shared, level, which), near(shared, level, which))

    return overlap


FORMS = ("absolute", "relative", "whitened")
GROUPS = ("classes", "clusters")
NEIGHBOURS = 50
SIGNIFICANT = 0.05
_EXAMPLES, _ANCHORS = 6, 3


@dataclass(frozen=True)
class MovedGroup:
    """A class or a cluster, and the share of its neighbours that the other space keeps.

    Attributes
    ----------
    n, n_queries : int
        Held-out rows of the group, and those of them that were compared.
    agreement, expected : float
        Mean Jaccard overlap of the group's rows, measured and expected under the same noise for all rows, 0 …
        1.
    low, high : float
        95 % band for a group of `n_queries` rows under this noise.
    z, p : float
        p is corrected for the number of groups.
    examples : ids
        Rows of the group that lost most neighbours, relative to the expected loss.
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
    """All groups, most moved first, and the rows that were compared.

    Attributes
    ----------
    n : int
        Rows among which neighbours were searched.
    rows : array (m,)
        Numbers of the compared rows in the matched spaces, ascending.
    agreement, expected : arrays (m,)
        Expected is the mean over all draws of noise.
    belongs : array (n_pair,)
        The index in `groups` of each matched row's group, anchors included; −1 for none.
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
    left_out: int

    @property
    def moved(self) -> tuple[MovedGroup, ...]:
        return tuple(group for group in self.groups if group.significant)

    @property
    def too_small(self) -> tuple[MovedGroup, ...]:
        """Groups so small that each row's k neighbours may include the whole group, in any order."""
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
    """The task that finds where two spaces with the same rows differ: neighbourhood agreement by class or
    cluster, tested against equal noise.

    Agreement is the Jaccard overlap of a row's k nearest neighbours in either space (mutual kNN).
    `moved_beyond_noise` tests it: without this correction, dense classes seem to move when every row gets the
    same noise.
    """

    random_state: int = 0

    @property
    def title(self) -> str:
        return f"Differences, {self.representation}"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, absolute = len(spaces[0]), self.representation == "absolute"
        width = spaces[0].dimension if absolute else len(self.anchors)
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
        renumbered = np.full(len(names) + 1, -1)  # the last place serves −1
        renumbered[enough] = np.arange(len(enough))
        compared, every = renumbered[compared], renumbered[numbers]
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
        expected, ids = test.by_row, pair.ids[rows[queries]]
        groups, order = [], np.argsort(test.z, kind="stable")
        for number in order.tolist():
            members = np.flatnonzero(compared == number)
            lost = members[np.argsort((agreement - expected)[members], kind="stable")[:_EXAMPLES]]
            middle, half_width = float(test.expected[number]), float(test.half_width[number])
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
    """The same differences with the anchors of each group: those with the highest cosine to its mean
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


SHOWN = 30  # groups with a name beneath that can still be read
_LONGEST = 28  # characters of a group's name on the axis


@dataclass(frozen=True, kw_only=True)
class GroupDifferences(DifferenceSettings, Recipe, figure="differences"):
    """A figure of classes or clusters by the share of neighbours that the other space keeps."""

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
    """A chart of the groups, most moved first, with 95 % bands under noise of one size."""
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
    """``"2 of 10 classes moved more than equal noise explains (p < .05, corrected for 10 classes)"``."""
    n = len(found.groups)
    moved = f"{len(found.moved)} of {n} {kind} moved more than equal noise explains"
    text = f"{moved} (p < .05, corrected for {n} {kind})"
    if small := len(found.too_small):
        those = f"{small} with at most {found.k + 1} rows {'is' if small == 1 else 'are'}"
        text += f"; {those} too small to be judged with k = {found.k}"
    return f"{text}; the {SHOWN} that moved most are shown" if n > SHOWN else text


def p_in_words(group: MovedGroup) -> str:
    """``"p = .012"``, or ``"p < .001"``."""
    return "p < .001" if group.p < 0.001 else f"p = {short(group.p)}"


def differences_table(found: FoundDifferences) -> pd.DataFrame:
    """One row per group; low and high are the 95 % band under uniform noise, p is corrected for the
    number of groups."""
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
