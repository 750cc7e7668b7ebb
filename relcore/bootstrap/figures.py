"""Figures of bootstrapping from their recipes: its progress by round, and the scores of its anchors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS
from relcore.bootstrap.spec import BootstrapSpec, Outcome
from relcore.catalog.catalog import SpaceSpec
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable, scores_exportable
from relcore.scores.comparison import score_table
from relcore.tasks.recipe import Recipe, load_all


@dataclass(frozen=True, kw_only=True)
class BootstrapRounds(Recipe):
    """Rows paired and hidden anchors found by round; of the published method its error."""

    figure: ClassVar[str] = "bootstrap"

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ("", "")
    bootstrap: BootstrapSpec

    def draw(self, result: Outcome | None = None) -> Exportable:
        chart = rounds_chart(self.bootstrap, result or self._computed())
        return chart_exportable(chart, self.to_json(), name="relscope-bootstrap")

    def _computed(self) -> Outcome:
        return self.bootstrap.run(load_all((self.source, self.target), self.digests, self.figure))


@dataclass(frozen=True, kw_only=True)
class BootstrapScores(BootstrapRounds):
    """Ground truth, seeds and found: Jaccard, MRR and cosine, each with its chance level; needs a known
    truth.
    """

    figure: ClassVar[str] = "bootstrap-scores"

    def draw(self, result: Outcome | None = None) -> Exportable:
        outcome = result or self._computed()
        if not outcome.scores:
            got = "no held-out row: ask for fewer anchors" if outcome.known else "one without a truth"
            raise SpaceError(f"bootstrap-scores: expected an experiment with the pairing hidden, got {got}")
        drawn = scores_exportable(
            score_table(outcome.scores), self.to_json(), name="relscope-bootstrap-scores"
        )
        return replace(drawn, latex=lambda: printed_table(outcome))


def rounds_chart(spec: BootstrapSpec, outcome: Outcome) -> Lines:
    """Round by round, 0 … 1; the error of the published method as a share of the first step's."""
    rounds = outcome.result.history
    x = range(1, len(rounds) + 1)
    literal = spec.method == "paper"
    lines = [Line("share of hidden anchors found", x, [one.found for one in rounds])] if outcome.known else []
    if literal:
        lines.append(
            Line(
                "error, share of the first step's", x, [one.objective / rounds[0].objective for one in rounds]
            )
        )
    else:
        lines.append(Line("share of rows matched", x, [one.pairs / one.rows for one in rounds]))
    note = f"Verdict: {outcome.result.verdict}"
    return Lines(tuple(lines), "step" if literal else "round", "share", y_range=(0, 1.02), note=note)


def printed_table(outcome: Outcome) -> pd.DataFrame:
    """The table of the paper: a row for each set of anchors, with the share of hidden anchors found and
    the verdict.
    """
    shares, verdicts = {"found": outcome.share}, {"found": outcome.result.verdict}
    rows = [
        {
            "anchors": form,
            **{METRICS[name].title: float(score) for name, score in by_metric.items()},
            "hidden found": shares.get(form),
            "verdict": verdicts.get(form, ""),
        }
        for form, by_metric in outcome.scores.items()
    ]
    return pd.DataFrame(rows)
