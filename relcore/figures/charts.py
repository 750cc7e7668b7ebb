"""Charts as data, without a drawing library. Screen, paper and CSV files show the same numbers, because all
are made from these classes.

Two functions draw a chart, one in the module `screen` and one in `paper`; they have the same name, such as
``lines_figure``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.arguments import is_list, need_kind, need_sequence, numbers
from relcore.base.errors import SpaceError, need_one_of
from relcore.base.kinds import need_kinds
from relcore.base.numbers import general, short
from relcore.figures.diagram_names import name_sides, overlapping, texts_on_lines
from relcore.figures.style import Theme

_MARK_DIGITS = 4  # of the value of a mark in a legend, since users copy it
GREY = -1  # colour number of items that are drawn only for comparison


def mark_in_words(name: str, value: float) -> str:
    return f"{name}: {general(value, _MARK_DIGITS)}"


@dataclass(frozen=True)
class Line:
    """A line in one colour, or a group of points in one colour.

    Attributes
    ----------
    x, y : m numbers each
        The points of the line. NaN in y leaves a gap.
    low, high : m numbers each, optional
        The band around the line, or the error bar of each point.
    labels : m strings, optional
        Hover text of each point.
    color : int, optional
        Index of the colour in the palette, or `GREY`. By default, it is the position of the line in the
        chart.
    dashed : bool
        Whether the line is dashed, so that a line below it can be seen.
    hollow : bool
        Whether points are drawn as rings, so that colour alone does not tell them from others.

    Examples
    --------
    >>> from relcore import Line
    >>> Line("score", [1, 2, 3], [0.2, 0.4, 0.5]).name
    'score'
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    labels: Sequence[str] = ()
    color: int | None = None
    dashed: bool = False
    hollow: bool = False

    def __post_init__(self) -> None:
        for part in ("x", "y", "low", "high", "labels"):
            values = getattr(self, part)
            optional = part in ("low", "high") and values is None
            if optional or (part == "labels" and is_list(values) and not len(values)):
                continue
            if part == "labels":
                need_sequence(part, values, "texts")
            else:
                values = numbers(f"line {self.name!r}, {part}", values)
                object.__setattr__(self, part, values)
            if len(values) != len(self.x):
                raise SpaceError(
                    f"line {self.name!r}: expected {len(self.x)} {part}, one for each x, got {len(values)}"
                )
        need_kinds(self)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def has_band(self) -> bool:
        return self.low is not None


def _table_of(line: Line) -> pd.DataFrame:
    """The points of a line, one per row: name, x, y, low, high, label."""
    table = pd.DataFrame({"name": line.name, "x": line.x, "y": line.y, "low": np.nan, "high": np.nan})
    if line.has_band:
        table["low"] = line.low
        table["high"] = line.high
    table["label"] = ""
    if len(line.labels):
        table["label"] = list(line.labels)
    return table


