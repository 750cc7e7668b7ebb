"""Charts as data: the same numbers on screen, on paper and in CSV.

`screen` and `paper` draw them under one name, such as ``lines_figure``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import general, in_cell
from relcore.figures.style import Theme, cell_color

GREY = -1  # the colour of what is drawn for comparison only

# Lines with bands, or points with names.


@dataclass(frozen=True)
class Line:
    """A line, or a group of points, in one colour.

    Attributes
    ----------
    x, y : m numbers each
        NaN in y leaves a gap.
    low, high : m numbers each, optional
        The band around the line, or the error bar of each point.
    labels : m strings, optional
        Hover text of each point.
    color : int, optional
        Index of its colour in the palette, or `GREY`; by default the line's index.
    dashed : bool
        Whether a line below shows through.

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

    def __post_init__(self) -> None:
        for part in ("x", "y", "low", "high", "labels"):
            values = getattr(self, part)
            if values is None or (part == "labels" and not len(values)):
                continue
            if len(values) != len(self.x):
                raise SpaceError(
                    f"line {self.name!r}: expected {len(self.x)} {part}, one for each x, got {len(values)}"
                )
            if part != "labels":
                object.__setattr__(self, part, np.asarray(values, dtype=float))

    def __len__(self) -> int:
        return len(self.x)

    @property
    def has_band(self) -> bool:
        return self.low is not None


