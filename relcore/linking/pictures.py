"""The figures of a link: its rounds, and its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, space_name
from relcore.catalog.task import Recipe
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable, scores_exportable
from relcore.linking.link import BootstrapSpec, Outcome

FEWEST_SHARED = 20  # minimum number of common ids for a test with hidden pairs
PAPER_ROWS = 2000  # maximum number of rows for the published method, which compares all pairs in each step


@dataclass(frozen=True, kw_only=True)
class BootstrapRounds(Recipe, figure="bootstrap"):
    """A figure that shows, for each round of self-learning, the share of rows that are matched and the share
    of hidden pairs that are found. For the method "paper", it shows the error at each step.
    """

    source: SpaceSpec
    target: SpaceSpec
    digests: tuple[str, ...] = ("", "")
    bootstrap: BootstrapSpec

    def draw(self, result: Outcome | None = None) -> Exportable:
        outcome = self.computed(result)
        method = self.bootstrap.method
        rounds = outcome.result.history
        found = [one.found for one in rounds]
        if np.isnan(found[-1]):
            by_round = {}
        else:
            by_round = {"hidden pairs found": found}
        if method == "paper":
            first = rounds[0].objective
            by_round["error, share of the first step's"] = [one.objective / first for one in rounds]
        else:
            by_round["rows matched"] = [one.pairs / one.rows for one in rounds]
        lines = tuple(Line(name, range(1, len(values) + 1), values) for name, values in by_round.items())
        x_title = "round"
        if method == "paper":
            x_title = "step"
        note = f"{self._ends}: {outcome.verdict}"
        chart = Lines(lines, x_title, "share", note=note, y_range=(0, 1.02), n_direct=len(lines))
        return chart_exportable(chart, self.to_json(), name="relscope-bootstrap")

    @property
    def _ends(self) -> str:
        return f"{space_name(self.source)} → {space_name(self.target)}"


@dataclass(frozen=True, kw_only=True)
class BootstrapScores(BootstrapRounds):
    """A figure of the scores that `relative_scores` computes for each set of anchors, with their chance
    levels."""

    figure: ClassVar[str] = "bootstrap-scores"

    def draw(self, result: Outcome | None = None) -> Exportable:
        outcome = self.computed(result)
        if not outcome.scores:
            got = "one without hidden pairs"
            if outcome.known:
                got = "no held-out row: ask for fewer anchors"
            raise SpaceError(f"bootstrap-scores: expected an experiment with the pairing hidden, got {got}")
        return scores_exportable(outcome.score_table, self.to_json(), "relscope-bootstrap-scores", self._ends)
