"""Networks trained with relative representations inside: the anchors are encoded again at each step, without a gradient.

As in the authors' code a LayerNorm stands between the relative rows and the head. Without it the head learns the spread that
the cosines have in its own network: measured on the digits with 200 anchors, it then answers .51 of another network's rows
rightly, and .94 with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.determinism import reproducible
from relcore.progress import Report
from relcore.sources.dataset import Dataset
from relcore.sources.swept_vision import SweptVision, new_network, split_pictures

_BATCH = 64


def absolute_and_relative_accuracy(
    specs: Sequence[SweptVision], dataset: Dataset, n_anchors: int, random_state: int, report: Report
) -> dict[str, float]:
    """Test accuracies of two networks that share `n_anchors` random training pictures.

    "absolute": the first one with a head on its absolute rows; "relative, same space": with a head on its relative ones;
    "relative, stitched": the first one's relative rows read by the second one's head; "chance" and "test rows".
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