@dataclass(frozen=True)
class Lines:
    """A chart of lines over a common x, or of points.

    Attributes
    ----------
    x_title, y_title : str
        Titles of the axes, with units.
    kind : "lines" or "points"
    baselines : tuple of (name, value)
        Dashed horizontal lines: chance, not stitched, ….
    marks : tuple of (name, x)
        Dashed vertical lines.
    note : str
        One or two lines above the chart.
    alt : str
        Text for screen readers; by default generated from the numbers.
    x_names : tuple of str
        Names of x = 0, 1, 2, …, if x is a category.
    filled : bool
        Whether to colour the area beneath each line.
    n_direct : int
        The number of first lines whose names are written at their right ends, not in the legend.

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
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not any(map(len, self.lines)):
            raise SpaceError("chart: expected a line of one point or more, got none")
        if self.log_x and min(line.x.min() for line in self.lines if len(line)) <= 0:
            raise SpaceError(
                "log_x: expected x above 0 on a logarithmic axis, got 0 or less; draw it with log_x=False"
            )

    def colors(self, theme: Theme) -> list[str]:
        """The colour of each line."""
        places = [place if line.color is None else line.color for place, line in enumerate(self.lines)]
        palette = theme.category_colors(1 + max(places))
        return [theme.neutral if place == GREY else palette[place] for place in places]

    @property
    def counts(self) -> bool:
        """Whether all x are whole numbers."""
        return not self.log_x and all((line.x % 1 == 0).all() for line in self.lines if len(line))

    @property
    def log_ticks(self) -> list[float]:
        """The labelled x of a logarithmic axis: 1, 2 and 5 in each power of ten, or the powers if they are
        many. Plotly labels 2 and 5 without their power, Matplotlib powers only."""
        xs = np.concatenate([line.x for line in self.lines])
        powers = 10.0 ** np.arange(np.floor(np.log10(xs.min())), np.log10(xs.max()) + 1)
        return np.outer(powers, [1, 2, 5] if len(powers) < 5 else [1]).ravel().tolist()

    def table(self) -> pd.DataFrame:
        """The plotted numbers: name, x, y, low, high, label; baselines have no x, marks no y."""
        parts = []
        for line in filter(len, self.lines):
            ends = {"low": line.low, "high": line.high} if line.has_band else {"low": np.nan, "high": np.nan}
            facts = {"name": line.name, "x": line.x, "y": line.y, **ends, "label": list(line.labels) or ""}
            parts.append(pd.DataFrame(facts))
        for kind, axis, values in (("baseline", "y", self.baselines), ("mark", "x", self.marks)):
            parts += [pd.DataFrame([{"name": n, axis: float(v), "label": kind}]) for n, v in values]
        return pd.concat(parts, ignore_index=True)

    def describe(self) -> str:
        """The alternative text."""
        if self.alt:
            return self.alt
        kind = "Line chart" if self.kind == "lines" else "Scatter plot"
        parts = [f"{line.name}: {self._line_in_words(line)}" for line in self.lines if len(line)]
        parts += [f"{name}: {general(value)}" for name, value in (*self.baselines, *self.marks)]
        note = f" {' '.join(self.note.split())}." if self.note else ""
        return f"{kind} of {self.y_title} against {self.x_title}. {'; '.join(parts)}.{note}"

    def _line_in_words(self, line: Line) -> str:
        x, y = line.x, line.y
        if self.x_names:
            return ", ".join(f"{self.x_names[round(a)]} {general(b)}" for a, b in zip(x, y, strict=True))
        ends = np.argsort(x, kind="stable")[[0, -1]]
        return ", ".join(f"{general(y[end])} at {general(x[end])}" for end in ends)


# Heat maps in one colour scale.

Label = str | float


@dataclass(frozen=True, eq=False)
class Diagram:
    """A diagram of named points in the plane; both axes have the same scale.

    Attributes
    ----------
    names : n of str
    points : array (n, 2)
    alt : str
        The figure in words.
    lines : {(i, j): text}, optional
        Lines between two points, each with a text on it.
    hover : n of str, optional
        Text below a point's name on hover.
    """

    names: tuple[str, ...]
    points: np.ndarray
    alt: str
    lines: Mapping[tuple[int, int], str] = field(default_factory=dict)
    hover: tuple[str, ...] = ()

    figure: ClassVar[str] = "diagram_figure"

    def describe(self) -> str:
        return self.alt

    def line_texts(self) -> list[tuple[np.ndarray, str]]:
        """The place and the text of each line that has room for it: not its middle, where two may cross."""
        told, reach = [], np.ptp(self.points, axis=0).max() * np.array([0.13, 0.07])
        for (i, j), text in self.lines.items():
            place = 0.6 * self.points[i] + 0.4 * self.points[j]
            others = np.array([*self.points, *(other for other, _ in told)])
            if (np.abs(others - place) > reach).any(axis=1).all():
                told.append((place, text))
        return told

    def table(self) -> pd.DataFrame:
        """The points as a table: name, x, y."""
        return pd.DataFrame({"name": self.names, "x": self.points[:, 0], "y": self.points[:, 1]})


@dataclass(frozen=True, eq=False)
class MovingPoints:
    """The same points on several maps: animated on screen, side by side on paper.

    Attributes
    ----------
    titles : t of str
    places : array (t, n, 2)
    names : n of str
    groups : array (n,) of int
        Index of each point's group; −1, or an index beyond `group_names`, means none.
    group_names : of str
    about : str
        A description of the points, for the text alternative.
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
        """Centre (2,) and half of the side of a square that contains nearly all points."""
        low, high = np.percentile(self.places.reshape(-1, 2), (0.5, 99.5), axis=0)
        return (low + high) / 2, 0.56 * float((high - low).max()) or 1.0

    def colors(self, theme: Theme) -> list[str]:
        """The colour of each point."""
        palette = theme.category_colors(len(self.group_names))
        return [palette[group] if 0 <= group < len(palette) else theme.neutral for group in self.groups]

    def named(self, letter: tuple[float, float]) -> tuple[list[str], np.ndarray]:
        """Names of the groups that have points, and the position of each on each map, (t, g, 2): the median
        of its points, or a free line near it; NaN if no line is free.

        `letter` is the width and height of a letter as shares of the map's side.
        """
        there = [number for number in range(len(self.group_names)) if (self.groups == number).any()]
        names, (middle, half_width) = [self.group_names[number] for number in there], self.edges
        places = np.full((len(self.titles), len(there), 2), np.nan)
        for t, points in enumerate(self.places):
            boxes: list[Box] = []
            for g, number in enumerate(there):
                own = np.median(points[self.groups == number], axis=0)
                x, y = (own - middle) / (2 * half_width) + 0.5
                half = letter[0] * (len(names[g]) + 1) / 2
                if (lines := free_line(boxes, (x, y), half, letter[1])) is not None:
                    places[t, g] = own[0], own[1] + lines * letter[1] * 2 * half_width
        return names, places

    def table(self) -> pd.DataFrame:
        """One row per point and map: map, name, group, x, y."""
        t, n = self.places.shape[:2]
        groups = [self.group_names[i] if 0 <= i < len(self.group_names) else "" for i in self.groups]
        columns = {"map": np.repeat(self.titles, n), "name": self.names * t, "group": groups * t}
        return pd.DataFrame(columns | {"x": self.places[..., 0].ravel(), "y": self.places[..., 1].ravel()})


