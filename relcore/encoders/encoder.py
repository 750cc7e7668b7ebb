"""`Dataset`, images or texts with ids and labels; `Encoder`, the interface of everything that turns them into
vectors; and functions for pictures.

To add an encoder, write a frozen dataclass that inherits from `Encoder`, and name it in
`relcore.base.names.ENCODERS` or in your own package (see docs/plugin).
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from relcore.base import access, records
from relcore.base.access import read_at_most
from relcore.base.earlier import refuse_encoder, refuse_source
from relcore.base.errors import SpaceError, quote
from relcore.base.names import ENCODERS
from relcore.base.records import need_plain
from relcore.base.settings import Facts, check, setting, settings_of
from relcore.runs.store import Progress
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    from PIL.Image import Image

# Datasets: the pictures or texts to encode, called items, and the specs that name datasets.


Kind = Literal["images", "texts"]
SOURCES = ("digits", "wikipedia", "parallel", "file", "folder", "huggingface")


class DatasetOptions(tuple):
    """Pairs (name, value), sorted by name. In JSON they are an object."""

    def to_record(self) -> dict[str, Any]:
        return dict(self)

    @classmethod
    def from_record(cls, record: Any) -> DatasetOptions:
        if not isinstance(record, Mapping | None):
            raise SpaceError(f"options: expected names with their values, got {record!r:.80}")
        return cls(sorted((record or {}).items()))


@dataclass(frozen=True)
class DatasetSpec:
    """The description from which a dataset can be loaded. It is hashable and can be written as JSON.

    Attributes
    ----------
    source : one of `SOURCES`
    name : str
        The path of the dataset, its name on the hub, or the language of the parallel sentences (``"en"``).
    split : str
        ``"train"``, ``"test"``, …, for folders and datasets of the hub. Optional if there is only one split.
    column, label_column : str
        The columns of items and labels. With ``""``, a column is chosen by its name and kind.
    limit : int, optional
        The largest number of items. They are the first ones; for folders of images and for Wikipedia, the
        same number of each class.
    options : tuple of (key, value)
        For tables: ``("empty", "drop")``, ``("id_column", name)`` and ``("encoding", name)``. For Wikipedia:
        ``("articles", 16)``, ``("per_article", 400)`` and ``("fewest", 250)`` (see
        `datasets.wikipedia_dataset`). For Hugging Face: ``("config", name)``.
    """

    source: str
    name: str = ""
    split: str = setting("", help="The split to use, such as train or test, if there are several.")
    column: str = setting("", help="The column of a table to encode; default: found automatically.")
    label_column: str = setting("", help="The column of the labels; default: found automatically.")
    limit: int | None = setting(
        None, help="Use at most N items: the first ones, or equally many of each class."
    )
    options: DatasetOptions = DatasetOptions()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", DatasetOptions(self.options))
        refuse_source(self.source)
        if self.source not in SOURCES:
            raise SpaceError(f"source: expected one of {quote(SOURCES)}, got {self.source!r:.80}")
        if self.limit is not None and (not isinstance(self.limit, int) or self.limit < 1):
            raise SpaceError(f"limit: expected a whole number of items, at least 1, got {self.limit!r:.80}")
        if unfit := [name for name, value in self.options if not isinstance(value, str | int | float | None)]:
            raise SpaceError(
                f"options: expected a string or a number for each, got something else for {quote(unfit)}"
            )

    def settings(self, **defaults: Any) -> dict[str, Any]:
        """The options, with defaults for those that are missing. Raises a SpaceError for unknown options."""
        if unknown := [key for key, _ in self.options if key not in defaults]:
            known = quote(defaults) or "none"
            raise SpaceError(
                f"options: expected {known} for the source {self.source!r}, got {quote(unknown)}"
            )
        return {**defaults, **dict(self.options)}

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self)

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> DatasetSpec:
        """The spec from the dict that `to_json` returns. Raises a SpaceError for unknown keys."""
        return records.from_json(cls, described, "dataset")


class Dataset:
    """Items in order, with ids and optional labels. A dataset is immutable. Items are read when they are
    used.

    Parameters
    ----------
    read : function (start, stop) → list
        Returns the items of rows `start` to `stop` − 1: PIL images in their stored mode, or strings. Raises a
        SpaceError with the row of an image that cannot be read. It becomes the attribute `items`.
    ids : n distinct strings
        Rows of two spaces are paired if their ids are equal. Therefore two columns of one table have equal
        ids. Different datasets have different ids, unless their tables contain the same ids.
    labels : n strings, optional
        The class of each item; ``""`` if it has none.
    content : function () → iterable of bytes, optional
        Returns the bytes from which the digest is computed. By default these are the items, which must then
        be strings.
    """

    def __init__(
        self,
        read: Callable[[int, int], list[Any]],
        ids: Sequence[str],
        *,
        name: str,
        kind: Kind,
        labels: Sequence[str] | None = None,
        content: Callable[[], Iterable[bytes]] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.ids = _strings(ids)
        if labels is None:
            self.labels = None
        else:
            self.labels = _strings(labels)
        self.items = read
        self._content = content
        if not len(self.ids):
            raise SpaceError(f"{name}: expected at least one item, got none")

    def __len__(self) -> int:
        return len(self.ids)

    def blocks(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield each block of items, with the number of its first row."""
        for start in range(0, len(self), 1024):
            yield start, self.items(start, min(start + 1024, len(self)))

    def item(self, row: int) -> Any:
        return self.items(row, row + 1)[0]

    @cached_property
    def digest(self) -> str:
        """The digest of items, ids and labels. Labels are included because encoders may train on them."""
        digest = hashlib.blake2b(f"{self.kind} {len(self)}".encode(), digest_size=16)
        for column in (self.ids, self.labels):
            digest.update(b"\x1e" if column is None else "\x1f".join(column).encode("utf-8", "surrogatepass"))
        texts = (text.encode("utf-8", "surrogatepass") for _, block in self.blocks() for text in block)
        for piece in self._content() if self._content else texts:
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
        return digest.hexdigest()


