"""Rescale injection: measures how an answer depends on the length of vectors, which a relative space does
not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_distinct, need_one_of, need_strings, need_whole
from relcore.base.magnitude import scaled
from relcore.base.numbers import general, short
from relcore.base.torch_state import reproducible
from relcore.catalog.catalog import SpaceSpec
from relcore.charts.lines import Line, Lines
from relcore.encoders.dataset import DatasetSpec, evenly
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.open_networks import OpenNetwork, open_network
from relcore.encoders.small_vision import held_out_rows
from relcore.figures.export import Exportable, lines_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.invert.cross_domain import trained_weights
from relcore.represent.similarity import unit_rows
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.stitch.heads import fit_head, network_exponent
from relcore.tasks.recipe import Recipe, load_all, need_same_datasets
from relcore.tasks.task import Task

if TYPE_CHECKING:
    import torch
    from torch import nn


ACTIVATIONS = ("relu", "tanh", "cosine")
_WIDTH = 128
_EPOCHS = 30
_BATCH = 128
_LEARNING_RATE = 1e-3

Answer = Callable[[np.ndarray], np.ndarray]  # rows (m, d) → classes (m,)


def fit_plain_mlp(
    X: np.ndarray, classes: np.ndarray, activation: str = "relu", random_state: int = 0
) -> Answer:
    """Train two hidden layers without normalisation, as in Fig. 4 of Maiorca et al. 2024; AdamW, 30 epochs.

    Takes rows X (n, d) and their classes (n,), numbers from 0; returns a function from rows to classes.

    Raises
    ------
    SpaceError
        An activation that is not "relu", "tanh" or "cosine", fewer than two classes.
    """
    import torch
    from torch import nn

    need_one_of("activation", activation, ACTIVATIONS)
    classes = np.asarray(classes, dtype=np.int64)
    if len(np.unique(classes)) < 2:
        raise SpaceError(f"classes: expected two or more, got {len(np.unique(classes))}")
    bend = {"relu": torch.relu, "tanh": torch.tanh, "cosine": torch.cos}[activation]

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(X.shape[1], _WIDTH), nn.Linear(_WIDTH, _WIDTH)
            self.out = nn.Linear(_WIDTH, int(classes.max()) + 1)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.out(bend(self.second(bend(self.first(rows)))))

    exponent = network_exponent(X)

    def read(found: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(scaled(np.asarray(found, dtype=np.float32), exponent)))

    rows, targets = read(X), torch.from_numpy(classes)
    with reproducible(random_state):
        model = Network()
        optimiser = torch.optim.AdamW(model.parameters(), _LEARNING_RATE)
        for _ in range(_EPOCHS):
            for batch in torch.randperm(len(rows)).split(_BATCH):
                loss = nn.functional.cross_entropy(model(rows[batch]), targets[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    def answer(found: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(read(found)).argmax(dim=1).numpy()

    return answer


def rescale_curve(
    answer: Answer, X: np.ndarray, classes: np.ndarray, alphas: Sequence[float]
) -> pd.DataFrame:
    """Accuracy with every row rescaled to length α. Columns: alpha, accuracy; α is NaN in the first row,
    without rescaling.
    """
    _check_alphas(alphas)
    units = unit_rows(X)
    curve = [(np.nan, float(np.mean(answer(X) == classes)))]
    curve += [(alpha, float(np.mean(answer(units * np.float32(alpha)) == classes))) for alpha in alphas]
    return pd.DataFrame(curve, columns=["alpha", "accuracy"])


def rescale_layers(
    layers: Mapping[str, nn.Module],
    encode: Callable[[], np.ndarray],
    answer: Answer,
    classes: np.ndarray,
    alphas: Sequence[float],
) -> pd.DataFrame:
    """The same inside a network (Fig. 2): the output of one layer at a time is rescaled, and the layers after
    it run unchanged.

    Parameters
    ----------
    layers : name → module
        Modules whose output is vectors (…, d), or a tuple that begins with them, such as the layers of a
        transformer.
    encode : function () → rows
        Encodes the items of the classes; `answer` classifies its rows.

    Returns
    -------
    table with columns layer, alpha, accuracy and changed, the share of items whose answer is right here and
    wrong without rescaling, or wrong here and right without. The first row, with layer "" and α NaN, is the
    network without rescaling.
    """
    _check_alphas(alphas)
    own = answer(encode()) == classes
    cells = [("", np.nan, float(np.mean(own)), 0.0)]
    for name, module in layers.items():
        for alpha in alphas:
            with injected(module, alpha):
                right = answer(encode()) == classes
            cells.append((name, alpha, float(np.mean(right)), float(np.mean(right != own))))
    return pd.DataFrame(cells, columns=["layer", "alpha", "accuracy", "changed"])


@contextmanager
def injected(module: nn.Module, alpha: float) -> Iterator[None]:
    """Within this context, every output vector of the module (last axis) has length α."""
    from torch.nn.functional import normalize

    def rescale(_module: nn.Module, _inputs: tuple, output: torch.Tensor | tuple) -> torch.Tensor | tuple:
        if isinstance(output, tuple):
            return (alpha * normalize(output[0], dim=-1), *output[1:])
        return alpha * normalize(output, dim=-1)

    hook = module.register_forward_hook(rescale)
    try:
        yield
    finally:
        hook.remove()


def _check_alphas(alphas: Sequence[float]) -> None:
    if not len(alphas) or not all(alpha > 0 for alpha in alphas):
        raise SpaceError(f"alphas: expected lengths above 0, got {list(alphas)}")


# Rescale injection at the input (Fig. 4 of Maiorca et al. 2024): accuracy of small networks by the length of
# the rows.

NETWORKS = {"relu": "ReLU", "tanh": "tanh", "cosine": "cosine", "layernorm": "normalised first"}


@dataclass(frozen=True)
class InputRescaleSpec(Task["InputRescaleResult"]):
    """Which networks, which lengths and how many repetitions; the task takes one labelled space.

    Attributes
    ----------
    networks : tuple of str
        Some of `NETWORKS`; the first three have no normalisation, "layernorm" begins with one, so it ignores
        lengths.
    span, n_alphas : float, int
        Lengths α from the mean length of the rows divided by `span` to the mean times `span`, evenly on a
        logarithmic axis.
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
    result: ClassVar[str] = "relcore.invert.rescale:InputRescaleResult"

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
        """On one thread: 30 epochs of each network, measured on 1,437 rows × 64, and 3 s to load the
        library.
        """
        rows = min(len(spaces[0]), self.n_rows) * (1 - self.test_fraction)
        each = rows * (3.5e-4 + 3e-7 * spaces[0].dimension)
        return 3.0 + len(self.networks) * len(self.random_states) * each

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> InputRescaleResult:
        return rescale_input(*spaces, self, report)

    def alphas(self, mean_length: float) -> tuple[float, ...]:
        """The lengths, with 5 digits; the middle one of an odd number is the mean length itself."""
        return tuple(
            float(f"{alpha:.5g}")
            for alpha in mean_length * np.geomspace(1 / self.span, self.span, self.n_alphas)
        )


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
        """One row per network: accuracy as it is, at the mean length, the least from ⅛ to 8 times it and
        of all; chance, n.
        """
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
        ]
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
    accuracy, own, chances = (
        {network: [] for network in spec.networks},
        {network: [] for network in spec.networks},
        [],
    )
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
    """Rows that have a label and are not zero, the names of the classes, and the class of each of these
    rows.
    """
    if space.labels is None:
        raise SpaceError(
            f"{space.name!r}: expected labels to train networks on, got none; choose a space with labels"
        )
    rows = np.flatnonzero((space.labels != "") & (space.norms > 0))
    classes, targets = np.unique(space.labels[rows].astype(str), return_inverse=True)
    if len(classes) < 2 or len(classes) > len(rows) / 2:
        raise SpaceError(
            f"{space.name!r}: expected labels of two or more classes, each with several rows, got"
            f" {len(classes)} different ones for {len(rows)} rows; choose another space"
        )
    return rows, classes, targets


