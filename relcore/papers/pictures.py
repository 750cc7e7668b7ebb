"""Autoencoders on the digits: decoders that read other runs' codes, and codes turned onto each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from relcore.experiments.pictures import PictureSpec, load_pictures
from relcore.experiments.plane_turn import fit_turn
from relcore.experiments.reconstruction import ReconstructionSpec, collect, reconstruct, training_key
from relcore.papers.ours import Number
from relcore.papers.runs import Measured, Report, Settings
from relcore.papers.summaries import averaged, rounded
from relcore.sources.dataset import DatasetSpec
from relcore.sources.datasets import load_dataset
from relcore.stitching.autoencoders import REPRESENTATIONS, AutoencoderSpec, restore_autoencoder
from relcore.store import Store

_DIGITS = PictureSpec(DatasetSpec("digits"))
_ERROR = "MSE × 10³"


def autoencoders(settings: Settings, store: Store, report: Report) -> Measured:
    """Table 3: error of each run's own pairs and of all pairs across runs, by representation."""
    entries = []
    for done, representation in enumerate(REPRESENTATIONS):
        model = AutoencoderSpec(representation, settings["variational"], settings["width"], epochs=settings["epochs"])
        spec = ReconstructionSpec(_DIGITS, model, tuple(settings["random_states"]), settings["n_anchors"])
        entries.append(reconstruct(spec, store, report=_within(report, done, len(REPRESENTATIONS), model.title)))
    numbers = []
    for line in collect(entries).table().to_dict("records"):
        facts = {
            "unit": _ERROR,
            "n": line["pictures"],
            "baseline": rounded(line["mean_picture"]),
            "baseline_is": "mean picture",
        }
        for pair, metric, repeats in (("own", "not stitched", "runs"), ("stitched", "stitched", "pairs")):
            deviation = rounded(line[f"{pair}_deviation"])
            label = line["model"] + (" (ours)" if "whitened" in line["model"] else "")
            numbers.append(Number(label, metric, rounded(line[pair]), deviation, repeats=line[repeats], **facts))
    return Measured(tuple(numbers))


def codes(settings: Settings, store: Store, report: Report) -> Measured:
    """Figs. 1 and 5: how far codes of two runs are apart as they are, and after the best turn, scale and shift.

    Codes of two numbers as they are; wider ones reduced to two by the PCA of each run, or by the first run's for all.
    """
    states, numbers = tuple(settings["random_states"]), []
    for done, width in enumerate(settings["widths"]):
        spec = ReconstructionSpec(_DIGITS, AutoencoderSpec(width=width, epochs=settings["epochs"]), states)
        found = _codes(spec, store, _within(report, done, len(settings["widths"]), f"{width} numbers in the middle"))
        if width == 2:
            numbers += _apart("2 numbers, as they are", found, "plane")
        else:
            axes = [_axes(code) for code in found]
            own = [_reduced(code, axis) for code, axis in zip(found, axes, strict=True)]
            first = [_reduced(code, axes[0]) for code in found]
            numbers += _apart(f"{width} numbers, each run's own PCA", own, "wide")
            numbers += _apart(f"{width} numbers, the first run's PCA for all", first, "wide")
    return Measured(tuple(numbers))


def _codes(spec: ReconstructionSpec, store: Store, report: Report) -> list[np.ndarray]:
    """Codes (n, width) of the test pictures by each run."""
    reconstruct(spec, store, report=report)
    dataset = load_dataset(spec.pictures.dataset, store)
    pictures = load_pictures(dataset, spec.pictures)
    kept = [store.get(training_key(dataset.digest, spec, state)) for state in spec.random_states]
    models = [restore_autoencoder(entry.arrays, spec.model, pictures.train.shape[1:]) for entry in kept]
    return [model.encode(pictures.test) for model in models]


def _axes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = codes.mean(axis=0)
    return mean, np.linalg.svd(codes - mean, full_matrices=False)[2][:2].T


def _reduced(codes: np.ndarray, axes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    mean, directions = axes
    return (codes - mean) @ directions


def _apart(label: str, planes: list[np.ndarray], group: str) -> list[Number]:
    turns = [fit_turn(one, other) for one, other in combinations(planes, 2)]
    facts = {"n": len(planes[0]), "group": group, "unit": "0 = equal"}
    rng = np.random.default_rng(0)
    unpaired = [fit_turn(turn.reference, rng.permutation(turn.moving)).disparity() for turn in turns]
    chance = {"baseline": rounded(np.mean(unpaired)), "baseline_is": "rows permuted"}
    return [
        averaged(label, "disparity as they are", [turn.disparity(0) for turn in turns], **facts),
        averaged(label, "disparity after a turn", [turn.disparity() for turn in turns], **facts, **chance),
    ]


def _within(report: Report, done: int, total: int, title: str) -> Report:
    return lambda at, of, message="", *measured: report(
        done * 1000 + round(1000 * at / max(of, 1)), total * 1000, f"{title}: {message}"
    )
