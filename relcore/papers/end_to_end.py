"""Table 2 of the first paper on pictures: a CNN and its head trained together, on absolute and on relative rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relcore.determinism import reproducible
from relcore.papers.local import picture_spec
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped
from relcore.progress import Report
from relcore.reconstructing.pictures import Pictures, load_pictures
from relcore.reconstructing.result import balanced_anchors
from relcore.sources.datasets import load_dataset
from relcore.sources.small_networks import small_network
from relcore.store import Store

if TYPE_CHECKING:
    import torch

_BATCH = 100
_LEARNING_RATE = 2e-3
_AT_ONCE = 500

Classify = Callable[[np.ndarray], np.ndarray]  # (n, height, width) → classes (n,)


@dataclass(frozen=True)
class EndToEnd:
    """A CNN of `width` outputs and a linear head, trained for `epochs`; relative where there are anchors.

    Relative: cosines of the outputs to those of the anchors, LayerNorm, Linear. The anchors are encoded again at every step,
    without a gradient. Absolute: LayerNorm, Linear on the outputs.
    """

    width: int = 200
    epochs: int = 5


def pictures(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 on pictures held out from training and anchors, both kinds of rows with the same first weights of the CNN."""
    spec = picture_spec(settings["data"], settings["n_train"], settings["image_size"])
    found = load_pictures(load_dataset(spec.dataset, store), spec, report)
    network = EndToEnd(settings["width"], settings["epochs"])
    states, rows = settings["random_states"], []
    for done, state in enumerate(states):
        anchors = balanced_anchors(found.train, found.train_labels, settings["n_anchors"], state)
        scores = {}
        for number, (label, chosen) in enumerate((("absolute", None), ("relative", anchors))):
            report(2 * done + number, 2 * len(states), f"{label}, random state {state}")
            scores[label] = held_out_f1(found, fit_end_to_end(found, chosen, network, state))
        facts = {"metric": "weighted F1", "n": len(found.test)}
        chance = {"baseline": held_out_f1(found, always_the_largest(found))}
        rows += [{"label": label, "value": value, **facts, **chance} for label, value in scores.items()]
        rows.append(
            {"label": "relative − absolute", "value": scores["relative"] - scores["absolute"], **facts, "unit": "−1 … 1"}
        )
    return Measured(grouped(rows))


def fit_end_to_end(found: Pictures, anchors: np.ndarray | None, spec: EndToEnd, random_state: int) -> Classify:
    """Train on the training pictures with Adam and one thread: equal random states give equal networks.

    Parameters
    ----------
    anchors : array (k,), optional
        Row numbers of training pictures; none: absolute.
    """
    import torch
    from torch import nn

    classes, targets = np.unique(found.train_labels.astype(str), return_inverse=True)
    mean, deviation = found.train.mean(), max(float(found.train.std()), 1e-6)

    def pixels(images: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(((images - mean) / deviation).astype(np.float32))[:, None]

    images, truth = pixels(found.train), torch.from_numpy(targets.astype(np.int64))
    fixed = None if anchors is None else images[torch.from_numpy(anchors)]
    with reproducible(random_state):
        encoder = small_network("cnn", 1, found.train.shape[1:], spec.width)
        read = spec.width if fixed is None else len(fixed)
        head = nn.Sequential(nn.LayerNorm(read), nn.Linear(read, len(classes)))

        def scores(batch: torch.Tensor) -> torch.Tensor:
            rows = encoder(batch)
            if fixed is None:
                return head(rows)
            with torch.no_grad():
                basis = nn.functional.normalize(encoder(fixed))
            return head(nn.functional.normalize(rows) @ basis.T)

        both = nn.ModuleList([encoder, head])
        optimiser = torch.optim.Adam(both.parameters(), _LEARNING_RATE)
        for _ in range(spec.epochs):
            both.train()
            for batch in torch.randperm(len(images)).tensor_split(max(1, len(images) // _BATCH)):
                loss = nn.functional.cross_entropy(scores(images[batch]), truth[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        both.eval()

    def classify(asked: np.ndarray) -> np.ndarray:
        with torch.inference_mode(), reproducible(random_state):
            parts = [scores(part).argmax(dim=1).numpy() for part in pixels(asked).split(_AT_ONCE)]
        return classes[np.concatenate(parts)]

    return classify


def held_out_f1(found: Pictures, classify: Classify) -> float:
    """Weighted F1 on the test pictures, 0 … 1."""
    from sklearn.metrics import f1_score

    return float(f1_score(found.test_labels.astype(str), classify(found.test), average="weighted", zero_division=0))


def always_the_largest(found: Pictures) -> Classify:
    """A classifier that always predicts the most frequent class of the training pictures."""
    names, counts = np.unique(found.train_labels.astype(str), return_counts=True)
    return lambda asked: np.full(len(asked), names[counts.argmax()])
