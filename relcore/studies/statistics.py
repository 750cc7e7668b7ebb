"""From runs to numbers, charts and sentences: correlations and means with their 95 % intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.numbers import short
from relcore.figures.charts import Line, Lines
from relcore.scores.score import Z95

NAMES = {"pearson": "Pearson", "spearman": "Spearman"}


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval, NaN where there are too few values for one, and the number of
    values n. ``f"{estimate:2}"`` is ``.93 (95 %: .90 to .95)``, ``f"{estimate}"`` has three decimals.
    """

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n: int = 0

    @classmethod
    def around(cls, value: float, reach: float, n: int) -> Estimate:
        return cls(float(value), float(value - reach), float(value + reach), n)

    @property
    def has_interval(self) -> bool:
        return not np.isnan(self.low)

    def __format__(self, digits: str) -> str:
        value, low, high = (short(number, int(digits or 3)) for number in (self.value, self.low, self.high))
        return f"{value} (95 %: {low} to {high})" if self.has_interval else value


def _known(x: Sequence[float], y: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise SpaceError(f"correlation: expected pairs of numbers, got {x.shape} and {y.shape}")
    known = ~(np.isnan(x) | np.isnan(y))
    return x[known], y[known]


def correlation(x: Sequence[float], y: Sequence[float], kind: str = "pearson") -> Estimate:
    """Correlation of paired numbers, −1 … 1; pairs with a NaN are left out.

    The interval is Fisher's: tanh(artanh r ± 1.96 s), with s = 1 / √(n − 3) for Pearson and s = √((1 + r² /
    2) / (n − 3)) for Spearman (Bonett and Wright 2000). NaN where n is below 4 or one side is constant.

    Raises
    ------
    SpaceError
        Sides of different length, an unknown kind.
    """
    need_one_of("correlation", kind, NAMES)
    x, y = _known(x, y)
    n = len(x)
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Estimate(n=n)
    if kind == "spearman":
        x, y = (pd.Series(values).rank().to_numpy() for values in (x, y))
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))
    if n < 4:
        return Estimate(r, n=n)
    s = np.sqrt((1 + r * r / 2 if kind == "spearman" else 1) / (n - 3))
    with np.errstate(divide="ignore"):  # r = ±1 has no width
        low, high = np.tanh(np.arctanh(r) + np.array([-Z95, Z95]) * s)
    return Estimate(r, float(low), float(high), n)


def mean(values: Iterable[float], bounded: bool = False) -> Estimate:
    """Mean with a 95 % interval: Student's, or where the values are `bounded`, such as correlations, of 2,000
    resamples. NaN and None are left out, and one value alone has no interval.
    """
    values = np.array(list(values), dtype=float)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 2:
        return Estimate(float(values[0]) if n else np.nan, n=n)
    if bounded:
        drawn = np.random.default_rng(0).choice(values, (2000, n)).mean(axis=1)
        return Estimate(float(values.mean()), *np.quantile(drawn, [0.025, 0.975]).tolist(), n)
    from scipy.special import stdtrit  # as `scipy.stats.t.ppf`, which takes longer to import than a page

    return Estimate.around(values.mean(), stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n), n)


def slope(x: Sequence[float], y: Sequence[float]) -> Estimate:
    """Slope of the least-squares line of y on x, with Student's 95 % interval; NaN below three pairs or
    for a constant x.
    """
    x, y = _known(x, y)
    n = len(x)
    if n < 3 or np.ptp(x) == 0:
        return Estimate(n=n)
    from scipy.stats import linregress, t

    line = linregress(x, y)
    return Estimate.around(line.slope, t.ppf(0.975, n - 2) * line.stderr, n)


def share(flags: Iterable[bool]) -> Estimate:
    """Share of n trials that succeed, 0 … 1, with Wilson's score interval, which holds for few trials and
    for none or all of them.
    """
    flags = np.array(list(flags), dtype=bool)
    n = len(flags)
    if not n:
        return Estimate()
    p, z = float(flags.mean()), Z95**2 / n
    wilson = Estimate.around((p + z / 2) / (1 + z), np.sqrt(z * (p * (1 - p) + z / 4)) / (1 + z), n)
    return Estimate(p, max(0.0, wilson.low), min(1.0, wilson.high), n)


