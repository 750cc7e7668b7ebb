"""Formats of vector files: one class each, listed in `relcore.base.names.FORMATS` by the suffix of its files.

The functions at the end are what runs in the confined process, see `relcore.files.confined`, which turns
whatever a library raises into one error that names the file and the format.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import FORMATS
from relcore.files.columns import NO_CHOICES, Choices, Columns
from relcore.files.rows import check_size

Shape = tuple[int | None, int | None]
Blocks = Generator[np.ndarray, None, dict[str, Any]]
BLOCK_BYTES = 1 << 23
# What Arrow's tables need; Arrow itself imports pandas with the first array.
ARROW = ("pyarrow.parquet", "pyarrow.csv", "pyarrow.compute", "pandas", "encodings.utf_8_sig")
# BERT, Llama and most others, GPT-2, T5, ModernBERT, Mistral's own, word2vec-like models of
# sentence-transformers
OF_TOKENS = re.compile(
    r"(.*\.)?(word_embeddings|embed_tokens|wte|shared|tok_embeddings|embed_in|word_embedding|emb_layer)\.weight"
)
_FREE_BYTES = 1 << 28  # what any file may unpack to
_MOST_TIMES = 500  # vectors hardly pack at all; one byte repeated unpacks to a thousand
_PICKLES = (".pkl", ".pickle", ".joblib", ".kv")
_NO_PICKLES = (
    "opening a pickle can run code, so Relscope never does; where you trust the file, save it once in another"
    ' form: gensim.models.KeyedVectors.load(path).save_word2vec_format("vectors.bin", binary=True), or'
    ' numpy.savez("vectors.npz", vectors=…, ids=…)'
)


@dataclass(frozen=True)
class Request:
    """What is to be read of a file: at most `limit` rows, no more than `max_bytes`, this matrix, these
    columns.
    """

    limit: int | None = None
    max_bytes: int = 8 << 30
    matrix: str | None = None
    choices: Choices = NO_CHOICES

    def rows(self, path: Path, n: int, d: int) -> int:
        """How many of the n rows are read, once it is known that there are some, and that they fit."""
        if n < 1:
            raise SpaceError(
                f"{path.name}: expected at least one row of numbers, got none; save the vectors again"
            )
        n = n if self.limit is None else min(n, self.limit)
        check_size(path, n, d, min(self.max_bytes, max(_FREE_BYTES, _MOST_TIMES * path.stat().st_size)))
        return n


@dataclass(frozen=True)
class Description:
    """The matrices of a file, (n, d) as far as its header tells them, and which is read where none is chosen.

    A file of one matrix calls it "".
    """

    matrices: dict[str, Shape] = field(default_factory=dict)
    usual: str | None = None

    @property
    def shape(self) -> Shape | None:
        return None if self.usual is None else self.matrices[self.usual]


@dataclass(frozen=True)
class Regions:
    """Where in a file its vectors lie as they are: (byte, type, (n, d)) of each part, in order; and columns.

    Without parts, rows that are worth keeping once they are decoded: their columns by name, and their shape.
    """

    parts: list[tuple[int, str, tuple[int, int]]]
    region: tuple[str, ...] = ()
    columns: dict[str, Any] = field(default_factory=dict)
    decoded: tuple[int, int] | None = None


class Format(ABC):
    """How files of one format are read. Nothing needs a check that a library makes.

    Attributes
    ----------
    libraries : tuple of str
        What is imported before the first file is there.
    """

    libraries: ClassVar[tuple[str, ...]] = ()
    several_matrices: ClassVar[bool] = False
    has_columns: ClassVar[bool] = False
    has_regions: ClassVar[bool] = False

    @abstractmethod
    def describe(self, path: Path) -> Description:
        """From the header alone."""

    @abstractmethod
    def blocks(self, path: Path, request: Request) -> Blocks:
        """Yield the rows (m, d) as float32, and return the columns that the file has for them: "ids",
        "labels", "counts", or "tokens", the tensor whose tokens are the ids.
        """

    def columns(self, path: Path, choices: Choices) -> Columns:
        """The role of each column of a table."""
        raise NotImplementedError

    def regions(self, path: Path, request: Request) -> Regions | None:
        """Where the vectors lie, for a map of a large file; None where they have to be read."""
        return None


def suffix_of(path: Path) -> str | None:
    """The known suffix of a file, ``".vec.gz"`` before ``".gz"``, or None."""
    endings = sorted((suffix for suffix in FORMATS if path.name.lower().endswith(suffix)), key=len)
    return endings[-1] if endings else None


def known_suffix(path: Path) -> str:
    """`suffix_of` a file that has one.

    Raises
    ------
    SpaceError
        No format of this suffix; for a pickle, how to save it in another form.
    """
    suffix = suffix_of(path)
    if suffix is None and path.name.lower().endswith(_PICKLES):
        raise SpaceError(f"{path.name}: expected vectors, got a pickle; {_NO_PICKLES}")
    if suffix is None:
        raise SpaceError(
            f"{path.name}: expected a file that ends in {', '.join(FORMATS)}; got"
            f" {path.suffix or 'no suffix'!r}, convert or rename it"
        )
    return suffix


def format_of(path: Path) -> Format:
    """The format of a file; errors as in `known_suffix`."""
    return FORMATS[known_suffix(path)].load()()


def float32(values: np.ndarray, what: str) -> np.ndarray:
    """Rows as float32; too large ones become infinite, which is an error of the space."""
    if values.dtype.kind not in "fiu":
        raise SpaceError(
            f"{what}: expected real numbers, got {values.dtype!s:.40}; save the vectors as float32"
        )
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32)


def in_blocks(n: int, row_bytes: int) -> Generator[slice, None, None]:
    """Slices of n rows, some MB each."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def token_matrix(names: Iterable[str]) -> str | None:
    """The tensor with a row for each token, by the names that models give it; None where there is none or
    several.
    """
    known = [name for name in names if OF_TOKENS.fullmatch(name)]
    return known[0] if len(known) == 1 else None


