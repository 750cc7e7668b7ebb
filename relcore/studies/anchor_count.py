"""A study of the number of anchors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from relcore.base.numbers import short
from relcore.figures.charts import Lines
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.stitch.stitching import StitchSpec
from relcore.studies.data import BASELINES, DATA, MEASURES, OWN, labelled_spaces, stitched_values, test_ids_of
from relcore.studies.estimates import average, chart, count_of, lines_over, mean, mean_at
from relcore.studies.study import Option, RunResult, Settings, Study, grid, states

_ENOUGH = 0.95  # minimum share of the accuracy without stitching; the anchors are then enough
_COARSE = (2, 5, 10, 20, 50, 100, 200, 400, 800)
_PAPER = (*range(1, 50, 2), *range(50, 100, 5), *range(100, 1001, 20))


class AnchorCount(Study):
    """Fig. 6: logistic classifiers are trained on relative and on whitened rows of frozen encoders. Anchors
    are random training rows.
    """

    version = 2
    options = (
        DATA,
        Option(
            "grid",
            "Numbers of anchors",
            ("coarse", "paper"),
            "coarse",
            help="Coarse: nine numbers, 2 to 800. Paper: the 80 numbers of the paper.",
        ),
        states("the anchors and, for sentences, the test rows", 5),
    )
    by = "n_anchors"
    measures = MEASURES
    reading = (
        "The upper dashed line is the accuracy without stitching, the lower one that of always guessing the"
        " most frequent class. A number of anchors is enough if the line, with its band, is less than 5 % of"
        " the accuracy below the upper dashed line there and at all larger numbers."
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "data", n_anchors=_COARSE if options["grid"] == "coarse" else _PAPER)

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        spaces = labelled_spaces(settings["data"], store, report)
        report(0, 1, f"{settings['n_anchors']} anchors")
        spec = StitchSpec(
            ("absolute", "relative", "whitened"),
            n_anchors=settings["n_anchors"],
            random_states=(settings["random_state"],),
            test_ids=test_ids_of(settings["data"], spaces[0]),
        )
        return RunResult(stitched_values(spaces, spec))

    def seconds(self, settings: Settings) -> float:
        seconds = 13.0
        if settings["data"] == "digits":
            seconds = 6.5
        return seconds + settings["n_anchors"] / 90

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines = lines_over(table, "n_anchors", MEASURES)
        rows = f"{count_of(table)}, 4 encoders, 12 pairs"
        return {
            "accuracy": chart(table, lines, ("number of anchors", "accuracy"), rows, BASELINES, log_x=True)
        }

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        rows = {"relative, stitched": "relative rows", "whitened, stitched": "whitened rows"}
        enough = enough_anchors(table, OWN, rows)
        if not enough:
            return ""
        return (
            f"The accuracy without stitching is {short(average(table, OWN))}. To come within 5 % of it,"
            f" stitched classifiers need {enough}."
        )


def enough_anchors(table: pd.DataFrame, full: str, measures: Mapping[str, str]) -> str:
    """A text that says how many anchors bring each measured column to 95 % of the column `full`; "" if there
    are no intervals.

    A number of anchors is enough if, for it and all larger numbers, the lower end of the 95 % interval of the
    mean ratio is at least .95.
    """
    most = table.n_anchors.max()
    parts = []
    for column, name in measures.items():
        enough = None
        for n, part in sorted(table.groupby("n_anchors"), reverse=True):
            if not mean(part[column].astype(float) / part[full].astype(float)).low >= _ENOUGH:
                break
            enough = n
        reached = mean_at(table, "n_anchors", enough or most, column)
        if not reached.has_interval:
            return ""
        if enough:
            gives = f"which give {reached}"
        else:
            gives = f"where {most} give {reached}"
        parts.append(f"{enough or f'perhaps more than {most}'} anchors on {name}, {gives}")
    return f"{', and '.join(parts)}; over {table.random_state.nunique()} random states"
