"""Marks: what screen and paper draw alike, such as the legend, the grid of panes, the anchors and how
large a point is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.base.numbers import counted
from relcore.charts.coloring import Coloring, ColorScale
from relcore.charts.scene import Scene
from relcore.figures.style import Theme

NUMBERED = 40  # more anchor numbers than this hide the points; the stars stay
NAMED = 24  # more names than this make a legend nobody reads
OTHER = "other"


@dataclass(frozen=True)
class LegendGroup:
    """The rows of one category with the name and the colour they have in every pane; `named` if it is in
    the legend.
    """

    name: str
    color: str
    rows: np.ndarray
    named: bool


def groups(scene: Scene, theme: Theme, pane: int = 0) -> list[LegendGroup]:
    """The categories that occur, in their own order; rows of none come first, so that they lie beneath the
    others.

    Of a scale only the rows of none: the others have a colour bar.
    """
    coloring = scene.coloring(pane)
    colors = colors_of(coloring, theme)
    # Hidden rows belong to no group.
    categories = np.where(
        scene.shown, coloring.categories, len(coloring.names) if coloring.scale is None else 0
    )
    none = np.flatnonzero(categories < 0)
    has_names = bool(coloring.names) or coloring.scale is not None
    found = [LegendGroup(OTHER, theme.neutral, none, named=has_names)] if len(none) else []
    for category, name in enumerate(coloring.names):
        rows = np.flatnonzero(categories == category)
        if len(rows):
            found.append(LegendGroup(str(name), colors[category], rows, named=len(found) < NAMED))
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
    """Diameter in pixels of an anchor's star: larger for fewer anchors, so that hundreds do not cover the
    plot.
    """
    return float(np.clip(16 * max(n_anchors / 8, 1) ** -0.3, 6, 16))


def star_opacity(n_anchors: int) -> float:
    """Of an anchor's star: hundreds let the points shine through."""
    return float(np.clip((max(n_anchors, 1) / 60) ** -0.25, 0.6, 1))


def drawn_anchors(scene: Scene) -> tuple[np.ndarray, list[str]]:
    """The rows of the anchors that are drawn, and their numbers ``"1"``, ``"2"``, …: "" if there are too
    many to read.
    """
    if not len(scene.anchors) or not scene.stars.shown:
        return np.empty(0, dtype=np.int64), []
    places = np.flatnonzero(scene.shown[scene.anchors])
    return scene.anchors[places], [
        str(place + 1) if len(scene.anchors) <= NUMBERED else "" for place in places
    ]


def scene_alt(scene: Scene) -> str:
    """Alt text: the caption, or a default one."""
    titles = ", ".join(pane.title for pane in scene.panes)
    numbers = ((len(scene), "point"), (len(scene.anchors), "anchor"), (len(scene.panes), "pane"))
    counts = f"{', '.join(counted(n, thing) for n, thing in numbers)}: {titles}."
    return f"{scene.caption} {counts}".strip()


# Names on the maps of a figure, as on the screen: those of the classes at their middles, then those of the
# clusters.

_LETTERS = 30  # of a name
_LINES = (0.0, 1.1, -1.1, 2.2, -2.2)  # by how many lines a name may be above its middle


@dataclass(frozen=True)
class MapName:
    """A name at a row, `lines` above it, moved right by a `shift`, a share of the pane's width, to stay
    within it.
    """

    row: int
    text: str
    color: str
    lines: float
    shift: float


def map_names(
    scene: Scene, pane: int, theme: Theme, places: np.ndarray, letter: tuple[float, float]
) -> list[MapName]:
    """The names that have room on a pane; none where the scene is to have none.

    Parameters
    ----------
    places : array (n, 2)
        Where the rows are on the pane, in shares of its width and height.
    letter : width and height of a letter in the same shares
    """
    if not scene.named:
        return []
    boxes: list[tuple[float, float, float, float]] = []
    found = []
    for row, text, color in _wanted(scene, pane, theme):
        x, y = places[row]
        half, high = letter[0] * len(text) / 2 + letter[0] / 2, letter[1] * 0.6
        shift = float(np.clip(x, half, max(half, 1 - half)) - x)
        for lines in _LINES:
            middle = y + lines * letter[1]
            box = (x + shift - half, middle - high, x + shift + half, middle + high)
            if box[1] < 0 or box[3] > 1 or any(_touch(box, other) for other in boxes):
                continue
            boxes.append(box)
            found.append(MapName(row, text, color, lines, shift))
            break
    return found


def _wanted(scene: Scene, pane: int, theme: Theme) -> list[tuple[int, str, str]]:
    """Row, name and colour of each group, the largest classes first, then the largest clusters."""
    coloring, coordinates = scene.coloring(pane), np.asarray(scene.panes[pane].coordinates)
    categories, wanted = np.asarray(coloring.categories), []
    classes = np.full(len(scene), -1) if coloring.colors else np.where(scene.shown, categories, -1)
    colors = colors_of(coloring, theme)
    for group, row in _middles(coordinates, classes):
        wanted.append((row, _cut(str(coloring.names[group])), colors[group]))
    if scene.clusters is not None:
        free = scene.shown & ((categories < 0) | bool(coloring.colors))
        for group, row in _middles(coordinates, np.where(free, scene.clusters.numbers, -1)):
            wanted.append((row, _cut(scene.clusters.names[group]), theme.text))
    return wanted


def _middles(coordinates: np.ndarray, groups: np.ndarray) -> list[tuple[int, int]]:
    """Each group with the row nearest to the median of its coordinates, the largest group first."""
    found = []
    for group in np.unique(groups[groups >= 0]):
        rows = np.flatnonzero(groups == group)
        own = coordinates[rows]
        middle = np.sort(own, axis=0)[len(own) // 2]
        found.append((len(rows), int(group), int(rows[np.argmin(np.square(own - middle).sum(axis=1))])))
    return [(group, row) for n, group, row in sorted(found, key=lambda one: (-one[0], one[1]))]


def _cut(name: str) -> str:
    """At most `_LETTERS` letters; paths and addresses, which have no spaces, differ at their ends and lose
    their middle.
    """
    if len(name) <= _LETTERS:
        return name
    end = 0 if " " in name else _LETTERS // 2
    return f"{name[: _LETTERS - 1 - end]}…{name[len(name) - end :]}"


def _touch(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and one[2] > other[0] and one[1] < other[3] and one[3] > other[1]


def places_of(coordinates: np.ndarray, turn: tuple[float, ...] | None, aspect: float) -> np.ndarray:
    """About where the rows are on a pane `aspect` times as wide as high, (n, 2) in shares of its width and
    height.

    Both axes have the same scale, as in the figures; of three dimensions what the turn shows.
    """
    points = np.asarray(coordinates, dtype=np.float64)
    if points.shape[1] == 3:
        points = points @ np.reshape(turn or np.eye(3).ravel(), (3, 3))[:2].T
    low, high = points.min(axis=0), points.max(axis=0)
    spread = np.maximum(high - low, 1e-12) * 1.14
    scale = max(spread[0] / aspect, spread[1])
    return 0.5 + (points - (low + high) / 2) / np.array([scale * aspect, scale])
