"""Heads: classifiers from rows of a space to probabilities of labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.libraries import extra
from relcore.base.magnitude import lengths
from relcore.base.names import HEADS
from relcore.engine.device import full_precision, torch_name
from relcore.engine.engine import Engine
from relcore.engine.rows import mean_row, unit_rows
from relcore.engine.training import model_on, reproducible, step_settings, train_epoch

if TYPE_CHECKING:
    import torch
    from torch import nn

_WIDTH = 256
_EPOCHS = 30
_BATCH = 128
_READ_AT_ONCE = 2**16  # rows of a call whose answers do not depend on each other
_LEARNING_RATE = 1e-3
_LEAST, _MOST = 2.0**-8, 2.0**30  # the typical number in rows that a network reads as they are


@dataclass(frozen=True)
class LogisticHead:
    """Multinomial logistic regression of directions: softmax(u weights + bias), u = (x − mean) / ‖x − mean‖;
    mean (d,), weights (d, C), bias (C,).
    """

    mean: np.ndarray
    weights: np.ndarray
    bias: np.ndarray

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """(m, d) → (m, C) float32, rows that sum to 1."""
        X = np.asarray(X, dtype=np.float32)
        scores = Engine().map_rows(X, self.weights, mean=self.mean, unit=True, shift=self.bias)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)


class NetworkHead:
    """A network with two hidden layers, as in the stitching experiments of Moschella et al. 2023 (their
    code).

    LayerNorm → Linear → SiLU → norm → Linear → SiLU → norm → Linear. The norm of "mlp" is a LayerNorm; that
    of "paper" is theirs, which normalises each feature over all rows of a call.
    """

    def __init__(self, model: nn.Module, needs_company: bool, exponent: int) -> None:
        self.model, self.needs_company, self.exponent = model, needs_company, exponent

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """Probability of each class for rows (m, d), (m, C) float32; SpaceError for one row and the "paper"
        head.
        """
        import torch

        if self.needs_company and len(X) < 2:
            raise SpaceError(
                "the paper head normalises over all rows of a call: expected two or more, got "
                f"{len(X)}; choose the head 'mlp' or 'logistic'"
            )
        rows, device = torch.from_numpy(network_rows(X, self.exponent)), torch_name()
        parts = rows.split(len(rows) if self.needs_company else _READ_AT_ONCE)
        precise = full_precision(torch, device.partition(":")[0])
        with torch.inference_mode(), precise, model_on(self.model, device) as model:
            return torch.cat([model(part.to(device)).softmax(dim=1).cpu() for part in parts]).numpy()


Head = LogisticHead | NetworkHead


@extra()
def fit_head(
    X: np.ndarray, classes: np.ndarray, n_classes: int, kind: str = "logistic", random_state: int = 0
) -> Head:
    """A head trained on rows X (n, d) with classes (n,), numbers 0 … n_classes − 1, each of which must
    occur.

    `kind` is "logistic", which has no randomness, "mlp" or "paper": networks trained for 30 epochs of AdamW.
    """
    need_one_of("head", kind, HEADS)
    if n_classes < 2 or len(np.unique(classes)) < n_classes:
        raise SpaceError(
            f"head: expected rows of each of {max(n_classes, 2)} classes, got {len(np.unique(classes))}"
        )
    return HEADS[kind].load()(np.asarray(X, dtype=np.float32), classes, n_classes, random_state)


def fit_logistic(X: np.ndarray, classes: np.ndarray, n_classes: int, random_state: int) -> LogisticHead:
    """A logistic head on centred unit rows, because the rows of other encoders differ in length."""
    from sklearn.linear_model import LogisticRegression

    mean = mean_row(X)
    fitted = LogisticRegression(max_iter=1000).fit(unit_rows(X, mean), classes)
    weights, bias = fitted.coef_.T, fitted.intercept_
    if n_classes == 2:  # scikit-learn gives the second class alone
        weights, bias = np.column_stack([np.zeros(len(weights)), weights[:, 0]]), np.append(0, bias)
    return LogisticHead(mean, weights.astype(np.float32), bias.astype(np.float32))


def fit_mlp(X: np.ndarray, classes: np.ndarray, n_classes: int, random_state: int) -> NetworkHead:
    from torch import nn

    return _train(X, classes, n_classes, random_state, nn.LayerNorm)


def fit_paper(X: np.ndarray, classes: np.ndarray, n_classes: int, random_state: int) -> NetworkHead:
    from torch import nn

    norm = partial(nn.BatchNorm1d, affine=False, track_running_stats=False)
    return _train(X, classes, n_classes, random_state, norm, needs_company=True)


def _train(
    X: np.ndarray,
    classes: np.ndarray,
    n_classes: int,
    random_state: int,
    norm: Callable[[int], nn.Module],
    needs_company: bool = False,
) -> NetworkHead:
    import torch
    from torch import nn

    device, exponent = torch_name(), network_exponent(X)
    with reproducible(random_state):
        layers = [nn.LayerNorm(X.shape[1])]
        for width in (X.shape[1], _WIDTH):
            layers += [nn.Linear(width, _WIDTH), nn.SiLU(), norm(_WIDTH)]
        # The weights are drawn on the CPU, so that they are the same on every machine.
        model = nn.Sequential(*layers, nn.Linear(_WIDTH, n_classes)).to(device)
        rows = torch.from_numpy(network_rows(X, exponent)).to(device)
        targets = torch.from_numpy(classes.astype(np.int64)).to(device)
        optimiser = torch.optim.AdamW(model.parameters(), _LEARNING_RATE, **step_settings(device))

        def loss_of(batch: torch.Tensor) -> torch.Tensor:
            return nn.functional.cross_entropy(model(rows[batch]), targets[batch])

        for _ in range(_EPOCHS):
            batches = torch.randperm(len(rows), device=device).split(_BATCH)
            # One row has no spread to normalise by.
            train_epoch(loss_of, (batch for batch in batches if len(batch) > 1), optimiser)
    return NetworkHead(model.cpu().eval(), needs_company, exponent)


def network_exponent(X: np.ndarray) -> int:
    """A power of two to take out of rows (n, d): LayerNorm adds 1e-5 to a variance."""
    typical = np.median(lengths(X)) / np.sqrt(X.shape[1])
    return 0 if _LEAST <= typical < _MOST or not typical > 0 else int(np.frexp(typical)[1])


def network_rows(X: np.ndarray, exponent: int) -> np.ndarray:
    """Rows without this power of two, (n, d) float32."""
    return np.ldexp(np.asarray(X, dtype=np.float32), -exponent)
