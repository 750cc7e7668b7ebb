"""Studies whose runs stand beside the papers: numbers of anchors, training on relative rows, networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.base.rows import centred, mean_row, unit_rows
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import TrainedEncoder, encoder_from_json
from relcore.encoders.vision import (
    SweptVision,
    held_out_rows,
    new_network,
    split_pictures,
)
from relcore.engine.engine import Engine
from relcore.engine.training import reproducible
from relcore.figures.charts import Line, Lines
from relcore.runs.progress import Progress
from relcore.runs.store import Store
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.study import (
    BASELINES,
    DATA,
    MEASURES,
    NAMES,
    OWN,
    Estimate,
    Option,
    RunResult,
    Settings,
    Study,
    average,
    chart,
    correlation,
    count_of,
    finding,
    findings_over,
    findings_table,
    finished_run,
    gains,
    grid,
    labelled_spaces,
    lines_over,
    mean,
    mean_at,
    points_chart,
    sentence,
    states,
    stitched_values,
    test_ids_of,
)

if TYPE_CHECKING:
    pass

_ENOUGH = 0.95  # share of the accuracy with the most anchors
_COARSE = (2, 5, 10, 20, 50, 100, 200, 400, 800)
_PAPER = (*range(1, 50, 2), *range(50, 100, 5), *range(100, 1001, 20))


class AnchorCount(Study):
    """Fig. 6: logistic heads on relative and whitened rows of frozen encoders, with random training rows as
    anchors.
    """

    version = 2
    options = (
        DATA,
        Option(
            "grid",
            "Numbers of anchors",
            ("coarse", "paper"),
            "coarse",
            help="Coarse: nine, 2 to 800. Paper: its 80 numbers.",
        ),
        states("the anchors and, of sentences, the test rows", 5),
    )
    by, measures = "n_anchors", MEASURES

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
        return (6.5 if settings["data"] == "digits" else 13.0) + settings["n_anchors"] / 90

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines, rows = lines_over(table, "n_anchors", MEASURES), f"{count_of(table)}, 4 encoders, 12 pairs"
        return {
            "accuracy": chart(table, lines, ("number of anchors", "accuracy"), rows, BASELINES, log_x=True)
        }

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        most = table.n_anchors.max()

        def reached(n: int, form: str = "relative") -> Estimate:
            return mean_at(table, "n_anchors", n, f"{form}, stitched")

        wanted = _ENOUGH * reached(most).value
        enough = next((n for n in sorted(set(table.n_anchors)) if reached(n).low >= wanted), most)
        return sentence(
            f"{enough} anchors are enough for {100 * _ENOUGH:.0f} % of the accuracy that {most} give stitched"
            f" heads: {{}} and {{}} on relative rows. With {most}, whitened rows reach {{}}, and heads on"
            f" their own encoder {short(average(table, OWN))}.",
            *(reached(enough), reached(most), reached(most, "whitened")),
        )


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
