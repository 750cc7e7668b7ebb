"""Scene: the content of the linked panes, separate from how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.text import encodable
from relcore.charts.coloring import Coloring, ColorScale

# StarLook: how the anchors of a scene are drawn, apart from where they are.

SIZES = (0.3, 2.0)
OPACITIES = (0.1, 1.0)


@dataclass(frozen=True)
class StarLook:
    """How anchors are drawn above the points, on screen and in print.

    Attributes
    ----------
    size : float
        A factor of the usual diameter, `relcore.figures.marks.star_size`; `SIZES`.
    opacity : float
        `OPACITIES`.
    shown : bool
        False draws no star. The anchors keep their rows.
    """

    size: float = 1.0
    opacity: float = 1.0
    shown: bool = True

    def __post_init__(self) -> None:
        for name, (low, high) in (("size", SIZES), ("opacity", OPACITIES)):
            if not low <= getattr(self, name) <= high:
                raise SpaceError(f"stars: {name}: expected {low:g} to {high:g}, got {getattr(self, name)!r}")


@dataclass(frozen=True)
class Pane:
    """One picture of the rows: `coordinates` (n, 2) or (n, 3), under a title; `note` is the small print
    beneath it.
    """

    title: str
    coordinates: np.ndarray
    note: str = ""


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cluster of each row, (n,) of int, -1 for none, and the names of the clusters."""

    numbers: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """Up to four panes over the same n rows; row i has the same colour in all panes, or in all of one side.

    Attributes
    ----------
    panes : tuple of Pane
        All with n rows in the same order.
    ids : array (n,) of str
        Shown on hover, written to the CSV.
    categories : array (n,) of int
        Index into `category_names`, or step of the `scale`; -1 for none (drawn in neutral grey).
    category_names : tuple of str
        The legend.
    category_colors : tuple of str
        Hexadecimal, one per category, where these have an order that a ramp can show; by default the
        palette's or the scale's.
    anchors : array (k,) of int
        Rows drawn as numbered ringed stars, 1 … k in this order.
    caption : str
        One sentence on the content; also the alt text.
    texts, notes : arrays (n,) of str, optional
        For hover only: the item behind each row, such as its sentence, and small print about it, such as its
        count.
    stars : StarLook
        How the anchors are drawn.
    prominence : array (n,) of int, optional
        All rows, those first whose names matter most on a screen; None is their own order.
    scale : ColorScale, optional
        Of numbers, drawn with a colour bar; `values` (n,) are the numbers.
    color_title : str
        What the colours show, for the legend.
    hidden : tuple of str
        Classes of the colouring whose rows are not drawn, as `Coloring.hidden`.
    second : Coloring, optional
        The colours of the panes `second_panes`, which are the right or the lower ones.
    clusters : Clusters, optional
        Groups of rows with names, for maps whose colours have none.
    named : bool
        Write the names of classes and clusters on the maps.
    turn : tuple of 9 floats, optional
        How maps of three dimensions are seen, the rows of a rotation: right, up, to the viewer; None is the
        renderer's own.
    """

    panes: tuple[Pane, ...]
    ids: np.ndarray
    categories: np.ndarray
    category_names: tuple[str, ...] = ()
    anchors: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    caption: str = ""
    texts: np.ndarray | None = None
    notes: np.ndarray | None = None
    category_colors: tuple[str, ...] = ()
    stars: StarLook = StarLook()
    prominence: np.ndarray | None = None
    scale: ColorScale | None = None
    values: np.ndarray | None = None
    color_title: str = ""
    hidden: tuple[str, ...] = ()
    second: Coloring | None = None
    second_panes: tuple[int, ...] = ()
    clusters: Clusters | None = None
    named: bool = False
    turn: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.panes) <= 4:
            raise ValueError(f"expected 1 to 4 panes, got {len(self.panes)}")
        titles = [pane.title for pane in self.panes]
        if len(set(titles)) < len(titles):
            raise ValueError(f"expected panes of different titles, got {titles}")
        n = len(self.ids)
        for pane in self.panes:
            if (
                pane.coordinates.ndim != 2
                or len(pane.coordinates) != n
                or pane.coordinates.shape[1] not in (2, 3)
            ):
                raise ValueError(f"pane {pane.title!r}: expected ({n}, 2 or 3), got {pane.coordinates.shape}")
        if self.category_colors and len(self.category_colors) != len(self.category_names):
            raise ValueError(
                f"expected {len(self.category_names)} colours, one per category, got"
                f" {len(self.category_colors)}"
            )
        numbers = self.clusters.numbers if self.clusters else None
        columns = (
            ("texts", self.texts),
            ("notes", self.notes),
            ("prominence", self.prominence),
            ("clusters", numbers),
        )
        for name, column in columns:
            if column is not None and len(column) != n:
                raise ValueError(f"{name}: expected {n}, one per row, got {len(column)}")
        for coloring in self.colorings():
            coloring.check(n)
        if len(self.anchors) and not (min(self.anchors) >= 0 and max(self.anchors) < n):
            raise ValueError(
                f"anchors: expected rows 0 … {n - 1}, got {min(self.anchors)} … {max(self.anchors)}"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def coloring(self, pane: int = 0) -> Coloring:
        """How the rows of this pane are coloured."""
        return self.second if self.second and pane in self.second_panes else self._first

    def colorings(self) -> tuple[Coloring, ...]:
        """One for all panes, or the first and the second."""
        return (self._first, self.second) if self.second else (self._first,)

    @cached_property
    def _first(self) -> Coloring:
        colors = self.scale.colors if self.scale else self.category_colors
        shown = self.color_title, self.scale, self.values, self.hidden
        return Coloring(self.categories, self.category_names, colors, *shown)

    @cached_property
    def shown(self) -> np.ndarray:
        """Which rows are drawn, (n,) of bool: those that no colouring hides."""
        return ~np.logical_or.reduce([coloring.hidden_rows() for coloring in self.colorings()])

    def table(self) -> pd.DataFrame:
        """The plotted numbers, one row a drawn point: id, category or number, anchor number (0: none), and
        all coordinates.
        """
        numbers = np.zeros(len(self), dtype=np.int64)
        numbers[self.anchors] = np.arange(1, len(self.anchors) + 1)
        columns = {"id": encodable(self.ids), **self._column(self._first, "category"), "anchor": numbers}
        if self.second:
            columns |= self._column(self.second, "second category")
        for pane in self.panes:
            for axis, values in zip("xyz", pane.coordinates.T, strict=False):
                columns[f"{pane.title} {axis}"] = values
        return pd.DataFrame(columns)[self.shown].reset_index(drop=True)

    @staticmethod
    def _column(coloring: Coloring, name: str) -> dict[str, np.ndarray]:
        if coloring.scale is not None:
            return {coloring.scale.title: coloring.values}
        return {name: np.array([*encodable(coloring.names), ""], dtype=object)[coloring.categories]}