def _split(
    held_out: np.ndarray, targets: np.ndarray, spec: InputRescaleSpec, random_state: int
) -> tuple[np.ndarray, ...]:
    """Training and held-out rows, at most `n_rows` together; held-out rows are the given ones, or else a
    share of all.
    """
    order = np.random.default_rng(random_state).permutation(len(targets))
    n_test = max(1, round(spec.test_fraction * min(len(order), spec.n_rows)))
    if held_out.any():
        order = np.concatenate([order[held_out[order]], order[~held_out[order]]])
        n_test = min(int(held_out.sum()), n_test)
        order = np.concatenate([order[:n_test], order[held_out.sum() :]])
    test, train = order[:n_test], order[n_test : spec.n_rows]
    if len(np.unique(targets[train])) < 2:
        raise SpaceError(
            f"expected training rows of two classes or more, got {len(train)} rows; take more rows"
        )
    return np.sort(train), np.sort(test)


def _fit(network: str, X: np.ndarray, targets: np.ndarray, random_state: int) -> Answer:
    if network in ACTIVATIONS:
        return fit_plain_mlp(X, targets, network, random_state)
    present, numbers = np.unique(targets, return_inverse=True)
    head = fit_head(X, numbers, len(present), "mlp", random_state)
    return lambda rows: present[head.probabilities(rows).argmax(axis=1)]


