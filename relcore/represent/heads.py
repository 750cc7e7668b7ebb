"""Heads: classifiers from rows of a space to probabilities of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError, extra, need_one_of
from relcore.base.names import HEADS
from relcore.base.rows import lengths, mean_row, unit_rows
from relcore.engine.device import full_precision
from relcore.engine.engine import Engine
from relcore.engine.training import Steps, reproducible, separate_stream

if TYPE_CHECKING:
    import torch

_WIDTH = 256
_EPOCHS = 30
_BATCH = 128
_TRAINED_AT_ONCE = 2**31  # maximum number of bytes of rows that are copied into one array for training
_READ_AT_ONCE = 2**16  # rows per call, if the probabilities of a row do not depend on other rows
_LEARNING_RATE = 1e-3
# networks rescale rows if their typical number is outside this range
_LEAST = 2.0**-8
_MOST = 2.0**30


@dataclass(frozen=True)
class LogisticHead:
    """Multinomial logistic regression on directions: softmax(u weights + bias) with u = (x − mean) / ‖x −
    mean‖. Shapes: mean (d,), weights (d, C), bias (C,).
    """

    mean: np.ndarray
    weights: np.ndarray
    bias: np.ndarray

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """The probability of each class for rows (m, d), an array (m, C) float32."""
        X = np.asarray(X, dtype=np.float32)
        scores = Engine().map_rows(X, self.weights, mean=self.mean, unit=True, shift=self.bias)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class NetworkHead:
    """A network with two hidden layers, as in the code of the stitching experiments of Moschella et al. 2023.

    Its layers: LayerNorm → Linear → SiLU → norm → Linear → SiLU → norm → Linear. In "mlp", the norm is a
    LayerNorm. In "paper", it normalises each feature over all rows of a call.
    """

    weights: list[torch.Tensor]  # on the CPU, because cached heads must not fill the memory of a GPU
    needs_company: bool
    exponent: int

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """The probability of each class for rows (m, d), an array (m, C) float32. With a "paper" head, a
        single row raises a SpaceError.
        """
        import torch

        if self.needs_company and len(X) < 2:
            raise SpaceError(
                "the paper head normalises over all rows of a call: expected two or more, got "
                f"{len(X)}; choose the head 'mlp' or 'logistic'"
            )
        rows = torch.from_numpy(network_rows(X, self.exponent))[None]
        device = torch_name()
        size = rows.shape[1] if self.needs_company else _READ_AT_ONCE
        parts = rows.split(size, dim=1)
        precise = full_precision(torch, device.partition(":")[0])
        with torch.inference_mode(), precise:
            weights = [weight[None].to(device) for weight in self.weights]
            scores = (_scores(weights, part.to(device), self.needs_company)[0] for part in parts)
            return torch.cat([part.softmax(dim=1).cpu() for part in scores]).numpy()


Head = LogisticHead | NetworkHead


def fit_head(
    X: np.ndarray, classes: np.ndarray, n_classes: int, kind: str = "logistic", random_state: int = 0
) -> Head:
    """A head trained on rows X (n, d) with `classes` (n,), 0 … n_classes − 1. Each class must occur.

    The `kind` "logistic" is deterministic. The kinds "mlp" and "paper" are networks, trained by AdamW for 30
    epochs.
    """
    return fit_heads([X], [classes], n_classes, kind, random_state)[0]


@extra()
def fit_heads(
    sides: Iterable[np.ndarray],
    classes: Sequence[np.ndarray],
    n_classes: int,
    kind: str = "logistic",
    random_state: int = 0,
) -> list[Head]:
    """Train a head for each of several spaces, as `fit_head` does. `sides` has the rows (n, d) of each space,
    `classes` their classes (n,).

    Networks for rows of the same shape are trained together: their weights are stacked, and all get the same
    batches. Equal seeds and sides give equal weights on the same kind of device. A network that is trained
    alone differs by rounding.
    """
    need_one_of("head", kind, HEADS)
    for each in classes:
        if n_classes < 2 or len(np.unique(each)) < n_classes:
            raise SpaceError(
                f"head: expected rows of each of {max(n_classes, 2)} classes, got {len(np.unique(each))}"
            )
    rows = (np.asarray(X, dtype=np.float32) for X in sides)
    return HEADS[kind].load()(rows, classes, n_classes, random_state)


def fit_logistic(
    sides: Iterable[np.ndarray], classes: Sequence[np.ndarray], n_classes: int, random_state: int
) -> list[LogisticHead]:
    """Logistic heads, fitted on centred unit rows, because rows of different encoders differ in length."""
    return [_logistic(X, each, n_classes) for X, each in zip(sides, classes, strict=True)]


def _logistic(X: np.ndarray, classes: np.ndarray, n_classes: int) -> LogisticHead:
    from sklearn.linear_model import LogisticRegression

    mean = mean_row(X)
    fitted = LogisticRegression(max_iter=1000).fit(unit_rows(X, mean), classes)
    weights = fitted.coef_.T
    bias = fitted.intercept_
    if n_classes == 2:  # of two classes, scikit-learn returns only the second
        weights = np.column_stack([np.zeros(len(weights)), weights[:, 0]])
        bias = np.append(0, bias)
    return LogisticHead(mean, weights.astype(np.float32), bias.astype(np.float32))


def _networks(
    sides: Iterable[np.ndarray],
    classes: Sequence[np.ndarray],
    n_classes: int,
    random_state: int,
    over_rows: bool,
) -> list[NetworkHead]:
    sides = list(sides)
    shapes: dict[tuple[int, ...], list[int]] = {}
    for place, X in enumerate(sides):
        shapes.setdefault(X.shape, []).append(place)
    heads = {}
    for places in shapes.values():
        at_once = max(1, _TRAINED_AT_ONCE // max(1, sides[places[0]].nbytes))
        for start in range(0, len(places), at_once):
            some = places[start : start + at_once]
            exponents = [network_exponent(sides[place]) for place in some]
            rows = [network_rows(sides[place], each) for place, each in zip(some, exponents, strict=True)]
            targets = [classes[place].astype(np.int64) for place in some]
            stacked = _train(rows, targets, n_classes, random_state, over_rows)
            for number, (place, exponent) in enumerate(zip(some, exponents, strict=True)):
                weights = [weight[number].clone() for weight in stacked]
                heads[place] = NetworkHead(weights, over_rows, exponent)
    return [heads[place] for place in range(len(sides))]


fit_mlp = partial(_networks, over_rows=False)
fit_paper = partial(_networks, over_rows=True)


def _train(
    sides: Sequence[np.ndarray],
    classes: Sequence[np.ndarray],
    n_classes: int,
    random_state: int,
    over_rows: bool,
) -> list[torch.Tensor]:
    """The stacked weights of the networks for all `sides`, which are rows (n, d), with their classes (n,)."""
    import torch
    from torch.nn.functional import cross_entropy

    device = torch_name()
    with reproducible(random_state), separate_stream(device):
        rows = torch.stack([torch.from_numpy(side) for side in sides]).to(device)
        targets = torch.stack([torch.from_numpy(numbers) for numbers in classes]).to(device)
        weights = [
            weight.expand(len(sides), *weight.shape).to(device).clone().requires_grad_()
            for weight in _first_weights(rows.shape[2], n_classes, over_rows)
        ]
        optimiser = torch.optim.AdamW(weights, _LEARNING_RATE, fused=True)

        def loss_of(batch: torch.Tensor) -> torch.Tensor:
            scores = _scores(weights, rows.index_select(1, batch), over_rows)
            # Not the mean over the networks, which would divide each gradient by their number.
            each = targets.index_select(1, batch).flatten()
            return cross_entropy(scores.flatten(0, 1), each, reduction="sum") / len(batch)

        step = Steps(loss_of, optimiser, device)
        for _ in range(_EPOCHS):
            for batch in torch.randperm(rows.shape[1], device=device).split(_BATCH):
                if len(batch) > 1:  # a single row has no variance to normalise by
                    step(batch)
        return [weight.detach().cpu() for weight in weights]


def _first_weights(width: int, n_classes: int, over_rows: bool) -> list[torch.Tensor]:
    """The initial weights: the factor and the shift of the first LayerNorm, and the matrix (in, out) and the
    bias of three linear layers. For "mlp", the factors and shifts of two more LayerNorms follow. They are
    drawn on the CPU, so that they are equal on every machine.
    """
    import torch
    from torch import nn

    weights = [torch.ones(1, width), torch.zeros(1, width)]
    for before, after in pairwise((width, _WIDTH, _WIDTH, n_classes)):
        layer = nn.Linear(before, after)
        weights += [layer.weight.detach().T.contiguous(), layer.bias.detach()[None]]
    if not over_rows:
        for _ in range(2):
            weights += [torch.ones(1, _WIDTH), torch.zeros(1, _WIDTH)]
    return weights


def _scores(weights: Sequence[torch.Tensor], X: torch.Tensor, over_rows: bool) -> torch.Tensor:
    import torch
    from torch.nn.functional import batch_norm, layer_norm, silu

    factor, shift, *layers = weights
    X = torch.addcmul(shift, layer_norm(X, X.shape[-1:]), factor)
    for place in (0, 2, 4):
        if place:
            X = silu(X)
            if over_rows:
                features = X.transpose(0, 1).flatten(1)
                features = batch_norm(features, None, None, training=True)
                X = features.unflatten(1, (len(X), -1)).transpose(0, 1)
            else:
                factor, shift = layers[place + 4 : place + 6]
                X = torch.addcmul(shift, layer_norm(X, X.shape[-1:]), factor)
        X = torch.baddbmm(layers[place + 1], X, layers[place])
    return X


def network_exponent(X: np.ndarray) -> int:
    """The exponent of the power of two by which rows (n, d) are divided, so that the variances of rows are
    large compared with the 1e-5 that LayerNorm adds to them."""
    typical = np.median(lengths(X)) / np.sqrt(X.shape[1])
    if _LEAST <= typical < _MOST or not typical > 0:
        return 0
    return int(np.frexp(typical)[1])


def network_rows(X: np.ndarray, exponent: int) -> np.ndarray:
    """The rows, divided by 2**exponent: (n, d) float32."""
    X = np.asarray(X, dtype=np.float32)
    if not exponent:
        return X
    return np.ldexp(X, -exponent)
