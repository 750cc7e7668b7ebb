"""Which space a session or recipe means, by its source and options; keys and entries of encodings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.encoders.dataset import DatasetOptions, DatasetSpec
from relcore.encoders.encoder import Encoder, encoder_from_json
from relcore.files.on_disk import MAP_FROM
from relcore.files.reading import (
    FILE_OPTIONS,
)
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry, Summary
from relcore.runs.store import Store
from relcore.spaces.space import BLOCK_ROWS, LatentSpace, MappedRows, Origin, digest_of_columns
from relcore.stores.index import Place


def key_of(what: str, dataset_digest: str, encoder: Encoder, *parts: str | int) -> str:
    """The store's key of anything that an encoder makes of a dataset; a change in either gives another."""
    return digest_of(what, dataset_digest, encoder, encoder.version, encoder.content(), *parts)


def encoding_key(dataset_digest: str, encoder: Encoder, output: str = "") -> str:
    """The store's key of one space: the same for a layer by itself and for that layer of a pass over
    several.
    """
    return key_of("encoding", dataset_digest, encoder.only(output), output)


def put_encoding(store: Store, key: str, space: LatentSpace, metadata: dict) -> None:
    """Keep a space whole: vectors, ids, labels, counts, its name and digest, and what `metadata` tells of
    its making.
    """
    arrays = {"ids": packed(list(space.ids))}
    if space.labels is not None:
        arrays["labels"] = packed(list(space.labels))
    if space.counts is not None:
        arrays["counts"] = space.counts
    shape, facts = space.vectors.shape, {"name": space.name, "digest": space.digest, **metadata}
    if 4 * math.prod(shape) < MAP_FROM:
        store.put(key, {"vectors": np.asarray(space.vectors), **arrays}, facts)
    else:
        blocks = (space.vectors[start : start + BLOCK_ROWS] for start in range(0, len(space), BLOCK_ROWS))
        store.put(key, arrays, facts, (blocks, shape))


def space_of(entry: Entry) -> LatentSpace:
    """The space that `put_encoding` put."""
    ids, labels = (unpacked(entry.arrays.get(name)) for name in ("ids", "labels"))
    vectors, counts = entry.arrays["vectors"], entry.arrays.get("counts")
    if isinstance(vectors, np.memmap):
        origin = _KnownDigest(entry.metadata.get("digest"), digest_of_columns((ids, labels, counts)))
        vectors = MappedRows([vectors.view(np.ndarray)], origin)
    return LatentSpace(vectors, ids, name=entry.metadata["name"], labels=labels, counts=counts)


@dataclass
class _KnownDigest(Origin):
    """Rows of an entry of the store, which tells the digest of the whole space with these columns."""

    digest: str | None
    columns: str

    def known_digest(self, columns: str) -> str | None:
        return self.digest if columns == self.columns else None


