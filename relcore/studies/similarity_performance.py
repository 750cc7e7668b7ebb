"""Does a network that is alike a good one perform well? Relative similarity to a reference against
accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.magnitude import centred
from relcore.base.numbers import counted
from relcore.charts.lines import Line, Lines
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import TrainedEncoder, encoder_from_json
from relcore.represent.similarity import inverse_norms, mean_row, project_directions, unit_rows
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.studies.runs import finished_run
from relcore.studies.statistics import NAMES, Estimate, correlation, mean
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, finding, findings_table

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
        grid = _grid(options["data"])
        chosen = np.random.default_rng(0).permutation(len(grid))[: options["n_runs"]]
        return [{"data": options["data"], **grid[number]} for number in chosen]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        data = settings["data"]
        dataset, encoder = load_dataset(_DATA[data], store), _encoder(settings)
        if settings == _reference(data):
            return _measured(encoder, dataset, data, report, None)
        reference = finished_run(
            self, _reference(data), store, lambda *told: report(0, 1, "training the reference first")
        )
        return _measured(encoder, dataset, data, report, reference.arrays)

    def seconds(self, settings: Settings) -> float:
        if settings["data"] == "digits":
            return 1.0 + settings["epochs"] * {"mlp": 1.1, "cnn": 3.6}[settings["architecture"]]
        diverges = settings["architecture"] == "gin" and settings["layers"] > 8
        return 3.0 + (2 if diverges else settings["epochs"]) * settings["layers"] * 0.1

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        table = _known(table)
        if not len(table):
            return {}
        chosen = {"plain": "similarity", "centred": "centred similarity"}[options["similarity"]]
        charts = {"over models": _scatter(table, chosen)}
        if len(good := _good(table)):
            charts["over epochs"] = _by_epoch(good, chosen)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        table = _known(table)
        rows = []
        for similarity in _similarities(table):
            for kind in NAMES:
                found = correlation(table[similarity], table.accuracy, kind)
                rows.append(finding(f"{NAMES[kind]} over models, {similarity}", found, _INTERVALS[kind]))
            good = _good(table)
            for kind in NAMES:
                found = mean(good[f"{kind} over epochs, {similarity}"].astype(float), bounded=True)
                rows.append(
                    finding(
                        f"mean {NAMES[kind]} over epochs within a run, {similarity}",
                        found,
                        "bootstrap over runs",
                    )
                )
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        table = _known(table)
        if len(table) < 4:
            return ""
        chosen = {"plain": "similarity", "centred": "centred similarity"}[options["similarity"]]
        over_models = correlation(table[chosen], table.accuracy)
        over_epochs = mean(_good(table)[f"pearson over epochs, {chosen}"].astype(float), bounded=True)
        if not over_models.has_interval or not over_epochs.has_interval:
            return ""
        return (
            f"Over {over_models.n} networks, {chosen} to the reference and accuracy have a Pearson"
            f" correlation of {over_models.told()}; over the epochs within a network it is"
            f" {over_epochs.told()} on average."
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


def _reference(data: str) -> dict[str, Any]:
    return {"data": data, **_REFERENCES[data]}


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
    }
    values["accuracy"] = accuracy[best]
    if reference is None:
        return RunResult(values, kept[best])
    for name, curve in compared.items():
        values[name] = curve[best]
        for kind in NAMES:
            found = correlation(curve, accuracy, kind).value
            values[f"{kind} over epochs, {name}"] = None if np.isnan(found) else found
    values |= {f"{name} by epoch": [round(one, 5) for one in curve] for name, curve in compared.items()}
    return RunResult(values | {"accuracy by epoch": [round(one, 5) for one in accuracy]})


def _rows_and_anchors(dataset, data: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows compared, and the anchors: random rows to train on, the same for every network."""
    rng, n = np.random.default_rng(0), len(dataset)
    if data == "Cora":
        return np.arange(n), np.sort(rng.choice(n, _N_ANCHORS[data], replace=False))
    from relcore.encoders.small_vision import held_out_rows

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


def _similarities(table: pd.DataFrame) -> list[str]:
    """Those that all runs have: of all rows and, where anchors are among these, of held-out rows, too."""
    names = [*SIMILARITIES, *(f"{name}{HELD_OUT}" for name in SIMILARITIES)]
    return [name for name in names if len(table) and name in table and table[name].notna().all()]


def _known(table: pd.DataFrame) -> pd.DataFrame:
    """Runs that finished training."""
    return table[table.outcome == "trained"] if "outcome" in table else table.iloc[:0]


def _good(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["best validation accuracy"] >= POOR]


def _scatter(table: pd.DataFrame, similarity: str) -> Lines:
    groups = [
        (f"{architecture.upper()}, {optimizer}", part)
        for (architecture, optimizer), part in table.groupby(["architecture", "optimizer"])
    ]
    lines = [
        Line(
            name,
            part[similarity],
            part.accuracy,
            labels=[model_label(row) for row in part.to_dict("records")],
            keys=list(part.key),
        )
        for name, part in groups
    ]
    found = [correlation(table[similarity], table.accuracy, kind) for kind in NAMES]
    note = _note(f"Over {counted(len(table), 'model')}", found)
    return Lines(
        tuple(lines), f"{similarity} to the reference (mean cosine)", "accuracy", kind="points", note=note
    )


def _by_epoch(table: pd.DataFrame, similarity: str) -> Lines:
    """Every epoch of every run that was not poor: within each run the points climb together."""
    lines = [
        Line(
            f"{architecture.upper()}, {optimizer}",
            np.concatenate([*part[f"{similarity} by epoch"]]),
            np.concatenate([*part["accuracy by epoch"]]),
            labels=[
                f"{model_label(row)}, epoch {i + 1}"
                for row in part.to_dict("records")
                for i in range(row["epochs"])
            ],
            keys=[row["key"] for row in part.to_dict("records") for _ in range(row["epochs"])],
        )
        for (architecture, optimizer), part in table.groupby(["architecture", "optimizer"])
    ]
    found = [
        mean(table[f"{kind} over epochs, {similarity}"].astype(float), NAMES[kind], bounded=True)
        for kind in NAMES
    ]
    note = _note(f"Over epochs, within each of {counted(found[0].n, 'run')}; means", found)
    return Lines(
        tuple(lines), f"{similarity} to the reference (mean cosine)", "accuracy", kind="points", note=note
    )


def _note(head: str, found: Sequence[Estimate]) -> str:
    """Two networks or more have a correlation."""
    told = ", ".join(one.describe() for one in found if not np.isnan(one.value))
    return f"{head}:\n{told}" if told else ""


def model_label(row: dict[str, Any]) -> str:
    """The settings of a network in a few words."""
    size = f"{row['depth']} × {row['width']}" if "depth" in row else f"{row['layers']} layers"
    return (
        f"{row['activation']}, {size}, dropout {row['dropout']:g}, rate {row['learning_rate']:g},"
        f" {row['epochs']} epochs"
    )
