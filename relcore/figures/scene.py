"""`Scene`: the content of linked maps of the same rows (panes). Sizes, names and legends are computed here,
so that they are the same on screen and on paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from relcore.base.numbers import counted
from relcore.base.text import encodable, shortened
from relcore.figures.colorings import (
    Coloring,
    ColorScale,
    Condition,
    Facet,
    Pane,
    StarLook,
    conditions_in_words,
    passing,
)
from relcore.figures.style import Theme


@dataclass(frozen=True, eq=False)
class Clusters:
    """A clustering of the rows: the cluster of each row, (n,) int, −1 for none; and the names of the
    clusters. `finer` has more clusters, whose names replace these where the map is enlarged."""

    numbers: np.ndarray
    names: tuple[str, ...]
    finer: Clusters | None = None


# The first view of a map in three dimensions: a rotation that makes depth visible. It equals FACING in
# solid.js.
FACING = (0.8253, 0.0, -0.5646, -0.2199, 0.9211, -0.3214, 0.5201, 0.3894, 0.7602)


@dataclass(frozen=True)
class Scene:
    """Linked maps (panes) of the same n rows, with everything that is drawn on them: colours, anchors, names,
    a filter and marked rows.

    Attributes
    ----------
    panes : tuple of Pane
        The panes. Their titles differ; the order of their rows is the same.
    columns : int
        The number of panes side by side, one for each space. Further panes are in a second row.
    categories, category_names, category_colors, scale, values, color_title, hidden
        The fields of the `Coloring` of all panes except `second_panes`.
    anchors : array (k,) of int
        The rows that are drawn as stars.
    anchor_numbers : array (k,) of int, optional
        The numbers of the anchors, by default 1, 2, …, k. If the scene has only some of the anchors, some
        numbers are missing.
    caption : str
        One sentence on the content, with which the alt text begins.
    texts, notes : arrays (n,) of str, optional
        Hover texts: the item of each row, and a note on it in small print.
    prominence : array (n,) of int, optional
        All row numbers, in the order in which names are chosen for the screen: the most important rows come
        first.
    second : Coloring, optional
        The colouring of `second_panes`, which are the right or the lower panes.
    clusters : Clusters, optional
        Clusters whose names are written on maps if the colours have no names.
    named : bool
        Whether to write the names of classes and clusters on the maps.
    density : bool, optional
        Whether to draw lines around the most crowded places. None: where points hide each other.
    turn : tuple of 9 floats, optional
        The direction from which maps in three dimensions are seen: a rotation matrix, whose rows are the
        directions to the right, up, and to the viewer. The default is `FACING`.
    mute : bool
        Whether ids are not written on the maps, because they are only numbers or codes.
    facets, filter : tuples of Facet and Condition
        The columns that can be filtered by, and the filter. Rows that the filter excludes are grey.
    facet_rows : array (n,) of int, optional
        The place of each row among the rows of the facets, if these have further rows, which are not drawn.
    marked : array (s,) of int
        Rows that were selected or found by a search. If there are at most 24, each is drawn with a ring and,
        unless `mute`, its id.
    told : function, optional
        Returns further columns of the table, such as tags, by name, each (n,).
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
    mute: bool = False
    facets: tuple[Facet, ...] = ()
    filter: tuple[Condition, ...] = ()
    facet_rows: np.ndarray | None = None
    columns: int = 2
    anchor_numbers: np.ndarray | None = None
    marked: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    told: Callable[[], dict[str, np.ndarray]] | None = None
    density: bool | None = None

    @property
    def numbers(self) -> np.ndarray:
        if self.anchor_numbers is None:
            return np.arange(1, len(self.anchors) + 1)
        return self.anchor_numbers

    def __len__(self) -> int:
        return len(self.ids)

    def coloring(self, pane: int = 0) -> Coloring:
        """The colouring of a pane. Rows that the filter excludes have no class."""
        own, *second = self.colorings()
        if second and pane in self.second_panes:
            own = second[0]
        if not self.filter:
            return own
        return replace(own, categories=np.where(self.kept, own.categories, -1))

    def colorings(self) -> tuple[Coloring, ...]:
        """The different colourings: a single one for all panes, or the first one and `second`. If there is a
        filter, the rows that it keeps have a class of their own where they had none."""
        colorings = [self._first]
        if self.second:
            colorings.append(self.second)
        if self.filter:
            colorings = [coloring.keeping(self.kept) for coloring in colorings]
        return tuple(colorings)

    @property
    def sides(self) -> list[str]:
        """The titles of the legends, which name the panes that they belong to; `""` if there is only one
        legend."""
        if self.second is None:
            return [""]
        if self.second_panes[0] >= self.columns:
            return ["Upper", "Lower"]
        return ["Left", "Right"]

    @cached_property
    def _first(self) -> Coloring:
        if self.scale:
            colors = self.scale.colors
        else:
            colors = self.category_colors
        return Coloring(
            categories=self.categories,
            names=self.category_names,
            colors=colors,
            title=self.color_title,
            scale=self.scale,
            values=self.values,
            hidden=self.hidden,
        )

    @cached_property
    def shown(self) -> np.ndarray:
        """Whether each row is drawn, (n,) bool. Rows that any of the colourings hides are not drawn."""
        return ~np.logical_or.reduce([coloring.hidden_rows() for coloring in self.colorings()])

    @cached_property
    def kept(self) -> np.ndarray:
        """Whether each row passes the filter, (n,) bool."""
        if self.facet_rows is None or not self.facets:
            return passing(self.facets, self.filter, len(self))
        return passing(self.facets, self.filter, len(self.facets[0].codes))[self.facet_rows]

    def alt(self) -> str:
        numbers = ((len(self), "point"), (len(self.anchors), "anchor"), (len(self.panes), "pane"))
        counts = ", ".join(counted(n, thing) for n, thing in numbers)
        return f"{self.caption} {counts}: {', '.join(pane.title for pane in self.panes)}.".strip()

    def table(self) -> pd.DataFrame:
        """A table with one row per drawn point. Columns: id, those that `told` returns, class or number,
        number of the anchor (0 for other rows), and all coordinates."""
        numbers = np.zeros(len(self), dtype=np.int64)
        numbers[self.anchors] = self.numbers
        columns = {"id": encodable(self.ids)}
        if self.texts is not None:
            columns["text"] = encodable(self.texts)
        if self.told is not None:
            columns |= encodable(self.told())
        for name, values in _color_column(self._first, "category").items():
            columns.setdefault(name, values)  # the colours of a tag repeat its column
        columns["anchor"] = numbers
        if self.second:
            columns |= _color_column(self.second, "second category")
        if self.filter:
            columns["in the filter"] = self.kept
        for pane in self.panes:
            columns |= {f"{pane.title} {axis}": c for axis, c in zip("xyz", pane.coordinates.T, strict=False)}
        return pd.DataFrame(columns)[self.shown].reset_index(drop=True)


