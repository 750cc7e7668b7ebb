"""Reports of the drift gate for machines: a JSON object, and Markdown for a comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from relcore.base.numbers import general, short
from relcore.base.report import Report, Table
from relcore.base.version import __version__
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, load_all
from relcore.drift.check import (
    SITUATIONS,
    TABLES,
    Check,
    Drift,
    DriftCheck,
    DriftVerdict,
    Thresholds,
    cautions,
    circumstances,
    describe,
    shares_in_words,
)
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES, Measure
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.scores.score import Z95

_MOST_ROWS = 20  # that people read, classes with an alarm first
_LEAST = 1e-3  # a threshold may be zero
_NOTED = 0.02  # share from which a sentence says that a rotation also shifts
_MEANT = {
    "shift": "of the mean row",
    "scale": "of all axes alike",
    "rotation": "or reflection",
    "remains": "no rotation explains it",
}


def report(
    drift: Drift,
    verdict: DriftVerdict,
    situations: Sequence[str] = tuple(SITUATIONS),
    figures: Mapping[str, Any] | None = None,
) -> Report:
    """A report of the verdict, the kind of change, and every check. Alarms in other situations do not count.
    Without a situation the change of model is planned, and only broken rows raise an alarm."""
    names = "widths n k n_queries only_old only_new n_zero shift scale spread turn rho chance_rho"
    names += " chance_churn churn_uncentred reciprocal_rank"
    shares, notes = shares_in_words(drift), cautions(drift, verdict, not situations)
    facts = {
        "relscope": __version__,
        "old": drift.names[0],
        "new": drift.names[1],
        "alarm": verdict.alarmed(situations),
        "decided_by": list(situations),
        "alarms": {name: verdict.alarmed([name]) for name in SITUATIONS},
        "headline": drift.headline(verdict, not situations),
        "broken": [asdict(one) for one in drift.broken],
        "cautions": notes,
        **{name: getattr(drift, name) for name in names.split()},
        "shares": shares or None,
    }
    verdicts = [
        f"{describe(drift, verdict, name)}{'' if name in situations else ' (does not decide)'}"
        for name in SITUATIONS
    ]
    rows = [["situation", "quantity", "class", "value", "noise", "threshold", ""]]
    checks = ordered(verdict)
    listed = [check for check in checks if check.alarm or not check.measure.group][:_MOST_ROWS]
    for check in listed:
        measure = check.measure
        cells = [TABLES[measure.situation].title, measure.quantity, measure.group or "all rows"]
        cells += [short(measure.value), short(measure.noise), short(check.threshold), "alarm" * check.alarm]
        rows.append(cells)
    more = len(checks) - len(listed)
    caption = circumstances(drift)
    caption += f" {more:,} more checks of classes are in the JSON report." * bool(more)
    tables = [Table("checks", verdict.table(), rows, caption=caption)]
    if any(shares.values()):
        shown = [["of the squared change", "share", ""]]
        shown += [[step, short(share), _MEANT[step]] for step, share in shares.items()]
        moved = (
            f"The mean moved by {general(drift.shift)} of the spread, scale × {general(drift.scale)}; what"
        )
        moved += f" remains is ρ = {general(drift.rho)}."
        if min(shares["shift"], shares["rotation"]) > _NOTED:
            moved += " A rotation about zero also turns the mean row, which counts as shift."
        tables.append(Table(shown=shown, caption=moved))
    elif not shares:
        notes.append(
            f"The versions have {drift.widths[0]:,} and {drift.widths[1]:,} dimensions, so their rows cannot"
            f" be subtracted. The best rotation between them leaves ρ = {short(drift.rho)}."
        )
    return Report(facts["headline"], tables, facts, [*verdicts, *notes], figures or {})


def ordered(verdict: DriftVerdict) -> list[Check]:
    return sorted(
        verdict.checks,
        key=lambda check: (
            bool(check.measure.group),
            not check.alarm,
            -check.sure / max(check.threshold, _LEAST),
        ),
    )


# The figure from its recipe: churn by class of two versions.

_MOST_CLASSES = 40
_LONGEST = 18


@dataclass(frozen=True, kw_only=True)
class DriftChart(Recipe, figure="drift"):
    """A figure of changed neighbours, of all rows and of each class, in both situations, with the noise
    level.

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

    def draw(self, result: Drift | None = None) -> Exportable:
        drift = result or self.drift.run(load_all((self.old, self.new), self.digests, self.figure))
        drawn = chart_exportable(churn_chart(drift), self.to_json(), "relscope-drift")
        verdict = drift.judged(self.thresholds)
        return replace(drawn, table=verdict.table, latex=lambda: verdict.table().head(_MOST_CLASSES))


def churn_chart(drift: Drift) -> Lines:
    new, across = (
        {
            measure.group: measure
            for measure in drift.measures
            if (measure.situation, measure.quantity) == (situation, "churn")
        }
        for situation in SITUATIONS
    )
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
    notes = (
        f"{drift.names[0]} → {drift.names[1]}, {drift.n:,} rows, {drift.n_queries:,} queries, k = {drift.k}",
        f"Of the change: {shares}" * bool(shares),
        f"{hidden:,} classes with less churn are in the table only" * bool(hidden),
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
    cut = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names]
    return [name if cut.count(name) == 1 else f"{name} {number + 1}" for number, name in enumerate(cut)]
