"""The command `explain`, which says why two spaces differ."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.commands.command import command, values_of
from relcore.commands.inputs import spaces_of
from relcore.commands.options import ByLinks, ByRow, Pair, Results, Scheduler
from relcore.explain.explanation import Explain, ExplainSettings


@dataclass
class OtherSpaces:
    other: tuple[str, ...] = setting(
        (),
        nargs="append",
        metavar="SPACE",
        help="A further space, whose shares are listed beside theirs. Give the option again for another one.",
    )


@command(
    (Pair, ByRow, ByLinks, OtherSpaces, ExplainSettings, Results, Scheduler),
    "Features are made from words, texts, pictures, labels, counts and columns of tables. A feature is a"
    " reason if rows that have it are neighbours in one space more than in the other. Reasons that one half"
    " of the rows suggests are tested on the other half. First it is tested whether one space is a noisier"
    " or coarser copy of the other.",
    (
        "word2vec-novels fasttext-novels",
        "minilm.parquet lsa.parquet --feature contains:river -o reasons.csv",
    ),
)
def run_explain(options: argparse.Namespace) -> Report:
    inputs = spaces_of(options, (options.source, options.target, *options.other))
    settings = values_of(options, ExplainSettings)
    settings["own"] = tuple(settings["own"])
    task = Explain(**settings, items=tuple(inputs.specs))
    found = inputs.result(task)
    charts = inputs.chart("reasons", found, spaces=tuple(inputs.specs), explain=task)
    return found.report(**charts)
