"""How many anchors, against the intrinsic dimension and the condition number of the spaces, on held-out
rows?
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from relcore.charts.lines import Line, Lines
from relcore.represent.projection import RelativeProjection
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.dimension import condition_number, participation_ratio, two_nn
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.space import LatentSpace
from relcore.studies.isometry import trained_space
from relcore.studies.material import data_option, studied_spaces, studied_split
from relcore.studies.runs import lines_over
from relcore.studies.statistics import Estimate, correlation, mean, slope
from relcore.studies.study import Option, RunResult, Settings, Study, finding, findings_table

COUNTS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
PLATEAU = 0.95
_MOST_ROWS = 6000
_TRAINED = tuple((network, width) for network in ("mlp", "cnn") for width in (8, 32, 128))
_REDUCED = (3, 6, 12, 25, 50)  # principal components of the word spaces: the same words, another dimension
_PAIRS = {
    "words": 1,
    "reduced": len(_REDUCED),
    "pooled": 1,
    "digits": 6,
    "sentences": 6,
    "trainings": len(_TRAINED),
}
_K = 10
_PREDICTORS = {
    "intrinsic dimension": "intrinsic dimension (TwoNN)",
    "participation ratio": "participation ratio",
    "condition number": "condition number",
    "width": "width of the space",
}
_INTERVAL = "over pairs of spaces"


class AnchorDimension(Study):
    """For each pair of spaces the number of anchors at which the held-out MRR of relative rows comes to 95 %
    of its plateau.

    Anchors are random rows, 2 to 512, and fewer are the first of more. The plateau is the best MRR over these
    numbers, means over the random states; between two of them the logarithm of the number is interpolated.
    MRR is mutual among the held-out rows, k = 10. Intrinsic dimension (TwoNN), participation ratio and
    condition number are those of the rows that are not tested on, the geometric mean of the two spaces. A
    pair has no answer where the best MRR is less than three times what chance gives, or where it is still
    growing at 512 anchors.
    """

    kind = "anchor-dimension"
    title = "Anchors and dimension"
    question = "How many anchors does a space need for its intrinsic dimension and its condition number?"
    paper = "Moschella et al. 2023, left open in section 6"
    options = (
        data_option("words", "reduced", "pooled", "digits", "sentences", "trainings"),
        Option(
            "n_states", "Random states", (3, 5, 10), 3, help="Each draws the anchors and the held-out rows."
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return [
            {"data": data, "pair": pair, "random_state": state}
            for state in range(options["n_states"])
            for data in options["data"]
            for pair in range(_PAIRS[data])
        ]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        data, state = settings["data"], settings["random_state"]
        pair = spaces_of_pair(data, settings["pair"], store, report)
        split = studied_split(
            {"trainings": "digits", "reduced": "words"}.get(data, data),
            pair[0],
            max(COUNTS),
            state,
            _MOST_ROWS,
        )
        report(0, 1, " and ".join(space.name for space in pair))
        if data == "reduced":
            pair = tuple(reduced(space, split.known, _REDUCED[settings["pair"]]) for space in pair)
        known = [space.vectors[split.known] for space in pair]
        values: dict[str, Any] = {
            "spaces": " and ".join(space.name for space in pair),
            "test rows": len(split.test),
        }
        for name, measure in (
            ("intrinsic dimension", two_nn),
            ("participation ratio", participation_ratio),
            ("condition number", condition_number),
            ("width", lambda rows: rows.shape[1]),
        ):
            values[name] = float(np.exp(np.mean([np.log(measure(rows)) for rows in known])))
        curve = []
        for count in COUNTS:
            anchors = split.anchors[:count]
            made = [
                RelativeProjection()
                .fit(rows, anchors=space.vectors[anchors])
                .transform(space.vectors[split.test])
                for rows, space in zip(known, pair, strict=True)
            ]
            curve.append(find_neighbours(*made, k=_K, convention="mutual").mrr(20))
        values |= {f"mrr, {count} anchors": float(mrr) for count, mrr in zip(COUNTS, curve, strict=True)}
        null = curve[-1].null
        return RunResult(values | {"chance": null.mean, "chance, 97.5 %": null.high})

    def seconds(self, settings: Settings) -> float:
        return {
            "words": 6.0,
            "reduced": 6.0,
            "pooled": 3.0,
            "digits": 2.0,
            "sentences": 3.0,
            "trainings": 4.0,
        }[settings["data"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        pairs = _by_pair(table)
        if not len(pairs):
            return {}
        charts = {}
        told = f"{len(pairs)} pairs of spaces, means over {table.random_state.nunique()} random states"
        for predictor, title in _PREDICTORS.items():
            points = tuple(
                Line(data, part[predictor], part.anchors, labels=list(part.spaces))
                for data, part in pairs.groupby("data", sort=False)
            )
            y = f"anchors for {PLATEAU:.0%} of the plateau".replace("%", " %")
            charts[predictor] = Lines(points, title, y, kind="points", log_x=True, note=told)
        curves = _curves(table)
        lines = [
            line
            for data, part in curves.groupby("data", sort=False)
            for line in lines_over(part, "anchors", {"share": data})
        ]
        note = "bands: 95 % over pairs of spaces and random states"
        charts["curves"] = Lines(
            tuple(lines), "number of anchors", "MRR over its plateau", log_x=True, note=note
        )
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        pairs = _by_pair(table)
        if not len(pairs):
            return findings_table([])
        rows = []
        for told, part in (
            ("different pairs", _different(pairs)),
            ("reduced words", pairs[pairs.data == "reduced"]),
        ):
            if not len(part):
                continue
            rows.append(
                finding(
                    f"{told}: anchors, geometric mean", _geometric(part.anchors), f"Student's t {_INTERVAL}"
                )
            )
            ratio = _geometric(part.anchors / part["intrinsic dimension"])
            rows.append(
                finding(
                    f"{told}: anchors over intrinsic dimension, geometric mean",
                    ratio,
                    f"Student's t {_INTERVAL}",
                )
            )
            for predictor, title in _PREDICTORS.items():
                rank = correlation(part[predictor], part.anchors, "spearman")
                rows.append(
                    finding(
                        f"{told}: power of the {title}", _power(part, predictor), f"logarithms {_INTERVAL}"
                    )
                )
                rows.append(
                    finding(f"{told}: Spearman of anchors and {title}", rank, f"Fisher's z {_INTERVAL}")
                )
        for data, part in pairs.groupby("data", sort=False):
            rows += [
                finding(f"{data}, {name}", mean(part[name]), f"Student's t {_INTERVAL}")
                for name in ("anchors", *_PREDICTORS)
            ]
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        pairs = _by_pair(table)
        different = _different(pairs)
        if len(different) < 4:
            return ""
        dimension, condition = (
            _power(different, name) for name in ("intrinsic dimension", "condition number")
        )
        asked = table[table.data != "reduced"][["data", "pair"]].drop_duplicates().shape[0]
        without = (
            f" ({asked - len(different)} more have no plateau by {COUNTS[-1]} anchors)"
            if asked > len(different)
            else ""
        )
        growth = [
            f"{'grows' if power.low > 0 else 'is not seen to grow'} with the {name} (power {power.told(2)})"
            for name, power in (("intrinsic dimension", dimension), ("condition number", condition))
        ]
        series = _power(pairs[pairs.data == "reduced"], "intrinsic dimension")
        words = (
            f"; for the same words on fewer axes the power of the intrinsic dimension is {series.told(2)}"
            if series.has_interval
            else ""
        )
        return (
            f"Over {len(different)} pairs of spaces{without}, {PLATEAU * 100:.0f} % of the plateau of"
            f" held-out MRR takes {_geometric(different.anchors).told(0)} anchors; their number"
            f" {' and '.join(growth)}{words}."
        )


def spaces_of_pair(data: str, number: int, store: Store, report: Report) -> tuple[LatentSpace, LatentSpace]:
    """Two spaces over the same rows: of the studied ones, or two trainings of one network that differ in
    their random state.
    """
    if data == "trainings":
        network, width = _TRAINED[number]
        first, second = (trained_space(network, width, state, store, report) for state in (0, 1))
        return first, second
    if data == "reduced":
        data, number = "words", 0
    spaces = studied_spaces(data, store, report)
    first, second = list(combinations(range(len(spaces)), 2))[number]
    return spaces[first], spaces[second]


def reduced(space: LatentSpace, known: np.ndarray, width: int) -> LatentSpace:
    """The space on its first `width` principal axes, those of the known rows alone."""
    rows = space.vectors[known].astype(np.float64)
    mean = rows.mean(axis=0)
    axes = np.linalg.eigh((rows - mean).T @ (rows - mean))[1][:, ::-1][:, :width]
    return LatentSpace((space.vectors - mean) @ axes, space.ids, name=f"{space.name}, {width} components")


def needed(
    counts: Sequence[int], curve: Sequence[float], least: float, share: float = PLATEAU
) -> float | None:
    """The number of anchors at which the curve first comes to this share of its best value, its logarithm
    interpolated.

    None where the best value is below `least`, or where only the last number comes to that share: it has no
    plateau yet.
    """
    values = np.asarray(curve, dtype=float)
    wanted = share * values.max()
    if values.max() < least or (values[:-1] < wanted).all():
        return None
    last = int(np.argmax(values >= wanted))
    if last == 0:
        return float(counts[0])
    part = (wanted - values[last - 1]) / (values[last] - values[last - 1])
    low, high = np.log(counts[last - 1]), np.log(counts[last])
    return float(np.exp(low + part * (high - low)))


def _by_pair(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each pair of spaces that has a plateau: the anchors it needs, and geometric means over the
    random states.
    """
    if not len(table):
        return table
    rows = []
    for (data, pair), part in table.groupby(["data", "pair"], sort=False):
        curve = [part[f"mrr, {count} anchors"].mean() for count in COUNTS]
        anchors = needed(COUNTS, curve, 3 * part["chance, 97.5 %"].mean())
        if anchors is not None:
            predictors = {
                name: float(np.exp(np.log(part[name].astype(float)).mean())) for name in _PREDICTORS
            }
            rows.append(
                {"data": data, "pair": pair, "spaces": part.spaces.iloc[0], "anchors": anchors, **predictors}
            )
    return pd.DataFrame(rows)


def _different(pairs: pd.DataFrame) -> pd.DataFrame:
    """Without the reduced words, which are one pair over and over."""
    return pairs[pairs.data != "reduced"] if len(pairs) else pairs


def _power(pairs: pd.DataFrame, predictor: str) -> Estimate:
    """The slope of the logarithm of the anchors over that of the predictor."""
    return slope(np.log(pairs[predictor]), np.log(pairs.anchors))


def _geometric(values: pd.Series) -> Estimate:
    logs = mean(np.log(values))
    value, low, high = np.exp([logs.value, logs.low, logs.high]).tolist()
    return Estimate("geometric mean", value, low, high, logs.n)


def _curves(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each run and number of anchors: its share of the plateau."""
    plateau = table[[f"mrr, {count} anchors" for count in COUNTS]].max(axis=1)
    parts = [
        pd.DataFrame(
            {"data": table.data, "anchors": count, "share": table[f"mrr, {count} anchors"] / plateau}
        )
        for count in COUNTS
    ]
    return pd.concat(parts, ignore_index=True)