def the_matrix(path: Path, shapes: Mapping[str, Shape], chosen: str | None, *usual: str | None) -> str:
    """The chosen matrix, else `vectors`, a model's token embeddings, the usual one, or the only one."""
    matrices = {name: shape for name, shape in shapes.items() if len(shape) == 2}
    if chosen is not None and chosen in matrices:
        return chosen
    name = next((one for one in ("vectors", token_matrix(matrices), *usual) if one in matrices), None)
    if chosen is None and (name is not None or len(matrices) == 1):
        return name if name is not None else next(iter(matrices))
    expected = "one matrix, or one named 'vectors'" if chosen is None else f"a matrix named {chosen!r:.80}"
    got = quote([f"{one:.20} {shape}" for one, shape in list(shapes.items())[:8]]) or "nothing"
    raise SpaceError(
        f"{path.name}: expected {expected}, got {got}; choose one with the option matrix, as"
        " FILE#matrix=NAME, or rename the one meant"
    )


def usual_matrix(choose: Callable[[], str]) -> str | None:
    """What `choose` chooses; None where it cannot."""
    try:
        return choose()
    except SpaceError:
        return None


def describe(path: Path) -> Description:
    return format_of(path).describe(path)


def describe_all(path: Path, paths: Sequence[str]) -> Generator[Description, None, None]:
    """The description of each file, an empty one for what is no space."""
    for one in paths:
        try:
            yield describe(Path(one))
        except Exception:  # whatever a library raises on it
            yield Description()


def blocks(path: Path, request: Mapping[str, Any]) -> Blocks:
    return (yield from format_of(path).blocks(path, msgspec.convert(request, Request)))


def regions(path: Path, request: Mapping[str, Any]) -> Regions | None:
    return format_of(path).regions(path, msgspec.convert(request, Request))


def columns(path: Path, choices: Mapping[str, Any]) -> Columns:
    return format_of(path).columns(path, msgspec.convert(choices, Choices))
