"""SmallVision: image encoders trained on the spot as classifiers; a space is what the classifier's last
layer sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.settings import Facts, setting
from relcore.base.torch_state import reproducible, seeded
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Trained, TrainedEncoder
from relcore.encoders.images import mode_of, pixel_array
from relcore.encoders.transformers import TorchBatches, best_device
from relcore.runs.progress import Report
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    import torch
    from torch import nn


# The four architectures of SmallVision: networks of a few ten thousand weights from an image to a vector.

Architecture = Literal["mlp", "cnn", "residual", "vit"]
NAMES = {"mlp": "MLP", "cnn": "CNN", "residual": "Residual CNN", "vit": "ViT"}
_LARGE = 16  # pixels of the longer side above which the first convolution halves the picture already
_SMALLEST = 2  # the side to which convolutions shrink it
_TOKENS = 8  # the most patches per side


def small_network(architecture: Architecture, channels: int, size: tuple[int, int], width: int) -> nn.Module:
    """Images (m, channels, height, width) → vectors (m, width); the weights are drawn from torch's present
    generator.
    """
    build = {"mlp": _mlp, "cnn": _cnn, "residual": _residual, "vit": _vit}[architecture]
    return build(channels, size, width)


def _mlp(channels: int, size: tuple[int, int], width: int) -> nn.Module:
    from torch import nn

    pixels = channels * size[0] * size[1]
    return nn.Sequential(
        nn.Flatten(), nn.Linear(pixels, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, width)
    )


def _cnn(channels: int, size: tuple[int, int], width: int) -> nn.Module:
    from torch import nn

    stride = 1 if max(size) <= _LARGE else 2
    layers, size = _convolution(channels, 32, stride), _after(size, stride)
    before = 32
    while max(size) > _SMALLEST:
        layers, size = [*layers, *_convolution(before, 64, 2)], _after(size, 2)
        before = 64
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * size[0] * size[1], width))


def _residual(channels: int, size: tuple[int, int], width: int) -> nn.Module:
    """Blocks x ↦ relu(f(x) + shortcut(x)) as in "Deep Residual Learning for Image Recognition", CVPR 2016,
    Fig. 2.
    """
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *_convolution(before, after, stride), *_convolution(after, after, 1)[:-1]
            )
            same = before == after and stride == 1
            self.shortcut = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

        def forward(self, images):
            return (self.body(images) + self.shortcut(images)).relu()

    stride = 1 if max(size) <= _LARGE else 2
    layers, size = [*_convolution(channels, 24, stride), Block(24, 24, 1)], _after(size, stride)
    before = 24
    while max(size) > _SMALLEST:
        layers, size = [*layers, Block(before, 48, 2)], _after(size, 2)
        before = 48
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * size[0] * size[1], width))


def _vit(channels: int, size: tuple[int, int], width: int) -> nn.Module:
    """Two pre-norm layers over at most 8 × 8 patches, mean over the patches: "An Image is Worth 16×16
    Words", ICLR 2021.
    """
    import torch
    from torch import nn

    side = max(2, ceil(max(size) / _TOKENS))
    rows, columns = ceil(size[0] / side), ceil(size[1] / side)
    dimension = 64

    class VisionTransformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pad = nn.ZeroPad2d((0, columns * side - size[1], 0, rows * side - size[0]))
            self.patches = nn.Conv2d(channels, dimension, side, side)
            # Measured on the digits: positions that start as large as the patches, not at .02, give .97 where
            # those give .93.
            self.positions = nn.Parameter(0.3 * torch.randn(1, rows * columns, dimension))
            layer = nn.TransformerEncoderLayer(
                dimension, 4, 2 * dimension, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(dimension), enable_nested_tensor=False)
            self.out = nn.Linear(dimension, width)

        def forward(self, images):
            tokens = self.patches(self.pad(images)).flatten(2).transpose(1, 2)
            return self.out(self.layers(tokens + self.positions).mean(dim=1))

    return VisionTransformer()


def _convolution(before: int, after: int, stride: int) -> list[nn.Module]:
    from torch import nn

    return [nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]


def _after(size: tuple[int, int], stride: int) -> tuple[int, int]:
    return ceil(size[0] / stride), ceil(size[1] / stride)


LARGEST = 64  # pixels per side: with larger pictures these networks learn slowly and poorly
_BATCH = 64
_READ = 256
_LEARNING_RATE = 3e-3
_HELD_OUT = 0.2
# Seconds a row and epoch at 64 pixels, measured on a server's processor of 2026, one thread, torch 2: digits
# (1,797 of 8 × 8 pixels), 12 epochs, 0.8, 2.9, 7.4 and 6.7 s; 1,250 of MNIST's 28 × 28, 2 epochs, 0.5, 1.3,
# 2.5 and 2.7 s, so about with the square root of the pixels.
_SECONDS = {"mlp": 4.6e-5, "cnn": 1.7e-4, "residual": 4.3e-4, "vit": 3.9e-4}


@dataclass(frozen=True)
class SmallVision(TrainedEncoder):
    """A small network trained on the dataset's labels, with a linear head on its `width` outputs, which are
    the space.

    A fifth of the rows is held out from training: the same fifth for every encoder of a dataset, see
    `held_out_rows`. Two networks of equal settings are equal to the last bit on a machine; a processor is
    used with one thread for that.

    Training is by AdamW with a learning rate of up to .003 and down to 0, in batches of 64.
    """

    architecture: Architecture = setting(
        "cnn", label="Architectures", choices=NAMES, several=True, usual=tuple(NAMES)
    )
    width: int = setting(64, low=2, high=4096, help="Dimension of the space.")
    epochs: int = setting(12, low=1, high=1000, help="Passes over the training rows.")
    random_state: int = setting(
        0, low=0, high=2**32 - 1, help="Draws the first weights and the order of the rows."
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
            "Every picture is resized to this. Needed where pictures differ in size, or are larger than"
            f" {LARGEST} pixels."
        ),
    )
    train_rows: int = setting(
        5_000,
        low=10,
        high=10**7,
        help="The most rows to train on, drawn at random. All rows are encoded.",
        more=True,
    )

    kind: ClassVar = "images"

    @classmethod
    def unfit(cls, data: Facts) -> str:
        if len(data.classes) > 1:
            return ""
        return (
            "Small networks learn from labels of two or more classes, and this dataset has none: choose a"
            " label column, or a pretrained model."
        )

    def seconds(self, n: int, pixels: int = 64) -> float:
        pixels = self.image_size**2 if self.image_size else pixels
        rows = (
            min((1 - _HELD_OUT) * n, self.train_rows) * self.epochs + n / 3
        )  # encoding is the forward third of training
        return 3.0 + rows * _SECONDS[self.architecture] * (pixels / 64) ** 0.5

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        return np.setdiff1d(np.arange(len(data)), held_out_rows(len(data)))

    @property
    def title(self) -> str:
        return f"{NAMES[self.architecture]} {self.width}, state {self.random_state}"

    def train(self, dataset: Dataset, report: Report) -> Trained:
        """Metadata: "loss" and "held_out_accuracy" by epoch, "accuracy" of the last, "n_train", "n_held_out",
        "classes", …

        Raises
        ------
        SpaceError
            No labels, one class only, (nearly) a class a row, pictures of several or too large sizes without
            `image_size`.
        """
        import torch

        train_rows, held_out, classes, targets = self._split(dataset)
        rows = np.sort(np.concatenate([train_rows, held_out]))
        mode, size, pixels = self._pixels(dataset, rows, report)
        device = best_device()
        mean, deviation = _statistics(pixels[np.isin(rows, train_rows)])
        images = torch.from_numpy(((pixels - mean) / deviation).astype(np.float32)).to(device)
        labels = torch.from_numpy(targets[rows]).to(device)
        position = {"train": np.isin(rows, train_rows), "held out": np.isin(rows, held_out)}
        parts = {name: torch.from_numpy(np.flatnonzero(where)).to(device) for name, where in position.items()}
        with reproducible(self.random_state):
            model = self._new_model(len(classes), mode, size).to(device)
            curve = self._fit(model, images, labels, parts["train"], parts["held out"], report)
        arrays = {name: value.cpu().numpy() for name, value in model.state_dict().items()}
        metadata = {
            **curve,
            "accuracy": curve["held_out_accuracy"][-1],
            "n_train": len(train_rows),
            "n_held_out": len(held_out),
            "classes": classes,
            "mode": mode,
            "size": list(size),
        }
        return Trained({**arrays, "pixel_mean": mean, "pixel_deviation": deviation}, metadata)

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        import torch

        mean, deviation = trained.arrays["pixel_mean"], trained.arrays["pixel_deviation"]
        mode, size = trained.metadata["mode"], tuple(trained.metadata["size"])
        device = best_device()
        model = self.network(trained).to(device)

        def forward(images: list) -> dict[str, torch.Tensor]:
            self._check_sizes(images, size, dataset.name)
            pixels = (pixel_array(images, mode, size, dataset.name) - mean) / deviation
            return {"": model["encoder"](torch.from_numpy(pixels.astype(np.float32)).to(device))}

        batches = TorchBatches(forward, device, half=False)

        def encode_batch(images: list) -> dict[str, np.ndarray]:
            with reproducible(self.random_state):
                return batches(images)

        return encode_batch

    def network(self, trained: Trained) -> nn.ModuleDict:
        """The trained "encoder" and "head", on the processor."""
        import torch

        facts = trained.metadata
        model = self._new_model(len(facts["classes"]), facts["mode"], tuple(facts["size"]))
        weights = {name: trained.arrays[name] for name in model.state_dict()}
        model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})
        return model.eval()

    def _new_model(self, n_classes: int, mode: str, size: tuple[int, int]) -> nn.ModuleDict:
        from torch import nn

        with seeded(self.random_state):
            encoder = small_network(self.architecture, 1 if mode == "L" else 3, size, self.width)
            return nn.ModuleDict({"encoder": encoder, "head": nn.Linear(self.width, n_classes)})

    def _fit(
        self,
        model: nn.ModuleDict,
        images: torch.Tensor,
        labels: torch.Tensor,
        train: torch.Tensor,
        held_out: torch.Tensor,
        report: Report,
    ) -> dict[str, list[float]]:
        import torch
        from torch import nn

        n_batches = -(-len(train) // _BATCH)
        optimizer = torch.optim.AdamW(model.parameters(), lr=_LEARNING_RATE, weight_decay=0.05)
        n_steps = self.epochs * n_batches
        n_steps += n_steps == 5  # it rises for n / 5 − 1 steps and divides by that
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, _LEARNING_RATE, total_steps=n_steps, pct_start=0.2
        )
        order = torch.Generator().manual_seed(self.random_state)
        curve: dict[str, list[float]] = {"loss": [], "held_out_accuracy": []}
        for epoch in range(1, self.epochs + 1):
            model.train()
            total = 0.0
            # Equal parts, not batches of 64 and a remainder: batch normalisation fails on a batch of one.
            shuffled = train[torch.randperm(len(train), generator=order).to(train.device)]
            for batch in shuffled.tensor_split(n_batches):
                loss = nn.functional.cross_entropy(
                    model["head"](model["encoder"](images[batch])), labels[batch]
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.item() * len(batch)
            curve["loss"].append(round(total / len(train), 6))
            curve["held_out_accuracy"].append(round(_accuracy(model, images, labels, held_out), 6))
            measured = {"loss": curve["loss"][-1], "accuracy": curve["held_out_accuracy"][-1]}
            found = f"loss {short(measured['loss'])}, held-out accuracy {short(measured['accuracy'])}"
            report(epoch, self.epochs, f"{self.title}: epoch {epoch} of {self.epochs}, {found}", measured)
        return curve

    def _split(self, dataset: Dataset) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
        """Training rows, held-out rows, the classes' names, and the class of each row, -1 where there is
        none.
        """
        if dataset.labels is None:
            raise SpaceError(
                f"{self.title}: expected labels to train on, got none in {dataset.name!r}; choose a label"
                " column, or a pretrained encoder"
            )
        labelled = dataset.labels != ""
        classes, found = np.unique(dataset.labels[labelled].astype(str), return_inverse=True)
        if len(classes) < 2 or len(classes) > len(found) / 2:
            raise SpaceError(
                f"{self.title}: expected labels of two or more classes, each with several of the items, got"
                f" {len(classes)} different ones for {len(found)} items in {dataset.name!r}; choose another"
                " label column"
            )
        targets = np.full(len(dataset), -1, dtype=np.int64)
        targets[labelled] = found
        held_out = held_out_rows(len(dataset))
        train = np.setdiff1d(np.flatnonzero(labelled), held_out)
        held_out = held_out[labelled[held_out]][: self.train_rows]
        if len(train) < 2 or not len(held_out):
            raise SpaceError(
                f"{self.title}: expected ten or more labelled items, got {len(found)} in {dataset.name!r};"
                " take more"
            )
        if len(train) > self.train_rows:
            train = np.sort(
                np.random.default_rng(self.random_state).choice(train, self.train_rows, replace=False)
            )
        return train, held_out, classes.tolist(), targets

    def _pixels(
        self, dataset: Dataset, rows: np.ndarray, report: Report
    ) -> tuple[str, tuple[int, int], np.ndarray]:
        """Mode, (height, width) and the pixels (m, channels, height, width) of these rows, read block by
        block.
        """
        first = dataset.item(int(rows[0]))
        size = (self.image_size, self.image_size) if self.image_size else (first.height, first.width)
        if max(size) > LARGEST:
            raise SpaceError(
                f"{self.title}: expected pictures of at most {LARGEST} × {LARGEST} pixels, got {size[1]} ×"
                f" {size[0]} in {dataset.name!r}; set image_size=32, or choose a pretrained encoder"
            )
        mode, parts = "L", []
        for start in range(0, len(dataset), _READ):
            wanted = rows[(rows >= start) & (rows < start + _READ)]
            if len(wanted):
                images = dataset.items(start, min(start + _READ, len(dataset)))
                images = [images[row - start] for row in wanted]
                self._check_sizes(images, size, dataset.name)
                if mode == "L" and mode_of(images) == "RGB":
                    mode, parts = "RGB", [np.repeat(part, 3, axis=1) for part in parts]
                parts.append(pixel_array(images, mode, size, dataset.name))
            report(min(start + _READ, len(dataset)), len(dataset), f"{self.title}: reading the pictures")
        return mode, size, np.concatenate(parts)

    def _check_sizes(self, images: list, size: tuple[int, int], name: str) -> None:
        if self.image_size:
            return
        others = {(image.width, image.height) for image in images} - {(size[1], size[0])}
        if others:
            width, height = min(others)
            raise SpaceError(
                f"{self.title}: expected pictures of one size, got {size[1]} × {size[0]} and {width} ×"
                f" {height} in {name!r}; set image_size=32, say"
            )


def held_out_rows(n: int) -> np.ndarray:
    """The rows, ascending, of a dataset of n that no SmallVision is trained on: a fifth, the same for all
    of them.
    """
    return np.sort(np.random.default_rng(0).permutation(n)[: max(1, round(_HELD_OUT * n))])


def _statistics(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each channel, (1, channels, 1, 1)."""
    mean = pixels.mean(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
    deviation = pixels.std(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
    return mean.astype(np.float32), np.maximum(deviation, 1).astype(np.float32)


def _accuracy(model: nn.ModuleDict, images: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> float:
    import torch

    model.eval()
    with torch.inference_mode():
        right = sum(
            (model["head"](model["encoder"](images[part])).argmax(dim=1) == labels[part]).sum().item()
            for part in rows.split(256)
        )
    return right / len(rows)
