"""Figures of rescale injection: curves of small networks, and layer × length of a large one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relcore.charts.lines import Line, Lines
from relcore.figures.export import Exportable, lines_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.numbers import general, short
from relcore.recipe import Recipe, load_all, need_same_datasets
from relcore.rescaling.input_lengths import NETWORKS, InputRescaleResult, InputRescaleSpec
from relcore.rescaling.layer_lengths import LayerRescale, LayerRescaleResult, LayerRescaleSpec
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder
from relcore.spaces import SpaceError


@dataclass(frozen=True, kw_only=True)
class RescaleInput(Recipe):
    """Accuracy by the length of the rows, one line per network (Fig. 4 of Maiorca et al. 2024); `spaces` is one space."""

    figure: ClassVar[str] = "rescale-input"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    spec: InputRescaleSpec = InputRescaleSpec()

    def __post_init__(self) -> None:
        if len(self.spaces) != 1:
            raise SpaceError(f"recipe of rescale-input: expected one space, got {len(self.spaces)}")

    def draw(self, result: InputRescaleResult | None = None) -> Exportable:
        result = result or self.spec.run(load_all(self.spaces, self.digests, self.figure))
        return lines_exportable(_curves(result), self.to_json(), "relscope-rescale-input", result.table)


@dataclass(frozen=True, kw_only=True)
class RescaleLayers(Recipe):
    """Accuracy by layer and length (Fig. 2 of the same)."""

    figure: ClassVar[str] = "rescale-layers"
    newer: ClassVar[tuple[str, ...]] = ("dataset_digest",)

    dataset: DatasetSpec
    encoder: Encoder
    spec: LayerRescaleSpec = LayerRescaleSpec()
    dataset_digest: str = ""

    def draw(self, result: LayerRescaleResult | None = None) -> Exportable:
        if result is None:
            need_same_datasets((self.dataset,), (self.dataset_digest,), self.figure)
        result = result or LayerRescale(self.dataset, self.encoder, self.spec).run()
        return matrices_exportable(_layers(result), self.to_json(), "relscope-rescale-layers", result.table)


def _curves(result: InputRescaleResult) -> Lines:
    lines = []
    for network in result.spec.networks:
        mean, low, high = result.curve(network)
        band = {"low": np.maximum(low, 0), "high": np.minimum(high, 1)} if len(result.spec.random_states) > 1 else {}
        lines.append(Line(NETWORKS[network], result.alphas, mean, **band))
    own = float(np.mean([result.own[network] for network in result.spec.networks]))
    n_states = len(result.spec.random_states)
    states = f"mean of {n_states} random states, band ± 1 deviation" if n_states > 1 else "1 random state"
    return Lines(
        tuple(lines),
        "length α of every row",
        "accuracy",
        log_x=True,
        baselines=(("rows as they are", own), ("chance", result.chance)),
        marks=(("mean length", result.mean_length),),
        note=f"{result.name}: {result.n_test:,} held-out rows of {result.n_classes} classes; {states}",
        y_range=(0, 1.03),
    )


def _layers(result: LayerRescaleResult) -> Matrices:
    values = np.array(result.accuracy)
    rows = tuple(f"{layer}  ({general(length)})" for layer, length in zip(result.layers, result.lengths, strict=True))
    nearest = [int(np.abs(np.log(np.array(result.alphas) / length)).argmin()) for length in result.lengths]
    columns = tuple(float(f"{alpha:.3g}") for alpha in result.alphas)
    note = f"not rescaled {short(result.own)}, chance {short(result.chance)}; {result.n_test:,} held-out items"
    marked = tuple(enumerate(nearest))
    panel = MatrixPanel(
        result.name,
        rows,
        columns,
        values,
        note=f"{note}; in brackets: the layer's own mean length, dotted: the nearest α",
        marked=marked,
    )
    least = ", ".join(f"{layer} {short(min(line), 2)}" for layer, line in zip(result.layers, result.accuracy, strict=True))
    alt = f"Heat map of accuracy, layer by length, of {result.name}; {note}. Least of each layer: {least}."
    return Matrices((panel,), (0.0, 1.0), "accuracy", alt, "layer", "length α of its vectors")
