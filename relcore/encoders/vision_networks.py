"""Networks of pictures: convolutions and a small vision transformer."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import nn


Architecture = Literal["mlp", "cnn", "residual", "vit"]
_LARGE = 16  # pixels; if a side is longer, the first convolution has stride 2
_SMALLEST = 2  # minimum number of pixels per side after the convolutions
_TOKENS = 8  # maximum number of patches per side


def small_network(architecture: Architecture, channels: int, size: tuple[int, int], width: int) -> nn.Module:
    """A network that maps images (m, channels, height, width) to vectors (m, width). Its weights are drawn
    from torch's generator."""
    from torch import nn

    if architecture == "vit":
        return _vit(channels, size, width)
    if architecture == "mlp":
        hidden = [nn.Linear(channels * size[0] * size[1], 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
        return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(256, width))

    class Block(nn.Module):
        """A residual block, relu(f(x) + shortcut(x)) (He et al., CVPR 2016, Fig. 2)."""

        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            layers = [*_convolution(before, after, stride), *_convolution(after, after, 1)[:-1]]
            self.body = nn.Sequential(*layers)
            same = before == after and stride == 1
            if same:
                self.shortcut = nn.Identity()
            else:
                self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False)

        def forward(self, images):
            return (self.body(images) + self.shortcut(images)).relu()

    residual = architecture == "residual"
    stride = 1 if max(size) <= _LARGE else 2
    before, after = (24, 48) if residual else (32, 64)
    layers = _convolution(channels, before, stride)
    if residual:
        layers += [Block(before, before, 1)]
    height = ceil(size[0] / stride)
    wide = ceil(size[1] / stride)
    while max(height, wide) > _SMALLEST:
        if residual:
            layers += [Block(before, after, 2)]
        else:
            layers += _convolution(before, after, 2)
        before = after
        height = ceil(height / 2)
        wide = ceil(wide / 2)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * height * wide, width))


def _convolution(before: int, after: int, stride: int) -> list[nn.Module]:
    from torch import nn

    return [nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]


def _vit(channels: int, size: tuple[int, int], width: int) -> nn.Module:
    """A vision transformer with two pre-norm layers and at most 8 × 8 patches (Dosovitskiy et al., ICLR
    2021)."""
    import torch
    from torch import nn

    side = max(2, ceil(max(size) / _TOKENS))
    rows = ceil(size[0] / side)
    columns = ceil(size[1] / side)
    dimension = 64

    class VisionTransformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pad = nn.ZeroPad2d((0, columns * side - size[1], 0, rows * side - size[0]))
            self.patches = nn.Conv2d(channels, dimension, side, side)
            # Position vectors are drawn as large as patch vectors. With the usual .02, the network
            # learns worse.
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
