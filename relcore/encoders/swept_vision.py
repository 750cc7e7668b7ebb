"""SweptVision: image classifiers for studies, which vary all of their settings, poor ones included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.base.torch_state import reproducible
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Trained, TrainedEncoder
from relcore.encoders.images import pixel_array
from relcore.encoders.small_vision import held_out_rows
from relcore.encoders.transformers import best_device
from relcore.runs.progress import Report
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    import torch
    from torch import nn

_TITLES = {"mlp": "Swept MLP", "cnn": "Swept CNN"}
_BATCH = 64
_VALIDATION = 0.15  # of the rows that are not held out


@dataclass(frozen=True)
class SweptVision(TrainedEncoder):
    """A classifier of small pictures of one size; its last hidden layer, after a Linear, is the space, (n,
    width).

    "mlp": (Linear, activation, dropout) × depth → Linear → head. "cnn": the same with 3 × 3 convolutions of
    stride 1, 2, 2, …. A fifth of the rows is never trained on, as for `SmallVision`, and of the rest 15 %
    validate: the weights kept are those of the epoch that validates best. Without momentum, schedule or
    decay, so that the effect of a setting is visible.

    Attributes
    ----------
    architecture : "mlp" or "cnn"
    width, depth, dropout, activation, optimizer, learning_rate, epochs, random_state
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

    kind: ClassVar = "images"

    @classmethod
    def offered(cls) -> bool:
        return False  # made for studies

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        return np.setdiff1d(np.arange(len(data)), held_out_rows(len(data)))

    @property
    def title(self) -> str:
        return f"{_TITLES[self.architecture]} {self.depth} × {self.width}, state {self.random_state}"

    def train(
        self, dataset: Dataset, report: Report, watch: Callable[[np.ndarray], None] | None = None
    ) -> Trained:
        """Train; `watch`, if given, is called with the space of all rows, (n, width), after each epoch.

        Metadata: "losses", "accuracies" (validation) and "test_accuracies" by epoch, "epoch" that validated
        best, from 1.

        Raises
        ------
        SpaceError
            No labels, fewer than two classes, pictures of several sizes.
        """
        import torch
        from torch import nn

        parts = split_pictures(dataset)
        classes, train, validation, test = parts.classes, parts.train, parts.validation, parts.test
        device = best_device()
        images = torch.from_numpy(parts.pixels).to(device)
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        curve: dict[str, list[float]] = {"losses": [], "accuracies": [], "test_accuracies": []}
        best, weights = -1, {}
        with reproducible(self.random_state):
            targets = torch.from_numpy(classes).to(device)
            model = new_network(self, parts.pixels.shape[1:], int(classes.max()) + 1).to(device)
            optimizer = kinds[self.optimizer](model.parameters(), lr=self.learning_rate)
            for epoch in range(self.epochs):
                model.train()
                order, total = torch.from_numpy(train)[torch.randperm(len(train))], 0.0
                for batch in order.split(_BATCH):
                    loss = nn.functional.cross_entropy(
                        model["head"](model["encoder"](images[batch])), targets[batch]
                    )
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total += loss.item() * len(batch)
                rows = _encode(model, images)
                with torch.inference_mode():
                    right = (model["head"](rows).argmax(dim=1) == targets).cpu().numpy()
                curve["losses"].append(round(total / len(train), 6))
                curve["accuracies"].append(float(right[validation].mean()))
                curve["test_accuracies"].append(float(right[test].mean()))
                if watch:
                    watch(rows.cpu().numpy())
                if best < 0 or curve["accuracies"][-1] > curve["accuracies"][best]:
                    best, weights = (
                        epoch,
                        {name: value.cpu().numpy().copy() for name, value in model.state_dict().items()},
                    )
                measured = {"loss": curve["losses"][-1], "accuracy": curve["accuracies"][-1]}
                report(epoch + 1, self.epochs, f"{self.title}: epoch {epoch + 1} of {self.epochs}", measured)
        facts = {
            **curve,
            "epoch": best + 1,
            "size": list(parts.pixels.shape[1:]),
            "n_classes": int(classes.max()) + 1,
        }
        return Trained(weights, {**facts, "pixel_mean": parts.mean, "pixel_deviation": parts.deviation})

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        import torch

        facts, device = trained.metadata, best_device()
        with reproducible(self.random_state):  # building a network draws weights, which are then replaced
            model = new_network(self, facts["size"], facts["n_classes"])
        model.load_state_dict(
            {name: torch.from_numpy(array.copy()) for name, array in trained.arrays.items()}
        )
        model.to(device)

        def encode_batch(images: list) -> dict[str, np.ndarray]:
            pixels = _array(images, dataset.name, tuple(facts["size"]))
            pixels = torch.from_numpy((pixels - facts["pixel_mean"]) / facts["pixel_deviation"]).to(device)
            with reproducible(self.random_state):
                return {"": _encode(model, pixels).cpu().numpy()}

        return encode_batch


