"""Reconstruction stitching: the encoder of one training run with the decoder of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from relcore.anchors.selection import select_anchors
from relcore.spaces import LatentSpace, SpaceError
from relcore.stitching.autoencoders import Autoencoder, AutoencoderSpec, Report, fit_autoencoder


@dataclass(frozen=True)
class Reconstructions:
    """Pictures through every encoder and decoder; rows are encoders, columns decoders, the diagonal is not stitched.

    Attributes
    ----------
    random_states : tuple of int
        One a training run.
    mse : name → array (S, S)
        Mean squared error over the test pictures, × 10³ as in Table 3 of the paper.
    originals, pictures : arrays (m, height, width), name → (S, S, m, height, width)
        The first test pictures, 0 … 1.
    """

    random_states: tuple[int, ...]
    mse: Mapping[str, np.ndarray]
    originals: np.ndarray
    pictures: Mapping[str, np.ndarray]

    def table(self) -> pd.DataFrame:
        """Mean and deviation of the MSE × 10³ over runs and over pairs of runs: model, own, own_deviation, stitched, …"""
        rows = []
        for name, errors in self.mse.items():
            own, stitched = np.diag(errors), errors[~np.eye(len(errors), dtype=bool)]
            rows.append((name, own.mean(), own.std(ddof=1), stitched.mean(), stitched.std(ddof=1)))
        return pd.DataFrame(rows, columns=["model", "own", "own_deviation", "stitched", "stitched_deviation"])


def balanced_anchors(images: np.ndarray, labels: Sequence[str], n_anchors: int, random_state: int = 0) -> np.ndarray:
    """Row numbers (k,) of anchors, as many of each class; errors as in `select_anchors`."""
    flat = np.asarray(images, dtype=np.float32).reshape(len(images), -1)
    space = LatentSpace(flat, [str(row) for row in range(len(flat))], name="pictures", labels=labels)
    return select_anchors(space, n_anchors, "class-balanced", random_state=random_state).astype(np.int64)


def stitch_reconstructions(
    train: np.ndarray,
    test: np.ndarray,
    anchor_rows: np.ndarray,
    specs: Mapping[str, AutoencoderSpec],
    random_states: Sequence[int] = (0, 1, 2),
    n_pictures: int = 8,
    report: Report | None = None,
) -> Reconstructions:
    """Train each spec once a random state, then put every encoder before every decoder of the same spec.

    Raises
    ------
    SpaceError
        Fewer than two random states; or as in `fit_autoencoder`.
    """
    if len(set(random_states)) < 2:
        raise SpaceError(f"random_states: expected two different ones or more to stitch, got {tuple(random_states)}")
    mse, pictures = {}, {}
    for name, spec in specs.items():
        models = [fit_autoencoder(train, anchor_rows, spec, state, _named(report, name)) for state in random_states]
        rebuilt = rebuild(models, test)
        mse[name] = 1000 * np.mean((rebuilt - test) ** 2, axis=(2, 3, 4), dtype=np.float64)
        pictures[name] = rebuilt[:, :, :n_pictures].copy()
    return Reconstructions(tuple(random_states), mse, np.array(test[:n_pictures]), pictures)


def rebuild(models: Sequence[Autoencoder], images: np.ndarray) -> np.ndarray:
    """Pictures (n, height, width) through each encoder and each decoder, (S, S, n, height, width)."""
    codes = [model.encode(images) for model in models]
    return np.array([[decoder.decode(code) for decoder in models] for code in codes])


def plane_codes(
    train: np.ndarray, images: np.ndarray, random_states: Sequence[int] = (0, 1), epochs: int = 60, report: Report | None = None
) -> np.ndarray:
    """Codes (S, n, 2) of absolute autoencoders with two numbers for a picture: about turns of each other (Fig. 1)."""
    spec = replace(AutoencoderSpec(), width=2, epochs=epochs)
    none = np.empty(0, dtype=np.int64)
    return np.array([fit_autoencoder(train, none, spec, state, report).encode(images) for state in random_states])


def _named(report: Report | None, name: str) -> Report | None:
    return report and (lambda done, total, message: report(done, total, f"{name}, {message}"))
