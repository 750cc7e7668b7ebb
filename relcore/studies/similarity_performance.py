"""Does a network that is alike a good one perform well? Relative similarity to a reference against
accuracy.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.magnitude import centred
from relcore.base.numbers import counted
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import TrainedEncoder, encoder_from_json
from relcore.figures.charts import Line, Lines
from relcore.represent.similarity import inverse_norms, mean_row, project_directions, unit_rows
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.studies.runs import finished_run
from relcore.studies.statistics import NAMES, Estimate, correlation, finding, findings_table, mean, sentence
from relcore.studies.study import Opening, Option, RunResult, Settings, Study

SIMILARITIES = ("similarity", "centred similarity")
HELD_OUT = ", held-out rows"
# runs whose best validation accuracy stays below it are left out of the mean over epochs, as in the paper
POOR = 0.5
_DATA = {"digits": DatasetSpec("digits"), "Cora": DatasetSpec("planetoid", "Cora")}
_REFERENCES = {
    "digits": {
        "encoder": "swept-vision",
        "architecture": "cnn",
        "width": 64,
        "depth": 3,
        "epochs": 20,
        "random_state": 1,
    },
    "Cora": {"encoder": "graph", "architecture": "gcn2", "layers": 32, "epochs": 50, "random_state": 1},
}
_N_ANCHORS = {"digits": 100, "Cora": 300}
_INTERVALS = {"pearson": "Fisher's z", "spearman": "Fisher's z, Bonett and Wright's variance"}
_CHOSEN = {"plain": "similarity", "centred": "centred similarity"}


class SimilarityPerformance(Study):
    """Figs. 3 and 8: networks of many settings, each compared after every epoch with the best epoch of a
    reference.

    Similarity is the mean cosine between a network's relative rows and the reference's, of the same items
    relative to the same anchors, fixed random items of the training part; "centred" subtracts each space's
    mean first, the paper does not. Accuracy is that of the test rows (digits) or, as in the paper, of the
    validation nodes (Cora).
    """

    kind = "similarity-performance"
    title = "Similarity to a reference"
    question = "Do networks that resemble a good one perform well?"
    paper = "Moschella et al. 2023, Figs. 3 and 8"
    options = (
        Option(
            "data",
            "Networks of",
            ("digits", "Cora"),
            "digits",
            help="Cora needs Planetoid's raw files (RELSCOPE_DATA).",
        ),
        Option(
            "n_runs",
            "Networks",
            (12, 30, 60, 96, 192),
            60,
            help="Drawn from the whole grid at random, the same each time.",
        ),
        Option(
            "similarity",
            "Similarity",
            ("plain", "centred"),
            "plain",
            help=(
                "Cosines to the anchors as the paper takes them, or with the mean of each space subtracted"
                " first."
            ),
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        runs = _grid(options["data"])
        chosen = np.random.default_rng(0).permutation(len(runs))[: options["n_runs"]]
        return [{"data": options["data"], **runs[number]} for number in chosen]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        data = settings["data"]
        dataset, encoder = load_dataset(_DATA[data], store), _encoder(settings)
        reference = {"data": data, **_REFERENCES[data]}
        if settings == reference:
            return _measured(encoder, dataset, data, report, None)
        training = lambda *progress: report(0, 1, "training the reference first")  # noqa: E731
        rows = finished_run(self, reference, store, training).arrays
        return _measured(encoder, dataset, data, report, rows)

    def seconds(self, settings: Settings) -> float:
        if settings["data"] == "digits":
            return 1.0 + settings["epochs"] * {"mlp": 1.1, "cnn": 3.6}[settings["architecture"]]
        diverges = settings["architecture"] == "gin" and settings["layers"] > 8
        return 3.0 + (2 if diverges else settings["epochs"]) * settings["layers"] * 0.1

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        table, chosen = _trained(table), _CHOSEN[options["similarity"]]
        if not len(table):
            return {}
        charts, good = {"over models": _scatter(table, chosen)}, _good(table)
        return charts | ({"over epochs": _by_epoch(good, chosen)} if len(good) else {})

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        table, rows = _trained(table), []
        good, held_out = _good(table), [f"{name}{HELD_OUT}" for name in SIMILARITIES]
        # Where anchors are among the rows, the held-out rows alone, too.
        names = [name for name in (*SIMILARITIES, *held_out) if name in table and table[name].notna().all()]
        for name in names if len(table) else ():
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
        table, chosen = _trained(table), _CHOSEN[options["similarity"]]
        if len(table) < 4:
            return ""
        return sentence(
            f"Over {len(table)} networks, {chosen} to the reference and accuracy have a Pearson correlation"
            " of {}; over the epochs within a network it is {} on average.",
            correlation(table[chosen], table.accuracy),
            mean(_good(table)[f"pearson over epochs, {chosen}"], bounded=True),
        )

    def opening(self, settings: Settings) -> Opening:
        return Opening(dataset=_DATA[settings["data"]], encoders=(_encoder(settings),))


def _grid(data: str) -> list[dict[str, Any]]:
    """Every combination: of the paper's Table 8 for Cora, of settings good and poor for the digits."""
    if data == "Cora":
        axes = {
            "encoder": ["graph"],
            "architecture": ["gcn2", "gin"],
            "layers": [32, 64],
            "dropout": [0.1, 0.5],
            "activation": ["relu", "tanh"],
            "convolution_activation": ["relu", "tanh"],
            "optimizer": ["adam", "sgd"],
            "learning_rate": [0.01, 0.02],
            "epochs": [10, 30, 50],
            "random_state": [0, 1, 2, 3, 4],
        }
    else:
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
        if "rate" in one:
            one["optimizer"], one["learning_rate"] = one.pop("rate")
    return combinations


