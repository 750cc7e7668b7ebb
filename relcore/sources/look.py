"""Look: what the pictures of a dataset have in common, to make a new picture like them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relcore.sources.dataset import Dataset
from relcore.sources.pixels import Mode, eight_bits, mode_of
from relcore.spaces import SpaceError

if TYPE_CHECKING:
    from PIL.Image import Image

_LOOK_AT = 100
_DARK, _INK = 64, 48  # of 255: a border below the first is dark; a pixel above the second is drawn


@dataclass(frozen=True)
class Look:
    """Measured on the first pictures of a dataset.

    Attributes
    ----------
    mode : "L" or "RGB"
    size : (width, height), or None
        None where they differ.
    on_dark : bool
        Grey strokes on a dark background, as the scans of digits are.
    extent : float
        Share of the side that the longer side of what is drawn takes; of strokes on dark only.
    """

    mode: Mode
    size: tuple[int, int] | None
    on_dark: bool
    extent: float = 1.0


def look_of(dataset: Dataset) -> Look:
    """The look of a dataset of images.

    Raises
    ------
    SpaceError
        It holds no images.
    """
    if dataset.kind != "images":
        raise SpaceError(f"{dataset.name}: expected images, got {dataset.kind}; choose a dataset of images")
    pictures = dataset.items(0, min(_LOOK_AT, len(dataset)))
    mode, sizes = mode_of(pictures), {picture.size for picture in pictures}
    size = sizes.pop() if len(sizes) == 1 else None
    if mode != "L" or size is None:
        return Look(mode, size, on_dark=False)
    pixels = np.stack([np.asarray(eight_bits(picture, "L", dataset.name)) for picture in pictures])
    if _border(pixels) >= _DARK:
        return Look(mode, size, on_dark=False)
    boxes = [box for picture in pixels if (box := _box(picture)) is not None]
    sides = [max(right - left, bottom - top) for left, top, right, bottom in boxes]
    return Look(mode, size, on_dark=True, extent=float(np.median(sides)) / max(size) if sides else 1.0)


def made_like(picture: Image, look: Look, where: str = "picture") -> Image:
    """A picture in the mode and size of a dataset; strokes are turned light on dark, cut out, and centred at its scale.

    Raises
    ------
    SpaceError
        32 bits a pixel; nothing drawn, where strokes are expected.
    """
    from PIL import Image, ImageOps

    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture.convert("RGBA")).convert("RGB")
    picture = eight_bits(picture, look.mode, where)
    if look.size is None:
        return picture
    if not look.on_dark:
        return ImageOps.fit(picture, look.size, Image.Resampling.LANCZOS)
    if _border(np.asarray(picture)[None]) >= 128:
        picture = ImageOps.invert(picture)
    box = _box(np.asarray(picture))
    if box is None:
        raise SpaceError(
            f"{where}: expected something drawn that stands out from its background, got an even grey; draw thicker"
        )
    strokes = picture.crop(box)
    scale = look.extent * min(look.size) / max(strokes.size)
    shape = tuple(max(1, round(side * scale)) for side in strokes.size)
    # BOX takes the mean over whole pixels, which is how scans of strokes were shrunk.
    strokes = strokes.resize(shape, Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR)
    blank = Image.new("L", look.size, 0)
    blank.paste(strokes, tuple((side - part) // 2 for side, part in zip(look.size, shape, strict=True)))
    return ImageOps.autocontrast(blank)


def _border(pixels: np.ndarray) -> float:
    """Median of the outermost pixels of pictures (m, height, width)."""
    edges: Sequence[np.ndarray] = (pixels[:, 0], pixels[:, -1], pixels[:, :, 0], pixels[:, :, -1])
    return float(np.median(np.concatenate([edge.ravel() for edge in edges])))


def _box(pixels: np.ndarray) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom of what is brighter than the background; None where nothing is."""
    drawn = pixels > _INK
    if not drawn.any():
        return None
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
