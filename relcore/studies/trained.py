"""Does training on relative representations cost accuracy? The same head on absolute, relative and
whitened features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.torch_state import reproducible
from relcore.charts.lines import Lines
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.swept_vision import SweptVision, new_network, split_pictures
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.studies.material import DATA, labelled_spaces, opening_of, test_ids_of
from relcore.studies.runs import (
    average,
    circumstances,
    differences,
    findings_over,
    lines_over,
    means_at,
    points_over,
)
from relcore.studies.study import Opening, Option, RunResult, Settings, Study, findings_table, grid

_FORMS = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened"}


class TrainingRelative(Study):
    """Table 2: frozen features, a small network on top (two hidden layers of 256, AdamW at 1e-3, 30
    epochs) trained on them.
    """

    kind = "training"
    version = 2
    title = "Training on relative rows"
    question = "Does training on relative representations cost accuracy?"
    paper = "Moschella et al. 2023, Table 2"
    options = (
        DATA,
        Option(
            "n_anchors", "Anchors", (100, 300, 500), 500, help="Random training rows; the paper takes 500."
        ),
        Option(
            "n_states",
            "Random states",
            (3, 6, 10),
            6,
            help="Each draws the anchors and the head's first weights.",
        ),
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
            values |= {
                f"{name} of {encoder}": float(score)
                for encoder, score in zip(result.encoders, own, strict=True)
            }
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
        look = {
            "kind": "points",
            "x_names": names,
            "note": note,
            "baselines": (("chance", float(table.chance.mean())),),
        }
        encoders = {column: column.removeprefix("F1 of ") for column in table if column.startswith("F1 of ")}
        return {
            "weighted F1": Lines(
                tuple(points_over(table, "features", forms, encoders)), "features", "weighted F1", **look
            ),
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
            f"Compared with absolute rows, training on relative rows costs {relative} of weighted F1, and on"
            f" whitened rows {whitened}."
        )

    def opening(self, settings: Settings) -> Opening:
        return opening_of(settings["data"])


# How many anchors does a network need that is trained on relative representations from the start?

_COUNTS = (2, 5, 10, 20, 50, 100, 200)
_MEASURES = {
    "relative, same space": "relative, same space",
    "relative, stitched": "relative, stitched with another random state",
}


class TrainedCount(Study):
    """Fig. 6, left, on the digits: encoder, cosines to anchors encoded again at each step, LayerNorm, a
    Linear head.

    A second network of another random state is trained on the same anchors; its head reads the first one's
    relative rows.
    """

    kind = "trained-count"
    version = 2
    title = "Number of anchors, trained"
    question = "How many anchors does a network trained on relative rows need?"
    paper = "Moschella et al. 2023, Fig. 6, left"
    options = (
        Option("architecture", "Network", ("mlp", "cnn"), "mlp"),
        Option("epochs", "Epochs", (5, 12, 20), 12),
        Option(
            "n_states",
            "Random states",
            (3, 5, 10),
            3,
            help="Each draws the anchors and both networks' first weights.",
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        shared = {name: options[name] for name in ("architecture", "epochs")}
        return grid(options, shared, n_anchors=_COUNTS)

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:

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
        baselines = (
            ("absolute, not stitched", average(table, "absolute")),
            ("chance", average(table, "chance")),
        )
        lines = tuple(lines_over(table, "n_anchors", _MEASURES))
        return {
            "accuracy": Lines(
                lines, "number of anchors", "accuracy", log_x=True, baselines=baselines, note=note
            )
        }

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        measures = {**_MEASURES, "absolute": "absolute, not stitched"}
        return findings_table(
            findings_over(
                table.rename(columns={"n_anchors": "anchors"}).sort_values("anchors"), "anchors", measures
            )
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
            f"A network that is trained on relative rows with {most} anchors reaches an accuracy of {own},"
            f" and {stitched} stitched with another random state; one that is trained on absolute rows"
            f" reaches {absolute}."
        )


# Networks trained with relative representations inside: the anchors are encoded again at each step, without a
# gradient.
#
# As in the authors' code a LayerNorm stands between the relative rows and the head. Without it the head
# learns the spread that the cosines have in its own network: measured on the digits with 200 anchors, it then
# answers .51 of another network's rows rightly, and .94 with it.

_BATCH = 64


def absolute_and_relative_accuracy(
    specs: Sequence[SweptVision], dataset: Dataset, n_anchors: int, random_state: int, report: Report
) -> dict[str, float]:
    """Test accuracies of two networks that share `n_anchors` random training pictures.

    "absolute": the first one with a head on its absolute rows; "relative, same space": with a head on its
    relative ones; "relative, stitched": the first one's relative rows read by the second one's head; "chance"
    and "test rows".
    """
    import torch

    parts = split_pictures(dataset)
    anchors = np.sort(np.random.default_rng(random_state).choice(parts.train, n_anchors, replace=False))
    images, targets = torch.from_numpy(parts.pixels), torch.from_numpy(parts.classes)
    test, truth = images[parts.test], parts.classes[parts.test]
    told = [f"network {number} of 3" for number in (1, 2, 3)]
    report(0, 3, told[0])
    encode, head = _trained(specs[0], images, targets, parts.train, None)
    accuracy = {"absolute": _share(head(encode(test)), truth)}
    models = []
    for number, spec in enumerate(specs[:2], start=1):
        report(number, 3, told[number])
        models.append(_trained(spec, images, targets, parts.train, anchors))
    (encode, head), (_, other_head) = models
    with torch.inference_mode():
        rows = encode(test)
        accuracy["relative, same space"] = _share(head(rows), truth)
        accuracy["relative, stitched"] = _share(other_head(rows), truth)
    majority = np.bincount(parts.classes[parts.train]).argmax()
    return accuracy | {"chance": float(np.mean(truth == majority)), "test rows": len(truth)}


def _trained(spec: SweptVision, images, targets, train: np.ndarray, anchors: np.ndarray | None):
    """The trained function from pictures to what the head reads, and the head."""
    import torch
    from torch.nn.functional import cross_entropy, normalize

    with reproducible(spec.random_state):
        model = new_network(spec, tuple(images.shape[1:]), int(targets.max()) + 1)
        if anchors is not None:
            model["head"] = relative_head(len(anchors), int(targets.max()) + 1)

        def encode(pictures):
            rows = model["encoder"](pictures)
            if anchors is None:
                return rows
            with torch.no_grad():
                fixed = normalize(model["encoder"](images[anchors]))
            return normalize(rows) @ fixed.T

        optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
        for _ in range(spec.epochs):
            model.train()
            for batch in torch.from_numpy(train)[torch.randperm(len(train))].split(_BATCH):
                loss = cross_entropy(model["head"](encode(images[batch])), targets[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        model.eval()
    return encode, model["head"]


def relative_head(n_anchors: int, n_classes: int):
    """LayerNorm, then Linear: the head on relative rows (n, k) of a network that is trained along."""
    from torch import nn

    return nn.Sequential(nn.LayerNorm(n_anchors), nn.Linear(n_anchors, n_classes))


def _share(scores, truth: np.ndarray) -> float:
    return float((scores.detach().argmax(dim=1).numpy() == truth).mean())
