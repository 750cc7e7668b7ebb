"""drift: the changes between two versions of the same rows; the exit code decides in CI."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.naming import SPACE_HELP
from relcore.commands.running import (
    ByRow,
    CommandOptions,
    Results,
    Scheduler,
    result_of,
    spaces_of,
    values_of,
)
from relcore.drift.check import (
    DriftChart,
    DriftCheck,
    Thresholds,
    default_file,
    read_thresholds,
    report,
)

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
    thresholds: str = setting(
        None,
        metavar="FILE",
        help="How much may change, .toml; --print-thresholds shows the default.",
    )


def _add_thresholds(parser: argparse.ArgumentParser) -> None:
    text = "print the default thresholds as a TOML file, and exit"
    parser.add_argument("--print-thresholds", action=_Printed, nargs=0, help=text)


OPTIONS = CommandOptions(
    (DriftOptions, ByRow, DriftCheck, Results, Scheduler),
    "Two situations are judged. Everything is new: rows and queries are embedded by the new version, so"
    " that shift, scale and rotation do not matter. New queries, old vectors: they matter. Both raise"
    " an alarm if one row that was whole is missing, zero, repeated or out of place, or more dimensions"
    " constant; rows that only the new version has are left out. The exit code is 1 after an"
    " alarm, 0 without one, 2 after an error.",
    (
        "v1.npz v2.npz --gate everything-new --format markdown > drift.md",
        "--print-thresholds > thresholds.toml",
    ),
    more=_add_thresholds,
)


class _Printed(argparse.Action):
    """An option that prints the bundled file and ends, as --version does."""

    def __call__(self, parser: argparse.ArgumentParser, *_) -> None:
        print(default_file(), end="")
        parser.exit()


def run(options: argparse.Namespace) -> Report:
    thresholds = read_thresholds(options.thresholds) if options.thresholds else Thresholds()
    task, gate = DriftCheck(**values_of(options, DriftCheck)), GATES[options.gate]
    specs, spaces = spaces_of(options, (options.old, options.new))
    drift = result_of(task, specs, spaces, options)
    verdict = drift.judged(thresholds)
    recipe = {"old": specs[0], "new": specs[1], "digests": tuple(space.digest for space in spaces)}
    recipe |= {"drift": task, "thresholds": thresholds}
    return report(drift, verdict, gate, {"drift": lambda: DriftChart(**recipe).draw(drift)})
