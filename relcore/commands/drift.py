"""drift: what changed between two versions of the same rows, and whether it matters; the exit code decides
in CI.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from relcore.commands.naming import finite, random_state, whole

if TYPE_CHECKING:
    from relcore.catalog.catalog import SpaceSpec
    from relcore.drift.check import Drift
    from relcore.drift.series import SeriesDrift
    from relcore.drift.verdict import DriftVerdict

FORMATS = ("table", "json", "markdown", "junit")
GATES = {
    "either": ("everything_new", "new_queries"),
    "everything-new": ("everything_new",),
    "new-queries": ("new_queries",),
}
_MOST_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import SPACE_HELP
    from relcore.commands.output import add_recipe
    from relcore.commands.running import add_scheduler

    parser.description += (
        " Two situations are judged. Everything is new: rows and queries are embedded by the new version, so"
        " that shift, scale and rotation do not matter. New queries, old vectors: there they matter. The exit"
        " code is 1 after an alarm, 0 without one, 2 after an error."
    )
    parser.add_argument("old", metavar="OLD", help=SPACE_HELP)
    parser.add_argument(
        "new",
        nargs="?",
        metavar="NEW",
        help=(
            "the new version of the same rows; rows are paired by id. Without it, OLD is a folder of versions"
            " such as checkpoints: each is compared with the one before, and the last two are judged"
        ),
    )
    parser.add_argument(
        "--gate",
        choices=tuple(GATES),
        default="either",
        help="which situation decides the exit code; default: an alarm in either",
    )
    parser.add_argument(
        "--thresholds",
        metavar="FILE",
        help="how much may change, .toml or .json; --print-thresholds shows the default",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="junit: JUnit XML for CI")
    parser.add_argument(
        "--shared",
        action="store_true",
        help="compare the rows that both versions have, whatever else they have",
    )
    parser.add_argument("-k", type=whole, default=10, metavar="N", help="number of neighbours of each query")
    parser.add_argument("--queries", type=whole, default=1000, metavar="N", help="number of queries, at most")
    parser.add_argument(
        "--noise",
        type=finite,
        default=2.0**-11,
        metavar="SHARE",
        help=(
            "numeric noise of a model that runs twice, as a share of a row's length; default: 1/2048,"
            " rounding to float16"
        ),
    )
    parser.add_argument(
        "--random-state", type=random_state, default=0, metavar="N", help="random state of queries and noise"
    )
    parser.add_argument(
        "--print-thresholds", action=_Printed, help="print the default thresholds as a TOML file, and exit"
    )
    add_recipe(parser)
    add_scheduler(parser)
    parser.epilog = (
        "example:\n"
        "  relscope drift v1.npz v2.npz --gate everything-new --format junit > drift.xml\n"
        "  relscope drift checkpoints\n"
        "  relscope drift --print-thresholds > thresholds.toml"
    )


class _Printed(argparse.Action):
    """An option that prints the bundled file and ends, as --version does."""

    def __init__(self, option_strings: list[str], dest: str, **settings) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_) -> None:
        from relcore.drift.verdict import default_file

        print(default_file(), end="")
        parser.exit()


def run(options: argparse.Namespace) -> int:
    from relcore.commands.output import write_recipe
    from relcore.commands.running import computed
    from relcore.drift.check import DriftCheck
    from relcore.drift.figures import DriftChart
    from relcore.drift.series import DriftSeries
    from relcore.drift.verdict import Thresholds, read_thresholds
    from relcore.tasks.recipe import load_again

    thresholds = read_thresholds(options.thresholds) if options.thresholds else Thresholds()
    task = DriftCheck(options.k, options.queries, options.noise, options.shared, options.random_state)
    versions = versions_of(options)
    loaded = [load_again(one) for one in versions]
    specs, spaces = versions[-2:], loaded[-2:]
    if options.format == "table" and len(versions) > 2:
        series = DriftSeries(options.k, options.queries, options.noise, options.random_state)
        print_series(computed(series, versions, loaded, options))
    drift = computed(task, specs, spaces, options)
    verdict = drift.judged(thresholds)
    if options.recipe:
        digests = tuple(space.digest for space in spaces)
        made = DriftChart(old=specs[0], new=specs[1], digests=digests, drift=task, thresholds=thresholds)
        write_recipe(options, made.draw(drift))
    with suppress(BrokenPipeError):  # a reader such as `head` has read enough; the exit code stays
        show_as(options.format, drift, verdict, GATES[options.gate])
    return int(verdict.alarmed(GATES[options.gate]))


def versions_of(options: argparse.Namespace) -> list[SpaceSpec]:
    """OLD and NEW, or all versions in the folder OLD.

    Raises
    ------
    SpaceError
        A space that is not found, a folder with one version.
    """
    from relcore.base.errors import SpaceError
    from relcore.commands.naming import space_spec, space_specs

    if options.new is not None:
        return [space_spec(options.old), space_spec(options.new)]
    found = space_specs(options.old)
    if len(found) < 2:
        raise SpaceError(
            f"{options.old!r:.200}: expected a folder of two versions or more, got one version; name NEW, too"
        )
    return found


def print_series(series: SeriesDrift) -> None:
    """What each version changed."""
    from relcore.base.numbers import short
    from relcore.commands.output import aligned
    from relcore.drift.series import LINES

    columns = [series.steps(situation, quantity, "previous") for situation, quantity, _ in LINES]
    rows = [["version", *(title for *_, title in LINES)]]
    rows += [
        [name, *(short(value) for value in values)]
        for name, values in zip(series.names[1:], zip(*columns, strict=True), strict=True)
    ]
    print(series.headline(), "", aligned(rows), "", sep="\n")


def show_as(kind: str, drift: Drift, verdict: DriftVerdict, situations: tuple[str, ...]) -> None:
    """Print the result in one of `FORMATS`."""
    import json

    from relcore.commands.output import aligned, plain
    from relcore.drift.reports import facts, junit, markdown

    if kind == "json":
        rows = [plain(row) for row in verdict.table().to_dict("records")]
        print(
            json.dumps(
                plain(facts(drift, verdict, situations)) | {"checks": rows}, indent=2, ensure_ascii=False
            )
        )
    elif kind == "markdown":
        print(markdown(drift, verdict, situations), end="")
    elif kind == "junit":
        print(junit(drift, verdict, situations), end="")
    else:
        for line in lines_of(drift, verdict, situations):
            print(line if isinstance(line, str) else aligned(line))


def lines_of(drift: Drift, verdict: DriftVerdict, situations: tuple[str, ...]) -> list[str | list[list[str]]]:
    """The headline, each situation, the four shares, and the checks: all rows first, then the classes with
    an alarm.
    """
    from relcore.base.numbers import general, short
    from relcore.drift.check import cautions, circumstances, headline, shares_told, told
    from relcore.drift.reports import ordered
    from relcore.drift.verdict import SITUATIONS

    lines: list[str | list[list[str]]] = [headline(drift, verdict), ""]
    lines += [
        f"{told(drift, verdict, one)}{'' if one in situations else ' (does not decide)'}"
        for one in SITUATIONS
    ]
    lines += cautions(drift, verdict)
    if shares := shares_told(drift):
        lines += ["", [["of the change", *shares], ["share", *(short(one) for one in shares.values())]]]
        lines += ["", f"shift {general(drift.shift)} of the spread, scale × {general(drift.scale)}"]
    rows = [["situation", "quantity", "class", "value", "noise", "threshold", ""]]
    checks = ordered(verdict)
    listed = [check for check in checks if check.alarm or not check.measure.group][:_MOST_LISTED]
    for check in listed:
        one = check.measure
        numbers = (short(value) for value in (one.value, one.noise, check.threshold))
        rows.append(
            [
                SITUATIONS[one.situation].title,
                one.quantity,
                one.group or "all rows",
                *numbers,
                "alarm" * check.alarm,
            ]
        )
    more = len(checks) - len(listed)
    lines += ["", rows] + (
        [f"  and {more:,} more checks of classes; --format json lists all"] if more else []
    )
    return [*lines, "", circumstances(drift)]
