"""Rescale injection inside a network (Fig. 2 of Maiorca et al. 2024): accuracy by layer and length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.inverting.domain_spaces import trained_weights
from relcore.progress import Report, silent
from relcore.rescaling.injection import fit_plain_mlp, rescale_layers
from relcore.sources.dataset import DatasetSpec, evenly
from relcore.sources.datasets import load_dataset
from relcore.sources.encoder import Encoder, TrainedEncoder
from relcore.sources.open_networks import OpenNetwork, open_network
from relcore.sources.small_vision import held_out_rows
from relcore.spaces import LatentSpace, SpaceError, need_whole
from relcore.store import Store
from relcore.task import Task


@dataclass(frozen=True)
class LayerRescaleSpec:
    """How many items, and which lengths.

    Attributes
    ----------
    n_train, n_test : int
        Number of items to train the head on, and of held-out items, each of which runs through the network once per layer
        and length. Classes are balanced. Training items are those that a small network may be trained on.
    span, n_alphas : float, int
        Lengths from the geometric mean over the layers divided by `span` to the mean times `span`, evenly on a logarithmic
        axis.
    random_state : int
        Draws the head's first weights.
    """

    n_train: int = 400
    n_test: int = 100
    span: float = 16.0
    n_alphas: int = 9
    random_state: int = 0

    def __post_init__(self) -> None:
        need_whole(self, n_train=10, n_test=2, n_alphas=2, random_state=0)
        if not 1 < self.span <= 1e4:
            raise SpaceError(f"span: expected a factor above 1, at most 10,000, got {self.span!r}")


@dataclass(frozen=True)
class LayerRescale(Task["LayerRescaleResult"]):
    """`rescale_network` of this dataset and encoder; `dataset_digest` tells the content of the dataset, for the key."""

    kind: ClassVar[str] = "rescale-layers"
    result: ClassVar[str] = "relcore.rescaling.layer_lengths:LayerRescaleResult"

    dataset: DatasetSpec
    encoder: Encoder
    spec: LayerRescaleSpec = LayerRescaleSpec()
    dataset_digest: str = ""

    @property
    def title(self) -> str:
        return f"Rescale, {self.encoder.title}"

    def content(self, spaces: Sequence[LatentSpace] = ()) -> str:
        """The files of the encoder's model; the dataset's content is a setting."""
        return self.encoder.content()

    def seconds(self, spaces: Sequence[LatentSpace] = ()) -> float:
        """One pass of the held-out items per layer and length, the head's items once, and the training of the encoder."""
        data, small = load_dataset(self.dataset), isinstance(self.encoder, TrainedEncoder)
        pixels = int(np.prod(data.item(0).size)) if data.kind == "images" else 64
        each = 1e-4 * pixels / 64 if small else 54 / 2000  # measured: digits, and sentences through MiniLM
        passes = self.spec.n_test * ((4 if small else 7) * self.spec.n_alphas + 2) + self.spec.n_train
        training = self.encoder.seconds(len(data), pixels) if small else 5.0
        return (training or 5.0) + each * passes

    def run(
        self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent
    ) -> LayerRescaleResult:
        return rescale_network(self.dataset, self.encoder, store or Store(), self.spec, report)


@dataclass(frozen=True)
class LayerRescaleResult:
    """Accuracy with the output of one layer rescaled to a length, 0 … 1.

    Attributes
    ----------
    layers : l names
    lengths : l mean lengths of the layers' own vectors
    alphas : a lengths
    accuracy : l × a
    changed : l × a
        Share of items whose answer is right here and wrong without rescaling, or wrong here and right without.
    own, chance : float
        Accuracy without rescaling; accuracy of always answering the most frequent class of the head's training items.
    """

    spec: LayerRescaleSpec
    name: str
    layers: tuple[str, ...]
    lengths: tuple[float, ...]
    alphas: tuple[float, ...]
    accuracy: tuple[tuple[float, ...], ...]
    own: float
    chance: float
    n_train: int
    n_test: int
    changed: tuple[tuple[float, ...], ...]

    def nearest(self, layer: str) -> tuple[float, float]:
        """Accuracy and share of changed items at the length nearest to the layer's own mean."""
        row = self.layers.index(layer)
        at = int(np.abs(np.log(np.array(self.alphas) / self.lengths[row])).argmin())
        return self.accuracy[row][at], self.changed[row][at]

    def table(self) -> pd.DataFrame:
        """A row per layer: its mean length, accuracy nearest to it, least accuracy, not rescaled, chance, test items."""
        rows = []
        for layer, length, line in zip(self.layers, self.lengths, self.accuracy, strict=True):
            nearest = int(np.abs(np.log(np.array(self.alphas) / length)).argmin())
            rows.append((layer, length, line[nearest], min(line), self.own, self.chance, self.n_test))
        columns = ["layer", "mean length", "at about its mean", "least of all", "as it is", "chance", "test items"]
        return pd.DataFrame(rows, columns=columns)


