"""PairAudit: find wrong anchor pairs of two spaces, and score the spaces without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import AUDITS, METRICS
from relcore.base.numbers import counted, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import mean_row, unit_rows
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task, load_all
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.represent.anchors import FALSE_SHARE, audit_pairs, shared_anchors
from relcore.represent.representations import ProjectionSpec
from relcore.runs.progress import Progress, silent
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, score_differences, score_pair
from relcore.scores.neighbours import CONVENTION_HELP, CONVENTIONS
from relcore.scores.score import Interval, Score
from relcore.spaces.matching import known_ids, match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split

ALL, KEPT = "all anchors", "without the suspects"
_FEWEST_SCORED = 5
_MOST_PRINTED, _MOST_LISTED = 40, 20
_QUANTILES = np.linspace(0, 1, 201)


@dataclass(frozen=True, eq=False)
class AuditOutcome(Reported):
    """The audit of k anchor pairs.

    Attributes
    ----------
    agreement : array (k,)
        −1 … 1, see `represent.anchors.Audit`.
    suspects : array (s,)
        Positions in `anchors`, least agreement first.
    mismatched : array (201,)
        Quantiles 0, .005, … 1 of the agreement of mismatched pairs.
    n_wrong, wrong_interval : float, (int, int)
        Estimated number of wrong pairs, and its 95 % interval.
    decided : bool
        False if the pairs have too little in common to decide; then there are no suspects.
    scores : set of anchors → metric → Score
        For all anchors and for those without suspects, on the same held-out rows; empty if there are none.
    differences : metric → Interval
        The change of each score when suspects are removed, with 95 % intervals.
    """

    anchors: tuple[str, ...]
    partners: tuple[str, ...]
    agreement: np.ndarray
    suspects: np.ndarray
    mismatched: np.ndarray
    n_wrong: float
    decided: bool
    scores: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    differences: Mapping[str, Interval] = field(default_factory=dict)
    wrong_interval: tuple[int, int] = (0, 0)

    @property
    def headline(self) -> str:
        k, n, (low, high) = len(self.anchors), len(self.suspects), self.wrong_interval
        if self.decided:
            about = f"bout {round(self.n_wrong):,} of {k:,} pairs are wrong (95 %: {low:,} to {high:,})"
            if n:
                return f"{n:,} of {k:,} pairs {'is' if n < 2 else 'are'} suspect. A{about}."
            if not high:
                return f"None of {k:,} pairs is suspect."
            if round(self.n_wrong) == 0:
                return f"At most {high:,} of {k:,} pairs may be wrong (95 %); none can be named."
            return (
                f"A{about}, but none can be named without too many right ones among them. Those that agree"
                " least are listed."
            )
        return (
            f"Cannot tell: of {k:,} pairs, right ones may agree as little as mismatched ones. The spaces have"
            " too little in common, the pairs are too few, or more than 40 % of them are wrong."
        )

    def report(self, **figures: Any) -> Report:
        """The suspects, and the scores with and without them."""
        facts = {"decided": self.decided, "n_wrong": self.n_wrong, "wrong_interval": [*self.wrong_interval]}
        facts["suspects"] = [self.anchors[position] for position in self.suspects]
        facts["scores"] = {
            name: {metric: score.to_record() for metric, score in scores.items()}
            for name, scores in self.scores.items()
        }
        changes = self.differences.items()
        facts["differences"] = {metric: [one.value, one.low, one.high] for metric, one in changes}
        every, notes = self.table(), []
        suspects = self.doubtful().head(_MOST_LISTED)
        shown = [["anchor", "partner", "agreement"]]
        shown += [[row.anchor, row.partner, short(row.agreement)] for row in suspects.itertuples()]
        if (more := len(self.suspects) - len(suspects)) > 0:
            notes = [f"{more:,} more pairs are suspect; --csv lists all."]
        tables = [Table("rows", every, shown if len(suspects) else ())]
        if self.scores:
            before, *after = self.scores.values()
            rows = [["metric", "all anchors", *(["without suspects", "change, 95 %"] if after else [])]]
            for metric, score in before.items():
                cells = [METRICS[metric].title, short(score)]
                if after:
                    change = self.differences.get(metric)
                    cells += [short(after[0][metric]), change.describe() if change else "–"]
                rows.append(cells)
            n = counted(next(iter(before.values())).n, "held-out row")
            tables.append(Table(shown=rows, caption=f"Relative scores on {n}, no anchor among them."))
        return Report(self.headline, tables, facts, notes, figures)

    def doubtful(self) -> pd.DataFrame:
        """The suspects' rows of the table; without suspects, as many least agreeing pairs as may be wrong."""
        high = self.wrong_interval[1] if self.decided else 0
        return self.table().head(len(self.suspects) or high)

    def table(self) -> pd.DataFrame:
        """One row per pair, least agreement first; `mismatched` is the share of mismatched pairs that agree
        less."""
        share = np.interp(self.agreement, self.mismatched, _QUANTILES)
        suspect = np.isin(np.arange(len(self.anchors)), self.suspects)
        pairs = {"anchor": self.anchors, "partner": self.partners, "agreement": self.agreement}
        table = pd.DataFrame({**pairs, "mismatched": share, "suspect": suspect})
        return table.sort_values("agreement", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class PairAudit(Task[AuditOutcome], kind="audit", version=4, title="Audit of the anchors"):
    """The task of `audit_pairs` of anchors, with scores with and without the suspects; `partners` are the
    anchors' ids in the target if these differ."""

    anchors: tuple[str, ...]
    partners: tuple[str, ...] = ()
    method: str = setting("procrustes", choices=AUDITS, help="How the agreement of a pair is measured.")
    false_share: float = setting(
        FALSE_SHARE,
        above=0,
        below=1,
        metavar="SHARE",
        help="Largest share of the suspects that may be right, on average. If it cannot be guaranteed,"
        " nothing is suspect.",
    )
    projection: ProjectionSpec = ProjectionSpec()
    k: int = setting(10, label="Neighbours k", low=1, help="Number of neighbours of the scores.")
    convention: str = setting("paper", choices=CONVENTIONS, help=CONVENTION_HELP)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partners and len(self.partners) != len(self.anchors):
            raise SpaceError(
                f"partners: expected {len(self.anchors):,}, one per anchor, got {len(self.partners):,}"
            )

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """Expected seconds on two idle cores: twenty Procrustes fits, and two sets of scores."""
        low, high = sorted(space.dimension for space in spaces)
        return 0.2 + 5e-8 * low**2 * high + 4e-10 * len(spaces[0]) * len(self.anchors) * (low + high)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> AuditOutcome:
        """
        Raises
        ------
        SpaceError
            Anchors that a space lacks or has twice, fewer than 10 of them.
        """
        report(0, 2, "comparing the pairs")
        source, target = spaces
        if not self.partners or self.partners == self.anchors:
            pair = match(source, target)
            source, target = pair.source, pair.target
        anchors = shared_anchors(self.anchors, source)
        partners = shared_anchors(self.partners or self.anchors, target)
        rows = source.rows(anchors), target.rows(partners)
        directions = _directions(source, target, rows)
        audited = audit_pairs(*directions, self.method, self.false_share)
        report(1, 2, "scoring with and without the suspects")
        # Rows of either space that are in no pair, but whose partners are known.
        places = target.index.get_indexer(source.index)
        taken = np.isin(np.arange(len(source)), rows[0]) | np.isin(places, rows[1])
        free = np.flatnonzero(source.index.isin(known_ids(spaces)) & ~taken)
        others = free, places[free]
        scores, differences = self._scored(source, target, rows, others, audited.suspects)
        return AuditOutcome(
            tuple(anchors),
            tuple(partners),
            audited.of_pairs,
            audited.suspects,
            np.quantile(audited.mismatched, _QUANTILES),
            audited.n_wrong,
            audited.decided,
            scores,
            differences,
            audited.wrong_interval,
        )

    def _scored(
        self,
        source: LatentSpace,
        target: LatentSpace,
        anchors: tuple[np.ndarray, np.ndarray],
        others: tuple[np.ndarray, np.ndarray],
        suspects: np.ndarray,
    ) -> tuple[dict[str, dict[str, Score]], dict[str, Interval]]:
        kept = np.setdiff1d(np.arange(len(anchors[0])), suspects)
        if len(others[0]) < _FEWEST_SCORED or not len(kept):
            return {}, {}
        split = Split.held_out(source.ids[others[0]])
        k = max(1, min(self.k, len(split.test) - (self.convention == "mutual")))
        settings = {"k": k, "convention": self.convention, "n_queries": LIVE_QUERIES}
        projection = self.projection.projection()

        def relative(chosen: np.ndarray) -> list[np.ndarray]:
            return [
                projection.fit(space.vectors, anchors=own[chosen]).transform(space.vectors[rows])
                for space, own, rows in zip((source, target), anchors, others, strict=True)
            ]

        before = relative(np.arange(len(anchors[0])))
        scores = {ALL: score_pair(*before, split, **settings)}
        if not len(suspects):
            return scores, {}
        after = relative(kept)
        scores[KEPT] = score_pair(*after, split, **settings)
        return scores, score_differences(before, after, split, **settings)


def _directions(source: LatentSpace, target: LatentSpace, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [
        unit_rows(space.vectors[own], mean_row(space.vectors))
        for space, own in zip((source, target), rows, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class AnchorAudit(Recipe, figure="anchor-audit"):
    """A figure of the agreement of all anchor pairs, least first, with the suspects marked."""

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    audit: PairAudit

    def draw(self, result: AuditOutcome | None = None) -> Exportable:
        outcome = result or self.audit.run(load_all((self.source, self.target), self.digests, self.figure))
        drawn = chart_exportable(audit_chart(self.audit, outcome), self.to_json(), "relscope-anchor-audit")
        return replace(drawn, table=outcome.table, latex=lambda: outcome.table().head(_MOST_PRINTED))


def audit_chart(audit: PairAudit, outcome: AuditOutcome) -> Lines:
    """A chart of agreement by rank, with the value below which 95 % of mismatched pairs lie."""
    table = outcome.table()
    rank, agreement, lines = np.arange(1, len(table) + 1), table.agreement.to_numpy(), []
    pairs = zip(table.anchor, table.partner, strict=True)
    names = np.array([anchor if anchor == other else f"{anchor} = {other}" for anchor, other in pairs])
    for name, marked in (("suspects", True), ("other pairs", False)):
        rows = np.flatnonzero(table.suspect == marked)
        if len(rows):
            lines.append(Line(name, rank[rows], agreement[rows], labels=names[rows].tolist()))
    mismatched = float(np.quantile(outcome.mismatched, 0.95))
    verdict = f", {len(outcome.suspects):,} suspects" if outcome.decided else ": cannot tell"
    return Lines(
        tuple(lines),
        "pair, by agreement",
        "agreement, −1 … 1",
        kind="points",
        baselines=(("95 % of mismatched pairs are below", mismatched),),
        note=AUDITS[audit.method].title + verdict,
    )
