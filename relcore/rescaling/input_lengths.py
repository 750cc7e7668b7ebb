"""Rescale injection at the input (Fig. 4 of Maiorca et al. 2024): accuracy of small networks by the length of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.progress import Report, silent
from relcore.rescaling.injection import ACTIVATIONS, Answer, fit_plain_mlp, rescale_curve
from relcore.spaces import LatentSpace, SpaceError, need_distinct, need_strings, need_whole
from relcore.stitching.heads import fit_head
from relcore.store import Store
from relcore.task import Task

NETWORKS = {"relu": "ReLU", "tanh": "tanh", "cosine": "cosine", "layernorm": "normalised first"}


@dataclass(frozen=True)
class InputRescaleSpec(Task["InputRescaleResult"]):
    """Which networks, which lengths and how many repetitions; the task takes one labelled space.

    Attributes
    ----------
    networks : tuple of str
        Some of `NETWORKS`; the first three have no normalisation, "layernorm" begins with one, so it ignores lengths.
    span, n_alphas : float, int
        Lengths α from the mean length of the rows divided by `span` to the mean times `span`, evenly on a logarithmic axis.
    random_states : tuple of int
        Each draws rows, split and first weights.
    n_rows : int
        Maximum number of rows, drawn at random.
    test_fraction : float
        Share of the rows that is held out.
    test_ids : tuple of str
        Rows to hold out instead, such as those that an encoder was not trained on.
    """

    kind: ClassVar[str] = "rescale-input"
    result: ClassVar[str] = "relcore.rescaling.input_lengths:InputRescaleResult"

    networks: tuple[str, ...] = ACTIVATIONS
    span: float = 32.0
    n_alphas: int = 41
    random_states: tuple[int, ...] = (0, 1, 2)
    n_rows: int = 3000
    test_fraction: float = 0.2
    test_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        need_strings("test_ids", self.test_ids)
        need_distinct("networks", self.networks, NETWORKS)
        need_distinct("random_states", self.random_states)
        if not 1 < self.span <= 1e4:
            raise SpaceError(f"span: expected a factor above 1, at most 10,000, got {self.span!r}")
        need_whole(self, n_alphas=2, n_rows=10)
        if not 0 < self.test_fraction < 1:
            raise SpaceError(f"test_fraction: expected a share between 0 and 1, got {self.test_fraction!r}")

    @property
    def title(self) -> str:
        return "Rescale, at the input"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On one thread: 30 epochs of each network, measured on 1,437 rows × 64, and 3 s to load the library."""
        rows = min(len(spaces[0]), self.n_rows) * (1 - self.test_fraction)
        each = rows * (3.5e-4 + 3e-7 * spaces[0].dimension)
        return 3.0 + len(self.networks) * len(self.random_states) * each

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> InputRescaleResult:
        return rescale_input(*spaces, self, report)

    def alphas(self, mean_length: float) -> tuple[float, ...]:
        """The lengths, with 5 digits; the middle one of an odd number is the mean length itself."""
        return tuple(float(f"{alpha:.5g}") for alpha in mean_length * np.geomspace(1 / self.span, self.span, self.n_alphas))


