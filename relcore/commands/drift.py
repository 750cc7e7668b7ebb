"""drift: the changes between two versions of the same rows; the exit code decides in CI."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.report import Report, Table
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.naming import SPACE_HELP, space_spec, space_specs
from relcore.commands.arguments import ByRow, CommandOptions, Results, Scheduler, loaded_spaces, values_of
from relcore.commands.running import computed
from relcore.drift.check import (
    LINES,
    DriftCheck,
    DriftSeries,
    Thresholds,
    default_file,
    read_thresholds,
)
from relcore.drift.reports import DriftChart, report

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
        nargs="?",
        help="the new version of the same rows; rows are paired by id. Without it, OLD is a folder of"
        " versions such as checkpoints: each is compared with the one before, and the last two are judged",
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
        help="How much may change, .toml or .json; --print-thresholds shows the default.",
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
        "checkpoints",
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
    versions, loaded = loaded_spaces(options, versions_of(options))
    specs, spaces = versions[-2:], loaded[-2:]
    drift, tables = computed(task, specs, spaces, options), []
    if len(versions) > 2:
        series = computed(DriftSeries(**values_of(options, DriftSeries)), versions, loaded, options)
        steps = [series.steps(situation, quantity, "previous") for situation, quantity, _ in LINES]
        rows = [["version", *(title for *_, title in LINES)]]
        for name, *values in zip(series.names[1:], *steps, strict=True):
            rows.append([name, *map(short, values)])
        tables.append(Table(shown=rows, title=series.headline()))
    verdict = drift.judged(thresholds)
    recipe = {"old": specs[0], "new": specs[1], "digests": tuple(space.digest for space in spaces)}
    recipe |= {"drift": task, "thresholds": thresholds}
    found = report(drift, verdict, gate, {"drift": lambda: DriftChart(**recipe).draw(drift)})
    return replace(found, tables=[*tables, *found.tables])


def versions_of(options: argparse.Namespace) -> list[SpaceSpec]:
    """OLD and NEW, or all versions in the folder OLD."""
    if options.new is not None:
        return [space_spec(options.old), space_spec(options.new)]
    versions = space_specs(options.old)
    if len(versions) < 2:
        raise SpaceError(
            f"{options.old!r:.200}: expected a folder of two versions or more, got one version; name NEW, too"
        )
    return versions
