"""Names on the maps of a figure, as on the screen: those of the classes at their middles, then those of the clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.charts.scene import Scene
from relcore.figures.marks import colors_of
from relcore.figures.palette import Theme

_LETTERS = 30  # of a name
_LINES = (0.0, 1.1, -1.1, 2.2, -2.2)  # by how many lines a name may be above its middle


@dataclass(frozen=True)
class MapName:
    """A name at a row, `lines` above it, moved right by a `shift`, a share of the pane's width, to stay within it."""

    row: int
    text: str
    color: str
    lines: float
    shift: float


def map_names(scene: Scene, pane: int, theme: Theme, places: np.ndarray, letter: tuple[float, float]) -> list[MapName]:
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
    """At most `_LETTERS` letters; paths and addresses, which have no spaces, differ at their ends and lose their middle."""
    if len(name) <= _LETTERS:
        return name
    end = 0 if " " in name else _LETTERS // 2
    return f"{name[: _LETTERS - 1 - end]}…{name[len(name) - end :]}"


def _touch(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and one[2] > other[0] and one[1] < other[3] and one[3] > other[1]


def places_of(coordinates: np.ndarray, turn: tuple[float, ...] | None, aspect: float) -> np.ndarray:
    """About where the rows are on a pane `aspect` times as wide as high, (n, 2) in shares of its width and height.

    Both axes have the same scale, as in the figures; of three dimensions what the turn shows.
    """
    points = np.asarray(coordinates, dtype=np.float64)
    if points.shape[1] == 3:
        points = points @ np.reshape(turn or np.eye(3).ravel(), (3, 3))[:2].T
    low, high = points.min(axis=0), points.max(axis=0)
    spread = np.maximum(high - low, 1e-12) * 1.14
    scale = max(spread[0] / aspect, spread[1])
    return 0.5 + (points - (low + high) / 2) / np.array([scale * aspect, scale])