@dataclass(frozen=True)
class DatasetEntry:
    """An entry of the list of datasets. `n` is None if all data would have to be read to count the items."""

    name: str
    kind: Kind
    spec: DatasetSpec
    n: int | None
    description: str


def evenly(labels: Sequence[str], limit: int | None) -> np.ndarray:
    """Choose at most `limit` rows: the first rows of each class, equally many from each if possible. Returns
    their numbers in ascending order."""
    seen: Counter[str] = Counter()
    ranks = []
    for label in labels:
        ranks.append(seen[label])
        seen[label] += 1
    return np.sort(np.argsort(ranks, kind="stable")[:limit])


def _strings(items: Sequence[str]) -> np.ndarray:
    strings = np.array(list(map(str, items)), dtype=object)
    strings.flags.writeable = False
    return strings


HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def dataset_place(spec: DatasetSpec) -> Path | None:
    """The file or folder of a dataset; None if it has no path.

    Raises a SpaceError if the session may not read it (see `access.readable_path`).
    """
    if spec.source in ("file", "folder"):
        return access.readable_path(spec.name)
    if spec.source == "huggingface":
        return hub_folder(spec.name)
    return None


def hub_folder(name: str) -> Path | None:
    """The folder of a dataset or model, if a user named it by a path; None for a name on the hub.

    In a shared app, what can be a name on the hub never counts as a path. Uploads are refused, because files
    such as tokenizer_config.json can name other files that libraries would read.
    """
    if access.is_shared():
        if HUB_NAME.fullmatch(name):
            return None
        folder = access.readable_path(name, uploads=False)
        return folder if folder.is_dir() else None
    folder = access.expand_home(name)
    if name and folder.is_dir():
        return access.readable_path(folder)
    return None


# The network is tested before a download, because libraries retry for a long time before they report an
# error.

PATIENCE = 2.0


def answers(url: str) -> bool:
    """Whether the address answers within `PATIENCE` seconds."""
    from urllib.request import Request, urlopen

    reached = []

    def ask() -> None:
        with suppress(OSError), urlopen(Request(url, method="HEAD"), timeout=PATIENCE):
            reached.append(True)

    # Test in a thread, because looking up the name of a host has no timeout.
    thread = threading.Thread(target=ask, name="ask-network", daemon=True)
    thread.start()
    thread.join(PATIENCE + 0.5)
    return bool(reached)


def hub_answers() -> bool:
    """Whether the Hugging Face hub answers. False without a request if HF_HUB_OFFLINE is set."""
    from huggingface_hub import constants

    return not constants.HF_HUB_OFFLINE and answers(constants.ENDPOINT)


EncodeBatch = Callable[[list[Any]], dict[str, np.ndarray]]  # m items → {output: (m, d) float32}


