"""The command `drift`, which compares two versions of a space, and fails if the drift matters."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.command import command, values_of
from relcore.commands.inputs import spaces_of
from relcore.commands.options import ByRow, JUnit, Results, Scheduler
from relcore.drift.check import DriftCheck
from relcore.drift.check import report as drift_report
from relcore.drift.measures import ROWS
from relcore.drift.thresholds import Thresholds, default_file, read_thresholds
from relcore.explain.explanation import Explain
from relcore.explain.moved import moved_in_words

GATES = {
    "either": ("everything_new", "new_queries"),
    "everything-new": ("everything_new",),
    "new-queries": ("new_queries",),
    "planned": (),
}


@dataclass
class DriftOptions:
    old: str = setting(metavar="OLD", help=SPACE_HELP)
    new: str = setting(
        metavar="NEW",
        help="the new version of the same rows; rows are paired by id",
    )
    gate: str = setting(
        "either",
        choices=tuple(GATES),
        help="The situation whose alarms decide the exit code; planned: the new version is meant to be"
        " another model, and only broken rows are an alarm.",
    )
    why: bool = setting(
        False, help="Also say which kinds of rows changed most, by their words, texts, labels and columns."
    )
    thresholds: str = setting(
        None,
        metavar="FILE",
        help="A .toml file of how much may change; --print-thresholds shows the default.",
    )


class _PrintThresholds(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_) -> None:
        print(default_file(), end="")
        parser.exit()


@command(
    (DriftOptions, ByRow, DriftCheck, Results, JUnit, Scheduler),
    "Two situations are judged. All embedded again: rows and queries are embedded by the new version, so"
    " shift, scale and rotation do not matter. New queries, old vectors: these do matter. Both raise an"
    " alarm if a row that was valid is missing, zero, repeated, or no longer fits its place, or if more"
    " dimensions are constant. Rows that only the new version has are left out. The exit code is 1 after an"
    " alarm, 0 without one, 2 after an error.",
    (
        "v1.npz v2.npz --gate everything-new --format markdown > drift.md",
        "--print-thresholds > thresholds.toml",
    ),
    more=lambda parser: parser.add_argument(
        "--print-thresholds",
        action=_PrintThresholds,
        nargs=0,
        help="print the default thresholds as a TOML file, and exit",
    ),
)
def run_drift(options: argparse.Namespace) -> Report:
    if options.thresholds:
        thresholds = read_thresholds(options.thresholds)
    else:
        thresholds = Thresholds()
    task = DriftCheck(**values_of(options, DriftCheck))
    gate = GATES[options.gate]
    inputs = spaces_of(options, (options.old, options.new))
    drift = inputs.result(task)
    (old, new) = inputs.specs
    charts = inputs.chart("drift", drift, old=old, new=new, drift=task, thresholds=thresholds)
    verdict = drift.judged(thresholds)
    report = drift_report(drift, verdict, gate, charts)
    if gate and verdict.alarmed(gate) and not verdict.alarms(ROWS):
        planned = "If another model is planned, --gate planned passes."
        report = replace(report, notes=[*report.notes, planned])
    if report.facts["alarm"]:
        passed = "alarm, exit code 1"
    else:
        passed = "passed, exit code 0"
    report = replace(report, notes=[*report.notes, f"--gate {options.gate}: {passed}."])
    if not options.why:
        return report
    found = inputs.result(Explain(k=drift.k, items=(old, new)))
    kinds = moved_in_words(found.moved)
    if not kinds:
        kinds = f"No kind of rows changed more than others ({found.n_features:,} features tried)."
    return replace(report, notes=[kinds, *report.notes])
