"""What was measured here: numbers with their settings, those of the project and those of this store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from relcore import record
from relcore.papers.published import FOLDER
from relcore.spaces import SpaceError

SHIPPED = FOLDER / "ours"
SHARE = "0 … 1"


@dataclass(frozen=True)
class Number:
    """One measured number.

    Attributes
    ----------
    label, metric : str
        Of what, and which: ``"relative, Word2Vec → FastText"``, ``"Jaccard"``.
    value : float
    deviation : float, optional
        Sample standard deviation over `repeats`.
    unit : str
        Range or unit of the value.
    n, k : int, optional
        Rows that it is a mean over; neighbours.
    repeats : int
        Random states or trainings.
    low, high : float, optional
        Ends of its 95 % interval.
    baseline : float, optional
        The number to compare with: the chance level, or what `baseline_is` names.
    group : str
        Part of a run that a single table or figure shows.
    """

    label: str
    metric: str
    value: float
    deviation: float | None = None
    unit: str = SHARE
    n: int | None = None
    k: int | None = None
    repeats: int = 1
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    baseline_is: str = "chance"
    group: str = ""

    def to_record(self) -> dict[str, Any]:
        """Without the fields that are at their defaults."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}

    def text(self) -> str:
        """``"0.304 ± 0.002"``, as a paper's table prints it."""
        places = 3 if abs(self.value) < 100 else 1
        deviation = "" if self.deviation is None else f" ± {self.deviation:.{places}f}"
        return f"{self.value:.{places}f}{deviation}".replace("-", "−")


@dataclass(frozen=True)
class Ours:
    """What one run found, and how.

    Attributes
    ----------
    run : str
    data : str
        What it was measured on.
    settings : dict
        All choices, JSON values.
    date, version : str
        Day, ISO; version of Relscope.
    commit : str
        Short hash of the checkout that measured it, with "+" where its code was changed and not committed; "" unknown.
    run_version : int
        `PaperRun.version` when it was measured.
    seconds : float
        What it took; parts that the store had already count with what they took when they were computed.
    numbers : tuple of Number
    """

    run: str
    data: str
    settings: Mapping[str, Any]
    date: str
    version: str
    seconds: float
    numbers: tuple[Number, ...] = field(default_factory=tuple)
    commit: str = ""
    run_version: int = 1

    def of_groups(self, groups: Iterable[str]) -> tuple[Number, ...]:
        """The numbers of these groups; of none: all."""
        wanted = set(groups)
        return tuple(number for number in self.numbers if not wanted or number.group in wanted)


@cache
def shipped() -> dict[str, Ours]:
    """Run → the project's numbers."""
    return read_ours(SHIPPED)


def read_ours(folder: Path) -> dict[str, Ours]:
    """Run → what its file in the folder holds; nothing where there is no such folder.

    Raises
    ------
    SpaceError
        A file that holds something else.
    """
    found = [_read(path) for path in sorted(folder.glob("*.json"))]
    return {one.run: one for one in found}


def write_ours(folder: Path, found: Ours) -> None:
    """Write one run's file, ``"words.json"``, whole or not at all; make the folder where it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found.run}.json"
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record.to_json(found), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def _read(path: Path) -> Ours:
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SpaceError(f"{path}: expected a JSON object of measured numbers, got {error}; make it again") from error
    found = record.from_json(Ours, described, str(path))
    if found.run != path.stem:
        raise SpaceError(f"{path}: expected numbers of the run {path.stem!r}, got those of {found.run!r}; rename the file")
    return found