# Means over the runs, which differ in their random state, by what was varied.

STUDENT = "Student's t over random states"


def average(table: pd.DataFrame, column: str) -> float:
    return float(table[column].astype(float).mean())


def mean_at(table: pd.DataFrame, by: str, value: Any, column: str) -> Estimate:
    return mean(table.loc[table[by] == value, column]) if column in table else Estimate()


def gains(table: pd.DataFrame, by: str, base: Any, column: str) -> dict[Any, Estimate]:
    """For each other value of column `by`: the mean over random states of `column` less that at `base`, in
    the same state; those that have an interval.
    """
    wide = table.pivot(index="random_state", columns=by, values=column).astype(float)
    others = [value for value in dict.fromkeys(table[by]) if value != base and base in wide]
    changes = {value: mean(wide[value] - wide[base]) for value in others}
    return {value: change for value, change in changes.items() if change.has_interval}


def sentence(text: str, *estimates: Estimate) -> str:
    """The text with the estimates in its brackets; "" unless each has an interval."""
    return text.format(*estimates) if all(one.has_interval for one in estimates) else ""


def finding(what: str, estimate: Estimate, interval: str = STUDENT) -> dict[str, Any]:
    """A row of `Study.findings`; `interval` says how it was found."""
    return {"what": what, **vars(estimate), "interval": interval if estimate.has_interval else ""}


def findings_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "value", "low", "high", "n", "interval"])


def findings_over(
    table: pd.DataFrame, by: str, measures: Mapping[str, str], names: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """A finding for each value of column `by` and each measured column; `names` are what people call the
    values, which are numbers without them.
    """
    noun = by.removeprefix("n_")
    return [
        finding(f"{names[value] if names else f'{noun} {value:g}'}, {name}", mean(part[column]))
        for value, part in table.groupby(by, sort=not names)
        for column, name in measures.items()
        if column in part and part[column].notna().any()
    ]


def lines_over(table: pd.DataFrame, x: str, measures: Mapping[str, str]) -> list[Line]:
    """A line for each measured column, under its name, over the numbers of column x; columns nowhere
    measured are left out.
    """
    lines = []
    for column, name in measures.items():
        part = table[[x, column]].astype(float).dropna() if column in table else table.iloc[:0]
        means = [mean(values) for _, values in part.groupby(x)[column]] if len(part) else []
        ends = ([getattr(one, end) for one in means] for end in ("value", "low", "high"))
        if means:
            lines.append(Line(name, sorted(set(part[x])), *ends))
    return lines


def lines_by(table: pd.DataFrame, x: str, column: str, by: str, names: Mapping[Any, str]) -> list[Line]:
    parts = table.groupby(by, sort=False)
    return [line for value, part in parts for line in lines_over(part, x, {column: names[value]})]


def chart(
    table: pd.DataFrame,
    lines: Sequence[Line],
    titles: tuple[str, str],
    rows: str,
    baselines: Mapping[str, str] | None = None,
    **look: Any,
) -> Lines:
    """Lines, or points, with axis titles (x, y). `rows` says on what the numbers rest; `baselines` are
    names and columns, of which the mean is drawn.
    """
    drawn = "bars" if look.get("kind") == "points" else "bands"
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
    """The same over choices that are no numbers: x is the place among `names`, the measures side by side."""
    choices = [choice for choice in names if choice in set(table[by])]
    lines = lines_over(table.assign(place=table[by].map(choices.index)), "place", measures)
    width = look.pop("width", 0.12)
    lines = [
        replace(line, x=line.x + (number - (len(lines) - 1) / 2) * width) for number, line in enumerate(lines)
    ]
    return chart(table, lines, *more, kind="points", x_names=tuple(names[one] for one in choices), **look)


def count_of(table: pd.DataFrame, noun: str = "test rows", column: str = "test rows") -> str:
    """``"360 test rows"``, the mean over the runs."""
    return f"{table[column].mean():,.0f} {noun}"


def listed(names: Iterable[Any]) -> str:
    *others, last = map(str, names)
    return f"{', '.join(others)} and {last}" if others else last
