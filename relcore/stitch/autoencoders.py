"""Autoencoders whose decoders read absolute, relative or whitened codes, for reconstruction stitching."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError
from relcore.base.settings import check, setting
from relcore.engine.device import full_precision
from relcore.engine.training import model_on, one_thread, reproducible, step_settings, train_epoch
from relcore.runs.progress import Progress, silent

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

    The encoder has up to four convolutions (3 × 3, stride 2, BatchNorm, GELU), until a side is 2 pixels long;
    the decoder has the transposed ones, and a last one with a sigmoid. A relative decoder reads the cosines
    of the flattened features to those of the anchors, without a bottleneck. Anchors are encoded again in
    every pass, without a gradient.

    Attributes
    ----------
    representation : {"absolute", "relative", "whitened"}
        "whitened" (ours): the centred cosines times (K + λI)^(−1/2).
    width : int
        Width of the absolute code, also of a variational one.
    ridge : float
        λ of "whitened".
    learning_rate : float
        The maximum, reached after a fifth of the steps; then the rate falls to 0.
    """

    representation: str = setting("absolute", choices=REPRESENTATIONS)
    variational: bool = False
    width: int = setting(500, low=1)
    ridge: float = setting(0.3, above=0)
    epochs: int = setting(30, low=1)
    batch_size: int = setting(64, low=2)
    learning_rate: float = setting(3e-3, above=0)

    def __post_init__(self) -> None:
        check(self)


class Autoencoder:
    """A trained autoencoder, made by `fit_autoencoder`; encoder and decoder can be called separately."""

    def __init__(self, spec: AutoencoderSpec, parts: nn.ModuleDict, anchors: torch.Tensor) -> None:
        self.spec, self.parts, self.anchors = spec, parts, anchors

    def encode(self, images: np.ndarray) -> np.ndarray:
        """Codes (n, width) of pictures (n, height, width), or (n, k) relative to the model's anchors."""
        return self._apply(
            lambda parts, rows: _code(parts, self.spec, rows, self.anchors.to(rows.device))[0],
            _pixels(images),
        )

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Pictures (n, height, width), 0 … 1, decoded from codes of this or another model.

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
        return self._apply(_draw, np.asarray(codes, dtype=np.float32))[:, 0]

    def _apply(
        self, function: Callable[[nn.ModuleDict, torch.Tensor], torch.Tensor], rows: np.ndarray
    ) -> np.ndarray:
        import torch

        device = torch_name()
        precise = full_precision(torch, device.partition(":")[0])
        with torch.inference_mode(), one_thread(), precise, model_on(self.parts, device) as parts:
            blocks = torch.from_numpy(rows).split(_AT_ONCE)
            return np.concatenate([function(parts, block.to(device)).cpu().numpy() for block in blocks])


def fit_autoencoder(
    images: np.ndarray,
    anchor_rows: np.ndarray,
    spec: AutoencoderSpec = AutoencoderSpec(),
    random_state: int = 0,
    report: Progress = silent,
) -> Autoencoder:
    """Train on grey pictures (n, height, width) with values 0 … 1; anchors are row numbers, which absolute
    models ignore.

    The loss is the mean squared error, for a VAE plus .001 times the divergence from N(0, 1). Equal settings
    give equal bits on one kind of device (`training.reproducible`). `report` gets each epoch's mean loss.

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
    device = torch_name()
    with reproducible(random_state):
        parts = _parts(spec, pixels.shape[2:], len(anchor_rows)).to(device)
        rows = torch.from_numpy(pixels).to(device)
        anchors = rows[torch.from_numpy(anchor_rows)] if spec.representation != "absolute" else rows[:0]
        n_batches = max(1, len(rows) // spec.batch_size)
        optimiser = torch.optim.AdamW(parts.parameters(), spec.learning_rate, **step_settings(device))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, partial(_warmth, n_steps=spec.epochs * n_batches)
        )
        for epoch in range(1, spec.epochs + 1):
            parts.train()
            # Nearly equal parts, because batch normalisation fails on a remainder of one.
            batches = torch.randperm(len(rows), device=device).tensor_split(n_batches)
            total = train_epoch(
                lambda batch: _loss(parts, spec, rows[batch], anchors), batches, optimiser, schedule
            )
            message = f"state {random_state}: epoch {epoch} of {spec.epochs}"
            report(epoch, spec.epochs, message, {"loss": total / len(rows)})
    return Autoencoder(spec, parts.cpu().eval(), anchors.cpu())


def _warmth(step: int, n_steps: int) -> float:
    """The learning rate as a share of its maximum: a linear rise, then half a cosine down to 0."""
    rising = max(1, n_steps // 5)
    return min(
        (step + 1) / rising,
        0.5 + 0.5 * math.cos(math.pi * max(0, step + 1 - rising) / max(1, n_steps - rising)),
    )


def _pixels(images: np.ndarray) -> np.ndarray:
    images = np.asarray(images, dtype=np.float32)
    if images.ndim != 3 or not len(images) or images.min() < 0 or images.max() > 1:
        raise SpaceError(
            f"expected grey pictures (n, height, width) of values 0 … 1, got shape {images.shape}"
        )
    return images[:, None]


def _parts(spec: AutoencoderSpec, size: tuple[int, int], n_anchors: int) -> nn.ModuleDict:
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
    """The absolute code, and for a variational model the logarithm of its variance."""
    features = parts["features"](images)
    if "mean" not in parts:
        return features, None
    return parts["mean"](features), parts["spread"](features) if "spread" in parts else None


def _code(
    parts: nn.ModuleDict, spec: AutoencoderSpec, images: torch.Tensor, anchors: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The code that the decoder reads, and its divergence from N(0, 1)."""
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
