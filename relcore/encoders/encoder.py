"""`Encoder`, the interface of everything that turns images, texts or nodes into vectors.

To add an encoder, write a frozen dataclass that inherits from `Encoder`, and name it in
`relcore.base.names.ENCODERS` or in your own package (see docs/plugin).
"""

from __future__ import annotations

import hashlib
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from relcore.base import access, records
from relcore.base.errors import SpaceError, quote
from relcore.base.names import ENCODERS, FORMER_DATA
from relcore.base.records import need_plain
from relcore.base.settings import UNSET, Facts, check, setting, settings_of
from relcore.runs.store import Progress
from relcore.spaces.space import LatentSpace

# Datasets: the items that are encoded, and the specs that name them.


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
    """The description of a dataset, from which it can be loaded. It is hashable and can be written as JSON.

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
    label_column: str = setting("", help="The column of its labels; default: found automatically.")
    limit: int | None = setting(
        None, help="Use at most N items: the first ones, or equally many of each class."
    )
    options: DatasetOptions = DatasetOptions()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", DatasetOptions(self.options))
        if self.source in FORMER_DATA:
            raise SpaceError(
                f"source: an earlier version of Relscope opens {self.source!r}; this one has none"
            )
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
    """Items in order, with ids and optional labels. A dataset is immutable, and items are read when they are
    used.

    Parameters
    ----------
    read : function (start, stop) → list
        Returns PIL images in their stored mode, or strings.
    ids : n distinct strings
        Two columns of one table have equal ids, so that the rows of their spaces are paired. Different
        datasets have different ids, unless their tables contain the same ids.
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
        self.labels = None if labels is None else _strings(labels)
        self._read, self._content = read, content
        if not len(self.ids):
            raise SpaceError(f"{name}: expected at least one item, got none")

    def __len__(self) -> int:
        return len(self.ids)

    def items(self, start: int, stop: int) -> list[Any]:
        """The items of these rows. If an image cannot be read, raises a SpaceError that names its row."""
        return self._read(start, stop)

    def blocks(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield each block of items, with the number of its first row."""
        for start in range(0, len(self), 1024):
            yield start, self._read(start, min(start + 1024, len(self)))

    def item(self, row: int) -> Any:
        return self.items(row, row + 1)[0]

    @cached_property
    def digest(self) -> str:
        """The digest of items, ids and labels. Labels are included because encoders may train on them. The
        items are read once, in blocks."""
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
    """One line of the list of datasets. `n` is None if all data would have to be read to count the items."""

    name: str
    kind: Kind
    spec: DatasetSpec
    n: int | None
    description: str


def evenly(labels: Sequence[str], limit: int | None) -> np.ndarray:
    """At most `limit` row numbers, in ascending order. They are the first rows of each class, with the same
    number from each class if possible."""
    labels = np.asarray(labels, dtype=object)
    if limit is None or limit >= len(labels):
        return np.arange(len(labels))
    seen: dict[str, int] = {}
    rank = np.empty(len(labels), dtype=np.int64)
    for row, label in enumerate(labels):
        rank[row] = seen[label] = seen.get(label, -1) + 1
    return np.sort(np.argsort(rank, kind="stable")[:limit])


def _strings(items: Sequence[str]) -> np.ndarray:
    strings = np.empty(len(items), dtype=object)
    strings[:] = [str(item) for item in items]
    strings.flags.writeable = False
    return strings


# Paths of data on this machine, if the session may read them.

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
    """The folder of a dataset or model that a user named by a path or by its name on the hub. None if there
    is no such folder.

    In a shared app, only an absolute path counts as a folder. Uploads never count, because files such as
    tokenizer_config.json can name other files that libraries would read. Raises the errors of
    `access.readable_path`.
    """
    if access.is_shared():
        if HUB_NAME.fullmatch(name):
            return None
        folder = access.readable_path(name, uploads=False)
        return folder if folder.is_dir() else None
    folder = access.expand_home(name)
    return access.readable_path(folder) if name and folder.is_dir() else None


# The network is tested before a download, so that an error comes at once and not after retries.

PATIENCE = 2.0


def answers(url: str) -> bool:
    """Whether the address answers within `PATIENCE` seconds."""
    from urllib.request import Request, urlopen

    reached = []

    def ask() -> None:
        with suppress(OSError), urlopen(Request(url, method="HEAD"), timeout=PATIENCE):
            reached.append(True)

    # This runs in a thread, because looking up the name of a host has no timeout.
    thread = threading.Thread(target=ask, name="ask-network", daemon=True)
    thread.start()
    thread.join(PATIENCE + 0.5)
    return bool(reached)


def hub_answers() -> bool:
    """Whether HF_HUB_OFFLINE permits requests to the Hugging Face hub and the hub answers."""
    from huggingface_hub import constants

    return not constants.HF_HUB_OFFLINE and answers(constants.ENDPOINT)


# Encoders.


EncodeBatch = Callable[[list[Any]], dict[str, np.ndarray]]  # m items → {output: (m, d) float32}


class Encoder(ABC):
    """An encoder: a frozen dataclass of plain settings. Keys, JSON and messages are made from them.

    Equal settings must give equal vectors. Therefore random steps use a `random_state`, and `content`
    identifies external files. Forms, options of ``relscope encode`` and checks derive from the fields (see
    `relcore.base.settings.setting`).
    """

    kind: ClassVar[Kind]
    version: ClassVar[int] = 1  # increase it when a change of code changes the vectors
    short: ClassVar[str] = ""  # a second name on the command line
    by_length: ClassVar[bool] = False  # whether texts are sorted by length, because batches are padded

    __post_init__ = check

    @classmethod
    def is_offered(cls) -> bool:
        """Whether the page Data offers the encoder. It does not if the encoder is for studies or if an
        optional library is missing."""
        return True

    @classmethod
    def unfit(cls, data: Facts) -> str:
        """Why the encoder cannot encode this dataset, with a remedy; "" if it can."""
        return ""

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        """The approximate processor seconds for n items; None if unknown. `pixels` is the size of each item,
        if items are pictures."""
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
        """The encoder with only this output. The encoding of each output has its own key in the store."""
        return self

    def with_outputs_of(self, other: Encoder) -> Encoder | None:
        """An encoder that gives the outputs of both encoders in one pass; None if there is none."""
        return self if other == self else None

    def content(self) -> str:
        """The digest of external files, such as the files of a model; "" if there are none."""
        return ""

    def to_record(self) -> dict[str, Any]:
        """The encoder as JSON, with its name and every setting: ``{"encoder": "small-vision", "architecture":
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

        The lists are blocks of items. If the function has an attribute `ahead`, which is also a function, a
        thread applies `ahead` to the next list, and the encoding function gets the result instead of the
        list.

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
    """The encoder class with this name. For a class without a registered name, `Encoder.to_record` writes the
    import path, which is also accepted here. Worker processes need it, because they lack names that were
    registered at run time.
    """
    entry = ENCODERS.get(name) or next(
        (known for known in ENCODERS.values() if known.where in (name, name.removeprefix("relcore"))), None
    )
    if name in FORMER_DATA:
        raise SpaceError(f"encoder: an earlier version of Relscope opens {name!r}; choose another encoder")
    if entry is None:
        raise SpaceError(f"encoder: expected one of {quote(ENCODERS)}, got {name!r:.80}")
    return entry.load()


def encoder_from_json(record: Mapping[str, Any]) -> Encoder:
    """The encoder from the dict that `to_record` returns. Missing settings get their defaults. Unknown
    settings are an error."""
    need_plain(record, "encoder")
    name = record.get("encoder") if isinstance(record, Mapping) else None
    if not isinstance(name, str):
        raise SpaceError(
            f'encoder: expected a JSON object with "encoder": one of {quote(ENCODERS)}, got {record!r:.80}'
        )
    kind, values = encoder_class(name), {**record}
    del values["encoder"]
    known = settings_of(kind)
    if unknown := set(values) - set(known):
        raise SpaceError(f"{name}: expected settings among {quote(known)}, got {quote(sorted(unknown))}")
    if missing := [key for key in known if known[key].default is UNSET and key not in values]:
        raise SpaceError(f"{name}: expected the setting {missing[0]!r}, got none")
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    )
