"""Reconstruction stitching as a task: train one kind of autoencoder with several random states, then cross
the halves.

Each trained model is an entry of the store by itself. A stopped job resumes with the finished models, and
another choice of random states trains only the new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_whole
from relcore.charts.plane_turn import PlaneTurn
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.figures.error_bars import errors_exportable
from relcore.figures.export import Exportable
from relcore.figures.picture_grid import PictureGrid, PictureRow, grid_exportable
from relcore.figures.plane_turn import TurnedPlanes, turned_planes_exportable
from relcore.represent.anchors import select_anchors
from relcore.represent.translation import Procrustes
from relcore.runs.digest import digest_of
from relcore.runs.progress import Context, Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.autoencoders import (
    Autoencoder,
    AutoencoderSpec,
    Pictures,
    PictureSpec,
    fit_autoencoder,
    load_pictures,
    part_sizes,
    restore_autoencoder,
)
from relcore.tasks.recipe import Recipe
from relcore.tasks.task import Task

# Reconstruction stitching: results of the encoder of one run with the decoder of another.


@dataclass(frozen=True, eq=False)
class Crossed:
    """One kind of autoencoder: held-out pictures through the encoder of each run and the decoder of each.

    Attributes
    ----------
    mse : array (S, S)
        As in `Reconstructions`; so are `floor`, `originals`, `n_train` and `n_test`.
    pictures : array (S, S, m, height, width)
    losses : random state → training loss of each epoch
    codes, labels : arrays (S, n, 2), (n,), or None
        For absolute codes of width 2: the codes of all held-out pictures, and the numbers of their `classes`.
    """

    mse: np.ndarray
    floor: float
    originals: np.ndarray
    pictures: np.ndarray
    n_train: int
    n_test: int
    losses: dict[str, tuple[float, ...]]
    codes: np.ndarray | None = None
    labels: np.ndarray | None = None
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reconstructions:
    """Pictures through every encoder and decoder; rows are encoders, columns decoders, the diagonal is not
    stitched.

    Attributes
    ----------
    random_states : tuple of int
        One per run.
    n_train, n_test : int
        Training pictures; held-out pictures, over which errors are averaged.
    floor : float
        The error of the mean picture (`mean_picture_error`). A model that sees the picture at all does
        better.
    mse : name → array (S, S)
        Mean squared error over the held-out pictures, × 10³ as in Table 3 of the paper.
    originals, pictures : arrays (m, height, width), name → (S, S, m, height, width)
        Some held-out pictures, 0 … 1.
    """

    random_states: tuple[int, ...]
    n_train: int
    n_test: int
    floor: float
    mse: Mapping[str, np.ndarray]
    originals: np.ndarray
    pictures: Mapping[str, np.ndarray]

    def table(self) -> pd.DataFrame:
        """Mean and deviation of the MSE × 10³ over runs and over ordered pairs of runs.

        Columns: model, own, own_deviation, stitched, stitched_deviation, mean_picture, pictures, runs, pairs.
        """
        rows = []
        for name, errors in self.mse.items():
            own, stitched = np.diag(errors), errors[~np.eye(len(errors), dtype=bool)]
            found = own.mean(), own.std(ddof=1), stitched.mean(), stitched.std(ddof=1)
            rows.append((name, *found, self.floor, self.n_test, len(own), len(stitched)))
        columns = ["model", "own", "own_deviation", "stitched", "stitched_deviation"]
        return pd.DataFrame(rows, columns=[*columns, "mean_picture", "pictures", "runs", "pairs"])


def balanced_anchors(
    images: np.ndarray, labels: Sequence[str] | None, n_anchors: int, random_state: int = 0
) -> np.ndarray:
    """Row numbers (k,) of anchors with balanced classes, at random without labels; errors as in
    `select_anchors`.
    """
    flat = np.asarray(images, dtype=np.float32).reshape(len(images), -1)
    space = LatentSpace(flat, [str(row) for row in range(len(flat))], name="pictures", labels=labels)
    strategy = "random" if labels is None else "class-balanced"
    return select_anchors(space, n_anchors, strategy, random_state=random_state).astype(np.int64)


def rebuild(models: Sequence[Autoencoder], images: np.ndarray) -> np.ndarray:
    """Pictures (n, height, width) through each encoder and each decoder, (S, S, n, height, width)."""
    codes = [model.encode(images) for model in models]
    return np.array([[decoder.decode(code) for decoder in models] for code in codes])


def errors_of(rebuilt: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Mean squared error × 10³ of each encoder with each decoder, (S, S)."""
    return 1000 * np.mean((rebuilt - images) ** 2, axis=(2, 3, 4), dtype=np.float64)


