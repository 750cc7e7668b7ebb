"""Reconstruction stitching: results of the encoder of one run with the decoder of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.anchors.selection import select_anchors
from relcore.reconstructing.autoencoders import Autoencoder
from relcore.spaces import LatentSpace


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
    """Pictures through every encoder and decoder; rows are encoders, columns decoders, the diagonal is not stitched.

    Attributes
    ----------
    random_states : tuple of int
        One per run.
    n_train, n_test : int
        Training pictures; held-out pictures, over which errors are averaged.
    floor : float
        The error of the mean picture (`mean_picture_error`). A model that sees the picture at all does better.
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


def balanced_anchors(images: np.ndarray, labels: Sequence[str] | None, n_anchors: int, random_state: int = 0) -> np.ndarray:
    """Row numbers (k,) of anchors with balanced classes, at random without labels; errors as in `select_anchors`."""
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
    """MSE × 10³ of the mean of `train` as the reconstruction of every picture of `test`, a baseline without any code."""
    return 1000 * float(np.mean((test - train.mean(axis=0, dtype=np.float64)) ** 2, dtype=np.float64))
