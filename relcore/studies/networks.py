"""Studies of trained networks: on relative rows, with many settings, and on rows of other lengths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.numbers import counted, general, short
from relcore.base.rows import centred, lengths, mean_row, unit_rows
from relcore.catalog.encoding import trained_weights
from relcore.encoders.dataset import Dataset, DatasetSpec, evenly
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder, TrainedEncoder, encoder_from_json
from relcore.encoders.transformers import MiniLM
from relcore.encoders.vision import (
    OpenNetwork,
    SmallVision,
    SweptVision,
    held_out_rows,
    new_network,
    open_network,
    split_pictures,
)
from relcore.engine.engine import Engine
from relcore.engine.training import reproducible
from relcore.figures.charts import Line, Lines, Matrices, MatrixPanel
from relcore.represent.heads import fit_head, network_exponent, network_rows
from relcore.runs.progress import Progress
from relcore.runs.store import Store
from relcore.scores.score import Z95
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.study import (
    DATA,
    LABELLED,
    NAMES,
    SPACES,
    Estimate,
    Option,
    RunResult,
    Settings,
    Study,
    average,
    chart,
    correlation,
    count_of,
    data_option,
    dataset_of,
    finding,
    findings_over,
    findings_table,
    finished_run,
    gains,
    labelled_spaces,
    lines_over,
    mean,
    mean_at,
    mean_score,
    points_chart,
    sentence,
    states,
    studied_spaces,
    test_ids_of,
    word_pair,
)

if TYPE_CHECKING:
    import torch
    from torch import nn

_FORMS = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened"}


class TrainingRelative(Study):
    """Table 2: a small network (two hidden layers of 256, AdamW at 1e-3, 30 epochs) on frozen features."""

    version = 2
    options = (
        DATA,
        Option(
            "n_anchors", "Anchors", (100, 300, 500), 500, help="Random training rows; the paper takes 500."
        ),
        states("the anchors and the head's first weights", 6, (3, 6, 10)),
    )

    shared, varied = "data n_anchors", {"features": _FORMS}
    cost: ClassVar = {"digits": 85.0, "sentences": 110.0}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
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
            own = np.diag(result.matrix(settings["features"], metric)[0]).tolist()
            values[name] = float(np.mean(own))
            values |= {f"{name} of {encoder}": one for encoder, one in zip(result.encoders, own, strict=True)}
        return RunResult(values)

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        encoders = {column: column.removeprefix("F1 of ") for column in table if column.startswith("F1 of ")}
        both = {"F1": "weighted F1", "accuracy": "accuracy"}
        charts, rows = {}, f"{count_of(table)}, 4 encoders"
        for name, measures, y in (("weighted F1", encoders, "weighted F1"), ("mean", both, "score")):
            titles, chance = ("features", y), {"chance": "chance"}
            charts[name] = points_chart(table, "features", _FORMS, measures, titles, rows, chance)
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = {column: column for column in table if column.startswith(("F1", "accuracy"))}
        return findings_table(findings_over(table, "features", measures, _FORMS))

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        changes = gains(table, "features", "absolute", "F1")
        if len(changes) < 2:
            return ""
        return (
            f"Compared with absolute rows, training changes weighted F1 by {changes['relative']} on relative"
            f" rows and by {changes['whitened']} on whitened rows."
        )


_COUNTS = (2, 5, 10, 20, 50, 100, 200)
_MEASURES = {
    "relative, same space": "relative, same space",
    "relative, stitched": "relative, stitched with another random state",
}


class TrainedCount(Study):
    """Fig. 6, left, on the digits. A network is an encoder, the cosines to anchors that are encoded again at
    each step, LayerNorm, and a Linear head. The head of a second network with the same anchors classifies the
    relative rows of the first.
    """

    version = 2
    options = (
        Option("architecture", "Network", ("mlp", "cnn"), "mlp"),
        Option("epochs", "Epochs", (5, 12, 20), 12),
        states("the anchors and both networks' first weights"),
    )
    by, measures = "n_anchors", {**_MEASURES, "absolute": "absolute, not stitched"}

    shared, varied = "architecture epochs", {"n_anchors": _COUNTS}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        dataset, state = load_dataset(DatasetSpec("digits"), store), settings["random_state"]
        network = {name: settings[name] for name in ("architecture", "epochs")}
        specs = [SweptVision(**network, random_state=2 * state + one) for one in (0, 1)]
        return RunResult(absolute_and_relative_accuracy(specs, dataset, settings["n_anchors"], state, report))

    def seconds(self, settings: Settings) -> float:
        return 1.0 + settings["epochs"] * {"mlp": 1.9, "cnn": 6.8}[settings["architecture"]]

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines, titles = lines_over(table, "n_anchors", _MEASURES), ("number of anchors", "accuracy")
        levels = {"absolute, not stitched": "absolute", "chance": "chance"}
        return {"accuracy": chart(table, lines, titles, count_of(table), levels, log_x=True)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.n_anchors.max()
        return sentence(
            f"A network that is trained on relative rows with {most} anchors reaches an accuracy of {{}}, and"
            " {} stitched with another random state; one that is trained on absolute rows reaches {}.",
            *(mean_at(table, "n_anchors", most, column) for column in (*_MEASURES, "absolute")),
        )


# Networks with relative representations inside: anchors are encoded again at each step, without a gradient.
# As in the authors' code, relative rows pass a LayerNorm before the head. Without it, the head learns the
# spread of the cosines in its own network (digits, 200 anchors, stitched: .51 instead of .94).

_BATCH = 64


def absolute_and_relative_accuracy(
    specs: Sequence[SweptVision], dataset: Dataset, n_anchors: int, random_state: int, report: Progress
) -> dict[str, float]:
    """The test accuracies of two networks that share `n_anchors` random training pictures as anchors.

    "absolute" and "relative, same space": the first network with its head on such rows; "relative, stitched":
    its relative rows with the head of the second network; also "chance" and "test rows".
    """
    import torch

    parts = split_pictures(dataset)
    anchors = np.sort(np.random.default_rng(random_state).choice(parts.train, n_anchors, replace=False))
    images, targets = torch.from_numpy(parts.pixels), torch.from_numpy(parts.classes)
    test, truth = images[parts.test], parts.classes[parts.test]
    networks = ((specs[0], None), (specs[0], anchors), (specs[1], anchors))
    models = []
    for number, network in enumerate(networks):
        report(number, 3, f"network {number + 1} of 3")
        models.append(_trained(*network, images, targets, parts.train))
    (encode_absolute, absolute_head), (encode, head), (_, other_head) = models
    with torch.inference_mode():
        rows = encode(test)
        scores = {
            "absolute": absolute_head(encode_absolute(test)),
            "relative, same space": head(rows),
            "relative, stitched": other_head(rows),
        }
    answers = {name: one.argmax(dim=1).numpy() for name, one in scores.items()}
    accuracy = {name: float((one == truth).mean()) for name, one in answers.items()}
    majority = np.bincount(parts.classes[parts.train]).argmax()
    return accuracy | {"chance": float(np.mean(truth == majority)), "test rows": len(truth)}


def _trained(spec: SweptVision, anchors: np.ndarray | None, images, targets, train: np.ndarray):
    import torch
    from torch.nn.functional import cross_entropy, normalize

    with reproducible(spec.random_state):
        model = new_network(spec, tuple(images.shape[1:]), int(targets.max()) + 1)
        if anchors is not None:
            # LayerNorm, then Linear: see above
            k, n_classes = len(anchors), int(targets.max()) + 1
            model["head"] = torch.nn.Sequential(torch.nn.LayerNorm(k), torch.nn.Linear(k, n_classes))

        def encode(pictures):
            rows = model["encoder"](pictures)
            if anchors is None:
                return rows
            with torch.no_grad():
                fixed = normalize(model["encoder"](images[anchors]))
            return normalize(rows) @ fixed.T

        optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
        model.train()
        loss = lambda batch: cross_entropy(model["head"](encode(images[batch])), targets[batch])  # noqa: E731
        _optimise(optimizer, loss, torch.from_numpy(train), spec.epochs, _BATCH)
        model.eval()
    return encode, model["head"]


def _optimise(optimiser, loss: Callable, rows, epochs: int, size: int) -> None:
    import torch

    for _ in range(epochs):
        for batch in rows[torch.randperm(len(rows))].split(size):
            value = loss(batch)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()


SIMILARITIES = ("similarity", "centred similarity")
HELD_OUT = ", held-out rows"
# runs with a lower best validation accuracy are left out of the mean over epochs, as in the paper
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
    """Figs. 3 and 8: networks of many settings, compared after every epoch with the best epoch of a
    reference.

    Similarity is the mean cosine between relative rows of the network and the reference, with random training
    items as anchors; "centred" (not in the paper) subtracts each space's mean first. Accuracy is that of the
    test rows (digits) or, as in the paper, of the validation nodes (Cora).
    """

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

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
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
        table, chosen = _finished(table), _CHOSEN[options["similarity"]]
        if not len(table):
            return {}
        charts, good = {"over models": _scatter(table, chosen)}, _good(table)
        return charts | ({"over epochs": _by_epoch(good, chosen)} if len(good) else {})

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        table, rows = _finished(table), []
        good, held_out = _good(table), [f"{name}{HELD_OUT}" for name in SIMILARITIES]
        # If anchors are among the rows, also the held-out rows alone.
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
        table, chosen = _finished(table), _CHOSEN[options["similarity"]]
        if len(table) < 4:
            return ""
        return sentence(
            f"Over {len(table)} networks, {chosen} to the reference and accuracy have a Pearson correlation"
            " of {}; over the epochs within a network it is {} on average.",
            correlation(table[chosen], table.accuracy),
            mean(_good(table)[f"pearson over epochs, {chosen}"], bounded=True),
        )


def _grid(data: str) -> list[dict[str, Any]]:
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
    encoder, dataset, data: str, report: Progress, reference: dict[str, np.ndarray] | None
) -> RunResult:
    rows, anchors = _rows_and_anchors(dataset, data)
    no_anchor = ~np.isin(rows, anchors)
    compared: dict[str, list[float]] = {name: [] for name in SIMILARITIES}
    if not no_anchor.all():  # only on Cora, as published; the digits' rows are always held out
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
        name: Engine().map_rows(space[rows], unit_rows(space[anchors]).T, unit=True)
        for name, space in spaces.items()
    }


def _mean_cosine(a: np.ndarray, b: np.ndarray) -> float:
    cosines = np.vecdot(unit_rows(a), unit_rows(b))
    return float(cosines.mean(dtype=np.float64))


def _finished(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.outcome == "trained"]


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
    note = f"{head}:\n{', '.join(texts)}" if texts else ""
    return Lines(lines, f"{similarity} to the reference (mean cosine)", "accuracy", kind="points", note=note)


def model_label(row: dict[str, Any]) -> str:
    size = f"{row['depth']} × {row['width']}" if "depth" in row else f"{row['layers']} layers"
    return (
        f"{row['activation']}, {size}, dropout {row['dropout']:g}, rate {row['learning_rate']:g},"
        f" {row['epochs']} epochs"
    )


ACTIVATIONS = ("relu", "tanh", "cosine")
NETWORKS = {"relu": "ReLU", "tanh": "tanh", "cosine": "cosine", "layernorm": "normalised first"}
_WIDTH, _EPOCHS, _HEAD_BATCH, _LEARNING_RATE = 128, 30, 128, 1e-3
_SPAN, _N_ALPHAS = 32.0, 41  # lengths from the mean length / 32 to the mean × 32
_N_ROWS, _TEST_FRACTION = 3000, 0.2
_RESCALED = ("as it is", "all at the mean length", "least from 1/8 to 8 times", "least of all")
_SPACE = {"digits": 1, "sentences": 3}  # the CNN, and MiniLM's last layer

Answer = Callable[[np.ndarray], np.ndarray]  # rows (m, d) → classes (m,)


class RescaledRows(Study):
    """Small networks without normalisation are trained on labelled rows as they are. Then they classify
    held-out rows that are all scaled to length α. Where the curve is flat, the length does not matter.
    "Normalised first" begins with a LayerNorm.
    """

    cost = 4.0
    options = (
        DATA,
        Option(
            "networks",
            "Networks",
            tuple(NETWORKS),
            ACTIVATIONS,
            many=True,
            names=tuple(NETWORKS.values()),
            help="Two hidden layers of 128 with this activation and no normalisation.",
        ),
        states("rows, split and first weights"),
        SPACES,
    )
    by, names, measures = "network", NETWORKS, {name: name for name in (*_RESCALED, "chance")}

    shared, varied = "data spaces", {"network": "networks"}

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        if settings["spaces"]:
            space, test_ids = word_pair(settings["spaces"], store).source, ()
        else:
            space = labelled_spaces(settings["data"], store, report)[_SPACE[settings["data"]]]
            test_ids = test_ids_of(settings["data"], space)
        return RunResult(rescaled_rows(space, settings["network"], settings["random_state"], test_ids))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines = []
        for network, part in table.groupby("network", sort=False):
            means = [mean_score(scores) for scores in zip(*part["accuracy by length"], strict=True)]
            ends = ([getattr(one, end) for one in means] for end in ("value", "low", "high"))
            lines.append(Line(NETWORKS[network], part.lengths.iloc[0], *ends))
        marks = (("mean length", float(table["mean length"].iloc[0])),)
        levels = {"rows as they are": "as it is", "chance": "chance"}
        rows = f"{table.space.iloc[0]}, {count_of(table, 'held-out rows')}"
        titles = ("length α of every row", "accuracy")
        return {"accuracy": chart(table, lines, titles, rows, levels, log_x=True, marks=marks)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        both = {
            network: [mean_at(table, "network", network, name) for name in _RESCALED[::2]]
            for network in dict.fromkeys(table.network)
        }
        parts = [
            f"{NETWORKS[network]} {own:2} and {least:2}"
            for network, (own, least) in both.items()
            if own.has_interval
        ]
        if not parts:
            return ""
        return (
            "Accuracy of rows as they are, and the least where all are ⅛ to 8 times as long as on average:"
            f" {'; '.join(parts)}; chance is {short(average(table, 'chance'), 2)}."
        )


class RescaledLayers(Study):
    """The output vectors of one layer at a time are scaled to length α; all later layers run unchanged. A
    ReLU head, trained without rescaling, classifies the result. Brackets and dotted lines mark the layer's
    own mean length.
    """

    options = (
        Option(
            "network",
            "Network",
            LABELLED,
            "digits",
            names=("Digits through the small ViT", "Wikipedia sentences through MiniLM"),
        ),
        Option(
            "n_test",
            "Test items",
            (100, 360),
            360,
            help="With balanced classes. Each runs through the network once per layer and length.",
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        n_train, n_alphas = (1000, 13) if options["network"] == "digits" else (400, 9)
        return [{**options, "n_train": n_train, "n_alphas": n_alphas, "span": 16.0, "random_state": 0}]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        network = settings["network"]
        encoder = SmallVision("vit") if network == "digits" else MiniLM((6,))
        return RunResult(rescaled_layers(network, encoder, settings, store, report))

    def seconds(self, settings: Settings) -> float:
        small = settings["network"] == "digits"
        passes = settings["n_test"] * ((4 if small else 7) * settings["n_alphas"] + 2) + settings["n_train"]
        return 15.0 + (1e-4 if small else 0.027) * passes

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        run = table.iloc[0]
        nearest = tuple((row, _nearest(run.lengths, own)) for row, own in enumerate(run["own lengths"]))
        note = (
            f"not rescaled {short(run['as it is'])}, chance {short(run.chance)};"
            f" {count_of(table, 'held-out items')}; in brackets: the layer's own mean length, dotted: the"
            " nearest α"
        )
        layers, own = run.layers, run["own lengths"]
        rows = tuple(f"{layer} ({general(length, 2)})" for layer, length in zip(layers, own, strict=True))
        values = np.array(run.accuracy)
        least = ", ".join(
            f"{layer} {short(value, 2)}" for layer, value in zip(layers, values.min(axis=1), strict=True)
        )
        panel = MatrixPanel(run["name"], rows, tuple(run.lengths), values, note=note, marked=nearest)
        alt = f"Heat map of accuracy, layer by length, of {run['name']}; {note}. Least of each: {least}."
        axes = (alt, "layer", "length α of its vectors")
        return {"accuracy": Matrices((panel,), (0.0, 1.0), "accuracy", *axes)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        run = table.iloc[0]
        n = int(run["test rows"])
        levels = {"accuracy without rescaling": run["as it is"], "chance": run.chance}
        rows = [finding(name, Estimate(float(value), n=n)) for name, value in levels.items()]
        for layer, line, loss in zip(run.layers, run.accuracy, lost_by_layer(run), strict=True):
            rows.append(finding(f"{layer}, accuracy lost at about its mean length", loss, "paired answers"))
            rows.append(finding(f"{layer}, least accuracy", Estimate(float(min(line)), n=n)))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        run = table.iloc[0]
        losses = lost_by_layer(run)
        most = max(range(len(losses)), key=lambda layer: losses[layer].value)
        return (
            f"Brought to about their mean length, the vectors of {run.layers[most]}, the layer that loses"
            f" most of {len(losses)}, cost {losses[most]} of accuracy; the worst of all layers and lengths on"
            f" the same rows costs {short(run['as it is'] - np.min(run.accuracy))}."
        )


def rescaled_rows(
    space: LatentSpace,
    network: str,
    random_state: int = 0,
    test_ids: Sequence[str] = (),
    n_rows: int = _N_ROWS,
) -> dict[str, Any]:
    """Train a network on rows as they are, and score it on held-out rows scaled to each length α.

    Held out are `test_ids`, else a fifth; at most `n_rows` are used. "least …" is the minimum over lengths.

    Raises
    ------
    SpaceError
        No labels, only one class, too few rows.
    """
    rows, targets = _labelled_rows(space)
    train, test = _split(np.isin(space.ids[rows], test_ids), targets, n_rows, random_state)
    X, classes, lengths = space.vectors[rows], targets[test], space.norms[rows]
    mean_length = float(lengths.mean(dtype=np.float64))
    alphas = lengths_around(mean_length, _SPAN, _N_ALPHAS)
    answer = _fit(network, X[train], targets[train], random_state)
    own, *curve = rescale_curve(answer, X[test], classes, alphas)
    away = np.abs(np.log(np.array(alphas) / mean_length))
    least = np.array(curve)[away <= np.log(8) + 1e-6].min(), min(curve)
    return dict(zip(_RESCALED, (own, curve[int(away.argmin())], *map(float, least)), strict=True)) | {
        "accuracy by length": curve,
        "lengths": list(alphas),
        "mean length": mean_length,
        "chance": float(np.mean(classes == np.bincount(targets[train]).argmax())),
        "space": space.name,
        "test rows": len(test),
    }


def lengths_around(center: float, span: float, n: int) -> tuple[float, ...]:
    return tuple(float(f"{alpha:.5g}") for alpha in center * np.geomspace(1 / span, span, n))


def rescale_curve(answer: Answer, X: np.ndarray, classes: np.ndarray, alphas: Sequence[float]) -> list[float]:
    units = unit_rows(X)
    rescaled = (units * np.float32(alpha) for alpha in alphas)
    return [float(np.mean(answer(rows) == classes)) for rows in (X, *rescaled)]


def fit_plain_mlp(
    X: np.ndarray, classes: np.ndarray, activation: str = "relu", random_state: int = 0
) -> Answer:
    """A classifier of two hidden layers without normalisation, trained on rows (n, d) of classes (n,) by 30
    epochs of AdamW.

    Raises
    ------
    SpaceError
        An activation other than "relu", "tanh" or "cosine"; fewer than two classes.
    """
    import torch
    from torch import nn

    need_one_of("activation", activation, ACTIVATIONS)
    classes = np.asarray(classes, dtype=np.int64)
    if len(np.unique(classes)) < 2:
        raise SpaceError(f"classes: expected two or more, got {len(np.unique(classes))}")
    bend = {"relu": torch.relu, "tanh": torch.tanh, "cosine": torch.cos}[activation]

    class Bend(nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return bend(rows)

    exponent, n_classes = network_exponent(X), int(classes.max()) + 1

    def read(rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(network_rows(rows, exponent))

    rows, targets = read(X), torch.from_numpy(classes)
    with reproducible(random_state):
        layers = nn.Linear(X.shape[1], _WIDTH), nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, n_classes)
        model = nn.Sequential(layers[0], Bend(), layers[1], Bend(), layers[2])
        optimiser = torch.optim.AdamW(model.parameters(), _LEARNING_RATE)
        loss = lambda batch: nn.functional.cross_entropy(model(rows[batch]), targets[batch])  # noqa: E731
        _optimise(optimiser, loss, torch.arange(len(rows)), _EPOCHS, _HEAD_BATCH)

    def answer(rows: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(read(rows)).argmax(dim=1).numpy()

    return answer


def _labelled_rows(space: LatentSpace) -> tuple[np.ndarray, np.ndarray]:
    if space.labels is None:
        raise SpaceError(
            f"{space.name!r}: expected labels to train networks on, got none; choose a space with labels"
        )
    rows = np.flatnonzero((space.labels != "") & (space.norms > 0))
    classes, targets = np.unique(space.labels[rows].astype(str), return_inverse=True)
    if len(classes) < 2 or len(classes) > len(rows) / 2:
        raise SpaceError(
            f"{space.name!r}: expected labels of two or more classes, each with several rows, got"
            f" {len(classes)} different ones for {len(rows)} rows; choose another space"
        )
    return rows, targets


def _split(
    held_out: np.ndarray, targets: np.ndarray, n_rows: int, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(random_state).permutation(len(targets))
    n_test = max(1, round(_TEST_FRACTION * min(len(order), n_rows)))
    if held_out.any():
        n_test = min(int(held_out.sum()), n_test)
        order = np.concatenate([order[held_out[order]][:n_test], order[~held_out[order]]])
    test, train = order[:n_test], order[n_test:n_rows]
    if len(np.unique(targets[train])) < 2:
        raise SpaceError(
            f"expected training rows of two classes or more, got {len(train)} rows; take more rows"
        )
    return np.sort(train), np.sort(test)


def _fit(network: str, X: np.ndarray, targets: np.ndarray, random_state: int) -> Answer:
    if network in ACTIVATIONS:
        return fit_plain_mlp(X, targets, network, random_state)
    present, numbers = np.unique(targets, return_inverse=True)
    head = fit_head(X, numbers, len(present), "mlp", random_state)
    return lambda rows: present[head.probabilities(rows).argmax(axis=1)]


def rescaled_layers(
    data: str, encoder: Encoder, settings: Settings, store: Store, report: Progress
) -> dict[str, Any]:
    """Train a plain ReLU head on the network's encodings, then rescale the output of one layer at a time.

    "accuracy" and "changed", the share of items that become right or wrong, have a row per layer and a column
    per length.

    Raises
    ------
    SpaceError
        An encoder whose layers cannot be opened.
    """
    dataset = load_dataset(dataset_of(data), store)
    train, test = _balanced_rows(dataset.labels, settings["n_train"], settings["n_test"])
    report(0, 1, f"opening {encoder.title}")
    is_trained = isinstance(encoder, TrainedEncoder)
    weights = trained_weights(encoder, dataset, store, report) if is_trained else None
    network = open_network(encoder, dataset, report, weights)
    _, targets = np.unique(dataset.labels[np.concatenate([train, test])].astype(str), return_inverse=True)
    known, truth = targets[: len(train)], targets[len(train) :]
    report(0, 1, f"a head on {len(train):,} items")
    answer = fit_plain_mlp(network.encode([dataset.item(row) for row in train]), known)
    items = [dataset.item(row) for row in test]
    lengths = _mean_lengths(network, items)
    center = np.exp(np.mean(np.log(list(lengths.values()))))
    alphas = lengths_around(center, settings["span"], settings["n_alphas"])
    counter, total = itertools.count(), len(lengths) * len(alphas) + 1

    def encode() -> np.ndarray:
        report(next(counter), total, f"{len(items):,} items, one layer at one length at a time")
        return network.encode(items)

    layers = {name: network.layers[name] for name in lengths}
    own, accuracy, changed = rescale_layers(layers, encode, answer, truth, alphas)
    return {
        "name": f"{encoder.title} · {dataset.name}",
        "layers": list(lengths),
        "own lengths": list(lengths.values()),
        "lengths": list(alphas),
        "accuracy": accuracy,
        "changed": changed,
        "as it is": own,
        "chance": float(np.mean(truth == np.bincount(known).argmax())),
        "test rows": len(test),
    }


def rescale_layers(
    layers: Mapping[str, nn.Module],
    encode: Callable[[], np.ndarray],
    answer: Answer,
    classes: np.ndarray,
    alphas: Sequence[float],
) -> tuple[float, list[list[float]], list[list[float]]]:
    """The accuracy of the unchanged network, then accuracy and share of changed answers by layer and length.

    A layer's output is vectors (…, d), or a tuple that begins with them; `answer` classifies the rows that
    `encode` returns.
    """
    own = answer(encode()) == classes
    right = np.empty((len(layers), len(alphas), len(own)), dtype=bool)
    for i, module in enumerate(layers.values()):
        for j, alpha in enumerate(alphas):
            with injected(module, alpha):
                right[i, j] = answer(encode()) == classes
    return float(own.mean()), right.mean(axis=2).tolist(), (right != own).mean(axis=2).tolist()


@contextmanager
def injected(module: nn.Module, alpha: float) -> Iterator[None]:
    """A context in which every output vector of the module (last axis) is scaled to length α."""
    from torch.nn.functional import normalize

    def rescale(_module: nn.Module, _inputs: tuple, output: torch.Tensor | tuple) -> torch.Tensor | tuple:
        if isinstance(output, tuple):
            return (alpha * normalize(output[0], dim=-1), *output[1:])
        return alpha * normalize(output, dim=-1)

    hook = module.register_forward_hook(rescale)
    try:
        yield
    finally:
        hook.remove()


def lost_by_layer(run: Mapping[str, Any]) -> list[Estimate]:
    """The loss of accuracy at the length nearest to each layer's mean length, with an interval for paired
    answers.

    If b of n items become wrong and c right, (b − c) / n has the standard error √(b + c − (b − c)² / n) / n.
    One more item counts as changed, so that the interval has a width even if none changed.
    """
    n, estimates = int(run["test rows"]), []
    for own, accuracy, changed in zip(run["own lengths"], run["accuracy"], run["changed"], strict=True):
        at = _nearest(run["lengths"], own)
        loss = run["as it is"] - accuracy[at]
        half_width = Z95 * np.sqrt((changed[at] * n + 1) / n - loss**2) / np.sqrt(n)
        estimates.append(Estimate.around(loss, half_width, n))
    return estimates


def _nearest(alphas: Sequence[float], length: float) -> int:
    return int(np.abs(np.log(np.array(alphas) / length)).argmin())


def _balanced_rows(labels: np.ndarray, n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray]:
    held_out = held_out_rows(len(labels))
    parts = []
    for rows, n in ((np.setdiff1d(np.arange(len(labels)), held_out), n_train), (held_out, n_test)):
        rows = rows[labels[rows] != ""]
        parts.append(rows[evenly(labels[rows], n)])
    train, test = parts
    return train, test[np.isin(labels[test].astype(str), labels[train].astype(str))]


def _mean_lengths(network: OpenNetwork, items: Sequence[Any]) -> dict[str, float]:
    measured: dict[str, list[float]] = {name: [] for name in network.layers}

    def watch(name: str) -> Callable:
        def hook(_module: Any, _inputs: tuple, output: Any) -> None:
            vectors = output[0] if isinstance(output, tuple) else output
            measured[name].append(float(vectors.float().norm(dim=-1).mean()))

        return hook

    with ExitStack() as stack:
        for name, module in network.layers.items():
            stack.callback(module.register_forward_hook(watch(name)).remove)
        network.encode(list(items))
    return {name: float(np.mean(lengths)) for name, lengths in measured.items() if lengths}


_EDGES = np.linspace(0, 3, 61)  # bins of the lengths divided by their mean
_COUNT = {"digits": 4, "sentences": 4, "words": 2}
_KINDS = {"centred": "length from the mean", "norm": "norm"}


class RowLengths(Study):
    """The norm of each row, and its distance from the mean of its space. Inversion loses this distance: a
    recovered row gets the mean length of the target's anchors, less the part that they do not span. "Varies
    by" is the standard deviation divided by the mean.
    """

    cost = 1.0
    options = (data_option("digits", "sentences", "words", default=("digits", "words")), SPACES)

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        counts = {"": 2} if options["spaces"] else {data: _COUNT[data] for data in options["data"]}
        return [
            {"data": data, "spaces": list(options["spaces"]), "space": number, "random_state": 0}
            for data, count in counts.items()
            for number in range(count)
        ]

    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        if settings["spaces"]:
            pair = word_pair(settings["spaces"], store)
            spaces = [pair.source, pair.target]
        else:
            spaces = studied_spaces(settings["data"], store, report)
        return RunResult(length_values(spaces[settings["space"]]))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        middles = (_EDGES[:-1] + _EDGES[1:]) / 2
        charts = {}
        for kind, title in _KINDS.items():
            lines = [Line(run["name"], middles, run[f"{kind} density"]) for _, run in table.iterrows()]
            charts[title] = Lines(lines, f"{title} / its average", "density")
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            [
                finding(f"{run['name']}, {title} varies by", _estimate(run, kind), "normal approximation")
                for _, run in table.iterrows()
                for kind, title in _KINDS.items()
            ]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        estimates = {run["name"]: _estimate(run, "centred") for _, run in table.iterrows()}
        least, most = (choose(estimates, key=lambda name: estimates[name].value) for choose in (min, max))
        parts = [f"{estimates[name]:2} of their mean in {name}" for name in dict.fromkeys((least, most))]
        return f"Row lengths vary by {' to '.join(parts)}; inversion cannot recover them."


def length_values(space: LatentSpace) -> dict[str, Any]:
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
    return Estimate.around(run[f"{kind} varies by"], run[f"{kind} reach"], int(run["rows"]))