# Rescale injection inside a network (Fig. 2 of Maiorca et al. 2024): accuracy by layer and length.


@dataclass(frozen=True)
class LayerRescaleSpec:
    """How many items, and which lengths.

    Attributes
    ----------
    n_train, n_test : int
        Number of items to train the head on, and of held-out items, each of which runs through the network
        once per layer and length. Classes are balanced. Training items are those that a small network may be
        trained on.
    span, n_alphas : float, int
        Lengths from the geometric mean over the layers divided by `span` to the mean times `span`, evenly on
        a logarithmic axis.
    random_state : int
        Draws the head's first weights.
    """

    n_train: int = 400
    n_test: int = 100
    span: float = 16.0
    n_alphas: int = 9
    random_state: int = 0

    def __post_init__(self) -> None:
        need_whole(self, n_train=10, n_test=2, n_alphas=2, random_state=0)
        if not 1 < self.span <= 1e4:
            raise SpaceError(f"span: expected a factor above 1, at most 10,000, got {self.span!r}")


@dataclass(frozen=True)
class LayerRescale(Task["LayerRescaleResult"]):
    """`rescale_network` of this dataset and encoder; `dataset_digest` tells the content of the dataset,
    for the key.
    """

    kind: ClassVar[str] = "rescale-layers"
    result: ClassVar[str] = "relcore.invert.rescale:LayerRescaleResult"

    dataset: DatasetSpec
    encoder: Encoder
    spec: LayerRescaleSpec = LayerRescaleSpec()
    dataset_digest: str = ""

    @property
    def title(self) -> str:
        return f"Rescale, {self.encoder.title}"

    def content(self, spaces: Sequence[LatentSpace] = ()) -> str:
        """The files of the encoder's model; the dataset's content is a setting."""
        return self.encoder.content()

    def seconds(self, spaces: Sequence[LatentSpace] = ()) -> float:
        """One pass of the held-out items per layer and length, the head's items once, and the training of
        the encoder.
        """
        data, small = load_dataset(self.dataset), isinstance(self.encoder, TrainedEncoder)
        pixels = int(np.prod(data.item(0).size)) if data.kind == "images" else 64
        each = 1e-4 * pixels / 64 if small else 54 / 2000  # measured: digits, and sentences through MiniLM
        passes = self.spec.n_test * ((4 if small else 7) * self.spec.n_alphas + 2) + self.spec.n_train
        training = self.encoder.seconds(len(data), pixels) if small else 5.0
        return (training or 5.0) + each * passes

    def run(
        self, spaces: Sequence[LatentSpace] = (), store: Store | None = None, report: Report = silent
    ) -> LayerRescaleResult:
        return rescale_network(self.dataset, self.encoder, store or Store(), self.spec, report)


