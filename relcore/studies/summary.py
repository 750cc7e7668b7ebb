"""From runs to lines: the mean over random states of what was measured, with its 95 % interval, by what was varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.charts.lines import Line
from relcore.studies.statistics import Estimate, mean
from relcore.studies.study import finding

STUDENT = "Student's t over random states"


def lines_over(table: pd.DataFrame, x: str, measures: Mapping[str, str]) -> list[Line]:
    """A line for each measured column, under its name, over the numbers of column x; columns nowhere measured are left out."""
    return [line for column, name in measures.items() if len(line := _line(table, x, column, name))]


def points_over(
    table: pd.DataFrame, by: str, choices: Sequence[Any], measures: Mapping[str, str], width: float = 0.12
) -> list[Line]:
    """The same over choices that are no numbers: x is the place among `choices`, the measures side by side."""
    placed = table.assign(place=[choices.index(value) for value in table[by]])
    lines = lines_over(placed, "place", measures)
    shifts = (np.arange(len(lines)) - (len(lines) - 1) / 2) * width
    return [Line(line.name, line.x + shift, line.y, line.low, line.high) for line, shift in zip(lines, shifts, strict=True)]


def _line(table: pd.DataFrame, x: str, column: str, name: str) -> Line:
    found = {}
    if column in table:
        measured = table[[x, column]].astype({column: float}).dropna()
        found = {float(value): mean(part[column]) for value, part in measured.groupby(x)}
    low, high = ([getattr(one, end) for one in found.values()] for end in ("low", "high"))
    return Line(name, list(found), [one.value for one in found.values()], low, high)


def findings_over(
    table: pd.DataFrame, by: str, measures: Mapping[str, str], names: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """A finding for each value of column `by` and each measured column; `names` are what people call the values."""
    rows = []
    for value, part in table.groupby(by, sort=False):
        told = names[value] if names else f"{by.replace('_', ' ')} {value:g}"
        for column, name in measures.items():
            if column in part and part[column].notna().any():
                estimate = mean(part[column].astype(float))
                rows.append(finding(f"{told}, {name}", estimate, STUDENT))
    return rows


def circumstances(table: pd.DataFrame, told: str, drawn: str = "bands") -> str:
    """The note of a chart: what each number rests on, and what its bands (or bars) are."""
    return f"{told}; {drawn}: 95 % over {table.random_state.nunique()} random states"


def average(table: pd.DataFrame, column: str) -> float:
    """The mean of a column over all runs."""
    return float(table[column].astype(float).mean())


def means_at(table: pd.DataFrame, by: str, value: Any, columns: Sequence[str]) -> list[Estimate]:
    """The mean of each column over the runs with this value; empty unless every one of them has an interval."""
    part = table[table[by] == value] if by in table else table.iloc[:0]
    found = [mean(part[column].astype(float)) for column in columns if column in part]
    return found if len(found) == len(columns) and all(one.has_interval for one in found) else []


def differences(table: pd.DataFrame, by: str, value: Any, other: Any, column: str) -> Estimate:
    """Mean over random states of this column at one value less that at another, in the same state."""
    first, second = (table[table[by] == one].set_index("random_state")[column].astype(float) for one in (value, other))
    return mean((first - second).dropna())


def listed(names: Sequence[Any]) -> str:
    """``words, digits and sentences``."""
    names = [str(name) for name in names]
    return " and ".join(([", ".join(names[:-1])] if len(names) > 1 else []) + names[-1:])
