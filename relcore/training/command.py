"""The command `training`, which compares networks while they are trained."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.writing import write
from relcore.commands.command import command, values_of
from relcore.commands.options import Results
from relcore.commands.progress import Bar
from relcore.figures.export import KINDS
from relcore.files.saving import need_suffix
from relcore.training.agreement import OWN, RELATIVE, TrainingSpec
from relcore.training.chart import TrainingChart
from relcore.training.comparison import compare_runs
from relcore.training.runs import open_runs

FILMS = ("webp", "gif")  # as in relcore.figures.paper_panels, which loads Matplotlib


@dataclass
class TrainingOptions:
    folders: tuple[Path, ...] = setting(
        metavar="FOLDER",
        nargs="+",
        help="a run that relcore.watch wrote, a folder of checkpoints saved as spaces (step-100.npy, …), or a"
        " folder with several of these",
    )
    relative: bool = setting(
        False, help="Draw the rows by their similarities to anchors, instead of on own axes."
    )


@command(
    (TrainingOptions, TrainingSpec, Results),
    "Compares each run with the first one at each step: on own axes and by similarities to anchors, with"
    " chance levels; and each with its own last frame. Rows are paired by id. Anchors are rows of the probe;"
    " the others are scored. On own axes, a frame is rotated to the one before it.",
    ("runs/first runs/second -o film.webp", "runs --layer conv2 --relative -o film.html"),
    output="The file to write: a film (.webp, .gif), a page that plays without a server (.html), a strip of"
    " frames (.png, .pdf, .svg), the scores (.csv), or the recipe (.json).",
)
def run_training(options: argparse.Namespace) -> Report:
    need_suffix(options.output, [f".{kind}" for kind in (*FILMS, *KINDS)])
    runs = [run for folder in options.folders for run in open_runs(folder)]
    spec = TrainingSpec(**values_of(options, TrainingSpec))
    with Bar(options) as bar:
        result = compare_runs(runs, spec, report=bar.show)
    axes = OWN
    if options.relative:
        axes = RELATIVE
    chart = TrainingChart.of(runs, spec, axes)
    if options.output:
        kind = options.output.suffix.lstrip(".").lower()
        if kind in FILMS:
            from relcore.figures.paper_panels import film

            write(options.output, film(result.panels(axes), kind))
        else:
            chart.draw(result).save(options.output, full_paths=options.full_paths)
    return result.report(training=lambda: chart.draw(result))
