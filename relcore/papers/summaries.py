"""Means and deviations of repeated measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.papers.ours import Number


def averaged(label: str, metric: str, values: Sequence[float], **more: Any) -> Number:
    """The mean over repeats, with their sample deviation where there are two or more."""
    found = np.asarray(values, dtype=np.float64)
    deviation = float(found.std(ddof=1)) if len(found) > 1 else None
    return Number(label, metric, rounded(found.mean()), rounded(deviation), repeats=len(found), **more)


def grouped(rows: Sequence[dict[str, Any]], **more: Any) -> tuple[Number, ...]:
    """`averaged` of rows with equal group, label and metric, in the order in which these first come.

    Each row has label, metric, value, and perhaps group, unit, n, k, baseline: those of the first, baselines averaged.
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