@dataclass(frozen=True)
class Lines:
    """A chart of lines over a common x axis, or of points.

    Attributes
    ----------
    x_title, y_title : str
        Titles of the axes, with units.
    kind : "lines" or "points"
    baselines : tuple of (name, value)
        Dashed horizontal lines, such as the chance level.
    marks : tuple of (name, x)
        Dashed vertical lines.
    note : str
        One or two lines above the chart.
    alt : str
        Text for screen readers. By default, it is generated from the numbers.
    x_names : tuple of str
        The names of x = 0, 1, 2, …, if the x axis has categories.
    filled : bool
        Whether to colour the area beneath each line.
    n_direct : int
        The number of lines, from the first one, whose names are written at their right ends and not in the
        legend.

    Examples
    --------
    >>> from relcore import Line, Lines, chart_exportable
    >>> lines = Lines((Line("score", [1, 2, 3], [0.2, 0.4, 0.5]),), "anchors", "score")
    >>> chart_exportable(lines).table().shape[0]
    3
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
    filled: bool = False
    n_direct: int = 0

    figure: ClassVar[str] = "lines_figure"

    def __post_init__(self) -> None:
        for name in ("lines", "baselines", "marks"):
            need_sequence(name, getattr(self, name), name)
            object.__setattr__(self, name, tuple(getattr(self, name)))
        need_kinds(self)
        need_one_of("kind", self.kind, ("lines", "points"))
        if not any(map(len, self.lines)):
            raise SpaceError("chart: expected a line of one point or more, got none")
        if self.log_x and min(line.x.min() for line in self.lines if len(line)) <= 0:
            raise SpaceError(
                "log_x: expected x above 0 on a logarithmic axis, got 0 or less; draw it with log_x=False"
            )

    def colors(self, theme: Theme) -> list[str]:
        places = [place if line.color is None else line.color for place, line in enumerate(self.lines)]
        palette = theme.category_colors(1 + max(places))
        return [theme.neutral if place == GREY else palette[place] for place in places]

    @property
    def counts(self) -> bool:
        """Whether all x values are whole numbers. If so, only whole numbers are labelled."""
        return not self.log_x and all((line.x % 1 == 0).all() for line in self.lines if len(line))

    @property
    def log_ticks(self) -> list[float]:
        """The tick labels of a logarithmic x axis: 1, 2 and 5 times each power of ten, or only the powers if
        there are many. (By default, Plotly would label 20 as 2, and Matplotlib only powers.)"""
        xs = np.concatenate([line.x for line in self.lines])
        powers = 10.0 ** np.arange(np.floor(np.log10(xs.min())), np.log10(xs.max()) + 1)
        return np.outer(powers, [1, 2, 5] if len(powers) < 5 else [1]).ravel().tolist()

    def table(self) -> pd.DataFrame:
        """A table of the plotted numbers: name, x, y, low, high, label. Baselines have no x; marks have no
        y."""
        parts = [_table_of(line) for line in self.lines if len(line)]
        for name, y in self.baselines:
            parts.append(pd.DataFrame([{"name": name, "y": float(y), "label": "baseline"}]))
        for name, x in self.marks:
            parts.append(pd.DataFrame([{"name": name, "x": float(x), "label": "mark"}]))
        return pd.concat(parts, ignore_index=True)

    def describe(self) -> str:
        """A description of the chart for screen readers: `alt`, or a text that is made from the numbers."""
        if self.alt:
            return self.alt
        kind = "Scatter plot"
        if self.kind == "lines":
            kind = "Line chart"
        parts = [f"{line.name}: {self._line_in_words(line)}" for line in self.lines if len(line)]
        parts += [f"{name}: {general(value)}" for name, value in self.baselines]
        parts += [mark_in_words(name, value) for name, value in self.marks]
        note = ""
        if self.note:
            note = f" {' '.join(self.note.split())}."
        return f"{kind} of {self.y_title} against {self.x_title}. {'; '.join(parts)}.{note}"

    def _line_in_words(self, line: Line) -> str:
        x = line.x
        y = line.y
        if self.x_names:
            return ", ".join(f"{self.x_names[round(a)]} {general(b)}" for a, b in zip(x, y, strict=True))
        ends = np.argsort(x, kind="stable")[[0, -1]]
        return ", ".join(f"{general(y[end])} at {general(x[end])}" for end in ends)


@dataclass(frozen=True)
class Gauge:
    """A value, at least 0, with the upper end of its interval, as a bar on an axis. From `limit` to 1, the
    axis is shaded. `below` and `above` are the names of the ranges below and above the limit."""

    title: str
    value: float
    high: float
    limit: float
    below: str
    above: str

    @property
    def end(self) -> float:
        """The end of the axis, with room for the number beside the bar."""
        return max(1.0, self.high) + 0.2

    @property
    def in_words(self) -> str:
        high = ""
        if self.high > self.value:
            high = f", at most {short(self.high)}"
        return f"{self.title}: {short(self.value)}{high}; {self.above}: from {short(self.limit)}"

    def describe(self) -> str:
        return f"{self.in_words}."

    def table(self) -> pd.DataFrame:
        """One row, with the bar's end as x and the end of its interval as high."""
        return pd.DataFrame([{"name": self.title, "x": self.value, "high": self.high, "label": "bar"}])


