"""`Format`, the base class of the entries of `relcore.base.names.FORMATS`, and checks of ids, labels and
sizes.

The methods run in the confined process, which turns any error of a library into a SpaceError that names the
file.
"""

from __future__ import annotations

import datetime
import os
import re
import shlex
import uuid
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import FORMATS
from relcore.files.columns import NO_CHOICES, Choices, Columns

_EXACT = 2.0**53  # float64 can hold every whole number up to this
_TEXTS = (datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def checked_ids(values: Sequence[Any], where: str) -> list[str]:
    """The ids as texts. None of them is empty.

    Raises
    ------
    SpaceError
        An id is empty, a fraction, a boolean, or not Unicode text. The message tells its row, counted from 1.
    """
    ids = _texts_of(values, where, "an id")
    # str.strip without arguments also strips other blanks, but is three times as fast, so it comes first.
    if not all(map(str.strip, ids)) and not all(item.strip(" \t\r\n") for item in ids):
        row = next(row for row, item in enumerate(ids) if not item.strip(" \t\r\n"))
        raise SpaceError(
            f"{where}, row {row + 1}: expected an id, got an empty one; fill it, or choose other ids"
        )
    return ids


def checked_labels(values: Sequence[Any], where: str) -> list[str]:
    """The labels as texts. A missing label or NaN becomes "" (no class). 3 and 3.0 are the same class."""
    return _texts_of(values, where, "a label")


def _texts_of(values: Sequence[Any], where: str, what: str) -> list[str]:
    texts = _plain(values)
    if set(map(type, texts)) != {str}:
        texts = [_text(value, where, row, what) for row, value in enumerate(texts)]
    try:
        "\n".join(texts).encode()
    except UnicodeEncodeError:
        row = next(i for i, text in enumerate(texts) if re.search("[\ud800-\udfff]", text))
        raise SpaceError(
            f"{where}, row {row + 1}: expected Unicode text, got {_shown(texts[row])} with half a character;"
            " save it as UTF-8"
        ) from None
    return texts


def _plain(values: Sequence[Any]) -> list[Any]:
    if isinstance(values, list):
        return values
    if isinstance(values, np.ndarray):
        return values.tolist()
    return list(values)


def _text(value: Any, where: str, row: int, what: str) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value
    if value is None or value != value:  # no value, or NaN
        return ""
    if isinstance(value, bytes | bytearray):
        with suppress(UnicodeDecodeError):
            return value.decode()
    elif isinstance(value, bool):
        if what == "a label":
            return str(value)
    elif isinstance(value, int | float | Decimal):
        if isinstance(value, int) or (value == value // 1 and abs(value) <= _EXACT):
            return str(int(value))
        if what == "a label" and abs(value) != float("inf"):
            return str(value)
    elif isinstance(value, _TEXTS):
        return str(value)
    expected = "text or a whole number"
    if what == "a label":
        expected = "text"
    raise SpaceError(
        f"{where}, row {row + 1}: expected {what} as {expected}, got {_shown(value)}; save the column as text"
    )


def _shown(value: Any) -> str:
    if value is None:
        return "an empty cell"
    if isinstance(value, str):
        return quote([value])
    return f"{value!r:.40}"


Shape = tuple[int | None, int | None]
Blocks = Generator[np.ndarray, None, dict[str, Any]]
BLOCK_BYTES = 1 << 23
MAPPED = ("float16", "float32", "float64", "bfloat16")  # types of vectors that can stay on disk

# Imported for Arrow's formats; pandas, too, because Arrow imports it with the first array.
ARROW = ("pyarrow.parquet", "pyarrow.csv", "pyarrow.json", "pyarrow.compute", "pandas", "encodings.utf_8_sig")
# Names of the token embeddings in BERT, Llama, GPT-2, T5, ModernBERT, Mistral and sentence-transformers'
# word2vec.
OF_TOKENS = re.compile(
    r"(.*\.)?(word_embeddings|embed_tokens|wte|shared|tok_embeddings|embed_in|word_embedding|emb_layer)\.weight"
)
_FREE_BYTES = 1 << 28  # bytes that any file may unpack to, whatever the ratio
_MOST_TIMES = 500  # maximum ratio of compression: vectors hardly compress, a repeated byte a thousandfold
_ROW_BYTES = 128  # bytes of memory per id, in the list and in the index


@dataclass(frozen=True)
class Request:
    """Which rows, columns and matrix of a file to read, and how much memory they may take."""

    limit: int | None = None
    max_bytes: int = 8 << 30
    matrix: str | None = None
    choices: Choices = NO_CHOICES

    def rows(self, path: Path, n: int, d: int) -> int:
        """The number of rows to read from a file of n rows. Raises a SpaceError if there are none, or if they
        need too much memory."""
        if n < 1:
            raise SpaceError(
                f"{path.name}: expected at least one row of numbers, got none; save the vectors again"
            )
        if self.limit is not None:
            n = min(n, self.limit)
        check_size(path, n, d, most_unpacked(path, self.max_bytes))
        return n


@dataclass(frozen=True)
class Description:
    """The matrices of a file, their shapes (n, d) if the header tells them, and the name of the default
    matrix.

    If a file has only one matrix, its name may be "".
    """

    matrices: dict[str, Shape] = field(default_factory=dict)
    usual: str | None = None

    @property
    def shape(self) -> Shape | None:
        if self.usual is None:
            return None
        return self.matrices[self.usual]

    @property
    def choosable(self) -> dict[str, Shape]:
        """The names that the option `matrix` accepts, each with the shape of its matrix."""
        return {name: shape for name, shape in self.matrices.items() if name}


@dataclass(frozen=True)
class Regions:
    """Where the vectors are in a large file: consecutive parts of one matrix, each as (first byte, dtype,
    shape).

    `region` names the matrix, and `columns` are those that `Format.blocks` returns. Vectors that must be
    decoded have no parts; `decoded` is their shape (n, d).
    """

    parts: list[tuple[int, str, tuple[int, int]]]
    region: tuple[str, ...] = ()
    columns: dict[str, Any] = field(default_factory=dict)
    decoded: tuple[int, int] | None = None


class Format(ABC):
    """The reader of one file format. The `libraries` are imported before the process is confined."""

    libraries: tuple[str, ...] = ()
    several_matrices: ClassVar[bool] = False
    has_columns: ClassVar[bool] = False
    has_regions: ClassVar[bool] = False

    @abstractmethod
    def describe(self, path: Path) -> Description:
        """The matrices of a file, read from its header alone."""

    @abstractmethod
    def blocks(self, path: Path, request: Request) -> Blocks:
        """Yield blocks of rows (m, d) as float32, and return their columns: "ids", "labels", "counts" or
        "tokens". "tokens" is the name of a tensor of token embeddings; the ids of its rows are the tokens.
        """

    def columns(self, path: Path, choices: Choices) -> Columns:
        raise NotImplementedError

    def regions(self, path: Path, request: Request) -> Regions | None:
        """The positions of the vectors in a large file. None if the vectors must be read into memory."""
        return None


def suffix_of(path: Path) -> str | None:
    """The known suffix of a file, or None. ``".vec.gz"`` has precedence over ``".gz"``."""
    return max(filter(path.name.lower().endswith, FORMATS), key=len, default=None)


def format_of(path: Path) -> Format:
    """The format of a file, by its suffix. Raises a SpaceError for an unknown suffix."""
    suffix = suffix_of(path)
    if suffix is None:
        _refuse_pickle(path)
        raise SpaceError(
            f"{path.name}: expected a file that ends in {', '.join(FORMATS)}; got"
            f" {path.suffix or 'no suffix'!r}, convert or rename it"
        )
    kind = FORMATS[suffix].load()
    reader: Format = kind()
    if FORMATS[suffix].plugin:  # like a library, a plugin is imported before the process is confined
        reader.libraries = (kind.__module__, *kind.libraries)
    return reader


def _refuse_pickle(path: Path) -> None:
    """Raise a SpaceError if the suffix is one of pickles. It says how to save the vectors in another
    format."""
    name = path.name.lower()
    if not name.endswith((".pkl", ".pickle", ".joblib", ".kv")):
        return
    remedy = '.npz: numpy.savez("vectors.npz", vectors=…, ids=…)'
    if name.endswith(".kv"):
        remedy = (
            "word2vec's .bin, where gensim is installed, by one line: python -c \"import sys; from"
            " gensim.models import KeyedVectors; KeyedVectors.load(sys.argv[1])"
            f'.save_word2vec_format(sys.argv[2], binary=True)" {shlex.quote(path.name)}'
            f" {shlex.quote(f'{path.stem}.bin')}"
        )
    raise SpaceError(
        f"{path.name}: expected vectors, got a pickle; opening a pickle can run code, so Relscope never"
        f" does; where you trust the file, save it once as {remedy}"
    )


def float32(values: np.ndarray, what: str) -> np.ndarray:
    """The rows as float32. Values that are too large become infinite."""
    if values.dtype.kind not in "fiu":
        raise SpaceError(
            f"{what}: expected real numbers, got {values.dtype!s:.40}; save the vectors as float32"
        )
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32)


def in_blocks(n: int, row_bytes: int) -> Generator[slice, None, None]:
    """Slices that cut n rows into blocks of some MB each."""
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def the_matrix(path: Path, shapes: Mapping[str, Shape], chosen: str | None) -> str:
    """The name of the matrix to read: the chosen one or, if none is chosen, the first of these that exists:
    `vectors`, the only tensor of token embeddings, the only matrix."""
    matrices = {name: shape for name, shape in shapes.items() if len(shape) == 2}
    tokens = [name for name in matrices if OF_TOKENS.fullmatch(name)]
    main = "vectors" if chosen is None else chosen
    if main in matrices:
        usual = [main]
    elif chosen is not None:
        usual = []
    else:
        usual = tokens or list(matrices)
    if len(usual) == 1:
        return usual[0]
    if chosen is None:
        expected = "one matrix, or one named 'vectors'"
    else:
        expected = f"a matrix named {chosen!r:.80}"
    got = quote([f"{item:.20} {shape}" for item, shape in list(shapes.items())[:8]]) or "nothing"
    raise SpaceError(
        f"{path.name}: expected {expected}, got {got}; choose one with the option matrix, as FILE#matrix=NAME"
    )


def describe_matrices(path: Path, shapes: Mapping[str, Shape]) -> Description:
    matrices = {name: shape for name, shape in shapes.items() if len(shape) == 2 and 0 not in shape}
    with suppress(SpaceError):
        return Description(matrices, the_matrix(path, matrices, None))
    return Description(matrices)


def most_unpacked(path: Path, max_bytes: int) -> int:
    if path.is_file():
        files = [path]
    else:
        files = path.rglob("*")
    return min(max_bytes, max(_FREE_BYTES, _MOST_TIMES * sum(file.stat().st_size for file in files)))


_FORMATS_MOST = 8 << 30
_SHARE = 0.6  # share of the free memory for vectors; pages, jobs and results need the rest
_GROUP = Path("/sys/fs/cgroup")


def usable_bytes() -> int:
    """The bytes of memory that vectors may take: 60 % of the free memory of this machine or its container,
    but at most 8 GiB."""
    free = [_FORMATS_MOST / _SHARE]
    # Each of these sources is missing on some systems.
    with suppress(OSError, ValueError, AttributeError):
        free.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError):
        available = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
        if available:
            free.append(int(available[1]) * 1024)
    with suppress(OSError, ValueError):
        limit = int((_GROUP / "memory.max").read_text(encoding="ascii"))  # "max" if there is no limit
        # Only anonymous memory is subtracted: cached pages of files count as free.
        held = re.search(r"^anon (\d+)$", (_GROUP / "memory.stat").read_text(encoding="ascii"), re.MULTILINE)
        if held:
            limit -= int(held[1])
        free.append(limit)
    return int(_SHARE * max(0, min(free)))


def check_size(path: Path, n: int, d: int, max_bytes: int) -> None:
    """Raise a SpaceError if vectors (n, d) have no columns, or if they need more than `max_bytes`. Each row
    counts as d float32 and one id."""
    if d < 1:
        raise SpaceError(
            f"{path.name}: expected at least one column of numbers, got shape ({n:,}, {d}); save the vectors"
            " again"
        )
    values = 4 * n * d
    ids = _ROW_BYTES * n
    if values + ids > max_bytes:
        if values > max_bytes:
            size = readable(values)
        else:
            size = f"{readable(values)} and their ids {readable(ids)}"
        raise SpaceError(
            f"{path.name}: {n:,} × {d:,} values take {size}, more than max_bytes = {readable(max_bytes)}"
            "; read fewer rows (limit), or allow more memory (max_bytes) if you trust the file"
        )


def readable(n_bytes: int) -> str:
    """A size in words: ``'1.7 GB'``."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.3g} TB"


def describe_all(path: Path, paths: Sequence[str]) -> Generator[Description, None, None]:
    """Yield the description of each file. It is empty for a file that is not a space."""
    for item in map(Path, paths):
        try:
            yield format_of(item).describe(item)
        except Exception:  # libraries may raise any exception
            yield Description()
