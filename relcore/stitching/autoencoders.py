"""Autoencoders whose decoders read absolute, relative or whitened codes: what reconstruction stitching takes apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from relcore.spaces import SpaceError, need_one_of

if TYPE_CHECKING:
    import torch
    from torch import nn

REPRESENTATIONS = ("absolute", "relative", "whitened")
_CHANNELS = (32, 64, 128, 256)
_SMALLEST = 2  # the side to which convolutions shrink a picture
_BATCH = 128
_AT_ONCE = 1024
_LEARNING_RATE = 2e-3
_KL_WEIGHT = 1e-3

Report = Callable[[int, int, str], None]  # done, total, message


@dataclass(frozen=True)
class AutoencoderSpec:
    """What is trained (Moschella et al. 2023, Table 3; architecture of their code).

    Convolutions 32-64-128-256 of 3 × 3, stride 2, BatchNorm, GELU, as many as it takes to a side of 2, and the same back with a
    sigmoid. Relative: the flattened features, their cosines to the anchors, LayerNorm, Linear, GELU; no bottleneck. The anchors
    are encoded again at every pass, without a gradient.

    Attributes
    ----------
    representation : {"absolute", "relative", "whitened"}
        "whitened" is ours: the cosines, centred, times (K + λI)^(−1/2).
    variational : bool
    width : int
        Of the absolute code, and of a variational one.
    ridge : float
        λ of "whitened".
    epochs : int
    """

    representation: str = "absolute"
    variational: bool = False
    width: int = 500
    ridge: float = 0.3
    epochs: int = 30

    def __post_init__(self) -> None:
        need_one_of("representation", self.representation, REPRESENTATIONS)
        for name in ("width", "epochs"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise SpaceError(f"{name}: expected a whole number, 1 or more, got {value!r}")
        if not self.ridge > 0:
            raise SpaceError(f"ridge: expected a number above 0, got {self.ridge}")


class Autoencoder:
    """A trained autoencoder in its two halves, which `fit_autoencoder` makes."""

    def __init__(self, spec: AutoencoderSpec, parts: nn.ModuleDict, anchors: torch.Tensor, device: str) -> None:
        self.spec, self.parts, self.anchors, self.device = spec, parts, anchors, device

    def encode(self, images: np.ndarray) -> np.ndarray:
        """What the decoder reads, (n, height, width) → (n, width of the code), or (n, k) relative to its own anchors."""
        return self._apply(lambda part: _code(self.parts, self.spec, part, self.anchors)[0], _pixels(images))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Pictures of codes, its own or another encoder's, → (n, height, width), 0 … 1.

        Raises
        ------
        SpaceError
            Codes of another width.
        """
        expected = self.parts["read"][-2].in_features
        if codes.ndim != 2 or codes.shape[1] != expected:
            raise SpaceError(f"expected codes of width {expected}, got shape {codes.shape}; stitch models of one spec")
        return self._apply(lambda part: _draw(self.parts, part), np.asarray(codes, dtype=np.float32))[:, 0]

    def _apply(self, function: Callable[[torch.Tensor], torch.Tensor], rows: np.ndarray) -> np.ndarray:
        import torch

        with torch.inference_mode():
            parts = torch.from_numpy(rows).to(self.device).split(_AT_ONCE)
            return np.concatenate([function(part).cpu().numpy() for part in parts])


def fit_autoencoder(
    images: np.ndarray,
    anchor_rows: np.ndarray,
    spec: AutoencoderSpec = AutoencoderSpec(),
    random_state: int = 0,
    report: Report | None = None,
) -> Autoencoder:
    """Train on grey pictures (n, height, width) of 0 … 1; the anchors are row numbers among them, unused when absolute.

    AdamW, batches of 128, mean squared error, and for a VAE .001 times the divergence to N(0, 1). On a GPU where there is one.

    Raises
    ------
    SpaceError
        No pictures, values outside 0 … 1, anchors outside the pictures, fewer than two.
    """
    import torch

    pixels = _pixels(images)
    anchor_rows = np.asarray(anchor_rows)
    if spec.representation != "absolute" and (
        len(anchor_rows) < 2 or anchor_rows.min() < 0 or anchor_rows.max() >= len(pixels)
    ):
        raise SpaceError(f"anchors: expected two rows or more of 0 … {len(pixels) - 1}, got {anchor_rows.tolist()[:5]}")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(random_state)
        parts = _parts(spec, pixels.shape[2:], len(anchor_rows)).to(device)
        rows = torch.from_numpy(pixels).to(device)
        anchors = rows[torch.from_numpy(anchor_rows)] if spec.representation != "absolute" else rows[:0]
        optimiser = torch.optim.AdamW(parts.parameters(), _LEARNING_RATE)
        for epoch in range(spec.epochs):
            parts.train()
            for batch in torch.randperm(len(rows)).split(_BATCH):
                if len(batch) > 1:  # one row has no spread for BatchNorm
                    loss = _loss(parts, spec, rows[batch], anchors)
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
            if report:
                report(epoch + 1, spec.epochs, f"state {random_state}: loss {loss.item():.4f}")
    return Autoencoder(spec, parts.eval(), anchors, device)


def _pixels(images: np.ndarray) -> np.ndarray:
    images = np.asarray(images, dtype=np.float32)
    if images.ndim != 3 or not len(images) or images.min() < 0 or images.max() > 1:
        raise SpaceError(f"expected grey pictures (n, height, width) of values 0 … 1, got shape {images.shape}")
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
    for before, after, side in zip(channels[:0:-1], (*channels[-2:0:-1], channels[1]), sizes[-2::-1], strict=True):
        draw += [nn.Upsample(side), nn.Conv2d(before, after, 3, 1, 1), nn.BatchNorm2d(after), nn.GELU()]
    parts["draw"] = nn.Sequential(*draw, nn.Conv2d(channels[1], 1, 3, 1, 1), nn.Sigmoid())
    return nn.ModuleDict(parts)


def _latent(parts: nn.ModuleDict, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Code before any anchors, and the logarithm of its variance where the model is variational."""
    features = parts["features"](images)
    if "mean" not in parts:
        return features, None
    return parts["mean"](features), parts["spread"](features) if "spread" in parts else None


def _code(
    parts: nn.ModuleDict, spec: AutoencoderSpec, images: torch.Tensor, anchors: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the decoder reads, and the divergence to N(0, 1)."""
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


def _loss(parts: nn.ModuleDict, spec: AutoencoderSpec, images: torch.Tensor, anchors: torch.Tensor) -> torch.Tensor:
    code, divergence = _code(parts, spec, images, anchors)
    error = (_draw(parts, code) - images).square().mean()
    return error + _KL_WEIGHT * divergence / images[0].numel() if spec.variational else error
