"""Pictures: decoding, thumbnails, pictures in the style of a dataset, vectors of colours or edges."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from relcore.base.access import regular_file
from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.encoders.encoder import Dataset, EncodeBatch, Trained, TrainedEncoder
from relcore.runs.store import Progress

if TYPE_CHECKING:
    from PIL.Image import Image


SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm")
_MOST_BYTES = 256 << 20
# only these formats: Pillow would start Ghostscript on PostScript
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


def image_file(path: Path) -> bytes:
    """The bytes of a picture's file; raises a SpaceError above 256 MB, an OSError if it cannot be read."""
    size = regular_file(path).stat().st_size
    if size > _MOST_BYTES:
        raise SpaceError(
            f"{str(path)!r:.200}: expected an image of at most {_MOST_BYTES >> 20} MB, got"
            f" {size / 2**20:,.0f} MB; is it one?"
        )
    return path.read_bytes()


def decode_image(content: bytes | None, where: str) -> Image:
    """The picture in its own mode, rotated according to its EXIF orientation.

    Raises
    ------
    SpaceError
        Not a picture, a damaged one, or one of more than about 180 million pixels; `where` names it.
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
    except Exception as error:  # Pillow's plugins raise many kinds
        reason = str(error) if isinstance(error, Image.DecompressionBombError) else "one that cannot be read"
        raise SpaceError(
            f"{where}: expected an image ({', '.join(_FORMATS)}), got {reason} ({len(content):,} bytes); "
            "write it again, or leave it out"
        ) from error


def png_thumbnail(image: Image, size: int = 96) -> bytes:
    """A PNG of the picture, resized so that its longer side has `size` pixels."""
    from PIL import Image

    image = _shown(image)
    scale = size / max(image.size)
    shape = tuple(max(1, round(side * scale)) for side in image.size)
    content = io.BytesIO()
    image.resize(shape, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS).save(
        content, "PNG"
    )
    return content.getvalue()


def _shown(image: Image) -> Image:
    """The picture in a mode that browsers support; more than 8 bits are stretched to the range."""
    from PIL import Image

    if image.mode in ("L", "RGB", "RGBA", "LA"):
        return image
    if image.mode[0] in "IF":
        values = np.asarray(image, dtype=np.float64)
        low, high = values.min(), values.max()
        return Image.fromarray(np.round((values - low) * (255 / (high - low or 1))).astype(np.uint8))
    return image.convert({"1": "L"}.get(image.mode, "RGBA" if image.has_transparency_data else "RGB"))


# Pixels: pictures of any mode as 8-bit grey or RGB.

Mode = Literal["L", "RGB"]
_GREY = ("1", "L", "LA", "I;16", "I;16L", "I;16B", "I;16N")


def mode_of(images: Sequence[Image]) -> Mode:
    return "L" if all(image.mode in _GREY for image in images) else "RGB"


def eight_bits(image: Image, mode: Mode, where: str) -> Image:
    """The picture in this mode; 16-bit grey keeps its upper 8 bits, transparency is dropped.

    Raises a SpaceError for 32 bits per pixel, whose range is unknown.
    """
    from PIL import Image

    if image.mode in ("I", "F"):
        raise SpaceError(
            f"{where}: expected pictures of 8 or 16 bits a channel, got 32 bits (mode {image.mode!r}); save"
            " as 8 bits"
        )
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image if image.mode == mode else image.convert(mode)


def pixel_array(images: Sequence[Image], mode: Mode, size: tuple[int, int], where: str) -> np.ndarray:
    """All pictures as (m, channels, height, width) uint8, resized if needed; `size` is (height, width)."""
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


# Look: properties that a new picture must have to resemble those of a dataset.

_LOOK_AT = 100
_DARK, _INK = 64, 48  # of 255: dark borders are below the first, drawn pixels above the second


@dataclass(frozen=True)
class Look:
    """The common properties of a dataset's pictures, measured on the first ones.

    Attributes
    ----------
    size : (width, height), or None
        None if the pictures differ in size.
    on_dark : bool
        Whether they are grey strokes on a dark background, as in scans of digits.
    extent : float
        Longer side of the strokes as a share of the picture's.
    """

    mode: Mode
    size: tuple[int, int] | None
    on_dark: bool
    extent: float = 1.0


def look_of(dataset: Dataset) -> Look:
    """The look of a dataset; raises a SpaceError if it holds no images."""
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


_LEAST_INK = 0.15  # smallest share of the paper's brightness that ink removes


def strokes_of(photo: Image) -> Image:
    """Light strokes on black from a photo of dark strokes on light paper. The light may vary smoothly: the
    paper is a polynomial of degree two, fitted again to pixels that are not darker than the last fit.
    """
    from PIL import Image, ImageFilter

    grey = np.asarray(photo.convert("L").filter(ImageFilter.BoxBlur(1)), dtype=np.float64)
    y, x = (axis.ravel() for axis in np.mgrid[-1 : 1 : grey.shape[0] * 1j, -1 : 1 : grey.shape[1] * 1j])
    terms, seen = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1), grey.ravel()
    paper = np.ones(len(seen), dtype=bool)
    for _ in range(6):
        light = terms @ np.linalg.lstsq(terms[paper][::16], seen[paper][::16], rcond=None)[0]
        paper = seen >= (1 - _LEAST_INK / 2) * light
    ink = 1 - seen / np.maximum(light, 1)
    ink = np.where(ink < _LEAST_INK, 0, ink / max(float(np.quantile(ink, 0.98)), _LEAST_INK))
    return Image.fromarray((255 * ink.clip(0, 1)).astype(np.uint8).reshape(grey.shape))


def made_like(picture: Image, look: Look, where: str = "picture") -> Image:
    """The picture in the mode and size of a dataset; strokes become light on dark, cropped and centred.

    Raises a SpaceError for 32 bits per pixel, or for an empty picture.
    """
    from PIL import Image, ImageOps

    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = Image.alpha_composite(
            Image.new("RGBA", picture.size, "white"), picture.convert("RGBA")
        ).convert("RGB")
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
            f"{where}: expected something drawn that stands out from its background, got an even grey; draw"
            " thicker"
        )
    strokes = picture.crop(box)
    scale = look.extent * min(look.size) / max(strokes.size)
    shape = tuple(max(1, round(side * scale)) for side in strokes.size)
    # BOX averages pixels, as in the scans of digits.
    strokes = strokes.resize(shape, Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR)
    blank = Image.new("L", look.size, 0)
    blank.paste(strokes, tuple((side - part) // 2 for side, part in zip(look.size, shape, strict=True)))
    return ImageOps.autocontrast(blank)


def _border(pixels: np.ndarray) -> float:
    """The median of the border pixels of pictures (m, height, width)."""
    edges: Sequence[np.ndarray] = (pixels[:, 0], pixels[:, -1], pixels[:, :, 0], pixels[:, :, -1])
    return float(np.median(np.concatenate([edge.ravel() for edge in edges])))


def _box(pixels: np.ndarray) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom of the drawn part."""
    drawn = pixels > _INK
    if not drawn.any():
        return None
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


