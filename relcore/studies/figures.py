"""Figures of studies from their recipes: the runs come from the store, and what is missing is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.figures.charts import Lines, Matrices, PictureGrid
from relcore.figures.export import Exportable, chart_exportable
from relcore.studies.runs import StudyRuns
from relcore.studies.study import Chart, StudySpec, study_of
from relcore.tasks.recipe import Recipe

_EXPORTABLE = {
    Lines: chart_exportable,
    Matrices: chart_exportable,
    PictureGrid: chart_exportable,
}


def chart_exportable(chart: Chart, *described: Any) -> Exportable:
    """A study's chart of any kind; `described` are recipe, name and LaTeX table as in `chart_exportable`."""
    return _EXPORTABLE[type(chart)](chart, *described)


@dataclass(frozen=True)
class StudyChart(Recipe):
    """One of a study's charts, default its first, of the finished runs; the study's conclusion stands above
    the chart.

    The result is the table of the runs; without it, all runs are computed. The findings are what LaTeX
    prints.
    """

    figure: ClassVar[str] = "study"

    study: dict[str, Any]  # of `StudySpec.to_json`
    chart: str = ""

    def draw(self, result: pd.DataFrame | None = None) -> Exportable:
        """
        Raises
        ------
        SpaceError
            No chart of this name, a run that fails, nothing finished in the table.
        """
        spec = StudySpec.from_json(self.study)
        study, settings = study_of(spec.kind), spec.settings
        table = _complete(StudyRuns(study, spec)) if result is None else result
        charts = study.charts(settings, table) if len(table) else {}
        if not charts:
            raise SpaceError(f"{study.title}: expected a run that has finished training, got none")
        chart = self.chart or next(iter(charts))
        need_one_of("chart", chart, charts)
        drawn = charts[chart]
        conclusion = study.conclusion(settings, table)
        if conclusion and isinstance(drawn, Lines):
            drawn = replace(drawn, note=f"{conclusion}\n{drawn.note}".rstrip())
        name = f"relscope-{study.kind}-{chart.replace(' ', '-')}"
        recipe = replace(self, chart=chart).to_json()
        return chart_exportable(drawn, recipe, name, lambda: study.findings(settings, table))


def _complete(runs: StudyRuns) -> pd.DataFrame:
    from relcore.runs.jobs import Engine  # only what is missing needs processes

    engine = Engine()
    try:
        return runs.finish(engine)
    finally:
        engine.close()
