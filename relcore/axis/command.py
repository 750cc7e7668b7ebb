"""The command `axis`, which places rows between two poles in two spaces."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from relcore.axis.task import PoleAxis
from relcore.base.access import expand_home
from relcore.base.errors import SpaceError
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.text import read_lines
from relcore.commands.command import command, values_of
from relcore.commands.inputs import spaces_of
from relcore.commands.options import ByLinks, ByRow, Pair, Results, Scheduler

_POLE_HELP = "a row's id, several ids separated by commas, or a file with one id per line"


@dataclass
class AxisOptions:
    first_pole: str = setting(
        None, option="from", metavar="IDS|FILE", help=f"The pole at which the axis begins: {_POLE_HELP}."
    )
    second_pole: str = setting(
        None, option="to", metavar="IDS|FILE", help=f"The pole at which the axis ends: {_POLE_HELP}."
    )


@command(
    (Pair, ByRow, ByLinks, AxisOptions, PoleAxis, Results, Scheduler),
    "Each row is projected onto the line between the two poles, in both spaces. A pole of several rows is"
    " their mean. The agreement is Spearman's ρ of the two places. It is compared with the ρ of axes between"
    " random rows, because models that share anything agree on nearly every axis.",
    (
        "word2vec-novels fasttext-novels --from bad --to good",
        "word2vec-novels fasttext-novels --from he,him,his --to she,her,hers --csv",
    ),
)
def run_axis(options: argparse.Namespace) -> Report:
    inputs = spaces_of(options, (options.source, options.target))
    values = vars(options)  # `options.from` would be no Python
    poles = {"start": _pole("--from", values["from"]), "end": _pole("--to", values["to"])}
    task = PoleAxis(**values_of(options, PoleAxis) | poles)
    found = inputs.result(task)
    source, target = inputs.specs
    return found.report(**inputs.chart("axis", found, source=source, target=target, axis=task))


def _pole(option: str, text: str | None) -> tuple[str, ...]:
    """The ids of a pole, as the user names them. Raises a SpaceError if there are none."""
    if not text:
        raise SpaceError(f"{option}: expected the id of a row, ids, or a file of ids, got none; name a pole")
    path = None
    if "," not in text:
        path = expand_home(text)
    if path is not None and path.is_file():
        ids = read_lines(path, "one id per line")
    else:
        ids = text.split(",")
    named = tuple(dict.fromkeys(name for one in ids if (name := one.strip())))
    if not named:
        raise SpaceError(f"{option}: expected at least one id, got none in {text!r:.200}; name rows")
    return named
