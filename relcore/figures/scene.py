"""`Scene`: the content of linked maps of the same rows (panes). Sizes, names and legends are computed here,
so that they are the same on screen and on paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import floor, log10

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, general
from relcore.base.settings import check, setting
from relcore.base.text import encodable
from relcore.figures.charts import overlapping
from relcore.figures.style import Theme, rgb

# Viridis without its two ends: one is hard to see on dark pages, the other on white pages.
RAMP = ("#482475", "#3e4989", "#306a8e", "#24878e", "#20a486", "#48c16e", "#8ed645", "#dfe318")
STEPS = 64  # number of colours of a scale
PARTS = 8  # number of parts of a colour bar; each part can be hidden or selected
EDGES = (1, 99)  # percentiles at the ends of a scale, so that outliers do not stretch it

# A scale of positive numbers is logarithmic if its upper end is at least this many times their median.
_LOGARITHMIC = 10
_TICKS = 5
NONE = ""  # stands for the class of rows without a class


@dataclass(frozen=True)
class ColorScale:
    """A scale of the colours in `RAMP`, from `low` to `high`. Numbers beyond an end get the colour of this
    end."""

    title: str
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def of(cls, values: np.ndarray, title: str) -> ColorScale:
        """The colour scale of these numbers; NaN is ignored. If no number is left, the scale is 0 … 0."""
        known = np.asarray(values, dtype=np.float64)
        known = known[np.isfinite(known)]
        if not len(known):
            return cls(title, 0.0, 0.0)
        low, high = np.percentile(known, EDGES).tolist()
        if low == high:
            low = float(known.min())
            high = float(known.max())
        return cls(title, low, high, bool(known.min() > 0 and high >= _LOGARITHMIC * np.median(known)))

    @property
    def colors(self) -> tuple[str, ...]:
        stops = np.array(list(map(rgb, RAMP)))
        places = np.linspace(0, len(RAMP) - 1, STEPS)
        mixed = np.rint([np.interp(places, np.arange(len(RAMP)), channel) for channel in stops.T])
        return tuple("#" + color.tobytes().hex() for color in mixed.T.astype(np.uint8))

    def shares(self, values: np.ndarray) -> np.ndarray:
        """The positions of numbers on the scale, 0 … 1. NaN stays NaN. If both ends of the scale are equal,
        the position is .5."""
        values = np.asarray(values, dtype=np.float64)
        if self.low == self.high:
            return np.where(np.isfinite(values), 0.5, np.nan)
        if self.logarithmic:
            measured = np.log
        else:
            measured = np.asarray
        low = measured(self.low)
        high = measured(self.high)
        return (measured(np.clip(values, self.low, self.high)) - low) / (high - low)

    def steps(self, values: np.ndarray) -> np.ndarray:
        """The step of each number on the scale, 0 … `STEPS` − 1; −1 for NaN."""
        shares = self.shares(values)
        steps = np.minimum(np.nan_to_num(shares) * STEPS, STEPS - 1)
        return np.where(np.isfinite(shares), steps, -1).astype(np.int64)

    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers on the scale: the position of each, 0 … 1, and its label."""
        if self.low == self.high:
            return [(0.5, number_text(self.low))]
        numbers = []
        if self.logarithmic:
            numbers = _powers(self.low, self.high)
        if len(numbers) <= 1:
            numbers = _round_numbers(self.low, self.high)
        return list(zip(self.shares(numbers).tolist(), map(number_text, numbers), strict=True))

    def parts(self) -> list[str]:
        """The ranges of numbers, as texts, of the `PARTS` equal parts of the colour bar, lowest first."""
        if self.logarithmic:
            spaced = np.geomspace
        else:
            spaced = np.linspace
        limits = [number_text(limit, 3) for limit in spaced(self.low, self.high, PARTS + 1)[1:-1]]
        inner = [f"{low} … {high}" for low, high in pairwise(limits)]
        return [f"up to {limits[0]}", *inner, f"from {limits[-1]}"]


def number_text(number: float, digits: int = 4) -> str:
    """Format a number for an axis. Numbers below 10,000, such as years, get no comma."""
    text = general(number, digits)
    if abs(number) < 10_000:
        return text.replace(",", "")
    return text


def _round_numbers(low: float, high: float) -> list[float]:
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [n * step for n in range(int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9)) + 1)]


