"""Charts of a migration: quality over the number of pairs, and scores before and after a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.names import ADAPTERS
from relcore.base.numbers import short
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, load_all
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.evaluate import (
    CurvePoint,
)
from relcore.migrate.migration import TITLES, Migration, MigrationResult
from relcore.migrate.thresholds import SYSTEMS, ThresholdChange, ThresholdOutcome


def printed(outcome: ThresholdOutcome) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "scores": ["old model", "without the map", "with the map", "of another query, with the map"],
            "KS distance": [0.0, outcome.ks_before, outcome.ks_after, np.nan],
            "wrong decisions": [0.0, outcome.error_before, outcome.error_after, outcome.chance],
            "rows per query": [outcome.accepted_old, outcome.accepted_before, outcome.accepted_after, np.nan],
        }
    )


@dataclass(frozen=True, kw_only=True)
class MigrationChart(Recipe):
    """The scores of the options of a migration, with their intervals, as a chart.

    Examples
    --------
    >>> from relcore import Migration, MigrationChart, SpaceSpec
    >>> specs = tuple(SpaceSpec("file", f"{name}.npz") for name in ("old", "new"))
    >>> MigrationChart(spaces=specs, migration=Migration()).figure
    'migration-options'
    """

    figure: ClassVar[str] = "migration-options"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    migration: Migration

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        result = result or self.migration.run(load_all(self.spaces, self.digests, self.figure))
        return chart_exportable(chart_of(result), self.to_json(), "relscope-migration", result.table)


@dataclass(frozen=True, kw_only=True)
class ThresholdScores(Recipe):
    figure: ClassVar[str] = "threshold-change"

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
        lines = tuple(Line(name, values, shares) for name, values in scores.items())
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


def chart_of(result: MigrationResult) -> Lines:
    """The chart of score against number of pairs: curves of the chosen adapter, other adapters as bridges,
    and levels of the other options.
    """
    lines, curve = [], pd.DataFrame(map(vars, result.curve), columns=[*CurvePoint.__dataclass_fields__])
    for (adapter, option), part in curve.groupby(["adapter", "option"], sort=False):
        own = adapter == result.adapter
        name = TITLES[option] if own else f"{TITLES[option]}, {ADAPTERS[adapter].title}"
        lines.append(Line(name, part.n_pairs, part.value, *((part.low, part.high) if own else ())))
    curved, measured = {line.name for line in lines}, [point.n_pairs for point in result.curve]
    reach = sorted({min(measured, default=result.n_pairs), max(measured, default=result.n_pairs)})
    for option in result.options:
        if (name := TITLES[option.option]) not in curved:
            ends = ([end] * len(reach) for end in (option.value, option.low, option.high))
            lines.append(Line(name, reach, *ends))
    return Lines(tuple(lines), "pairs", result.metric, log_x=True)
