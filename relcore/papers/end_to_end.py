"""Table 2 of the first paper on pictures: a CNN and its head trained together, on absolute and on relative
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.torch_state import reproducible
from relcore.encoders.datasets import load_dataset
from relcore.encoders.small_vision import small_network
from relcore.papers.local import graph, picture_spec
from relcore.papers.ours import grouped
from relcore.papers.runs import Measured, Settings
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.spaces.split import Split, row_keys
from relcore.stitch.autoencoders import Pictures, load_pictures
from relcore.stitch.reconstruction import balanced_anchors

if TYPE_CHECKING:
    import torch


_BATCH = 100
_LEARNING_RATE = 2e-3
_AT_ONCE = 500

Classify = Callable[[np.ndarray], np.ndarray]  # (n, height, width) → classes (n,)


@dataclass(frozen=True)
class EndToEnd:
    """A CNN of `width` outputs and a linear head, trained for `epochs`; relative where there are anchors.

    Relative: cosines of the outputs to those of the anchors, LayerNorm, Linear. The anchors are encoded again
    at every step, without a gradient. Absolute: LayerNorm, Linear on the outputs.
    """

    width: int = 200
    epochs: int = 5


def pictures(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 on pictures held out from training and anchors, both kinds of rows with the same first
    weights of the CNN.
    """
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
            {
                "label": "relative − absolute",
                "value": scores["relative"] - scores["absolute"],
                **facts,
                "unit": "−1 … 1",
            }
        )
    return Measured(grouped(rows))


def fit_end_to_end(
    found: Pictures, anchors: np.ndarray | None, spec: EndToEnd, random_state: int
) -> Classify:
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

    return float(
        f1_score(found.test_labels.astype(str), classify(found.test), average="weighted", zero_division=0)
    )


def always_the_largest(found: Pictures) -> Classify:
    """A classifier that always predicts the most frequent class of the training pictures."""
    names, counts = np.unique(found.train_labels.astype(str), return_counts=True)
    return lambda asked: np.full(len(asked), names[counts.argmax()])


# Table 2 of the first paper on graphs: a graph network and its head trained together, on absolute and on
# relative rows.

_DROPOUT = 0.5
_END_TO_END_GRAPHS_LEARNING_RATE = 0.02  # both as in the reference of the paper's Table 8


@dataclass(frozen=True)
class Nodes:
    """A graph: features (n, d) whose rows sum to 1, neighbours (n, n), both sparse; names of the classes
    (n,), ids (n,).
    """

    features: torch.Tensor
    neighbours: torch.Tensor
    labels: np.ndarray
    ids: np.ndarray


