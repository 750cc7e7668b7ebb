"""`Dataset`, images or texts with ids and labels, and `DatasetSpec`, which names one."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relcore.base import access, records
from relcore.base.earlier import refuse_source
from relcore.base.errors import SpaceError, quote
from relcore.base.settings import setting

# Datasets: the pictures or texts to encode, called items, and the specs that name datasets.

Kind = Literal["images", "texts"]
SAMPLE = "sample"  # option of every dataset: the share of its rows
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
        `datasets.wikipedia_dataset`). For Hugging Face: ``("config", name)``. For all: ``("sample", share)``,
        the share of the items to take, drawn by a hash of their ids.
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

    Attributes
    ----------
    whole : Dataset or None
        The dataset of which `take` took some rows, and `rows`, their numbers there; None if it is no part.
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
        self.whole: Dataset | None = None
        self.rows: np.ndarray | None = None
        self._content = content
        if not len(self.ids):
            raise SpaceError(f"{name}: expected at least one item, got none; choose data that has rows")

    def __len__(self) -> int:
        return len(self.ids)

    def blocks(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield each block of items, with the number of its first row."""
        for start in range(0, len(self), 1024):
            yield start, self.items(start, min(start + 1024, len(self)))

    def item(self, row: int) -> Any:
        return self.items(row, row + 1)[0]

    def take(self, rows: np.ndarray, name: str = "") -> Dataset:
        """A dataset of some rows, given by their numbers in ascending order. It knows the `whole` dataset,
        and the numbers of its `rows` there."""
        whole = self.whole or self
        numbers = rows if self.rows is None else self.rows[rows]

        def read(start: int, stop: int) -> list[Any]:
            wanted = rows[start:stop].tolist()
            if self.kind == "images" or not wanted:  # pictures between the wanted ones are slow to read
                return [self.item(row) for row in wanted]
            texts = self.items(wanted[0], wanted[-1] + 1)
            return [texts[row - wanted[0]] for row in wanted]

        def content() -> Iterator[bytes]:
            yield whole.digest.encode()
            yield numbers.astype("<i8").tobytes()

        labels = None
        if self.labels is not None:
            labels = self.labels[rows]
        part = Dataset(
            read, self.ids[rows], name=name or self.name, kind=self.kind, labels=labels, content=content
        )
        part.whole = whole
        part.rows = numbers
        return part

    @cached_property
    def digest(self) -> str:
        """The digest of items, ids and labels. Labels are included because encoders may train on them."""
        digest = hashlib.blake2b(f"{self.kind} {len(self)}".encode(), digest_size=16)
        for column in (self.ids, self.labels):
            if column is None:
                digest.update(b"\x1e")
            else:
                digest.update(_utf8("\x1f".join(column)))
        if self._content:
            pieces = self._content()
        else:
            pieces = (_utf8(text) for _, block in self.blocks() for text in block)
        for piece in pieces:
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


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


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
