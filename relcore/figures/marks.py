"""Marks: what screen and paper draw alike, such as the legend, the grid of panes, the anchors and how large a point is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.charts.scene import Scene
from relcore.figures.palette import Theme
from relcore.numbers import counted

NUMBERED = 40  # more anchor numbers than this hide the points; the stars stay
NAMED = 24  # more names than this make a legend nobody reads
OTHER = "other"


@dataclass(frozen=True)
class Group:
    """The rows of one category with the name and the colour they have in every pane; `named` if it is in the legend."""

    name: str
    color: str
    rows: np.ndarray
    named: bool


def groups(scene: Scene, theme: Theme) -> list[Group]:
    """The categories that occur, in their own order; rows of none come first, so that they lie beneath the others."""
    colors = scene.category_colors or theme.category_colors(len(scene.category_names))
    categories = np.asarray(scene.categories)
    none = np.flatnonzero(categories < 0)
    found = [Group(OTHER, theme.neutral, none, named=bool(scene.category_names))] if len(none) else []
    for category, (name, color) in enumerate(zip(scene.category_names, colors, strict=True)):
        rows = np.flatnonzero(categories == category)
        if len(rows):
            found.append(Group(str(name), color, rows, named=len(found) < NAMED))
    return found


def row_colors(scene: Scene, theme: Theme) -> np.ndarray:
    """The colour of each row, (n,) of str."""
    named = scene.category_colors or theme.category_colors(len(scene.category_names))
    colors = np.array([*named, theme.neutral], dtype=object)
    return colors[np.asarray(scene.categories)]


def grid_shape(n_panes: int) -> tuple[int, int]:
    """Rows and columns: 1 × 1, 1 × 2, 2 × 2."""
    return (n_panes + 1) // 2, min(n_panes, 2)


def point_size(n: int) -> float:
    """Diameter in pixels of a screen's point: larger for fewer points."""
    return float(np.clip(19 * max(n, 1) ** -0.18, 2, 8))


def star_size(n_anchors: int) -> float:
    """Diameter in pixels of an anchor's star: larger for fewer anchors, so that hundreds do not cover the plot."""
    return float(np.clip(16 * max(n_anchors / 8, 1) ** -0.3, 6, 16))


def star_opacity(n_anchors: int) -> float:
    """Of an anchor's star: hundreds let the points shine through."""
    return float(np.clip((max(n_anchors, 1) / 60) ** -0.25, 0.6, 1))


def anchor_numbers(scene: Scene) -> list[str]:
    """``"1"``, ``"2"``, …, or empty strings if there are too many to read."""
    k = len(scene.anchors)
    return [str(number) for number in range(1, k + 1)] if k <= NUMBERED and scene.stars.shown else [""] * k


def scene_alt(scene: Scene) -> str:
    """Alt text: the caption, or a default one."""
    titles = ", ".join(pane.title for pane in scene.panes)
    numbers = ((len(scene), "point"), (len(scene.anchors), "anchor"), (len(scene.panes), "pane"))
    counts = f"{', '.join(counted(n, thing) for n, thing in numbers)}: {titles}."
    return f"{scene.caption} {counts}".strip()
