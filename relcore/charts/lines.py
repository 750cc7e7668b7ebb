"""Lines with bands, or points with names: what a study measured against what it varied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import band, counted, general, short


@dataclass(frozen=True)
class Line:
    """One line, or one group of points, in one colour.

    Attributes
    ----------
    name : str
    x, y : m numbers each
        NaN in y leaves a gap.
    low, high : m numbers each, optional
        The band around the line, or the bar through each point.
    labels : m strings, optional
        Hover text of each point.
    keys : m strings, optional
        What a click on a point returns, in its ``customdata``.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    labels: Sequence[str] = ()
    keys: Sequence[str] = ()

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise SpaceError(
                f"line {self.name!r}: expected both ends of the band, low and high, or neither; got one"
            )
        for part in ("x", "y", "low", "high"):
            values = getattr(self, part)
            if values is not None:
                object.__setattr__(self, part, np.asarray(values, dtype=float))
        for part in ("y", "low", "high", "labels", "keys"):
            values = getattr(self, part)
            if (
                values is not None
                and len(values) != len(self.x)
                and not (part in ("labels", "keys") and not len(values))
            ):
                raise SpaceError(
                    f"line {self.name!r}: expected {len(self.x)} {part}, one for each x, got {len(values)}"
                )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def has_band(self) -> bool:
        return self.low is not None


@dataclass(frozen=True)
class Lines:
    """A chart of lines over one x, or of points.

    Attributes
    ----------
    lines : tuple of Line
    x_title, y_title : str
        With units where there are any.
    kind : "lines" or "points"
    log_x : bool
        For x above 0.
    baselines : tuple of (name, value)
        Dashed horizontal lines: chance, not stitched, ….
    marks : tuple of (name, x)
        Dashed vertical lines: a place on the x axis to compare with.
    note : str
        A line or two above the chart, such as a correlation with its interval.
    y_range : (low, high), optional
        Default: as the data have it.
    alt : str
        For screen readers; by default made from the numbers.
    x_names : tuple of str
        Names of x = 0, 1, 2, …, if x is a category.
    """

    lines: tuple[Line, ...]
    x_title: str
    y_title: str
    kind: str = "lines"
    log_x: bool = False
    baselines: tuple[tuple[str, float], ...] = ()
    marks: tuple[tuple[str, float], ...] = ()
    note: str = ""
    y_range: tuple[float, float] | None = None
    alt: str = ""
    x_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
        object.__setattr__(self, "baselines", tuple(self.baselines))
        object.__setattr__(self, "marks", tuple(self.marks))
        if self.kind not in ("lines", "points"):
            raise SpaceError(f"kind: expected 'lines' or 'points', got {self.kind!r}")
        if not any(map(len, self.lines)):
            raise SpaceError("chart: expected a line of one point or more, got none")
        if self.log_x and min(line.x.min() for line in self.lines if len(line)) <= 0:
            raise SpaceError(
                "log_x: expected x above 0 on a logarithmic axis, got 0 or less; draw it with log_x=False"
            )

    def table(self) -> pd.DataFrame:
        """What is drawn: columns name, x, y, low, high, label; baselines follow as rows without an x,
        marks without a y.
        """
        parts = [
            pd.DataFrame(
                {
                    "name": line.name,
                    "x": line.x,
                    "y": line.y,
                    "low": line.low if line.has_band else np.full(len(line), np.nan),
                    "high": line.high if line.has_band else np.full(len(line), np.nan),
                    "label": list(line.labels) or [""] * len(line),
                }
            )
            for line in self.lines
            if len(line)
        ]
        parts += [
            pd.DataFrame({"name": [name], "y": [float(value)], "label": "baseline"})
            for name, value in self.baselines
        ]
        parts += [
            pd.DataFrame({"name": [name], "x": [float(value)], "label": "mark"}) for name, value in self.marks
        ]
        return pd.concat(parts, ignore_index=True)

    def describe(self) -> str:
        """The alt text: `alt`, or each line's ends and range in words."""
        if self.alt:
            return self.alt
        kind = "Line chart" if self.kind == "lines" else "Scatter plot"
        told = [f"{name}: {general(value)}" for name, value in (*self.baselines, *self.marks)]
        told = [_told(line, self) for line in self.lines if len(line)] + told
        note = f" {' '.join(self.note.split())}." if self.note else ""
        return f"{kind} of {self.y_title} against {self.x_title}. {'; '.join(told)}.{note}"