def rescale_network(
    dataset: DatasetSpec,
    encoder: Encoder,
    store: Store,
    spec: LayerRescaleSpec = LayerRescaleSpec(),
    report: Report = silent,
) -> LayerRescaleResult:
    """Train a plain ReLU head on the network's encodings, then rescale the output of one layer at a time.

    Raises
    ------
    SpaceError
        A dataset without labels or with one class, an encoder whose layers cannot be opened.
    """
    data = load_dataset(dataset, store)
    if data.labels is None:
        raise SpaceError(f"{data.name!r}: expected labels to train a head on, got none; choose a labelled dataset")
    train, test = _rows(data.labels, spec)
    report(0, 1, f"opening {encoder.title}")
    weights = trained_weights(encoder, data, store, report) if isinstance(encoder, TrainedEncoder) else None
    network = open_network(encoder, data, report, weights)
    _, targets = np.unique(data.labels[np.concatenate([train, test])].astype(str), return_inverse=True)
    truth = targets[len(train) :]
    report(0, 1, f"a head on {len(train):,} items")
    answer = fit_plain_mlp(network.encode([data.item(row) for row in train]), targets[: len(train)], "relu", spec.random_state)
    items = [data.item(row) for row in test]
    lengths = _mean_lengths(network, items)
    center = np.exp(np.mean(np.log(list(lengths.values()))))
    alphas = tuple(float(f"{alpha:.5g}") for alpha in center * np.geomspace(1 / spec.span, spec.span, spec.n_alphas))
    done, total = iter(range(10**9)), len(lengths) * len(alphas) + 1

    def encode() -> np.ndarray:
        report(next(done), total, f"{len(items):,} items, one layer at one length at a time")
        return network.encode(items)

    table = rescale_layers(network.layers, encode, answer, truth, alphas)
    inside = table[table["layer"] != ""].pivot(index="layer", columns="alpha").loc[list(lengths)]
    chance = float(np.mean(truth == np.bincount(targets[: len(train)]).argmax()))
    return LayerRescaleResult(
        spec,
        f"{encoder.title} · {data.name}",
        tuple(lengths),
        tuple(lengths.values()),
        alphas,
        tuple(map(tuple, inside["accuracy"].to_numpy().tolist())),
        float(table["accuracy"][0]),
        chance,
        len(train),
        len(test),
        tuple(map(tuple, inside["changed"].to_numpy().tolist())),
    )


def _rows(labels: np.ndarray, spec: LayerRescaleSpec) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train the head on, and held-out rows, among the labelled items."""
    held_out = held_out_rows(len(labels))
    parts = []
    for rows, n in ((np.setdiff1d(np.arange(len(labels)), held_out), spec.n_train), (held_out, spec.n_test)):
        rows = rows[labels[rows] != ""]
        parts.append(rows[evenly(labels[rows], n)])
    train, test = parts
    test = test[np.isin(labels[test].astype(str), labels[train].astype(str))]
    if len(np.unique(labels[train].astype(str))) < 2 or not len(test):
        raise SpaceError(f"expected labelled items of two classes or more, got {len(train)} to train on; take more items")
    return train, test


def _mean_lengths(network: OpenNetwork, items: Sequence[Any]) -> dict[str, float]:
    """Mean length of the output vectors of each layer, without rescaling."""
    found: dict[str, list[float]] = {name: [] for name in network.layers}

    def watch(name: str) -> Callable:
        def hook(_module: Any, _inputs: tuple, output: Any) -> None:
            vectors = output[0] if isinstance(output, tuple) else output
            found[name].append(float(vectors.float().norm(dim=-1).mean()))

        return hook

    with ExitStack() as stack:
        for name, module in network.layers.items():
            stack.callback(module.register_forward_hook(watch(name)).remove)
        network.encode(list(items))
    return {name: float(np.mean(lengths)) for name, lengths in found.items() if lengths}
