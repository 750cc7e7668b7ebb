"""Charts of a migration: quality by number of pairs, and scores before and after a map."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.catalog.catalog import space_name
from relcore.catalog.task import SpacesRecipe
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.evaluate import OPTIONS, CurvePoint
from relcore.migrate.migration import TITLES, Migration, MigrationResult
from relcore.migrate.thresholds import SYSTEMS, ThresholdChange, ThresholdOutcome


def threshold_table(outcome: ThresholdOutcome) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "scores": ["old model", "without the map", "with the map", "of another query, with the map"],
            "KS distance": [0.0, outcome.ks_before, outcome.ks_after, np.nan],
            "wrong decisions": [0.0, outcome.error_before, outcome.error_after, outcome.chance],
            "rows per query": [outcome.accepted_old, outcome.accepted_before, outcome.accepted_after, np.nan],
        }
    )


@dataclass(frozen=True, kw_only=True)
class MigrationChart(SpacesRecipe, figure="migration-options"):
    """A figure of the scores of the options of a migration, with their intervals.

    Examples
    --------
    >>> from relcore import Migration, MigrationChart, SpaceSpec
    >>> specs = tuple(SpaceSpec("file", f"{name}.npz") for name in ("old", "new"))
    >>> MigrationChart(spaces=specs, migration=Migration()).figure
    'migration-options'
    """

    migration: Migration

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        result = self.computed(result)
        old, new = map(space_name, self.spaces[:2])
        note = f"{old} → {new}; {len(result.queries):,} queries search {result.n_rows:,} rows"
        chart = replace(chart_of(result), note=note)
        return chart_exportable(chart, self.to_json(), "relscope-migration", result.table)


@dataclass(frozen=True, kw_only=True)
class CascadePrice(MigrationChart, figure="cascade-price"):
    """A figure of the number of rows that a cascade embeds, by the length of the log of queries."""

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        if (price := self.computed(result).price) is None:
            raise SpaceError("cascade-price: expected queries by both models, got none; add a log of them")
        line = Line(TITLES["cascade"], *zip(*price.curve, strict=True), color=OPTIONS.index("cascade"))
        note = f"{price.need.n_candidates:,} candidates per query; mean over orders of the log"
        corpus = (("whole corpus", float(price.n_rows)),)
        chart = Lines((line,), "queries", "rows embedded", baselines=corpus, note=note)
        return chart_exportable(chart, self.to_json(), "relscope-cascade-price")


@dataclass(frozen=True, kw_only=True)
class ThresholdScores(SpacesRecipe, figure="threshold-change"):
    task: ThresholdChange

    def draw(self, result: ThresholdOutcome | None = None) -> Exportable:
        outcome = self.computed(result)
        shares = np.linspace(0, 1, len(outcome.old))
        lines = (  # lines have the colours of their options
            Line("old model", outcome.old, shares, color=0),
            Line(SYSTEMS[self.task.system], outcome.new, shares, color=OPTIONS.index(self.task.system)),
            Line("after the map", outcome.mapped, shares, color=len(OPTIONS)),
        )
        chart = Lines(
            lines,
            "similarity, cosine",
            "share of scores below",
            marks=(("old threshold", outcome.threshold), ("new threshold", min(outcome.new_threshold, 1.0))),
            note=(
                f"{outcome.n_queries:,} held-out queries; KS distance {short(outcome.ks_before, 2)} before, "
                f"{short(outcome.ks_after, 2)} after"
            ),
        )
        return chart_exportable(
            chart, self.to_json(), "relscope-migration-threshold", lambda: threshold_table(outcome)
        )


def chart_of(result: MigrationResult) -> Lines:
    """The chart of score against number of pairs. Each option has a curve, or a level, in its own colour."""
    curve, m = (
        pd.DataFrame(map(vars, result.curve), columns=[*CurvePoint.__dataclass_fields__]),
        result.n_pairs,
    )
    measured = [point.n_pairs for point in result.curve]
    reach = sorted({min(measured, default=m), max(measured, default=m)})
    parts = dict(list(curve.groupby(["adapter", "option"], sort=False)))
    lines = []
    for option in result.options:
        ends = (option.value, option.low, option.high)
        part = parts.get((result.adapter, option.option))
        values = (
            (reach, *([end] * len(reach) for end in ends)) if part is None else (part.n_pairs, part.value)
        )
        values += () if part is None else (part.low, part.high)
        look = {"color": OPTIONS.index(option.option), "dashed": option.option == "re-embed"}
        lines.append(Line(TITLES[option.option], *values, **look))
    return Lines(
        tuple(lines),
        "pairs: rows embedded by both models",
        result.metric,
        log_x=True,
        n_direct=len(result.options),
    )
