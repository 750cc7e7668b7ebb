"""A study of whether similarity to a reference network predicts accuracy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.numbers import counted
from relcore.base.rows import centred, mean_row, unit_rows
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import TrainedEncoder, encoder_from_json
from relcore.encoders.vision import held_out_rows
from relcore.engine.engine import Engine
from relcore.figures.charts import Line, Lines
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.scores.estimate import NAMES, Estimate, correlation
from relcore.studies.estimates import finding, findings_table, mean, sentence
from relcore.studies.runs import finished_run
from relcore.studies.study import Option, RunResult, Settings, Study

SIMILARITIES = ("similarity", "centred similarity")
# Minimum best validation accuracy of a run that counts in the average over epochs, as in the paper.
POOR = 0.5
_REFERENCE = {
    "data": "digits",
    "encoder": "swept-vision",
    "architecture": "cnn",
    "width": 64,
    "depth": 3,
    "epochs": 20,
    "random_state": 1,
}
_N_ANCHORS = 100
_INTERVALS = {"pearson": "Fisher's z", "spearman": "Fisher's z, Bonett and Wright's variance"}
_CHOSEN = {"plain": "similarity", "centred": "centred similarity"}


class SimilarityPerformance(Study):
    """Figs. 3 and 8: networks with many settings are compared, after every epoch, with the best epoch of a
    reference network.

    The similarity is the mean cosine between the relative rows of a network and those of the reference.
    Anchors are random training items. "Centred", which is not in the paper, subtracts the mean of each space
    first. Similarities and accuracies are computed on test rows.
    """

    options = (
        Option(
            "data",
            "Networks of",
            ("digits",),
            "digits",
        ),
        Option(
            "n_runs",
            "Networks",
            (12, 30, 60, 96, 192),
            60,
            help="Drawn at random from the whole grid; always the same ones.",
        ),
        Option(
            "similarity",
            "Similarity",
            ("plain", "centred"),
            "plain",
            help=("Cosines to the anchors as in the paper, or with the mean of each space subtracted first."),
        ),
    )

    reading = (
        "Each point is a network. Points to the right are more similar to the reference, higher points more"
        " accurate."
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        runs = _grid()
        chosen = np.random.default_rng(0).permutation(len(runs))[: options["n_runs"]]
        return [{"data": options["data"], **runs[number]} for number in chosen]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        dataset = load_dataset(DatasetSpec("digits"), store)
        encoder = _encoder(settings)
        if settings == _REFERENCE:
            return _measure(encoder, dataset, report, None)
        training = lambda *progress: report(0, 1, "training the reference first")  # noqa: E731
        rows = finished_run(self, _REFERENCE, store, training).arrays
        return _measure(encoder, dataset, report, rows)

    def seconds(self, settings: Settings) -> float:
        return 1.0 + settings["epochs"] * {"mlp": 1.1, "cnn": 3.6}[settings["architecture"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        chosen = _CHOSEN[options["similarity"]]
        good = _good(table)
        charts = {"over models": _scatter(table, chosen)}
        if len(good):
            charts["over epochs"] = _by_epoch(good, chosen)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        good = _good(table)
        rows = []
        for name in SIMILARITIES:
            for kind, title in NAMES.items():
                found = correlation(table[name], table.accuracy, kind)
                rows.append(finding(f"{title} over models, {name}", found, _INTERVALS[kind]))
            for kind, title in NAMES.items():
                found = mean(good[f"{kind} over epochs, {name}"], bounded=True)
                rows.append(
                    finding(f"mean {title} over epochs within a run, {name}", found, "bootstrap over runs")
                )
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        chosen = _CHOSEN[options["similarity"]]
        if len(table) < 4:
            return ""
        over_models = correlation(table[chosen], table.accuracy)
        answer = "This is not seen"
        if over_models.low > 0:
            answer = "Yes, the more similar, the better"
        return sentence(
            f"{answer}: over {len(table)} networks, {chosen} to the reference and accuracy have a Pearson"
            " correlation of {}; over the epochs within a network it is {} on average.",
            over_models,
            mean(_good(table)[f"pearson over epochs, {chosen}"], bounded=True),
        )


def _grid() -> list[dict[str, Any]]:
    axes = {
        "encoder": ["swept-vision"],
        "architecture": ["mlp", "cnn"],
        "width": [16, 64],
        "depth": [1, 2, 3],
        "activation": ["relu", "tanh"],
        "dropout": [0.0, 0.3],
        "rate": [("adam", 0.001), ("adam", 0.0003), ("sgd", 0.02), ("sgd", 0.1)],
        "epochs": [4, 8, 15],
        "random_state": [0, 1, 2, 3, 4],
    }
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    for one in combinations:
        one["optimizer"], one["learning_rate"] = one.pop("rate")
    return combinations


def _encoder(settings: Settings) -> TrainedEncoder:
    return encoder_from_json({name: value for name, value in settings.items() if name != "data"})


def _measure(encoder, dataset, report: Progress, reference: dict[str, np.ndarray] | None) -> RunResult:
    rows, anchors = _rows_and_anchors(len(dataset))
    compared: dict[str, list[float]] = {name: [] for name in SIMILARITIES}
    kept: list[dict[str, np.ndarray]] = []

    def watch(vectors: np.ndarray) -> None:
        own = _relative(vectors, rows, anchors)
        if reference is None:
            kept.append(own)
            return
        for name, curve in compared.items():
            cosines = np.vecdot(unit_rows(own[name]), unit_rows(reference[name]))
            curve.append(float(cosines.mean(dtype=np.float64)))

    facts = encoder.train(dataset, report, watch).metadata
    best = facts["epoch"] - 1
    accuracy = facts["test_accuracies"]
    values = {
        "outcome": "trained",
        "best epoch": facts["epoch"],
        "best validation accuracy": facts["accuracies"][best],
        "accuracy": accuracy[best],
    }
    if reference is None:
        return RunResult(values, kept[best])
    for name, curve in compared.items():
        values[name] = curve[best]
        for kind in NAMES:
            value = correlation(curve, accuracy, kind).value
            values[f"{kind} over epochs, {name}"] = None if np.isnan(value) else value
    values |= {f"{name} by epoch": [round(one, 5) for one in curve] for name, curve in compared.items()}
    return RunResult(values | {"accuracy by epoch": [round(one, 5) for one in accuracy]})


def _rows_and_anchors(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    test = held_out_rows(n)
    return test, np.sort(rng.choice(np.setdiff1d(np.arange(n), test), _N_ANCHORS, replace=False))


def _relative(vectors: np.ndarray, rows: np.ndarray, anchors: np.ndarray) -> dict[str, np.ndarray]:
    moved = centred(vectors, mean_row(vectors))
    spaces = {"similarity": vectors, "centred similarity": moved}
    return {
        name: Engine().map_rows(space[rows], unit_rows(space[anchors]).T, unit=True)
        for name, space in spaces.items()
    }


def _good(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["best validation accuracy"] >= POOR]


def _scatter(table: pd.DataFrame, similarity: str) -> Lines:
    rows = table.assign(
        x=table[similarity], y=table.accuracy, label=[model_label(row) for row in table.to_dict("records")]
    )
    correlations = {
        name: correlation(table[similarity], table.accuracy, kind) for kind, name in NAMES.items()
    }
    return _groups(rows, similarity, f"Over {counted(len(table), 'model')}", correlations)


def _by_epoch(table: pd.DataFrame, similarity: str) -> Lines:
    columns = {"x": table[f"{similarity} by epoch"], "y": table["accuracy by epoch"]}
    labels = [
        [f"{model_label(row)}, epoch {epoch + 1}" for epoch in range(row["epochs"])]
        for row in table.to_dict("records")
    ]
    rows = table.assign(**columns, label=labels).explode(["x", "y", "label"])
    correlations = {
        name: mean(table[f"{kind} over epochs, {similarity}"], bounded=True) for kind, name in NAMES.items()
    }
    head = f"Over epochs, within each of {counted(correlations['Pearson'].n, 'run')}; means"
    return _groups(rows, similarity, head, correlations)


def _groups(rows: pd.DataFrame, similarity: str, head: str, correlations: dict[str, Estimate]) -> Lines:
    lines = [
        Line(f"{kind.upper()}, {optimizer}", part.x, part.y, labels=list(part.label))
        for (kind, optimizer), part in rows.groupby(["architecture", "optimizer"])
    ]
    texts = [f"{name} {estimate}" for name, estimate in correlations.items() if not np.isnan(estimate.value)]
    note = ""
    if texts:
        note = f"{head}:\n{', '.join(texts)}"
    return Lines(lines, f"{similarity} to the reference (mean cosine)", "accuracy", kind="points", note=note)


def model_label(row: dict[str, Any]) -> str:
    size = f"{row['depth']} × {row['width']}"
    rate = f"rate {row['learning_rate']:g}"
    return f"{row['activation']}, {size}, dropout {row['dropout']:g}, {rate}, {row['epochs']} epochs"
