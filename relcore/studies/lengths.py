"""Lengths of rows: how much they vary, and whether answers change when rows are rescaled.

Figs. 2 and 4 of Maiorca et al. 2024: rows that reach a small network, and vectors inside a large one, are
brought to the length α.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.magnitude import lengths, scaled
from relcore.base.numbers import general, short
from relcore.base.torch_state import reproducible
from relcore.catalog.encoding import trained_weights
from relcore.encoders.dataset import evenly
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.transformers import MiniLM
from relcore.encoders.vision import OpenNetwork, SmallVision, held_out_rows, open_network
from relcore.figures.charts import Line, Lines, Matrices, MatrixPanel
from relcore.represent.heads import fit_head, network_exponent
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report
from relcore.runs.store import Store
from relcore.scores.score import Z95
from relcore.spaces.space import LatentSpace
from relcore.studies.material import (
    DATA,
    LABELLED,
    SPACES,
    data_option,
    dataset_of,
    labelled_spaces,
    studied_spaces,
    test_ids_of,
    word_pair,
)
from relcore.studies.statistics import (
    Estimate,
    average,
    chart,
    count_of,
    finding,
    findings_table,
    mean,
    mean_at,
)
from relcore.studies.study import Option, RunResult, Settings, Study, grid, states

if TYPE_CHECKING:
    import torch
    from torch import nn


ACTIVATIONS = ("relu", "tanh", "cosine")
NETWORKS = {"relu": "ReLU", "tanh": "tanh", "cosine": "cosine", "layernorm": "normalised first"}
_WIDTH, _EPOCHS, _BATCH, _LEARNING_RATE = 128, 30, 128, 1e-3
_SPAN, _N_ALPHAS = 32.0, 41  # lengths from the mean length / 32 to the mean × 32
_N_ROWS, _TEST_FRACTION = 3000, 0.2
_MEASURES = ("as it is", "all at the mean length", "least from 1/8 to 8 times", "least of all")
_SPACE = {"digits": 1, "sentences": 3}  # the CNN, and MiniLM's last layer

Answer = Callable[[np.ndarray], np.ndarray]  # rows (m, d) → classes (m,)


class RescaledRows(Study):
    """Small networks without normalisation are trained on labelled rows as they are, then classify held-out
    rows that were all brought to the length α. Where the curve is flat, the length does not matter.
    "Normalised first" begins with a LayerNorm, so it ignores lengths.
    """

    kind = "rescaled-rows"
    cost = 4.0
    options = (
        DATA,
        Option(
            "networks",
            "Networks",
            tuple(NETWORKS),
            ACTIVATIONS,
            many=True,
            names=tuple(NETWORKS.values()),
            help="Two hidden layers of 128 with this activation and no normalisation.",
        ),
        states("rows, split and first weights"),
        SPACES,
    )
    by, names, measures = "network", NETWORKS, {name: name for name in (*_MEASURES, "chance")}

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        return grid(options, "data spaces", network=options["networks"])

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        if settings["spaces"]:
            space, test_ids = word_pair(settings["spaces"], store).source, ()
        else:
            space = labelled_spaces(settings["data"], store, report)[_SPACE[settings["data"]]]
            test_ids = test_ids_of(settings["data"], space)
        return RunResult(rescaled_rows(space, settings["network"], settings["random_state"], test_ids))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        lines = []
        for network, part in table.groupby("network", sort=False):
            means = [mean(scores) for scores in zip(*part["accuracy by length"], strict=True)]
            ends = ([getattr(one, end) for one in means] for end in ("value", "low", "high"))
            lines.append(Line(NETWORKS[network], part.lengths.iloc[0], *ends))
        marks = (("mean length", float(table["mean length"].iloc[0])),)
        levels = {"rows as they are": "as it is", "chance": "chance"}
        rows = f"{table.space.iloc[0]}, {count_of(table, 'held-out rows')}"
        titles = ("length α of every row", "accuracy")
        return {"accuracy": chart(table, lines, titles, rows, levels, log_x=True, marks=marks)}

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        both = {
            network: [mean_at(table, "network", network, name) for name in _MEASURES[::2]]
            for network in dict.fromkeys(table.network)
        }
        parts = [
            f"{NETWORKS[network]} {own:2} and {least:2}"
            for network, (own, least) in both.items()
            if own.has_interval
        ]
        if not parts:
            return ""
        return (
            "Accuracy of rows as they are, and the least where all are ⅛ to 8 times as long as on average:"
            f" {'; '.join(parts)}; chance is {short(average(table, 'chance'), 2)}."
        )


class RescaledLayers(Study):
    """The output vectors of one layer at a time are brought to the length α, and the layers after it run
    unchanged. A ReLU head that was trained without rescaling answers. In brackets: the layer's own mean
    length; dotted: the α nearest to it.
    """

    kind = "rescaled-layers"
    options = (
        Option(
            "network",
            "Network",
            LABELLED,
            "digits",
            names=("Digits through the small ViT", "Wikipedia sentences through MiniLM"),
        ),
        Option(
            "n_test",
            "Test items",
            (100, 360),
            360,
            help="With balanced classes. Each runs through the network once per layer and length.",
        ),
    )

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        n_train, n_alphas = (1000, 13) if options["network"] == "digits" else (400, 9)
        return [{**options, "n_train": n_train, "n_alphas": n_alphas, "span": 16.0, "random_state": 0}]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        network = settings["network"]
        encoder = SmallVision("vit") if network == "digits" else MiniLM((6,))
        return RunResult(rescaled_layers(network, encoder, settings, store, report))

    def seconds(self, settings: Settings) -> float:
        small = settings["network"] == "digits"
        passes = settings["n_test"] * ((4 if small else 7) * settings["n_alphas"] + 2) + settings["n_train"]
        return 15.0 + (1e-4 if small else 0.027) * passes

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Matrices]:
        run = table.iloc[0]
        nearest = tuple((row, _nearest(run.lengths, own)) for row, own in enumerate(run["own lengths"]))
        note = (
            f"not rescaled {short(run['as it is'])}, chance {short(run.chance)};"
            f" {count_of(table, 'held-out items')}; in brackets: the layer's own mean length, dotted: the"
            " nearest α"
        )
        layers, own = run.layers, run["own lengths"]
        rows = tuple(f"{layer} ({general(length, 2)})" for layer, length in zip(layers, own, strict=True))
        values = np.array(run.accuracy)
        least = ", ".join(
            f"{layer} {short(value, 2)}" for layer, value in zip(layers, values.min(axis=1), strict=True)
        )
        panel = MatrixPanel(run["name"], rows, tuple(run.lengths), values, note=note, marked=nearest)
        alt = f"Heat map of accuracy, layer by length, of {run['name']}; {note}. Least of each: {least}."
        axes = (alt, "layer", "length α of its vectors")
        return {"accuracy": Matrices((panel,), (0.0, 1.0), "accuracy", *axes)}

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        run = table.iloc[0]
        n = int(run["test rows"])
        levels = {"accuracy without rescaling": run["as it is"], "chance": run.chance}
        rows = [finding(name, Estimate(float(value), n=n)) for name, value in levels.items()]
        for layer, line, lost in zip(run.layers, run.accuracy, lost_by_layer(run), strict=True):
            rows.append(finding(f"{layer}, accuracy lost at about its mean length", lost, "paired answers"))
            rows.append(finding(f"{layer}, least accuracy", Estimate(float(min(line)), n=n)))
        return findings_table(rows)

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        run = table.iloc[0]
        lost = lost_by_layer(run)
        most = max(range(len(lost)), key=lambda layer: lost[layer].value)
        return (
            f"Brought to about their mean length, the vectors of {run.layers[most]}, the layer that loses"
            f" most of {len(lost)}, cost {lost[most]} of accuracy; at the worst length"
            f" {short(run['as it is'] - np.min(run.accuracy))}."
        )


def rescaled_rows(
    space: LatentSpace,
    network: str,
    random_state: int = 0,
    test_ids: Sequence[str] = (),
    n_rows: int = _N_ROWS,
) -> dict[str, Any]:
    """Train a network on rows as they are, and score it on held-out rows (those given, else a fifth) that all
    have length α, for each α. At most `n_rows` are taken. "least …": over the lengths.

    Raises
    ------
    SpaceError
        No labels, only one class, too few rows.
    """
    rows, targets = _labelled_rows(space)
    train, test = _split(np.isin(space.ids[rows], test_ids), targets, n_rows, random_state)
    X, classes, lengths = space.vectors[rows], targets[test], space.norms[rows]
    mean_length = float(lengths.mean(dtype=np.float64))
    alphas = lengths_around(mean_length, _SPAN, _N_ALPHAS)
    answer = _fit(network, X[train], targets[train], random_state)
    own, *curve = rescale_curve(answer, X[test], classes, alphas)
    away = np.abs(np.log(np.array(alphas) / mean_length))
    least = np.array(curve)[away <= np.log(8) + 1e-6].min(), min(curve)
    return dict(zip(_MEASURES, (own, curve[int(away.argmin())], *map(float, least)), strict=True)) | {
        "accuracy by length": curve,
        "lengths": list(alphas),
        "mean length": mean_length,
        "chance": float(np.mean(classes == np.bincount(targets[train]).argmax())),
        "space": space.name,
        "test rows": len(test),
    }


def lengths_around(center: float, span: float, n: int) -> tuple[float, ...]:
    """n lengths with 5 digits from `center` / `span` to `center` × `span`, evenly on a logarithmic axis."""
    return tuple(float(f"{alpha:.5g}") for alpha in center * np.geomspace(1 / span, span, n))


def rescale_curve(answer: Answer, X: np.ndarray, classes: np.ndarray, alphas: Sequence[float]) -> list[float]:
    """Accuracy of the rows as they are, then with every row rescaled to each length α."""
    units = unit_rows(X)
    rescaled = (units * np.float32(alpha) for alpha in alphas)
    return [float(np.mean(answer(rows) == classes)) for rows in (X, *rescaled)]


def fit_plain_mlp(
    X: np.ndarray, classes: np.ndarray, activation: str = "relu", random_state: int = 0
) -> Answer:
    """Train two hidden layers without normalisation on rows (n, d) of classes (n,); AdamW, 30 epochs.

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

    class Bend(nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return bend(rows)

    exponent, n_classes = network_exponent(X), int(classes.max()) + 1

    def read(rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(scaled(np.asarray(rows, dtype=np.float32), exponent)))

    rows, targets = read(X), torch.from_numpy(classes)
    with reproducible(random_state):
        layers = nn.Linear(X.shape[1], _WIDTH), nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, n_classes)
        model = nn.Sequential(layers[0], Bend(), layers[1], Bend(), layers[2])
        optimiser = torch.optim.AdamW(model.parameters(), _LEARNING_RATE)
        for _ in range(_EPOCHS):
            for batch in torch.randperm(len(rows)).split(_BATCH):
                loss = nn.functional.cross_entropy(model(rows[batch]), targets[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    def answer(rows: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return model(read(rows)).argmax(dim=1).numpy()

    return answer


def _labelled_rows(space: LatentSpace) -> tuple[np.ndarray, np.ndarray]:
    """Rows that have a label and are not zero, and the class of each."""
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
    return rows, targets


def _split(
    held_out: np.ndarray, targets: np.ndarray, n_rows: int, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows, at most `n_rows` together; test rows are held-out ones, else a share of all."""
    order = np.random.default_rng(random_state).permutation(len(targets))
    n_test = max(1, round(_TEST_FRACTION * min(len(order), n_rows)))
    if held_out.any():
        n_test = min(int(held_out.sum()), n_test)
        order = np.concatenate([order[held_out[order]][:n_test], order[~held_out[order]]])
    test, train = order[:n_test], order[n_test:n_rows]
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


def rescaled_layers(
    data: str, encoder: Encoder, settings: Settings, store: Store, report: Report
) -> dict[str, Any]:
    """Train a plain ReLU head on the network's encodings, then rescale the output of one layer at a time.

    "accuracy" and "changed" are l layers × a lengths; "changed" is the share of items whose answer is right
    here and wrong without rescaling, or wrong here and right without.

    Raises
    ------
    SpaceError
        An encoder whose layers cannot be opened.
    """
    dataset = load_dataset(dataset_of(data), store)
    train, test = _balanced_rows(dataset.labels, settings["n_train"], settings["n_test"])
    report(0, 1, f"opening {encoder.title}")
    is_trained = isinstance(encoder, TrainedEncoder)
    weights = trained_weights(encoder, dataset, store, report) if is_trained else None
    network = open_network(encoder, dataset, report, weights)
    _, targets = np.unique(dataset.labels[np.concatenate([train, test])].astype(str), return_inverse=True)
    known, truth = targets[: len(train)], targets[len(train) :]
    report(0, 1, f"a head on {len(train):,} items")
    answer = fit_plain_mlp(network.encode([dataset.item(row) for row in train]), known)
    items = [dataset.item(row) for row in test]
    lengths = _mean_lengths(network, items)
    center = np.exp(np.mean(np.log(list(lengths.values()))))
    alphas = lengths_around(center, settings["span"], settings["n_alphas"])
    counter, total = itertools.count(), len(lengths) * len(alphas) + 1

    def encode() -> np.ndarray:
        report(next(counter), total, f"{len(items):,} items, one layer at one length at a time")
        return network.encode(items)

    layers = {name: network.layers[name] for name in lengths}
    own, accuracy, changed = rescale_layers(layers, encode, answer, truth, alphas)
    return {
        "name": f"{encoder.title} · {dataset.name}",
        "layers": list(lengths),
        "own lengths": list(lengths.values()),
        "lengths": list(alphas),
        "accuracy": accuracy,
        "changed": changed,
        "as it is": own,
        "chance": float(np.mean(truth == np.bincount(known).argmax())),
        "test rows": len(test),
    }


def rescale_layers(
    layers: Mapping[str, nn.Module],
    encode: Callable[[], np.ndarray],
    answer: Answer,
    classes: np.ndarray,
    alphas: Sequence[float],
) -> tuple[float, list[list[float]], list[list[float]]]:
    """Accuracy of the network as it is; accuracy and share of changed items by layer and length.

    A layer's output is vectors (…, d), or a tuple that begins with them; `answer` classifies what `encode`
    gives.
    """
    own = answer(encode()) == classes
    right = np.empty((len(layers), len(alphas), len(own)), dtype=bool)
    for i, module in enumerate(layers.values()):
        for j, alpha in enumerate(alphas):
            with injected(module, alpha):
                right[i, j] = answer(encode()) == classes
    return float(own.mean()), right.mean(axis=2).tolist(), (right != own).mean(axis=2).tolist()


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


def lost_by_layer(run: Mapping[str, Any]) -> list[Estimate]:
    """Accuracy lost at about each layer's mean length, with the interval of a difference of paired answers.

    Of n items b are lost and c gained; the difference (b − c) / n has the standard error √(b + c − (b − c)² /
    n) / n. One more item counts as changed, so that the interval has a width where none did.
    """
    n, estimates = int(run["test rows"]), []
    for own, accuracy, changed in zip(run["own lengths"], run["accuracy"], run["changed"], strict=True):
        at = _nearest(run["lengths"], own)
        lost = run["as it is"] - accuracy[at]
        reach = Z95 * np.sqrt((changed[at] * n + 1) / n - lost**2) / np.sqrt(n)
        estimates.append(Estimate.around(lost, reach, n))
    return estimates


def _nearest(alphas: Sequence[float], length: float) -> int:
    return int(np.abs(np.log(np.array(alphas) / length)).argmin())


def _balanced_rows(labels: np.ndarray, n_train: int, n_test: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train the head on, and held-out rows, among the labelled items."""
    held_out = held_out_rows(len(labels))
    parts = []
    for rows, n in ((np.setdiff1d(np.arange(len(labels)), held_out), n_train), (held_out, n_test)):
        rows = rows[labels[rows] != ""]
        parts.append(rows[evenly(labels[rows], n)])
    train, test = parts
    return train, test[np.isin(labels[test].astype(str), labels[train].astype(str))]


def _mean_lengths(network: OpenNetwork, items: Sequence[Any]) -> dict[str, float]:
    """Mean length of the output vectors of each layer, without rescaling."""
    measured: dict[str, list[float]] = {name: [] for name in network.layers}

    def watch(name: str) -> Callable:
        def hook(_module: Any, _inputs: tuple, output: Any) -> None:
            vectors = output[0] if isinstance(output, tuple) else output
            measured[name].append(float(vectors.float().norm(dim=-1).mean()))

        return hook

    with ExitStack() as stack:
        for name, module in network.layers.items():
            stack.callback(module.register_forward_hook(watch(name)).remove)
        network.encode(list(items))
    return {name: float(np.mean(lengths)) for name, lengths in measured.items() if lengths}


# How much do the lengths of rows vary? No relative space holds them, so no inverse recovers them.

_EDGES = np.linspace(0, 3, 61)  # of the lengths over their average
_COUNT = {"digits": 4, "sentences": 4, "words": 2}
_KINDS = {"centred": "length from the mean", "norm": "norm"}


class RowLengths(Study):
    """The norm of each row, and its length from the mean of its space, which is what inversion works on: an
    inverted row gets the mean length of the target's anchors, reduced by the part of its direction that they
    do not span. "Varies by": the standard deviation over the mean.
    """

    kind = "row-lengths"
    cost = 1.0
    options = (data_option("digits", "sentences", "words", default=("digits", "words")), SPACES)

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        counts = {"": 2} if options["spaces"] else {data: _COUNT[data] for data in options["data"]}
        return [
            {"data": data, "spaces": list(options["spaces"]), "space": number, "random_state": 0}
            for data, count in counts.items()
            for number in range(count)
        ]

    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        if settings["spaces"]:
            pair = word_pair(settings["spaces"], store)
            spaces = [pair.source, pair.target]
        else:
            spaces = studied_spaces(settings["data"], store, report)
        return RunResult(length_values(spaces[settings["space"]]))

    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Lines]:
        middles = (_EDGES[:-1] + _EDGES[1:]) / 2
        charts = {}
        for kind, title in _KINDS.items():
            lines = [Line(run["name"], middles, run[f"{kind} density"]) for _, run in table.iterrows()]
            charts[title] = Lines(lines, f"{title} / its average", "density")
        return charts

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        return findings_table(
            [
                finding(f"{run['name']}, {title} varies by", _estimate(run, kind), "normal approximation")
                for _, run in table.iterrows()
                for kind, title in _KINDS.items()
            ]
        )

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        estimates = {run["name"]: _estimate(run, "centred") for _, run in table.iterrows()}
        least, most = (choose(estimates, key=lambda name: estimates[name].value) for choose in (min, max))
        parts = [f"{estimates[name]:2} of their mean in {name}" for name in dict.fromkeys((least, most))]
        return f"Row lengths vary by {' to '.join(parts)}; inversion cannot recover them."


def length_values(space: LatentSpace) -> dict[str, Any]:
    """Mean, coefficient of variation with the reach of its 95 % interval, and density of both lengths."""
    values: dict[str, Any] = {"name": space.name, "rows": len(space)}
    rows = np.asarray(space.vectors)
    for kind, sizes in (("norm", space.norms), ("centred", lengths(rows, mean_row(rows)))):
        sizes = np.asarray(sizes, dtype=np.float64)
        average = float(sizes.mean())
        spread = float(sizes.std(ddof=1)) / (average or 1.0)
        counts, _ = np.histogram(sizes / (average or 1.0), _EDGES)
        values |= {
            f"{kind} mean": average,
            f"{kind} varies by": spread,
            f"{kind} reach": float(Z95 * spread * np.sqrt((0.5 + spread**2) / len(sizes))),  # of a Gaussian
            f"{kind} density": (counts / len(sizes) / (_EDGES[1] - _EDGES[0])).tolist(),
        }
    return values


def _estimate(run: Any, kind: str) -> Estimate:
    return Estimate.around(run[f"{kind} varies by"], run[f"{kind} reach"], int(run["rows"]))
