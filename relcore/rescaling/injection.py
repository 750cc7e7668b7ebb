"""Rescale injection: measures how an answer depends on the length of vectors, which a relative space does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from relcore.determinism import reproducible
from relcore.magnitude import scaled
from relcore.similarity import unit_rows
from relcore.spaces import SpaceError, need_one_of
from relcore.stitching.heads import network_exponent

if TYPE_CHECKING:
    import torch
    from torch import nn

ACTIVATIONS = ("relu", "tanh", "cosine")
_WIDTH = 128
_EPOCHS = 30
_BATCH = 128
_LEARNING_RATE = 1e-3

Answer = Callable[[np.ndarray], np.ndarray]  # rows (m, d) → classes (m,)


def fit_plain_mlp(X: np.ndarray, classes: np.ndarray, activation: str = "relu", random_state: int = 0) -> Answer:
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


def rescale_curve(answer: Answer, X: np.ndarray, classes: np.ndarray, alphas: Sequence[float]) -> pd.DataFrame:
    """Accuracy with every row rescaled to length α. Columns: alpha, accuracy; α is NaN in the first row, without rescaling."""
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
    """The same inside a network (Fig. 2): the output of one layer at a time is rescaled, and the layers after it run unchanged.

    Parameters
    ----------
    layers : name → module
        Modules whose output is vectors (…, d), or a tuple that begins with them, such as the layers of a transformer.
    encode : function () → rows
        Encodes the items of the classes; `answer` classifies its rows.

    Returns
    -------
    table with columns layer, alpha, accuracy and changed, the share of items whose answer is right here and wrong without
    rescaling, or wrong here and right without. The first row, with layer "" and α NaN, is the network without rescaling.
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