Box = tuple[float, ...]  # left, bottom, right, top
_LINES = (0.0, 1.1, -1.1, 2.2, -2.2, 3.3, -3.3)  # possible heights of a name above its median, in lines


def free_line(boxes: list[Box], place: tuple[float, float], half: float, line: float) -> float | None:
    """How many lines of text a name moves up from its place to be on the map and touch none of the boxes, to
    which its own is added; None if there is no such line.

    All lengths are shares of the map; `half` is half of the name's width, `line` the height of a letter.
    """
    high = line * 0.54  # a line apart touches nothing
    for lines in _LINES:
        x, y = place[0], place[1] + lines * line
        box = (x - half, y - high, x + half, y + high)
        if box[1] >= 0 and box[3] <= 1 and not any(_touch(box, other) for other in boxes):
            boxes.append(box)
            return lines
    return None


def _touch(box: Box, other: Box) -> bool:
    return box[0] < other[2] and box[2] > other[0] and box[1] < other[3] and box[3] > other[1]


CellTexts = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class MatrixPanel:
    """A heat map.

    Attributes
    ----------
    rows, columns : r and c names or numbers
        Distinct; numbers are spaced evenly, in this order.
    values : array (r, c)
        NaN for no value.
    texts : r × c of str, optional
        Shown if they fit, with small print after a line feed; by default the numbers.
    hover : r × c of str, optional
        Hover text below row and column; by default the number.
    note : str
        A line beneath the title.
    marked, framed : tuple of (row, column)
        Cells with a dotted frame, such as the diagonal; cells with a solid frame, such as the best one.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import MatrixPanel
    >>> MatrixPanel("scores", ("a", "b"), ("a", "b"), np.eye(2)).title
    'scores'
    """

    title: str
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    values: np.ndarray
    texts: CellTexts | None = None
    hover: CellTexts | None = None
    note: str = ""
    marked: tuple[tuple[int, int], ...] = ()
    framed: tuple[tuple[int, int], ...] = ()

    def text(self, i: int, j: int) -> str:
        if np.isnan(self.values[i, j]):
            return ""
        return in_cell(self.values[i, j]) if self.texts is None else self.texts[i][j]

    def shown_texts(self) -> dict[tuple[int, int], tuple[str, str]]:
        """Cell → its first line and its small print."""
        cells = ((cell, self.text(*cell)) for cell in np.ndindex(self.values.shape))
        return {cell: text.partition("\n")[::2] for cell, text in cells if text.partition("\n")[0]}

    def explain(self, i: int, j: int) -> str:
        """The hover text of a cell, without its row and column."""
        if self.hover is not None:
            return self.hover[i][j]
        return "no value" if np.isnan(self.values[i, j]) else general(self.values[i, j], 4)


