"""`SweptVision`, networks of pictures for studies over widths, depths and states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Trained
from relcore.encoders.pictures import pixel_array
from relcore.engine.training import (
    load_arrays,
    model_on,
    reproducible,
    saved_arrays,
    step_settings,
    train_epoch,
)
from relcore.runs.work import Progress

if TYPE_CHECKING:
    import torch
    from torch import nn
from relcore.encoders.vision import BATCH, NAMES, Classifier, batch_loss, held_out_rows, need_one_size

_VALIDATION = 0.15  # share of the rows for validation, of those that are not held out


@dataclass(frozen=True)
class SweptVision(Classifier):
    """A classifier of small pictures of one size. Its last hidden layer, the output of a Linear, is the space
    (n, width).

    "mlp": (Linear, activation, dropout) × depth → Linear → head. "cnn": the same with 3 × 3 convolutions of
    stride 1, 2, 2, …. The weights are those of the epoch with the best accuracy on the validation rows, 15 %
    of the rows that are not held out. There is no momentum, schedule or decay, so that the effect of each
    setting is visible.
    """

    architecture: Literal["mlp", "cnn"] = "mlp"
    width: int = setting(64, low=1)
    depth: int = setting(2, low=1)
    activation: Literal["relu", "tanh"] = "relu"
    dropout: float = setting(0.0, low=0, below=1)
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = setting(1e-3, above=0)
    epochs: int = setting(12, low=1)
    random_state: int = setting(0, low=0)

    is_offered: ClassVar = False

    @property
    def title(self) -> str:
        return f"Swept {NAMES[self.architecture]} {self.depth} × {self.width}, state {self.random_state}"

    def train(
        self, dataset: Dataset, report: Progress, watch: Callable[[np.ndarray], None] | None = None
    ) -> Trained:
        """Train the network. After each epoch, `watch` is called with the space of all rows, (n, width).

        The metadata of the result are "losses", "accuracies" (on validation rows) and "test_accuracies" of
        each epoch, and "epoch", the number of the best one, counted from 1.
        """
        import torch

        parts = split_pictures(dataset)
        device = torch_name()
        size = parts.pixels.shape[1:]
        n_classes = int(parts.classes.max()) + 1
        images = torch.from_numpy(parts.pixels).to(device)
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        losses = []
        accuracies = []
        test_accuracies = []
        best = -1
        weights = {}
        with reproducible(self.random_state):
            targets = torch.from_numpy(parts.classes).to(device)
            model = new_network(self, size, n_classes).to(device)
            settings = {"lr": self.learning_rate, **step_settings(device)}
            optimizer = kinds[self.optimizer](model.parameters(), **settings)
            loss_of = batch_loss(model, images, targets)
            train = torch.from_numpy(parts.train).to(device)
            for epoch in range(self.epochs):
                model.train()
                order = train[torch.randperm(len(train), device=device)]
                total = train_epoch(loss_of, order.split(BATCH), optimizer)
                rows = _encode(model, images)
                with torch.inference_mode():
                    right = (model["head"](rows).argmax(dim=1) == targets).cpu().numpy()
                losses.append(round(total / len(parts.train), 6))
                accuracies.append(float(right[parts.validation].mean()))
                test_accuracies.append(float(right[parts.test].mean()))
                if watch:
                    watch(rows.cpu().numpy())
                if best < 0 or accuracies[-1] > accuracies[best]:
                    best = epoch
                    weights = saved_arrays(model)
                report(epoch + 1, self.epochs, f"{self.title}: epoch {epoch + 1} of {self.epochs}")
        facts = {"losses": losses, "accuracies": accuracies, "test_accuracies": test_accuracies}
        facts |= {"epoch": best + 1, "size": list(size), "n_classes": n_classes}
        return Trained(weights, {**facts, "pixel_mean": parts.mean, "pixel_deviation": parts.deviation})

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        import torch

        facts = trained.metadata
        device = torch_name()
        with reproducible(self.random_state):  # a new network draws random weights
            model = new_network(self, facts["size"], facts["n_classes"])
        load_arrays(model, trained.arrays)

        def encode_batch(images: list) -> dict[str, np.ndarray]:
            pixels = _grey(images, dataset.name, tuple(facts["size"][1:]))
            pixels = torch.from_numpy((pixels - facts["pixel_mean"]) / facts["pixel_deviation"]).to(device)
            with reproducible(self.random_state), model_on(model, device) as there:
                return {"": _encode(there, pixels).cpu().numpy()}

        return encode_batch


@dataclass(frozen=True)
class SplitPictures:
    """Grey pixels (n, 1, height, width), standardised by the mean and deviation of the training rows; the
    class of each row; and the numbers of the training, validation and test rows."""

    pixels: np.ndarray
    classes: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    mean: float
    deviation: float


def split_pictures(dataset: Dataset) -> SplitPictures:
    """The pixels and the split of a dataset. They are the same for every `SweptVision`.

    Raises
    ------
    SpaceError
        A label is missing, there are fewer than two classes, or pictures differ in size.
    """
    if dataset.labels is None:
        names = np.array([])
    else:
        names = dataset.labels.astype(str)
    if len(set(names)) < 2 or (names == "").any():
        raise SpaceError(
            f"{dataset.name}: expected a label for each picture, of two classes or more, to train on; choose"
            " another"
        )
    images = dataset.items(0, len(dataset))
    pixels = _grey(images, dataset.name, (images[0].height, images[0].width))
    test = held_out_rows(len(names))
    rest = np.random.default_rng(1).permutation(np.setdiff1d(np.arange(len(names)), test))
    n_validation = max(1, round(_VALIDATION * len(rest)))
    train = np.sort(rest[n_validation:])
    validation = np.sort(rest[:n_validation])
    classes = np.unique(names, return_inverse=True)[1].astype(np.int64)
    mean = float(pixels[train].mean())
    deviation = float(pixels[train].std()) or 1.0
    pixels = ((pixels - mean) / deviation).astype(np.float32)
    return SplitPictures(pixels, classes, train, validation, test, mean, deviation)


def _grey(images: list, name: str, size: tuple[int, int]) -> np.ndarray:
    need_one_size(images, size, name)
    return pixel_array(images, "L", size, name).astype(np.float32)


def _encode(model: nn.ModuleDict, images: torch.Tensor) -> torch.Tensor:
    import torch

    model.eval()
    with torch.inference_mode():
        return torch.cat([model["encoder"](part) for part in images.split(512)])


def new_network(spec: SweptVision, size: Any, n_classes: int) -> nn.ModuleDict:
    """A network with the parts "encoder" and "head". Its weights are drawn from torch's generator. `size` is
    (1, height, width)."""
    from torch import nn

    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[spec.activation]
    layers: list[nn.Module] = []
    if spec.architecture == "mlp":
        layers.append(nn.Flatten())
        hidden = [spec.width] * spec.depth
        for before, after in pairwise([int(np.prod(size)), *hidden]):
            layers += [nn.Linear(before, after), activation(), nn.Dropout(spec.dropout)]
        last = spec.width
    else:
        before, height, width = size
        for layer in range(spec.depth):
            stride = 2
            if layer == 0 or max(height, width) <= 2:
                stride = 1
            layers += [nn.Conv2d(before, 24, 3, stride, padding=1), activation(), nn.Dropout(spec.dropout)]
            before = 24
            height = ceil(height / stride)
            width = ceil(width / stride)
        layers.append(nn.Flatten())
        last = before * height * width
    encoder = nn.Sequential(*layers, nn.Linear(last, spec.width))
    return nn.ModuleDict({"encoder": encoder, "head": nn.Linear(spec.width, n_classes)})
