"""How rows are coloured and filtered: scales of numbers, classes, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import general
from relcore.base.settings import check, setting
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
KEPT = "kept by filter"  # the class of rows without a class that pass a filter


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
        if self.colors:
            return list(self.colors)
        colors = theme.category_colors(len(self.names))
        if self.kept_class is not None:
            colors[self.kept_class] = theme.text
        return colors

    @property
    def kept_class(self) -> int | None:
        """The number of the class `KEPT`, which is the last one; None if there is none."""
        if self.names and self.names[-1] == KEPT:
            return len(self.names) - 1
        return None

    def keeping(self, kept: np.ndarray) -> Coloring:
        """The colouring with those of the `kept` rows (n,) bool that have no class in the class `KEPT`, so
        that a filter shows them in colour. Colours by numbers and colours of its own stay."""
        without = kept & (np.asarray(self.categories) < 0)
        if self.scale or self.colors or not without.any():
            return self
        categories = np.where(without, len(self.names), self.categories)
        return replace(self, categories=categories, names=(*self.names, KEPT))

    def tokens(self) -> list[str]:
        """The names that `hidden` may contain, in the order of the classes; the last one is `NONE`."""
        if self.scale:
            return [*(f"{part}/{PARTS}" for part in range(1, PARTS + 1)), NONE]
        return [*map(str, self.names), NONE]

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
    whole : bool
        Whether the numbers are whole.
    """

    column: str
    title: str
    codes: np.ndarray
    names: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    whole: bool = False

    def bounds(self) -> tuple[list[str], list[str]]:
        """The least and the greatest number of each bin, as texts. Between the edges 970.5 and 980, whole
        numbers go from 971 to 979."""
        lows = list(self.edges[:-1])
        highs = list(self.edges[1:])
        if self.whole:
            lows = [float(ceil(low)) for low in lows]
            highs = [*(float(ceil(high)) - 1 for high in highs[:-1]), float(floor(highs[-1]))]
        return list(map(number_text, lows)), list(map(number_text, highs))

    def in_words(self, condition: Condition) -> str:
        """A condition on this column in words, with the least and the greatest number that it keeps:
        ``"count: 971 to 979"``. It says the same as the filter on screen (filter.js)."""
        if self.names or self.column == SELECTED_ROWS:
            return str(condition)
        bins = np.arange(len(self.edges) - 1)
        kept = bins[replace(self, codes=bins).meets(condition)]
        if not len(kept):
            return f"{self.title}: no number"
        lows, highs = self.bounds()
        low = lows[kept[0]]
        high = highs[kept[-1]]
        if condition.low is None:
            return f"{self.title}: {high} or less"
        if condition.high is None:
            return f"{self.title}: {low} or more"
        return f"{self.title}: {low} to {high}"

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


def conditions_in_words(facets: Sequence[Facet], conditions: Sequence[Condition]) -> str:
    """The conditions of a filter as one text. Conditions on columns without a facet are written as they
    are."""
    by_column = {facet.column: facet for facet in facets}
    texts = []
    for one in conditions:
        facet = by_column.get(one.column)
        if facet is None:
            texts.append(str(one))
        else:
            texts.append(facet.in_words(one))
    return "; ".join(texts)


def passing(facets: Sequence[Facet], conditions: Sequence[Condition], n: int) -> np.ndarray:
    """Whether each of the n rows meets all conditions, (n,) bool. Conditions on columns without a facet are
    ignored."""
    by_column = {facet.column: facet for facet in facets}
    met = [by_column[one.column].meets(one) for one in conditions if one.column in by_column]
    if met:
        return np.logical_and.reduce(met)
    return np.ones(n, dtype=bool)


OTHER = "other"
