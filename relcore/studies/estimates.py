"""Estimates with intervals, and the sentences and charts of their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.figures.charts import Line, Lines
from relcore.scores.estimate import Estimate, known_pairs
from relcore.scores.score import share_interval


def mean(values: Iterable[float], bounded: bool = False, among: int = 1) -> Estimate:
    """The mean of values, with Student's 95 % interval. For `bounded` values, such as correlations, the
    interval is computed from 2,000 bootstrap samples.

    NaN and None are left out. The mean of a single value has no interval. If this is one of several means,
    `among` is their number, and the interval is wider, so that all intervals hold at once (Bonferroni).
    """
    values = np.array(list(values), dtype=float)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 2:
        return Estimate(float(values[0]) if n else np.nan, n=n)
    if bounded:
        resampled = np.random.default_rng(0).choice(values, (2000, n)).mean(axis=1)
        return Estimate(float(values.mean()), *np.quantile(resampled, [0.025, 0.975]).tolist(), n)
    from scipy.special import stdtrit  # equals `scipy.stats.t.ppf`, but is imported faster

    return Estimate.around(
        values.mean(), stdtrit(n - 1, 1 - 0.025 / among) * values.std(ddof=1) / np.sqrt(n), n
    )


def mean_score(values: Iterable[float]) -> Estimate:
    """The `mean` of scores. Its interval is cut to 0 … 1; if a score is negative, to −1 … 1."""
    values = np.array(list(values), dtype=float)
    estimate = mean(values)
    least = np.nanmin(values, initial=0)
    most = np.nanmax(values, initial=0)
    cut = {"low": max(estimate.low, -1.0 if least < 0 else 0.0), "high": min(estimate.high, 1.0)}
    if most > 1:
        return estimate
    return replace(estimate, **cut)


def slope(x: Sequence[float], y: Sequence[float]) -> Estimate:
    """The least-squares slope of y on x, with Student's 95 % interval. NaN if there are fewer than three
    pairs or x is constant."""
    x, y = known_pairs(x, y)
    n = len(x)
    if n < 3 or np.ptp(x) == 0:
        return Estimate(n=n)
    from scipy.stats import linregress, t

    line = linregress(x, y)
    return Estimate.around(line.slope, t.ppf(0.975, n - 2) * line.stderr, n)


def share(flags: Iterable[bool]) -> Estimate:
    flags = np.array(list(flags), dtype=bool)
    n = len(flags)
    if not n:
        return Estimate()
    p = float(flags.mean())
    return Estimate(p, *share_interval(p, n), n)


STUDENT = "Student's t over random states"


def average(table: pd.DataFrame, column: str) -> float:
    return float(table[column].astype(float).mean())


def mean_at(table: pd.DataFrame, by: str, value: Any, column: str) -> Estimate:
    if column in table:
        return mean_score(table.loc[table[by] == value, column])
    return Estimate()


def gains(table: pd.DataFrame, by: str, base: Any, column: str) -> dict[Any, Estimate]:
    """For each value of the column `by`, the mean gain of `column` over the value `base` in the same random
    state.

    The intervals hold for all values at once (Bonferroni), so that the best value can be named. Values whose
    mean has no interval are left out.
    """
    wide = table.pivot(index="random_state", columns=by, values=column).astype(float)
    others = [value for value in dict.fromkeys(table[by]) if value != base and base in wide]
    changes = {value: mean(wide[value] - wide[base], among=len(others)) for value in others}
    return {value: change for value, change in changes.items() if change.has_interval}


def sentence(text: str, *estimates: Estimate) -> str:
    """The text with its {} replaced by the estimates; "" unless each estimate has an interval."""
    if all(estimate.has_interval for estimate in estimates):
        return text.format(*estimates)
    return ""


def finding(what: str, estimate: Estimate, interval: str = STUDENT) -> dict[str, Any]:
    return {"what": what, **vars(estimate), "interval": interval if estimate.has_interval else ""}


def findings_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "value", "low", "high", "n", "interval"])


def findings_over(
    table: pd.DataFrame, by: str, measures: Mapping[str, str], names: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """The findings for each value of the column `by` and each measured column. Without `names`, the values of
    `by` are numbers.
    """
    noun = by.removeprefix("n_")
    findings = []
    for value, part in table.groupby(by, sort=not names):
        if names:
            title = names[value]
        else:
            title = f"{noun} {value:g}"
        for column, name in measures.items():
            if column in part and part[column].notna().any():
                findings.append(finding(f"{title}, {name}", mean_score(part[column])))
    return findings


def lines_over(table: pd.DataFrame, x: str, measures: Mapping[str, str]) -> list[Line]:
    """A line for each measured column, over the numbers in column x. Columns without values are left out."""
    lines = []
    for column, name in measures.items():
        if column not in table:
            continue
        part = table[[x, column]].astype(float).dropna()
        if not len(part):
            continue
        means = [mean_score(values) for _, values in part.groupby(x)[column]]
        line = Line(
            name,
            sorted(set(part[x])),
            [mean.value for mean in means],
            [mean.low for mean in means],
            [mean.high for mean in means],
        )
        lines.append(line)
    return lines


def chart(
    table: pd.DataFrame,
    lines: Sequence[Line],
    titles: tuple[str, str],
    rows: str,
    baselines: Mapping[str, str] | None = None,
    **look: Any,
) -> Lines:
    """A chart of lines or points, with axis titles (x, y).

    `rows` is a text about the rows behind the numbers. `baselines` are the names and columns of means that
    are drawn as baselines.
    """
    drawn = "bands"
    if look.get("kind") == "points":
        drawn = "bars"
    note = f"{rows}; {drawn}: 95 % over {table.random_state.nunique()} random states"
    levels = tuple((name, average(table, column)) for name, column in (baselines or {}).items())
    return Lines(tuple(lines), *titles, baselines=levels, note=note, **look)


def points_chart(
    table: pd.DataFrame,
    by: str,
    names: Mapping[Any, str],
    measures: Mapping[str, str],
    *more: Any,
    **look: Any,
) -> Lines:
    """A `chart` over categories. x is the index among `names`, and the measures stand side by side."""
    choices = [choice for choice in names if choice in set(table[by])]
    lines = lines_over(table.assign(place=table[by].map(choices.index)), "place", measures)
    width = look.pop("width", 0.12)
    lines = [
        replace(line, x=line.x + (number - (len(lines) - 1) / 2) * width) for number, line in enumerate(lines)
    ]
    x_names = tuple(names[choice] for choice in choices)
    return chart(table, lines, *more, kind="points", x_names=x_names, **look)


def count_of(table: pd.DataFrame, noun: str = "test rows", column: str = "test rows") -> str:
    return f"{table[column].mean():,.0f} {noun}"