# PixelComponents: vectors of pictures by colours or edges, without labels and without a pretrained model.

_SIDE, _EDGE_SIDE = 16, 32  # pixels per side that pictures are resized to
_CELL, _ANGLES = 4, 8
_SECONDS = {"pixels": 6e-4, "edges": 9e-4}  # per picture of few pixels


@dataclass(frozen=True)
class PixelComponents(TrainedEncoder):
    """Principal components of small copies of the pictures, or of histograms of their edges (like HOG, Dalal
    and Triggs 2005: directions of the gradient in cells of 4 × 4 pixels, weighted by its length).
    """

    kind: ClassVar = "images"
    short: ClassVar = "pixels"
    of: Literal["pixels", "edges"] = setting(
        "pixels",
        label="Made of",
        choices={"pixels": "Pixels", "edges": "Edges"},
        several=True,
        usual=("pixels", "edges"),
        help="Pixels: which colour is where. Edges: which lines are where.",
    )
    n_components: int = setting(
        64, label="Dimensions", option="dimensions", low=1, high=512, help="At most: few pictures give fewer."
    )

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 1.0 + 2 * n * (_SECONDS[self.of] + pixels * 2e-8)

    @property
    def title(self) -> str:
        return f"{self.of.capitalize()} {self.n_components}"

    def train(self, dataset: Dataset, report: Progress) -> Trained:
        from threadpoolctl import threadpool_limits

        if len(dataset) < 2:
            raise SpaceError(f"{dataset.name}: expected two pictures or more, got one; add others")
        rows_of, n = self._rows_of(dataset.name), 0
        total: Any = 0.0
        products: Any = 0.0
        with threadpool_limits(1, "blas"):  # the number of threads changes the last bits
            for start, images in dataset.blocks():
                report(start, len(dataset), f"reading {dataset.name}")
                rows = rows_of(images)
                n, total, products = n + len(rows), total + rows.sum(axis=0), products + rows.T @ rows
            mean = total / n
            _, axes = np.linalg.eigh(products / n - np.outer(mean, mean))
        width = min(self.n_components, n - 1, len(mean))
        return Trained(
            {"mean": mean, "axes": np.ascontiguousarray(axes[:, ::-1][:, :width])}, {"pictures": n}
        )

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        rows_of, mean, axes = self._rows_of(dataset.name), trained.arrays["mean"], trained.arrays["axes"]
        return lambda images: {"": ((rows_of(images) - mean) @ axes).astype(np.float32)}

    def _rows_of(self, name: str) -> Callable[[list], np.ndarray]:
        """A function from pictures to features (m, features), float64."""

        def pixels(images: list) -> np.ndarray:
            return pixel_array(images, "RGB", (_SIDE, _SIDE), name).reshape(len(images), -1) / 255

        def edges(images: list) -> np.ndarray:
            grey = pixel_array(images, "L", (_EDGE_SIDE, _EDGE_SIDE), name)[:, 0] / 255
            down, right = np.gradient(grey, axis=(1, 2))
            angle = np.floor((np.arctan2(down, right) / np.pi % 1) * _ANGLES).astype(int) % _ANGLES
            length, cells = np.hypot(down, right), _EDGE_SIDE // _CELL
            parts = [np.where(angle == one, length, 0) for one in range(_ANGLES)]
            summed = np.stack(parts, 1).reshape(len(images), _ANGLES, cells, _CELL, cells, _CELL).sum((3, 5))
            rows = summed.reshape(len(images), -1)
            return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

        return pixels if self.of == "pixels" else edges
