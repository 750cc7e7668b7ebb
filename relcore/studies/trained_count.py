"""How many anchors does a network need that is trained on relative representations from the start?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from relcore.charts.lines import Lines
from relcore.progress import Report
from relcore.sources.dataset import DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.sources.swept_vision import SweptVision
from relcore.store import Store
from relcore.studies.study import Option, RunResult, Settings, Study, findings_table, grid
from relcore.studies.summary import average, circumstances, findings_over, lines_over, means_at

_COUNTS = (2, 5, 10, 20, 50, 100, 200)
_MEASURES = {
    "relative, same space": "relative, same space",
    "relative, stitched": "relative, stitched with another random state",
}


class TrainedCount(Study):
    """Fig. 6, left, on the digits: encoder, cosines to anchors encoded again at each step, LayerNorm, a Linear head.

    A second network of another random state is trained on the same anchors; its head reads the first one's relative rows.
    """

    kind = "trained-count"
    version = 2
    title = "Number of anchors, trained"
    question = "How many anchors does a network trained on relative rows need?"
    paper = "Moschella et al. 2023, Fig. 6, left"
    options = (
        Option("architecture", "Network", ("mlp", "cnn"), "mlp"),
        Option("epochs", "Epochs", (5, 12, 20), 12),
        Option("n_states", "Random states", (3, 5, 10), 3, help="Each draws the anchors and both networks' first weights."),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {name: options[name] for name in ("architecture", "epochs")}
        return grid(options, shared, n_anchors=_COUNTS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        from relcore.studies.relative_network import absolute_and_relative_accuracy

        dataset, state = load_dataset(DatasetSpec("digits"), store), settings["random_state"]
        network = {name: settings[name] for name in ("architecture", "epochs")}
        specs = [SweptVision(**network, random_state=2 * state + one) for one in (0, 1)]
        return RunResult(absolute_and_relative_accuracy(specs, dataset, settings["n_anchors"], state, report))

    def seconds(self, settings: Settings) -> float:
        return 1.0 + settings["epochs"] * {"mlp": 1.9, "cnn": 6.8}[settings["architecture"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        note = circumstances(table, f"{int(table['test rows'].iloc[0]):,} test rows")
        baselines = (("absolute, not stitched", average(table, "absolute")), ("chance", average(table, "chance")))
        lines = tuple(lines_over(table, "n_anchors", _MEASURES))
        return {"accuracy": Lines(lines, "number of anchors", "accuracy", log_x=True, baselines=baselines, note=note)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = {**_MEASURES, "absolute": "absolute, not stitched"}
        return findings_table(
            findings_over(table.rename(columns={"n_anchors": "anchors"}).sort_values("anchors"), "anchors", measures)
            if len(table)
            else []
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.n_anchors.max() if len(table) else 0
        told = means_at(table, "n_anchors", most, [*_MEASURES, "absolute"])
        if not told:
            return ""
        own, stitched, absolute = (one.told() for one in told)
        return (
            f"A network that is trained on relative rows with {most} anchors reaches an accuracy of {own}, and {stitched} "
            f"stitched with another random state; one that is trained on absolute rows reaches {absolute}."
        )
