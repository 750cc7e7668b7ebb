"""The charts of a migration."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.catalog.catalog import space_name
from relcore.catalog.task import SpacesRecipe
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.migrate.cheaper_index import FORM_TITLES, CheaperIndex, CheaperIndexes
from relcore.migrate.migration import Migration
from relcore.migrate.moved_threshold import MovedThreshold
from relcore.migrate.result import TITLES, MigrationResult
from relcore.migrate.similarities import SCORES
from relcore.migrate.thresholds import ThresholdChange
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
        queries, rows = zip(*price.curve, strict=True)
        line = Line(TITLES["cascade"], queries, rows, color=OPTIONS.index("cascade"))
        chart = Lines(
            (line,),
            "queries",
            "rows embedded",
            baselines=(("whole corpus", float(price.n_rows)),),
            note=f"{price.need.n_candidates:,} candidates per query; mean over orders of the log",
        )
        return chart_exportable(chart, self.to_json(), "relscope-cascade-price")


@dataclass(frozen=True, kw_only=True)
class CheaperIndexChart(SpacesRecipe, figure="cheaper-index"):
    """A figure of the scores of the options with smaller indexes, the smallest one first, beside the old
    model's index of full vectors."""

    task: CheaperIndex

    def draw(self, result: CheaperIndexes | None = None) -> Exportable:
        found = self.computed(result)
        return chart_exportable(indexes_chart(found), self.to_json(), "relscope-cheaper-index")


def indexes_chart(found: CheaperIndexes) -> Lines:
    """The scores by size of the index. Options are beside each other, so that their intervals can be seen.
    The intervals are those of the change from full vectors, around the score."""
    sizes: dict[str, float] = {}
    for one in found.rows:
        sizes.setdefault(one.form, one.row_bytes)
    forms = sorted(sizes, key=lambda form: sizes[form])
    options = list(dict.fromkeys(one.option for one in found.rows))
    step = 0.6 / len(options)
    lines = []
    for place, option in enumerate(options):
        rows = sorted(
            (one for one in found.rows if one.option == option), key=lambda one: forms.index(one.form)
        )
        shift = (place - (len(options) - 1) / 2) * step
        full = [one.score - one.change.value for one in rows]
        lines.append(
            Line(
                TITLES[option],
                [forms.index(one.form) + shift for one in rows],
                [one.score for one in rows],
                [score + one.change.low for score, one in zip(full, rows, strict=True)],
                [score + one.change.high for score, one in zip(full, rows, strict=True)],
                labels=[f"{FORM_TITLES[one.form]}, {one.row_bytes:,.0f} bytes a row" for one in rows],
                color=OPTIONS.index(option),
            )
        )
    keep = [one.score - one.change.value for one in found.rows if one.option == "keep"]
    return Lines(
        tuple(lines),
        "index, bytes of a row",
        found.metric,
        kind="points",
        baselines=tuple(("keep, full vectors", score) for score in keep[:1]),
        x_names=tuple(f"{FORM_TITLES[form].partition(',')[0]}: {sizes[form]:,.0f}" for form in forms),
    )


@dataclass(frozen=True, kw_only=True)
class ThresholdScores(SpacesRecipe, figure="threshold-change"):
    """A figure of the scores of one model: of relevant and of other pairs, if some are judged, and the
    cut-off."""

    task: ThresholdChange
    side: str = setting("new", choices=("old", "new"))

    def draw(self, result: MovedThreshold | None = None) -> Exportable:
        found = self.computed(result)
        chart = scores_chart(found, self.side)
        return chart_exportable(chart, self.to_json(), "relscope-migration-threshold", found.curve)


def scores_chart(found: MovedThreshold, side: str, cut: float | None = None) -> Lines:
    """Histograms of the scores by the old or the new model, as shares of relevant and of other pairs, with
    the threshold. `cut` replaces the new cut-off."""
    if side == "old":
        histogram = found.old_histogram
        mark = found.threshold
        name = "old threshold"
    else:
        histogram = found.new_histogram
        mark = found.new_threshold if cut is None else cut
        name = "new cut-off"
    groups = {"all pairs": histogram.others}
    if found.is_judged:
        groups = {"relevant": histogram.relevant, "others": histogram.others}
    edges = np.repeat(histogram.edges, 2).tolist()
    lines = [
        Line(f"{group} (n = {counts.sum():,})", edges, _outline(counts).tolist(), color=color)
        for color, (group, counts) in enumerate(groups.items())
    ]
    marks: tuple[tuple[str, float], ...] = ()
    if not np.isnan(mark):
        marks = ((name, mark),)
    title = f"{side} {SCORES[found.score].lower()}"
    alt = f"Histogram of the {title} of {', '.join(line.name for line in lines)}"
    text = "".join(f"; {name} {found.number(mark)}" for name, mark in marks)
    return Lines(tuple(lines), title, "share of pairs (%)", marks=marks, filled=True, alt=f"{alt}{text}.")


def _outline(counts: np.ndarray) -> np.ndarray:
    shares = 100 * counts / max(counts.sum(), 1)
    return np.concatenate([[0], np.repeat(shares, 2), [0]])


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
        if not points:
            points = [(n, option.value, option.low, option.high) for n in level]
        numbers, values, low, high = zip(*points, strict=True)
        lines.append(
            Line(
                TITLES[option.option],
                numbers,
                values,
                low,
                high,
                color=OPTIONS.index(option.option),
                dashed=option.option == "re-embed",
            )
        )
    return Lines(
        tuple(lines),
        "pairs: rows embedded by both models",
        result.metric,
        log_x=True,
        n_direct=len(result.options),
    )
