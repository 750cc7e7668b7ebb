"""Estimates with intervals, and the sentences and charts of their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.numbers import short
from relcore.figures.charts import Line, Lines
from relcore.scores.score import Z95, share_interval

NAMES = {"pearson": "Pearson", "spearman": "Spearman"}


@dataclass(frozen=True)
class Estimate:
    """A number that is estimated from n values, with its 95 % interval. With too few values, the ends of the
    interval are NaN.

    ``f"{estimate:2}"`` gives ``.93 (95 %: .90 to .95)``; ``f"{estimate}"`` has three decimals.
    """

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n: int = 0

    @classmethod
    def around(cls, value: float, half_width: float, n: int) -> Estimate:
        return cls(float(value), float(value - half_width), float(value + half_width), n)

    @property
    def has_interval(self) -> bool:
        return not np.isnan(self.low)

    def __format__(self, digits: str) -> str:
        n_digits = int(digits or 3)
        value = short(self.value, n_digits)
        if self.has_interval:
            low = short(self.low, n_digits)
            high = short(self.high, n_digits)
            return f"{value} (95 %: {low} to {high})"
        return value


def _known_pairs(x: Sequence[float], y: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    first = np.asarray(x, dtype=float)
    second = np.asarray(y, dtype=float)
    if first.shape != second.shape or first.ndim != 1:
        raise SpaceError(f"correlation: expected pairs of numbers, got {first.shape} and {second.shape}")
    known = ~(np.isnan(first) | np.isnan(second))
    return first[known], second[known]


def correlation(x: Sequence[float], y: Sequence[float], kind: str = "pearson") -> Estimate:
    """The correlation of paired numbers, −1 … 1. Pairs with a NaN are left out.

    The interval is Fisher's: tanh(artanh r ± 1.96 s), with s = 1 / √(n − 3) for Pearson and s = √((1 + r² /
    2) / (n − 3)) for Spearman (Bonett and Wright 2000). The result is NaN if n is below 4, or if x or y is
    constant.
    """
    need_one_of("correlation", kind, NAMES)
    (first, second) = _known_pairs(x, y)
    n = len(first)
    if n < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Estimate(n=n)
    if kind == "spearman":
        first = pd.Series(first).rank().to_numpy()
        second = pd.Series(second).rank().to_numpy()
    r = float(np.clip(np.corrcoef(first, second)[0, 1], -1, 1))
    if n < 4:
        return Estimate(r, n=n)
    variance = 1 / (n - 3)
    if kind == "spearman":
        variance = (1 + r * r / 2) / (n - 3)
    s = np.sqrt(variance)
    with np.errstate(divide="ignore"):  # for r = ±1, the interval has no width
        low, high = np.tanh(np.arctanh(r) + np.array([-Z95, Z95]) * s)
    return Estimate(r, float(low), float(high), n)


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
    x, y = _known_pairs(x, y)
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
        if column in table:
            part = table[[x, column]].astype(float).dropna()
        else:
            part = table.iloc[:0]
        means = []
        if len(part):
            means = [mean_score(values) for _, values in part.groupby(x)[column]]
        ends = ([getattr(value, end) for value in means] for end in ("value", "low", "high"))
        if means:
            lines.append(Line(name, sorted(set(part[x])), *ends))
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
    return chart(table, lines, *more, kind="points", x_names=tuple(map(names.get, choices)), **look)


def count_of(table: pd.DataFrame, noun: str = "test rows", column: str = "test rows") -> str:
    return f"{table[column].mean():,.0f} {noun}"
