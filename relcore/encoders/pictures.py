"""Pictures: decoding, thumbnails, and arrays of pixels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from relcore.base.access import read_at_most
from relcore.base.errors import SpaceError

if TYPE_CHECKING:
    from PIL.Image import Image


# Functions for pictures: they decode a picture, make it resemble those of a dataset, and compute vectors of
# its colours or edges.

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm")
# Pillow may decode only these formats; for PostScript, Pillow would start Ghostscript.
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


def image_file(path: Path) -> bytes:
    """The bytes of a picture's file. Raises a SpaceError if they are more than 256 MB, and an OSError if the
    file cannot be read."""
    return read_at_most(path, 256 << 20, "an image")


def decode_image(content: bytes | None, where: str) -> Image:
    """The picture in its own mode, rotated according to its EXIF orientation.

    Raises
    ------
    SpaceError
        The content is no picture, is damaged, or has more than about 180 million pixels. `where` names the
        picture in the message.
    """
    from PIL import Image, ImageOps

    if not content:
        raise SpaceError(
            f"{where}: expected an image, got nothing; fill the row, or leave it out of the file"
        )
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            image.load()
            return ImageOps.exif_transpose(image)
    except Exception as error:  # Pillow's plugins raise many kinds of errors
        if isinstance(error, Image.DecompressionBombError):
            reason = str(error)
        else:
            reason = "one that cannot be read"
        raise SpaceError(
            f"{where}: expected an image ({', '.join(_FORMATS)}), got {reason} ({len(content):,} bytes); "
            "write it again, or leave it out"
        ) from error


def png_thumbnail(image: Image, size: int = 96) -> bytes:
    """A PNG of the picture, resized so that its longer side has `size` pixels."""
    from PIL import Image

    image = _browser_image(image)
    scale = size / max(image.size)
    shape = tuple(max(1, round(side * scale)) for side in image.size)
    filtering = Image.Resampling.LANCZOS
    if scale > 1:
        filtering = Image.Resampling.NEAREST
    content = io.BytesIO()
    image.resize(shape, filtering).save(content, "PNG")
    return content.getvalue()


def _browser_image(image: Image) -> Image:
    """The picture in a mode that browsers support. If it has more than 8 bits, its range of values is
    stretched to 8 bits."""
    from PIL import Image

    if image.mode in ("L", "RGB", "RGBA", "LA"):
        return image
    if image.mode[0] in "IF":
        values = np.asarray(image, dtype=np.float64)
        low = values.min()
        high = values.max()
        return Image.fromarray(np.round((values - low) * (255 / (high - low or 1))).astype(np.uint8))
    if image.mode == "1":
        return image.convert("L")
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image.convert("RGB")


# Pixels. Pictures of any mode are converted to 8-bit grey or RGB.

Mode = Literal["L", "RGB"]
_GREY = ("1", "L", "LA", "I;16", "I;16L", "I;16B", "I;16N")


def mode_of(images: Sequence[Image]) -> Mode:
    if all(image.mode in _GREY for image in images):
        return "L"
    return "RGB"


def eight_bits(image: Image, mode: Mode, where: str) -> Image:
    """The picture in this mode. 16-bit grey keeps its upper 8 bits, and transparency is dropped.

    Raises a SpaceError for pictures with 32 bits per pixel, because their range of values is unknown.
    """
    from PIL import Image

    if image.mode in ("I", "F"):
        raise SpaceError(
            f"{where}: expected pictures of 8 or 16 bits a channel, got 32 bits (mode {image.mode!r}); save"
            " them with 8 bits"
        )
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == mode:
        return image
    return image.convert(mode)


def pixel_array(images: Sequence[Image], mode: Mode, size: tuple[int, int], where: str) -> np.ndarray:
    """All pictures as uint8 (m, channels, height, width), resized if needed. `size` is (height, width)."""
    from PIL import Image

    height, width = size
    pictures = []
    for image in images:
        image = eight_bits(image, mode, where)
        if image.size != (width, height):
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pictures.append(np.asarray(image))
    stacked = np.stack(pictures)
    if mode == "L":
        return stacked[:, None]
    return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
