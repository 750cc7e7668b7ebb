"""Features of pictures: brightness, ink, contrast, edges, aspect, hue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from relcore.explain.families import FeatureFamily, partition, tenths

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDE = 48  # pixels per side of the picture that is measured
_INK = 0.25  # difference from the background, of a range of 1
_GREY = 0.15  # saturation below which a picture has no hue
_HUES = ("red", "yellow", "green", "cyan", "blue", "magenta")
_NUMBERS = {
    "brightness": "brightness",
    "ink": "share of ink",
    "contrast": "contrast",
    "edges": "strength of edges",
    "aspect": "width over height",
}


def picture_families(pictures: Iterable[Image]) -> Iterator[FeatureFamily]:
    """Tenths of brightness, ink (share of pixels that differ from the background), contrast, edges and
    aspect; the dominant hue of coloured pictures."""
    measured = [_measures(picture) for picture in pictures]
    for name, noun in _NUMBERS.items():
        values = np.array([numbers[name] for numbers, _ in measured])
        yield tenths(name, values, noun, "pictures")
    yield partition("hue", [hue for _, hue in measured], "pictures that are mostly {}", "pictures of one hue")


def _measures(picture: Image) -> tuple[dict[str, float], str]:
    """The numbers of a picture, and its dominant hue; "" for grey pictures."""
    width, height = picture.size
    small = picture.convert("RGB").resize((min(width, _SIDE), min(height, _SIDE)))
    colors = np.asarray(small, dtype=np.float32) / 255
    grey = colors.mean(axis=2)
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    steps = np.abs(np.diff(grey, axis=0)).mean() + np.abs(np.diff(grey, axis=1)).mean()
    numbers = {
        "brightness": float(grey.mean()),
        "ink": float(np.mean(np.abs(grey - np.median(border)) > _INK)),
        "contrast": float(grey.std()),
        "edges": float(steps),
        "aspect": width / height,
    }
    return numbers, _hue(small)


def _hue(picture: Image) -> str:
    hue, saturation, _ = np.asarray(picture.convert("HSV"), dtype=np.float32).reshape(-1, 3).T / 255
    if saturation.mean() < _GREY:
        return ""
    places = np.floor(hue * len(_HUES) + 0.5).astype(int) % len(_HUES)
    weights = np.bincount(places, saturation, minlength=len(_HUES))
    return _HUES[int(weights.argmax())]