def mean_picture_error(train: np.ndarray, test: np.ndarray) -> float:
    """MSE × 10³ of the mean of `train` as the reconstruction of every picture of `test`, a baseline
    without any code.
    """
    return 1000 * float(np.mean((test - train.mean(axis=0, dtype=np.float64)) ** 2, dtype=np.float64))


# Measured on one thread of a server's processor of 2026: 2.0 ms per picture and epoch for 28 × 28 pixels, 0.3
# ms for 8 × 8. A quarter of it is for 200 anchors, which are encoded again with every batch.
_SECONDS, _PIXELS, _POWER = 3e-4, 64, 0.76
_START = 4.0  # to load torch


@dataclass(frozen=True)
class ReconstructionSpec(Task["Crossed"]):
    """One kind of autoencoder, trained on some pictures once per random state.

    Attributes
    ----------
    pictures : PictureSpec
    model : AutoencoderSpec
    random_states : tuple of int
        Two or more different ones.
    n_anchors : int
        Number of anchors among the training pictures, with balanced classes, the same for every random state.
        Absolute models ignore it.
    dataset_digest : str
        Content of the dataset; "" accepts any.
    """

    kind: ClassVar[str] = "reconstruction"
    version: ClassVar[int] = 2
    result: ClassVar[str] = "relcore.stitch.reconstruction:Crossed"

    pictures: PictureSpec
    model: AutoencoderSpec = AutoencoderSpec()
    random_states: tuple[int, ...] = (0, 1, 2)
    n_anchors: int = 200
    dataset_digest: str = ""

    def __post_init__(self) -> None:
        states = self.random_states
        if len(set(states)) < 2 or len(set(states)) < len(states) or min(states) < 0:
            raise SpaceError(f"random_states: expected two different ones or more to stitch, got {states}")
        need_whole(self, n_anchors=2)

    @property
    def title(self) -> str:
        return self.model.title if self.model.width > 2 else "AE with two numbers"

    def seconds(self, spaces: Sequence[LatentSpace] = ()) -> float:
        dataset, side = load_dataset(self.pictures.dataset), self.pictures.image_size
        pixels = side**2 if side else int(np.prod(dataset.item(0).size))
        return self.seconds_for(part_sizes(len(dataset), self.pictures)[0], pixels, len(self.random_states))

    def seconds_for(self, n_train: int, pixels: int, n_models: int) -> float:
        """Seconds to train `n_models` models on one thread."""
        return _START + n_models * self.model.epochs * n_train * _SECONDS * (pixels / _PIXELS) ** _POWER

    def run(
        self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent
    ) -> Crossed:
        """Train the missing models, and cross every encoder with every decoder.

        Raises
        ------
        SpaceError
            The dataset has changed, has no pictures, or has fewer pictures than anchors.
        """
        store = store or Store()
        report(0, 1, "reading the dataset")
        dataset = self._dataset(store)
        pictures = load_pictures(dataset, self.pictures, report)
        models, losses = _train_all(store, report, dataset.digest, self, pictures)
        rebuilt, shown = rebuild(models, pictures.test), pictures.examples()
        codes = {}
        if self.model.representation == "absolute" and self.model.width == 2:
            named = (
                np.full(len(pictures.test), "")
                if pictures.test_labels is None
                else pictures.test_labels.astype(str)
            )
            classes, labels = np.unique(named, return_inverse=True)
            found = np.array([model.encode(pictures.test) for model in models])
            codes = {"codes": found, "labels": labels, "classes": tuple(classes.tolist())}
        return Crossed(
            errors_of(rebuilt, pictures.test),
            mean_picture_error(pictures.train, pictures.test),
            pictures.test[shown],
            rebuilt[:, :, shown],
            len(pictures.train),
            len(pictures.test),
            losses,
            **codes,
        )

    def _dataset(self, store: Store) -> Dataset:
        dataset = load_dataset(self.pictures.dataset, store)
        if self.dataset_digest not in ("", dataset.digest):
            raise SpaceError(
                f"{dataset.name} has changed: expected content {self.dataset_digest[:8]}…, got"
                f" {dataset.digest[:8]}…; load the original, or delete the digest to train on the present"
                " content"
            )
        return dataset

    def stored(self, store: Store, report: Report = silent) -> Crossed:
        """The result from the store, computed and kept where it is missing. Errors as in `run`."""
        spec = replace(self, dataset_digest=self._dataset(store).digest)
        context = Context(spec.key(), store)
        context.report = report
        if (entry := store.get(context.key)) is None:
            spec.finish(context)
            entry = store.get(context.key)
        return spec.read(entry)


