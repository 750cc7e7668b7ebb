"""Images: encoded bytes to a picture and back to a thumbnail."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relcore.access import regular_file
from relcore.spaces import SpaceError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm")
_MOST_BYTES = 256 << 20
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")  # Pillow would also start Ghostscript on PostScript


def image_file(path: Path) -> bytes:
    """The bytes of a picture's file.

    Raises
    ------
    SpaceError, OSError
        No regular file, more than 256 MB: a picture of as many pixels as `decode_image` takes has fewer.
    """
    size = regular_file(path).stat().st_size
    if size > _MOST_BYTES:
        raise SpaceError(
            f"{str(path)!r:.200}: expected an image of at most {_MOST_BYTES >> 20} MB, got {size / 2**20:,.0f} MB; is it one?"
        )
    return path.read_bytes()


def decode_image(content: bytes | None, where: str) -> Image:
    """The picture in its own mode, turned as its camera says.

    Raises
    ------
    SpaceError
        No picture, a damaged one, or one of more than about 180 million pixels; `where` says which.
    """
    from PIL import Image, ImageOps

    if not content:
        raise SpaceError(f"{where}: expected an image, got nothing; fill the row, or leave it out of the file")
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            image.load()
            return ImageOps.exif_transpose(image)
    except Exception as error:  # Pillow's plugins raise OSError, SyntaxError, ValueError, struct.error, …
        reason = str(error) if isinstance(error, Image.DecompressionBombError) else "one that cannot be read"
        raise SpaceError(
            f"{where}: expected an image ({', '.join(_FORMATS)}), got {reason} ({len(content):,} bytes); "
            "write it again, or leave it out"
        ) from error


def png_thumbnail(image: Image, size: int = 96) -> bytes:
    """PNG of a picture, its longer side `size` pixels."""
    from PIL import Image

    image = _shown(image)
    scale = size / max(image.size)
    shape = tuple(max(1, round(side * scale)) for side in image.size)
    content = io.BytesIO()
    image.resize(shape, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS).save(content, "PNG")
    return content.getvalue()


def _shown(image: Image) -> Image:
    """In a mode that PNG and browsers have; more than 8 bits are stretched from the darkest to the brightest pixel."""
    from PIL import Image

    if image.mode in ("L", "RGB", "RGBA", "LA"):
        return image
    if image.mode[0] in "IF":
        values = np.asarray(image, dtype=np.float64)
        low, high = values.min(), values.max()
        return Image.fromarray(np.round((values - low) * (255 / (high - low or 1))).astype(np.uint8))
    return image.convert({"1": "L"}.get(image.mode, "RGBA" if image.has_transparency_data else "RGB"))
