"""Classifiers of pictures that Relscope trains: `SmallVision`, and `SweptVision` for studies. Their space is
the input of their head, the last linear layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.settings import Facts, setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Trained, TrainedEncoder
from relcore.encoders.pictures import mode_of, pixel_array
from relcore.encoders.transformers import TorchBatches
from relcore.engine.training import (
    load_arrays,
    model_on,
    reproducible,
    saved_arrays,
    step_settings,
    train_epoch,
    with_seed,
)
from relcore.runs.work import Progress
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    import torch
    from torch import nn
from relcore.encoders.vision_networks import Architecture, small_network

BATCH = 64
_HELD_OUT = 0.2


def held_out_rows(n: int) -> np.ndarray:
    """The numbers of the held-out rows, a fifth of n, in ascending order. No network of this file is trained
    on them."""
    return np.sort(np.random.default_rng(0).permutation(n)[: max(1, round(_HELD_OUT * n))])


class Classifier(TrainedEncoder):
    kind: ClassVar = "images"

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        return np.setdiff1d(np.arange(len(data)), held_out_rows(len(data)))


def batch_loss(
    model: nn.ModuleDict, images: torch.Tensor, targets: torch.Tensor, distort: bool = False
) -> Callable:
    """A function that computes the cross-entropy of the network on a batch, which is given by its row
    numbers. With `distort`, the pictures are distorted first."""
    from torch.nn.functional import cross_entropy

    def loss(batch: torch.Tensor) -> torch.Tensor:
        if distort:
            pictures = _distorted(images[batch])
        else:
            pictures = images[batch]
        return cross_entropy(model["head"](model["encoder"](pictures)), targets[batch])

    return loss


# angle in radians (15°); a shift of 1 is half a side
_ANGLE = 0.26
_SHEAR = 0.2
_SCALE = 0.15
_SHIFT = 0.15


def _distorted(images: torch.Tensor) -> torch.Tensor:
    """The pictures (m, channels, height, width), each rotated, sheared, scaled and shifted at random. Areas
    from outside a picture become as dark as its darkest pixel."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    def drawn(most: float) -> torch.Tensor:
        return most * (2 * torch.rand(len(images), device=images.device) - 1)

    angle = drawn(_ANGLE)
    dark = images.amin(dim=(0, 2, 3), keepdim=True)
    across = torch.stack([(1 + drawn(_SCALE)) * angle.cos(), drawn(_SHEAR) - angle.sin(), drawn(_SHIFT)], 1)
    down = torch.stack([angle.sin(), (1 + drawn(_SCALE)) * angle.cos(), drawn(_SHIFT)], 1)
    grid = affine_grid(torch.stack([across, down], 1), images.shape, align_corners=False)
    return grid_sample(images - dark, grid, align_corners=False) + dark


NAMES = {"mlp": "MLP", "cnn": "CNN", "residual": "Residual CNN", "vit": "ViT"}
LARGEST = 64  # maximum number of pixels per side
_READ = 256
_LEARNING_RATE = 3e-3
# Seconds per row and epoch at 64 pixels with one thread. They grow with the square root of the number of
# pixels.
_SECONDS = {"mlp": 4.6e-5, "cnn": 1.7e-4, "residual": 4.3e-4, "vit": 3.9e-4}