@dataclass(frozen=True, eq=False)
class Matrices:
    """Heat maps with a common colour scale.

    Attributes
    ----------
    panels : at least one MatrixPanel
    scale : two values
        Values of the palest and the deepest colour, in any order; values beyond an end get its colour.
    alt : str
        The figure in words.
    log : bool
        Whether colours are logarithmic, for positive values.
    across : int, optional
        Largest number of panels side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import Matrices, MatrixPanel, chart_exportable
    >>> panel = MatrixPanel("scores", ("a", "b"), ("a", "b"), np.eye(2))
    >>> len(chart_exportable(Matrices((panel,), (0, 1), "score", "Scores of two spaces.")).table())
    4
    """

    panels: tuple[MatrixPanel, ...]
    scale: tuple[float, float]
    value_title: str
    alt: str
    row_title: str = ""
    column_title: str = ""
    log: bool = False
    across: int | None = None

    figure: ClassVar[str] = "matrices_figure"

    def __post_init__(self) -> None:
        low, high = self.scale
        if not np.isfinite(self.scale).all() or low == high or (self.log and min(self.scale) <= 0):
            kind = "positive and different" if self.log else "different"
            raise ValueError(f"scale: expected two {kind} values, got {self.scale!r}")

    def shares(self, values: np.ndarray) -> np.ndarray:
        """Positions of values on the scale, 0 (palest) to 1 (deepest); NaN stays NaN."""
        measured = np.log10 if self.log else np.asarray
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = measured(np.array(self.scale, dtype=float))
            return np.clip((measured(np.asarray(values, dtype=float)) - low) / (high - low), 0, 1)

    def color(self, value: float, theme: Theme) -> tuple[float, float, float]:
        """The colour of a value as red, green and blue, each 0 … 1."""
        return cell_color(float(self.shares(value)), theme)

    def ticks(self) -> tuple[list[float], list[str]]:
        """Positions on the scale, 0 … 1, and their labels."""
        low, high = sorted(self.scale)
        values = np.linspace(low, high, 5)
        if self.log:
            powers = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
            powers = powers[:: max(1, len(powers) // 5)]
            values = 10.0**powers if len(powers) > 1 else np.array([low, high])
        return self.shares(values).tolist(), [general(value) for value in values]

    def grid(self, most: int = 3) -> tuple[int, int]:
        """Numbers of rows and columns of panels, as even as possible."""
        n = len(self.panels)
        most = min(self.across or most, n)
        rows = -(-n // most)
        return rows, -(-n // rows) if self.across is None else most

    @cached_property
    def same_rows(self) -> bool:
        """Whether all panels have the same rows; then their names are written only once."""
        return len({panel.rows for panel in self.panels}) == 1

    @cached_property
    def most(self) -> tuple[int, int]:
        """The largest number of rows and of columns of a panel."""
        return max(len(panel.rows) for panel in self.panels), max(len(p.columns) for p in self.panels)

    def numbered(self, panel: MatrixPanel, room: float) -> bool:
        """Whether columns are labelled by numbers, because their names exceed `room` letters."""
        return panel.rows == panel.columns and max(len(name_of(column)) for column in panel.columns) > room

    def table(self) -> pd.DataFrame:
        """The cells as a table: panel, row, column, value."""
        names = ["panel", self.row_title or "row", self.column_title or "column", self.value_title]
        cells = [
            (panel.title, row, column, panel.values[i, j])
            for panel in self.panels
            for i, row in enumerate(panel.rows)
            for j, column in enumerate(panel.columns)
        ]
        return pd.DataFrame(cells, columns=names)


def name_of(label: Label) -> str:
    """The label as text; numbers have four digits."""
    return label if isinstance(label, str) else general(label, 4)


def label_step(n: int, room: float) -> int:
    """The smallest step between labels such that at most `room` of n labels are written."""
    return max(1, int(np.ceil(n / max(room, 1))))


def printed_scores(table: pd.DataFrame) -> pd.DataFrame:
    """The printed table of scores: 95 % sampling interval, chance level with its band, and n."""
    # Only scores of 0 … 1 have a sampling interval; it is symmetric, so it may exceed this range.
    table = table.assign(**{end: table[end].clip(0, 1) for end in ("low", "high") if end in table})

    def texts(name: str, form: str = "{:z.3f}") -> pd.Series:
        values = table[name] if name in table else pd.Series(np.nan, table.index)
        return values.map(lambda value: "" if pd.isna(value) else form.format(value))

    def bands(low: str, high: str) -> pd.Series:
        return texts(low, "[{:z.3f}, ") + texts(high, "{:z.3f}]")

    printed = table[["form", "metric"]].set_axis(["representation", "metric"], axis=1)
    printed["score"], printed["95 % interval"] = texts("score"), bands("low", "high")
    printed["chance level (95 % band)"] = [
        _chance_text(*map(row.get, ("chance", "null_low", "null_high"))) for row in table.to_dict("records")
    ]
    if "n" in table:
        printed["n"] = texts("n", "{:.0f}")
    return printed.replace("", "–")


def _chance_text(mean: float | None, low: float, high: float) -> str:
    """A chance level as ``0.00023 [0.00017, 0.00029]``, "" for NaN: its mean with two significant digits or
    more, the ends of the band with as many decimals."""
    known = [value for value in (mean, low, high) if value is not None and not np.isnan(value)]
    if not known:
        return ""
    places = min(max(3, 1 - int(np.floor(np.log10(max(abs(known[0]), 1e-5))))), 6)
    texts = [f"{value:z.{places}f}" for value in known]
    band = f"[{texts[-2]}, {texts[-1]}]" if len(texts) > 1 else ""
    return f"{texts[0] if len(texts) != 2 else ''} {band}".strip()


def score_points(table: pd.DataFrame) -> Lines:
    """A chart of scores with their intervals, side by side for each metric, before the bands of chance."""
    forms, metrics = table.form.unique().tolist(), tuple(map(str, table.metric.unique()))
    side = (table.form.map(forms.index) - (len(forms) - 1) / 2) * 0.8 / len(forms)
    table = table.assign(x=table.metric.map(metrics.index) + side)
    known = table.dropna(subset=["null_low", "null_high"])
    bands = known.null_low, known.null_high
    lines = [Line("chance level, 95 % band", known.x, sum(bands) / 2, *bands, known.metric.tolist(), GREY)]
    for number, form in enumerate(forms):
        part = table[table.form == form]
        ends = (part.low, part.high) if {"low", "high"} <= {*part} else ()
        lines.append(Line(str(form), part.x, part.score, *ends, labels=part.metric.tolist(), color=number))
    title = "score (1 = identical)"
    return Lines(tuple(lines), "metric", title, kind="points", x_names=metrics)


def histogram_table(values_by_name: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Histograms with common bins: columns name, left, right, count, percent.

    20 to 80 bins, by Freedman and Diaconis. Raises a ValueError for no arrays, empty ones, NaN or infinity.
    """
    arrays = _finite(values_by_name, "histogram")
    pooled = np.concatenate(list(arrays.values()))
    low, quarter, three_quarters, high = np.percentile(pooled, [0, 25, 75, 100])
    width = 2 * (three_quarters - quarter) / len(pooled) ** (1 / 3)
    edges = np.histogram_bin_edges(pooled, int(np.clip((high - low) / width, 20, 80)) if width > 0 else 20)
    parts = []
    for name, values in arrays.items():
        count = np.histogram(values, edges)[0]
        facts = {"name": name, "left": edges[:-1], "right": edges[1:], "count": count}
        parts.append(pd.DataFrame(facts | {"percent": 100 * count / count.sum()}))
    return pd.concat(parts, ignore_index=True)


def histogram_lines(values_by_name: Mapping[str, np.ndarray], x_title: str) -> Lines:
    """A chart of histograms with common bins, as filled outlines."""
    lines, names = [], []
    for name, part in histogram_table(values_by_name).groupby("name", sort=False):
        edges = np.repeat([*part.left, part.right.iloc[-1]], 2)
        lines.append(Line(name, edges, np.concatenate([[0], np.repeat(part.percent, 2), [0]])))
        names.append(f"{name} (n = {part['count'].sum():,})")
    alt = f"Histogram. {x_title} of {', '.join(names)}."
    return Lines(tuple(lines), x_title, "share of rows (%)", alt=alt, filled=True)


def _finite(values_by_name: Mapping[str, np.ndarray], what: str) -> dict[str, np.ndarray]:
    arrays = {str(name): np.asarray(v, dtype=np.float64).ravel() for name, v in values_by_name.items()}
    bad = [name for name, values in arrays.items() if not len(values) or not np.isfinite(values).all()]
    if bad or not arrays:
        raise ValueError(f"{what}: expected arrays of finite values, got empty or infinite ones: {bad!r:.80}")
    return arrays
