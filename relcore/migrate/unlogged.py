"""The cost of a cascade for which no log of queries is known, and its figure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from relcore.base.numbers import counted, percent
from relcore.base.settings import check, setting
from relcore.catalog.task import Recipe
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.trial import OPTIONS

DAYS = 365
_POINTS = 80


@dataclass(frozen=True)
class CascadeEstimate(Recipe, figure="cascade-estimate"):
    """A figure of the rows that a cascade embeds in a year, by the number of queries a day alone.

    Attributes
    ----------
    n_rows : int
        Rows of the corpus.
    rows_now : int
        Rows that are embedded at the beginning, such as the pairs of the adapter.
    n_candidates : int
        Rows that each query finds.
    queries_a_day : float

    Examples
    --------
    >>> from relcore.migrate.unlogged import CascadeEstimate
    >>> estimate = CascadeEstimate(n_rows=1000, rows_now=0, n_candidates=50, queries_a_day=2)
    >>> float(estimate.most(3)), float(estimate.expected(3).round())
    (300.0, 265.0)
    """

    n_rows: int = setting(low=1)
    rows_now: int = setting(low=0)
    n_candidates: int = setting(low=1)
    queries_a_day: float = setting(low=0)

    def __post_init__(self) -> None:
        check(self)

    def most(self, days: float | np.ndarray) -> np.ndarray:
        """The number of embedded rows if no row is found twice: no log of this length needs more."""
        rows = self.rows_now + self.queries_a_day * np.asarray(days, float) * self.n_candidates
        return np.minimum(rows, self.n_rows)

    def expected(self, days: float | np.ndarray) -> np.ndarray:
        """The expected number of embedded rows if each query finds random rows. Independent queries that find
        some rows more often than others need fewer."""
        missed = max(0.0, 1 - self.n_candidates / self.n_rows)
        rest = max(0, self.n_rows - self.rows_now)
        return self.n_rows - rest * missed ** (self.queries_a_day * np.asarray(days, float))

    def describe(self) -> str:
        rows = float(self.most(DAYS))
        told = f"With {counted(round(self.queries_a_day), 'query', 'queries')} a day, a cascade"
        if rows < self.n_rows:
            share = percent(rows / self.n_rows)
            return f"{told} embeds at most {rows:,.0f} of {self.n_rows:,} rows in a year ({share})."
        days = counted(max(1, math.ceil(self.days_until_half())), "day")
        return f"{told} may embed all {self.n_rows:,} rows within a year, half of them within {days}."

    def days_until_half(self) -> float:
        """The smallest number of days after which half of the corpus can be embedded; infinite without
        queries."""
        rows = max(0.0, self.n_rows / 2 - self.rows_now)
        per_day = self.queries_a_day * self.n_candidates
        if not rows:
            return 0.0
        return rows / per_day if per_day else math.inf

    def days_shown(self) -> int:
        """The days that the figure shows: four times those until half of the corpus, from 2 to a year."""
        return int(min(DAYS, max(2.0, 4 * self.days_until_half())))

    def draw(self, result: None = None) -> Exportable:
        days = np.linspace(0, self.days_shown(), _POINTS)
        color = OPTIONS.index("cascade")
        most = self.most(days).tolist()
        expected = self.expected(days).tolist()
        lines = (
            Line("at most: no row is found twice", days.tolist(), most, color=color),
            Line("if each query finds random rows", days.tolist(), expected, color=color, dashed=True),
        )
        chart = Lines(
            lines,
            f"days, with {counted(round(self.queries_a_day), 'query', 'queries')} each",
            "rows embedded",
            baselines=(("whole corpus", float(self.n_rows)),),
            y_range=(0.0, 1.08 * self.n_rows),
        )
        return chart_exportable(chart, self.to_json(), "relscope-cascade-estimate")
