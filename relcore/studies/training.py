"""Does training on relative representations cost accuracy? The same head on absolute, relative and whitened features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from relcore.charts.lines import Lines
from relcore.progress import Report
from relcore.stitching.classification import stitch_matrix
from relcore.stitching.spec import StitchSpec
from relcore.store import Store
from relcore.studies.material import DATA, labelled_spaces, opening_of, test_ids_of
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table, grid
from relcore.studies.summary import circumstances, differences, findings_over, points_over

_FORMS = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened"}


class TrainingRelative(Study):
    """Table 2: frozen features, a small network on top (two hidden layers of 256, AdamW at 1e-3, 30 epochs) trained on them."""

    kind = "training"
    version = 2
    title = "Training on relative rows"
    question = "Does training on relative representations cost accuracy?"
    paper = "Moschella et al. 2023, Table 2"
    options = (
        DATA,
        Option("n_anchors", "Anchors", (100, 300, 500), 500, help="Random training rows; the paper takes 500."),
        Option("n_states", "Random states", (3, 6, 10), 6, help="Each draws the anchors and the head's first weights."),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, {"data": options["data"], "n_anchors": options["n_anchors"]}, features=_FORMS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        spaces = labelled_spaces(settings["data"], store, report)
        report(0, 1, f"heads on {settings['features']} features")
        spec = StitchSpec(
            (settings["features"],),
            "mlp",
            (settings["random_state"],),
            settings["n_anchors"],
            test_ids=test_ids_of(settings["data"], spaces[0]),
        )
        result = stitch_matrix(spaces, spec)
        values: dict[str, Any] = {"test rows": result.n_test, "chance": result.chance()}
        for metric, name in (("accuracy", "accuracy"), ("f1", "F1")):
            own = np.diag(result.matrix(settings["features"], metric)[0])
            values[name] = float(own.mean())
            values |= {f"{name} of {encoder}": float(score) for encoder, score in zip(result.encoders, own, strict=True)}
        return RunResult(values)

    def seconds(self, settings: Settings) -> float:
        return 85.0 if settings["data"] == "digits" else 110.0

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        if not len(table):
            return {}
        forms = [form for form in _FORMS if form in set(table.features)]
        names = tuple(_FORMS[form] for form in forms)
        told = f"{int(table['test rows'].iloc[0]):,} test rows, 4 encoders"
        note = circumstances(table, told, "bars")
        look = {"kind": "points", "x_names": names, "note": note, "baselines": (("chance", float(table.chance.mean())),)}
        encoders = {column: column.removeprefix("F1 of ") for column in table if column.startswith("F1 of ")}
        return {
            "weighted F1": Lines(tuple(points_over(table, "features", forms, encoders)), "features", "weighted F1", **look),
            "mean": Lines(
                tuple(points_over(table, "features", forms, {"F1": "weighted F1", "accuracy": "accuracy"})),
                "features",
                "score",
                **look,
            ),
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = {column: column for column in table if column.startswith(("F1", "accuracy"))}
        return findings_table(findings_over(table, "features", measures, _FORMS) if len(table) else [])

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        if not len(table) or not set(_FORMS) <= set(table.features):
            return ""
        costs = [differences(table, "features", "absolute", form, "F1") for form in ("relative", "whitened")]
        if not all(cost.has_interval for cost in costs):
            return ""
        relative, whitened = (cost.told() for cost in costs)
        return (
            f"Compared with absolute rows, training on relative rows costs {relative} of weighted F1, and on whitened rows "
            f"{whitened}."
        )

    def opening(self, settings: Settings) -> Opening:
        return opening_of(settings["data"])
