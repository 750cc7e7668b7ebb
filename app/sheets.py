"""A sheet: small pictures of many rows in one file, so that a hover shows one at once and a rerun does not send them again."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from relcore.panes.sheet import CRISP, Sheet
from relcore.sources.images import png_thumbnail

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 48  # pixels per side of larger ones, after scaling
MOST_PIXELS = 5000 * SIDE * SIDE
MOST_SECONDS = 8.0  # of this thread's work, whatever else the machine does; reading photographs takes longer
MOST_WAITING = 20.0  # seconds in all, where the disk is slow or the machine is busy
_LOOK_AT = 16


def make_sheet(pictures: Iterable[Image], n: int) -> Sheet | None:
    """The sheet of n pictures in their order, as `cells` say; None where it would be too large, or take too long to read."""
    from PIL import Image

    pictures = iter(pictures)
    started = time.perf_counter(), time.thread_time()
    first = list(islice(pictures, min(n, _LOOK_AT)))
    side = max((max(picture.size) for picture in first), default=SIDE)
    side = side if side <= CRISP else SIDE
    if n * side * side > MOST_PIXELS:
        return None
    columns = int(np.ceil(np.sqrt(n)))
    lines = -(-n // columns)
    grey = all(picture.mode == "L" for picture in first)
    sheet = Image.new("L" if grey else "RGB", (columns * side, lines * side), "white" if side == SIDE else 0)
    for number, picture in enumerate(_opaque(chain(first, pictures))):
        if max(picture.size) > side or (side == SIDE and max(picture.size) < side):
            scale = side / max(picture.size)
            shape = tuple(max(1, round(length * scale)) for length in picture.size)
            picture = picture.resize(shape, Image.Resampling.LANCZOS)
        x, y = number % columns * side, number // columns * side
        sheet.paste(picture, (x + (side - picture.width) // 2, y + (side - picture.height) // 2))
        if number % _LOOK_AT == 0 and _too_slow(*started, number / n):
            return None
    content = io.BytesIO()
    if side <= CRISP:
        sheet.save(content, "PNG", compress_level=4)
    else:
        sheet.save(content, "JPEG", quality=85)
    mimetype = "image/png" if side <= CRISP else "image/jpeg"
    return Sheet(content.getvalue(), mimetype, side, columns, lines, np.arange(n))


def _too_slow(started: float, worked: float, done: float) -> bool:
    """Whether the sheet, of which this share is done, is likely to take too long."""
    seconds = time.thread_time() - worked
    rest = (
        seconds / done - seconds if done and seconds > 0.5 else 0.0
    )  # the first pictures of a file take longer than the others
    return seconds + rest > MOST_SECONDS or time.perf_counter() - started > MOST_WAITING


def _opaque(pictures: Iterable[Image]) -> Iterator[Image]:
    """In grey or colours, on white."""
    from PIL import Image

    for picture in pictures:
        if picture.mode not in ("L", "RGB"):
            with Image.open(io.BytesIO(png_thumbnail(picture, max(picture.size)))) as shown:
                colored = shown.convert("RGBA")
            picture = Image.new("RGB", colored.size, "white")
            picture.paste(colored, mask=colored)
        yield picture


def digest_of_bytes(content: bytes) -> str:
    """Names a file by all of its bytes; Streamlit names large files by samples."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