def training_key(dataset_digest: str, spec: ReconstructionSpec, random_state: int) -> str:
    """The store's key of one trained model; absolute models have no anchors in it."""
    n_anchors = 0 if spec.model.representation == "absolute" else spec.n_anchors
    training = replace(
        spec.pictures, dataset=DatasetSpec("digits"), n_test=2
    )  # the digest says which pictures
    return digest_of(
        "autoencoder", spec.version, dataset_digest, training, n_anchors, spec.model, random_state
    )


def missing_trainings(store: Store, spec: ReconstructionSpec) -> tuple[int, ...]:
    """The random states whose models are not in the store."""
    return tuple(
        state for state in spec.random_states if not store.has(training_key(spec.dataset_digest, spec, state))
    )


def trained_autoencoders(
    spec: ReconstructionSpec, store: Store, report: Report = silent
) -> tuple[Pictures, list[Autoencoder]]:
    """The pictures and one model per random state, trained if missing in the store; nothing is crossed."""
    dataset = load_dataset(spec.pictures.dataset, store)
    pictures = load_pictures(dataset, spec.pictures, report)
    return pictures, _train_all(store, report, dataset.digest, spec, pictures)[0]


def collect(found: Mapping[ReconstructionSpec, Crossed]) -> Reconstructions:
    """The results of several kinds of autoencoders, on the same pictures with the same random states."""
    if len({(spec.pictures, spec.random_states) for spec in found}) != 1:
        raise SpaceError(
            "reconstruction: expected kinds trained on the same pictures with the same random states, got"
            " others"
        )
    spec, first = next(iter(found.items()))
    return Reconstructions(
        random_states=spec.random_states,
        n_train=first.n_train,
        n_test=first.n_test,
        floor=first.floor,
        mse={spec.model.title: one.mse for spec, one in found.items()},
        originals=first.originals,
        pictures={spec.model.title: one.pictures for spec, one in found.items()},
    )


def _train_all(
    store: Store, report: Report, dataset_digest: str, spec: ReconstructionSpec, pictures: Pictures
) -> tuple[list[Autoencoder], dict[str, tuple[float, ...]]]:
    """One model per random state, in their order, and its loss by epoch; models in the store are not
    trained again.
    """
    anchors = np.empty(0, dtype=np.int64)
    if spec.model.representation != "absolute":
        anchors = balanced_anchors(pictures.train, pictures.train_labels, spec.n_anchors)
    keys = {state: training_key(dataset_digest, spec, state) for state in spec.random_states}
    found = {state: entry for state, key in keys.items() if (entry := store.get(key))}
    total, done = len(keys) * spec.model.epochs, len(found) * spec.model.epochs
    report(done, total, f"{len(found)} of {len(keys)} trained before" if found else "training")
    models, losses = {}, {}
    for state, key in keys.items():
        if state in found:
            models[state] = restore_autoencoder(found[state].arrays, spec.model, pictures.train.shape[1:])
            losses[str(state)] = found[state].metadata["loss"]
            continue
        curve = losses[str(state)] = []

        def told(epoch: int, n_epochs: int, message: str, measured: Mapping[str, float]) -> None:
            curve.append(measured["loss"])  # noqa: B023, called in this turn only
            report(done + epoch, total, message, {f"state {state}": measured["loss"]})  # noqa: B023

        models[state] = fit_autoencoder(pictures.train, anchors, spec.model, state, told)
        store.put(
            key, models[state].arrays(), {"loss": curve, "model": asdict(spec.model), "random_state": state}
        )
        done += spec.model.epochs
    return [models[state] for state in spec.random_states], {
        state: tuple(curve) for state, curve in losses.items()
    }


# Procrustes alignment of codes of several runs: of two planes to be drawn, and as one number for each pair of
# runs.


def fit_turn(reference: np.ndarray, moving: np.ndarray) -> PlaneTurn:
    """The rotation or reflection, scale and shift that bring `moving` (n, 2) closest to `reference` (n, 2),
    by Procrustes.

    Raises
    ------
    SpaceError
        Other shapes, or points that all lie in one place.
    """
    reference, moving = (np.asarray(points, dtype=np.float64) for points in (reference, moving))
    if reference.shape != moving.shape or reference.ndim != 2 or reference.shape[1] != 2:
        raise SpaceError(
            f"expected two paired sets of points (n, 2), got shapes {reference.shape} and {moving.shape}"
        )
    for points in (reference, moving):
        if np.allclose(points, points.mean(axis=0)):
            raise SpaceError(
                "expected points that differ, got all of them in one place; train for more epochs"
            )
    matrix = Procrustes().fit(moving, reference).matrix_
    scale = float(np.sqrt(abs(np.linalg.det(matrix))))
    return PlaneTurn(reference, moving, matrix / scale, scale)


