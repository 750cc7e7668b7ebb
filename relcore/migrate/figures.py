"""Figures of a migration from their recipes: the options beside curves, and scores with a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.base.names import ADAPTERS
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec
from relcore.figures.charts import ChartOption, Line, Lines, Options
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.migration import TITLES, Migration, MigrationResult
from relcore.migrate.thresholds import SYSTEMS, ThresholdChange, ThresholdOutcome, printed
from relcore.tasks.recipe import Recipe, load_all


@dataclass(frozen=True, kw_only=True)
class MigrationChart(Recipe):
    """Keep, bridge, query both models and re-embed; the spaces are those of the task."""

    figure: ClassVar[str] = "migration"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    migration: Migration

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        result = result or self.migration.run(load_all(self.spaces, self.digests, self.figure))
        return chart_exportable(chart_of(result), self.to_json(), "relscope-migration", result.table)


@dataclass(frozen=True, kw_only=True)
class ThresholdScores(Recipe):
    """Cumulative distributions of scores: old, new, and new after the map; the threshold is marked."""

    figure: ClassVar[str] = "migration-threshold"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    task: ThresholdChange

    def draw(self, result: ThresholdOutcome | None = None) -> Exportable:
        outcome = result or self.task.run(load_all(self.spaces, self.digests, self.figure))
        scores = {
            "old model": outcome.old,
            SYSTEMS[self.task.system]: outcome.new,
            "after the map": outcome.mapped,
        }
        shares = np.linspace(0, 1, len(outcome.old))
        lines = tuple(Line(name, one, shares) for name, one in scores.items())
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
            chart, self.to_json(), "relscope-migration-threshold", lambda: printed(outcome)
        )


def chart_of(result: MigrationResult) -> Options:
    """The options, and the curves of the chosen adapter; other adapters as bridges."""
    options = tuple(ChartOption(TITLES[one.option], one.value, one.low, one.high) for one in result.options)
    lines = []
    for adapter in dict.fromkeys((result.adapter, *(point.adapter for point in result.curve))):
        for option in ("bridge", "twice"):
            points = [point for point in result.curve if (point.adapter, point.option) == (adapter, option)]
            if points:
                own = adapter == result.adapter
                name = TITLES[option] if own else f"{TITLES[option]}, {ADAPTERS[adapter].title}"
                x, y = [point.n_pairs for point in points], [point.value for point in points]
                band = ([point.low for point in points], [point.high for point in points]) if own else ()
                lines.append(Line(name, x, y, *band))
    if not lines:  # no curve was measured: the options themselves, at their number of pairs
        bridged = [one for one in result.options if one.option in ("bridge", "twice")]
        lines = [
            Line(TITLES[one.option], [result.n_pairs], [one.value], [one.low], [one.high]) for one in bridged
        ]
    curves = Lines(tuple(lines), "pairs", result.metric, log_x=True)
    return Options(options, curves, TITLES[result.verdict.option])
