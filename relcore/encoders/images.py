"""Functions for pictures: decode them, make thumbnails, draw one in the style of a dataset, and compute
vectors of colours or edges."""

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
    """The bytes of a picture's file. Raises a SpaceError if they are more than 256 MB, and an OSError if the
    file cannot be read."""
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
        reason = str(error) if isinstance(error, Image.DecompressionBombError) else "one that cannot be read"
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
    content = io.BytesIO()
    image.resize(shape, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS).save(
        content, "PNG"
    )
    return content.getvalue()


def _browser_image(image: Image) -> Image:
    """The picture in a mode that browsers support. If it has more than 8 bits, its range of values is
    stretched to 8 bits."""
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
    """The picture in this mode. 16-bit grey keeps its upper 8 bits, and transparency is dropped.

    Raises a SpaceError for pictures with 32 bits per pixel, because their range of values is unknown.
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
    return stacked[:, None] if mode == "L" else np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))


# `Look` holds the properties that a new picture must have to resemble the pictures of a dataset.

_LOOK_AT = 100
_DARK, _INK = 64, 48  # of 255; dark borders are below the first, drawn pixels above the second


@dataclass(frozen=True)
class Strokes:
    """The size, place and brightness of light strokes on dark pictures.

    Attributes
    ----------
    longer : int
        The median, over pictures, of the longer side of the drawn part, in pixels.
    sides : ((low, high), (low, high))
        The 5 % and the 95 % quantile of the drawn part's width, then of its height, in pixels.
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
    """The common properties of a dataset's pictures. They are measured on the first pictures.

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
    """The look of a dataset. Raises a SpaceError if the dataset holds no images."""
    if dataset.kind != "images":
        raise SpaceError(f"{dataset.name}: expected images, got {dataset.kind}; choose a dataset of images")
    pictures = dataset.items(0, min(_LOOK_AT, len(dataset)))
    mode, sizes = mode_of(pictures), {picture.size for picture in pictures}
    size = sizes.pop() if len(sizes) == 1 else None
    if mode != "L" or size is None:
        return Look(mode, size)
    pixels = np.stack([np.asarray(eight_bits(picture, "L", dataset.name)) for picture in pictures])
    return Look(mode, size, Strokes.of(pixels) if _border(pixels) < _DARK else None)


_LEAST_INK = 0.15  # ink removes at least this share of the paper's brightness


def strokes_of(photo: Image) -> Image:
    """Convert a photo of dark strokes on light paper to light strokes on black. The light may vary smoothly:
    the paper's brightness is modelled by a polynomial of degree two, which is repeatedly fitted to the pixels
    that are not darker than the previous fit.
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
            f"{where}: expected something drawn that stands out from its background, got an even grey; draw"
            " thicker"
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


_FINER = 8  # while strokes are thickened, a side has this many times as many pixels
_FINEST = 256  # pixels per side


def _like_strokes(drawn: Image, like: Strokes) -> Image:
    """The drawing with the size and the thickness of the strokes `like`."""
    from PIL import Image, ImageFilter, ImageOps

    scale = like.longer / max(drawn.size)
    shape = tuple(
        min(max(low, round(side * scale)), high)
        for side, (low, high) in zip(drawn.size, like.sides, strict=True)
    )
    finer = max(1, min(_FINER, _FINEST // max(shape)))
    fine = drawn.resize(tuple(finer * side for side in shape), Image.Resampling.BILINEAR)
    found, distance = None, np.inf
    for more in range(finer):
        thick = ImageOps.expand(fine, more).filter(ImageFilter.MaxFilter(2 * more + 1))
        # BOX averages pixels, as the scans of digits do.
        strokes = ImageOps.autocontrast(thick.resize(shape, Image.Resampling.BOX))
        off = abs(thickness_of(np.asarray(strokes)) - like.thickness)
        if off > distance:
            break
        found, distance = strokes, off
    return found


def thickness_of(pixels: np.ndarray) -> float:
    """The thickness of strokes, in pixels: their area divided by half the length of their outline."""
    framed = np.pad(np.asarray(pixels, dtype=np.float64), 1)
    outline = np.hypot(np.diff(framed, axis=0)[:, :-1], np.diff(framed, axis=1)[:-1]).sum()
    return float(2 * framed.sum() / max(outline, 1))


def _centre(pixels: np.ndarray) -> tuple[float, float]:
    """The centre of mass (x, y) of a picture that is not black, in pixels from its upper left corner."""
    weights = np.asarray(pixels, dtype=np.float64)
    across, down = weights.sum(axis=0), weights.sum(axis=1)
    places = (float(one @ (np.arange(len(one)) + 0.5) / one.sum()) for one in (across, down))
    return tuple(places)


def _border(pixels: np.ndarray) -> float:
    """The median of the border pixels of pictures (m, height, width)."""
    edges: Sequence[np.ndarray] = (pixels[:, 0], pixels[:, -1], pixels[:, :, 0], pixels[:, :, -1])
    return float(np.median(np.concatenate([edge.ravel() for edge in edges])))


def _box(pixels: np.ndarray) -> tuple[int, int, int, int] | None:
    """Return left, top, right and bottom of the drawn part; None if nothing is drawn."""
    drawn = pixels > _INK
    if not drawn.any():
        return None
    rows, columns = np.flatnonzero(drawn.any(axis=1)), np.flatnonzero(drawn.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


# `PixelComponents` computes vectors of pictures from colours or edges. It needs no labels and no pretrained
# model.

_SIDE, _EDGE_SIDE = 16, 32  # pixels per side after pictures are resized
_CELL, _ANGLES = 4, 8
_SECONDS = {"pixels": 6e-4, "edges": 9e-4}  # per small picture


@dataclass(frozen=True)
class PixelComponents(TrainedEncoder):
    """Principal components of small copies of the pictures, or of histograms of their edges. The histograms
    are like HOG (Dalal and Triggs 2005): in each cell of 4 × 4 pixels, they count directions of the gradient,
    weighted by its length.
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
        with threadpool_limits(1, "blas"):  # the number of threads would change the last bits
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
        """The function that computes features (m, n_features), as float64, from m pictures."""

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
