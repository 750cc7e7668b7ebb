"""Drawings that are made like the pictures of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from relcore.base.errors import SpaceError

if TYPE_CHECKING:
    from PIL.Image import Image
from relcore.encoders.dataset import Dataset
from relcore.encoders.pictures import Mode, eight_bits, mode_of

# `Look`: the properties that a new picture needs in order to resemble the pictures of a dataset.

_LOOK_AT = 100
# brightness, 0 to 255: a dark border is below _DARK, a drawn pixel above _INK
_DARK = 64
_INK = 48


@dataclass(frozen=True)
class Strokes:
    """Measurements of light strokes on dark pictures, such as scans of digits.

    Attributes
    ----------
    longer : int
        The median, over pictures, of the longer side of the drawn part, in pixels.
    sides : ((low, high), (low, high))
        The 5 % and 95 % quantiles of the width of the drawn part, and of its height, in pixels.
    centre : (x, y)
        The mean centre of mass, in pixels.
    thickness : float
        Median thickness of the strokes of a picture, in pixels.
    """

    longer: int
    sides: tuple[tuple[int, int], tuple[int, int]]
    centre: tuple[float, float]
    thickness: float

    @classmethod
    def of(cls, pictures: np.ndarray) -> Strokes | None:
        """Measure the strokes of pictures (m, height, width). None if all pictures are empty."""
        boxes = np.array([box for picture in pictures if (box := _box(picture)) is not None])
        if not len(boxes):
            return None
        sides = boxes[:, 2:] - boxes[:, :2]
        low, high = np.quantile(sides, (0.05, 0.95), axis=0, method="nearest").astype(int).tolist()
        centres = np.mean([_centre(picture) for picture in pictures if picture.any()], axis=0)
        thickness = float(np.median([thickness_of(picture) for picture in pictures if picture.any()]))
        longer = int(np.median(sides.max(axis=1)))
        return cls(longer, tuple(zip(low, high, strict=True)), tuple(centres.tolist()), thickness)


@dataclass(frozen=True)
class Look:
    """What the pictures of a dataset have in common, measured on the first pictures. A new picture is
    converted to this look before it is encoded.

    Attributes
    ----------
    size : (width, height), or None
        None if the pictures differ in size.
    strokes : Strokes or None
        None unless the pictures are grey strokes on a dark background, as in scans of digits.
    """

    mode: Mode
    size: tuple[int, int] | None
    strokes: Strokes | None = None

    @property
    def on_dark(self) -> bool:
        return self.strokes is not None


def look_of(dataset: Dataset) -> Look:
    """Measure what the pictures of a dataset have in common. Raises a SpaceError if the dataset has no
    images."""
    if dataset.kind != "images":
        raise SpaceError(f"{dataset.name}: expected images, got {dataset.kind}; choose a dataset of images")
    pictures = dataset.items(0, min(_LOOK_AT, len(dataset)))
    mode = mode_of(pictures)
    sizes = {picture.size for picture in pictures}
    size = sizes.pop() if len(sizes) == 1 else None
    if mode != "L" or size is None:
        return Look(mode, size)
    pixels = np.stack([np.asarray(eight_bits(picture, "L", dataset.name)) for picture in pictures])
    strokes = None
    if _border(pixels) < _DARK:
        strokes = Strokes.of(pixels)
    return Look(mode, size, strokes)


_LEAST_INK = 0.15  # minimum share of the paper's brightness that ink removes


def strokes_of(photo: Image) -> Image:
    """A photo of dark strokes on light paper, converted to light strokes on black. The illumination may vary
    smoothly: the brightness of the paper is modelled by a polynomial of degree two, which is fitted
    repeatedly to the pixels that are not darker than the previous fit."""
    from PIL import Image, ImageFilter

    grey = np.asarray(photo.convert("L").filter(ImageFilter.BoxBlur(1)), dtype=np.float64)
    (height, width) = grey.shape
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j].reshape(2, -1)
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)
    seen = grey.ravel()
    paper = np.ones(len(seen), dtype=bool)
    for _ in range(6):
        light = terms @ np.linalg.lstsq(terms[paper][::16], seen[paper][::16], rcond=None)[0]
        paper = seen >= (1 - _LEAST_INK / 2) * light
    ink = 1 - seen / np.maximum(light, 1)
    ink = np.where(ink < _LEAST_INK, 0, ink / max(float(np.quantile(ink, 0.98)), _LEAST_INK))
    return Image.fromarray((255 * ink.clip(0, 1)).astype(np.uint8).reshape(grey.shape))


def made_like(picture: Image, look: Look, where: str = "picture") -> Image:
    """The picture in the mode and size of a dataset. If the dataset has strokes, the picture's strokes become
    light on dark and get the size, place and thickness of the dataset's strokes.

    Raises a SpaceError if the picture has 32 bits per pixel or is empty.
    """
    from PIL import Image, ImageOps

    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = Image.alpha_composite(
            Image.new("RGBA", picture.size, "white"), picture.convert("RGBA")
        ).convert("RGB")
    picture = eight_bits(picture, look.mode, where)
    if look.size is None:
        return picture
    if look.strokes is None:
        return ImageOps.fit(picture, look.size, Image.Resampling.LANCZOS)
    if _border(np.asarray(picture)[None]) >= 128:
        picture = ImageOps.invert(picture)
    box = _box(np.asarray(picture))
    if box is None:
        raise SpaceError(
            f"{where}: expected a drawing that stands out from its background, got an even grey; draw thicker"
        )
    strokes = _like_strokes(picture.crop(box), look.strokes)
    corner = [
        min(max(0, round(wanted - own)), side - part)
        for wanted, own, side, part in zip(
            look.strokes.centre, _centre(np.asarray(strokes)), look.size, strokes.size, strict=True
        )
    ]
    blank = Image.new("L", look.size, 0)
    blank.paste(strokes, tuple(corner))
    return ImageOps.autocontrast(blank)


_FINER = 8  # strokes are thickened in a picture with up to this many times the pixels per side
_FINEST = 256  # maximum number of pixels per side while strokes are thickened


def _like_strokes(drawn: Image, like: Strokes) -> Image:
    """The drawing, rescaled to the size and the stroke thickness of `like`."""
    from PIL import Image, ImageFilter, ImageOps

    scale = like.longer / max(drawn.size)
    shape = tuple(
        min(max(low, round(side * scale)), high)
        for side, (low, high) in zip(drawn.size, like.sides, strict=True)
    )
    finer = max(1, min(_FINER, _FINEST // max(shape)))
    fine = drawn.resize(tuple(finer * side for side in shape), Image.Resampling.BILINEAR)
    found = None
    distance = np.inf
    for more in range(finer):
        thick = ImageOps.expand(fine, more).filter(ImageFilter.MaxFilter(2 * more + 1))
        # Shrink with BOX, which averages pixels as the scans of digits do.
        strokes = ImageOps.autocontrast(thick.resize(shape, Image.Resampling.BOX))
        off = abs(thickness_of(np.asarray(strokes)) - like.thickness)
        if off > distance:
            break
        found = strokes
        distance = off
    return found


def thickness_of(pixels: np.ndarray) -> float:
    """The thickness of strokes, in pixels: their area divided by half the length of their outline."""
    framed = np.pad(np.asarray(pixels, dtype=np.float64), 1)
    outline = np.hypot(np.diff(framed, axis=0)[:, :-1], np.diff(framed, axis=1)[:-1]).sum()
    return float(2 * framed.sum() / max(outline, 1))


def _centre(pixels: np.ndarray) -> tuple[float, float]:
    """The centre of mass (x, y) of a picture that is not black, in pixels from its upper left corner."""
    sums = (np.asarray(pixels, dtype=np.float64).sum(axis=axis) for axis in (0, 1))
    return tuple(float(one @ (np.arange(len(one)) + 0.5) / one.sum()) for one in sums)


def _border(pixels: np.ndarray) -> float:
    """The median of the border pixels of pictures (m, height, width)."""
    edges: Sequence[np.ndarray] = (pixels[:, 0], pixels[:, -1], pixels[:, :, 0], pixels[:, :, -1])
    return float(np.median(np.concatenate([edge.ravel() for edge in edges])))


def _box(pixels: np.ndarray) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom of the drawn part; None if nothing is drawn."""
    drawn = pixels > _INK
    if not drawn.any():
        return None
    rows = np.flatnonzero(drawn.any(axis=1))
    columns = np.flatnonzero(drawn.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
