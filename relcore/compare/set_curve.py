"""SetCurve: scores by the number of anchors for several strategies, all on the same held-out rows, as a
task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.base.errors import SpaceError, need_distinct, need_one_of, need_whole
from relcore.base.names import STRATEGIES
from relcore.represent.anchors import select_anchors
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, ProjectionSpec, score_pair
from relcore.spaces.space import LatentSpace, match
from relcore.spaces.split import Split
from relcore.tasks.task import Task

NUMBERS = (10, 20, 50, 100, 200, 300)
CURVE_METRICS = ("jaccard", "mrr", "cosine", "cka")
_FORMS = ("relative", "whitened")
_FEWEST_ROWS = 20
_MOST_ROWS = 4000


@dataclass(frozen=True, eq=False)
class CurveOutcome:
    """Scores.

    Attributes
    ----------
    numbers : tuple of int
        Those that the spaces have rows for.
    metrics : tuple of str
    values : array (strategies, numbers, states, metrics)
    n_rows : int
        Held-out rows, the same for all: no anchor of any strategy, number or state.
    """

    numbers: tuple[int, ...]
    metrics: tuple[str, ...]
    values: np.ndarray
    n_rows: int


@dataclass(frozen=True)
class SetCurve(Task[CurveOutcome]):
    """Strategies, numbers and random states, every set scored on the rows that are in none of them."""

    kind: ClassVar[str] = "anchor-curve"
    result: ClassVar[str] = "relcore.compare.set_curve:CurveOutcome"
    title: ClassVar[str] = "Scores by number of anchors"

    strategies: tuple[str, ...]
    numbers: tuple[int, ...] = NUMBERS
    n_states: int = 3
    form: str = "relative"
    projection: ProjectionSpec = ProjectionSpec()
    k: int = 10
    convention: str = "paper"

    def __post_init__(self) -> None:
        need_distinct("strategies", self.strategies, STRATEGIES)
        need_distinct("numbers", self.numbers)
        need_one_of("form", self.form, _FORMS)
        need_whole(self, n_states=1, k=1)
        if not all(type(number) is int and number > 0 for number in self.numbers):
            raise SpaceError(f"numbers: expected whole numbers above 0, got {self.numbers!r:.80}")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores: choosing anchors in all rows, scoring on at most 4,000."""
        n = len(self.strategies) * self.n_states
        slow = sum(one in ("farthest-point", "k-means") for one in self.strategies) / len(self.strategies)
        return n * (
            len(self.numbers) * 0.12 + slow * 2e-9 * len(spaces[0]) * spaces[0].dimension * sum(self.numbers)
        )

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> CurveOutcome:
        """
        Raises
        ------
        SpaceError
            Too few rows, or labels that a strategy needs.
        """
        pair = match(*spaces)
        numbers = tuple(
            sorted(number for number in self.numbers if number <= len(pair) // (4 * len(self.strategies)))
        )
        if not numbers:
            raise SpaceError(
                f"numbers: expected one of at most {len(pair) // (4 * len(self.strategies))} anchors, a"
                f" quarter of the rows shared among the strategies, got {min(self.numbers)}"
            )
        sets, total = {}, len(self.strategies) * len(numbers) * self.n_states
        for place, strategy in enumerate(self.strategies):
            for state in range(self.n_states):
                for number in numbers:
                    report(len(sets), 2 * total, f"choosing anchors, {strategy}")
                    found = select_anchors(pair.source, number, strategy, random_state=state)
                    sets[place, number, state] = pair.source.rows(found)
        taken = np.unique(np.concatenate(list(sets.values())))
        free = Split.held_out(pair.ids, taken)
        if len(free.test) < _FEWEST_ROWS:
            raise SpaceError(
                f"expected {_FEWEST_ROWS} held-out rows or more, got {len(free.test)}; take fewer states or"
                " numbers"
            )
        rows = free.queries(_MOST_ROWS)
        split = Split.held_out(pair.ids[rows])
        found = {}
        for place, anchors in sets.items():
            report(total + len(found), 2 * total, f"scoring {place[1]} anchors, {self.strategies[place[0]]}")
            fitted = self.projection.projection(whiten=self.form == "whitened")
            made = (
                fitted.fit(space.vectors, anchors=anchors).transform(space.vectors[rows])
                for space in (pair.source, pair.target)
            )
            k = max(1, min(self.k, len(rows) - 1))
            found[place] = score_pair(
                *made, split, k=k, convention=self.convention, n_queries=LIVE_QUERIES, metrics=CURVE_METRICS
            )
        metrics = tuple(next(iter(found.values())))
        values = np.array(
            [
                [
                    [
                        [float(found[place, number, state][metric]) for metric in metrics]
                        for state in range(self.n_states)
                    ]
                    for number in numbers
                ]
                for place in range(len(self.strategies))
            ]
        )
        return CurveOutcome(numbers, metrics, values, len(rows))
