"""The catalogue of spaces on this machine and on the network, and the small frozen specs that name a space."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from relcore import access, record
from relcore.plain_json import parse
from relcore.sources import gensim_data
from relcore.sources.dataset import DatasetSpec, Options
from relcore.sources.encoder import Encoder, encoder_from_json, encoder_to_json
from relcore.sources.encodings import load_encoding
from relcore.sources.files import FILE_OPTIONS, load_space
from relcore.sources.index_place import Place
from relcore.sources.index_rows import load_rows
from relcore.sources.places import dataset_place
from relcore.sources.readers import suffix_of
from relcore.sources.renamed import load_pairing, number_rows, rename
from relcore.sources.sampled import is_address, load_sample, need_sample_access
from relcore.sources.series import parts_of, vector_places
from relcore.sources.shapes import matrices_of, shape_of
from relcore.sources.tensors import safetensors_shape
from relcore.sources.words import BUNDLED, load_words
from relcore.spaces import LatentSpace, SpaceError, need_one_of, quote
from relcore.store import Store, Summary

Source = Literal["bundled", "file", "index", "gensim-data", "encoding", "renamed", "sample"]
_OPTIONS = {
    "bundled": (),
    "file": FILE_OPTIONS,
    "index": ("kind", "table"),
    "gensim-data": (),
    "encoding": ("dataset", "encoder", "key", "output"),
    "renamed": ("base", "key"),
    "sample": ("key", "rows", "of"),
}
_BY_ROW = "rows"  # where a renamed space has no pairing: its ids are row numbers
_MOST_FILES = 500
_DESCRIPTIONS = {
    "word2vec-novels": "Word2Vec skip-gram, 30 million words of novels, news and speeches",
    "fasttext-novels": "FastText skip-gram, the same corpus, trained apart",
}


@dataclass(frozen=True)
class SpaceSpec:
    """Which space, in a form that hashes, goes into a cache key, and goes to JSON and back.

    Attributes
    ----------
    source : "bundled", "file", "index", "gensim-data", "encoding", "renamed" or "sample"
    name : str
        The name, or the path of a file or an index. An address is refused: opening a session or a recipe asks no other host.
    limit : int, optional
        Only the first rows.
    options : tuple of (key, value)
        All strings. For files further arguments of `load_space`, ignore as a JSON list. For an index its kind in
        `relcore.names.INDEXES`, and the table or collection in it. For encodings what made them: dataset
        and encoder as JSON, output, and the key in the store; see `encoding_spec`. For a renamed space the spec of its base as
        JSON and the key of the pairing in the store, or "rows"; see `renamed_spec` and `numbered_spec`. For a sample of a
        folder of shards, whose path or address is the name, its key in the store, its rows and those of the folder.
    """

    source: str
    name: str
    limit: int | None = None
    options: Options = Options()

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", Options(self.options))
        if self.source not in _OPTIONS:
            raise SpaceError(f"source: expected one of {quote(_OPTIONS)}, got {self.source!r:.80}")
        if not isinstance(self.name, str) or not self.name:
            raise SpaceError(f"name: expected the name of a space or the path of a file, got {self.name!r:.80}")
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise SpaceError(f"limit: expected a whole number of rows, at least 1, or none, got {self.limit!r:.80}")
        known = _OPTIONS[self.source]
        if unfit := [option for option, value in self.options if option not in known or not isinstance(value, str)]:
            expected = f"some of {quote(known)}, each with a string" if known else "none"
            raise SpaceError(f"options: expected {expected} for {self.source!r}, got {quote(unfit)}")
        need_one_of("ids", self.option("ids"), ("", "rows"))
        whole = {"encoding": "an encoding", "renamed": "a renamed space", "index": "an index", "sample": "a sample"}.get(
            self.source
        )
        if whole and {option for option, _ in self.options} != set(known):
            raise SpaceError(f"options: expected all of {quote(known)} for {whole}, got {quote(dict(self.options))}")
        if self.source == "index" and _place(self).address:
            raise SpaceError(
                f"{self.name!r:.80}: expected a path, got an address, which a space must not have; copy the rows first: "
                "relscope adapt none SOURCE FILE.parquet"
            )

    def option(self, name: str) -> str:
        """The value of an option, "" where it is not set."""
        return dict(self.options).get(name, "")

    @property
    def dataset(self) -> DatasetSpec | None:
        """What an encoding was made of; None for a space that comes as vectors."""
        return DatasetSpec.from_json(_json(self.option("dataset"))) if self.source == "encoding" else None

    @property
    def encoder(self) -> Encoder | None:
        """What an encoding was made by; None for a space that comes as vectors."""
        return encoder_from_json(_json(self.option("encoder"))) if self.source == "encoding" else None

    @property
    def rows_of(self) -> SpaceSpec:
        """The space whose rows these are, in their order: of one under its row numbers what it was before, else itself."""
        return base_of(self) if self.source == "renamed" and self.option("key") == _BY_ROW else self

    def to_json(self) -> dict[str, Any]:
        return record.to_json(self)

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> SpaceSpec:
        """The spec of such a dict; keys that it does not know are an error."""
        return record.from_json(cls, described, "space")


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue; `n` and `dimension` are None where telling would mean reading the file."""

    name: str
    kind: str
    spec: SpaceSpec
    where: Literal["here", "needs the network"]
    size_bytes: int
    n: int | None
    dimension: int | None
    description: str


