"""Tables: the numbers behind each chart, computed once, so that screen, paper and CSV hold the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.numbers import general

SCORE_COLUMNS = ("metric", "form", "score", "null_low", "null_high")


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `score_bars_figure`, checked: one row for each metric and form.

    Columns: ``metric`` ("Jaccard, k = 10"), ``form`` ("absolute", "relative", "whitened"), ``score``, and the
    95 % band of its chance level, ``null_low`` and ``null_high`` (NaN where none was computed). Optional:
    ``low`` and ``high``, the score's own sampling interval. Other columns are kept.

    Raises
    ------
    ValueError
        A column is absent, there are no rows, or a metric and form come twice.
    """
    absent = [column for column in SCORE_COLUMNS if column not in table.columns]
    if absent:
        raise ValueError(
            f"scores: expected the columns {', '.join(SCORE_COLUMNS)}, got no {', '.join(absent)}"
        )
    if not len(table):
        raise ValueError("scores: expected at least one row, got an empty table")
    twice = table[table.duplicated(["metric", "form"])]
    if len(twice):
        raise ValueError(
            f"scores: expected one row a metric and form, got {twice.metric.iloc[0]!r},"
            f" {twice.form.iloc[0]!r} twice"
        )
    return table.reset_index(drop=True)


def printed_scores(table: pd.DataFrame) -> pd.DataFrame:
    """What a paper prints of a `score_table`: a row per form; each metric's score, its chance level in
    brackets, and n.

    The chance level is its 95 % band; a score without one stands alone. n is left out where the table does
    not have it. The recall of approximate neighbours follows.
    """
    forms, metrics = list(dict.fromkeys(table.form)), list(dict.fromkeys(table.metric))
    cells = {(row.form, row.metric): _printed(row) for row in table.itertuples()}
    columns = {metric: [cells.get((form, metric), "–") for form in forms] for metric in metrics}
    if "n" in table:
        columns["n"] = [f"{int(table[table.form == form].n.iloc[0])}" for form in forms]
    return pd.DataFrame({"representation": forms, **columns})


def _printed(row: Any) -> str:
    chance = "" if np.isnan(row.null_low) else f" [{row.null_low:.3f}, {row.null_high:.3f}]"
    recall = getattr(row, "recall", np.nan)
    return f"{row.score:.3f}{chance}" + ("" if np.isnan(recall) else f", recall {recall:.3f}")


def score_places(table: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """The table with ``x``, where each bar stands (metrics at 0, 1, …, forms side by side around them),
    and its room.
    """
    forms, metrics = list(dict.fromkeys(table.form)), list(dict.fromkeys(table.metric))
    width = 0.8 / len(forms)
    order = table.form.map(forms.index) - (len(forms) - 1) / 2
    return table.assign(x=table.metric.map(metrics.index) + width * order), width


def score_range(table: pd.DataFrame) -> tuple[float, float]:
    """Lowest and highest score to show: 0 to 1, or further where a number lies beyond; room above for the
    label.
    """
    values = table[[c for c in ("score", "null_low", "null_high", "low", "high") if c in table]].to_numpy(
        dtype=float
    )
    low, high = min(0.0, np.nanmin(values)), max(1.0, np.nanmax(values))
    return (low * 1.1, high + 0.08 * (high - low))


def histogram_table(values_by_name: Mapping[str, np.ndarray], bins: int | None = None) -> pd.DataFrame:
    """Share of each array's values in common bins: columns name, left, right, count, percent.

    Without `bins`, their width is Freedman and Diaconis's, and their number 20 to 80: one far value cannot
    ask for a million.

    Raises
    ------
    ValueError
        No array, an empty one, or values that are NaN or infinite.
    """
    arrays = {
        str(name): np.asarray(values, dtype=np.float64).ravel() for name, values in values_by_name.items()
    }
    if not arrays:
        raise ValueError("histogram: expected at least one named array, got none")
    for name, values in arrays.items():
        if not len(values) or not np.isfinite(values).all():
            raise ValueError(f"histogram: expected finite values for {name!r}, got {_what_is_wrong(values)}")
    pooled = np.concatenate(list(arrays.values()))
    edges = np.histogram_bin_edges(pooled, bins=bins or _bin_count(pooled))
    counts = {name: np.histogram(values, edges)[0] for name, values in arrays.items()}
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "name": name,
                    "left": edges[:-1],
                    "right": edges[1:],
                    "count": count,
                    "percent": 100 * count / count.sum(),
                }
            )
            for name, count in counts.items()
        ],
        ignore_index=True,
    )


def spectrum_table(singular_values_by_name: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Singular values, largest first, also as shares of the largest: columns name, component, singular_value,
    relative.

    Raises
    ------
    ValueError
        No array, an empty one, or values that are negative, NaN or infinite.
    """
    if not singular_values_by_name:
        raise ValueError("spectrum: expected at least one named array, got none")
    parts = []
    for name, values in singular_values_by_name.items():
        values = np.sort(np.asarray(values, dtype=np.float64).ravel())[::-1]
        if not len(values) or not np.isfinite(values).all() or values[-1] < 0:
            raise ValueError(
                f"spectrum: expected non-negative finite values for {name!r}, got {_what_is_wrong(values)}"
            )
        relative = values / values[0] if values[0] > 0 else np.zeros_like(values)
        parts.append(
            pd.DataFrame(
                {
                    "name": str(name),
                    "component": np.arange(1, len(values) + 1),
                    "singular_value": values,
                    "relative": relative,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def condition(part: pd.DataFrame) -> str:
    """``"condition 240"``: largest over smallest singular value, the factor by which inversion can amplify
    noise.
    """
    smallest = part.relative.iloc[-1]
    if smallest <= 0:
        return "singular"
    return f"condition {general(1 / smallest)}"


def _bin_count(values: np.ndarray) -> int:
    low, quarter, three_quarters, high = np.percentile(values, [0, 25, 75, 100])
    width = 2 * (three_quarters - quarter) / len(values) ** (1 / 3)
    return int(np.clip((high - low) / width, 20, 80)) if width > 0 else 20


def _what_is_wrong(values: np.ndarray) -> str:
    if not len(values):
        return "an empty array"
    bad = ~np.isfinite(values)
    return f"{bad.sum()} NaN or infinite values" if bad.any() else f"a negative one, {general(values.min())}"
