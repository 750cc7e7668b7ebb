"""How long the rows of two spaces are: a command, its figure, its tab in the app and its tool for agents."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.report import Report, Table
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task
from relcore.commands.command import Tool, command, values_of
from relcore.commands.inputs import spaces_of
from relcore.commands.options import Pair, Results, Scheduler
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.runs.work import silent

if TYPE_CHECKING:
    from app.workspace import Workspace


@dataclass(frozen=True)
class Shares:
    """The share of each space's rows in each range of lengths."""

    edges: np.ndarray
    shares: dict[str, np.ndarray]


@dataclass(frozen=True)
class RowLengths(Task[Shares], kind="row lengths", title="Lengths of rows"):
    bins: int = setting(20, low=2, high=100, help="Number of ranges of lengths.")

    def seconds(self, spaces):
        return 0.1

    def run(self, spaces, store=None, report=silent):
        lengths = {space.name: np.linalg.norm(space.vectors, axis=1) for space in spaces}
        edges = np.linspace(0, max(values.max() for values in lengths.values()), self.bins + 1)
        counts = {name: np.histogram(values, edges)[0] for name, values in lengths.items()}
        return Shares(edges, {name: count / count.sum() for name, count in counts.items()})


# The figure. Its name is that of its entry point.


@dataclass(frozen=True, kw_only=True)
class LengthChart(Recipe, figure="row lengths"):
    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    task: RowLengths = RowLengths()

    def draw(self, result: Shares | None = None) -> Exportable:
        result = self.computed(result)
        lines = tuple(Line(name, result.edges[1:], share) for name, share in result.shares.items())
        return chart_exportable(Lines(lines, "length", "share of rows"), self.to_json(), "relscope-lengths")


# The command, and the tool that lets agents call it. A tool can fix options: Tool({"bins": "20"}).


@command(
    (Pair, RowLengths, Results, Scheduler),
    "Lengths tell whether a model normalises its rows.",
    ("word2vec-novels fasttext-novels --bins 10",),
)
def lengths(options: argparse.Namespace) -> Report:
    inputs = spaces_of(options, (options.source, options.target))
    task = RowLengths(**values_of(options, RowLengths))
    result = inputs.result(task)
    rows = [
        {"space": name, "up to": float(np.round(edge, 3)), "share": float(share)}
        for name, shares in result.shares.items()
        for edge, share in zip(result.edges[1:], shares, strict=True)
    ]
    chart = inputs.chart("row lengths", result, spaces=tuple(inputs.specs), task=task)
    return Report("Shares of rows by their length.", [Table.of("rows", rows)], figures=chart)


TOOL = Tool()


# The tab. The app calls it while it is open. What needs Streamlit is imported here: the command needs none.


def tab(workspace: Workspace) -> None:
    from app import compute, exports, results
    from app.widgets import setting_widget
    from relcore.base.settings import settings_of

    specs = (workspace.source, workspace.target)
    task = RowLengths(bins=setting_widget(settings_of(RowLengths)["bins"], "lengths.bins"))
    if (result := results.result_of(task, specs, label="Count lengths")) is not None:
        recipe = LengthChart(spaces=specs, digests=compute.digests(specs), task=task)
        exports.figure(recipe.draw(result), "lengths.chart")
