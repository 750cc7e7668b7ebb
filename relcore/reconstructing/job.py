"""Reconstruction as a job: train one kind of autoencoder from several random states, then cross encoders and decoders.

Each training is an entry of the store by itself: what was stopped or killed goes on with what is finished, and another choice
of random states trains only those that are new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from relcore.progress import Context
from relcore.reconstructing.autoencoders import Autoencoder, AutoencoderSpec, Report, fit_autoencoder, restore_autoencoder
from relcore.reconstructing.pictures import Pictures, PictureSpec, load_pictures
from relcore.reconstructing.reconstruction import Reconstructions, balanced_anchors, errors_of, mean_picture_error, rebuild
from relcore.sources.dataset import DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.spaces import SpaceError
from relcore.store import Entry, Store, digest_of

VERSION = 2  # raise it when a training would come out differently: what an older version stored is then left alone


@dataclass(frozen=True)
class ReconstructionSpec:
    """One kind of autoencoder, trained on some pictures once a random state.

    Attributes
    ----------
    pictures : PictureSpec
    model : AutoencoderSpec
    random_states : tuple of int
        Two different ones or more.
    n_anchors : int
        Of the training pictures, as many of each class, the same for every state; without meaning for absolute models.
    """

    pictures: PictureSpec
    model: AutoencoderSpec = AutoencoderSpec()
    random_states: tuple[int, ...] = (0, 1, 2)
    n_anchors: int = 200

    def __post_init__(self) -> None:
        states = self.random_states
        if len(set(states)) < 2 or len(set(states)) < len(states) or not all(isinstance(s, int) and s >= 0 for s in states):
            raise SpaceError(f"random_states: expected two different ones or more to stitch, got {states}")
        if not isinstance(self.n_anchors, int) or self.n_anchors < 2:
            raise SpaceError(f"n_anchors: expected a whole number, 2 or more, got {self.n_anchors!r}")

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        settings = {"model": asdict(self.model), "random_states": list(self.random_states), "n_anchors": self.n_anchors}
        return {"pictures": self.pictures.to_json(), **settings}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ReconstructionSpec:
        """Back from `to_json`.

        Raises
        ------
        SpaceError
            Settings that are missing, unknown or wrong.
        """
        try:
            pictures, model, states = dict(record["pictures"]), record["model"], tuple(record["random_states"])
            dataset = DatasetSpec.from_json(pictures.pop("dataset"))
            return cls(PictureSpec(dataset, **pictures), AutoencoderSpec(**model), states, record["n_anchors"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, SpaceError):
                raise
            raise SpaceError(f"reconstruction: a setting is missing, unknown or of the wrong type ({error})") from error


def training_key(dataset_digest: str, spec: ReconstructionSpec, random_state: int) -> str:
    """The store's key of one trained model; anchors are a part of it where they are a part of the model."""
    n_anchors = 0 if spec.model.representation == "absolute" else spec.n_anchors
    training = replace(spec.pictures, dataset=DatasetSpec("digits"), n_test=2)  # the digest says which pictures
    return digest_of("autoencoder", VERSION, dataset_digest, training, n_anchors, spec.model, random_state)


def reconstruction_key(dataset_digest: str, spec: ReconstructionSpec) -> str:
    """The key to submit `reconstruction_job` under."""
    pictures = replace(spec.pictures, dataset=DatasetSpec("digits"))
    return digest_of("reconstruction", VERSION, dataset_digest, replace(spec, pictures=pictures))


def missing_trainings(store: Store, dataset_digest: str, spec: ReconstructionSpec) -> tuple[int, ...]:
    """The random states whose models are not in the store."""
    return tuple(state for state in spec.random_states if not store.has(training_key(dataset_digest, spec, state)))


