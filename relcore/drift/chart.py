"""The chart of a drift: churn of each row, or of each class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relcore.base.kinds import need_kinds
from relcore.base.numbers import short
from relcore.base.text import shortened
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.drift.check import Drift, DriftCheck, shares_in_words
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES, Measure
from relcore.drift.thresholds import Thresholds
from relcore.drift.verdict import SITUATIONS
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.scores.score import Z95

_MOST_CLASSES = 40
_LONGEST = 18


@dataclass(frozen=True, kw_only=True)
class DriftChart(Recipe, figure="drift"):
    """A figure that shows, over all rows and within each class, the share of neighbours that change in both
    situations, beside its noise level.

    Examples
    --------
    >>> from relcore import DriftChart, SpaceSpec
    >>> first, second = (SpaceSpec("file", name) for name in ("old.npy", "new.npy"))
    >>> DriftChart(old=first, new=second).figure
    'drift'
    """

    old: SpaceSpec
    new: SpaceSpec
    digests: tuple[str, ...] = ()
    drift: DriftCheck = DriftCheck()
    thresholds: Thresholds = Thresholds()

    def __post_init__(self) -> None:
        need_kinds(self)

    def draw(self, result: Drift | None = None) -> Exportable:
        drift = self.computed(result)
        drawn = chart_exportable(churn_chart(drift), self.to_json(), "relscope-drift")
        verdict = drift.judged(self.thresholds)
        return replace(drawn, table=verdict.table, latex=lambda: verdict.table().head(_MOST_CLASSES))


def churn_chart(drift: Drift) -> Lines:
    churns = [measure for measure in drift.measures if measure.quantity == "churn"]
    new = {measure.group: measure for measure in churns if measure.situation == EVERYTHING_NEW}
    across = {measure.group: measure for measure in churns if measure.situation == NEW_QUERIES}
    classes = sorted((group for group in new if group), key=lambda group: -new[group].value)[:_MOST_CLASSES]
    groups = ["", *classes]
    lines = [_points(SITUATIONS[EVERYTHING_NEW].title, [new[group] for group in groups], -0.12)]
    if across:
        lines.append(_points(SITUATIONS[NEW_QUERIES].title, [across[group] for group in groups], 0.12))
    noise = [new[group].noise for group in groups]
    lines.append(
        Line("noise level", np.arange(len(groups)), noise, labels=[group or "all rows" for group in groups])
    )
    shares = ", ".join(f"{step} {short(share)}" for step, share in shares_in_words(drift).items())
    hidden = sum(bool(group) for group in new) - len(classes)
    of_change = ""
    if shares:
        of_change = f"Of the change: {shares}"
    hidden_classes = ""
    if hidden:
        hidden_classes = f"{hidden:,} classes that changed less are in the table only"
    notes = (
        f"{drift.names[0]} → {drift.names[1]}, {drift.n:,} rows, {drift.n_queries:,} queries, k = {drift.k}",
        of_change,
        hidden_classes,
    )
    return Lines(
        tuple(lines),
        "",
        "share of neighbours that changed",
        kind="points",
        baselines=(("chance level", drift.chance_churn),),
        note="\n".join(filter(None, notes)),
        y_range=(-0.03, 1.05),
        x_names=tuple(_distinct(["all rows", *classes])),
    )


def _points(name: str, measures: list[Measure], beside: float) -> Line:
    values = np.array([measure.value for measure in measures])
    reach = Z95 * np.array([measure.error for measure in measures])
    labels = [measure.group or "all rows" for measure in measures]
    place = np.arange(len(measures)) + beside
    return Line(name, place, values, np.maximum(values - reach, 0), np.minimum(values + reach, 1), labels)


def _distinct(names: list[str] | tuple[str, ...]) -> list[str]:
    """The names, cut to `_LONGEST` characters. Names that are then equal get numbers."""
    cut = [shortened(name, _LONGEST) for name in names]
    distinct = []
    for number, name in enumerate(cut, 1):
        if cut.count(name) > 1:
            name = f"{name} {number}"
        distinct.append(name)
    return distinct
