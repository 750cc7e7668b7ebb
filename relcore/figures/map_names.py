"""Names on a map: which fit without overlap, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.figures.diagram_names import overlapping
from relcore.figures.scene import Scene, drawn_anchors, short_name
from relcore.figures.style import Theme

BINS = 32  # number of bins of a facet of numbers
NAMED = 24  # maximum number of names in a legend
_MOST_RINGS = 24
_MOST_HEAPS = 40
_HEAP_STEPS = 65_535  # steps along an axis; rows on the same step of both axes count as one spot
_LOOKED_UNDER = 80  # maximum number of rows of a group that are checked for being under its name
_COVERED = 0.25  # maximum share of the checked rows that a name may cover
_LINES = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0)  # heights of a name above the median, in lines of text


@dataclass(frozen=True)
class MapName:
    """A name to write on a map, with its middle at (x, y). For the name of an anchor, `color` is ""."""

    row: int
    text: str
    color: str
    x: float
    y: float
    heap: bool = False  # whether the text states the number of rows on one spot


def map_names(
    scene: Scene,
    pane: int,
    theme: Theme,
    places: np.ndarray,
    size: tuple[float, float],
    line: float,
    width_of: Callable[[str, bool], float],
    star: float = 0.0,
) -> list[MapName]:
    """The names that fit on a pane without overlap. They are placed in this order: marked rows, groups, spots
    with several rows, anchors. Names of groups never cover stars with labels, and avoid other stars if
    possible. The same rule is used on screen (names.js), except that here a group whose rows fill a small
    pane keeps its name.

    `places` (n, 2) are the positions of the rows from the lower left corner of the pane. They have the same
    unit as all lengths: the `size` of the pane, the height of a `line`, the diameter of a `star`, and the
    width of a text, which ``width_of(text, of_anchor)`` returns.
    """
    ringed = set()
    if not scene.mute:
        ringed = set(ringed_rows(scene).tolist())
    anchors, labels = drawn_anchors(scene)
    half = np.array([star, star]) / 2
    stars = np.hstack([places[anchors] - half, places[anchors] + half])
    placed = _PlacedNames(places, size, line, width_of, stars, bool(labels))
    for row in _by_prominence(scene, ringed):
        placed.put_beside(row, short_name(str(scene.ids[row])), theme.text, 0.3 * line)
    if scene.named:
        for row, text, color, rows in _group_labels(scene, pane, theme):
            placed.put_over(row, text, color, rows)
        for row, n in _heaps(scene, pane):
            placed.put_beside(row, f"{n:,} rows here", "", 0.2 * line, heap=True)
    for row, text in zip(anchors.tolist(), labels, strict=False):
        if row not in ringed or text.isdigit():  # ringed rows already have their name
            placed.put_beside(row, text, "", star / 2)
    return placed.names


class _PlacedNames:
    """The names that were placed on a pane so far. Lengths are those of `map_names`; `stars` (k, 4) are the
    boxes of the anchors."""

    def __init__(
        self,
        places: np.ndarray,
        size: tuple[float, float],
        line: float,
        width_of: Callable[[str, bool], float],
        stars: np.ndarray,
        stars_have_labels: bool,
    ) -> None:
        self.places = places
        self.size = size
        self.line = line
        self.width_of = width_of
        self.stars = stars
        self.stars_have_labels = stars_have_labels
        self.names: list[MapName] = []
        self._taken = np.empty((0, 4))

    def put_beside(self, row: int, text: str, color: str, gap: float, heap: bool = False) -> None:
        """Place a name at one side of its row, at least `gap` from it."""
        right = self.width_of(text, not color) / 2 + gap + 0.15 * self.line
        up = 0.9 * gap + 0.3 * self.line
        sides = [(1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0)]
        offsets = [(right * x, up * y) for x, y in sides]
        above = gap + 0.55 * self.line
        self._put(row, text, color, [*offsets, (0.0, above), (0.0, -above)], np.empty((0, 4)), heap)

    def put_over(self, row: int, text: str, color: str, rows: np.ndarray) -> None:
        """Place a name on or near its row, where it covers few of the group's `rows`."""
        away = self.width_of(text, False) / 2 + 0.5 * self.line
        offsets = [(right, up * self.line) for up in _LINES for right in (0.0, away, -away)]
        offsets.sort(key=lambda offset: abs(offset[1]) + abs(offset[0]) / 2)
        dot = 0.25 * self.line
        under = np.hstack([self.places[rows] - dot, self.places[rows] + dot])
        self._put(row, text, color, offsets, under, heap=False)

    def _put(
        self,
        row: int,
        text: str,
        color: str,
        offsets: Sequence[tuple[float, float]],
        under: np.ndarray,
        heap: bool,
    ) -> None:
        """Place a name at the first of the offsets from its row that covers least. It is left out if it would
        cover another name at each of them, or leave the pane."""
        high = 0.4
        if color:
            high = 0.5
        half = (self.width_of(text, not color) / 2 + 0.1 * self.line, high * self.line)
        best = None
        least = (np.inf, 0)
        for right, up in offsets:
            x, y = self.places[row] + (right, up)
            if color:
                x = float(np.clip(x, half[0], max(half[0], self.size[0] - half[0])))
            box = np.array([x - half[0], y - half[1], x + half[0], y + half[1]])
            inside = min(box[:2]) >= 0 and box[2] <= self.size[0] and box[3] <= self.size[1]
            if not inside or overlapping(self._taken, box).any():
                continue
            n_stars = int(overlapping(self.stars, box).sum())
            if n_stars and (self.stars_have_labels or not color):
                continue
            cost = (n_stars, int(len(under) > 0 and overlapping(under, box).mean() > _COVERED))
            if cost < least:
                best = (x, y, box)
                least = cost
            if cost == (0, 0):
                break
        if best:
            self.names.append(MapName(row, text, color, float(best[0]), float(best[1]), heap))
            self._taken = np.vstack([self._taken, best[2]])


