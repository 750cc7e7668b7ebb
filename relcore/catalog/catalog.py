"""The catalogue of the spaces on this machine and on the network. `SpaceSpec`, a *spec* for short, is the
reference by which a space is named and loaded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relcore.base import access, records
from relcore.base.errors import SpaceError, is_among, need_one_of, quote
from relcore.catalog.encodings import (
    encode,
    encoding_key,
    load_encoding,
    missing_entry,
)
from relcore.catalog.renamed import with_new_ids, with_row_numbers
from relcore.encoders import words
from relcore.encoders.dataset import DatasetOptions, DatasetSpec, dataset_place
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder, encoder_from_json
from relcore.encoders.words import BUNDLED, load_words
from relcore.files.formats import Description, suffix_of
from relcore.files.parts import files_in, parts_of, vector_places
from relcore.files.reading import ReadOptions, descriptions_of, read_space, shape_of
from relcore.files.saving import FILE_OPTIONS
from relcore.runs.entries import Summary, digest_of
from relcore.runs.store import Store
from relcore.spaces.ids import Texts, mark_unscored
from relcore.spaces.space import LatentSpace
from relcore.stores.index import StorePlace, load_rows


def held_out_ids(
    specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], ids: Texts | None = None
) -> tuple[str, ...]:
    """The ids of the rows whose labels no encoder of these spaces saw in training. With `ids`, only these ids
    are considered, in their order.

    () if no encoder saw labels, or if every row was seen by some encoder.
    """
    unseen: dict[str, None] | None = None
    for spec, space in zip(specs, spaces, strict=True):
        encoder = spec.rows_of.encoder
        seen = ()
        if encoder:
            seen = encoder.seen_rows(space)
        if len(seen):
            others = dict.fromkeys(np.delete(space.ids, seen).tolist())
            if unseen is None:
                unseen = others
            else:
                unseen = {item: None for item in unseen if item in others}
    if not unseen:
        return ()
    if ids is None:
        return tuple(unseen)
    return tuple(item for item in ids if item in unseen)


# Samples of folders of shards. `relcore.sharded.space` draws a sample and stores it, and a spec names it by
# its key.


def is_address(place: str) -> bool:
    """Whether the place of a folder is an address, which fsspec opens, and not a path on this machine."""
    return "://" in place


def folder_stamp(place: str) -> str:
    """A text that changes when a file of the folder is written, added or removed. "" for an address, because
    checking that would need the network.

    Raises
    ------
    SpaceError
        The folder cannot be read.
    """
    if is_address(place):
        return ""
    try:
        states = [(path, path.stat()) for path in files_in(access.readable_path(place))]
    except OSError as error:
        raise SpaceError(
            f"{place!r:.200}: expected a folder of shards, got {error.strerror}; check the spelling"
        ) from error
    return digest_of("folder", [(path.name, about.st_mtime_ns, about.st_size) for path, about in states])


def _sample(store: Store, place: str, key: str) -> LatentSpace:
    """The sample of rows that the store has under this key. It must have been drawn from the folder at this
    place.

    Raises
    ------
    SpaceError
        The store lacks the sample, the sample is of another folder, or the folder has changed since.
    """
    again = f"draw it again in Data, or by relscope app {place}"
    sample = store.summary(key)
    if sample is None:
        raise missing_entry(store, f"a sample of {place!r:.200}", f"none (removed to make room); {again}")
    drawn_from = sample.metadata.get("sample of")
    # Check the entry, because a session file can name any key.
    if drawn_from is None or (access.is_shared() and drawn_from != place):
        raise missing_entry(
            store, f"a sample of {place!r:.200} under the key {key[:8]}…", f"another result; {again}"
        )
    if folder_stamp(drawn_from) != sample.metadata["stamp"]:
        raise SpaceError(
            f"{drawn_from!r:.200}: expected the shards that its sample was drawn from, got others; {again}"
        )
    return load_encoding(store, key)


_MOST_FILES = 500
_DESCRIPTIONS = {
    "word2vec-novels": "Word2Vec skip-gram, 30 million words of novels, news and speeches",
    "fasttext-novels": "FastText skip-gram, trained separately on the same corpus",
}


@dataclass(frozen=True)
class CatalogEntry:
    """A space in the catalogue. `n` and `dimension` are None if they are unknown until the file is read."""

    name: str
    kind: str
    spec: SpaceSpec
    where: Literal["here", "needs the network"]
    size_bytes: int
    n: int | None
    dimension: int | None
    description: str


def encoding_specs(
    store: Store, dataset: DatasetSpec, encoder: Encoder, keys: Mapping[str, str]
) -> list[SpaceSpec]:
    """The specs of the outputs of an encoder, without those that the store no longer has. `keys` holds the
    key of each output."""
    return [
        encoding_spec(dataset, encoder, output, key, summary.metadata["name"])
        for output, key in keys.items()
        if (summary := store.summary(key)) is not None
    ]


def load(spec: SpaceSpec, store: Store | None = None, again: bool = False) -> LatentSpace:
    """The space that the spec names. Encodings are read from `store`, by default the environment's store.
    With `again` (for recipes), an encoding that the store lacks is computed again, even if its rows were
    renamed. Raises the errors of `need_access`, `load_words`, `read_space` and `load_encoding`."""
    if removed := listed(spec, UNSCORED):
        space = load(with_unscored(spec, ()), store, again)
        return space.with_columns(ids=mark_unscored(space.ids, removed))
    if kept := listed(spec, KEPT):
        return chosen_rows(load(with_kept(spec, ()), store, again), kept)
    if again and spec.source == "encoding":
        encode_again(spec, store or Store())
    options = dict(spec.options)
    if spec.source == "file":
        path = access.readable_path(spec.name)
        if "ignore" in options:
            options["ignore"] = listed(spec, "ignore")
        if "metadata" in options:
            options["metadata"] = access.readable_path(options["metadata"])
        return read_space(path, ReadOptions(**options), limit=spec.limit, store=store)
    need_access(spec, store)
    if spec.source == "index":
        return load_rows(place_of(spec), spec.limit)
    if spec.source in ("bundled", "gensim-data"):
        if spec.source == "bundled":
            known = BUNDLED
        else:
            known = words.MODELS
        need_one_of(spec.source, spec.name, known)
        return load_words(spec.name, limit=spec.limit)
    store = store or Store()
    key = options["key"]
    if spec.source == "encoding":
        return load_encoding(store, key)
    if spec.source == "sample":
        return _sample(store, spec.name, key)
    base = load(base_of(spec), store, again)
    if key == BY_ROW:
        return with_row_numbers(base, spec.name)
    return with_new_ids(base, store, key, spec.name)


def files_of(spec: SpaceSpec) -> tuple[str, ...]:
    """The paths in the spec of a file or a sample: that of the vectors and, if given, that of their
    metadata."""
    on_disk = spec.source == "file" or (spec.source == "sample" and not is_address(spec.name))
    if on_disk:
        return tuple(filter(None, (spec.name, spec.option("metadata"))))
    return ()


UNSCORED = "unscored"  # option of every spec: the ids of rows that an audit excluded from scores


def with_unscored(spec: SpaceSpec, ids: Iterable[str]) -> SpaceSpec:
    """The spec of the same space in which the rows with these ids, and no others, are not scored."""
    return _with_list(spec, UNSCORED, sorted(set(ids)))


KEPT = "kept"  # option of every spec: the ids of the space's rows, if the user selected only some
MOST_KEPT = 20_000


def with_kept(spec: SpaceSpec, ids: Sequence[str]) -> SpaceSpec:
    """The spec of only the rows with these ids. If there are no ids, all rows. Raises a SpaceError for more
    than `MOST_KEPT` ids."""
    if len(ids) > MOST_KEPT:
        raise SpaceError(
            f"kept: expected at most {MOST_KEPT:,} rows, got {len(ids):,}; download them, and open the file"
        )
    return _with_list(spec, KEPT, list(ids))


def _with_list(spec: SpaceSpec, option: str, ids: list[str]) -> SpaceSpec:
    options = {name: value for name, value in spec.options if name != option}
    added = {}
    if ids:
        added = {option: json.dumps(ids, ensure_ascii=False)}
    return replace(spec, options=tuple((options | added).items()))


def chosen_rows(space: LatentSpace, ids: Sequence[str]) -> LatentSpace:
    """The space with only the rows of these ids. Its name says how many they are."""
    return space.take(space.rows(ids), f"{space.name}, {len(ids):,} rows")


def listed(spec: SpaceSpec, option: str) -> tuple[str, ...]:
    """The ids in the option `KEPT` or `UNSCORED` of a spec, or the columns in its option "ignore"."""
    expected = f"{option}: expected a list of {'columns' if option == 'ignore' else 'ids'}"
    names = []
    if text := spec.option(option):
        names = json_of(text, expected)
    if not isinstance(names, list) or {*map(type, names)} - {str}:
        raise SpaceError(f"{expected} as JSON, got {text!r:.80}")
    return tuple(names)


def need_access(spec: SpaceSpec, store: Store | None = None) -> None:
    """Raise a SpaceError unless the current session may open the space. Call this before any cache is used.

    The session must be allowed to read a file (see `access.readable_path`). In a shared app, an encoding in
    the store must have been made by this session, or from a dataset and an encoder that this session may
    read. A key in a session file is not enough.
    """
    if spec.source == "sample" and is_address(spec.name):
        access.need_own_machine(spec.name)
    elif spec.source in ("file", "sample"):
        for path in files_of(spec):
            access.readable_path(path)
    elif spec.source == "index":
        place_of(spec).need_access()
    elif spec.source == "renamed":
        need_access(base_of(spec), store)
    elif spec.source == "encoding" and not access.put_by_session(spec.option("key")):
        summary = (store or Store()).summary(spec.option("key"))
        if summary is not None and not _may_make(summary):
            raise SpaceError(
                f"{spec.name!r:.80} is not open to this session: this app is shared, and the encoding was"
                " made of data that this session may not read; encode your own copy"
            )


def _may_make(summary: Summary) -> bool:
    """Whether the current session may read everything from which a store entry was made."""
    try:
        spec = stored_encoding_spec(summary)
        if spec is None:
            return False
        dataset_place(spec.dataset)
        spec.encoder.content()
    except (SpaceError, KeyError):  # KeyError: the entry is no encoding
        return False
    return True


def available(data_folder: str | Path | None = None) -> list[CatalogEntry]:
    """The catalogue: bundled spaces, files in the data folder (by default RELSCOPE_DATA), and models of
    gensim-data. It is made without the network.

    Only names and headers of files are read, two folders deep, for at most 500 files. Texts and tables
    without vectors are left out.
    """
    if data_folder:
        folder = access.readable_path(data_folder)
    else:
        folder = access.data_folder()
    entries = [
        _entry(name, SpaceSpec("bundled", name), path, shape_of(path), _DESCRIPTIONS[name], "words")
        for name, path in BUNDLED.items()
        if path.is_file()
    ]
    entries += _files(folder) if folder else ()
    for name, facts in words.MODELS.items():
        where = "needs the network"
        if words.downloaded_file(name):
            where = "here"
        entries.append(CatalogEntry(name, "words", SpaceSpec("gensim-data", name), where, *facts))
    return entries


def _entry(
    name: str, spec: SpaceSpec, path: Path, shape: tuple[Any, Any], description: str, kind: str = "file"
) -> CatalogEntry:
    files = [path]
    if path.is_dir():
        files = parts_of(path)
    size = sum(file.stat().st_size for file in files)
    return CatalogEntry(name, kind, spec, "here", size, *shape, description)


def _files(folder: Path) -> Iterator[CatalogEntry]:
    paths = list(islice(vector_places(folder), _MOST_FILES))
    descriptions = descriptions_of(paths)
    for path in paths:
        name = str(path.relative_to(folder))
        spec = SpaceSpec("file", str(path))
        description = descriptions.get(path, Description())
        kind = f"{suffix_of(path)} file"
        shape = description.shape
        if path.is_dir():
            shape = shape_of(path)
            kind = "folder of a dataset"
        elif not shape and len(description.matrices) > 1:  # several matrices and no default
            shape = (None, None)
        if shape:
            yield _entry(name, spec, path, shape, kind)


_OPTIONS = {
    "bundled": (),
    "file": FILE_OPTIONS,
    "index": ("kind", "table"),
    "gensim-data": (),
    "encoding": ("dataset", "encoder", "key", "output"),
    "renamed": ("base", "key"),
    "sample": ("key", "rows", "of"),
}
BY_ROW = "rows"  # the key of a renamed space without a pairing, whose ids are row numbers


@dataclass(frozen=True)
class SpaceSpec:
    """A reference to a space. It can be hashed, be part of a cache key, and be converted to JSON and back.

    Attributes
    ----------
    source : "bundled", "file", "index", "gensim-data", "encoding", "renamed" or "sample"
    name : str
        The name of the space, or the path of a file or an index. An address is refused, because opening a
        session or a recipe must not connect to other machines.
    limit : int, optional
        The number of rows, counted from the first; by default all.
    options : tuple of (key, value)
        Keys and values are strings. For a file: further arguments of `load_space`, with `ignore` as a JSON
        list. For an index: its kind in `relcore.base.names.INDEXES`, and its table or collection. For an
        encoding: the dataset and the encoder as JSON, the output, and the key in the store (see
        `encoding_spec`). For a renamed space: the spec of its base as JSON, and the key of the pairing in the
        store or "rows" (see `renamed_spec` and `numbered_spec`). For a sample of a folder of shards, whose
        name is the folder's path or address: the key in the store, the number of rows in the sample, and the
        number of rows in the folder. For any space: the options that `with_unscored` and `with_kept` add.

    Examples
    --------
    >>> from relcore import SpaceSpec
    >>> SpaceSpec("bundled", "word2vec-novels", limit=100).load()
    LatentSpace('word2vec-novels', n=100, d=100, digest=991d09cd)
    """

    source: str
    name: str
    limit: int | None = None
    options: DatasetOptions = DatasetOptions()

    def __post_init__(self) -> None:
        try:
            if not isinstance(self.options, Mapping | tuple | list):
                raise TypeError
            options = DatasetOptions(dict(self.options).items())
        except (TypeError, ValueError):
            raise SpaceError(f"options: expected names with values, got {self.options!r:.80}") from None
        object.__setattr__(self, "options", options)
        if not is_among(self.source, _OPTIONS):
            raise SpaceError(f"source: expected one of {quote(_OPTIONS)}, got {self.source!r:.80}")
        if not isinstance(self.name, str) or not self.name:
            raise SpaceError(
                f"name: expected the name of a space or the path of a file, got {self.name!r:.80}"
            )
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise SpaceError(
                f"limit: expected a whole number of rows, at least 1, or none, got {self.limit!r:.80}"
            )
        known = _OPTIONS[self.source]
        values = dict(self.options)
        whole = known if self.source != "file" else ()
        if (
            not values.keys() <= {*known, UNSCORED, KEPT}
            or set(map(type, values.values())) - {str}
            or not values.keys() >= set(whole)
        ):
            expected = "none"
            if known:
                expected = f"{'all' if whole else 'some'} of {quote(known)}, each with a string"
            raise SpaceError(f"options: expected {expected} for {self.source!r}, got {quote(values)}")
        need_one_of("ids", values.get("ids", ""), ("", "rows"))
        if self.source == "index" and place_of(self).address:
            raise SpaceError(
                f"{self.name!r:.80}: expected a file path, got an address; a space must be a local file, so"
                " copy the rows first: relscope adapt none SOURCE FILE.parquet"
            )

    def option(self, name: str) -> str:
        """The value of an option; "" if it is not set."""
        return dict(self.options).get(name, "")

    def load(self) -> LatentSpace:
        """The space that the spec names. Raises the errors of the function `load`."""
        return load(self)

    @property
    def dataset(self) -> DatasetSpec | None:
        """The dataset from which an encoding was made; None for a space that is no encoding."""
        if self.source == "encoding":
            return DatasetSpec.from_json(json_of(self.option("dataset")))
        return None

    @property
    def encoder(self) -> Encoder | None:
        """The encoder that made an encoding; None for a space that is no encoding."""
        if self.source == "encoding":
            return encoder_from_json(json_of(self.option("encoder")))
        return None

    @property
    def rows_of(self) -> SpaceSpec:
        """The spec of a space with the same rows in the same order. For a space that was renamed to row
        numbers, its base; otherwise the spec itself."""
        if self.source == "renamed" and self.option("key") == BY_ROW:
            return base_of(self)
        return self

    def to_json(self) -> dict[str, Any]:
        return records.to_json(self)

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> SpaceSpec:
        """The spec that a dict describes. Raises a SpaceError for unknown keys."""
        return records.from_json(cls, described, "space")


def encoding_spec(dataset: DatasetSpec, encoder: Encoder, output: str, key: str, name: str) -> SpaceSpec:
    """The spec of an encoding. It holds everything that is needed to compute the encoding again if the store
    lacks it."""
    made_of = (
        ("dataset", json.dumps(dataset.to_json(), sort_keys=True)),
        ("encoder", json.dumps(encoder.only(output).to_record(), sort_keys=True)),
    )
    return SpaceSpec("encoding", name, options=(*made_of, ("key", key), ("output", output)))


def stored_encoding_spec(summary: Summary) -> SpaceSpec | None:
    """The spec of an encoding in the store; None if a script made the encoding from its own dataset."""
    facts = summary.metadata
    if "dataset_spec" not in facts:
        return None
    dataset = DatasetSpec.from_json(facts["dataset_spec"])
    encoder = encoder_from_json(facts["encoder"])
    return encoding_spec(dataset, encoder, facts["output"], summary.key, facts["name"])


def renamed_spec(base: SpaceSpec, key: str, name: str) -> SpaceSpec:
    """The spec of a space whose rows have new ids, which `put_pairing` stored under `key`."""
    return SpaceSpec(
        "renamed", name, options=(("base", json.dumps(base.to_json(), sort_keys=True)), ("key", key))
    )


def numbered_spec(spec: SpaceSpec) -> SpaceSpec:
    """The spec of the same rows with row numbers as ids, so that two such spaces are paired by row order."""
    if spec.source == "file":
        return replace(spec, options=tuple((dict(with_unscored(spec, ()).options) | {"ids": "rows"}).items()))
    if spec.source == "sample":
        raise SpaceError(
            f"{spec.name!r:.80}: expected all rows to pair by row order, got a sample; write ids in the"
            " shards"
        )
    if spec.rows_of != spec:
        return spec
    return renamed_spec(spec, BY_ROW, f"{spec.name} · by row")


def space_name(spec: SpaceSpec) -> str:
    """A short name of the space: for a file, the last part of its path without the suffix; for an index, its
    collection."""
    if spec.source == "encoding":
        return spec.name
    if spec.source == "index":
        return spec.option("table") or Path(spec.name).stem
    name = spec.name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    suffix = None
    if spec.source == "file":
        suffix = suffix_of(Path(name))
    return name[: -len(suffix)] if suffix else name


def is_linked(spec: SpaceSpec, source: SpaceSpec, target: SpaceSpec) -> bool:
    """Whether a space is the source or the target after a link gave it new ids."""
    renamed = spec.source == "renamed" and spec.option("key") != BY_ROW
    return renamed and base_of(spec) in (source, target)


def base_of(spec: SpaceSpec) -> SpaceSpec:
    return SpaceSpec.from_json(json_of(spec.option("base"), "renamed space: expected its base"))


def json_of(text: str, expected: str = "encoding: expected a dataset and an encoder") -> Any:
    try:
        return records.parse(text, "")
    except SpaceError as error:
        raise SpaceError(f"{expected} as JSON, got {text!r:.80}") from error


def place_of(spec: SpaceSpec) -> StorePlace:
    return StorePlace(spec.option("kind"), spec.name, spec.option("table"))


def encode_again(spec: SpaceSpec, store: Store) -> None:
    """Compute the encoding that a spec names, if the store lacks it.

    Raises a SpaceError if the dataset or the encoder's files have changed.
    """
    if store.has(spec.option("key")):
        return
    dataset = load_dataset(spec.dataset, store)
    if encoding_key(dataset.digest, spec.encoder, spec.option("output")) != spec.option("key"):
        raise SpaceError(
            f"{spec.name!r}: its dataset or the files of its encoder have changed since it was encoded;"
            " encode the current data in Data, and choose that encoding"
        )
    encode(dataset, spec.encoder, store)
