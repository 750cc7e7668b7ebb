"""How much do the lengths of rows vary? No relative space holds them, so no inverse recovers them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.base.magnitude import lengths
from relcore.base.numbers import general
from relcore.charts.lines import Line, Lines
from relcore.represent.similarity import mean_row
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.score import Z95
from relcore.spaces.space import LatentSpace
from relcore.studies.material import SPACES, data_option, studied_spaces, word_pair
from relcore.studies.statistics import Estimate
from relcore.studies.study import RunResult, Settings, Study, finding, findings_table

_EDGES = np.linspace(0, 3, 61)  # of the lengths over their average
_COUNT = {"digits": 4, "sentences": 4, "words": 2}
_KINDS = {"centred": "length from the mean", "norm": "norm"}


class RowLengths(Study):
    """The norm of each row, and its length from the mean of its space, which is what inversion works on: an
    inverted row gets the mean length of the target's anchors, reduced by the part of its direction that they
    do not span. "Varies by": the standard deviation over the mean.
    """

    kind = "row-lengths"
    title = "Lengths of rows"
    question = "How much do the rows of a space differ in length, which inversion cannot recover?"
    paper = "Maiorca et al. 2024, Fig. 5"
    options = (data_option("digits", "sentences", "words", default=("digits", "words")), SPACES)

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        given = list(options["spaces"])
        counts = {"": 2} if given else {data: _COUNT[data] for data in options["data"]}
        return [
            {"data": data, "spaces": given, "space": number, "random_state": 0}
            for data, count in counts.items()
            for number in range(count)
        ]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        if settings["spaces"]:
            pair = word_pair(settings["spaces"], store)
            spaces = [pair.source, pair.target]
        else:
            spaces = studied_spaces(settings["data"], store, report)
        return RunResult(length_values(spaces[settings["space"]]))

    def seconds(self, settings: Settings) -> float:
        return 1.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        middles = (_EDGES[:-1] + _EDGES[1:]) / 2
        return {
            title: Lines(
                tuple(Line(run["name"], middles, run[f"{kind} density"]) for _, run in table.iterrows()),
                f"{title} / its average",
                "density",
            )
            for kind, title in _KINDS.items()
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            [
                finding(f"{run['name']}, {title} varies by", _estimate(run, kind), "normal approximation")
                for _, run in table.iterrows()
                for kind, title in _KINDS.items()
            ]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        if not len(table):
            return ""
        estimates = {run["name"]: _estimate(run, "centred") for _, run in table.iterrows()}
        least, most = (choose(estimates, key=lambda name: estimates[name].value) for choose in (min, max))
        ends = dict.fromkeys((least, most))
        parts = [f"{estimates[name].told(2)} of their mean in {name}" for name in ends]
        return f"Row lengths vary by {' to '.join(parts)}; inversion cannot recover them."


def length_values(space: LatentSpace) -> dict[str, Any]:
    """Mean, coefficient of variation with the reach of its 95 % interval, and density of both lengths."""
    values: dict[str, Any] = {"name": space.name, "rows": len(space)}
    rows = np.asarray(space.vectors)
    for kind, sizes in (("norm", space.norms), ("centred", lengths(rows, mean_row(rows)))):
        sizes = np.asarray(sizes, dtype=np.float64)
        average = float(sizes.mean())
        spread = float(sizes.std(ddof=1)) / (average or 1.0)
        counts, _ = np.histogram(sizes / (average or 1.0), _EDGES)
        values |= {
            f"{kind} mean": average,
            f"{kind} varies by": spread,
            f"{kind} reach": float(Z95 * spread * np.sqrt((0.5 + spread**2) / len(sizes))),  # of a Gaussian
            f"{kind} density": (counts / len(sizes) / (_EDGES[1] - _EDGES[0])).tolist(),
        }
    return values


def _estimate(run: Any, kind: str) -> Estimate:
    value, reach = run[f"{kind} varies by"], run[f"{kind} reach"]
    name = f"mean {general(run[f'{kind} mean'])}"
    return Estimate(name, value, value - reach, value + reach, int(run["rows"]))
