"""Figures of the judgement of anchors from their recipes: audit, influence, scores by their number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from relcore.base.names import AUDITS, METRICS
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec
from relcore.charts.lines import Line, Lines
from relcore.compare.audit import AuditOutcome, PairAudit
from relcore.compare.influence import AnchorInfluence, InfluenceOutcome
from relcore.compare.set_curve import CurveOutcome, SetCurve
from relcore.figures.export import Exportable, lines_exportable
from relcore.tasks.recipe import Recipe, load_all

_MOST_PRINTED = 40


@dataclass(frozen=True, kw_only=True)
class AnchorAudit(Recipe):
    """Agreement of all anchor pairs, the least first, with the suspects marked; LaTeX prints the lowest
    40.
    """

    figure: ClassVar[str] = "anchor-audit"

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    audit: PairAudit

    def draw(self, result: AuditOutcome | None = None) -> Exportable:
        outcome = result or self.audit.run(load_all((self.source, self.target), self.digests, self.figure))
        drawn = lines_exportable(audit_chart(self.audit, outcome), self.to_json(), "relscope-anchor-audit")
        return replace(drawn, table=outcome.table, latex=lambda: outcome.table().head(_MOST_PRINTED))


@dataclass(frozen=True, kw_only=True)
class InfluenceChart(Recipe):
    """What each anchor adds to CKA and to the mean cosine, the one that harms CKA most first; the table
    has all scores.
    """

    figure: ClassVar[str] = "anchor-influence"

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    influence: AnchorInfluence

    def draw(self, result: InfluenceOutcome | None = None) -> Exportable:
        outcome = result or self.influence.run(
            load_all((self.source, self.target), self.digests, self.figure)
        )
        table = outcome.table()
        rank, names = np.arange(1, len(table) + 1), list(table.anchor)
        lines = [Line(name, rank, table[name], labels=names) for name in ("linear CKA", "cosine")]
        note = f"With the anchor less without it\n{counted(outcome.n_choosing, 'held-out row')}"
        chart = Lines(
            tuple(lines),
            "anchor, by its effect on CKA",
            "effect on the score",
            kind="points",
            baselines=(("no effect", 0.0),),
            note=note,
        )
        drawn = lines_exportable(chart, self.to_json(), "relscope-anchor-influence")
        return replace(drawn, table=outcome.table, latex=lambda: outcome.table().head(_MOST_PRINTED))


@dataclass(frozen=True, kw_only=True)
class SetCurveChart(Recipe):
    """One score by the number of anchors, one line per strategy, with the range over random states."""

    figure: ClassVar[str] = "anchor-curve"

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    curve: SetCurve
    metric: str = "mrr"

    def draw(self, result: CurveOutcome | None = None) -> Exportable:
        outcome = result or self.curve.run(load_all((self.source, self.target), self.digests, self.figure))
        metric = self.metric if self.metric in outcome.metrics else outcome.metrics[0]
        values = outcome.values[:, :, :, outcome.metrics.index(metric)]
        x = list(outcome.numbers)
        lines = [
            Line(name, x, one.mean(axis=1), one.min(axis=1), one.max(axis=1))
            for name, one in zip(self.curve.strategies, values, strict=True)
        ]
        drawn = f"mean and range of {values.shape[2]} random states"
        note = f"{counted(outcome.n_rows, 'held-out row')} that are no anchor of any line; {drawn}"
        chart = Lines(tuple(lines), "number of anchors", METRICS[metric].title, log_x=True, note=note)
        return lines_exportable(chart, self.to_json(), "relscope-anchor-curve")


def audit_chart(audit: PairAudit, outcome: AuditOutcome) -> Lines:
    """Agreement by rank, suspects apart, beside the value that 95 % of mismatched pairs lie below."""
    table = outcome.table()
    rank = np.arange(1, len(table) + 1)
    names = [
        one if one == other else f"{one} = {other}"
        for one, other in zip(table.anchor, table.partner, strict=True)
    ]
    lines = []
    for name, marked in (("suspects", True), ("other pairs", False)):
        rows = np.flatnonzero(table.suspect == marked)
        if len(rows):
            lines.append(
                Line(name, rank[rows], table.agreement.to_numpy()[rows], labels=[names[row] for row in rows])
            )
    mismatched = float(np.quantile(outcome.mismatched, 0.95))
    note = AUDITS[audit.method].title + (
        f", {len(outcome.suspects):,} suspects" if outcome.decided else ": cannot tell"
    )
    return Lines(
        tuple(lines),
        "pair, by agreement",
        "agreement, −1 … 1",
        kind="points",
        baselines=(("95 % of mismatched pairs are below", mismatched),),
        note=note,
    )