class Encoder(ABC):
    """An encoder: a frozen dataclass of plain settings. Its fields determine its keys in the store, its JSON,
    its form, its options in ``relscope encode`` and their checks (see `relcore.base.settings.setting`).

    Equal settings must give equal vectors. Therefore random steps use a `random_state`, and `content`
    identifies external files.
    """

    kind: ClassVar[Kind]
    version: ClassVar[int] = 1  # increased whenever a change of the code changes vectors
    short: ClassVar[str] = ""  # a second name on the command line
    by_length: ClassVar[bool] = False  # whether texts are sorted by length, because batches are padded
    is_offered: ClassVar[bool] = True  # whether the page Data offers the encoder

    __post_init__ = check

    @classmethod
    def unfit(cls, data: Facts) -> str:
        """Why the encoder cannot encode this dataset, with a remedy; "" if it can."""
        return ""

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        """The approximate processor seconds for n items; None if unknown. `pixels` is the number of pixels of
        each picture."""
        return None

    def seen_rows(self, data: Dataset | LatentSpace) -> np.ndarray:
        """The numbers of the rows whose labels were used for training, in ascending order."""
        return np.empty(0, dtype=np.int64)

    @property
    @abstractmethod
    def title(self) -> str:
        """A short name such as ``"MiniLM"`` or ``"CNN 64, state 0"``. The encoder's spaces are named "title,
        output · dataset"."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the spaces that one pass gives, such as ``("layer 2", "layer 4")``; ``("",)`` if there
        is only one."""
        return ("",)

    def only(self, output: str) -> Encoder:
        """The encoder with only this output. The store key of an encoding is made from it, so that the key
        does not depend on which other outputs were computed in the same pass."""
        return self

    def with_outputs_of(self, other: Encoder) -> Encoder | None:
        """An encoder that gives the outputs of both encoders in one pass; None if there is none."""
        return self if other == self else None

    def content(self) -> str:
        """The digest of external files, such as the files of a model; "" if there are none."""
        return ""

    def to_record(self) -> dict[str, Any]:
        """The encoder as JSON: its name and all settings, ``{"encoder": "small-vision", "architecture":
        "cnn", …}``."""
        name = ENCODERS.name_of(type(self)) or f"{type(self).__module__}:{type(self).__qualname__}"
        values = {key: getattr(self, key) for key in settings_of(type(self))}
        lists = {key: list(value) for key, value in values.items() if isinstance(value, tuple)}
        return {"encoder": name, **values, **lists}

    @staticmethod
    def from_record(described: Mapping[str, Any]) -> Encoder:
        return encoder_from_json(described)

    @abstractmethod
    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        """Load or fit the encoder, and return a deterministic function that encodes a list of items.

        The lists are blocks of items. If the function has a method `ahead`, a second thread calls `ahead`
        with the next list while the function encodes the present one. The function then gets the result in
        place of that list.

        Raises
        ------
        SpaceError
            The encoder cannot encode the data with these settings, or the files of its model are unsuitable.
            The message tells the remedy.
        """


