"""The charts of a migration."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.catalog.catalog import space_name
from relcore.catalog.task import SpacesRecipe
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.migration import Migration
from relcore.migrate.result import TITLES, MigrationResult
from relcore.migrate.thresholds import SYSTEMS, ThresholdChange, ThresholdOutcome, threshold_table
from relcore.migrate.trial import OPTIONS


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
    """A figure of the number of rows that a cascade embeds, by the number of queries in the log."""

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        if (price := self.computed(result).price) is None:
            raise SpaceError("cascade-price: expected queries embedded by both models, got none; add a log")
        line = Line(TITLES["cascade"], *zip(*price.curve, strict=True), color=OPTIONS.index("cascade"))
        chart = Lines(
            (line,),
            "queries",
            "rows embedded",
            baselines=(("whole corpus", float(price.n_rows)),),
            note=f"{price.need.n_candidates:,} candidates per query; mean over orders of the log",
        )
        return chart_exportable(chart, self.to_json(), "relscope-cascade-price")


@dataclass(frozen=True, kw_only=True)
class ThresholdScores(SpacesRecipe, figure="threshold-change"):
    task: ThresholdChange

    def draw(self, result: ThresholdOutcome | None = None) -> Exportable:
        outcome = self.computed(result)
        shares = np.linspace(0, 1, len(outcome.old))
        lines = (  # a line has the colour of its option
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
    """The chart of score by number of pairs. An option without a measured learning curve has a horizontal
    line."""
    measured = [point.n_pairs for point in result.curve] or [result.n_pairs]
    lines = []
    level = sorted({min(measured), max(measured)})
    for option in result.options:
        points = [
            (point.n_pairs, point.value, point.low, point.high)
            for point in result.curve
            if (point.adapter, point.option) == (result.adapter, option.option)
        ]
        points = points or [(n, option.value, option.low, option.high) for n in level]
        look = {"color": OPTIONS.index(option.option), "dashed": option.option == "re-embed"}
        lines.append(Line(TITLES[option.option], *zip(*points, strict=True), **look))
    return Lines(
        tuple(lines),
        "pairs: rows embedded by both models",
        result.metric,
        log_x=True,
        n_direct=len(result.options),
    )
