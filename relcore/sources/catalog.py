"""What can be loaded here and now, what needs the network, and the small frozen specs that name a space."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from relcore.sources import gensim_data
from relcore.sources.arrays import npy_shape, safetensors_shape
from relcore.sources.files import load_space, suffix_of
from relcore.sources.keyedvectors import word2vec_shape
from relcore.sources.words import BUNDLED, load_words
from relcore.spaces import LatentSpace, SpaceError, quote

Source = Literal["bundled", "file", "gensim-data"]
_SOURCES = ("bundled", "file", "gensim-data")
_OPTIONS = ("id_column", "label_column", "invalid", "duplicates")
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
    source : "bundled", "file" or "gensim-data"
    name : str
        The name, or the path of a file.
    limit : int, optional
        Only the first rows.
    options : tuple of (key, value)
        Further arguments of `load_space`, for files: ``(("invalid", "drop"),)``. Their names are id_column, label_column,
        invalid and duplicates; their values are strings.
    """

    source: Source
    name: str
    limit: int | None = None
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.source not in _SOURCES:
            raise SpaceError(f"source: expected one of {quote(_SOURCES)}, got {self.source!r}")
        if not isinstance(self.name, str) or not self.name:
            raise SpaceError(f"name: expected the name of a space or the path of a file, got {self.name!r:.80}")
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise SpaceError(f"limit: expected a whole number of rows, at least 1, or none, got {self.limit!r:.80}")
        if unfit := [option for option, value in self.options if option not in _OPTIONS or not isinstance(value, str)]:
            raise SpaceError(f"options: expected some of {quote(_OPTIONS)}, each with a string, got {quote(unfit)}")
        if self.options and self.source != "file":
            raise SpaceError(
                f"options: expected none for {self.source!r}, got {quote([key for key, _ in self.options])}; they are for files"
            )

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, "name": self.name, "limit": self.limit, "options": dict(self.options)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> SpaceSpec:
        """The spec of such a dict; keys that it does not know are an error."""
        unknown = set(record) - {"source", "name", "limit", "options"}
        if unknown or not {"source", "name"} <= set(record):
            raise SpaceError(f"expected a space as 'source', 'name', 'limit', 'options', got {quote(sorted(record))}")
        options = record.get("options") or {}
        if not isinstance(options, Mapping):
            raise SpaceError(f"options: expected names with their values, got {options!r:.80}")
        options = tuple(sorted(options.items()))
        return cls(record["source"], record["name"], record.get("limit"), options)


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


def load(spec: SpaceSpec) -> LatentSpace:
    """The space that the spec names; errors as in `load_words` and `load_space`."""
    if spec.source == "file":
        return load_space(spec.name, limit=spec.limit, **dict(spec.options))
    known = BUNDLED if spec.source == "bundled" else gensim_data.MODELS
    if spec.name not in known:
        raise SpaceError(f"{spec.source}: expected one of {quote(known)}, got {spec.name!r}")
    return load_words(spec.name, limit=spec.limit)


def available(data_folder: str | Path | None = None) -> list[Entry]:
    """Bundled spaces, files under the data folder (else RELSCOPE_DATA), and gensim-data's models; never asks the network.

    Of files only names and headers are read, two folders deep, at most 500; a text or table that holds no vectors is left out.
    """
    data_folder = data_folder or os.environ.get("RELSCOPE_DATA")
    return [*_bundled(), *(_files(Path(data_folder).expanduser()) if data_folder else ()), *_gensim_models()]


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
    found = (
        path for pattern in ("*", "*/*", "*/*/*") for path in sorted(folder.glob(pattern)) if suffix_of(path) and path.is_file()
    )
    for path in islice(found, _MOST_FILES):
        shape = _shape(path)
        if shape is not None:
            name = str(path.relative_to(folder))
            yield Entry(
                name, "file", SpaceSpec("file", str(path)), "here", path.stat().st_size, *shape, f"{suffix_of(path)} file"
            )


def _shape(path: Path) -> tuple[int | None, int | None] | None:
    """(n, d) as far as the header tells it; None for a file that is no space."""
    try:
        match suffix_of(path):
            case ".npy":
                shape = npy_shape(path)
            case ".safetensors":
                shape = safetensors_shape(path)
            case ".bin" | ".bin.gz" | ".gz":
                shape = word2vec_shape(path)
            case ".vec" | ".vec.gz" | ".txt" | ".txt.gz":
                shape = word2vec_shape(path) or (_glove_shape(path) if path.suffix != ".gz" else None)
            case ".csv" | ".tsv":
                return (None, None) if _holds_numbers(path) else None
            case ".parquet":
                return _parquet_shape(path)
            case _:
                return None, None
    except (SpaceError, OSError):
        return None
    return shape if shape is not None and len(shape) == 2 else None


def _glove_shape(path: Path) -> tuple[None, int] | None:
    with path.open(encoding="utf-8", errors="replace") as stream:
        cells = stream.readline(1 << 20).split()
    return (None, len(cells) - 1) if len(cells) > 2 and all(map(_is_number, cells[1:])) else None


def _holds_numbers(path: Path) -> bool:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8", errors="replace", newline="") as stream:
        rows = list(islice(csv.reader(stream, delimiter=delimiter), 2))
    return len(rows) == 2 and sum(map(_is_number, rows[1])) >= 2


def _parquet_shape(path: Path) -> tuple[int, int | None] | None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(path) as file:
            floats = sum(pa.types.is_floating(field.type) for field in file.schema_arrow)
            lists = sum(
                isinstance(field.type, pa.ListType | pa.FixedSizeListType | pa.LargeListType)
                and pa.types.is_floating(field.type.value_type)
                for field in file.schema_arrow
            )
            n = file.metadata.num_rows
    except pa.ArrowException:
        return None
    if lists == 1:
        return n, None
    return (n, floats) if floats >= 2 and not lists else None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