@dataclass(frozen=True)
class InputRescaleResult:
    """Accuracy of every network at every length, 0 … 1.

    Attributes
    ----------
    alphas : a lengths
    accuracy : network → random states × a
    own : network → accuracy of each random state with the rows as they are
    mean_length, lengths : float, (float, float)
        Mean length of the space's rows; the interval that holds 95 % of the lengths.
    chance : float
        Accuracy of always answering the most frequent class of the training rows.
    """

    spec: InputRescaleSpec
    name: str
    alphas: tuple[float, ...]
    accuracy: Mapping[str, tuple[tuple[float, ...], ...]]
    own: Mapping[str, tuple[float, ...]]
    mean_length: float
    lengths: tuple[float, float]
    chance: float
    n_train: int
    n_test: int
    n_classes: int

    def curve(self, network: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, and mean ∓ one deviation over the random states, (a,) each."""
        found = np.array(self.accuracy[network])
        mean = found.mean(axis=0)
        deviation = found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros_like(mean)
        return mean, mean - deviation, mean + deviation

    def table(self) -> pd.DataFrame:
        """One row per network: accuracy as it is, at the mean length, the least from ⅛ to 8 times it and of all; chance, n."""
        near = np.abs(np.log(np.array(self.alphas) / self.mean_length)) <= np.log(8) + 1e-6
        middle = int(np.abs(np.log(np.array(self.alphas) / self.mean_length)).argmin())
        rows = []
        for network in self.spec.networks:
            mean = self.curve(network)[0]
            least = mean[near].min() if near.any() else np.nan
            own = float(np.mean(self.own[network]))
            rows.append((NETWORKS[network], own, mean[middle], least, mean.min(), self.chance, self.n_test))
        columns = ["network", "as it is", "all at the mean length", "least from 1/8 to 8 times", "least of all", "chance"]
        return pd.DataFrame(rows, columns=[*columns, "test rows"])


def rescale_input(
    space: LatentSpace, spec: InputRescaleSpec = InputRescaleSpec(), report: Report = silent
) -> InputRescaleResult:
    """Train each network on rows as they are, then classify held-out rows that were all rescaled to length α.

    Raises
    ------
    SpaceError
        No labels, only one class, or too few rows.
    """
    rows, classes, targets = _labelled(space)
    lengths = space.norms[rows]
    mean_length = float(lengths.mean(dtype=np.float64))
    alphas = spec.alphas(mean_length)
    held_out = np.isin(space.ids[rows], spec.test_ids)
    steps = [(state, network) for state in spec.random_states for network in spec.networks]
    accuracy, own, chances = {network: [] for network in spec.networks}, {network: [] for network in spec.networks}, []
    for done, (state, network) in enumerate(steps):
        report(done, len(steps), f"{NETWORKS[network]}, random state {state}")
        train, test = _split(held_out, targets, spec, state)
        X, answers = space.vectors[rows], targets[test]
        answer = _fit(network, X[train], targets[train], state)
        curve = rescale_curve(answer, X[test], answers, alphas)["accuracy"].tolist()
        own[network].append(curve[0])
        accuracy[network].append(tuple(curve[1:]))
        chances.append(float(np.mean(answers == np.bincount(targets[train]).argmax())))
    report(len(steps), len(steps), "")
    return InputRescaleResult(
        spec,
        space.name,
        alphas,
        {network: tuple(found) for network, found in accuracy.items()},
        {network: tuple(found) for network, found in own.items()},
        mean_length,
        tuple(np.percentile(lengths, [2.5, 97.5]).astype(float).tolist()),
        float(np.mean(chances)),
        len(train),
        len(test),
        len(classes),
    )


def _labelled(space: LatentSpace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that have a label and are not zero, the names of the classes, and the class of each of these rows."""
    if space.labels is None:
        raise SpaceError(f"{space.name!r}: expected labels to train networks on, got none; choose a space with labels")
    rows = np.flatnonzero((space.labels != "") & (space.norms > 0))
    classes, targets = np.unique(space.labels[rows].astype(str), return_inverse=True)
    if len(classes) < 2 or len(classes) > len(rows) / 2:
        raise SpaceError(
            f"{space.name!r}: expected labels of two or more classes, each with several rows, got {len(classes)} different "
            f"ones for {len(rows)} rows; choose another space"
        )
    return rows, classes, targets


def _split(held_out: np.ndarray, targets: np.ndarray, spec: InputRescaleSpec, random_state: int) -> tuple[np.ndarray, ...]:
    """Training and held-out rows, at most `n_rows` together; held-out rows are the given ones, or else a share of all."""
    order = np.random.default_rng(random_state).permutation(len(targets))
    n_test = max(1, round(spec.test_fraction * min(len(order), spec.n_rows)))
    if held_out.any():
        order = np.concatenate([order[held_out[order]], order[~held_out[order]]])
        n_test = min(int(held_out.sum()), n_test)
        order = np.concatenate([order[:n_test], order[held_out.sum() :]])
    test, train = order[:n_test], order[n_test : spec.n_rows]
    if len(np.unique(targets[train])) < 2:
        raise SpaceError(f"expected training rows of two classes or more, got {len(train)} rows; take more rows")
    return np.sort(train), np.sort(test)


def _fit(network: str, X: np.ndarray, targets: np.ndarray, random_state: int) -> Answer:
    if network in ACTIVATIONS:
        return fit_plain_mlp(X, targets, network, random_state)
    present, numbers = np.unique(targets, return_inverse=True)
    head = fit_head(X, numbers, len(present), "mlp", random_state)
    return lambda rows: present[head.probabilities(rows).argmax(axis=1)]
