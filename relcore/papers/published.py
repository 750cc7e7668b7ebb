"""The published tables with their units, read from relcore/data/papers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from relcore.base.errors import SpaceError

FOLDER = files("relcore") / "data" / "papers"
WORDS = ("setting",)  # units of columns that hold no numbers
NONE = ("–", "-")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)(?: ± (\d+(?:\.\d+)?))?")


@dataclass(frozen=True)
class Cell:
    """One printed entry.

    Attributes
    ----------
    text : str
        As printed: ``"0.34 ± 0.01"``, ``"–"``, ``"ReLU, Tanh"``.
    value, deviation : float, optional
        In the unit of its column; None where there is none.
    """

    text: str
    value: float | None = None
    deviation: float | None = None

    @classmethod
    def of(cls, text: str, unit: str) -> Cell:
        """Read an entry of a column in this unit.

        Raises
        ------
        SpaceError
            No number in a column of numbers.
        """
        if text in NONE:
            return cls("–")
        if unit in WORDS:
            return cls(text)
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise SpaceError(f"published: expected a number in a column of unit {unit!r}, got {text!r}")
        value, deviation = found.groups()
        return cls(text, float(value), None if deviation is None else float(deviation))


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: what it is called, and its unit or range."""

    name: str
    unit: str


@dataclass(frozen=True)
class PublishedTable:
    """One printed table.

    Attributes
    ----------
    setting : str
        Data, anchors, k, seeds: what the numbers depend on.
    labels : tuple of str
        Names of the columns that say which line it is.
    measures : tuple of Measure
    lines : tuple of (labels, cells)
    """

    setting: str
    labels: tuple[str, ...]
    measures: tuple[NumberColumn, ...]
    lines: tuple[tuple[tuple[str, ...], tuple[Cell, ...]], ...]

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> PublishedTable:
        """Of one record in relcore/data/papers.

        Raises
        ------
        SpaceError
            A line whose length differs from the head's, or a text in a column of numbers.
        """
        labels, measures = tuple(record["labels"]), tuple(NumberColumn(**one) for one in record["measures"])
        lines = []
        for line in record["rows"]:
            if len(line) != len(labels) + len(measures):
                raise SpaceError(
                    f"published: expected {len(labels) + len(measures)} entries in a line, got {line!r}"
                )
            entries = zip(line[len(labels) :], measures, strict=True)
            lines.append(
                (tuple(line[: len(labels)]), tuple(Cell.of(text, measure.unit) for text, measure in entries))
            )
        return cls(record["setting"], labels, measures, tuple(lines))
