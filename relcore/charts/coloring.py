"""Coloring: the colour of each row by categories, or by a number on a scale, and which classes are hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10

import numpy as np

# Eight colours of viridis, which rises in lightness and is readable for colour-blind eyes, without its ends:
# these vanish on a dark and on a white page.
RAMP = ("#482475", "#3e4989", "#306a8e", "#24878e", "#20a486", "#48c16e", "#8ed645", "#dfe318")
STEPS = 64  # colours of a scale; eyes do not see more
PARTS = 8  # of a colour bar, each of which can be hidden or selected
EDGES = (1, 99)  # percentiles at the ends of a scale, so that one far value does not take all colours
# where the upper end of positive numbers is at least this multiple of their median, the scale is logarithmic
_LOGARITHMIC = 10
_TICKS = 5


@dataclass(frozen=True)
class ColorScale:
    """Numbers from `low` to `high` as colours of `RAMP`; what lies outside has the colour of the nearer
    end.
    """

    title: str
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def of(cls, values: np.ndarray, title: str) -> ColorScale:
        """The scale of these numbers, of which NaN are left out; 0 … 0 where there are none."""
        known = np.asarray(values, dtype=np.float64)
        known = known[np.isfinite(known)]
        if not len(known):
            return cls(title, 0.0, 0.0)
        low, high = (float(end) for end in np.percentile(known, EDGES))
        if low == high:
            low, high = float(known.min()), float(known.max())
        return cls(
            title, low, high, logarithmic=known.min() > 0 and high >= _LOGARITHMIC * float(np.median(known))
        )

    @property
    def colors(self) -> tuple[str, ...]:
        """One hexadecimal colour per step, the lowest number's first."""
        stops = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in RAMP])
        places = np.linspace(0, len(RAMP) - 1, STEPS)
        mixed = [np.interp(places, np.arange(len(RAMP)), channel) for channel in stops.T]
        return tuple(
            "#" + "".join(f"{round(value):02x}" for value in color) for color in zip(*mixed, strict=True)
        )

    def shares(self, values: np.ndarray) -> np.ndarray:
        """Where the numbers lie on the scale, 0 … 1; NaN stays NaN, and all are .5 where both ends are
        equal.
        """
        values = np.asarray(values, dtype=np.float64)
        if self.low == self.high:
            return np.where(np.isfinite(values), 0.5, np.nan)
        clipped = np.clip(values, self.low, self.high)
        low, high = self.low, self.high
        if self.logarithmic:
            clipped, low, high = np.log(clipped), np.log(low), np.log(high)
        return (clipped - low) / (high - low)

    def steps(self, values: np.ndarray) -> np.ndarray:
        """The step of each number, 0 … `STEPS` − 1, and −1 for NaN."""
        shares = self.shares(values)
        return np.where(np.isfinite(shares), np.minimum(np.nan_to_num(shares) * STEPS, STEPS - 1), -1).astype(
            np.int64
        )

    def at(self, share: float) -> float:
        """The number at a place of the scale."""
        if self.logarithmic:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Places, 0 … 1, and texts of round numbers on the scale."""
        if self.low == self.high:
            return [(0.5, told(self.low))]
        numbers = _powers(self.low, self.high) if self.logarithmic else []
        numbers = numbers if len(numbers) > 1 else _round_numbers(self.low, self.high)
        return [
            (float(place), told(number))
            for number, place in zip(numbers, self.shares(np.array(numbers)), strict=True)
        ]

    def parts(self) -> list[str]:
        """The ranges of the `PARTS` parts of the colour bar, the lowest first; the ends say that they are
        open.
        """
        limits = [told(self.at(part / PARTS), 3) for part in range(1, PARTS)]
        inner = [f"{low} … {high}" for low, high in pairwise(limits)]
        return [f"up to {limits[0]}", *inner, f"from {limits[-1]}"]


@dataclass(frozen=True, eq=False)
class Coloring:
    """One way to colour the rows of a scene.

    Attributes
    ----------
    categories : array (n,) of int
        Index into `names`, or step of the `scale`; -1 for none, drawn in neutral grey.
    names : sequence of str
        The legend; empty for a scale.
    colors : sequence of str
        One per category or step; empty takes the palette's.
    title : str
        What is shown: a column's name.
    scale : ColorScale, optional
    values : array (n,), optional
        The numbers on the scale.
    hidden : tuple of str
        Classes whose rows are not drawn: names, `NONE` for rows of none, and ``"3/8"`` for the third part of
        a colour bar.
    """

    categories: np.ndarray
    names: Sequence[str] = ()
    colors: Sequence[str] = ()
    title: str = ""
    scale: ColorScale | None = None
    values: np.ndarray | None = None
    hidden: tuple[str, ...] = ()

    def check(self, n: int) -> None:
        """Raise a ValueError unless there is a category, and of a scale a value, for each of n rows."""
        categories, n_colors = np.asarray(self.categories), STEPS if self.scale else len(self.names)
        if len(categories) != n:
            raise ValueError(f"expected {n} categories, one per row, got {len(categories)}")
        if self.scale and (self.values is None or len(self.values) != n):
            raise ValueError(
                f"values: expected {n}, one per row, got {0 if self.values is None else len(self.values)}"
            )
        if n and not (categories.min() >= -1 and categories.max() < n_colors):
            raise ValueError(
                f"categories: expected -1 … {n_colors - 1}, got {categories.min()} … {categories.max()}"
            )

    def tokens(self) -> list[str]:
        """What `hidden` calls each class: the categories or the parts of the scale, then the rows of none."""
        named = (
            [f"{part}/{PARTS}" for part in range(1, PARTS + 1)]
            if self.scale
            else [str(name) for name in self.names]
        )
        return [*named, NONE]

    def hidden_rows(self) -> np.ndarray:
        """Which rows are hidden, (n,) of bool."""
        tokens = self.tokens()
        away = np.array([token in set(self.hidden) for token in tokens])
        categories = np.asarray(self.categories)
        classes = categories // (STEPS // PARTS) if self.scale else categories
        return away[np.where(categories < 0, len(tokens) - 1, classes)]


NONE = ""


def told(number: float, digits: int = 4) -> str:
    """A number of a scale: years and other whole numbers below 10,000 without a comma."""
    rounded = float(f"{number:.{digits}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e7:
        return f"{rounded:g}".replace("-", "−").replace("e+0", "e")
    text = f"{rounded:,.10f}" if abs(rounded) >= 10_000 else f"{rounded:.10f}"
    return text.rstrip("0").rstrip(".").replace("-", "−").replace("0.", ".", int(abs(rounded) < 1)) or "0"


def _round_numbers(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 · 10ᵏ within the ends, about `_TICKS` of them."""
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [number * step for number in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten within the ends; of many every second, third, …."""
    first, last = int(np.ceil(log10(low) - 1e-9)), int(np.floor(log10(high) + 1e-9))
    return [10.0**power for power in range(first, last + 1, 1 + (last - first) // (_TICKS + 1))]