def _encoder(settings: Settings) -> TrainedEncoder:
    return encoder_from_json({name: value for name, value in settings.items() if name != "data"})


def _measured(
    encoder, dataset, data: str, report: Report, reference: dict[str, np.ndarray] | None
) -> RunResult:
    """One training; without a reference it is the reference, and keeps the relative rows of its best
    epoch.
    """
    rows, anchors = _rows_and_anchors(dataset, data)
    no_anchor = ~np.isin(rows, anchors)
    compared: dict[str, list[float]] = {name: [] for name in SIMILARITIES}
    if not no_anchor.all():  # as published on Cora; the digits' rows are held out in any case
        compared |= {f"{name}{HELD_OUT}": [] for name in SIMILARITIES}
    kept: list[dict[str, np.ndarray]] = []

    def watch(vectors: np.ndarray) -> None:
        own = _relative(vectors, rows, anchors)
        if reference is None:
            kept.append(own)
            return
        for name, curve in compared.items():
            plain = name.removesuffix(HELD_OUT)
            chosen = slice(None) if name == plain else no_anchor
            curve.append(_mean_cosine(own[plain][chosen], reference[plain][chosen]))

    try:
        facts = encoder.train(dataset, report, watch).metadata
    except SpaceError as error:
        if "diverged" not in str(error):
            raise
        return RunResult({"outcome": "diverged", "best validation accuracy": 0.0, "accuracy": None})
    best = facts["epoch"] - 1
    accuracy = facts.get("test_accuracies", facts["accuracies"])
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


def _rows_and_anchors(dataset, data: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows compared, and the anchors: random rows to train on, the same for every network."""
    rng, n = np.random.default_rng(0), len(dataset)
    if data == "Cora":
        return np.arange(n), np.sort(rng.choice(n, _N_ANCHORS[data], replace=False))
    from relcore.encoders.vision import held_out_rows

    test = held_out_rows(n)
    return test, np.sort(rng.choice(np.setdiff1d(np.arange(n), test), _N_ANCHORS[data], replace=False))


def _relative(vectors: np.ndarray, rows: np.ndarray, anchors: np.ndarray) -> dict[str, np.ndarray]:
    moved = centred(vectors, mean_row(vectors))
    spaces = {"similarity": vectors, "centred similarity": moved}
    return {
        name: project_directions(space[rows], unit_rows(space[anchors]).T) for name, space in spaces.items()
    }


def _mean_cosine(a: np.ndarray, b: np.ndarray) -> float:
    cosines = np.einsum("ij,ij->i", a, b) * inverse_norms(a) * inverse_norms(b)
    return float(cosines.mean(dtype=np.float64))


def _trained(table: pd.DataFrame) -> pd.DataFrame:
    """Runs that finished training."""
    return table[table.outcome == "trained"]


def _good(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["best validation accuracy"] >= POOR]


def _scatter(table: pd.DataFrame, similarity: str) -> Lines:
    rows = table.assign(
        x=table[similarity], y=table.accuracy, label=[model_label(row) for row in _records(table)]
    )
    found = {name: correlation(table[similarity], table.accuracy, kind) for kind, name in NAMES.items()}
    return _points(rows, similarity, f"Over {counted(len(table), 'model')}", found)


def _by_epoch(table: pd.DataFrame, similarity: str) -> Lines:
    """Every epoch of every run that was not poor: within each run the points climb together."""
    columns = {"x": table[f"{similarity} by epoch"], "y": table["accuracy by epoch"]}
    labels = [
        [f"{model_label(row)}, epoch {epoch + 1}" for epoch in range(row["epochs"])]
        for row in _records(table)
    ]
    rows = table.assign(**columns, label=labels).explode(["x", "y", "label"])
    found = {
        name: mean(table[f"{kind} over epochs, {similarity}"], bounded=True) for kind, name in NAMES.items()
    }
    head = f"Over epochs, within each of {counted(found['Pearson'].n, 'run')}; means"
    return _points(rows, similarity, head, found)


def _points(rows: pd.DataFrame, similarity: str, head: str, found: dict[str, Estimate]) -> Lines:
    """A group of points for each architecture and optimiser; a correlation takes two networks or more."""
    lines = [
        Line(f"{kind.upper()}, {optimizer}", part.x, part.y, labels=list(part.label), keys=list(part.key))
        for (kind, optimizer), part in rows.groupby(["architecture", "optimizer"])
    ]
    texts = [f"{name} {estimate}" for name, estimate in found.items() if not np.isnan(estimate.value)]
    note = f"{head}:\n{', '.join(texts)}" if texts else ""
    return Lines(lines, f"{similarity} to the reference (mean cosine)", "accuracy", kind="points", note=note)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return table.to_dict("records")


def model_label(row: dict[str, Any]) -> str:
    """The settings of a network in a few words."""
    size = f"{row['depth']} × {row['width']}" if "depth" in row else f"{row['layers']} layers"
    return (
        f"{row['activation']}, {size}, dropout {row['dropout']:g}, rate {row['learning_rate']:g},"
        f" {row['epochs']} epochs"
    )
