"""The figure, table and sentence of `Differences`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial

import pandas as pd

from relcore.base.numbers import short
from relcore.base.settings import check
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe
from relcore.compare.differences import (
    Differences,
    DifferenceSettings,
    FoundDifferences,
    MovedGroup,
    with_anchors,
)
from relcore.compare.noise import SIGNIFICANT
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.spaces.matching import match

SHOWN = 30  # maximum number of groups whose names can be read below the chart
_LONGEST = 28  # maximum number of letters of a group's name on the axis


@dataclass(frozen=True, kw_only=True)
class GroupDifferences(DifferenceSettings, Recipe, figure="differences"):
    """A figure of the share of neighbours that the second space keeps, for each class or cluster."""

    spaces: tuple[SpaceSpec, SpaceSpec]
    digests: tuple[str, ...] = ()

    __post_init__ = check

    @property
    def task(self) -> Differences:
        settings = {item.name: getattr(self, item.name) for item in fields(DifferenceSettings)}
        if self.representation == "absolute":
            del settings["anchors"], settings["projection"]
        return Differences(**settings)

    def draw(self, result: FoundDifferences | None = None) -> Exportable:
        if result is None:
            pair = match(*self.loaded())
            result = with_anchors(self.task.run((pair.source, pair.target)), pair, self.anchors)
        chart = differences_lines(result, self.groups)
        drawn = chart_exportable(chart, self.to_json(), "relscope-differences")
        table = partial(differences_table, result)
        latex = partial(printed_table, result)
        return replace(drawn, table=table, latex=latex)


def differences_lines(found: FoundDifferences, kind: str) -> Lines:
    """A chart of the groups, those that moved most first, with 95 % bands under noise of the same size for
    all rows."""
    shown = found.groups[:SHOWN]
    expected = [group.expected for group in shown]
    low = [group.low for group in shown]
    high = [group.high for group in shown]
    lines = [Line("equal noise, 95 %", range(len(shown)), expected, low, high)]
    rest = [group for group in found.groups if group not in found.moved + found.too_small]
    for groups, name in (
        (found.moved, f"moved more than equal noise, p < {short(SIGNIFICANT, 2)}"),
        (rest, "not more than equal noise"),
        (found.too_small, f"too small to be judged with k = {found.k}"),
    ):
        places = [place for place, group in enumerate(shown) if group in groups]
        if places:
            agreements = [shown[place].agreement for place in places]
            labels = [f"{shown[place].name}: {p_in_words(shown[place])}" for place in places]
            lines.append(Line(name, places, agreements, labels=labels))
    return Lines(
        tuple(lines),
        "",
        f"neighbours kept (Jaccard, k = {found.k})",
        kind="points",
        note=summary(found, kind),
        x_names=tuple(_shortened(group.name) for group in shown),
    )


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    return name[: _LONGEST - 1].rstrip(" ,") + "…"


def summary(found: FoundDifferences, kind: str) -> str:
    """The result in words: ``"2 of 10 classes moved more than equal noise explains (p < .05, corrected for 10
    classes)"``."""
    n = len(found.groups)
    moved = f"{len(found.moved)} of {n} {kind} moved more than equal noise explains"
    text = f"{moved} (p < .05, corrected for {n} {kind})"
    if small := len(found.too_small):
        those = f"{small} with at most {found.k + 1} rows {'is' if small == 1 else 'are'}"
        text += f"; {those} too small to be judged with k = {found.k}"
    if n > SHOWN:
        return f"{text}; the {SHOWN} that moved most are shown"
    return text


def p_in_words(group: MovedGroup) -> str:
    """The p-value in words: ``"p = .012"`` or ``"p < .001"``."""
    if group.p < 0.001:
        return "p < .001"
    return f"p = {short(group.p)}"


def differences_table(found: FoundDifferences) -> pd.DataFrame:
    """A table with one row per group. The columns low and high give the 95 % band under noise of the same
    size in all rows; p is corrected for the number of groups."""
    names = {"name": "group", "n": "rows", "n_queries": "compared"}
    table = pd.DataFrame([vars(group) for group in found.groups]).rename(columns=names)
    for column in ("examples", "source_anchors", "target_anchors"):
        table[column] = table[column].map("; ".join)
    table.insert(9, "k", found.k)
    table.insert(10, "n", found.n)
    return table


def printed_table(found: FoundDifferences) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "group": [group.name for group in found.groups],
            "n": [group.n_queries for group in found.groups],
            f"agreement, k = {found.k}": [f"{group.agreement:.3f}" for group in found.groups],
            "equal noise (95 %)": [f"{group.low:.3f} to {group.high:.3f}" for group in found.groups],
            "p": ["< .001" if group.p < 0.001 else f"{group.p:.3f}" for group in found.groups],
        }
    )
