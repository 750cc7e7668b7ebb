"""Figures of reconstruction stitching from their recipes: the grid of pictures, the table of errors, two planes turned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore import __version__
from relcore.figures.error_bars import errors_exportable
from relcore.figures.export import Exportable
from relcore.figures.picture_grid import PictureGrid, PictureRow, grid_exportable
from relcore.figures.plane_turn_figure import TurnedPlanes, turned_planes_exportable
from relcore.reconstructing.job import ReconstructionSpec, collect, reconstruct
from relcore.reconstructing.plane_turn import fit_turn
from relcore.reconstructing.reconstruction import Reconstructions
from relcore.spaces import SpaceError, quote
from relcore.store import Entry, Store

# Moschella et al. 2023, Table 3, column MNIST: five random states, 500 anchors.
PUBLISHED_MNIST = pd.DataFrame(
    [
        ("AE, absolute", "0.66 ± 0.02", "97.79 ± 2.48"),
        ("AE, relative", "1.18 ± 0.02", "2.83 ± 0.20"),
        ("VAE, absolute", "1.31 ± 0.04", "98.51 ± 1.49"),
        ("VAE, relative", "2.97 ± 0.14", "13.43 ± 6.79"),
    ],
    columns=["model", "not stitched", "stitched"],
)


def draw_grid(
    specs: Sequence[ReconstructionSpec],
    *,
    encoder_state: int,
    decoder_state: int,
    dataset_digest: str = "",
    entries: Sequence[Entry] | None = None,
) -> Exportable:
    """Pictures through the encoder of one random state and the decoder of it and of another (Fig. 4).

    Raises
    ------
    SpaceError
        Random states that were not trained, or equal ones.
    """
    found = _found(specs, dataset_digest, entries)
    states = found.random_states
    if not {encoder_state, decoder_state} <= set(states) or encoder_state == decoder_state:
        raise SpaceError(f"random states: expected two different ones of {states}, got {encoder_state} and {decoder_state}")
    grid = picture_grid(found, encoder_state, decoder_state)
    own = {"encoder_state": encoder_state, "decoder_state": decoder_state}
    return grid_exportable(grid, _recipe("reconstruction", specs, dataset_digest, own), "relscope-reconstruction")


def draw_errors(
    specs: Sequence[ReconstructionSpec], *, dataset_digest: str = "", entries: Sequence[Entry] | None = None
) -> Exportable:
    """MSE × 10³ over all test pictures, mean and deviation over runs and over pairs of runs (Table 3)."""
    table = _found(specs, dataset_digest, entries).table()
    return errors_exportable(table, _recipe("reconstruction-mse", specs, dataset_digest), "relscope-reconstruction-mse")


def draw_planes(
    spec: ReconstructionSpec,
    *,
    reference_state: int,
    moving_state: int,
    dataset_digest: str = "",
    entry: Entry | None = None,
) -> Exportable:
    """Codes of two numbers from two random states, the second turned over the first (Fig. 1).

    Raises
    ------
    SpaceError
        Random states that were not trained, a model of other codes, one that gives every picture the same code.
    """
    if spec.model.representation != "absolute" or spec.model.width != 2:
        raise SpaceError(f"planes: expected an absolute model of width 2, got {spec.model.title} of width {spec.model.width}")
    states = spec.random_states
    if not {reference_state, moving_state} <= set(states):
        raise SpaceError(f"random states: expected two of {states}, got {reference_state} and {moving_state}")
    entry = reconstruct(spec, Store(), dataset_digest) if entry is None else entry
    reference, moving = (entry.arrays["codes"][states.index(state)] for state in (reference_state, moving_state))
    names = (f"random state {reference_state}", f"random state {moving_state}")
    classes = tuple(entry.metadata["classes"])
    planes = TurnedPlanes(fit_turn(reference, moving), names, entry.arrays["labels"], classes)
    own = {"reference_state": reference_state, "moving_state": moving_state}
    return turned_planes_exportable(planes, _recipe("plane-codes", [spec], dataset_digest, own), "relscope-planes")


def picture_grid(found: Reconstructions, encoder_state: int, decoder_state: int) -> PictureGrid:
    """The rows of the grid for this pair of random states; blocks are AE and VAE."""
    i, j = (found.random_states.index(state) for state in (encoder_state, decoder_state))
    rows = []
    for title, pictures in found.pictures.items():
        family, name = title.split(", ")
        for stitched, decoder in ((False, i), (True, j)):
            rows.append(PictureRow(family, name, stitched, pictures[i, decoder], float(found.mse[title][i, decoder])))
    note = (
        f"Encoder of random state {encoder_state}, stitched to the decoder of {decoder_state}; {found.n_test:,} test pictures."
    )
    return PictureGrid(np.asarray(found.originals), tuple(rows), note)


def _found(specs: Sequence[ReconstructionSpec], dataset_digest: str, entries: Sequence[Entry] | None) -> Reconstructions:
    if not specs:
        raise SpaceError("reconstruction: expected one kind of autoencoder or more, got none")
    store = Store() if entries is None else None
    return collect([reconstruct(spec, store, dataset_digest) for spec in specs] if entries is None else entries)


def _recipe(
    figure: str, specs: Sequence[ReconstructionSpec], dataset_digest: str, own: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the kinds share once, and their models as a list."""
    first = specs[0].to_json()
    models = [one.to_json()["model"] for one in specs]
    shared = {"pictures": first["pictures"], "random_states": first["random_states"], "n_anchors": first["n_anchors"]}
    return {
        "relscope": __version__,
        "figure": figure,
        **shared,
        "models": models,
        "dataset_digest": dataset_digest,
        **(own or {}),
    }


def _read(settings: dict[str, Any], *own: str) -> tuple[list[ReconstructionSpec], dict[str, Any]]:
    shared, models = ("pictures", "random_states", "n_anchors"), settings.get("models")
    expected = {*shared, "models", *own}
    if (
        not expected <= set(settings)
        or set(settings) - expected - {"dataset_digest"}
        or not isinstance(models, list)
        or not models
    ):
        raise SpaceError(
            f"recipe of reconstructions: expected {quote(sorted(expected))}, models a list of one or more, and maybe "
            f"'dataset_digest', got {quote(sorted(settings))}"
        )
    digest = settings.get("dataset_digest", "")
    if not isinstance(digest, str):
        raise SpaceError(f"recipe of reconstructions: expected a string as 'dataset_digest', got {digest!r}")
    record = {name: settings[name] for name in shared}
    specs = [ReconstructionSpec.from_json(record | {"model": model}) for model in models]
    return specs, {name: settings[name] for name in own} | {"dataset_digest": digest}


def _planes(settings: dict[str, Any]) -> Exportable:
    specs, own = _read(settings, "reference_state", "moving_state")
    if len(specs) != 1:
        raise SpaceError(f"recipe of planes: expected one model, got {len(specs)}")
    return draw_planes(specs[0], **own)


def _grid(settings: dict[str, Any]) -> Exportable:
    specs, own = _read(settings, "encoder_state", "decoder_state")
    return draw_grid(specs, **own)


def _errors(settings: dict[str, Any]) -> Exportable:
    specs, own = _read(settings)
    return draw_errors(specs, **own)


FIGURES = {"reconstruction": _grid, "reconstruction-mse": _errors, "plane-codes": _planes}