def _color_column(coloring: Coloring, name: str) -> dict[str, np.ndarray]:
    if coloring.scale is not None:
        return {coloring.scale.title: coloring.values}
    return {
        encodable(coloring.title) or name: np.array([*encodable(coloring.names), ""], dtype=object)[
            coloring.categories
        ]
    }


# Sizes and labels of the marks: legend, points and stars.

NUMBERED = 40  # maximum number of numbered stars; more numbers would hide the points


def row_colors(scene: Scene, theme: Theme, pane: int = 0) -> np.ndarray:
    coloring = scene.coloring(pane)
    return np.array([*coloring.palette(theme), theme.neutral], dtype=object)[np.asarray(coloring.categories)]


def scales_of(scene: Scene) -> list[tuple[str, ColorScale]]:
    """The colour scales of the scene (one for each colouring by numbers), each with its title."""
    pairs = zip(scene.sides, (coloring.scale for coloring in scene.colorings()), strict=True)
    return [(": ".join(filter(None, (side, scale.title))), scale) for side, scale in pairs if scale]


def point_size(n: int) -> float:
    """The diameter of a point on screen, in pixels."""
    return float(np.clip(19 * max(n, 1) ** -0.18, 2, 8))


def star_size(n_anchors: int) -> float:
    """The diameter on screen, in pixels, of the star that marks an anchor. If there are many anchors, stars
    are small."""
    return float(np.clip(16 * max(n_anchors / 8, 1) ** -0.3, 6, 16))