@dataclass(frozen=True, eq=False)
class MapWithEvidence:
    """A map of points and, below it, what the map is evidence of: a bar and a histogram, if there are any."""

    points: Lines
    gauge: Gauge | None = None
    histogram: Lines | None = None

    figure: ClassVar[str] = "evidence_figure"

    @property
    def below(self) -> list[Gauge | Lines]:
        """The charts below the map."""
        return [chart for chart in (self.gauge, self.histogram) if chart is not None]

    def describe(self) -> str:
        return " ".join(chart.describe() for chart in (self.points, *self.below))

    def table(self) -> pd.DataFrame:
        """The tables of the charts, one below the other."""
        return pd.concat([chart.table() for chart in (self.points, *self.below)], ignore_index=True)


@dataclass(frozen=True, eq=False)
class Diagram:
    """A diagram of named points in the plane. Both axes have the same scale.

    Attributes
    ----------
    names : n strings
    points : array (n, 2)
    alt : str
        A description of the diagram in words.
    lines : {(i, j): text}, optional
        Lines between points i and j, each with a text on it.
    hover : n strings, optional
        Hover text of each point, below its name.
    """

    names: tuple[str, ...]
    points: np.ndarray
    alt: str
    lines: Mapping[tuple[int, int], str] = field(default_factory=dict)
    hover: tuple[str, ...] = ()

    figure: ClassVar[str] = "diagram_figure"

    def describe(self) -> str:
        return self.alt

    @property
    def sides(self) -> list[str]:
        """For each point, the side on which its name is written; see `name_sides`."""
        return name_sides(self.points, self.names, self.lines)

    def line_texts(self) -> list[tuple[np.ndarray, str]]:
        """The texts on the lines, each with its position. Texts without room are left out."""
        shares = texts_on_lines(self.points, self.names, self.sides, list(self.lines))
        return [
            ((1 - share) * self.points[i] + share * self.points[j], text)
            for share, ((i, j), text) in zip(shares, self.lines.items(), strict=True)
            if share is not None
        ]

    def table(self) -> pd.DataFrame:
        """The points as a table: name, x, y."""
        return pd.DataFrame({"name": self.names, "x": self.points[:, 0], "y": self.points[:, 1]})


