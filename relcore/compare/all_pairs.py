"""A task that scores all pairs of several spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.names import METRICS
from relcore.base.numbers import in_cell
from relcore.base.plugins import named_in_errors
from relcore.base.rows import unit_rows
from relcore.catalog.task import Task
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.represent.representations import ProjectionSpec
from relcore.represent.strategies import shared_anchors
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.cka import cosine_of_units
from relcore.scores.metrics import MeanCosine, Metric
from relcore.scores.sampled import FEATURE_ROWS
from relcore.scores.score import PAIR_PERMUTATIONS, ChanceLevel, PairScores, Score, best_by_chance
from relcore.scores.score import SAMPLED_ROWS as BEST_ROWS
from relcore.spaces.matching import distinct_names, known_rows, match, with_common_marks
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split

MOST_KEPT_BYTES = 512 * 2**20  # larger results of a space are computed again for each pair
SETTINGS = ("anchors", "projection", "k", "n_queries")  # settings that some metrics do not need
_PRODUCTS_PER_SECOND = 5e10
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
    def of(cls, metric: str, **settings: Any) -> AllPairs:
        """The task with only the settings that the metric needs, so that changing any other setting gives the
        same task."""
        return cls(**used_settings({"metric": metric, **settings}))

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """The expected time, from the number of products and their measured speed on two cores."""
        seconds = self._n_products(spaces) / _PRODUCTS_PER_SECOND
        if "more" in METRICS[self.metric].of:
            return seconds
        m = len(spaces)
        sampled = min(max(map(len, spaces)), BEST_ROWS)
        width = len(self.anchors) or sampled
        # Permutations give the chance level. Their time was measured on two cores.
        permuted = PAIR_PERMUTATIONS * sampled * width * m
        return seconds + permuted * (2e-9 + m * 2e-11)

    def _n_products(self, spaces: Sequence[LatentSpace]) -> float:
        """About how many numbers are multiplied for the scores of all pairs, without those of permutations,
        except where the metric itself permutes rows."""
        metric = METRICS[self.metric]
        m = len(spaces)
        n = max(map(len, spaces))
        dimensions = sum(space.dimension for space in spaces)
        if "more" in metric.of:
            # These metrics draw 50 permutations of each pair, on a sample of rows.
            return 50 * m**2 * min(n, FEATURE_ROWS) * (dimensions / m) ** 2
        if "k" in metric.needs:
            return min(self.n_queries or n, n) * n * (dimensions + 20 * m)
        if self.anchors:
            k = len(self.anchors)
            return n * k * (dimensions + m**2 * k)
        return n * dimensions**2

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
            if same_ids and not np.array_equal(rows, np.arange(len(space))):
                space = space.take(rows)
            ordered.append(space)
        every = range(len(spaces))
        names = distinct_names(spaces)
        spaces = ordered
        pairs = list(combinations_with_replacement(every, 2))
        own = self._own(spaces)
        scores: dict[Pair, Score | None] = {}
        reasons: dict[Pair, str] = {}
        for done, (i, j) in enumerate(pairs):
            both: Sequence[LatentSpace] = (spaces[i], spaces[j])
            message = names[i]
            if i < j:
                message = f"{names[i]} and {names[j]}"
            report(done, len(pairs), message)
            try:
                if not self.anchors:
                    both = known_rows(both)
                pair = match(*both)
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
    panel = MatrixPanel(
        "", names, names, scores.values, *cells, marked=tuple((i, i) for i in every), framed=frames
    )
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