def reconstruction_job(context: Context, *, spec: ReconstructionSpec, dataset_digest: str) -> None:
    """Train what is missing, cross every encoder with every decoder, and put errors and pictures under `reconstruction_key`.

    Arrays: mse (S, S), floor (), originals (m, h, w), pictures (S, S, m, h, w), and of codes of two numbers codes (S, n, 2) and
    labels (n,), which are positions in the metadata's "classes". Metadata: spec, n_train, n_test, losses by random state.

    Raises
    ------
    SpaceError
        The dataset has changed since it was chosen, has no pictures, or fewer than the anchors.
    """
    context.report(0, 1, "reading the dataset")
    dataset = load_dataset(spec.pictures.dataset, context.store)
    if dataset.digest != dataset_digest:
        raise SpaceError(f"{dataset.name} has changed since it was chosen; choose it anew, and train on that")
    pictures = load_pictures(dataset, spec.pictures, context.report)
    models, losses = _train_all(context.store, context.report, dataset_digest, spec, pictures)
    rebuilt, shown = rebuild(models, pictures.test), pictures.examples()
    arrays = {
        "mse": errors_of(rebuilt, pictures.test),
        "floor": np.array(mean_picture_error(pictures.train, pictures.test)),
        "originals": pictures.test[shown],
        "pictures": rebuilt[:, :, shown],
    }
    facts = {"spec": spec.to_json(), "n_train": len(pictures.train), "n_test": len(pictures.test), "losses": losses}
    if spec.model.representation == "absolute" and spec.model.width == 2:
        arrays["codes"] = np.array([model.encode(pictures.test) for model in models])
        named = np.full(len(pictures.test), "") if pictures.test_labels is None else pictures.test_labels.astype(str)
        classes, arrays["labels"] = np.unique(named, return_inverse=True)
        facts["classes"] = classes.tolist()
    context.put(arrays, facts)


def reconstruct(spec: ReconstructionSpec, store: Store, dataset_digest: str = "", report: Report | None = None) -> Entry:
    """`reconstruction_job` in place: what it put, from the store where it is there. Errors as there."""
    digest = load_dataset(spec.pictures.dataset, store).digest
    if dataset_digest and digest != dataset_digest:
        raise SpaceError(
            f"{spec.pictures.dataset.name or spec.pictures.dataset.source}: expected content {dataset_digest[:8]}…, got "
            f"{digest[:8]}…; load the original, or delete the digest to train on what is here"
        )
    context = Context(reconstruction_key(digest, spec), store)
    if report:
        context.report = report
    if not store.has(context.key):
        reconstruction_job(context, spec=spec, dataset_digest=digest)
    return store.get(context.key)


def trained_autoencoders(
    spec: ReconstructionSpec, store: Store, report: Report | None = None
) -> tuple[Pictures, list[Autoencoder]]:
    """The pictures and the models, one a random state, trained where the store lacks them; nothing is crossed."""
    report = report or (lambda *told: None)
    dataset = load_dataset(spec.pictures.dataset, store)
    pictures = load_pictures(dataset, spec.pictures, report)
    return pictures, _train_all(store, report, dataset.digest, spec, pictures)[0]


def collect(entries: Sequence[Entry]) -> Reconstructions:
    """What jobs of several kinds, on the same pictures from the same random states, put into the store."""
    specs = [ReconstructionSpec.from_json(entry.metadata["spec"]) for entry in entries]
    if len({(spec.pictures, spec.random_states) for spec in specs}) != 1:
        raise SpaceError("reconstruction: expected kinds trained on the same pictures from the same random states, got others")
    first = entries[0]
    by_name = dict(zip((spec.model.title for spec in specs), (entry.arrays for entry in entries), strict=True))
    return Reconstructions(
        random_states=specs[0].random_states,
        n_train=first.metadata["n_train"],
        n_test=first.metadata["n_test"],
        floor=float(first.arrays["floor"]),
        mse={name: arrays["mse"] for name, arrays in by_name.items()},
        originals=first.arrays["originals"],
        pictures={name: arrays["pictures"] for name, arrays in by_name.items()},
    )


def _train_all(
    store: Store, report: Report, dataset_digest: str, spec: ReconstructionSpec, pictures: Pictures
) -> tuple[list[Autoencoder], dict[str, list[float]]]:
    """The models in the order of the random states, with the loss of each by epoch; what the store has is not trained."""
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
    return [models[state] for state in spec.random_states], losses
