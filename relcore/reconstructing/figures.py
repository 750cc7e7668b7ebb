"""Figures of reconstruction stitching: the grid of pictures, the table of errors, two planes aligned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.figures.error_bars import errors_exportable
from relcore.figures.export import Exportable
from relcore.figures.picture_grid import PictureGrid, PictureRow, grid_exportable
from relcore.figures.plane_turn_figure import TurnedPlanes, turned_planes_exportable
from relcore.recipe import Recipe
from relcore.reconstructing.autoencoders import AutoencoderSpec
from relcore.reconstructing.job import ReconstructionSpec, collect
from relcore.reconstructing.pictures import PictureSpec
from relcore.reconstructing.plane_turn import fit_turn
from relcore.reconstructing.result import Crossed, Reconstructions
from relcore.spaces import SpaceError
from relcore.store import Store

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


@dataclass(frozen=True, kw_only=True)
class Trained(Recipe):
    """What the figures share: kinds of autoencoders, trained on the same pictures with the same random states."""

    pictures: PictureSpec
    random_states: tuple[int, ...]
    n_anchors: int
    models: tuple[AutoencoderSpec, ...]
    dataset_digest: str = ""

    def __post_init__(self) -> None:
        if not self.models:
            raise SpaceError("models: expected one kind of autoencoder or more, got none")

    @classmethod
    def of(cls, specs: Sequence[ReconstructionSpec], **own: Any) -> Trained:
        """The recipe of these kinds."""
        first = specs[0]
        shared = {name: getattr(first, name) for name in ("pictures", "random_states", "n_anchors", "dataset_digest")}
        return cls(models=tuple(spec.model for spec in specs), **shared, **own)

    @property
    def specs(self) -> list[ReconstructionSpec]:
        shared = self.random_states, self.n_anchors, self.dataset_digest
        return [ReconstructionSpec(self.pictures, model, *shared) for model in self.models]

    def found(self) -> Reconstructions:
        """The results of all kinds, from the store or computed."""
        store = Store()
        return collect({spec: spec.stored(store) for spec in self.specs})

    def need_states(self, *chosen: int) -> None:
        """Raise a SpaceError unless these are different ones of the random states."""
        if len(set(chosen)) < len(chosen) or not set(chosen) <= set(self.random_states):
            got = " and ".join(map(str, chosen))
            raise SpaceError(f"random states: expected two different ones of {self.random_states}, got {got}")


@dataclass(frozen=True, kw_only=True)
class ReconstructionGrid(Trained):
    """Pictures through the encoder of one random state, and the decoders of it and of another (Fig. 4)."""

    figure: ClassVar[str] = "reconstruction"

    encoder_state: int
    decoder_state: int

    def draw(self, result: Reconstructions | None = None) -> Exportable:
        self.need_states(self.encoder_state, self.decoder_state)
        grid = picture_grid(result or self.found(), self.encoder_state, self.decoder_state)
        return grid_exportable(grid, self.to_json(), "relscope-reconstruction")


@dataclass(frozen=True, kw_only=True)
class ReconstructionErrors(Trained):
    """MSE × 10³ over all held-out pictures, mean and deviation over runs and over pairs of runs (Table 3)."""

    figure: ClassVar[str] = "reconstruction-mse"

    def draw(self, result: Reconstructions | None = None) -> Exportable:
        return errors_exportable((result or self.found()).table(), self.to_json(), "relscope-reconstruction-mse")


@dataclass(frozen=True, kw_only=True)
class Planes(Trained):
    """Codes of two numbers of two random states, the second aligned with the first (Fig. 1)."""

    figure: ClassVar[str] = "plane-codes"

    reference_state: int
    moving_state: int

    def __post_init__(self) -> None:
        if len(self.models) != 1:
            raise SpaceError(f"models: expected one model, got {len(self.models)}")
        (model,) = self.models
        if model.representation != "absolute" or model.width != 2:
            raise SpaceError(f"planes: expected an absolute model of width 2, got {model.title} of width {model.width}")

    def draw(self, result: Crossed | None = None) -> Exportable:
        for state in (self.reference_state, self.moving_state):
            self.need_states(state)
        result = result or self.specs[0].stored(Store())
        chosen = self.reference_state, self.moving_state
        reference, moving = (result.codes[self.random_states.index(state)] for state in chosen)
        names = tuple(f"random state {state}" for state in chosen)
        planes = TurnedPlanes(fit_turn(reference, moving), names, result.labels, result.classes)
        return turned_planes_exportable(planes, self.to_json(), "relscope-planes")


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
