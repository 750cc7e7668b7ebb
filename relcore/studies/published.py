"""Numbers of papers and numbers of ours: reading, rounding and comparing them."""

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
SHARE = "0 … 1"
_COSINES = "−1 … 1"
_LEAST = {SHARE: 0.0, _COSINES: -1.0}
_CORRELATIONS = ("Pearson", "Spearman")


@dataclass(frozen=True)
class Number:
    """One measured number, such as ``Number("relative, Word2Vec → FastText", "Jaccard", 0.3)``.

    It is a mean over n rows. `deviation` is its sample deviation over `repeats` (random states or trainings),
    and `low` and `high` are its 95 % interval. If the run kept them, `values` are the values of the repeats
    by random state. The `baseline` is the chance level, or the value that `baseline_is` names. A `group` is
    the part of a run for one table or figure.
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
    values: tuple[float, ...] = ()

    def to_record(self) -> dict[str, Any]:
        return {
            part.name: value for part in fields(self) if (value := getattr(self, part.name)) != part.default
        }


@dataclass(frozen=True)
class Ours:
    """The numbers that one run measured on its `data`, with all settings as JSON values.

    `commit` is the short hash of the code that measured them, with "+" if some of it was uncommitted.
    `run_version` is the version of the `PaperRun`.
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
        wanted = set(groups)
        return tuple(number for number in self.numbers if not wanted or number.group in wanted)


@cache
def shipped_results() -> dict[str, Ours]:
    return read_ours(SHIPPED)


def read_ours(folder: Path) -> dict[str, Ours]:
    """The numbers of each run, by its name. They are read from files such as ``words.json`` in the folder.
    Raises a SpaceError for other content."""
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
    """The standard error of a number, its degrees of freedom (inf if the error is known), its 95 % interval,
    and a text that says how they were found."""

    error: float
    freedom: float
    low: float
    high: float
    found_from: str


def spread_of(number: Number) -> Spread | None:
    """The standard error and the 95 % interval of a number; None if no error is known.

    The first of these rules that applies is used:

    1. If the run computed an interval, `low` and `high`.
    2. For two or more different repeats, Student's interval of their mean. It covers what differs between
       repeats (anchors, weights, splits), but not the choice of fixed test rows.
    3. For a single measurement with a deviation over its n rows, that deviation ÷ √n.
    4. For a mean over n rows with values in 0 … 1, or −1 … 1, the largest possible standard error: √(v (1 −
       v) ÷ n), or √((1 − v²) ÷ n).
    """
    value = number.value
    n = number.n
    least = _LEAST.get(number.unit)
    if number.low is not None and number.high is not None:
        error = (number.high - number.low) / (2 * quantile(inf))
        return Spread(error, inf, number.low, number.high, "found by the run")
    freedom = inf
    if number.deviation and number.repeats > 1:
        error = number.deviation / sqrt(number.repeats)
        freedom = number.repeats - 1
        source = "Student's, over repeats"
    elif number.deviation and n:
        error = number.deviation / sqrt(n)
        source = "deviation over rows ÷ √n"
    elif n and least is not None and number.metric not in _CORRELATIONS:
        # The standard error of the distribution on this range that varies most.
        error = sqrt(max((1 - value) * (value - least), 0.0) / n)
        source = "at most, from n rows"
    else:
        return None
    half = quantile(freedom) * error
    low = value - half
    high = value + half
    if least is not None:
        low = max(low, least)
        high = min(high, 1.0)
    return Spread(error, freedom, low, high, source)


def quantile(freedom: float) -> float:
    from scipy.special import ndtri, stdtrit  # importing `scipy.stats` would take longer than opening a page

    if freedom == inf:
        return float(ndtri(0.975))
    return float(stdtrit(freedom, 0.975))


def mean_and_deviation(rows: Sequence[dict[str, Any]], **more: Any) -> tuple[Number, ...]:
    """Compute numbers from repeated rows: the mean and the sample deviation over rows with equal label and
    metric.

    Each row has label, metric and value, and may have unit, n, k and baseline. Baselines are averaged; unit,
    n and k are those of the first repeat.
    """
    numbers = []
    for (label, metric), part in pd.DataFrame(rows).groupby(["label", "metric"], sort=False):
        first = {name: value for name, value in part.iloc[0].to_dict().items() if not pd.isna(value)}
        facts = {name: kind(first[name]) for name, kind in _FACTS.items() if name in first}
        if "baseline" in first:
            facts["baseline"] = round_number(part.baseline.mean())
        values = part.value.to_numpy(dtype=np.float64)
        if len(values) > 1:
            facts |= {
                "deviation": round_number(values.std(ddof=1)),
                "values": tuple(map(round_number, values)),
            }
        numbers.append(
            Number(label, metric, round_number(values.mean()), repeats=len(values), **facts, **more)
        )
    return tuple(numbers)


_FACTS = {"unit": str, "n": int, "k": int}


def round_number(value: float) -> float:
    return round(float(value), 6)


WORDS = ("setting",)  # units of columns that hold text
CHANCE = "chance of "
