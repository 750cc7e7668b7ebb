"""Figures of studies from their recipes: the runs come from the store, and what is missing is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from relcore import __version__
from relcore.figures.export import Exportable, lines_exportable
from relcore.spaces import SpaceError, need_one_of
from relcore.studies import study_of
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec


def draw_study(spec: StudySpec, chart: str = "", table: pd.DataFrame | None = None) -> Exportable:
    """One of a study's charts, default its first, of the finished runs in `table`; without it, of all runs.

    The study's conclusion stands above the chart. The findings are what LaTeX prints.

    Raises
    ------
    SpaceError
        No chart of this name, a run that fails, nothing finished in `table`.
    """
    study = study_of(spec.kind)
    if table is None:
        table = _complete(StudyRuns(study, spec))
    charts = study.charts(spec.settings, table)
    if not charts:
        raise SpaceError(f"{study.title}: expected a finished run to draw, got none that trained to an end")
    chart = chart or next(iter(charts))
    need_one_of("chart", chart, charts)
    recipe = {"relscope": __version__, "figure": "study", "study": spec.to_json(), "chart": chart}
    lines = charts[chart]
    if told := study.conclusion(spec.settings, table):
        lines = replace(lines, note=f"{told}\n{lines.note}".rstrip())
    drawn = lines_exportable(lines, recipe, name=f"relscope-{study.kind}-{chart.replace(' ', '-')}")
    return Exportable(
        drawn.name,
        drawn.interactive,
        drawn.publication,
        drawn.table,
        recipe,
        latex=lambda: study.findings(spec.settings, table),
    )


def _complete(runs: StudyRuns) -> pd.DataFrame:
    from relcore.engine import Engine  # only what is missing needs processes

    engine = Engine()
    try:
        return runs.finish(engine)
    finally:
        engine.close()


def _study(settings: dict[str, Any]) -> Exportable:
    if unknown := set(settings) - {"study", "chart"} or {"study"} - set(settings):
        raise SpaceError(f"recipe of a study: expected 'study' and 'chart' and nothing else; {sorted(unknown)} is amiss")
    chart = settings.get("chart", "")
    if not isinstance(chart, str):
        raise SpaceError(f"recipe of a study: expected the name of a chart, got {chart!r:.80}")
    return draw_study(StudySpec.from_json(settings["study"]), chart)


FIGURES = {"study": _study}