@dataclass(frozen=True)
class LayerRescaleResult:
    """Accuracy with the output of one layer rescaled to a length, 0 … 1.

    Attributes
    ----------
    layers : l names
    lengths : l mean lengths of the layers' own vectors
    alphas : a lengths
    accuracy : l × a
    changed : l × a
        Share of items whose answer is right here and wrong without rescaling, or wrong here and right
        without.
    own, chance : float
        Accuracy without rescaling; accuracy of always answering the most frequent class of the head's
        training items.
    """

    spec: LayerRescaleSpec
    name: str
    layers: tuple[str, ...]
    lengths: tuple[float, ...]
    alphas: tuple[float, ...]
    accuracy: tuple[tuple[float, ...], ...]
    own: float
    chance: float
    n_train: int
    n_test: int
    changed: tuple[tuple[float, ...], ...]

    def nearest(self, layer: str) -> tuple[float, float]:
        """Accuracy and share of changed items at the length nearest to the layer's own mean."""
        row = self.layers.index(layer)
        at = int(np.abs(np.log(np.array(self.alphas) / self.lengths[row])).argmin())
        return self.accuracy[row][at], self.changed[row][at]

    def table(self) -> pd.DataFrame:
        """A row per layer: its mean length, accuracy nearest to it, least accuracy, not rescaled, chance,
        test items.
        """
        rows = []
        for layer, length, line in zip(self.layers, self.lengths, self.accuracy, strict=True):
            nearest = int(np.abs(np.log(np.array(self.alphas) / length)).argmin())
            rows.append((layer, length, line[nearest], min(line), self.own, self.chance, self.n_test))
        columns = [
            "layer",
            "mean length",
            "at about its mean",
            "least of all",
            "as it is",
            "chance",
            "test items",
        ]
        return pd.DataFrame(rows, columns=columns)


def rescale_network(
    dataset: DatasetSpec,
    encoder: Encoder,
    store: Store,
    spec: LayerRescaleSpec = LayerRescaleSpec(),
    report: Report = silent,
) -> LayerRescaleResult:
    """Train a plain ReLU head on the network's encodings, then rescale the output of one layer at a time.

    Raises
    ------
    SpaceError
        A dataset without labels or with one class, an encoder whose layers cannot be opened.
    """
    data = load_dataset(dataset, store)
    if data.labels is None:
        raise SpaceError(
            f"{data.name!r}: expected labels to train a head on, got none; choose a labelled dataset"
        )
    train, test = _rows(data.labels, spec)
    report(0, 1, f"opening {encoder.title}")
    weights = trained_weights(encoder, data, store, report) if isinstance(encoder, TrainedEncoder) else None
    network = open_network(encoder, data, report, weights)
    _, targets = np.unique(data.labels[np.concatenate([train, test])].astype(str), return_inverse=True)
    truth = targets[len(train) :]
    report(0, 1, f"a head on {len(train):,} items")
    answer = fit_plain_mlp(
        network.encode([data.item(row) for row in train]), targets[: len(train)], "relu", spec.random_state
    )
    items = [data.item(row) for row in test]
    lengths = _mean_lengths(network, items)
    center = np.exp(np.mean(np.log(list(lengths.values()))))
    alphas = tuple(
        float(f"{alpha:.5g}") for alpha in center * np.geomspace(1 / spec.span, spec.span, spec.n_alphas)
    )
    done, total = iter(range(10**9)), len(lengths) * len(alphas) + 1

    def encode() -> np.ndarray:
        report(next(done), total, f"{len(items):,} items, one layer at one length at a time")
        return network.encode(items)

    table = rescale_layers(network.layers, encode, answer, truth, alphas)
    inside = table[table["layer"] != ""].pivot(index="layer", columns="alpha").loc[list(lengths)]
    chance = float(np.mean(truth == np.bincount(targets[: len(train)]).argmax()))
    return LayerRescaleResult(
        spec,
        f"{encoder.title} · {data.name}",
        tuple(lengths),
        tuple(lengths.values()),
        alphas,
        tuple(map(tuple, inside["accuracy"].to_numpy().tolist())),
        float(table["accuracy"][0]),
        chance,
        len(train),
        len(test),
        tuple(map(tuple, inside["changed"].to_numpy().tolist())),
    )