def packed(value: Any) -> np.ndarray:
    """JSON as an array: metadata may not grow beyond 100 MB, which the ids of a large dataset would."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def unpacked(array: np.ndarray | None) -> list[Any] | None:
    value = None if array is None else json.loads(array.tobytes())
    if array is not None and not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


_OPTIONS = {
    "bundled": (),
    "file": FILE_OPTIONS,
    "index": ("kind", "table"),
    "gensim-data": (),
    "encoding": ("dataset", "encoder", "key", "output"),
    "renamed": ("base", "key"),
    "sample": ("key", "rows", "of"),
}


BY_ROW = "rows"  # where a renamed space has no pairing: its ids are row numbers


@dataclass(frozen=True)
class SpaceSpec:
    """Which space, in a form that hashes, goes into a cache key, and goes to JSON and back.

    Attributes
    ----------
    source : "bundled", "file", "index", "gensim-data", "encoding", "renamed" or "sample"
    name : str
        The name, or the path of a file or an index. An address is refused: opening a session or a recipe asks
        no other host.
    limit : int, optional
        Only the first rows.
    options : tuple of (key, value)
        All strings. For files further arguments of `load_space`, ignore as a JSON list. For an index its kind
        in `relcore.base.names.INDEXES`, and the table or collection in it. For encodings what made them:
        dataset and encoder as JSON, output, and the key in the store; see `encoding_spec`. For a renamed
        space the spec of its base as JSON and the key of the pairing in the store, or "rows"; see
        `renamed_spec` and `numbered_spec`. For a sample of a folder of shards, whose path or address is the
        name, its key in the store, its rows and those of the folder.
    """

    source: str
    name: str
    limit: int | None = None
    options: DatasetOptions = DatasetOptions()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", DatasetOptions(self.options))
        if self.source not in _OPTIONS:
            raise SpaceError(f"source: expected one of {quote(_OPTIONS)}, got {self.source!r:.80}")
        if not isinstance(self.name, str) or not self.name:
            raise SpaceError(
                f"name: expected the name of a space or the path of a file, got {self.name!r:.80}"
            )
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise SpaceError(
                f"limit: expected a whole number of rows, at least 1, or none, got {self.limit!r:.80}"
            )
        known, given = _OPTIONS[self.source], dict(self.options)
        whole = known if self.source != "file" else ()
        if (
            not given.keys() <= set(known)
            or set(map(type, given.values())) - {str}
            or given.keys() < set(whole)
        ):
            expected = (
                f"{'all' if whole else 'some'} of {quote(known)}, each with a string" if known else "none"
            )
            raise SpaceError(f"options: expected {expected} for {self.source!r}, got {quote(given)}")
        need_one_of("ids", given.get("ids", ""), ("", "rows"))
        if self.source == "index" and place_of(self).address:
            raise SpaceError(
                f"{self.name!r:.80}: expected a path, got an address, which a space must not have; copy the"
                " rows first: relscope adapt none SOURCE FILE.parquet"
            )

    def option(self, name: str) -> str:
        """The value of an option, "" where it is not set."""
        return dict(self.options).get(name, "")

    @property
    def dataset(self) -> DatasetSpec | None:
        """What an encoding was made of; None for a space that comes as vectors."""
        return DatasetSpec.from_json(json_of(self.option("dataset"))) if self.source == "encoding" else None

    @property
    def encoder(self) -> Encoder | None:
        """What an encoding was made by; None for a space that comes as vectors."""
        return encoder_from_json(json_of(self.option("encoder"))) if self.source == "encoding" else None

    @property
    def rows_of(self) -> SpaceSpec:
        """The space whose rows these are, in their order: of one under its row numbers what it was before,
        else itself.
        """
        return base_of(self) if self.source == "renamed" and self.option("key") == BY_ROW else self

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self)

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> SpaceSpec:
        """The spec of such a dict; keys that it does not know are an error."""
        return records.from_json(cls, described, "space")


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def encoding_spec(dataset: DatasetSpec, encoder: Encoder, output: str, key: str, name: str) -> SpaceSpec:
    """The spec of an encoding, with all that it takes to make it again where the store does not have it."""
    made_of = (
        ("dataset", _compact(dataset.to_json())),
        ("encoder", _compact(encoder.only(output).to_record())),
    )
    return SpaceSpec("encoding", name, options=(*made_of, ("key", key), ("output", output)))


def stored_encoding_spec(summary: Summary) -> SpaceSpec | None:
    """The spec of an encoding in the store; None where a script made it from a dataset of its own."""
    facts = summary.metadata
    if "dataset_spec" not in facts:
        return None
    dataset, encoder = DatasetSpec.from_json(facts["dataset_spec"]), encoder_from_json(facts["encoder"])
    return encoding_spec(dataset, encoder, facts["output"], summary.key, facts["name"])


def renamed_spec(base: SpaceSpec, key: str, name: str) -> SpaceSpec:
    """The spec of a space whose rows bear the ids that the pairing under `key` gives them (`put_pairing`)."""
    return SpaceSpec("renamed", name, options=(("base", _compact(base.to_json())), ("key", key)))


def numbered_spec(spec: SpaceSpec) -> SpaceSpec:
    """The spec of the same rows with their row numbers as ids, so that two spaces pair by row order."""
    if spec.source == "file":
        return replace(spec, options=tuple((dict(spec.options) | {"ids": "rows"}).items()))
    if spec.source == "sample":
        raise SpaceError(
            f"{spec.name!r:.80}: expected all rows to pair by row order, got a sample; write ids in the"
            " shards"
        )
    return spec if spec.rows_of != spec else renamed_spec(spec, BY_ROW, f"{spec.name} · by row")


def base_of(spec: SpaceSpec) -> SpaceSpec:
    """What a renamed space was made of."""
    return SpaceSpec.from_json(json_of(spec.option("base"), "renamed space: expected its base"))


def json_of(text: str, expected: str = "encoding: expected a dataset and an encoder") -> Any:
    try:
        return records.parse(text, "")
    except SpaceError as error:
        raise SpaceError(f"{expected} as JSON, got {text!r:.80}") from error


def place_of(spec: SpaceSpec) -> Place:
    return Place(spec.option("kind"), spec.name, spec.option("table"))
