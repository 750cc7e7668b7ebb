"""Reconstruction stitching as a task: train one kind of autoencoder with several random states, then cross the halves.

Each trained model is an entry of the store by itself. A stopped job resumes with the finished models, and another choice of
random states trains only the new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np

from relcore.progress import Context, Report, silent
from relcore.reconstructing.autoencoders import Autoencoder, AutoencoderSpec, fit_autoencoder, restore_autoencoder
from relcore.reconstructing.pictures import Pictures, PictureSpec, load_pictures, part_sizes
from relcore.reconstructing.result import (
    Crossed,
    Reconstructions,
    balanced_anchors,
    errors_of,
    mean_picture_error,
    rebuild,
)
from relcore.sources.dataset import Dataset, DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.spaces import LatentSpace, SpaceError, need_whole
from relcore.store import Store, digest_of
from relcore.task import Task

# Measured on one thread of a server's processor of 2026: 2.0 ms per picture and epoch for 28 × 28 pixels, 0.3 ms for 8 × 8. A
# quarter of it is for 200 anchors, which are encoded again with every batch.
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
        Number of anchors among the training pictures, with balanced classes, the same for every random state. Absolute models
        ignore it.
    dataset_digest : str
        Content of the dataset; "" accepts any.
    """

    kind: ClassVar[str] = "reconstruction"
    version: ClassVar[int] = 2
    result: ClassVar[str] = "relcore.reconstructing.result:Crossed"

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

    def run(self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent) -> Crossed:
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
            named = np.full(len(pictures.test), "") if pictures.test_labels is None else pictures.test_labels.astype(str)
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
                f"{dataset.name} has changed: expected content {self.dataset_digest[:8]}…, got {dataset.digest[:8]}…; load the "
                "original, or delete the digest to train on the present content"
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
    training = replace(spec.pictures, dataset=DatasetSpec("digits"), n_test=2)  # the digest says which pictures
    return digest_of("autoencoder", spec.version, dataset_digest, training, n_anchors, spec.model, random_state)


def missing_trainings(store: Store, spec: ReconstructionSpec) -> tuple[int, ...]:
    """The random states whose models are not in the store."""
    return tuple(state for state in spec.random_states if not store.has(training_key(spec.dataset_digest, spec, state)))


def trained_autoencoders(spec: ReconstructionSpec, store: Store, report: Report = silent) -> tuple[Pictures, list[Autoencoder]]:
    """The pictures and one model per random state, trained if missing in the store; nothing is crossed."""
    dataset = load_dataset(spec.pictures.dataset, store)
    pictures = load_pictures(dataset, spec.pictures, report)
    return pictures, _train_all(store, report, dataset.digest, spec, pictures)[0]


def collect(found: Mapping[ReconstructionSpec, Crossed]) -> Reconstructions:
    """The results of several kinds of autoencoders, on the same pictures with the same random states."""
    if len({(spec.pictures, spec.random_states) for spec in found}) != 1:
        raise SpaceError("reconstruction: expected kinds trained on the same pictures with the same random states, got others")
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
    """One model per random state, in their order, and its loss by epoch; models in the store are not trained again."""
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
        store.put(key, models[state].arrays(), {"loss": curve, "model": asdict(spec.model), "random_state": state})
        done += spec.model.epochs
    return [models[state] for state in spec.random_states], {state: tuple(curve) for state, curve in losses.items()}
