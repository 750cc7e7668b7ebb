"""Matrices of scores as data, without a drawing library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.arguments import numbers
from relcore.base.errors import SpaceError
from relcore.base.kinds import need_kinds
from relcore.base.numbers import general, in_cell
from relcore.figures.style import Theme, cell_color

Label = str | float
CellTexts = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class MatrixPanel:
    """A heat map, as data.

    Attributes
    ----------
    rows, columns : r and c names or numbers
        The distinct labels of rows and columns, in their order.
    values : array (r, c)
        The values of the cells; NaN if a cell has none.
    texts : r × c of str, optional
        The texts of the cells, which are shown if they fit; by default, the numbers. Text after a line feed
        is printed small.
    hover : r × c of str, optional
        Hover texts of the cells, below the names of row and column; by default, the numbers.
    note : str
        A line of text below the title.
    marked, framed : tuple of (row, column)
        `marked` cells have a dotted frame, such as the diagonal; `framed` cells a solid one, such as the best
        cell.

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

    def __post_init__(self) -> None:
        need_kinds(self)
        values = np.asarray(self.values)
        shape = len(self.rows), len(self.columns)
        if values.dtype.kind not in "fiub" or values.shape != shape:
            got = f"{values.dtype} of shape {values.shape}"
            raise SpaceError(f"values: expected a number for each row and column, {shape}, got {got}")

    def text(self, i: int, j: int) -> str:
        if np.isnan(self.values[i, j]):
            return ""
        if self.texts is None:
            return in_cell(self.values[i, j])
        return self.texts[i][j]

    def shown_texts(self) -> dict[tuple[int, int], tuple[str, str]]:
        """For each cell (row, column) with a text, the first line of the text, and the line to print
        small."""
        cells = ((cell, self.text(*cell)) for cell in np.ndindex(self.values.shape))
        return {cell: text.partition("\n")[::2] for cell, text in cells if text.partition("\n")[0]}

    def explain(self, i: int, j: int) -> str:
        """The hover text of a cell, without the names of its row and column."""
        if self.hover is not None:
            return self.hover[i][j]
        if np.isnan(self.values[i, j]):
            return "no value"
        return general(self.values[i, j], 4)


@dataclass(frozen=True, eq=False)
class Matrices:
    """Heat maps with a common colour scale.

    Attributes
    ----------
    panels : at least one MatrixPanel
    scale : two values
        The value with the palest colour, then the value with the deepest colour; either may be larger. Values
        beyond an end get the colour of this end.
    alt : str
        A description of the heat maps in words.
    log : bool
        Whether the colour scale is logarithmic, for positive values.
    across : int, optional
        The largest number of panels in a row of the figure.

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
        need_kinds(self)
        scale = numbers("scale", self.scale)
        if len(scale) != 2:
            raise SpaceError(f"scale: expected two values, got {len(scale)}")
        low, high = scale
        if not np.isfinite(scale).all() or low == high or (self.log and min(self.scale) <= 0):
            kind = "different"
            if self.log:
                kind = "positive and different"
            raise SpaceError(f"scale: expected two {kind} values, got {self.scale!r}")

    def shares(self, values: np.ndarray) -> np.ndarray:
        """The positions of values on the colour scale, 0 (palest) to 1 (deepest). NaN stays NaN."""
        measured = np.log10 if self.log else np.asarray
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = measured(np.array(self.scale, dtype=float))
            return np.clip((measured(np.asarray(values, dtype=float)) - low) / (high - low), 0, 1)

    def color(self, value: float, theme: Theme) -> tuple[float, float, float]:
        """The colour of a value as red, green and blue, each 0 … 1."""
        return cell_color(float(self.shares(value)), theme)

    def ticks(self) -> tuple[list[float], list[str]]:
        """The ticks of the colour bar: their positions, 0 … 1, and their labels."""
        low, high = sorted(self.scale)
        values = np.linspace(low, high, 5)
        if self.log:
            powers = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
            powers = powers[:: max(1, len(powers) // 5)]
            if len(powers) > 1:
                values = 10.0**powers
            else:
                values = np.array([low, high])
        return self.shares(values).tolist(), [general(value) for value in values]

    def grid(self, most: int = 3) -> tuple[int, int]:
        """Return the number of rows and of columns in the grid of panels, with at most `most` columns."""
        n = len(self.panels)
        most = min(self.across or most, n)
        rows = -(-n // most)
        if self.across is None:
            most = -(-n // rows)
        return rows, most

    @cached_property
    def same_rows(self) -> bool:
        """Whether all panels have the same rows. If so, the names of the rows are written only once."""
        return len({panel.rows for panel in self.panels}) == 1

    @cached_property
    def most(self) -> tuple[int, int]:
        """The largest number of rows, and the largest number of columns, of a panel."""
        return max(len(panel.rows) for panel in self.panels), max(len(p.columns) for p in self.panels)

    def numbered(self, panel: MatrixPanel, room: float) -> bool:
        """Whether columns are labelled by numbers instead of names. They are if some names have more than
        `room` letters, and the rows, which are numbered as well, have the same names."""
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
    """A label of a row or a column as text. Numbers have at most four digits."""
    if isinstance(label, str):
        return label
    return general(label, 4)


def label_step(n: int, room: float) -> int:
    """The smallest step such that at most `room` of n labels remain if only every step-th label is kept."""
    return max(1, int(np.ceil(n / max(room, 1))))


def printed_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Format a table of scores for print: score, 95 % sampling interval, chance level with its band, n."""
    # Only scores from 0 to 1 have a sampling interval. It is symmetric, so its ends may lie beyond 0 or 1.
    table = table.assign(**{end: table[end].clip(0, 1) for end in ("low", "high") if end in table})

    def texts(name: str, form: str = "{:z.3f}") -> pd.Series:
        if name in table:
            values = table[name]
        else:
            values = pd.Series(np.nan, table.index)
        return values.map(lambda value: "" if pd.isna(value) else form.format(value))

    def bands(low: str, high: str) -> pd.Series:
        return texts(low, "[{:z.3f}, ") + texts(high, "{:z.3f}]")

    printed = table[["form", "metric"]].set_axis(["representation", "metric"], axis=1)
    printed["score"], printed["95 % interval"] = texts("score"), bands("low", "high")
    printed["chance level (95 % band)"] = [
        _chance_text(row.get("chance"), row.get("null_low"), row.get("null_high"))
        for row in table.to_dict("records")
    ]
    if "n" in table:
        printed["n"] = texts("n", "{:.0f}")
    return printed.replace("", "–")


def _chance_text(mean: float | None, low: float, high: float) -> str:
    """The text of a chance level, such as ``0.00023 [0.00017, 0.00029]``; "" if all three are NaN. The mean
    has at least two significant digits, and the ends of the band have as many decimals as the mean."""
    known = [value for value in (mean, low, high) if value is not None and not np.isnan(value)]
    if not known:
        return ""
    places = min(max(3, 1 - int(np.floor(np.log10(max(abs(known[0]), 1e-5))))), 6)
    texts = [f"{value:z.{places}f}" for value in known]
    band = ""
    if len(texts) > 1:
        band = f"[{texts[-2]}, {texts[-1]}]"
    return f"{texts[0] if len(texts) != 2 else ''} {band}".strip()
