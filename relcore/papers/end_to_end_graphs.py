"""Table 2 of the first paper on graphs: a graph network and its head trained together, on absolute and on relative rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relcore.determinism import reproducible
from relcore.evaluation import Split, row_keys
from relcore.papers.local import graph
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped
from relcore.progress import Report
from relcore.store import Store

if TYPE_CHECKING:
    import torch

_DROPOUT = 0.5
_LEARNING_RATE = 0.02  # both as in the reference of the paper's Table 8


@dataclass(frozen=True)
class Nodes:
    """A graph: features (n, d) whose rows sum to 1, neighbours (n, n), both sparse; names of the classes (n,), ids (n,)."""

    features: torch.Tensor
    neighbours: torch.Tensor
    labels: np.ndarray
    ids: np.ndarray


def graphs(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 on nodes that are neither trained on nor anchors, by graph; the network sees their features and edges."""
    steps = [(name, state) for name in settings["graphs"] for state in settings["random_states"]]
    loaded, rows = {name: load_nodes(name, store) for name in settings["graphs"]}, []
    for done, (name, state) in enumerate(steps):
        report(done, len(steps), f"{name}, random state {state}")
        nodes = loaded[name]
        split = parted(nodes, settings["n_anchors"], state)
        scores = {
            kind: weighted_f1(nodes, split, trained_answers(nodes, split, kind, settings["width"], settings["epochs"]))
            for kind in ("absolute", "relative")
        }
        largest = np.unique(nodes.labels[split.known], return_counts=True)
        chance = weighted_f1(nodes, split, np.full(len(nodes.labels), largest[0][largest[1].argmax()]))
        facts = {"metric": "weighted F1", "n": len(split.test)}
        rows += [{"label": f"{name}, {kind}", "value": score, "baseline": chance, **facts} for kind, score in scores.items()]
        difference = scores["relative"] - scores["absolute"]
        rows.append({"label": f"{name}, relative − absolute", "value": difference, "unit": "−1 … 1", **facts})
    return Measured(grouped(rows))


def load_nodes(name: str, store: Store) -> Nodes:
    """One of Planetoid's graphs from the data folder; errors as in `load_dataset`."""
    from relcore.sources.graphs import neighbour_matrix

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

    Two graph convolutions (Kipf and Welling 2017) of `width`, LayerNorm and Linear; relative: the cosines to the anchors' rows,
    which pass no gradient, before the LayerNorm. Adam, all nodes at once, the weights of the last epoch, one thread.
    """
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, dropout, normalize

    classes, targets = np.unique(nodes.labels, return_inverse=True)
    truth, known, anchors = (torch.from_numpy(one) for one in (targets.astype(np.int64), split.known, split.anchors))
    read = width if kind == "absolute" else len(anchors)
    with reproducible(split.random_state):
        layers = nn.ModuleList([nn.Linear(nodes.features.shape[1], width), nn.Linear(width, width)])
        head = nn.Sequential(nn.LayerNorm(read), nn.Linear(read, len(classes)))

        def scores(training: bool) -> torch.Tensor:
            # What is 0 stays 0, so dropping among the entries that are not 0 is dropping among all.
            seen = dropout(nodes.features.values(), _DROPOUT, training)
            seen = torch.sparse_coo_tensor(nodes.features.indices(), seen, nodes.features.shape, check_invariants=True)
            rows = nodes.neighbours @ (torch.sparse.mm(seen, layers[0].weight.T) + layers[0].bias)
            rows = nodes.neighbours @ layers[1](dropout(rows.relu(), _DROPOUT, training))
            if kind == "absolute":
                return head(rows)
            rows = normalize(rows)
            return head(rows @ rows[anchors].detach().T)

        weights = [*layers.parameters(), *head.parameters()]
        optimiser = torch.optim.Adam(weights, _LEARNING_RATE)
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
