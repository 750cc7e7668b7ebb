"""Autoencoders whose decoders read absolute, relative or whitened codes, for reconstruction stitching."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.errors import SpaceError, need_one_of, need_whole
from relcore.base.torch_state import one_thread, reproducible
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.images import pixel_array
from relcore.encoders.small_vision import LARGEST, held_out_rows
from relcore.runs.progress import Report, silent

if TYPE_CHECKING:
    import torch
    from torch import nn


REPRESENTATIONS = ("absolute", "relative", "whitened")
_CHANNELS = (32, 64, 128, 256)
_SMALLEST = 2  # the side to which convolutions shrink a picture
_AT_ONCE = 1024
_KL_WEIGHT = 1e-3


@dataclass(frozen=True)
class AutoencoderSpec:
    """Architecture and training of an autoencoder (Moschella et al. 2023, Table 3; architecture of their
    code).

    The encoder has up to four convolutions (32, 64, 128, 256 channels; 3 × 3, stride 2, BatchNorm, GELU),
    until a side is 2 pixels long. The decoder has the transposed convolutions, and a last convolution with a
    sigmoid. The relative decoder reads the cosines of the flattened features to those of the anchors through
    LayerNorm, Linear and GELU, without a bottleneck. The anchors are encoded again in every pass, without a
    gradient.

    Attributes
    ----------
    representation : {"absolute", "relative", "whitened"}
        "whitened" is ours: the cosines, centred, times (K + λI)^(−1/2).
    variational : bool
    width : int
        Of the absolute code, and of a variational one.
    ridge : float
        λ of "whitened".
    epochs, batch_size : int
    learning_rate : float
        The highest: it rises over the first fifth of the steps and falls to 0.
    """

    representation: str = "absolute"
    variational: bool = False
    width: int = 500
    ridge: float = 0.3
    epochs: int = 30
    batch_size: int = 64
    learning_rate: float = 3e-3

    def __post_init__(self) -> None:
        need_one_of("representation", self.representation, REPRESENTATIONS)
        need_whole(self, width=1, epochs=1, batch_size=2)
        for name in ("ridge", "learning_rate"):
            if not getattr(self, name) > 0:
                raise SpaceError(f"{name}: expected a number above 0, got {getattr(self, name)}")

    @property
    def title(self) -> str:
        """``"AE, relative"``, ``"VAE, absolute"``."""
        return f"{'VAE' if self.variational else 'AE'}, {self.representation}"


class Autoencoder:
    """A trained autoencoder, made by `fit_autoencoder`; encoder and decoder can be called separately."""

    def __init__(
        self, spec: AutoencoderSpec, parts: nn.ModuleDict, anchors: torch.Tensor, device: str
    ) -> None:
        self.spec, self.parts, self.anchors, self.device = spec, parts, anchors, device

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights and anchors, as `restore_autoencoder` takes them."""
        weights = {name: value.cpu().numpy() for name, value in self.parts.state_dict().items()}
        return weights | {"anchors": self.anchors.cpu().numpy()}

    def encode(self, images: np.ndarray) -> np.ndarray:
        """Codes of pictures (n, height, width): (n, width), or (n, k) relative to the model's own anchors."""
        return self._apply(lambda part: _code(self.parts, self.spec, part, self.anchors)[0], _pixels(images))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Pictures (n, height, width) of codes of this or another model, 0 … 1.

        Raises
        ------
        SpaceError
            Codes of another width.
        """
        expected = self.parts["read"][-2].in_features
        if codes.ndim != 2 or codes.shape[1] != expected:
            raise SpaceError(
                f"expected codes of width {expected}, got shape {codes.shape}; stitch models of one spec"
            )
        return self._apply(lambda part: _draw(self.parts, part), np.asarray(codes, dtype=np.float32))[:, 0]

    def _apply(self, function: Callable[[torch.Tensor], torch.Tensor], rows: np.ndarray) -> np.ndarray:
        import torch

        with torch.inference_mode(), one_thread():
            parts = torch.from_numpy(rows).to(self.device).split(_AT_ONCE)
            return np.concatenate([function(part).cpu().numpy() for part in parts])


def fit_autoencoder(
    images: np.ndarray,
    anchor_rows: np.ndarray,
    spec: AutoencoderSpec = AutoencoderSpec(),
    random_state: int = 0,
    report: Report = silent,
) -> Autoencoder:
    """Train on grey pictures (n, height, width) with values 0 … 1; anchors are row numbers, which absolute
    models ignore.

    The loss is the mean squared error, for a VAE plus .001 times the divergence to N(0, 1); the optimiser is
    AdamW. Training uses a GPU if there is one, else one thread, so equal settings give equal bits. `report`
    gets the mean loss of each epoch.

    Raises
    ------
    SpaceError
        Fewer than two pictures, values outside 0 … 1, fewer than two anchors, or anchors outside the
        pictures.
    """
    import torch

    pixels = _pixels(images)
    if len(pixels) < 2:
        raise SpaceError("expected two pictures or more to train on, got one")
    anchor_rows = np.asarray(anchor_rows)
    if spec.representation != "absolute" and (
        len(anchor_rows) < 2 or anchor_rows.min() < 0 or anchor_rows.max() >= len(pixels)
    ):
        raise SpaceError(
            f"anchors: expected two rows or more of 0 … {len(pixels) - 1}, got {anchor_rows.tolist()[:5]}"
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with reproducible(random_state):
        parts = _parts(spec, pixels.shape[2:], len(anchor_rows)).to(device)
        rows = torch.from_numpy(pixels).to(device)
        anchors = rows[torch.from_numpy(anchor_rows)] if spec.representation != "absolute" else rows[:0]
        n_batches = max(1, len(rows) // spec.batch_size)
        optimiser = torch.optim.AdamW(parts.parameters(), spec.learning_rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, partial(_warmth, n_steps=spec.epochs * n_batches)
        )
        for epoch in range(1, spec.epochs + 1):
            parts.train()
            total = 0.0
            # Equal parts rather than whole batches and a rest: batch normalisation cannot take a rest of one.
            for batch in torch.randperm(len(rows)).tensor_split(n_batches):
                loss = _loss(parts, spec, rows[batch.to(device)], anchors)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                total += loss.item() * len(batch)
            told = f"state {random_state}: epoch {epoch} of {spec.epochs}"
            report(epoch, spec.epochs, told, {"loss": total / len(rows)})
    return Autoencoder(spec, parts.eval(), anchors, device)


def _warmth(step: int, n_steps: int) -> float:
    """Share of the highest learning rate: a linear rise over a fifth of the steps, then half a cosine down
    to 0.
    """
    rising = max(1, n_steps // 5)
    return min(
        (step + 1) / rising,
        0.5 + 0.5 * math.cos(math.pi * max(0, step + 1 - rising) / max(1, n_steps - rising)),
    )


def restore_autoencoder(
    arrays: Mapping[str, np.ndarray], spec: AutoencoderSpec, size: tuple[int, int]
) -> Autoencoder:
    """The model of `Autoencoder.arrays`, for pictures of (height, width)."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    anchors = tensors.pop("anchors").to(device)
    parts = _parts(spec, size, len(anchors))
    parts.load_state_dict(tensors)
    return Autoencoder(spec, parts.to(device).eval(), anchors, device)


