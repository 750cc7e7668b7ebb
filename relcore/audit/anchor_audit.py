"""A task that audits anchor pairs, and scores the spaces without the wrong ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.base.numbers import counted, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import mean_row, unit_rows
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task
from relcore.engine.nearest import largest_k
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.represent.pair_audit import FALSE_SHARE, audit_pairs
from relcore.represent.representations import ProjectionSpec
from relcore.represent.strategies import shared_anchors
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.comparison import score_differences, score_pair
from relcore.scores.neighbours import CONVENTION_HELP, CONVENTIONS
from relcore.scores.score import Interval, Score
from relcore.scores.score_report import LIVE_QUERIES
from relcore.spaces.matching import known_ids, match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split

# The audit: find wrong anchor pairs of two spaces, and score the spaces without them.

ALL = "all anchors"
KEPT = "without the suspects"
_FEWEST_SCORED = 5
_MOST_PRINTED = 40
_MOST_SUSPECTS = 20
_QUANTILES = np.linspace(0, 1, 201)


@dataclass(frozen=True, eq=False, repr=False)
class AuditOutcome(Reported):
    """The result of `PairAudit`, which looks for wrong pairs among k anchor pairs.

    Attributes
    ----------
    agreement : array (k,)
        The agreement of each pair, −1 … 1, see `represent.similarity.Audit`.
    suspects : array (s,)
        Positions of the suspect pairs in `anchors`, least agreement first.
    mismatched : array (201,)
        The quantiles 0, .005, … 1 of the agreement of mismatched pairs.
    n_wrong, wrong_interval : float, (int, int)
        The estimated number of wrong pairs, and its 95 % interval.
    decided : bool
        False if the pairs have too little in common to decide. Then there are no suspects.
    scores : set of anchors → metric → Score
        The scores with all anchors and with all except suspects, on the same held-out rows. Empty if there
        are no held-out rows.
    differences : metric → Interval
        The change of each score when the suspects are removed, with its 95 % interval.
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
        k = len(self.anchors)
        n = len(self.suspects)
        (low, high) = self.wrong_interval
        if self.decided:
            about = f"bout {round(self.n_wrong):,} of {k:,} pairs are wrong (95 %: {low:,} to {high:,})"
            if n:
                return f"{n:,} of {k:,} pairs {'is' if n < 2 else 'are'} suspect. A{about}."
            if not high:
                return f"None of {k:,} pairs is suspect."
            if round(self.n_wrong) == 0:
                return f"At most {high:,} of {k:,} pairs may be wrong (95 %); none can be named."
            return (
                f"A{about}, but every list of suspects would have too many right pairs. The pairs that agree"
                " least are listed."
            )
        return (
            f"Cannot tell: of {k:,} pairs, right ones may agree as little as mismatched ones. The spaces have"
            " too little in common, the pairs are too few, or more than 40 % of them are wrong."
        )

    def report(self, **figures: Any) -> Report:
        """A report of the suspects, and of the scores with and without them."""
        facts = {"decided": self.decided, "n_wrong": self.n_wrong, "wrong_interval": [*self.wrong_interval]}
        facts["suspects"] = [self.anchors[position] for position in self.suspects]
        facts["scores"] = {
            name: {metric: score.to_record() for metric, score in scores.items()}
            for name, scores in self.scores.items()
        }
        changes = self.differences.items()
        facts["differences"] = {metric: [one.value, one.low, one.high] for metric, one in changes}
        every = self.table()
        notes = []
        suspects = self.doubtful().head(_MOST_SUSPECTS)
        cells = [["anchor", "partner", "agreement"]]
        cells += [[row.anchor, row.partner, short(row.agreement)] for row in suspects.itertuples()]
        if (more := len(self.suspects) - len(suspects)) > 0:
            notes = [f"{more:,} more pairs are suspect; --csv lists all."]
        tables = [Table("rows", every, cells if len(suspects) else ())]
        if self.scores:
            by_metric = next(iter(self.scores.values()))
            n = next(iter(by_metric.values())).n  # the same for all scores
            caption = f"Relative scores on {counted(n, 'held-out row')}, no anchor among them."
            tables.append(Table(shown=self._rows_of_scores(), caption=caption))
        return Report(self.headline, tables, facts, notes, figures)

    def _rows_of_scores(self) -> list[list[str]]:
        """The scores with all anchors, and if there are suspects, without them."""
        before, *after = self.scores.values()
        if not after:
            rows = [["metric", "all anchors"]]
            return rows + [[METRICS[metric].title, short(score)] for metric, score in before.items()]
        rows = [["metric", "all anchors", "without suspects", "change, 95 %"]]
        for metric, score in before.items():
            change = self.differences.get(metric)
            described = change.describe() if change else "–"
            rows.append([METRICS[metric].title, short(score), short(after[0][metric]), described])
        return rows

    def doubtful(self) -> pd.DataFrame:
        """The rows of `table` for the suspects. If there are none, the pairs with the least agreement, as
        many as may be wrong."""
        high = 0
        if self.decided:
            high = self.wrong_interval[1]
        return self.table().head(len(self.suspects) or high)

    def table(self) -> pd.DataFrame:
        """A table with one row per pair, least agreement first. The column `mismatched` is the share of
        mismatched pairs that agree less than this pair."""
        share = np.interp(self.agreement, self.mismatched, _QUANTILES)
        suspect = np.isin(np.arange(len(self.anchors)), self.suspects)
        pairs = {"anchor": self.anchors, "partner": self.partners, "agreement": self.agreement}
        table = pd.DataFrame({**pairs, "mismatched": share, "suspect": suspect})
        return table.sort_values("agreement", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class PairAudit(Task[AuditOutcome], kind="audit", version=4, title="Audit of the anchors"):
    """The task that finds suspect anchor pairs by `audit_pairs`, and computes scores with and without them.
    `partners` are the ids of the anchors in the target, if they differ from those in the source."""

    anchors: tuple[str, ...]
    partners: tuple[str, ...] = ()
    false_share: float = setting(
        FALSE_SHARE,
        above=0,
        below=1,
        metavar="SHARE",
        help="Largest share of right pairs among the suspects, on average. If it cannot be guaranteed, no"
        " pair is suspect.",
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
        """The expected time in seconds on two idle cores: twenty Procrustes fits, and two sets of scores."""
        low, high = sorted(space.dimension for space in spaces)
        return 0.2 + 5e-8 * low**2 * high + 4e-10 * len(spaces[0]) * len(self.anchors) * (low + high)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> AuditOutcome:
        """
        Raises
        ------
        SpaceError
            Anchors that a space lacks or has twice; fewer than 10 anchors.
        """
        report(0, 2, "comparing the pairs")
        source, target = spaces
        if not self.partners or self.partners == self.anchors:
            pair = match(source, target)
            source = pair.source
            target = pair.target
        anchors = shared_anchors(self.anchors, source)
        partners = shared_anchors(self.partners or self.anchors, target)
        rows = source.rows(anchors), target.rows(partners)
        units = (
            unit_rows(space.vectors[own], mean_row(space.vectors))
            for space, own in zip((source, target), rows, strict=True)
        )
        audited = audit_pairs(*units, self.false_share)
        report(1, 2, "scoring with and without the suspects")
        # Rows of both spaces that are in no anchor pair, but whose partners are known.
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
        """The scores of the held-out ones of the `others`, by similarities to all anchors and to those that
        are not suspects, and the differences between the two. Both are empty if too few others are known, or
        all anchors are suspects. `anchors` and `others` are row numbers in source and target."""
        kept = np.setdiff1d(np.arange(len(anchors[0])), suspects)
        if len(others[0]) < _FEWEST_SCORED or not len(kept):
            return {}, {}
        split = Split.held_out(source.ids[others[0]])
        k = max(1, min(self.k, largest_k(len(split.test), self.convention)))
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


@dataclass(frozen=True, kw_only=True)
class AnchorAudit(Recipe, figure="anchor-audit"):
    """A figure of the agreement of all anchor pairs, least agreement first. Suspects are marked."""

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ()
    audit: PairAudit

    def draw(self, result: AuditOutcome | None = None) -> Exportable:
        outcome = self.computed(result)
        drawn = chart_exportable(audit_chart(outcome), self.to_json(), "relscope-anchor-audit")
        return replace(drawn, table=outcome.table, latex=lambda: outcome.table().head(_MOST_PRINTED))


def audit_chart(outcome: AuditOutcome) -> Lines:
    """A chart of the agreement of pairs by rank. A line marks the value below which 95 % of mismatched pairs
    lie."""
    table = outcome.table()
    rank = np.arange(1, len(table) + 1)
    agreement = table.agreement.to_numpy()
    lines = []
    same_id = table.anchor == table.partner
    names = np.where(same_id, table.anchor, table.anchor + " = " + table.partner)
    for name, is_suspect in (("suspects", True), ("other pairs", False)):
        rows = np.flatnonzero(table.suspect == is_suspect)
        if len(rows):
            lines.append(Line(name, rank[rows], agreement[rows], labels=names[rows].tolist()))
    mismatched = float(np.quantile(outcome.mismatched, 0.95))
    verdict = ": cannot tell"
    if outcome.decided:
        verdict = f", {len(outcome.suspects):,} suspects"
    return Lines(
        tuple(lines),
        "pair, by agreement",
        "agreement, −1 … 1",
        kind="points",
        baselines=(("95 % of mismatched pairs are below", mismatched),),
        note=f"Trimmed Procrustes{verdict}",
    )