def _powers(low: float, high: float) -> list[float]:
    first = int(np.ceil(log10(low) - 1e-9))
    last = int(np.floor(log10(high) + 1e-9))
    return [10.0**power for power in range(first, last + 1, 1 + (last - first) // (_TICKS + 1))]


@dataclass(frozen=True, eq=False)
class Coloring:
    """A colouring of the rows of a scene: by classes or, with a `scale`, by numbers.

    Attributes
    ----------
    categories : array (n,) of int
        The class of each row (an index into `names`), or its step on the `scale`; −1 for rows without a class
        or number, which are grey.
    names : sequence of str
        The names of the classes for the legend; empty if there is a scale.
    colors : sequence of str
        One colour per class or step; by default, the colours of the palette.
    title : str
        Name of the column.
    values : array (n,), optional
        The numbers on the scale.
    hidden : tuple of str
        Names of the classes that are not drawn. `NONE` stands for rows without a class, and ``"3/8"`` for the
        third of the eight parts of a colour bar.
    """

    categories: np.ndarray
    names: Sequence[str] = ()
    colors: Sequence[str] = ()
    title: str = ""
    scale: ColorScale | None = None
    values: np.ndarray | None = None
    hidden: tuple[str, ...] = ()

    def palette(self, theme: Theme) -> list[str]:
        return list(self.colors) or theme.category_colors(len(self.names))

    def tokens(self) -> list[str]:
        """The names that `hidden` may contain, in the order of the classes; the last one is `NONE`."""
        parts = [f"{part}/{PARTS}" for part in range(1, PARTS + 1)]
        return [*(parts if self.scale else map(str, self.names)), NONE]

    def hidden_rows(self) -> np.ndarray:
        """Whether each row is hidden, (n,) bool."""
        tokens = self.tokens()
        categories = np.asarray(self.categories)
        classes = categories
        if self.scale:
            classes = categories // (STEPS // PARTS)
        hidden = np.array([token in self.hidden for token in tokens])
        return hidden[np.where(categories < 0, len(tokens) - 1, classes)]


SIZES = (0.3, 2.0)
OPACITIES = (0.1, 1.0)


@dataclass(frozen=True)
class StarLook:
    """The look of the stars that mark anchors: their size relative to `star_size` (within `SIZES`), their
    opacity relative to `star_opacity` (within `OPACITIES`), and whether they are drawn."""

    size: float = setting(1.0, low=SIZES[0], high=SIZES[1])
    opacity: float = setting(1.0, low=OPACITIES[0], high=OPACITIES[1])
    shown: bool = True

    __post_init__ = check


@dataclass(frozen=True)
class Pane:
    """A map of the rows, in two or three dimensions: `coordinates` are (n, 2) or (n, 3). `note` is a line of
    small print."""

    title: str
    coordinates: np.ndarray
    note: str = ""


BINS = 32  # number of bins of a facet of numbers
NO_CODE = 255  # stands for rows with neither a number nor a class
SELECTED_ROWS = "selected rows"  # the column of a condition that lists ids of rows


@dataclass(frozen=True, eq=False)
class Facet:
    """A column of data by which the rows can be filtered.

    Attributes
    ----------
    column, title : str
        The name of the column in settings, and its name on the screen.
    codes : array (n,) of uint8
        The class or the bin of each row; `NO_CODE` if it has none.
    names : tuple of str
        The names of the classes; empty for numbers.
    edges : tuple of float
        The `BINS` + 1 edges of the bins. Numbers below the first edge are in the first bin; numbers above the
        last edge are in the last bin.
    """

    column: str
    title: str
    codes: np.ndarray
    names: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()

    def meets(self, condition: Condition) -> np.ndarray:
        """Whether each row meets a condition, (n,) bool."""
        if self.column == SELECTED_ROWS:
            return self.codes == 0
        if self.names:
            places = [place for place, name in enumerate(self.names) if name in condition.classes]
            rest = []
            if NONE in condition.classes:
                rest = [NO_CODE]
            return np.isin(self.codes, [*places, *rest])
        edges = np.array(self.edges)
        if condition.low is None:
            low = -np.inf
        else:
            low = condition.low
        if condition.high is None:
            high = np.inf
        else:
            high = condition.high
        inside = np.flatnonzero((edges[1:] > low) & (edges[:-1] < high))
        return np.isin(self.codes, inside)


@dataclass(frozen=True)
class Condition:
    """A filter of rows by a column. It keeps the rows of the given `classes`, which may include `NONE` (no
    class). For a column of numbers, it keeps a range, where None is an open end; all bins of the `Facet` that
    overlap the range are kept."""

    column: str
    classes: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SpaceError(f"filter: expected the name of a column, got {self.column!r:.80}")
        for end in (self.low, self.high):
            if end is not None and not (isinstance(end, int | float) and abs(end) < float("inf")):
                raise SpaceError(f"filter: {self.column}: expected a number, got {end!r:.80}")

    def __str__(self) -> str:
        title = column_title(self.column)
        if self.column == SELECTED_ROWS:
            return f"{len(self.classes):,} selected rows"
        if self.classes:
            return f"{title}: {', '.join(name or OTHER for name in self.classes)}"
        ends = [(word, end) for word, end in (("from", self.low), ("to", self.high)) if end is not None]
        return " ".join([title, *(f"{word} {number_text(end)}" for word, end in ends)])


def column_title(column: str, models: Sequence[str] = ("model 1", "model 2")) -> str:
    """The title of a column on screen; `column` is its name in settings. Some titles include the name of a
    model."""
    if column in _TITLES:
        return _TITLES[column].format(*models)
    return column.removeprefix("column:")


_TITLES = {"counts": "count", "source norm": "norm, {0}", "target norm": "norm, {1}"}


def passing(facets: Sequence[Facet], conditions: Sequence[Condition], n: int) -> np.ndarray:
    """Whether each of the n rows meets all conditions, (n,) bool. Conditions on columns without a facet are
    ignored."""
    by_column = {facet.column: facet for facet in facets}
    met = [by_column[one.column].meets(one) for one in conditions if one.column in by_column]
    if met:
        return np.logical_and.reduce(met)
    return np.ones(n, dtype=bool)


@dataclass(frozen=True, eq=False)
class Clusters:
    """A clustering of the rows: the cluster of each row, (n,) int, −1 for none; and the names of the
    clusters."""

    numbers: np.ndarray
    names: tuple[str, ...]


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
    turn : tuple of 9 floats, optional
        The direction from which maps in three dimensions are seen: a rotation matrix, whose rows are the
        directions to the right, up, and to the viewer. The default is `FACING`.
    mute : bool
        Whether ids are not written on the maps, because they are only numbers or codes.
    facets, filter : tuples of Facet and Condition
        The columns that can be filtered by, and the filter. Rows that the filter excludes are grey.
    marked : array (s,) of int
        Rows that were selected or found by a search. If there are at most 24, each is drawn with a ring and,
        unless `mute`, its id.
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
    columns: int = 2
    anchor_numbers: np.ndarray | None = None
    marked: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def numbers(self) -> np.ndarray:
        if self.anchor_numbers is None:
            return np.arange(1, len(self.anchors) + 1)
        return self.anchor_numbers

    def __len__(self) -> int:
        return len(self.ids)

    def coloring(self, pane: int = 0) -> Coloring:
        """The colouring of a pane. Rows that the filter excludes have no class."""
        if self.second and pane in self.second_panes:
            raw = self.second
        else:
            raw = self._first
        if not self.filter:
            return raw
        return replace(raw, categories=np.where(self.kept, raw.categories, -1))

    def colorings(self) -> tuple[Coloring, ...]:
        """The different colourings: a single one for all panes, or the first one and `second`."""
        if self.second:
            return (self._first, self.second)
        return (self._first,)

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
        shown = self.color_title, self.scale, self.values, self.hidden
        return Coloring(self.categories, self.category_names, colors, *shown)

    @cached_property
    def shown(self) -> np.ndarray:
        """Whether each row is drawn, (n,) bool. Rows that any of the colourings hides are not drawn."""
        return ~np.logical_or.reduce([coloring.hidden_rows() for coloring in self.colorings()])

    @cached_property
    def kept(self) -> np.ndarray:
        """Whether each row passes the filter, (n,) bool."""
        return passing(self.facets, self.filter, len(self))

    def alt(self) -> str:
        numbers = ((len(self), "point"), (len(self.anchors), "anchor"), (len(self.panes), "pane"))
        counts = ", ".join(counted(n, thing) for n, thing in numbers)
        return f"{self.caption} {counts}: {', '.join(pane.title for pane in self.panes)}.".strip()

    def table(self) -> pd.DataFrame:
        """A table with one row per drawn point. Columns: id, class or number, number of the anchor (0 for
        other rows), and all coordinates."""
        numbers = np.zeros(len(self), dtype=np.int64)
        numbers[self.anchors] = self.numbers
        columns = {"id": encodable(self.ids)}
        if self.texts is not None:
            columns["text"] = encodable(self.texts)
        columns |= {**_color_column(self._first, "category"), "anchor": numbers}
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
    return {name: np.array([*encodable(coloring.names), ""], dtype=object)[coloring.categories]}


# Sizes and labels of the marks: legend, points and stars.

NUMBERED = 40  # maximum number of numbered stars; more numbers would hide the points
NAMED = 24  # maximum number of names in a legend
OTHER = "other"


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
        return rows, [_short_name(str(name), _ANCHOR_LETTERS) for name in scene.ids[rows]]
    return rows, list(map(str, scene.numbers[places]))


def anchor_key(scene: Scene) -> list[str]:
    """The texts that explain the numbers on stars: number and name of each anchor, such as "1 time". The list
    is empty if stars are not labelled by numbers, or rows have no names."""
    rows, labels = drawn_anchors(scene)
    if scene.mute or not labels or scene.numbers.max() > 2 * len(scene.anchors):
        return []
    named = zip(labels, scene.ids[rows], strict=True)
    return [f"{label}\N{NO-BREAK SPACE}{_short_name(str(name), _ANCHOR_LETTERS)}" for label, name in named]


# Names on maps: those of anchors, and those of classes and clusters at their medians.

# maximum number of letters of a name, and of an anchor's name
_LETTERS = 30
_ANCHOR_LETTERS = 14
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
    anchors, labels = drawn_anchors(scene)
    half = np.array([star, star]) / 2
    stars = np.hstack([places[anchors] - half, places[anchors] + half])
    taken = np.empty((0, 4))
    names = []

    def put(
        row: int,
        text: str,
        color: str,
        offsets: Sequence[tuple[float, float]],
        under: np.ndarray,
        heap: bool = False,
    ) -> None:
        nonlocal taken
        half = width_of(text, not color) / 2 + 0.1 * line, (0.5 if color else 0.4) * line
        best = None
        least = (np.inf, 0)
        for right, up in offsets:
            x, y = places[row] + (right, up)
            if color:
                x = float(np.clip(x, half[0], max(half[0], size[0] - half[0])))
            box = np.array([x - half[0], y - half[1], x + half[0], y + half[1]])
            inside = min(box[:2]) >= 0 and box[2] <= size[0] and box[3] <= size[1]
            if not inside or overlapping(taken, box).any():
                continue
            on_stars = int(overlapping(stars, box).sum())
            if on_stars and (labels or not color):
                continue
            cost = on_stars, int(len(under) > 0 and overlapping(under, box).mean() > _COVERED)
            if cost < least:
                best = (x, y, box)
                least = cost
            if cost == (0, 0):
                break
        if best:
            names.append(MapName(row, text, color, float(best[0]), float(best[1]), heap))
            taken = np.vstack([taken, best[2]])

    none = np.empty((0, 4))
    ringed = set() if scene.mute else set(ringed_rows(scene).tolist())

    def beside(row: int, text: str, color: str, gap: float, heap: bool = False) -> None:
        right = width_of(text, not color) / 2 + gap + 0.15 * line
        up = 0.9 * gap + 0.3 * line
        sides = [(1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0)]
        offsets = [(right * x, up * y) for x, y in sides]
        above = gap + 0.55 * line
        put(row, text, color, [*offsets, (0.0, above), (0.0, -above)], none, heap)

    for row in scene.prominence if ringed and scene.prominence is not None else sorted(ringed):
        if row in ringed:
            beside(int(row), _short_name(str(scene.ids[row])), theme.text, 0.3 * line)
    for row, text, color, rows in _group_labels(scene, pane, theme) if scene.named else ():
        away = width_of(text, False) / 2 + 0.5 * line
        offsets = [(right, up * line) for up in _LINES for right in (0.0, away, -away)]
        offsets.sort(key=lambda offset: abs(offset[1]) + abs(offset[0]) / 2)
        dot = 0.25 * line
        put(row, text, color, offsets, np.hstack([places[rows] - dot, places[rows] + dot]))
    for row, n in _heaps(scene, pane) if scene.named else ():
        beside(row, f"{n:,} rows here", "", 0.2 * line, heap=True)
    for row, text in zip(anchors.tolist(), labels, strict=False):
        if row not in ringed or text.isdigit():  # ringed rows already have their name
            beside(row, text, "", star / 2)
    return names


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
    names = coloring.names
    colors = coloring.palette(theme)
    wanted = [
        (row, _short_name(str(names[g])), colors[g], rows) for g, row, rows in _middles(coordinates, classes)
    ]
    if scene.clusters is not None:
        clusters = np.where(scene.shown & ((categories < 0) | ramp), scene.clusters.numbers, -1)
        names = scene.clusters.names
        wanted += [
            (row, _short_name(names[g]), theme.text, rows) for g, row, rows in _middles(coordinates, clusters)
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


def _short_name(name: str, letters: int = _LETTERS) -> str:
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