def encoding_spec(dataset: DatasetSpec, encoder: Encoder, output: str, key: str, name: str) -> SpaceSpec:
    """The spec of an encoding, with all that it takes to make it again where the store does not have it."""
    options = {
        "dataset": json.dumps(dataset.to_json(), sort_keys=True),
        "encoder": json.dumps(encoder_to_json(encoder.only(output)), sort_keys=True),
        "key": key,
        "output": output,
    }
    return SpaceSpec("encoding", name, options=tuple(options.items()))


def stored_encoding_spec(summary: Summary) -> SpaceSpec | None:
    """The spec of an encoding in the store; None where a script made it from a dataset of its own."""
    facts = summary.metadata
    if "dataset_spec" not in facts:
        return None
    dataset, encoder = DatasetSpec.from_json(facts["dataset_spec"]), encoder_from_json(facts["encoder"])
    return encoding_spec(dataset, encoder, facts["output"], summary.key, facts["name"])


def encoding_specs(store: Store, dataset: DatasetSpec, encoder: Encoder, keys: Mapping[str, str]) -> list[SpaceSpec]:
    """The specs of an encoder's outputs, given as output → key, as far as the store still has them."""
    found = {output: store.summary(key) for output, key in keys.items()}
    return [
        encoding_spec(dataset, encoder, output, keys[output], summary.metadata["name"])
        for output, summary in found.items()
        if summary is not None
    ]


def renamed_spec(base: SpaceSpec, key: str, name: str) -> SpaceSpec:
    """The spec of a space whose rows bear the ids that the pairing under `key` gives them (`renamed.put_pairing`)."""
    return SpaceSpec("renamed", name, options=(("base", json.dumps(base.to_json(), sort_keys=True)), ("key", key)))


def numbered_spec(spec: SpaceSpec) -> SpaceSpec:
    """The spec of the same rows with their row numbers as ids, so that two spaces pair by row order."""
    if spec.source == "file":
        return replace(spec, options=tuple((dict(spec.options) | {"ids": "rows"}).items()))
    if spec.source == "sample":
        raise SpaceError(f"{spec.name!r:.80}: expected all rows to pair by row order, got a sample; write ids in the shards")
    return spec if spec.rows_of != spec else renamed_spec(spec, _BY_ROW, f"{spec.name} · by row")


def base_of(spec: SpaceSpec) -> SpaceSpec:
    """What a renamed space was made of."""
    return SpaceSpec.from_json(_json(spec.option("base"), "renamed space: expected its base"))


def _json(text: str, expected: str = "encoding: expected a dataset and an encoder") -> Any:
    try:
        return parse(text, "")
    except SpaceError as error:
        raise SpaceError(f"{expected} as JSON, got {text!r:.80}") from error


def load(spec: SpaceSpec, store: Store | None = None) -> LatentSpace:
    """The space that the spec names; errors as in `need_access`, `load_words`, `load_space` and `load_encoding` (from `store`,
    else the environment's)."""
    need_access(spec, store)
    if spec.source == "encoding":
        return load_encoding(store or Store(), spec.option("key"))
    if spec.source == "renamed":
        store = store or Store()
        base, key = load(base_of(spec), store), spec.option("key")
        return number_rows(base, spec.name) if key == _BY_ROW else rename(base, load_pairing(store, key), spec.name)
    if spec.source == "sample":
        return load_sample(store or Store(), spec.name, spec.option("key"))
    if spec.source == "index":
        return load_rows(_place(spec), spec.limit)
    if spec.source == "file":
        told: dict[str, Any] = {"ignore": ignored_columns(spec)} if spec.option("ignore") else {}
        told |= {"metadata": access.allowed(spec.option("metadata"))} if spec.option("metadata") else {}
        return load_space(access.allowed(spec.name), limit=spec.limit, store=store, **dict(spec.options) | told)
    known = BUNDLED if spec.source == "bundled" else gensim_data.MODELS
    if spec.name not in known:
        raise SpaceError(f"{spec.source}: expected one of {quote(known)}, got {spec.name!r}")
    return load_words(spec.name, limit=spec.limit)