def graphs(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 on nodes that are neither trained on nor anchors, by graph; the network sees their
    features and edges.
    """
    steps = [(name, state) for name in settings["graphs"] for state in settings["random_states"]]
    loaded, rows = {name: load_nodes(name, store) for name in settings["graphs"]}, []
    for done, (name, state) in enumerate(steps):
        report(done, len(steps), f"{name}, random state {state}")
        nodes = loaded[name]
        split = parted(nodes, settings["n_anchors"], state)
        scores = {
            kind: weighted_f1(
                nodes, split, trained_answers(nodes, split, kind, settings["width"], settings["epochs"])
            )
            for kind in ("absolute", "relative")
        }
        largest = np.unique(nodes.labels[split.known], return_counts=True)
        chance = weighted_f1(nodes, split, np.full(len(nodes.labels), largest[0][largest[1].argmax()]))
        facts = {"metric": "weighted F1", "n": len(split.test)}
        rows += [
            {"label": f"{name}, {kind}", "value": score, "baseline": chance, **facts}
            for kind, score in scores.items()
        ]
        difference = scores["relative"] - scores["absolute"]
        rows.append({"label": f"{name}, relative − absolute", "value": difference, "unit": "−1 … 1", **facts})
    return Measured(grouped(rows))


def load_nodes(name: str, store: Store) -> Nodes:
    """One of Planetoid's graphs from the data folder; errors as in `load_dataset`."""
    from relcore.encoders.graphs import neighbour_matrix

    dataset = graph(name, store)
    data = dataset.graph()
    features = data.x.float() / data.x.float().sum(dim=1, keepdim=True).clamp(min=1)
    neighbours = neighbour_matrix(data.edge_index, len(features), normalise=True)
    return Nodes(features.to_sparse().coalesce(), neighbours, dataset.labels.astype(str), dataset.ids)


def parted(nodes: Nodes, n_anchors: int, random_state: int) -> Split:
    """Anchors and test nodes from streams of their own; each class has a node to train on."""
    keys = row_keys(nodes.ids, "graph anchors", random_state)
    anchors = np.argsort(keys, kind="stable")[:n_anchors]
    return Split.draw(nodes.ids, anchors=anchors, labels=nodes.labels, random_state=random_state)


def trained_answers(nodes: Nodes, split: Split, kind: str, width: int, epochs: int) -> np.ndarray:
    """The class that a network predicts for each node, (n,), trained on anchors and training nodes.

    Two graph convolutions (Kipf and Welling 2017) of `width`, LayerNorm and Linear; relative: the cosines to
    the anchors' rows, which pass no gradient, before the LayerNorm. Adam, all nodes at once, the weights of
    the last epoch, one thread.
    """
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, dropout, normalize

    classes, targets = np.unique(nodes.labels, return_inverse=True)
    truth, known, anchors = (
        torch.from_numpy(one) for one in (targets.astype(np.int64), split.known, split.anchors)
    )
    read = width if kind == "absolute" else len(anchors)
    with reproducible(split.random_state):
        layers = nn.ModuleList([nn.Linear(nodes.features.shape[1], width), nn.Linear(width, width)])
        head = nn.Sequential(nn.LayerNorm(read), nn.Linear(read, len(classes)))

        def scores(training: bool) -> torch.Tensor:
            # What is 0 stays 0, so dropping among the entries that are not 0 is dropping among all.
            seen = dropout(nodes.features.values(), _DROPOUT, training)
            seen = torch.sparse_coo_tensor(
                nodes.features.indices(), seen, nodes.features.shape, check_invariants=True
            )
            rows = nodes.neighbours @ (torch.sparse.mm(seen, layers[0].weight.T) + layers[0].bias)
            rows = nodes.neighbours @ layers[1](dropout(rows.relu(), _DROPOUT, training))
            if kind == "absolute":
                return head(rows)
            rows = normalize(rows)
            return head(rows @ rows[anchors].detach().T)

        weights = [*layers.parameters(), *head.parameters()]
        optimiser = torch.optim.Adam(weights, _END_TO_END_GRAPHS_LEARNING_RATE)
        for _ in range(epochs):
            loss = cross_entropy(scores(True)[known], truth[known])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            return classes[scores(False).argmax(dim=1).numpy()]


def weighted_f1(nodes: Nodes, split: Split, answers: np.ndarray) -> float:
    """Over the test nodes, 0 … 1."""
    from sklearn.metrics import f1_score

    return float(f1_score(nodes.labels[split.test], answers[split.test], average="weighted", zero_division=0))


# Fig. 6 (left) of the first paper: a graph network trained along with its relative rows, by number of
# anchors.


def by_count(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 on held-out nodes by number of anchors, and of the same network on absolute rows."""
    nodes = load_nodes(settings["graph"], store)
    steps = [(count, state) for count in settings["n_anchors"] for state in settings["random_states"]]
    rows = []
    for done, (count, state) in enumerate(steps):
        report(done, len(steps), f"{count} anchors, random state {state}")
        split = parted(nodes, count, state)
        answers = trained_answers(nodes, split, "relative", settings["width"], settings["epochs"])
        told = {
            "label": f"{count} anchors",
            "metric": "relative: weighted F1",
            "value": weighted_f1(nodes, split, answers),
        }
        rows.append({**told, "n": len(split.test)})
    return Measured(grouped(rows))