@dataclass(frozen=True, eq=False)
class MovingPoints:
    """The same points on several maps, which are animated on screen, and drawn side by side on paper.

    Attributes
    ----------
    titles : t strings
    places : array (t, n, 2)
    names : n strings
    groups : array (n,) of int
        Index of the group of each point. −1, and an index beyond `group_names`, mean that it has no group.
    group_names : strings
    about : str
        What the points are, for the alternative text.
    """

    titles: tuple[str, ...]
    places: np.ndarray
    names: tuple[str, ...]
    groups: np.ndarray
    group_names: tuple[str, ...]
    about: str

    figure: ClassVar[str] = "moving_figure"

    def describe(self) -> str:
        return f"{len(self.names):,} {self.about}, in {len(self.titles)} maps: {', '.join(self.titles[:20])}."

    @property
    def edges(self) -> tuple[np.ndarray, float]:
        """The common limits of all maps: the centre (2,) of a square that contains nearly all points, and
        half of its side."""
        low, high = np.percentile(self.places.reshape(-1, 2), (0.5, 99.5), axis=0)
        return (low + high) / 2, 0.53 * float((high - low).max()) or 1.0

    def colors(self, theme: Theme) -> list[str]:
        return _colors_of_groups(self.groups, len(self.group_names), theme)

    def named(self, letter: tuple[float, float]) -> tuple[list[str], np.ndarray]:
        """Return the names of the g groups that have points, and the position of each name on each map, an
        array (t, g, 2). It is the median of the group's points, or a free place above or below it; NaN if no
        place is free.

        `letter` is the width and the height of a letter, as shares of the side of the map.
        """
        numbers = [number for number in range(len(self.group_names)) if (self.groups == number).any()]
        names = [self.group_names[number] for number in numbers]
        middle, half_width = self.edges
        places = np.full((len(self.titles), len(numbers), 2), np.nan)
        for t, points in enumerate(self.places):
            boxes = np.empty((0, 4))  # those of the names that have a place
            for g, number in enumerate(numbers):
                median = np.median(points[self.groups == number], axis=0)
                on_map = (median - middle) / (2 * half_width) + 0.5
                half = np.array([letter[0] * (len(names[g]) + 1) / 2, _HALF * letter[1]])
                found = _free_box(on_map, half, letter[1], boxes)
                if found is not None:
                    up, box = found
                    boxes = np.vstack([boxes, box])
                    places[t, g] = median + 2 * half_width * up
        return names, places

    def table(self) -> pd.DataFrame:
        """A table with one row per point and map. Columns: map, name, group, x, y."""
        t, n = self.places.shape[:2]
        names = dict(enumerate(self.group_names))
        groups = [names.get(group, "") for group in self.groups]
        columns = {"map": np.repeat(self.titles, n), "name": self.names * t, "group": groups * t}
        return pd.DataFrame(columns | {"x": self.places[..., 0].ravel(), "y": self.places[..., 1].ravel()})


@dataclass(frozen=True, eq=False)
class MovingPanels:
    """The same points in several panels, which move together from frame to frame, over a chart of lines.

    Attributes
    ----------
    panels : p strings
        The titles of the panels.
    frames : t strings
        The titles of the frames.
    places : array (p, t, n, 2)
    names, groups, group_names, about
        As in `MovingPoints`.
    lines : Lines
    xs : t numbers
        The place of each frame on the x axis of the lines.
    start : int
        The frame that is drawn first.
    """

    panels: tuple[str, ...]
    frames: tuple[str, ...]
    places: np.ndarray
    names: tuple[str, ...]
    groups: np.ndarray
    group_names: tuple[str, ...]
    about: str
    lines: Lines
    xs: tuple[float, ...]
    start: int = 0

    figure: ClassVar[str] = "moving_panels_figure"

    def describe(self) -> str:
        ends = f"{self.frames[0]} to {self.frames[-1]}"
        return (
            f"{len(self.names):,} {self.about}, of {', '.join(self.panels)}, {ends}. {self.lines.describe()}"
        )

    @property
    def reach(self) -> float:
        """Half of the side of a square around 0 that contains nearly all points of all frames."""
        return 1.08 * float(np.percentile(np.abs(self.places), 99.7)) or 1.0

    def colors(self, theme: Theme) -> list[str]:
        return _colors_of_groups(self.groups, len(self.group_names), theme)

    def table(self) -> pd.DataFrame:
        """The numbers of the lines; the points are too many to print."""
        return self.lines.table()


# Heights of a name above the median, in order, and half the height of its box, in lines. Boxes on two of
# these heights do not overlap.
_LINES = (0.0, 1.1, -1.1, 2.2, -2.2, 3.3, -3.3)
_HALF = 0.54


def _colors_of_groups(groups: np.ndarray, n_groups: int, theme: Theme) -> list[str]:
    """The colour of each point by the number of its group. Other numbers mean no group."""
    colors = dict(enumerate(theme.category_colors(n_groups)))
    return [colors.get(group, theme.neutral) for group in groups]