def star_opacity(n_anchors: int) -> float:
    return float(np.clip((max(n_anchors, 1) / 60) ** -0.25, 0.6, 1))


def drawn_anchors(scene: Scene) -> tuple[np.ndarray, list[str]]:
    """Return the rows of the drawn anchors, and the labels of their stars. Labels are numbers or, if many
    numbers are missing, names. If there are too many anchors, the list of labels is empty. The same rule is
    used on screen (stars.js)."""
    if not len(scene.anchors) or not scene.stars.shown:
        return np.empty(0, dtype=np.int64), []
    places = np.flatnonzero(scene.shown[scene.anchors])
    rows = scene.anchors[places]
    if len(scene.anchors) > NUMBERED:
        return rows, []
    if scene.numbers.max() > 2 * len(scene.anchors):
        return rows, [short_name(str(name), _ANCHOR_LETTERS) for name in scene.ids[rows]]
    return rows, list(map(str, scene.numbers[places]))


def anchor_key(scene: Scene) -> list[str]:
    """The texts that explain the numbers on stars: number and name of each anchor, such as "1 time". The list
    is empty if stars are not labelled by numbers, or rows have no names."""
    rows, labels = drawn_anchors(scene)
    if scene.mute or not labels or scene.numbers.max() > 2 * len(scene.anchors):
        return []
    named = zip(labels, scene.ids[rows], strict=True)
    return [f"{label}\N{NO-BREAK SPACE}{short_name(str(name), _ANCHOR_LETTERS)}" for label, name in named]


def filter_note(scene: Scene) -> list[str]:
    """How many of the drawn rows the filter keeps in colour, as one text; [] without a filter."""
    if not scene.filter:
        return []
    kept = int(np.count_nonzero(scene.kept & scene.shown))
    n = int(np.count_nonzero(scene.shown))
    conditions = conditions_in_words(scene.facets, scene.filter)
    return [f"Filter: {kept:,} of {counted(n, 'row')} in colour ({shortened(conditions, _FILTER_LETTERS)})"]


# Names on maps: those of anchors, and those of classes and clusters at their medians.

# maximum number of letters of a name, and of an anchor's name
_LETTERS = 30
_ANCHOR_LETTERS = 14
_FILTER_LETTERS = 60  # maximum number of letters of the conditions of a filter, below a figure


def short_name(name: str, letters: int = _LETTERS) -> str:
    """The name, cut to a number of letters. Paths and addresses are cut in the middle, because their ends
    differ."""
    if len(name) <= letters:
        return name
    end = 0 if " " in name else letters // 2
    return f"{name[: letters - 1 - end]}…{name[len(name) - end :]}"


def seen(coordinates: np.ndarray, turn: tuple[float, ...] | None) -> np.ndarray:
    """The coordinates after a rotation to the viewer: (n, 2), or (n, 3) with a third column that is larger
    for nearer points."""
    points = np.asarray(coordinates, dtype=np.float64)
    if points.shape[1] == 3:
        return points @ np.reshape(turn or FACING, (3, 3)).T
    return points


def window_of(points: np.ndarray, aspect: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle (2,) and the size (2,) of a window that contains all points (n, 2) and a margin. Its
    width is `aspect` times its height."""
    low = points.min(axis=0)
    high = points.max(axis=0)
    spread = np.maximum(high - low, 1e-12) * 1.14
    scale = max(spread[0] / aspect, spread[1])
    return (low + high) / 2, np.array([scale * aspect, scale])
