"""How many anchors does it take? Accuracy of relative heads, in the same space and stitched, by the number
of anchors.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from relcore.charts.lines import Lines
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.stitch.stitching import StitchSpec
from relcore.studies.material import (
    BASELINE,
    DATA,
    MEASURES,
    OWN,
    labelled_spaces,
    opening_of,
    stitched_values,
    test_ids_of,
)
from relcore.studies.runs import STUDENT, average, circumstances, findings_over, lines_over, means_at
from relcore.studies.statistics import mean
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, finding, findings_table, grid

_COARSE = (2, 5, 10, 20, 50, 100, 200, 400, 800)
_PAPER = (*range(1, 50, 2), *range(50, 100, 5), *range(100, 1001, 20))


class AnchorCount(Study):
    """Fig. 6: frozen encoders, logistic heads on relative and whitened rows; the anchors are random
    training rows.
    """

    kind = "anchor-count"
    version = 2
    title = "Number of anchors"
    question = "How many anchors does it take?"
    paper = "Moschella et al. 2023, Fig. 6"
    options = (
        DATA,
        Option(
            "grid",
            "Numbers of anchors",
            ("coarse", "paper"),
            "coarse",
            help="Coarse: nine, 2 to 800. Paper: its 80 numbers.",
        ),
        Option(
            "n_states",
            "Random states",
            (3, 5, 10),
            5,
            help="Each draws the anchors and, of sentences, the test rows.",
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        counts = _COARSE if options["grid"] == "coarse" else _PAPER
        return grid(options, {"data": options["data"]}, n_anchors=counts)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
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
        return (6.5 if settings["data"] == "digits" else 13.0) + settings["n_anchors"] / 90

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        baselines = ((BASELINE, average(table, OWN)), ("chance", average(table, "chance")))
        lines = lines_over(table, "n_anchors", MEASURES)
        chart = Lines(
            tuple(lines), "number of anchors", "accuracy", log_x=True, baselines=baselines, note=_note(table)
        )
        return {"accuracy": chart}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        if not len(table):
            return findings_table([])
        own = finding(BASELINE, mean(table.groupby("random_state")[OWN].mean()), STUDENT)
        return findings_table(
            [
                own,
                *findings_over(
                    table.rename(columns={"n_anchors": "anchors"}).sort_values("anchors"), "anchors", MEASURES
                ),
            ]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.n_anchors.max() if len(table) else 0
        told = means_at(table, "n_anchors", most, ["relative, stitched", "whitened, stitched", OWN])
        if not told:
            return ""
        relative, whitened, own = (one.told() for one in told)
        return (
            f"With {most} anchors, heads that are stitched reach an accuracy of {relative} on relative rows"
            f" and {whitened} on whitened rows; absolute heads that are not stitched reach {own}."
        )

    def opening(self, settings: Settings) -> Opening:
        return opening_of(settings["data"])


def _note(table: pd.DataFrame) -> str:
    return circumstances(table, f"{int(table['test rows'].iloc[0]):,} test rows, 4 encoders, 12 pairs")
