"""Figures of rescale injection from their recipes: curves of small networks, and layer × length of a large one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from relcore import __version__
from relcore.charts.lines import Line, Lines
from relcore.figures.export import Exportable, lines_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.recipe import load_all, need_settings, object_of, specs_of, strings_of
from relcore.rescaling.input import NETWORKS, InputRescaleResult, InputRescaleSpec, rescale_input
from relcore.rescaling.layers import LayerRescaleResult, LayerRescaleSpec, rescale_network
from relcore.sources.catalog import SpaceSpec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder, encoder_from_json, encoder_to_json
from relcore.spaces import SpaceError
from relcore.store import Store


def draw_rescale_input(
    space: SpaceSpec, spec: InputRescaleSpec, digest: str = "", result: InputRescaleResult | None = None
) -> Exportable:
    """Accuracy over the length of the rows, a line a network (Fig. 4 of Maiorca et al. 2024)."""
    if result is None:
        (loaded,) = load_all([space], [digest], "rescale-input")
        result = rescale_input(loaded, spec)
    recipe = {"relscope": __version__, "figure": "rescale-input", "spaces": [space.to_json()], "digests": [digest]}
    recipe["spec"] = _plain(asdict(spec))
    return lines_exportable(_curves(result), recipe, "relscope-rescale-input", result.table)


def draw_rescale_layers(
    dataset: DatasetSpec, encoder: Encoder, spec: LayerRescaleSpec, result: LayerRescaleResult | None = None
) -> Exportable:
    """Accuracy over layer × length (Fig. 2 of the same)."""
    if result is None:
        result = rescale_network(dataset, encoder, Store(), spec)
    recipe = {"relscope": __version__, "figure": "rescale-layers", "dataset": dataset.to_json()}
    recipe |= {"encoder": encoder_to_json(encoder), "spec": asdict(spec)}
    return matrices_exportable(_layers(result), recipe, "relscope-rescale-layers", result.table)


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
        note=f"{result.name}: {result.n_test:,} test rows of {result.n_classes} classes; {states}",
        y_range=(0, 1.03),
    )


def _layers(result: LayerRescaleResult) -> Matrices:
    values = np.array(result.accuracy)
    rows = tuple(f"{layer}  ({length:.3g})" for layer, length in zip(result.layers, result.lengths, strict=True))
    nearest = [int(np.abs(np.log(np.array(result.alphas) / length)).argmin()) for length in result.lengths]
    columns = tuple(float(f"{alpha:.3g}") for alpha in result.alphas)
    note = f"not rescaled {result.own:.3f}, chance {result.chance:.3f}; {result.n_test:,} test items"
    marked = tuple(enumerate(nearest))
    panel = MatrixPanel(
        result.name,
        rows,
        columns,
        values,
        note=f"{note}; in brackets each layer's own mean length, dotted the α nearest to it",
        marked=marked,
    )
    worst = ", ".join(f"{layer} {min(line):.2f}" for layer, line in zip(result.layers, result.accuracy, strict=True))
    alt = f"Heat map of accuracy, layer by length, of {result.name}; {note}. The least of each layer: {worst}."
    return Matrices((panel,), (0.0, 1.0), "accuracy", alt, "layer", "length α of its vectors")


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def _rescale_input(settings: dict[str, Any]) -> Exportable:
    need_settings(settings, ("spaces", "digests", "spec"), "rescale-input", ("spaces",))
    specs, digests = specs_of(settings, "rescale-input"), strings_of(settings, "digests", "rescale-input")
    if len(specs) != 1 or len(digests) > 1:
        raise SpaceError(f"recipe of rescale-input: expected one space, with its digest, got {len(specs)} and {len(digests)}")
    spec = InputRescaleSpec.from_json(object_of(settings, "spec", "rescale-input"))
    return draw_rescale_input(specs[0], spec, *digests)


def _rescale_layers(settings: dict[str, Any]) -> Exportable:
    need_settings(settings, ("dataset", "encoder", "spec"), "rescale-layers", ("dataset", "encoder"))
    dataset = DatasetSpec.from_json(object_of(settings, "dataset", "rescale-layers"))
    encoder = encoder_from_json(object_of(settings, "encoder", "rescale-layers"))
    return draw_rescale_layers(dataset, encoder, LayerRescaleSpec.from_json(object_of(settings, "spec", "rescale-layers")))


FIGURES = {"rescale-input": _rescale_input, "rescale-layers": _rescale_layers}