def _free_box(
    place: np.ndarray, half: np.ndarray, line: float, boxes: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """How far a name moves up from its place (2,) so that it overlaps no other name, and its box (left,
    bottom, right, top) there; None if no place is free. `half` is half of the name's width and height. All
    are shares of the side of the map.
    """
    for lines in _LINES:
        up = np.array([0.0, lines * line])
        box = np.concatenate([place + up - half, place + up + half])
        _, bottom, _, top = box
        if bottom >= 0 and top <= 1 and not overlapping(boxes, box).any():
            return up, box
    return None


def score_points(table: pd.DataFrame) -> Lines:
    """A chart of scores with their intervals, side by side for each metric. The bands of the chance level are
    drawn behind the scores."""
    representations = table.form.unique().tolist()
    metrics = tuple(map(str, table.metric.unique()))
    numbers = table.form.map(representations.index)
    side = 0.8 * (numbers - (len(representations) - 1) / 2) / len(representations)
    table = table.assign(x=table.metric.map(metrics.index) + side)
    known = table.dropna(subset=["null_low", "null_high"])
    bands = known.null_low, known.null_high
    lines = [Line("chance level, 95 % band", known.x, sum(bands) / 2, *bands, known.metric.tolist(), GREY)]
    for number, representation in enumerate(representations):
        part = table[table.form == representation]
        ends = ()
        if {"low", "high"} <= {*part}:
            ends = (part.low, part.high)
        labels = part.metric.tolist()
        lines.append(Line(str(representation), part.x, part.score, *ends, labels=labels, color=number))
    title = "score (1 = identical)"
    return Lines(tuple(lines), "metric", title, kind="points", x_names=metrics)


_FEWEST_BINS = 20
_MOST_BINS = 80


def histogram_table(values_by_name: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A table of histograms with common bins. Columns: name, left, right, count, percent.

    The rule of Freedman and Diaconis gives the number of bins, which is limited to 20 … 80. Raises a
    SpaceError if there is no array, and for empty arrays, NaN, infinity and masked values.
    """
    need_kind("histogram", values_by_name, Mapping)
    arrays = {str(name): numbers(f"histogram, {name}", v) for name, v in values_by_name.items()}
    bad = [name for name, values in arrays.items() if not len(values) or not np.isfinite(values).all()]
    if bad or not arrays:
        raise SpaceError(
            f"histogram: expected arrays of finite values, got empty or infinite ones: {bad!r:.80}"
        )
    pooled = np.concatenate(list(arrays.values()))
    low, quarter, three_quarters, high = np.percentile(pooled, [0, 25, 75, 100])
    width = 2 * (three_quarters - quarter) / len(pooled) ** (1 / 3)
    n_bins = _FEWEST_BINS
    if width > 0:
        n_bins = int(np.clip((high - low) / width, _FEWEST_BINS, _MOST_BINS))
    edges = np.histogram_bin_edges(pooled, n_bins)
    parts = []
    for name, values in arrays.items():
        count = np.histogram(values, edges)[0]
        facts = {"name": name, "left": edges[:-1], "right": edges[1:], "count": count}
        parts.append(pd.DataFrame(facts | {"percent": 100 * count / count.sum()}))
    return pd.concat(parts, ignore_index=True)


def histogram_lines(values_by_name: Mapping[str, np.ndarray], x_title: str) -> Lines:
    """A chart of histograms with common bins, drawn as filled outlines."""
    lines = []
    names = []
    for name, part in histogram_table(values_by_name).groupby("name", sort=False):
        edges = np.repeat([*part.left, part.right.iloc[-1]], 2)
        lines.append(Line(name, edges, np.concatenate([[0], np.repeat(part.percent, 2), [0]])))
        names.append(f"{name} (n = {part['count'].sum():,})")
    alt = f"Histogram. {x_title} of {', '.join(names)}."
    return Lines(tuple(lines), x_title, "share of rows (%)", alt=alt, filled=True)