@dataclass(frozen=True)
class Trained:
    """The stored result of training: the weights, and metadata as JSON (loss curve, accuracy)."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any] = field(default_factory=dict)


class TrainedEncoder(Encoder):
    """An encoder that is trained on the dataset that it encodes. Its weights are stored.

    The encoding's metadata hold those of `Trained` under "training".
    """

    @abstractmethod
    def train(self, dataset: Dataset, report: Progress) -> Trained:
        """Train on the dataset. Equal settings give equal weights."""

    @abstractmethod
    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        """The encoding function that uses these weights."""

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        return self.restore(self.train(dataset, report), dataset)


def encoder_class(name: str) -> type[Encoder]:
    """The encoder class with this registered name, or with this import path. `Encoder.to_record` writes
    import paths for classes without a registered name; worker processes lack names that were registered at
    run time."""
    entry = ENCODERS.get(name) or next(
        (known for known in ENCODERS.values() if known.where in (name, name.removeprefix("relcore"))), None
    )
    refuse_encoder(name)
    if entry is None:
        raise SpaceError(f"encoder: expected one of {quote(ENCODERS)}, got {name!r:.80}")
    return entry.load()


def encoder_from_json(record: Mapping[str, Any]) -> Encoder:
    """The encoder from the dict that `to_record` returns. Missing settings get their defaults. Unknown
    settings are an error."""
    need_plain(record, "encoder")
    name = None
    if isinstance(record, Mapping):
        name = record.get("encoder")
    if not isinstance(name, str):
        raise SpaceError(
            f'encoder: expected a JSON object with "encoder": one of {quote(ENCODERS)}, got {record!r:.80}'
        )
    return records.from_json(encoder_class(name), record, name)


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
        low = values.min()
        high = values.max()
        return Image.fromarray(np.round((values - low) * (255 / (high - low or 1))).astype(np.uint8))
    return image.convert({"1": "L"}.get(image.mode, "RGBA" if image.has_transparency_data else "RGB"))


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
    return Look(mode, size, Strokes.of(pixels) if _border(pixels) < _DARK else None)


_LEAST_INK = 0.15  # minimum share of the paper's brightness that ink removes


def strokes_of(photo: Image) -> Image:
    """A photo of dark strokes on light paper, converted to light strokes on black. The illumination may vary
    smoothly: the brightness of the paper is modelled by a polynomial of degree two, which is fitted
    repeatedly to the pixels that are not darker than the previous fit."""
    from PIL import Image, ImageFilter

    grey = np.asarray(photo.convert("L").filter(ImageFilter.BoxBlur(1)), dtype=np.float64)
    y, x = (axis.ravel() for axis in np.mgrid[-1 : 1 : grey.shape[0] * 1j, -1 : 1 : grey.shape[1] * 1j])
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


# `PixelComponents` computes vectors of pictures from colours or edges, without labels or a pretrained model.

# pixels per side of resized pictures, for colours and for edges
_SIDE = 16
_EDGE_SIDE = 32
_CELL = 4
_ANGLES = 8
_SECONDS = {"pixels": 6e-4, "edges": 9e-4}  # seconds per small picture


@dataclass(frozen=True)
class PixelComponents(TrainedEncoder):
    """Principal components of small copies of the pictures, or of histograms of their edges. The histograms
    are like HOG (Dalal and Triggs 2005): for each cell of 4 × 4 pixels, one histogram of the directions of
    the gradient, weighted by the length of the gradient."""

    kind: ClassVar = "images"
    short: ClassVar = "pixels"
    of: Literal["pixels", "edges"] = setting(
        "pixels",
        label="Made of",
        choices={"pixels": "Pixels", "edges": "Edges"},
        several=True,
        usual=("pixels", "edges"),
        help="Pixels: the colour at each place. Edges: the directions of lines at each place.",
    )
    n_components: int = setting(
        64,
        label="Dimensions",
        option="dimensions",
        low=1,
        high=512,
        help="Maximum number. Few pictures give fewer.",
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
        rows_of = self._rows_of(dataset.name)
        n = 0
        total: Any = 0.0
        products: Any = 0.0
        with threadpool_limits(1, "blas"):  # another number of threads would change the last bits
            for start, images in dataset.blocks():
                report(start, len(dataset), f"reading {dataset.name}")
                rows = rows_of(images)
                n = n + len(rows)
                total = total + rows.sum(axis=0)
                products = products + rows.T @ rows
            mean = total / n
            _, axes = np.linalg.eigh(products / n - np.outer(mean, mean))
        width = min(self.n_components, n - 1, len(mean))
        return Trained(
            {"mean": mean, "axes": np.ascontiguousarray(axes[:, ::-1][:, :width])}, {"pictures": n}
        )

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        rows_of = self._rows_of(dataset.name)
        mean = trained.arrays["mean"]
        axes = trained.arrays["axes"]
        return lambda images: {"": ((rows_of(images) - mean) @ axes).astype(np.float32)}

    def _rows_of(self, name: str) -> Callable[[list], np.ndarray]:
        """The function that computes features (m, n_features), as float64, from m pictures."""

        def pixels(images: list) -> np.ndarray:
            return pixel_array(images, "RGB", (_SIDE, _SIDE), name).reshape(len(images), -1) / 255

        def edges(images: list) -> np.ndarray:
            grey = pixel_array(images, "L", (_EDGE_SIDE, _EDGE_SIDE), name)[:, 0] / 255
            down, right = np.gradient(grey, axis=(1, 2))
            angle = np.floor((np.arctan2(down, right) / np.pi % 1) * _ANGLES).astype(int) % _ANGLES
            length = np.hypot(down, right)
            cells = _EDGE_SIDE // _CELL
            parts = [np.where(angle == one, length, 0) for one in range(_ANGLES)]
            summed = np.stack(parts, 1).reshape(len(images), _ANGLES, cells, _CELL, cells, _CELL).sum((3, 5))
            rows = summed.reshape(len(images), -1)
            return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

        return pixels if self.of == "pixels" else edges
