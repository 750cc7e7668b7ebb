"""Rescale injection inside a network (Fig. 2 of Maiorca et al. 2024): accuracy over layer × length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.inverting.domain_spaces import trained_weights
from relcore.progress import Context
from relcore.rescaling.networks import fit_plain_mlp, rescale_layers
from relcore.sources.dataset import DatasetSpec, evenly
from relcore.sources.datasets import load_dataset
from relcore.sources.encoder import Encoder, TrainedEncoder
from relcore.sources.open_networks import OpenNetwork, open_network
from relcore.sources.small_vision import held_out_rows
from relcore.spaces import SpaceError
from relcore.store import Store

Report = Callable[..., None]


@dataclass(frozen=True)
class LayerRescaleSpec:
    """How many items, and which lengths.

    Attributes
    ----------
    n_train, n_test : int
        Items that the head is trained on, and those that run through the network once a layer and length; as many of each
        class, from the rows that a small network was trained on and from those that it was not.
    span, n_alphas : float, int
        Lengths from the layers' common mean (geometric) over `span` to `span` times it, evenly on a logarithmic axis.
    random_state : int
        Draws the head's first weights.
    """

    n_train: int = 400
    n_test: int = 100
    span: float = 16.0
    n_alphas: int = 9
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, least in (("n_train", 10), ("n_test", 2), ("n_alphas", 2), ("random_state", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise SpaceError(f"{name}: expected a whole number from {least}, got {value!r}")
        if not isinstance(self.span, int | float) or not 1 < self.span <= 1e4:
            raise SpaceError(f"span: expected a factor above 1, at most 10,000, got {self.span!r}")

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> LayerRescaleSpec:
        """Back from ``dataclasses.asdict``; unknown or misplaced settings are a SpaceError."""
        try:
            return cls(**record)
        except TypeError as error:
            raise SpaceError(f"rescale: unknown or misplaced setting ({error})") from error


@dataclass(frozen=True)
class LayerRescaleResult:
    """Accuracy with one layer's output at a length.

    Attributes
    ----------
    layers : l names
    lengths : l mean lengths of the layers' own vectors
    alphas : a lengths
    accuracy : l × a
    changed : l × a
        Share of items that are answered rightly there and wrongly by the network as it is, or the other way about; () in
        results of an older version.
    own, chance : float
        Of the network as it is; of the most frequent class among the head's training items.
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
    changed: tuple[tuple[float, ...], ...] = ()

    def nearest(self, layer: str) -> tuple[float, float]:
        """Accuracy and share of changed items at the length nearest to the layer's own mean."""
        row = self.layers.index(layer)
        at = int(np.abs(np.log(np.array(self.alphas) / self.lengths[row])).argmin())
        return self.accuracy[row][at], self.changed[row][at]

    def table(self) -> pd.DataFrame:
        """A row a layer: its mean length, the accuracy nearest to it, the least of all; as it is, chance, test items."""
        rows = []
        for layer, length, line in zip(self.layers, self.lengths, self.accuracy, strict=True):
            nearest = int(np.abs(np.log(np.array(self.alphas) / length)).argmin())
            rows.append((layer, length, line[nearest], min(line), self.own, self.chance, self.n_test))
        columns = ["layer", "mean length", "at about its mean", "least of all", "as it is", "chance", "test items"]
        return pd.DataFrame(rows, columns=columns)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, as a store keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> LayerRescaleResult:
        """Back from `to_json`."""
        plain = {name: tuple(record[name]) for name in ("layers", "lengths", "alphas")}
        cells = {name: tuple(map(tuple, record.get(name, ()))) for name in ("accuracy", "changed")}
        return cls(**{**record, **plain, **cells, "spec": LayerRescaleSpec.from_json(record["spec"])})


def rescale_network(
    dataset: DatasetSpec, encoder: Encoder, store: Store, spec: LayerRescaleSpec | None = None, report: Report | None = None
) -> LayerRescaleResult:
    """Train a plain ReLU head on the network's encodings, then rescale one layer at a time beneath it.

    Raises
    ------
    SpaceError
        A dataset without labels or with one class, an encoder whose layers cannot be opened.
    """
    spec, report = spec or LayerRescaleSpec(), report or (lambda *told: None)
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


def rescale_layers_job(context: Context, *, dataset: DatasetSpec, encoder: Encoder, spec: LayerRescaleSpec) -> None:
    """`rescale_network` as a job of the Engine."""
    found = rescale_network(dataset, encoder, context.store, spec, context.report)
    context.put({}, {"rescale": found.to_json()})


def _rows(labels: np.ndarray, spec: LayerRescaleSpec) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train the head on and to test with, of labelled items; none in both."""
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
    """Mean length of the vectors that each layer gives as it is."""
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
