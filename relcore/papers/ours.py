"""What was measured here: numbers with their settings and 95 % intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base import records
from relcore.base.errors import SpaceError

FOLDER = files("relcore") / "data" / "papers"
SHIPPED = FOLDER / "ours"
SHARE, _COSINES = "0 … 1", "−1 … 1"
_LEAST = {SHARE: 0.0, _COSINES: -1.0}
_CORRELATIONS = ("Pearson", "Spearman")


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
        Short hash of the checkout that measured it, with "+" if its code was not committed; "" unknown.
    run_version : int
        `PaperRun.version` when it was measured.
    seconds : float
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
    """Run → what its file in the folder, ``words.json``, holds.

    Raises
    ------
    SpaceError
        A file that holds something else.
    """
    what = "measured numbers"
    found = {
        path.stem: records.from_json(Ours, records.parse(path.read_bytes(), str(path), what), str(path))
        for path in sorted(folder.glob("*.json"))
    }
    for run, ours in found.items():
        if ours.run != run:
            raise SpaceError(f"{run}.json: expected numbers of this run, got those of {ours.run!r}")
    return found


@dataclass(frozen=True)
class Spread:
    """Standard error of a number, degrees of freedom behind it (inf: known), the ends of its 95 % interval,
    and in words its source.
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
       can have: √(v (1 − v) ÷ n), or √((1 − v²) ÷ n). Of an accuracy this is the binomial standard error.
    """
    value, n, least = number.value, number.n, _LEAST.get(number.unit)
    if number.low is not None and number.high is not None:
        error = (number.high - number.low) / (2 * quantile(inf))
        return Spread(error, inf, number.low, number.high, "found by the run")
    freedom = inf
    if number.deviation and number.repeats > 1:
        error, freedom = number.deviation / sqrt(number.repeats), number.repeats - 1
        source = "Student's, over repeats"
    elif number.deviation and n:
        error, source = number.deviation / sqrt(n), "deviation over rows ÷ √n"
    elif n and least is not None and number.metric not in _CORRELATIONS:
        # of all distributions on the range, the widest
        error, source = sqrt(max((1 - value) * (value - least), 0.0) / n), "at most, from n rows"
    else:
        return None
    low, high = (value + sign * quantile(freedom) * error for sign in (-1, 1))
    if least is not None:
        low, high = max(low, least), min(high, 1.0)
    return Spread(error, freedom, low, high, source)


def quantile(freedom: float) -> float:
    """Of Student's distribution: what 97.5 % lie below."""
    from scipy.special import ndtri, stdtrit  # `scipy.stats` takes longer to import than a page to open

    return float(ndtri(0.975) if freedom == inf else stdtrit(freedom, 0.975))


def grouped(rows: Sequence[dict[str, Any]], **more: Any) -> tuple[Number, ...]:
    """The mean over repeats, with their sample deviation where there are two or more, of rows with equal
    label and metric, in the order in which these first come.

    Each row has label, metric, value, and perhaps unit, n, k, baseline: those of the first, baselines
    averaged.
    """
    numbers = []
    for (label, metric), part in pd.DataFrame(rows).groupby(["label", "metric"], sort=False):
        first = {name: value for name, value in part.iloc[0].to_dict().items() if not pd.isna(value)}
        facts = {name: kind(first[name]) for name, kind in _FACTS.items() if name in first}
        if "baseline" in first:
            facts["baseline"] = rounded(part.baseline.mean())
        values = part.value.to_numpy(dtype=np.float64)
        deviation = rounded(values.std(ddof=1)) if len(values) > 1 else None
        numbers.append(
            Number(label, metric, rounded(values.mean()), deviation, repeats=len(values), **facts, **more)
        )
    return tuple(numbers)


_FACTS = {"unit": str, "n": int, "k": int}


def rounded(value: float) -> float:
    """Six decimals, more than are shown."""
    return round(float(value), 6)