def _pixels(images: np.ndarray) -> np.ndarray:
    images = np.asarray(images, dtype=np.float32)
    if images.ndim != 3 or not len(images) or images.min() < 0 or images.max() > 1:
        raise SpaceError(
            f"expected grey pictures (n, height, width) of values 0 … 1, got shape {images.shape}"
        )
    return images[:, None]


def _parts(spec: AutoencoderSpec, size: tuple[int, int], n_anchors: int) -> nn.ModuleDict:
    """ "features", "mean" and "spread" (variational or absolute only), "read" and "draw"."""
    from torch import nn

    sizes = [size]
    while max(sizes[-1]) > _SMALLEST and len(sizes) <= len(_CHANNELS):
        sizes.append(tuple(-(-side // 2) for side in sizes[-1]))
    channels = (1, *_CHANNELS[: len(sizes) - 1])
    features = [
        layer
        for before, after in pairwise(channels)
        for layer in (nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.GELU())
    ]
    flat = channels[-1] * sizes[-1][0] * sizes[-1][1]
    parts = {"features": nn.Sequential(*features, nn.Flatten())}
    if spec.variational:
        parts |= {"mean": nn.Linear(flat, spec.width), "spread": nn.Linear(flat, spec.width)}
    elif spec.representation == "absolute":
        parts["mean"] = nn.Linear(flat, spec.width)
    read = spec.width if spec.representation == "absolute" else n_anchors
    norm = nn.Identity() if spec.representation == "absolute" else nn.LayerNorm(read)
    parts["read"] = nn.Sequential(norm, nn.Linear(read, flat), nn.GELU())
    draw = [nn.Unflatten(1, (channels[-1], *sizes[-1]))]
    for before, after, small, large in zip(
        channels[:0:-1], (*channels[-2:0:-1], channels[1]), sizes[:0:-1], sizes[-2::-1], strict=True
    ):
        rest = tuple(to - 2 * side + 1 for side, to in zip(small, large, strict=True))
        draw += [nn.ConvTranspose2d(before, after, 3, 2, 1, rest), nn.BatchNorm2d(after), nn.GELU()]
    parts["draw"] = nn.Sequential(*draw, nn.Conv2d(channels[1], 1, 3, 1, 1), nn.Sigmoid())
    return nn.ModuleDict(parts)


def _latent(parts: nn.ModuleDict, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The absolute code, and the logarithm of its variance for a variational model."""
    features = parts["features"](images)
    if "mean" not in parts:
        return features, None
    return parts["mean"](features), parts["spread"](features) if "spread" in parts else None


def _code(
    parts: nn.ModuleDict, spec: AutoencoderSpec, images: torch.Tensor, anchors: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The code that the decoder reads, and its divergence to N(0, 1)."""
    import torch

    code, log_variance = _latent(parts, images)
    divergence = code.new_zeros(())
    if log_variance is not None:
        divergence = 0.5 * (code.square() + log_variance.exp() - 1 - log_variance).sum(dim=1).mean()
        if parts.training:
            code = code + (0.5 * log_variance).exp() * torch.randn_like(code)
    if spec.representation == "absolute":
        return code, divergence
    with torch.no_grad():
        basis = _latent(parts, anchors)[0]
        mean = basis.mean(dim=0) if spec.representation == "whitened" else 0
        basis = torch.nn.functional.normalize(basis - mean)
    relative = torch.nn.functional.normalize(code - mean) @ basis.T
    if spec.representation == "whitened":
        with torch.no_grad():
            values, vectors = torch.linalg.eigh((basis @ basis.T).double())
            root = (vectors * (values.clamp(min=0) + spec.ridge).rsqrt()) @ vectors.T
        relative = relative @ root.float()
    return relative, divergence


def _draw(parts: nn.ModuleDict, code: torch.Tensor) -> torch.Tensor:
    return parts["draw"](parts["read"](code))


def _loss(
    parts: nn.ModuleDict, spec: AutoencoderSpec, images: torch.Tensor, anchors: torch.Tensor
) -> torch.Tensor:
    code, divergence = _code(parts, spec, images, anchors)
    error = (_draw(parts, code) - images).square().mean()
    return error + _KL_WEIGHT * divergence / images[0].numel() if spec.variational else error


# Pictures of a dataset as grey arrays of one size, split into training and held-out pictures.

_READ = 256


@dataclass(frozen=True)
class PictureSpec:
    """Which pictures, and how many of them.

    Attributes
    ----------
    dataset : DatasetSpec
    n_train, n_test : int
        Maximum numbers of pictures to train on and to hold out, drawn with a fixed random state. Held-out
        pictures are drawn from the fifth that `held_out_rows` names, training pictures (anchors among them)
        from the rest. Another n_test does not change the training pictures.
    image_size : int, optional
        Side in pixels to which every picture is resized, at most 64. Without it the pictures must have one
        size.
    """

    dataset: DatasetSpec
    n_train: int = 5_000
    n_test: int = 1_000
    image_size: int | None = None

    def __post_init__(self) -> None:
        bounds = {"n_train": (10, 10**6), "n_test": (2, 10**5)}
        if self.image_size is not None:
            bounds["image_size"] = (4, LARGEST)
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise SpaceError(f"{name}: expected a whole number from {least} to {most}, got {value!r}")


@dataclass(frozen=True)
class Pictures:
    """Grey pictures (n, height, width), 0 … 1; labels (n,) of str, or None."""

    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray | None
    test_labels: np.ndarray | None

    def examples(self, most: int = 10) -> np.ndarray:
        """Rows of `test` to show: the first of each class, then the first of the remaining rows."""
        every = np.arange(len(self.test))
        if self.test_labels is None:
            return every[:most]
        firsts = np.unique(self.test_labels.astype(str), return_index=True)[1]
        return np.concatenate([firsts, np.setdiff1d(every, firsts)])[:most]


def part_sizes(n: int, spec: PictureSpec) -> tuple[int, int]:
    """Numbers of training and held-out pictures of a dataset of n."""
    held_out = len(held_out_rows(n))
    return min(spec.n_train, n - held_out), min(spec.n_test, held_out)


def load_pictures(dataset: Dataset, spec: PictureSpec, report: Report = silent) -> Pictures:
    """Read the pictures and convert colours to grey.

    Raises
    ------
    SpaceError
        Not a dataset of pictures, fewer than ten, several or too large sizes without `image_size`, an
        unreadable picture.
    """
    if dataset.kind != "images":
        raise SpaceError(
            f"{dataset.name}: expected pictures, got {dataset.kind}; choose a dataset of pictures"
        )
    if len(dataset) < 10:
        raise SpaceError(
            f"{dataset.name}: expected ten pictures or more, got {len(dataset)}; choose a larger dataset"
        )
    held_out = held_out_rows(len(dataset))
    others = np.setdiff1d(np.arange(len(dataset)), held_out)
    n_train, n_test = part_sizes(len(dataset), spec)
    test = np.sort(np.random.default_rng([0, 0]).choice(held_out, n_test, replace=False))
    train = np.sort(np.random.default_rng([0, 1]).choice(others, n_train, replace=False))
    rows = np.sort(np.concatenate([train, test]))
    pixels = _grey(dataset, rows, spec.image_size, report)
    labels = dataset.labels
    return Pictures(
        pixels[np.isin(rows, train)],
        pixels[np.isin(rows, test)],
        None if labels is None else labels[train],
        None if labels is None else labels[test],
    )


def _grey(dataset: Dataset, rows: np.ndarray, side: int | None, report: Report) -> np.ndarray:
    """(m, height, width), 0 … 1, read block by block."""
    first = dataset.item(int(rows[0]))
    width, height = (side, side) if side else first.size
    if max(width, height) > LARGEST:
        raise SpaceError(
            f"{dataset.name}: expected pictures of at most {LARGEST} × {LARGEST} pixels, got {width} ×"
            f" {height}; set image_size=32, say"
        )
    parts = []
    for start in range(0, len(dataset), _READ):
        stop = min(start + _READ, len(dataset))
        wanted = rows[(rows >= start) & (rows < stop)]
        if len(wanted):
            images = dataset.items(start, stop)
            images = [images[row - start] for row in wanted]
            others = {image.size for image in images} - {(width, height)}
            if others and not side:
                sizes = " and ".join(f"{one[0]} × {one[1]}" for one in ((width, height), min(others)))
                raise SpaceError(
                    f"{dataset.name}: expected pictures of one size, got {sizes}; set image_size=32, say"
                )
            parts.append(pixel_array(images, "L", (height, width), dataset.name)[:, 0])
        report(stop, len(dataset), "reading the pictures")
    return np.concatenate(parts).astype(np.float32) / 255