def _place(spec: SpaceSpec) -> Place:
    return Place(spec.option("kind"), spec.name, spec.option("table"))


def files_of(spec: SpaceSpec) -> tuple[str, ...]:
    """The paths that a spec of a file or a sample names: that of the vectors, and of their metadata."""
    on_disk = spec.source == "file" or (spec.source == "sample" and not is_address(spec.name))
    return tuple(filter(None, (spec.name, spec.option("metadata")))) if on_disk else ()


def ignored_columns(spec: SpaceSpec) -> tuple[str, ...]:
    """The columns of a table that a spec leaves out."""
    found = _json(spec.option("ignore") or "[]", "ignore: expected a list of columns")
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise SpaceError(f"ignore: expected a list of columns as JSON, got {spec.option('ignore')!r:.80}")
    return tuple(found)


def need_access(spec: SpaceSpec, store: Store | None = None) -> None:
    """Raise a SpaceError unless whoever asks may open the space; to be called before anything answers from a cache.

    A file must be open, see `access.allowed`. An encoding in the store of a shared app must be of this session's own making,
    or come from a dataset, through an encoder, that this session may read: naming a key in a session file is not enough.
    """
    if spec.source == "file":
        for path in files_of(spec):
            access.allowed(path)
    elif spec.source == "index":
        _place(spec).need_access()
    elif spec.source == "sample":
        need_sample_access(spec.name)
    elif spec.source == "renamed":
        need_access(base_of(spec), store)
    elif spec.source == "encoding" and not access.made(spec.option("key")):
        found = (store or Store()).summary(spec.option("key"))
        if found is not None and not _may_make(found):
            raise SpaceError(
                f"{spec.name!r:.80} is not open to this session: this app is shared, and the encoding was made of data that "
                "this session may not read; encode your own copy"
            )


def _may_make(summary: Summary) -> bool:
    """Whether whoever asks may read all that an entry of the store was made of."""
    try:
        spec = stored_encoding_spec(summary)
        if spec is None:
            return False
        dataset_place(spec.dataset)
        spec.encoder.content()
    except (SpaceError, KeyError):  # KeyError: an entry that is no encoding
        return False
    return True


def available(data_folder: str | Path | None = None) -> list[Entry]:
    """Bundled spaces, files under the data folder (else RELSCOPE_DATA), and gensim-data's models; never asks the network.

    Of files only names and headers are read, two folders deep, at most 500; a text or table that holds no vectors is left out.
    """
    folder = access.allowed(data_folder) if data_folder else access.data_folder()
    return [*_bundled(), *(_files(folder) if folder else ()), *_gensim_models()]


def _bundled() -> Iterator[Entry]:
    for name, path in BUNDLED.items():
        if path.is_file():
            n, d = safetensors_shape(path)
            yield Entry(name, "words", SpaceSpec("bundled", name), "here", path.stat().st_size, n, d, _DESCRIPTIONS[name])


def _gensim_models() -> Iterator[Entry]:
    for model in gensim_data.MODELS.values():
        where = "here" if gensim_data.downloaded(model.name) else "needs the network"
        spec = SpaceSpec("gensim-data", model.name)
        yield Entry(model.name, "words", spec, where, model.size_bytes, model.n, model.dimension, model.description)


def _files(folder: Path) -> Iterator[Entry]:
    for path in islice(vector_places(folder), _MOST_FILES):
        name = str(path.relative_to(folder))
        for matrix, shape in (matrices_of(path) if suffix_of(path) == ".h5ad" else {}).items():
            spec = SpaceSpec("file", str(path), options=(("matrix", matrix),))
            yield Entry(f"{name}#matrix={matrix}", "file", spec, "here", path.stat().st_size, *shape, f"{suffix_of(path)} file")
        shape = None if suffix_of(path) == ".h5ad" else shape_of(path) or _unchosen(path)
        if shape is not None:
            parts = parts_of(path) if path.is_dir() else [path]
            kind = "folder of a dataset" if path.is_dir() else f"{suffix_of(path)} file"
            size = sum(part.stat().st_size for part in parts)
            yield Entry(name, "file", SpaceSpec("file", str(path)), "here", size, *shape, kind)


def _unchosen(path: Path) -> tuple[None, None] | None:
    """What is known of a file with several matrices, none of which is read where none is chosen."""
    return (None, None) if len(matrices_of(path)) > 1 else None
