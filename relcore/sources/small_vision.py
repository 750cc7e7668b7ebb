"""SmallVision: image encoders trained on the spot as classifiers; a space is what the classifier's last layer sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from relcore.determinism import reproducible, seeded
from relcore.sources.dataset import Dataset
from relcore.sources.encoder import EncodeBatch, Report, Trained, TrainedEncoder
from relcore.sources.pixels import mode_of, pixel_array
from relcore.sources.small_networks import NAMES, Architecture, small_network
from relcore.sources.torch_batches import TorchBatches, best_device
from relcore.spaces import SpaceError, quote

if TYPE_CHECKING:
    import torch
    from torch import nn

LARGEST = 64  # pixels a side: beyond it these networks learn slowly, and little
_BATCH = 64
_READ = 256
_LEARNING_RATE = 3e-3
_HELD_OUT = 0.2


@dataclass(frozen=True)
class SmallVision(TrainedEncoder):
    """A small network trained on the dataset's labels, with a linear head on its `width` outputs, which are the space.

    A fifth of the rows is held out from training: the same fifth for every encoder of a dataset, see `held_out_rows`. Two
    networks of equal settings are equal to the last bit on a machine; a processor is used with one thread for that.

    Attributes
    ----------
    architecture : "mlp", "cnn", "residual" or "vit"
    width : int
        Dimension of the space, 2 to 4096.
    epochs : int
        Passes over the training rows. AdamW, learning rate up to .003 and down to 0, batches of 64.
    random_state : int
        Draws the first weights and the order of the rows.
    image_size : int, optional
        Pixels a side to which every picture is resized, at most 64; default as they are, which must be of one size.
    train_rows : int
        At most so many rows are trained on, drawn at random; all are encoded.
    """

    architecture: Architecture = "cnn"
    width: int = 64
    epochs: int = 12
    random_state: int = 0
    image_size: int | None = None
    train_rows: int = 5_000

    kind: ClassVar = "images"

    def __post_init__(self) -> None:
        if self.architecture not in NAMES:
            raise SpaceError(f"architecture: expected one of {quote(NAMES)}, got {self.architecture!r}")
        bounds = {"width": (2, 4096), "epochs": (1, 1000), "random_state": (0, 2**32 - 1), "train_rows": (10, 10**7)}
        if self.image_size is not None:
            bounds["image_size"] = (4, LARGEST)
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise SpaceError(f"{name}: expected a whole number from {least} to {most}, got {value!r}")

    @property
    def title(self) -> str:
        return f"{NAMES[self.architecture]} {self.width}, state {self.random_state}"

    def train(self, dataset: Dataset, report: Report) -> Trained:
        """Metadata: "loss" and "held_out_accuracy" by epoch, "accuracy" of the last, "n_train", "n_held_out", "classes", …

        Raises
        ------
        SpaceError
            No labels, one class only, (nearly) a class a row, pictures of several or too large sizes without `image_size`.
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

        arrays, facts = dict(trained.arrays), trained.metadata
        mean, deviation = arrays.pop("pixel_mean"), arrays.pop("pixel_deviation")
        mode, size = facts["mode"], tuple(facts["size"])
        device = best_device()
        model = self._new_model(len(facts["classes"]), mode, size)
        model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
        model.to(device).eval()

        def forward(images: list) -> dict[str, torch.Tensor]:
            self._check_sizes(images, size, dataset.name)
            pixels = (pixel_array(images, mode, size, dataset.name) - mean) / deviation
            return {"": model["encoder"](torch.from_numpy(pixels.astype(np.float32)).to(device))}

        batches = TorchBatches(forward, device, half=False)

        def encode_batch(images: list) -> dict[str, np.ndarray]:
            with reproducible(self.random_state):
                return batches(images)

        return encode_batch

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
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _LEARNING_RATE, total_steps=n_steps, pct_start=0.2)
        order = torch.Generator().manual_seed(self.random_state)
        curve: dict[str, list[float]] = {"loss": [], "held_out_accuracy": []}
        for epoch in range(1, self.epochs + 1):
            model.train()
            total = 0.0
            # Equal parts rather than batches of 64 and a rest: batch normalisation cannot take a rest of one.
            shuffled = train[torch.randperm(len(train), generator=order).to(train.device)]
            for batch in shuffled.tensor_split(n_batches):
                loss = nn.functional.cross_entropy(model["head"](model["encoder"](images[batch])), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.item() * len(batch)
            curve["loss"].append(round(total / len(train), 6))
            curve["held_out_accuracy"].append(round(_accuracy(model, images, labels, held_out), 6))
            measured = {"loss": curve["loss"][-1], "accuracy": curve["held_out_accuracy"][-1]}
            found = f"loss {measured['loss']:.3f}, held-out accuracy {measured['accuracy']:.3f}"
            report(epoch, self.epochs, f"{self.title}: epoch {epoch} of {self.epochs}, {found}", measured)
        return curve

    def _split(self, dataset: Dataset) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
        """Training rows, held-out rows, the classes' names, and the class of each row, -1 where there is none."""
        if dataset.labels is None:
            raise SpaceError(
                f"{self.title}: expected labels to train on, got none in {dataset.name!r}; choose a label column, or a "
                "pretrained encoder"
            )
        labelled = dataset.labels != ""
        classes, found = np.unique(dataset.labels[labelled].astype(str), return_inverse=True)
        if len(classes) < 2 or len(classes) > len(found) / 2:
            raise SpaceError(
                f"{self.title}: expected labels of two or more classes, each with several of the items, got {len(classes)} "
                f"different ones for {len(found)} items in {dataset.name!r}; choose another label column"
            )
        targets = np.full(len(dataset), -1, dtype=np.int64)
        targets[labelled] = found
        held_out = held_out_rows(len(dataset))
        train = np.setdiff1d(np.flatnonzero(labelled), held_out)
        held_out = held_out[labelled[held_out]][: self.train_rows]
        if len(train) < 2 or not len(held_out):
            raise SpaceError(
                f"{self.title}: expected ten or more labelled items, got {len(found)} in {dataset.name!r}; take more"
            )
        if len(train) > self.train_rows:
            train = np.sort(np.random.default_rng(self.random_state).choice(train, self.train_rows, replace=False))
        return train, held_out, classes.tolist(), targets

    def _pixels(self, dataset: Dataset, rows: np.ndarray, report: Report) -> tuple[str, tuple[int, int], np.ndarray]:
        """Mode, (height, width) and the pixels (m, channels, height, width) of these rows, read in stretches of the dataset."""
        first = dataset.item(int(rows[0]))
        size = (self.image_size, self.image_size) if self.image_size else (first.height, first.width)
        if max(size) > LARGEST:
            raise SpaceError(
                f"{self.title}: expected pictures of at most {LARGEST} × {LARGEST} pixels, got {size[1]} × {size[0]} in "
                f"{dataset.name!r}; set image_size=32, or choose a pretrained encoder"
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
                f"{self.title}: expected pictures of one size, got {size[1]} × {size[0]} and {width} × {height} in {name!r}; "
                "set image_size=32, say"
            )


def held_out_rows(n: int) -> np.ndarray:
    """The rows, ascending, of a dataset of n that no SmallVision is trained on: a fifth, the same for all of them."""
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
