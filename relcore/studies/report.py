"""The chart and the report of a study."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.numbers import band, counted, short
from relcore.base.report import Report, Table
from relcore.catalog.task import Recipe
from relcore.figures.charts import Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from relcore.studies.runs import StudyRuns
from relcore.studies.study import StudySpec, study_of


@dataclass(frozen=True)
class StudyChart(Recipe, figure="study"):
    """The recipe of a chart of a study, by default its first one, with the study's conclusion. In LaTeX, the
    findings are printed instead.

    The result is the table of the runs. Without it, all runs are computed.
    """

    study: dict[str, Any]  # as returned by `StudySpec.to_json`
    chart: str = ""

    def draw(self, result: pd.DataFrame | None = None) -> Exportable:
        """Draw the chart. Raises a SpaceError if the chart is unknown, a run fails, or the table is empty."""
        spec = StudySpec.from_json(self.study)
        study = study_of(spec.kind)
        settings = spec.settings
        if (table := result) is None:
            with closing(JobQueue()) as queue:
                table = StudyRuns(study, spec).finish(queue)
        charts = {}
        if len(table):
            charts = study.charts(settings, table)
        if not charts:
            raise SpaceError(f"{study.title}: expected a run that has finished training, got none")
        chart = self.chart or next(iter(charts))
        need_one_of("chart", chart, charts)
        figure = charts[chart]
        conclusion = study.conclusion(settings, table)
        if conclusion and isinstance(figure, Lines):
            figure = replace(figure, note=f"{conclusion}\n{figure.note}".rstrip())
        name = f"relscope-{study.kind}-{chart.replace(' ', '-')}"
        recipe = replace(self, chart=chart).to_json()
        return chart_exportable(figure, recipe, name, lambda: study.findings(settings, table))


def _cells(finding: Any) -> list[str]:
    """The cells of a row of findings: what it is, its value, its interval, and how that was computed."""
    interval = ""
    if not pd.isna(finding.low):
        interval = band(finding.low, finding.high)
    return [finding.what, short(finding.value), interval, f"{finding.n:,}", finding.interval]


def _bundled_runs(runs: StudyRuns, store: Store) -> dict[str, Any] | None:
    """How many of the runs came with Relscope, and how they were made. None if all are the user's."""
    groups = [store.bundled_group(key) for key in runs.keys]
    groups = [group for group in groups if group]
    if not groups:
        return None
    first = groups[0]
    return {"runs": len(groups), "date": first.date, "commit": first.commit, "made": first.in_words}


def study_report(runs: StudyRuns, table: pd.DataFrame, store: Store, chart: str = "") -> Report:
    """The report of a study. It has the conclusion and the findings. If runs are missing, it tells on how
    many runs they rest."""
    study = runs.study
    spec = runs.spec
    findings = table
    conclusion = ""
    if len(table):
        findings = study.findings(spec.settings, table)
        conclusion = study.conclusion(spec.settings, table)
    notes = []
    bundled = _bundled_runs(runs, store)
    if bundled is not None:
        notes.append(f"{bundled['runs']:,} of these runs came with Relscope. {bundled['made']}")
    cells = []
    if len(findings):
        cells = [["finding", "value", "95 %", "n", "interval"], *map(_cells, findings.itertuples())]
    sentence = conclusion or "No finding yet."
    if len(table) < len(runs):
        sentence += f" So far: {len(table):,} of {counted(len(runs), 'run')}."
    return Report(
        sentence,
        [Table("rows", table), Table("findings", findings, cells)],
        {"study": spec.to_json(), "came_with_relscope": bundled, "conclusion": conclusion},
        notes,
        {"study": lambda: StudyChart(study=spec.to_json(), chart=chart).draw(table)},
    )