@dataclass(frozen=True)
class SmallVision(Classifier):
    """A small network with `width` outputs, which are the space, and a linear head on them.

    AdamW trains it in batches of 64, with a learning rate that rises to .003 and then falls to 0. On the same
    kind of device, equal settings give equal bits (see `training.reproducible`).
    """

    distorts: ClassVar = False  # whether pictures are distorted during training

    architecture: Architecture = setting(
        "cnn", label="Architectures", choices=NAMES, several=True, usual=tuple(NAMES)
    )
    width: int = setting(64, low=2, high=4096, help="Dimension of the space.")
    epochs: int = setting(12, low=1, high=1000, help="Passes over the training rows.")
    random_state: int = setting(
        0, low=0, high=2**32 - 1, help="Random seed of the initial weights and of the order of the rows."
    )
    image_size: int | None = setting(
        None,
        label="Pixels per side",
        low=4,
        high=LARGEST,
        usual=lambda data: (
            32 if len(data.sizes) > 1 or max(map(max, data.sizes), default=0) > LARGEST else None
        ),
        placeholder="own",
        help=(
            "Every picture is resized to this size. Needed if pictures differ in size, or are larger than"
            f" {LARGEST} pixels."
        ),
    )
    train_rows: int = setting(
        5_000,
        low=10,
        high=10**7,
        help="Maximum number of rows to train on, drawn at random. All rows are encoded.",
        more=True,
    )

    @classmethod
    def unfit(cls, data: Facts) -> str:
        if len(data.classes) > 1:
            return ""
        return (
            "Small networks learn from labels of two or more classes, and this dataset has none: choose a"
            " label column, or a pretrained model."
        )

    def seconds(self, n: int, pixels: int = 64) -> float:
        if self.image_size:
            pixels = self.image_size**2
        rows = min((1 - _HELD_OUT) * n, self.train_rows) * self.epochs
        rows += n / 3  # encoding takes a third of the time of a training step
        return 3.0 + rows * _SECONDS[self.architecture] * (pixels / 64) ** 0.5

    @property
    def title(self) -> str:
        return f"{NAMES[self.architecture]} {self.width}, state {self.random_state}"

    def train(self, dataset: Dataset, report: Progress) -> Trained:
        """Train the network.

        The metadata of the result are "loss" and "held_out_accuracy" of each epoch, "accuracy" (the held-out
        accuracy of the last epoch), "n_train", "classes", ….

        Raises
        ------
        SpaceError
            There are fewer than two classes, or nearly every row has its own class. Or, without `image_size`,
            pictures differ in size or are too large.
        """
        import torch

        train, held_out, classes, targets = self._split(dataset)
        rows = np.sort(np.concatenate([train, held_out]))
        mode, size, pixels = self._pixels(dataset, rows, report)
        device = torch_name()
        trained_on = pixels[np.isin(rows, train)]
        mean = trained_on.mean(axis=(0, 2, 3), keepdims=True, dtype=np.float64).astype(np.float32)
        deviation = trained_on.std(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
        deviation = np.maximum(deviation, 1).astype(np.float32)
        images = torch.from_numpy(((pixels - mean) / deviation).astype(np.float32)).to(device)
        labels = torch.from_numpy(targets[rows]).to(device)
        parts = [torch.from_numpy(np.flatnonzero(np.isin(rows, p))).to(device) for p in (train, held_out)]
        with reproducible(self.random_state):
            model = self._new_model(len(classes), mode, size).to(device)
            curve = self._fit(model, images, labels, *parts, report)
        metadata = {
            **curve,
            "accuracy": curve["held_out_accuracy"][-1],
            "n_train": len(train),
            "n_held_out": len(held_out),
            "classes": classes,
            "mode": mode,
            "size": list(size),
        }
        return Trained(saved_arrays(model) | {"pixel_mean": mean, "pixel_deviation": deviation}, metadata)

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        device = torch_name()
        encoder = self.network(trained)["encoder"]

        def encode_batch(images: list) -> dict[str, np.ndarray]:
            with reproducible(self.random_state), model_on(encoder, device) as there:
                pixels_of = partial(self.pixels, trained, name=dataset.name)
                return TorchBatches(lambda some: {"": there(pixels_of(some).to(device))}, device)(images)

        return encode_batch

    def pixels(self, trained: Trained, images: list, name: str) -> torch.Tensor:
        """The pictures as a tensor (m, channels, height, width)."""
        import torch

        arrays = trained.arrays
        size = tuple(trained.metadata["size"])
        self._check_sizes(images, size, name)
        pixels = pixel_array(images, trained.metadata["mode"], size, name)
        pixels = (pixels - arrays["pixel_mean"]) / arrays["pixel_deviation"]
        return torch.from_numpy(pixels.astype(np.float32))

    def network(self, trained: Trained) -> nn.ModuleDict:
        """The trained network, with its parts "encoder" and "head", on the CPU."""
        facts = trained.metadata
        model = self._new_model(len(facts["classes"]), facts["mode"], tuple(facts["size"]))
        return load_arrays(model, {name: trained.arrays[name] for name in model.state_dict()})

    def _new_model(self, n_classes: int, mode: str, size: tuple[int, int]) -> nn.ModuleDict:
        from torch import nn

        with with_seed(self.random_state):
            encoder = small_network(self.architecture, 1 if mode == "L" else 3, size, self.width)
            return nn.ModuleDict({"encoder": encoder, "head": nn.Linear(self.width, n_classes)})

    def _fit(
        self,
        model: nn.ModuleDict,
        images: torch.Tensor,
        labels: torch.Tensor,
        train: torch.Tensor,
        held_out: torch.Tensor,
        report: Progress,
    ) -> dict[str, list[float]]:
        import torch

        n_batches = -(-len(train) // BATCH)
        device = train.device
        settings = {"lr": _LEARNING_RATE, "weight_decay": 0.05, **step_settings(str(device))}
        optimizer = torch.optim.AdamW(model.parameters(), **settings)
        loss_of = batch_loss(model, images, labels, self.distorts)
        n_steps = self.epochs * n_batches
        if n_steps == 5:  # the schedule divides by its number of rising steps, n / 5 − 1
            n_steps = 6
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, _LEARNING_RATE, total_steps=n_steps, pct_start=0.2
        )
        order = torch.Generator(device).manual_seed(self.random_state)
        losses = []
        accuracies = []
        for epoch in range(1, self.epochs + 1):
            model.train()
            shuffled = train[torch.randperm(len(train), generator=order, device=device)]
            # Batches have nearly equal sizes, because batch normalisation fails on a batch of one row.
            total = train_epoch(loss_of, shuffled.tensor_split(n_batches), optimizer, schedule)
            model.eval()
            with torch.inference_mode():
                heads = (model["head"](model["encoder"](images[part])) for part in held_out.split(256))
                right = torch.cat([head.argmax(dim=1) for head in heads]) == labels[held_out]
            losses.append(round(total / len(train), 6))
            accuracies.append(round(right.sum().item() / len(right), 6))
            scores = f"loss {short(losses[-1])}, held-out accuracy {short(accuracies[-1])}"
            report(epoch, self.epochs, f"{self.title}: epoch {epoch} of {self.epochs}, {scores}")
        return {"loss": losses, "held_out_accuracy": accuracies}

    def _split(self, dataset: Dataset) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
        """Return the row numbers of training rows, the row numbers of held-out rows, the names of the
        classes, and the class of each row (-1 for none)."""
        if dataset.labels is None:
            labels = np.full(len(dataset), "")
        else:
            labels = dataset.labels.astype(str)
        labelled = labels != ""
        classes, numbers = np.unique(labels[labelled], return_inverse=True)
        if len(classes) < 2 or len(classes) > len(numbers) / 2:
            raise SpaceError(
                f"{self.title}: expected labels of two or more classes, each with several of the items, got"
                f" {len(classes)} different labels for {len(numbers)} items in {dataset.name!r}; choose"
                " another label column, or a pretrained encoder"
            )
        targets = np.full(len(dataset), -1, dtype=np.int64)
        targets[labelled] = numbers
        held_out = held_out_rows(len(dataset))
        train = np.setdiff1d(np.flatnonzero(labelled), held_out)
        held_out = held_out[labelled[held_out]][: self.train_rows]
        if len(train) < 2 or not len(held_out):
            raise SpaceError(
                f"{self.title}: expected ten or more labelled items, got {len(numbers)} in {dataset.name!r};"
                " take more items"
            )
        if len(train) > self.train_rows:
            rng = np.random.default_rng(self.random_state)
            train = np.sort(rng.choice(train, self.train_rows, replace=False))
        return train, held_out, classes.tolist(), targets

    def _pixels(
        self, dataset: Dataset, rows: np.ndarray, report: Progress
    ) -> tuple[str, tuple[int, int], np.ndarray]:
        """Return the mode, the size (height, width) and the pixels (m, channels, height, width) of these
        rows. They are read in blocks."""
        first = dataset.item(int(rows[0]))
        if self.image_size:
            size = (self.image_size, self.image_size)
        else:
            size = (first.height, first.width)
        if max(size) > LARGEST:
            raise SpaceError(
                f"{self.title}: expected pictures of at most {LARGEST} × {LARGEST} pixels, got {size[1]} ×"
                f" {size[0]} in {dataset.name!r}; set image_size=32, or choose a pretrained encoder"
            )
        mode = "L"
        parts = []
        for start in range(0, len(dataset), _READ):
            stop = min(start + _READ, len(dataset))
            wanted = rows[(rows >= start) & (rows < stop)] - start
            if len(wanted):
                block = dataset.items(start, stop)
                images = [block[row] for row in wanted]
                self._check_sizes(images, size, dataset.name)
                if mode == "L" and mode_of(images) == "RGB":
                    mode = "RGB"
                    parts = [np.repeat(part, 3, axis=1) for part in parts]
                parts.append(pixel_array(images, mode, size, dataset.name))
            report(stop, len(dataset), f"{self.title}: reading the pictures")
        return mode, size, np.concatenate(parts)

    def _check_sizes(self, images: list, size: tuple[int, int], name: str) -> None:
        if not self.image_size:
            need_one_size(images, size, name, "; set image_size=32, say")


def need_one_size(images: list, size: tuple[int, ...], name: str, remedy: str = "") -> None:
    """Raise a SpaceError unless all pictures have the size (height, width)."""
    if others := {(image.height, image.width) for image in images} - {tuple(size)}:
        height, width = min(others)
        raise SpaceError(
            f"{name}: expected pictures of one size, got {size[1]} × {size[0]} and {width} × {height}{remedy}"
        )


@dataclass(frozen=True)
class DistortedVision(SmallVision):
    """A `SmallVision` that is trained on distorted pictures, so that it can also classify pictures from other
    sources.

    After training on scans of digits, the four architectures have a mean accuracy of .837 on 2,000 digits of
    MNIST, and .994 on held-out scans. Networks of `SmallVision` have .696 and .983.
    """

    distorts: ClassVar = True
    is_offered: ClassVar = False

    epochs: int = setting(36, low=1, high=1000)
