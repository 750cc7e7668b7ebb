"""Pixels: pictures of any mode as 8-bit grey or RGB, one by one or as one array of equal size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from relcore.spaces import SpaceError

if TYPE_CHECKING:
    from PIL.Image import Image

Mode = Literal["L", "RGB"]
_GREY = ("1", "L", "LA", "I;16", "I;16L", "I;16B", "I;16N")


def mode_of(images: Sequence[Image]) -> Mode:
    """Grey when all of them are."""
    return "L" if all(image.mode in _GREY for image in images) else "RGB"


def eight_bits(image: Image, mode: Mode, where: str) -> Image:
    """The picture in this mode; 16-bit grey keeps its upper 8 bits, transparency is dropped.

    Raises
    ------
    SpaceError
        32 bits a pixel, whose range nobody knows.
    """
    from PIL import Image

    if image.mode in ("I", "F"):
        raise SpaceError(
            f"{where}: expected pictures of 8 or 16 bits a channel, got 32 bits (mode {image.mode!r}); save as 8 bits"
        )
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image if image.mode == mode else image.convert(mode)


def pixel_array(images: Sequence[Image], mode: Mode, size: tuple[int, int], where: str) -> np.ndarray:
    """All pictures as (m, channels, height, width) uint8, resized where they are not (height, width) already."""
    from PIL import Image

    height, width = size
    pictures = []
    for image in images:
        image = eight_bits(image, mode, where)
        if image.size != (width, height):
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pictures.append(np.asarray(image))
    stacked = np.stack(pictures)
    return stacked[:, None] if mode == "L" else np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
