"""Marks: what screen and paper draw alike, such as the legend, the grid of panes, the anchors and how large a point is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.charts.coloring import Coloring, ColorScale
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


def groups(scene: Scene, theme: Theme, pane: int = 0) -> list[Group]:
    """The categories that occur, in their own order; rows of none come first, so that they lie beneath the others.

    Of a scale only the rows of none: the others have a colour bar.
    """
    coloring = scene.coloring(pane)
    colors = colors_of(coloring, theme)
    # Hidden rows belong to no group.
    categories = np.where(scene.shown, coloring.categories, len(coloring.names) if coloring.scale is None else 0)
    none = np.flatnonzero(categories < 0)
    has_names = bool(coloring.names) or coloring.scale is not None
    found = [Group(OTHER, theme.neutral, none, named=has_names)] if len(none) else []
    for category, name in enumerate(coloring.names):
        rows = np.flatnonzero(categories == category)
        if len(rows):
            found.append(Group(str(name), colors[category], rows, named=len(found) < NAMED))
    return found


def colors_of(coloring: Coloring, theme: Theme) -> list[str]:
    """One colour per category or step."""
    return list(coloring.colors) or theme.category_colors(len(coloring.names))


def row_colors(scene: Scene, theme: Theme, pane: int = 0) -> np.ndarray:
    """The colour of each row, (n,) of str."""
    coloring = scene.coloring(pane)
    colors = np.array([*colors_of(coloring, theme), theme.neutral], dtype=object)
    return colors[np.asarray(coloring.categories)]


def sides(scene: Scene) -> list[str]:
    """What the legends of two colourings are called; "" for the only one."""
    if scene.second is None:
        return [""]
    return ["Upper", "Lower"] if scene.second_panes == (2, 3) else ["Left", "Right"]


def scales_of(scene: Scene) -> list[tuple[str, ColorScale]]:
    """The scales of all colourings, each with its title."""
    named = zip(sides(scene), scene.colorings(), strict=True)
    return [(": ".join(filter(None, (side, one.scale.title))), one.scale) for side, one in named if one.scale]


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


def drawn_anchors(scene: Scene) -> tuple[np.ndarray, list[str]]:
    """The rows of the anchors that are drawn, and their numbers ``"1"``, ``"2"``, …: "" if there are too many to read."""
    if not len(scene.anchors) or not scene.stars.shown:
        return np.empty(0, dtype=np.int64), []
    places = np.flatnonzero(scene.shown[scene.anchors])
    return scene.anchors[places], [str(place + 1) if len(scene.anchors) <= NUMBERED else "" for place in places]


def scene_alt(scene: Scene) -> str:
    """Alt text: the caption, or a default one."""
    titles = ", ".join(pane.title for pane in scene.panes)
    numbers = ((len(scene), "point"), (len(scene.anchors), "anchor"), (len(scene.panes), "pane"))
    counts = f"{', '.join(counted(n, thing) for n, thing in numbers)}: {titles}."
    return f"{scene.caption} {counts}".strip()
