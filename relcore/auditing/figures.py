"""Figures of the audit of anchors from their recipes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from relcore.auditing.pair_audit import AuditOutcome, PairAudit
from relcore.charts.lines import Line, Lines
from relcore.figures.export import Exportable, lines_exportable
from relcore.names import AUDITS
from relcore.recipe import Recipe, load_all
from relcore.sources.catalog import SpaceSpec

_MOST_PRINTED = 40


@dataclass(frozen=True, kw_only=True)
class AnchorAudit(Recipe):
    """Agreement of all anchor pairs, the least first, with the suspects marked; LaTeX prints the lowest 40."""

    figure: ClassVar[str] = "anchor-audit"

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    audit: PairAudit

    def draw(self, result: AuditOutcome | None = None) -> Exportable:
        outcome = result or self.audit.run(load_all((self.source, self.target), self.digests, self.figure))
        drawn = lines_exportable(audit_chart(self.audit, outcome), self.to_json(), "relscope-anchor-audit")
        return replace(drawn, table=outcome.table, latex=lambda: outcome.table().head(_MOST_PRINTED))


def audit_chart(audit: PairAudit, outcome: AuditOutcome) -> Lines:
    """Agreement by rank, suspects apart, beside the value that 95 % of mismatched pairs lie below."""
    table = outcome.table()
    rank = np.arange(1, len(table) + 1)
    names = [one if one == other else f"{one} = {other}" for one, other in zip(table.anchor, table.partner, strict=True)]
    lines = []
    for name, marked in (("suspects", True), ("other pairs", False)):
        rows = np.flatnonzero(table.suspect == marked)
        if len(rows):
            lines.append(Line(name, rank[rows], table.agreement.to_numpy()[rows], labels=[names[row] for row in rows]))
    mismatched = float(np.quantile(outcome.mismatched, 0.95))
    note = f"{outcome.headline} {AUDITS[audit.method].title}."
    return Lines(
        tuple(lines),
        "pair, by agreement",
        "agreement, −1 … 1",
        kind="points",
        baselines=(("95 % of mismatched pairs are below", mismatched),),
        note=note,
    )
