"""Scene: the content of the linked panes, separate from how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from relcore.charts.star_look import StarLook


@dataclass(frozen=True)
class Pane:
    """One picture of the rows: `coordinates` (n, 2) or (n, 3), under a title; `note` is the small print beneath it."""

    title: str
    coordinates: np.ndarray
    note: str = ""


@dataclass(frozen=True)
class Scene:
    """Up to four panes over the same n rows, row i in the same colour everywhere.

    Attributes
    ----------
    panes : tuple of Pane
        All with n rows in the same order.
    ids : array (n,) of str
        Shown on hover, written to the CSV.
    categories : array (n,) of int
        Index into `category_names`, -1 for none (drawn in neutral grey).
    category_names : tuple of str
        The legend.
    category_colors : tuple of str
        Hexadecimal, one per category, where these have an order that a ramp can show; by default the palette's.
    anchors : array (k,) of int
        Rows drawn as numbered ringed stars, 1 … k in this order.
    caption : str
        One sentence on the content; also the alt text.
    texts, notes : arrays (n,) of str, optional
        For hover only: the item behind each row, such as its sentence, and small print about it, such as its count.
    stars : StarLook
        How the anchors are drawn.
    prominence : array (n,) of int, optional
        All rows, those first whose names matter most on a screen; None is their own order.
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

    def __post_init__(self) -> None:
        if not 1 <= len(self.panes) <= 4:
            raise ValueError(f"expected 1 to 4 panes, got {len(self.panes)}")
        titles = [pane.title for pane in self.panes]
        if len(set(titles)) < len(titles):
            raise ValueError(f"expected panes of different titles, got {titles}")
        n = len(self.ids)
        for pane in self.panes:
            if pane.coordinates.ndim != 2 or len(pane.coordinates) != n or pane.coordinates.shape[1] not in (2, 3):
                raise ValueError(f"pane {pane.title!r}: expected ({n}, 2 or 3), got {pane.coordinates.shape}")
        if len(self.categories) != n:
            raise ValueError(f"expected {n} categories, one per row, got {len(self.categories)}")
        if self.category_colors and len(self.category_colors) != len(self.category_names):
            raise ValueError(f"expected {len(self.category_names)} colours, one per category, got {len(self.category_colors)}")
        for name, column in (("texts", self.texts), ("notes", self.notes), ("prominence", self.prominence)):
            if column is not None and len(column) != n:
                raise ValueError(f"{name}: expected {n}, one per row, got {len(column)}")
        if n and not (np.min(self.categories) >= -1 and np.max(self.categories) < len(self.category_names)):
            raise ValueError(
                f"categories: expected -1 … {len(self.category_names) - 1}, got "
                f"{np.min(self.categories)} … {np.max(self.categories)}"
            )
        if len(self.anchors) and not (min(self.anchors) >= 0 and max(self.anchors) < n):
            raise ValueError(f"anchors: expected rows 0 … {n - 1}, got {min(self.anchors)} … {max(self.anchors)}")

    def __len__(self) -> int:
        return len(self.ids)

    def table(self) -> pd.DataFrame:
        """The plotted numbers, one row a point: id, category, anchor number (0 for none), and the coordinates of every pane."""
        names = np.array([*self.category_names, ""], dtype=object)
        numbers = np.zeros(len(self), dtype=np.int64)
        numbers[self.anchors] = np.arange(1, len(self.anchors) + 1)
        columns = {"id": self.ids, "category": names[self.categories], "anchor": numbers}
        for pane in self.panes:
            for axis, values in zip("xyz", pane.coordinates.T, strict=False):
                columns[f"{pane.title} {axis}"] = values
        return pd.DataFrame(columns)