def disparities(codes: Sequence[np.ndarray]) -> np.ndarray:
    """Procrustes disparity of the codes of each pair of runs, after the best rotation or reflection, scale
    and shift.

    Parameters
    ----------
    codes : S arrays (n, d)
        The same n items as each run encodes them; any d.

    Returns
    -------
    array (S, S) float64
        0 means equal up to a similarity transformation; 1 is as bad as the mean of all items for each of
        them. Symmetric, 0 on the diagonal, and equal to the disparity of `scipy.spatial.procrustes`.

    Raises
    ------
    SpaceError
        Codes of different shapes, or a run that gives every item the same code.
    """
    if len({np.shape(one) for one in codes}) != 1:
        raise SpaceError(
            f"expected paired codes of equal shape, got shapes {[np.shape(one) for one in codes]}"
        )
    units = []
    for one in codes:
        centred = np.asarray(one, dtype=np.float64) - np.mean(one, axis=0, dtype=np.float64)
        length = np.linalg.norm(centred)
        if not length > 1e-9 * (1 + np.abs(one).max()):
            raise SpaceError(
                "expected codes that differ, got all of them in one place; train for more epochs"
            )
        units.append(centred / length)
    found = np.zeros((len(units), len(units)))
    for i, j in combinations(range(len(units)), 2):
        # Best overlap over all orthogonal maps: the nuclear norm (Schönemann 1966); the best scale squares
        # it.
        overlap = np.linalg.svd(units[i].T @ units[j], compute_uv=False).sum()
        found[i, j] = found[j, i] = max(0.0, 1 - overlap**2)
    return found


# Figures of reconstruction stitching: the grid of pictures, the table of errors, two planes aligned.

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
class TrainedRuns(Recipe):
    """What the figures share: kinds of autoencoders, trained on the same pictures with the same random
    states.
    """

    pictures: PictureSpec
    random_states: tuple[int, ...]
    n_anchors: int
    models: tuple[AutoencoderSpec, ...]
    dataset_digest: str = ""

    def __post_init__(self) -> None:
        if not self.models:
            raise SpaceError("models: expected one kind of autoencoder or more, got none")

    @classmethod
    def of(cls, specs: Sequence[ReconstructionSpec], **own: Any) -> TrainedRuns:
        """The recipe of these kinds."""
        first = specs[0]
        shared = {
            name: getattr(first, name)
            for name in ("pictures", "random_states", "n_anchors", "dataset_digest")
        }
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
class ReconstructionGrid(TrainedRuns):
    """Pictures through the encoder of one random state, and the decoders of it and of another (Fig. 4)."""

    figure: ClassVar[str] = "reconstruction"

    encoder_state: int
    decoder_state: int

    def draw(self, result: Reconstructions | None = None) -> Exportable:
        self.need_states(self.encoder_state, self.decoder_state)
        grid = picture_grid(result or self.found(), self.encoder_state, self.decoder_state)
        return grid_exportable(grid, self.to_json(), "relscope-reconstruction")


@dataclass(frozen=True, kw_only=True)
class ReconstructionErrors(TrainedRuns):
    """MSE × 10³ over all held-out pictures, mean and deviation over runs and over pairs of runs (Table 3)."""

    figure: ClassVar[str] = "reconstruction-mse"

    def draw(self, result: Reconstructions | None = None) -> Exportable:
        return errors_exportable(
            (result or self.found()).table(), self.to_json(), "relscope-reconstruction-mse"
        )


@dataclass(frozen=True, kw_only=True)
class Planes(TrainedRuns):
    """Codes of two numbers of two random states, the second aligned with the first (Fig. 1)."""

    figure: ClassVar[str] = "plane-codes"

    reference_state: int
    moving_state: int

    def __post_init__(self) -> None:
        if len(self.models) != 1:
            raise SpaceError(f"models: expected one model, got {len(self.models)}")
        (model,) = self.models
        if model.representation != "absolute" or model.width != 2:
            raise SpaceError(
                f"planes: expected an absolute model of width 2, got {model.title} of width {model.width}"
            )

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
            rows.append(
                PictureRow(family, name, stitched, pictures[i, decoder], float(found.mse[title][i, decoder]))
            )
    note = (
        f"Encoder of random state {encoder_state}, stitched to the decoder of {decoder_state};"
        f" {found.n_test:,} test pictures."
    )
    return PictureGrid(np.asarray(found.originals), tuple(rows), note)