def _told(line: Line, chart: Lines) -> str:
    if chart.x_names:
        ends = zip(line.x, line.y, strict=True)
        return f"{line.name}: {', '.join(f'{chart.x_names[round(x)]} {general(y)}' for x, y in ends)}"
    if chart.kind == "points":
        return (
            f"{line.name}: {counted(len(line), 'point')}, y from {general(np.nanmin(line.y))} to"
            f" {general(np.nanmax(line.y))}"
        )
    order = np.argsort(line.x, kind="stable")
    first, last = order[0], order[-1]
    return (
        f"{line.name}: {general(line.y[first])} at {general(line.x[first])}, {general(line.y[last])} at"
        f" {general(line.x[last])}"
    )


# Options with their intervals beside curves of the same score: what to choose, and what more data would
# change.

_APART = 1.4  # ratio of two ticks whose numbers have room on a narrow screen


@dataclass(frozen=True)
class ChartOption:
    """One option: its score with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    def describe(self) -> str:
        return f"{self.name} {short(self.value)} ({band(self.low, self.high)})"


@dataclass(frozen=True)
class Options:
    """A chart of two panels with one y axis.

    Attributes
    ----------
    options : tuple of Option
        Left, one colour each.
    curves : Lines
        Right; a line with the name of an option has its colour, and an option without a line is a dashed
        level.
    chosen : str
        The option that is recommended, marked; "" for none.
    """

    options: tuple[ChartOption, ...]
    curves: Lines
    chosen: str = ""

    def __post_init__(self) -> None:
        names = [option.name for option in self.options]
        if len(set(names)) < len(names) or not names:
            raise SpaceError(f"options: expected one or more with different names, got {names!r:.80}")

    @property
    def levels(self) -> tuple[ChartOption, ...]:
        """Options that do not depend on what the curves vary."""
        drawn = {line.name for line in self.curves.lines}
        return tuple(option for option in self.options if option.name not in drawn)

    @property
    def places(self) -> list[float]:
        """Where something was measured, ascending: the ticks of the x axis, without those that the next
        one would cover.
        """
        found = sorted({float(x) for line in self.curves.lines for x in line.x})
        far = [after > _APART * place if self.curves.log_x else True for place, after in pairwise(found)]
        return [place for place, is_far in zip(found, [*far, True], strict=True) if is_far]

    def colors(self, palette: list[str]) -> dict[str, str]:
        """A colour for each option, then for each other line."""
        others = [
            line.name
            for line in self.curves.lines
            if line.name not in {option.name for option in self.options}
        ]
        return dict(zip([*(option.name for option in self.options), *others], palette, strict=False))

    def table(self) -> pd.DataFrame:
        """What is drawn: columns name, x, y, low, high, label; options have no x."""
        rows = [
            {"name": one.name, "y": one.value, "low": one.low, "high": one.high, "label": "option"}
            for one in self.options
        ]
        return pd.concat([pd.DataFrame(rows), self.curves.table()], ignore_index=True)[
            ["name", "x", "y", "low", "high", "label"]
        ]

    def describe(self) -> str:
        """The alt text."""
        told = "; ".join(option.describe() for option in self.options)
        chosen = f" Recommended: {self.chosen}." if self.chosen else ""
        return f"{self.curves.y_title} with 95 % intervals: {told}.{chosen} {self.curves.describe()}"
