"""Matrices: heat maps in one colour scale: positions, colours and texts, the same on screen, on paper and
in CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.numbers import general, in_cell
from relcore.base.text import encodable
from relcore.figures.export import Exportable, drawn
from relcore.figures.style import Theme, cell_color

Label = str | float
Lines = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class MatrixPanel:
    """One heat map.

    Attributes
    ----------
    title : str
    rows, columns : r and c names or numbers
        What the axes say, each distinct; numbers stand evenly spaced, in the order given.
    values : array (r, c)
        NaN where there is none.
    texts : r × c of str, optional
        Texts of the cells, shown if there is room; after a line feed in small print. By default the numbers.
    hover : r × c of str, optional
        The hover text of a cell below its row and column, with line feeds; by default its number.
    note : str
        A line beneath the title.
    marked : tuple of (row, column)
        Cells with a dotted frame, such as a diagonal that is of another kind than the rest.
    framed : tuple of (row, column)
        Cells with a solid frame, such as the best.
    """

    title: str
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    values: np.ndarray
    texts: Lines | None = None
    hover: Lines | None = None
    note: str = ""
    marked: tuple[tuple[int, int], ...] = ()
    framed: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.columns))
        if 0 in shape or np.shape(self.values) != shape:
            raise ValueError(
                f"{self.title}: expected values {shape}, one per row and column, got {np.shape(self.values)}"
            )
        for name, names in (("rows", self.rows), ("columns", self.columns)):
            if len(set(names)) < len(names):
                raise ValueError(f"{self.title}: expected distinct {name}, got {names!r}")
        for name in ("texts", "hover"):
            lines = getattr(self, name)
            if lines is not None and (len(lines) != shape[0] or any(len(line) != shape[1] for line in lines)):
                raise ValueError(f"{self.title}: expected {name} for each of {shape[0]} × {shape[1]} cells")

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Cells without a value, (row, column)."""
        return [(int(i), int(j)) for i, j in np.argwhere(np.isnan(self.values))]

    def text(self, i: int, j: int) -> str:
        """The text of a cell, shown if there is room."""
        if self.texts is not None:
            return self.texts[i][j]
        return in_cell(self.values[i, j])

    def explain(self, i: int, j: int) -> str:
        """The hover text of a cell, below its row and column."""
        if self.hover is not None:
            return self.hover[i][j]
        return "no value" if np.isnan(self.values[i, j]) else general(self.values[i, j], 4)


@dataclass(frozen=True, eq=False)
class Matrices:
    """Panels that share one colour scale, so that equal colours are equal values.

    Attributes
    ----------
    panels : at least one MatrixPanel
    scale : two values
        Of the palest and of the deepest colour; the first may be the larger. Values beyond take the colour of
        the end.
    value_title : str
    alt : str
        The figure in words.
    row_title, column_title : str
        What rows and columns are.
    log : bool
        Colours by the logarithm, for positive values such as condition numbers.
    across : int, optional
        Panels side by side, at most; by default as many as look well.
    """

    panels: tuple[MatrixPanel, ...]
    scale: tuple[float, float]
    value_title: str
    alt: str
    row_title: str = ""
    column_title: str = ""
    log: bool = False
    across: int | None = None

    def __post_init__(self) -> None:
        if not self.panels:
            raise ValueError("matrices: expected at least one panel, got none")
        low, high = self.scale
        if not np.isfinite(self.scale).all() or low == high or (self.log and min(self.scale) <= 0):
            kind = "positive and different" if self.log else "different"
            raise ValueError(f"scale: expected two {kind} values, got {self.scale!r}")

    def shares(self, values: np.ndarray) -> np.ndarray:
        """Where values lie on the scale, 0 palest … 1 deepest; NaN stays."""
        low, high = self._measured(np.array(self.scale))
        return np.clip((self._measured(np.asarray(values, dtype=float)) - low) / (high - low), 0, 1)

    def color(self, value: float, theme: Theme) -> tuple[float, float, float]:
        """Three shares 0 … 1."""
        return cell_color(float(self.shares(value)), theme)

    def ticks(self) -> tuple[list[float], list[str]]:
        """Places on the scale, 0 … 1, and their labels."""
        low, high = sorted(self.scale)
        values = np.linspace(low, high, 5)
        if self.log:
            powers = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
            powers = powers[:: max(1, len(powers) // 5)]
            values = 10.0**powers if len(powers) > 1 else np.array([low, high])
        return self.shares(values).tolist(), [general(value) for value in values]

    def grid(self, most: int = 3) -> tuple[int, int]:
        """Rows and columns of panels: as even as possible, at most `most` or `across` side by side."""
        n = len(self.panels)
        most = min(self.across or most, n)
        rows = -(-n // most)
        return rows, -(-n // rows) if self.across is None else most

    def numbered(self, panel: MatrixPanel, room: float) -> bool:
        """Whether columns bear the rows' numbers: their names are the rows', and longer than `room` signs."""
        return panel.rows == panel.columns and max(len(name_of(column)) for column in panel.columns) > room

    def table(self) -> pd.DataFrame:
        """Columns: panel, row, column, value (named like the axes and the scale); a row per cell."""
        names = ["panel", self.row_title or "row", self.column_title or "column", self.value_title]
        cells = [
            (panel.title, row, column, panel.values[i, j])
            for panel in self.panels
            for i, row in enumerate(panel.rows)
            for j, column in enumerate(panel.columns)
        ]
        return pd.DataFrame(cells, columns=names)

    def _measured(self, values: np.ndarray) -> np.ndarray:
        if not self.log:
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log10(values)


def name_of(label: Label) -> str:
    """A row's or column's name: numbers as short as they are exact to four digits."""
    return label if isinstance(label, str) else general(label, 4)


def thinned(n: int, room: float) -> int:
    """The step at which n labels are written, with room for `room` of them."""
    return max(1, int(np.ceil(n / max(room, 1))))


def matrices_exportable(
    data: Matrices,
    recipe: Mapping[str, Any] | None = None,
    name: str = "matrices",
    latex: Callable[[], pd.DataFrame] | None = None,
    table: Callable[[], pd.DataFrame] | None = None,
) -> Exportable:
    """The heat maps in all forms; `table` replaces `Matrices.table` if a cell has more than one value."""
    renderers = drawn("matrices_screen:matrices_figure", "matrices_print:matrices_figure", data)
    return Exportable(name, *renderers, table or (lambda: encodable(data).table()), recipe, latex)