@dataclass(frozen=True)
class SplitPictures:
    """What a network is trained on: grey pixels (n, 1, height, width) of mean 0 and deviation 1 over the
    training rows.
    """

    pixels: np.ndarray
    classes: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    mean: float
    deviation: float


def split_pictures(dataset: Dataset) -> SplitPictures:
    """Pixels, classes and rows to train, validate and test on, the same for every `SweptVision`; errors as
    in `train`.
    """
    names = np.array([]) if dataset.labels is None else dataset.labels.astype(str)
    if len(set(names)) < 2 or (names == "").any():
        raise SpaceError(
            f"{dataset.name}: expected a label for each picture, of two classes or more, to train on; choose"
            " another"
        )
    images = dataset.items(0, len(dataset))
    pixels = _array(images, dataset.name, (1, images[0].height, images[0].width))
    test = held_out_rows(len(names))
    rest = np.random.default_rng(1).permutation(np.setdiff1d(np.arange(len(names)), test))
    n_validation = max(1, round(_VALIDATION * len(rest)))
    train, validation = np.sort(rest[n_validation:]), np.sort(rest[:n_validation])
    classes = np.unique(names, return_inverse=True)[1].astype(np.int64)
    mean, deviation = float(pixels[train].mean()), float(pixels[train].std()) or 1.0
    pixels = ((pixels - mean) / deviation).astype(np.float32)
    return SplitPictures(pixels, classes, train, validation, test, mean, deviation)


def _array(images: list, name: str, size: tuple[int, ...]) -> np.ndarray:
    """Grey pixels, (m, 1, height, width) float32."""
    if others := {(image.height, image.width) for image in images} - {tuple(size[1:])}:
        raise SpaceError(
            f"{name}: expected pictures of {size[2]} × {size[1]} pixels, got others, such as"
            f" {min(others)[::-1]}"
        )
    return pixel_array(images, "L", tuple(size[1:]), name).astype(np.float32)


def _encode(model: nn.ModuleDict, images: torch.Tensor) -> torch.Tensor:
    import torch

    model.eval()
    with torch.inference_mode():
        return torch.cat([model["encoder"](part) for part in images.split(512)])


def new_network(spec: SweptVision, size: Any, n_classes: int) -> nn.ModuleDict:
    """Its "encoder" and "head" with first weights from torch's present generator; `size` is (1, height,
    width).
    """
    from torch import nn

    activation = {"relu": nn.ReLU, "tanh": nn.Tanh}[spec.activation]
    if spec.architecture == "mlp":
        widths = [int(np.prod(size)), *[spec.width] * spec.depth]
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), activation(), nn.Dropout(spec.dropout)]
        last = spec.width
    else:
        layers, before, side = [], 1, tuple(size[1:])
        for layer in range(spec.depth):
            stride = 1 if layer == 0 or max(side) <= 2 else 2
            layers += [nn.Conv2d(before, 24, 3, stride, padding=1), activation(), nn.Dropout(spec.dropout)]
            before, side = 24, tuple(-(-length // stride) for length in side)
        layers.append(nn.Flatten())
        last = before * side[0] * side[1]
    encoder = nn.Sequential(*layers, nn.Linear(last, spec.width))
    return nn.ModuleDict({"encoder": encoder, "head": nn.Linear(spec.width, n_classes)})
