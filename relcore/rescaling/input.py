"""Rescale injection at the input of small networks (Fig. 4 of Maiorca et al. 2024): accuracy over the length of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.progress import Context
from relcore.rescaling.networks import ACTIVATIONS, Answer, fit_plain_mlp, rescale_curve
from relcore.sources.encodings import load_encoding
from relcore.spaces import LatentSpace, SpaceError, need_one_of, need_strings
from relcore.stitching.heads import fit_head

NETWORKS = {
    "relu": "ReLU",
    "tanh": "tanh",
    "cosine": "cosine",
    "layernorm": "normalised first",
}
Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class InputRescaleSpec:
    """Networks, lengths, and how often all is drawn again.

    Attributes
    ----------
    networks : tuple of str
        Some of `NETWORKS`; the first three have no normalisation, "layernorm" begins with one and cannot see a length.
    span, n_alphas : float, int
        Lengths α from the rows' mean length over `span` to `span` times it, evenly on a logarithmic axis.
    random_states : tuple of int
        Each draws rows, split and first weights.
    n_rows : int
        At most so many rows, drawn at random.
    test_fraction : float
        Of the rows.
    test_ids : tuple of str
        Rows to test on instead, such as those that an encoder was not trained on.
    """

    networks: tuple[str, ...] = ACTIVATIONS
    span: float = 32.0
    n_alphas: int = 41
    random_states: tuple[int, ...] = (0, 1, 2)
    n_rows: int = 3000
    test_fraction: float = 0.2
    test_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        need_strings("test_ids", self.test_ids)
        for name in ("networks", "random_states"):
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values or len(set(values)) < len(values):
                raise SpaceError(f"{name}: expected at least one, none twice, got {values!r}")
        for network in self.networks:
            need_one_of("networks", network, NETWORKS)
        if not isinstance(self.span, int | float) or not 1 < self.span <= 1e4:
            raise SpaceError(f"span: expected a factor above 1, at most 10,000, got {self.span!r}")
        for name, least in (("n_alphas", 2), ("n_rows", 10)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise SpaceError(f"{name}: expected a whole number from {least}, got {value!r}")
        if not 0 < self.test_fraction < 1:
            raise SpaceError(f"test_fraction: expected a share between 0 and 1, got {self.test_fraction!r}")

    def alphas(self, mean_length: float) -> tuple[float, ...]:
        """The lengths, with 5 digits; the middle one of an odd number is the mean length itself."""
        return tuple(float(f"{alpha:.5g}") for alpha in mean_length * np.geomspace(1 / self.span, self.span, self.n_alphas))

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> InputRescaleSpec:
        """Back from ``dataclasses.asdict``; unknown or misplaced settings are a SpaceError."""
        try:
            return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in record.items()})
        except (TypeError, AttributeError) as error:
            raise SpaceError(f"rescale: unknown or misplaced setting ({error})") from error


@dataclass(frozen=True)
class InputRescaleResult:
    """Accuracy of every network at every length.

    Attributes
    ----------
    alphas : a lengths
    accuracy : network → random states × a
    own : network → accuracy of each random state with the rows as they are
    mean_length, lengths : float, (float, float)
        Of the space's rows: the mean, and between what 95 % of them lie.
    chance : float
        Of the class that is most frequent among the training rows.
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
        """A row a network: accuracy as it is, at the mean length, the least from ⅛ to 8 times it and of all; chance, n."""
        near = np.abs(np.log(np.array(self.alphas) / self.mean_length)) <= np.log(8) + 1e-6
        middle = int(np.abs(np.log(np.array(self.alphas) / self.mean_length)).argmin())
        rows = []
        for network in self.spec.networks:
            mean = self.curve(network)[0]
            least = mean[near].min() if near.any() else np.nan
            own = float(np.mean(self.own[network]))
            rows.append((NETWORKS[network], own, mean[middle], least, mean.min(), self.chance, self.n_test))
        columns = [
            "network",
            "as it is",
            "all at the mean length",
            "least from 1/8 to 8 times",
            "least of all",
            "chance",
            "test rows",
        ]
        return pd.DataFrame(rows, columns=columns)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, as a store keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> InputRescaleResult:
        """Back from `to_json`."""
        lists = {name: tuple(record[name]) for name in ("alphas", "lengths")}
        accuracy = {network: tuple(map(tuple, curves)) for network, curves in record["accuracy"].items()}
        own = {network: tuple(found) for network, found in record["own"].items()}
        spec = InputRescaleSpec.from_json(record["spec"])
        return cls(**{**record, **lists, "spec": spec, "accuracy": accuracy, "own": own})


def rescale_input(space: LatentSpace, spec: InputRescaleSpec | None = None, report: Report | None = None) -> InputRescaleResult:
    """Train each network on rows as they are, then ask it about test rows that were all brought to length α.

    Raises
    ------
    SpaceError
        No labels, one class only, or fewer rows than a test part needs; wrong settings.
    """
    spec = spec or InputRescaleSpec()
    rows, classes, targets = _labelled(space)
    lengths = space.norms[rows]
    mean_length = float(lengths.mean(dtype=np.float64))
    alphas = spec.alphas(mean_length)
    held_out = np.isin(space.ids[rows], spec.test_ids)
    steps = [(state, network) for state in spec.random_states for network in spec.networks]
    accuracy, own, chances = {network: [] for network in spec.networks}, {network: [] for network in spec.networks}, []
    for done, (state, network) in enumerate(steps):
        if report:
            report(done, len(steps), f"{NETWORKS[network]}, random state {state}")
        train, test = _split(held_out, targets, spec, state)
        X, answers = space.vectors[rows], targets[test]
        answer = _fit(network, X[train], targets[train], state)
        curve = rescale_curve(answer, X[test], answers, alphas)["accuracy"].tolist()
        own[network].append(curve[0])
        accuracy[network].append(tuple(curve[1:]))
        chances.append(float(np.mean(answers == np.bincount(targets[train]).argmax())))
    if report:
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


def rescale_input_job(context: Context, *, inputs: Sequence[str], spec: InputRescaleSpec) -> None:
    """`rescale_input` as a job of the Engine; `inputs` is the key of one space."""
    found = rescale_input(load_encoding(context.store, inputs[0]), spec, context.report)
    context.put({}, {"rescale": found.to_json()})


def estimated_seconds(n: int, dimension: int, spec: InputRescaleSpec) -> float:
    """Roughly, on one thread: 30 epochs of each network, measured on 1,437 rows × 64, and the library's start."""
    rows = min(n, spec.n_rows) * (1 - spec.test_fraction)
    return 3.0 + len(spec.networks) * len(spec.random_states) * rows * (3.5e-4 + 3e-7 * dimension)


def _labelled(space: LatentSpace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with a label and a length, the classes' names, and the class of each of those rows."""
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
    """Training and test rows, at most `n_rows` together: those held out, or else a share of all."""
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
