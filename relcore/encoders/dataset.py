"""Dataset: the raw items that encoders turn into vectors, read from disk in blocks; DatasetSpec names one."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relcore.base import access, records
from relcore.base.errors import SpaceError, quote

Kind = Literal["images", "texts", "graph"]
SOURCES = ("digits", "wikipedia", "parallel", "file", "folder", "huggingface", "planetoid")


class DatasetOptions(tuple):
    """Pairs of name and value, sorted by name; in JSON an object."""

    def to_record(self) -> dict[str, Any]:
        return dict(self)

    @classmethod
    def from_record(cls, record: Any) -> DatasetOptions:
        if not isinstance(record, Mapping | None):
            raise SpaceError(f"options: expected names with their values, got {record!r:.80}")
        return cls(sorted((record or {}).items()))


@dataclass(frozen=True)
class DatasetSpec:
    """The specification of a dataset, hashable and as JSON.

    Attributes
    ----------
    source : one of `SOURCES`
    name : str
        The path, the hub's name, the graph's name, or the language of the parallel sentences (``"en"``).
    split : str
        ``"train"``, ``"test"``, … of folders and hub datasets; optional if there is only one.
    column, label_column : str
        The columns of items and labels; ``""``: chosen by name and kind.
    limit : int, optional
        At most n items: the first, or the same number per class (folders of images, Wikipedia).
    options : tuple of (key, value)
        digits: ``("look", "inverted")``, see `bundled.LOOKS`. Tables: ``("empty", "drop")``, ``("id_column",
        name)``, ``("encoding", name)``; see `datasets.with_options`. Wikipedia: ``("articles", 16)``,
        ``("per_article", 400)`` and ``("fewest", 250)``, see `bundled.wikipedia_dataset`. Hugging Face:
        ``("config", name)``. Planetoid: ``("folder", path)``.
    """

    source: str
    name: str = ""
    split: str = ""
    column: str = ""
    label_column: str = ""
    limit: int | None = None
    options: DatasetOptions = DatasetOptions()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", DatasetOptions(self.options))
        if self.source not in SOURCES:
            raise SpaceError(f"source: expected one of {quote(SOURCES)}, got {self.source!r:.80}")
        if self.limit is not None and (not isinstance(self.limit, int) or self.limit < 1):
            raise SpaceError(f"limit: expected a whole number of items, at least 1, got {self.limit!r:.80}")
        if unfit := [name for name, value in self.options if not isinstance(value, str | int | float | None)]:
            raise SpaceError(
                f"options: expected a string or a number for each, got something else for {quote(unfit)}"
            )

    def settings(self, **defaults: Any) -> dict[str, Any]:
        """The options with defaults filled in; raises a SpaceError for unknown options."""
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
        """The spec from the dict of `to_json`; raises a SpaceError for unknown keys."""
        return records.from_json(cls, described, "dataset")


class Dataset:
    """Items in order, with ids and optional labels; immutable, read on demand.

    Parameters
    ----------
    read : function (start, stop) → list
        PIL images in their stored mode, strings, or node numbers.
    ids : n distinct strings
        Two columns of one table have equal ids, so that their spaces match. Different datasets have different
        ids, unless their tables contain the same ones.
    labels : n strings, optional
        ``""`` for none.
    content : function () → iterable of bytes, optional
        The bytes from which the digest is computed; by default the items, which must then be strings.
    graph : function () → torch_geometric.data.Data, optional
        For the kind "graph".
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
        graph: Callable[[], Any] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.ids = _strings(ids)
        self.labels = None if labels is None else _strings(labels)
        self._read, self._content, self._graph = read, content, graph
        if not len(self.ids):
            raise SpaceError(f"{name}: expected at least one item, got none")

    def __len__(self) -> int:
        return len(self.ids)

    def items(self, start: int, stop: int) -> list[Any]:
        """The items of these rows; raises a SpaceError that names the row of an unreadable image."""
        return self._read(start, stop)

    def blocks(self) -> Iterator[tuple[int, list[Any]]]:
        """The number of a block's first row, and its items."""
        for start in range(0, len(self), 1024):
            yield start, self._read(start, min(start + 1024, len(self)))

    def item(self, row: int) -> Any:
        return self.items(row, row + 1)[0]

    def graph(self) -> Any:
        """The torch_geometric Data of a graph: `x`, `edge_index`, `y` and the masks."""
        if self._graph is None:
            raise SpaceError(
                f"{self.name}: expected a graph, got {self.kind}; choose an encoder for {self.kind}"
            )
        return self._graph()

    @cached_property
    def digest(self) -> str:
        """Digest of items, ids and labels (encoders may train on them); read once, in pieces."""
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
    """One line of the list of datasets; `n` is None if counting would read all data."""

    name: str
    kind: Kind
    spec: DatasetSpec
    where: Literal["here", "needs the network"]
    n: int | None
    description: str


def evenly(labels: Sequence[str], limit: int | None) -> np.ndarray:
    """At most `limit` row numbers, ascending: the first rows of each class, the same number if possible."""
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


# Paths of data on this machine that the caller may read.

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def dataset_place(spec: DatasetSpec) -> Path | None:
    """The file or folder of a dataset; None if it has no path.

    Raises a SpaceError if the caller may not read it; see `access.allowed`.
    """
    if spec.source in ("file", "folder"):
        return access.allowed(spec.name)
    if spec.source == "huggingface":
        return hub_folder(spec.name)
    folder = dict(spec.options).get("folder") if spec.source == "planetoid" else None
    return access.allowed(folder) if folder else None


def hub_folder(name: str) -> Path | None:
    """The folder of a dataset or model given as a folder or a hub's name; None if there is none.

    In a shared app only an absolute path counts as a folder, and uploads never do, because files such as
    tokenizer_config.json can name other files that libraries would read. Raises as `access.allowed`.
    """
    if access.shared():
        if HUB_NAME.fullmatch(name):
            return None
        folder = access.allowed(name, uploads=False)
        return folder if folder.is_dir() else None
    folder = access.expanded(name)
    return access.allowed(folder) if name and folder.is_dir() else None


# Test the network before a download, so that an error comes at once, not after retries.

PATIENCE = 2.0


def answers(url: str, patience: float = PATIENCE) -> bool:
    """Whether the address answers within `patience` seconds."""
    from urllib.request import Request, urlopen

    reached = []

    def ask() -> None:
        with suppress(OSError), urlopen(Request(url, method="HEAD"), timeout=patience):
            reached.append(url)

    # In a thread, because looking up a name has no timeout of its own.
    thread = threading.Thread(target=ask, name="ask-network", daemon=True)
    thread.start()
    thread.join(patience + 0.5)
    return bool(reached)


def hub_answers(patience: float = PATIENCE) -> bool:
    """Whether the Hugging Face hub is reachable and not switched off by HF_HUB_OFFLINE."""
    from huggingface_hub import constants

    return not constants.HF_HUB_OFFLINE and answers(constants.ENDPOINT, patience)