def _by_prominence(scene: Scene, rows: set[int]) -> list[int]:
    """These rows, the most prominent first, or in their order if the scene has no prominence."""
    if scene.prominence is None or not rows:
        return sorted(rows)
    return [int(row) for row in scene.prominence if row in rows]


def ringed_rows(scene: Scene) -> np.ndarray:
    """The marked rows that get a ring. If there are too many, none gets one, because rings hide rows."""
    rows = scene.marked[scene.shown[scene.marked]]
    if len(rows) <= _MOST_RINGS:
        return rows
    return rows[:0]


def _heaps(scene: Scene, pane: int) -> list[tuple[int, int]]:
    """The spots of a map in two dimensions where several rows lie. Spots with the most rows come first. A
    spot is given by one of its rows and the number of its rows."""
    points = scene.panes[pane].coordinates
    rows = np.flatnonzero(scene.shown)
    if points.shape[1] > 2 or not len(rows):
        return []
    low = points.min(axis=0)
    wide = np.maximum(np.ptp(points, axis=0), 1e-12)
    steps = np.round((points[rows] - low) / wide * _HEAP_STEPS).astype(np.int64)
    spots = steps[:, 0] * (_HEAP_STEPS + 1) + steps[:, 1]
    _, first, counts = np.unique(spots, return_index=True, return_counts=True)
    heaps = [(int(rows[first[i]]), int(counts[i])) for i in np.argsort(-counts, kind="stable")[:_MOST_HEAPS]]
    return [(row, n) for row, n in heaps if n > 1]


def _group_labels(scene: Scene, pane: int, theme: Theme) -> list[tuple[int, str, str, np.ndarray]]:
    """For each group, the row nearest to its median, its name, its colour and a sample of its rows. Classes
    come before clusters, and large groups before small ones."""
    coloring = scene.coloring(pane)
    coordinates = np.asarray(scene.panes[pane].coordinates)
    categories = np.asarray(coloring.categories)
    ramp = bool(coloring.colors)
    mute = scene.mute and set(coloring.names) <= set(scene.ids)  # whether the classes are single ids
    classes = np.where(scene.shown & (not ramp) & (not mute), categories, -1)
    if coloring.kept_class is not None:
        classes = np.where(classes == coloring.kept_class, -1, classes)
    names = coloring.names
    colors = coloring.palette(theme)
    wanted = [
        (row, short_name(str(names[g])), colors[g], rows) for g, row, rows in _middles(coordinates, classes)
    ]
    if scene.clusters is not None:
        clusters = np.where(scene.shown & ((categories < 0) | ramp), scene.clusters.numbers, -1)
        names = scene.clusters.names
        wanted += [
            (row, short_name(names[g]), theme.text, rows) for g, row, rows in _middles(coordinates, clusters)
        ]
    return wanted


def _middles(coordinates: np.ndarray, classes: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """For each class, its number, the row nearest to its median, and a sample of its rows. The largest class
    comes first."""
    middles = []
    for group in np.unique(classes[classes >= 0]).tolist():
        rows = np.flatnonzero(classes == group)
        own = coordinates[rows]
        middle = np.sort(own, axis=0)[len(own) // 2]
        nearest = int(rows[np.argmin(np.square(own - middle).sum(axis=1))])
        some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED_UNDER)).astype(int)]
        middles.append((len(rows), group, nearest, some))
    middles.sort(key=lambda found: (-found[0], found[1]))
    return [found[1:] for found in middles]