def _rows(labels: np.ndarray, spec: LayerRescaleSpec) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train the head on, and held-out rows, among the labelled items."""
    held_out = held_out_rows(len(labels))
    parts = []
    for rows, n in ((np.setdiff1d(np.arange(len(labels)), held_out), spec.n_train), (held_out, spec.n_test)):
        rows = rows[labels[rows] != ""]
        parts.append(rows[evenly(labels[rows], n)])
    train, test = parts
    test = test[np.isin(labels[test].astype(str), labels[train].astype(str))]
    if len(np.unique(labels[train].astype(str))) < 2 or not len(test):
        raise SpaceError(
            f"expected labelled items of two classes or more, got {len(train)} to train on; take more items"
        )
    return train, test


def _mean_lengths(network: OpenNetwork, items: Sequence[Any]) -> dict[str, float]:
    """Mean length of the output vectors of each layer, without rescaling."""
    found: dict[str, list[float]] = {name: [] for name in network.layers}

    def watch(name: str) -> Callable:
        def hook(_module: Any, _inputs: tuple, output: Any) -> None:
            vectors = output[0] if isinstance(output, tuple) else output
            found[name].append(float(vectors.float().norm(dim=-1).mean()))

        return hook

    with ExitStack() as stack:
        for name, module in network.layers.items():
            stack.callback(module.register_forward_hook(watch(name)).remove)
        network.encode(list(items))
    return {name: float(np.mean(lengths)) for name, lengths in found.items() if lengths}


# Figures of rescale injection: curves of small networks, and layer × length of a large one.


@dataclass(frozen=True, kw_only=True)
class RescaleInput(Recipe):
    """Accuracy by the length of the rows, one line per network (Fig. 4 of Maiorca et al. 2024); `spaces`
    is one space.
    """

    figure: ClassVar[str] = "rescale-input"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    spec: InputRescaleSpec = InputRescaleSpec()

    def __post_init__(self) -> None:
        if len(self.spaces) != 1:
            raise SpaceError(f"recipe of rescale-input: expected one space, got {len(self.spaces)}")

    def draw(self, result: InputRescaleResult | None = None) -> Exportable:
        result = result or self.spec.run(load_all(self.spaces, self.digests, self.figure))
        return lines_exportable(_curves(result), self.to_json(), "relscope-rescale-input", result.table)


@dataclass(frozen=True, kw_only=True)
class RescaleLayers(Recipe):
    """Accuracy by layer and length (Fig. 2 of the same)."""

    figure: ClassVar[str] = "rescale-layers"
    newer: ClassVar[tuple[str, ...]] = ("dataset_digest",)

    dataset: DatasetSpec
    encoder: Encoder
    spec: LayerRescaleSpec = LayerRescaleSpec()
    dataset_digest: str = ""

    def draw(self, result: LayerRescaleResult | None = None) -> Exportable:
        if result is None:
            need_same_datasets((self.dataset,), (self.dataset_digest,), self.figure)
        result = result or LayerRescale(self.dataset, self.encoder, self.spec).run()
        return matrices_exportable(_layers(result), self.to_json(), "relscope-rescale-layers", result.table)


def _curves(result: InputRescaleResult) -> Lines:
    lines = []
    for network in result.spec.networks:
        mean, low, high = result.curve(network)
        band = (
            {"low": np.maximum(low, 0), "high": np.minimum(high, 1)}
            if len(result.spec.random_states) > 1
            else {}
        )
        lines.append(Line(NETWORKS[network], result.alphas, mean, **band))
    own = float(np.mean([result.own[network] for network in result.spec.networks]))
    n_states = len(result.spec.random_states)
    states = f"mean of {n_states} random states, band ± 1 deviation" if n_states > 1 else "1 random state"
    return Lines(
        tuple(lines),
        "length α of every row",
        "accuracy",
        log_x=True,
        baselines=(("rows as they are", own), ("chance", result.chance)),
        marks=(("mean length", result.mean_length),),
        note=f"{result.name}: {result.n_test:,} held-out rows of {result.n_classes} classes; {states}",
        y_range=(0, 1.03),
    )


def _layers(result: LayerRescaleResult) -> Matrices:
    values = np.array(result.accuracy)
    rows = tuple(
        f"{layer}  ({general(length)})" for layer, length in zip(result.layers, result.lengths, strict=True)
    )
    nearest = [int(np.abs(np.log(np.array(result.alphas) / length)).argmin()) for length in result.lengths]
    columns = tuple(float(f"{alpha:.3g}") for alpha in result.alphas)
    note = (
        f"not rescaled {short(result.own)}, chance {short(result.chance)}; {result.n_test:,} held-out items"
    )
    marked = tuple(enumerate(nearest))
    panel = MatrixPanel(
        result.name,
        rows,
        columns,
        values,
        note=f"{note}; in brackets: the layer's own mean length, dotted: the nearest α",
        marked=marked,
    )
    least = ", ".join(
        f"{layer} {short(min(line), 2)}" for layer, line in zip(result.layers, result.accuracy, strict=True)
    )
    alt = f"Heat map of accuracy, layer by length, of {result.name}; {note}. Least of each layer: {least}."
    return Matrices((panel,), (0.0, 1.0), "accuracy", alt, "layer", "length α of its vectors")
