"""Exact scores: one representation of a pair, scored with every held-out row as a query, as a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relcore.comparison import ProjectionSpec, class_labels, held_out, metrics_of_a_pair, represent, score_pair
from relcore.metrics.calibration import Score
from relcore.spaces import LatentSpace, match
from relcore.store import Store
from relcore.task import Report, Task, silent


@dataclass(frozen=True)
class FoundScores:
    """Scores by the names of their metrics."""

    scores: dict[str, Score]


@dataclass(frozen=True)
class ExactScores(Task[FoundScores]):
    """`score_pair` of two spaces with the same rows; `metrics` are those registered when it is made."""

    kind = "scores"
    result = "relcore.comparing.exact_scores:FoundScores"

    representation: str
    anchors: tuple[str, ...]
    projection: ProjectionSpec
    k: int
    convention: str
    metrics: tuple[str, ...]

    @classmethod
    def of(cls, *settings: object) -> ExactScores:
        """By all metrics."""
        return cls(*settings, tuple(metrics_of_a_pair()))

    @property
    def title(self) -> str:
        return f"Scores, {self.representation}"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return len(spaces[0]) ** 2 * spaces[0].dimension / 2e10

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> FoundScores:
        report(0, 1, "looking up the neighbours of every held-out row")
        pair = match(*spaces)
        made = represent(pair, self.representation, self.anchors, self.projection)
        split = held_out(pair, self.anchors, self.representation)
        settings = {"k": self.k, "convention": self.convention, "metrics": self.metrics, "labels": class_labels(pair)}
        return FoundScores(score_pair(*made, split, **settings))
