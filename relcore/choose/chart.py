"""The figure of a comparison of models: how far the best one is ahead, while queries are judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import general
from relcore.catalog.task import SpacesRecipe
from relcore.choose.looks import LOOKS, lead_of
from relcore.choose.result import ModelChoice, sentence
from relcore.choose.task import Choose
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable


@dataclass(frozen=True, kw_only=True)
class ChoiceChart(SpacesRecipe, figure="model-choice"):
    """A figure of how far the best model is ahead of each other one, after each number of judged queries.

    Examples
    --------
    >>> from relcore import Choose, ChoiceChart, SpaceSpec
    >>> spaces = tuple(SpaceSpec("file", f"{name}.npz") for name in ("a", "b"))
    >>> ChoiceChart(spaces=spaces, choose=Choose()).figure
    'model-choice'
    """

    choose: Choose

    def draw(self, result: ModelChoice | None = None) -> Exportable:
        return chart_exportable(choice_chart(self.computed(result)), self.to_json(), "relscope-model-choice")


def choice_chart(found: ModelChoice) -> Lines:
    """The leads of the best model by the number of judged queries. Raises a SpaceError before the first
    look."""
    look = found.answer
    if look is None:
        raise SpaceError(
            f"model-choice: expected {LOOKS[0]} judged queries or more, got {found.n_judged}; judge more"
        )
    n_pairs = len(found.names) * (len(found.names) - 1) // 2
    ns = [one.n for one in found.looks]
    scores = found.scores.astype(float)
    lines = []
    for other, name in enumerate(found.names):
        if other == look.best:
            continue
        leads = [lead_of(scores[:n, look.best] - scores[:n, other], n_pairs) for n in ns]
        values = np.array([(lead.value, lead.low, lead.high) for lead in leads])
        lines.append(Line(f"against {name}", ns, *values.T))
    return Lines(
        tuple(lines),
        "judged queries",
        f"lead of {found.names[look.best]}, {found.metric}",
        kind="lines" if len(ns) > 1 else "points",
        baselines=(("allowed to be behind", -found.epsilon),),
        alt=sentence(found),
    )


def how_to_read(found: ModelChoice) -> str:
    """The caption of the figure, which says when a model is chosen. "" before the first look."""
    look = found.answer
    if look is None:
        return ""
    best = found.names[look.best]
    return (
        f"Each line shows how far {best} is ahead of another model; its band is the 95 % interval. {best} is"
        f" better once the band is above 0. Above the dashed line it is good enough: at most"
        f" {general(found.epsilon)} behind, which Method details sets."
    )
