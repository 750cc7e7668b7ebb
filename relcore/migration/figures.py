"""The figure of a migration from its recipe: the four options with intervals beside curves over the number of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relcore.charts.lines import Line, Lines
from relcore.charts.options import Option, Options
from relcore.figures.export import Exportable, options_exportable
from relcore.migration.migrate import Migration
from relcore.migration.result import MigrationResult
from relcore.migration.verdict import TITLES
from relcore.names import ADAPTERS
from relcore.recipe import Recipe, load_all
from relcore.sources.catalog import SpaceSpec


@dataclass(frozen=True, kw_only=True)
class MigrationChart(Recipe):
    """Keep, bridge, ask twice and re-embed; the spaces are those of the task."""

    figure: ClassVar[str] = "migration"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    migration: Migration

    def draw(self, result: MigrationResult | None = None) -> Exportable:
        found = result or self.migration.run(load_all(self.spaces, self.digests, self.figure))
        return options_exportable(chart_of(found), self.to_json(), "relscope-migration", found.table)


def chart_of(result: MigrationResult) -> Options:
    """The options, and the curves of the chosen adapter; other adapters as bridges."""
    options = tuple(Option(TITLES[one.option], one.value, one.low, one.high) for one in result.options)
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
    curves = Lines(tuple(lines), "pairs", result.metric, log_x=True)
    return Options(options, curves, TITLES[result.verdict.option])
