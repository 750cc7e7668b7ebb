"""Options with their intervals beside curves of the same score: what to choose, and what more data would change."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from relcore.charts.lines import Lines
from relcore.numbers import band, short
from relcore.spaces import SpaceError

_APART = 1.4  # ratio of two ticks whose numbers have room on a narrow screen


@dataclass(frozen=True)
class Option:
    """One option: its score with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    def describe(self) -> str:
        return f"{self.name} {short(self.value)} ({band(self.low, self.high)})"


@dataclass(frozen=True)
class Options:
    """A chart of two panels with one y axis.

    Attributes
    ----------
    options : tuple of Option
        Left, one colour each.
    curves : Lines
        Right; a line with the name of an option has its colour, and an option without a line is a dashed level.
    chosen : str
        The option that is recommended, marked; "" for none.
    """

    options: tuple[Option, ...]
    curves: Lines
    chosen: str = ""

    def __post_init__(self) -> None:
        names = [option.name for option in self.options]
        if len(set(names)) < len(names) or not names:
            raise SpaceError(f"options: expected one or more with different names, got {names!r:.80}")

    @property
    def levels(self) -> tuple[Option, ...]:
        """Options that do not depend on what the curves vary."""
        drawn = {line.name for line in self.curves.lines}
        return tuple(option for option in self.options if option.name not in drawn)

    @property
    def places(self) -> list[float]:
        """Where something was measured, ascending: the ticks of the x axis, without those that the next one would cover."""
        found = sorted({float(x) for line in self.curves.lines for x in line.x})
        far = [after > _APART * place if self.curves.log_x else True for place, after in pairwise(found)]
        return [place for place, is_far in zip(found, [*far, True], strict=True) if is_far]

    def colors(self, palette: list[str]) -> dict[str, str]:
        """A colour for each option, then for each other line."""
        others = [line.name for line in self.curves.lines if line.name not in {option.name for option in self.options}]
        return dict(zip([*(option.name for option in self.options), *others], palette, strict=False))

    def table(self) -> pd.DataFrame:
        """What is drawn: columns name, x, y, low, high, label; options have no x."""
        rows = [{"name": one.name, "y": one.value, "low": one.low, "high": one.high, "label": "option"} for one in self.options]
        return pd.concat([pd.DataFrame(rows), self.curves.table()], ignore_index=True)[
            ["name", "x", "y", "low", "high", "label"]
        ]

    def describe(self) -> str:
        """The alt text."""
        told = "; ".join(option.describe() for option in self.options)
        chosen = f" Recommended: {self.chosen}." if self.chosen else ""
        return f"{self.curves.y_title} with 95 % intervals: {told}.{chosen} {self.curves.describe()}"
