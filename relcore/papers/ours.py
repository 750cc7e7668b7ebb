"""What was measured here: numbers with their settings, those of the project and those of this store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.papers.published import FOLDER

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
        Short hash of the checkout that measured it, with "+" where its code was changed and not committed; ""
        unknown.
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
    partial.write_text(
        json.dumps(records.to_json(found), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    partial.replace(path)


def _read(path: Path) -> Ours:
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SpaceError(
            f"{path}: expected a JSON object of measured numbers, got {error}; make it again"
        ) from error
    found = records.from_json(Ours, described, str(path))
    if found.run != path.stem:
        raise SpaceError(
            f"{path}: expected numbers of the run {path.stem!r}, got those of {found.run!r}; rename the file"
        )
    return found


# The 95 % interval of a measured number, and how it was found.

_COSINES = "−1 … 1"
_CORRELATIONS = ("Pearson", "Spearman")


@dataclass(frozen=True)
class Spread:
    """Standard error of a number, degrees of freedom behind it (inf: known), and in words its source.

    `low` and `high` are the ends of the 95 % interval.
    """

    error: float
    freedom: float
    low: float
    high: float
    found_from: str


def spread_of(number: Number) -> Spread | None:
    """The number's standard error and 95 % interval; None if no error is known.

    In this order:

    1. `low` and `high`, where the run found an interval itself (bootstrap over runs, Fisher's for a
    correlation);
    2. Student's interval of the mean, where there are two or more repeats that differ. It covers what differs
    between repeats (anchors, weights, splits), not the choice of the test rows if those are fixed;
    3. of a single measurement with a deviation over its n rows, that deviation ÷ √n;
    4. else, of a mean over n rows between 0 and 1, or −1 and 1, the largest standard error that such a mean
    can have:
       √(v (1 − v) ÷ n), or √((1 − v²) ÷ n). Of an accuracy this is the binomial standard error.
    """
    if number.low is not None and number.high is not None:
        return Spread(
            (number.high - number.low) / (2 * quantile(inf)), inf, number.low, number.high, "found by the run"
        )
    if number.deviation and number.repeats > 1:
        found = _around(
            number.value,
            number.deviation / sqrt(number.repeats),
            number.repeats - 1,
            "Student's, over repeats",
        )
        return _within_range(found, number)
    if number.deviation and number.n:
        return _within_range(
            _around(number.value, number.deviation / sqrt(number.n), inf, "deviation over rows ÷ √n"), number
        )
    if number.n and number.unit in (SHARE, _COSINES) and number.metric not in _CORRELATIONS:
        least = 0.0 if number.unit == SHARE else -1.0
        variance = max(
            (1 - number.value) * (number.value - least), 0.0
        )  # of all distributions on the range, the widest
        return _within_range(
            _around(number.value, sqrt(variance / number.n), inf, "at most, from n rows"), number
        )
    return None


def quantile(freedom: float) -> float:
    """Of Student's distribution: what 97.5 % lie below."""
    from scipy.special import (
        ndtri,
        stdtrit,
    )  # `scipy.stats` has them, too, and takes longer to import than a page to open

    return float(ndtri(0.975) if freedom == inf else stdtrit(freedom, 0.975))


def _within_range(found: Spread, number: Number) -> Spread:
    """A share ends at 0 and at 1, a cosine at −1 and at 1."""
    least = {SHARE: 0.0, _COSINES: -1.0}.get(number.unit)
    return found if least is None else replace(found, low=max(found.low, least), high=min(found.high, 1.0))


def _around(value: float, error: float, freedom: float, found_from: str) -> Spread:
    reach = quantile(freedom) * error
    return Spread(error, freedom, value - reach, value + reach, found_from)


# Means and deviations of repeated measurements.


def averaged(label: str, metric: str, values: Sequence[float], **more: Any) -> Number:
    """The mean over repeats, with their sample deviation where there are two or more."""
    found = np.asarray(values, dtype=np.float64)
    deviation = float(found.std(ddof=1)) if len(found) > 1 else None
    return Number(label, metric, rounded(found.mean()), rounded(deviation), repeats=len(found), **more)


def grouped(rows: Sequence[dict[str, Any]], **more: Any) -> tuple[Number, ...]:
    """`averaged` of rows with equal group, label and metric, in the order in which these first come.

    Each row has label, metric, value, and perhaps group, unit, n, k, baseline: those of the first, baselines
    averaged.
    """
    numbers = []
    table = pd.DataFrame([{"group": "", **row} for row in rows])
    for (_, label, metric), part in table.groupby(["group", "label", "metric"], sort=False):
        first = {name: value for name, value in part.iloc[0].to_dict().items() if not pd.isna(value)}
        facts = {name: first[name] for name in ("group", "unit", "baseline_is") if name in first}
        facts |= {name: int(first[name]) for name in ("n", "k") if name in first}
        if "baseline" in first:
            facts["baseline"] = rounded(part.baseline.mean())
        numbers.append(averaged(label, metric, part.value, **facts, **more))
    return tuple(numbers)


def rounded(value: float | None) -> float | None:
    """Six decimals, more than are shown."""
    return None if value is None else round(float(value), 6)
