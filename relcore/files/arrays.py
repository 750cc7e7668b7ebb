"""Array files: .npy and .npz. Nothing is unpickled, and no size is believed before it is checked."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.records import read_file
from relcore.base.text import read_lines, visible
from relcore.files.on_disk import OnDisk
from relcore.files.rows import Rows, check_size, check_width, readable, rows_to_read
from relcore.spaces.rows import MappedRows

# Embedding matrices in the weights of a Hugging Face model: which tensor, the tokens of its rows, and numbers
# as bfloat16.

# BERT, Llama and most others, GPT-2, T5, ModernBERT, Mistral's own, word2vec-like models of
# sentence-transformers
_OF_TOKENS = re.compile(
    r"(.*\.)?(word_embeddings|embed_tokens|wte|shared|tok_embeddings|embed_in|word_embedding|emb_layer)\.weight"
)


def token_matrix(names: Iterable[str]) -> str | None:
    """The tensor with a row for each token, by the names that models give it; None where there is none or
    several.
    """
    found = [name for name in names if _OF_TOKENS.fullmatch(name)]
    return found[0] if len(found) == 1 else None


def token_ids(path: Path, tensor: str, n: int) -> list[str] | None:
    """The tokens of the n rows of this tensor, from tokenizer.json, vocab.json or vocab.txt beside the file.

    Rows without a token, which models add to round a size, are called "[row 30522]". None where the tensor is
    no matrix of tokens, or no vocabulary is there.

    Raises
    ------
    SpaceError
        A vocabulary that cannot be read, or of another model: it has more tokens than the matrix has rows.
    """
    if not _OF_TOKENS.fullmatch(tensor):
        return None
    for name, read in (
        ("tokenizer.json", _of_tokenizer),
        ("vocab.json", _of_object),
        ("vocab.txt", _of_lines),
    ):
        beside = path.with_name(name)
        if beside.is_file() and access.beside(path, beside):
            return _in_order(read(beside), beside, path, n)
    return None


def bfloat16_rows(path: Path, tensor: str, start: int, stop: int, d: int) -> np.ndarray:
    """Rows start … stop − 1 of a bfloat16 tensor (n, d) as float32; `safetensors` has checked the header."""
    with path.open("rb") as stream:
        stream.seek(tensor_begin(stream, tensor) + 2 * start * d)
        halves = np.frombuffer(stream.read(2 * (stop - start) * d), "<u2")
    return (halves.astype(np.uint32) << 16).view(np.float32).reshape(-1, d)


def tensor_begin(stream: BinaryIO, tensor: str) -> int:
    """The byte of an open .safetensors at which a tensor begins; `safetensors` has checked the header."""
    length = int.from_bytes(stream.read(8), "little")
    return 8 + length + json.loads(stream.read(length))[tensor]["data_offsets"][0]


def _of_tokenizer(path: Path) -> dict[int, str]:
    found = read_file(path, "a tokenizer")
    try:
        words = found["model"]["vocab"]
        tokens = (
            _numbered(words, path) if isinstance(words, dict) else dict(enumerate(one[0] for one in words))
        )
        return tokens | {one["id"]: one["content"] for one in found.get("added_tokens") or ()}
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise SpaceError(
            f"{path.name}: expected the vocabulary of a tokenizer, got another file; copy it again"
        ) from error


def _of_object(path: Path) -> dict[int, str]:
    return _numbered(read_file(path, "a vocabulary"), path)


def _of_lines(path: Path) -> dict[int, str]:
    return dict(enumerate(read_lines(path, "one token per line")))


def _numbered(words: Any, path: Path) -> dict[int, str]:
    if not isinstance(words, dict):
        raise SpaceError(f"{path.name}: expected tokens with their numbers, got another file; copy it again")
    return {number: token for token, number in words.items()}


def _in_order(tokens: dict[int, str], beside: Path, path: Path, n: int) -> list[str]:
    if not all(type(number) is int and isinstance(token, str) for number, token in tokens.items()):
        raise SpaceError(
            f"{beside.name}: expected tokens with their whole numbers, got others; copy it again"
        )
    if tokens and (min(tokens) < 0 or max(tokens) >= n):
        raise SpaceError(
            f"{beside.name}: expected at most {n:,} tokens, one per row of {path.name}, got number"
            f" {max(tokens):,}; it belongs to another model: remove it, or copy the right one there"
        )
    named = (tokens.get(row, "") for row in range(n))
    return [token if token.strip(" \t\r\n") else f"[row {row}]" for row, token in enumerate(named)]


_BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)
_BROKEN_HEADER = (ValueError, SyntaxError, TypeError, TokenError, RecursionError, MemoryError, OverflowError)
_TEXTS = ("ids", "labels", "counts")
_LONGEST_HEADER = 10_000  # NumPy itself parses no longer one
_LONGEST_TEXT = 1 << 16
_MOST_ARRAYS = 1000
_BLOCK = 1 << 24
_CHOOSE = "choose one with the option matrix, as FILE#matrix=NAME, or rename the one meant"
_READERS = {1: (2, np.lib.format.read_array_header_1_0), 2: (4, np.lib.format.read_array_header_2_0)}


def read_npy(path: Path, *, limit: int | None = None, max_bytes: int, on_disk: OnDisk | None = None) -> Rows:
    """The matrix of a .npy file; with a limit, only its first rows are read from a file in C order.

    With `on_disk` it is mapped, where it is one of float16, float32 or float64 in C order.
    """
    with path.open("rb") as stream:
        size = path.stat().st_size
        mapped = None if on_disk is None else _mapped(stream, size, path, limit, on_disk)
        return Rows(_matrix(stream, size, path, path.name, limit, max_bytes) if mapped is None else mapped)


def npy_shape(path: Path) -> tuple[int, ...]:
    """The shape that a .npy file promises, from its header alone."""
    with path.open("rb") as stream:
        return _header(stream, path.name)[0]


def read_npz(path: Path, *, limit: int | None = None, max_bytes: int, matrix: str | None = None) -> Rows:
    """Array `matrix`, else `vectors`, else the only matrix, and, where present, `ids`, `labels` and `counts`
    of a .npz file.

    A zip can promise little and unpack to terabytes: sizes in its directory and in the arrays' headers must
    agree with each other and with `max_bytes` before anything beyond a header is unpacked. Members that are
    no arrays are left alone.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                archive.open(
                    member
                ).close()  # reveals a name that is damaged, and without which labels or counts would be lost
            sizes = {
                member.filename.removesuffix(".npy"): member.file_size
                for member in archive.infolist()
                if member.filename.endswith(".npy")
            }

            def header(name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
                with archive.open(f"{name}.npy") as stream:
                    return _header(stream, f"{path.name}, array {name!r:.60}")

            main = the_matrix(path, sizes, lambda name: header(name)[0], matrix)
            n = header(main)[0][0]
            headers = {name: header(name) for name in _TEXTS if name in sizes}
            for name, (shape, _, dtype) in headers.items():
                check_texts(path, name, math.prod(shape), n, dtype.itemsize)
                if dtype.kind not in "USbiuf":
                    expected = f"{name} as strings or integers"
                    raise SpaceError(
                        f"{path.name}: expected {expected}, got {dtype!s:.40}; save them with dtype=str"
                    )

            def opened(name: str, read: Callable[..., np.ndarray]) -> np.ndarray:
                with archive.open(f"{name}.npy") as stream:
                    return read(
                        stream, sizes[name], path, f"{path.name}, array {name!r:.60}", limit, max_bytes
                    )

            vectors = opened(main, _matrix)
            return Rows(vectors, **{name: opened(name, _list) for name in headers})
    except SpaceError:
        raise
    except (*_BROKEN_ZIP, KeyError) as error:
        raise SpaceError(
            f"{path.name}: expected an archive written by numpy.savez, got one that cannot be read"
            f" ({visible(error, 200)}); write or copy it again"
        ) from error


def npz_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each array in a .npz file, from their headers; {} where there are very many or one is
    damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one.filename for one in archive.infolist() if one.filename.endswith(".npy")]
            few = members if len(members) <= _MOST_ARRAYS else []
            return {name.removesuffix(".npy"): _header_of(archive, name)[0] for name in few}
    except (*_BROKEN_ZIP, KeyError):  # a SpaceError is a ValueError
        return {}


def _header_of(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    with archive.open(name) as stream:
        return _header(stream, name)


def _header(stream: BinaryIO, what: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, Fortran order and dtype; how long the header says that it is, is checked before it is read."""
    start = stream.read(8)
    version = start[6] if len(start) == 8 and start[:6] == b"\x93NUMPY" and start[7] == 0 else 0
    if version not in _READERS:
        raise SpaceError(
            f"{what}: expected an array written by numpy.save, got another file; write it with numpy.save"
        )
    width, read = _READERS[version]
    length = stream.read(width)
    n_bytes = int.from_bytes(length, "little")
    if n_bytes > _LONGEST_HEADER:
        raise SpaceError(
            f"{what}: expected a header of at most {_LONGEST_HEADER:,} bytes, got one of {readable(n_bytes)};"
            " it is no array of numbers, or damaged: copy it again"
        )
    try:
        shape, fortran, dtype = read(io.BytesIO(length + stream.read(n_bytes)))
    except _BROKEN_HEADER:  # TokenError: numpy reads old headers so
        raise SpaceError(
            f"{what}: expected an array written by numpy.save, got a header that cannot be read; copy it"
            " again, or write it with numpy.save"
        ) from None
    if dtype.hasobject:
        raise SpaceError(
            f"{what}: expected plain numbers or strings, got pickled objects, which can run code and are"
            " never loaded; where you trust the file, save it again with dtype=np.float32 (vectors) or"
            " dtype=str (ids)"
        )
    if any(type(length) is not int or length < 0 for length in shape) or dtype.itemsize == 0:
        got = f"{dtype!s:.40} of shape {shape!s:.60}"
        raise SpaceError(
            f"{what}: expected a shape of lengths and values of one byte or more, got {got}; save it again"
        )
    return shape, fortran, dtype


def promised(
    stream: BinaryIO, size: int, what: str, dimensions: int
) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The header of an open .npy of `size` bytes, whose values follow in full."""
    shape, fortran, dtype = _header(stream, what)
    if len(shape) != dimensions:
        expected = ("a list (n,)", "a matrix (n, d)")[dimensions - 1]
        raise SpaceError(f"{what}: expected {expected}, got shape {shape!s:.60}; save it again in that form")
    needed, held = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if held < needed:
        raise SpaceError(
            f"{what}: the header promises shape {shape!s:.60} of {dtype!s:.40}, {readable(needed)}, but only"
            f" {readable(held)} follow; the file was cut short, copy or download it again"
        )
    return shape, fortran, dtype


def _matrix(
    stream: BinaryIO, size: int, path: Path, what: str, limit: int | None, max_bytes: int
) -> np.ndarray:
    """The first `limit` rows of the matrix in an open .npy, as read-only float32, block by block.

    In Fortran order the first rows are all over the file: it is read to its end, and what no row needs is
    dropped.
    """
    shape, fortran, dtype = promised(stream, size, what, dimensions=2)
    n = rows_to_read(path, shape[0], limit)
    check_size(path, n, shape[1], max_bytes)
    vectors = np.empty((n, shape[1]), dtype=np.float32)
    lines = vectors.T if fortran else vectors  # as they lie in the file
    width, kept = (shape[0], n) if fortran else (shape[1], shape[1])
    n_lines = max(1, _BLOCK // (width * dtype.itemsize))
    n_items = min(width, max(1, _BLOCK // dtype.itemsize))
    for first in range(0, len(lines), n_lines):
        block = lines[first : first + n_lines]
        for start in range(0, width, n_items):
            items = min(n_items, width - start)
            found = _values(stream, dtype, len(block) * items, what).reshape(len(block), items)
            fill(block[:, start : min(start + items, kept)], found[:, : max(0, kept - start)], what)
    vectors.flags.writeable = False
    return vectors


def _mapped(stream: BinaryIO, size: int, path: Path, limit: int | None, on_disk: OnDisk) -> MappedRows | None:
    """The first `limit` rows of the matrix in an open .npy as a map; None, and the stream at its begin,
    where none can be.
    """
    shape, fortran, dtype = promised(stream, size, path.name, dimensions=2)
    n = rows_to_read(path, shape[0], limit)
    check_width(path, n, shape[1])
    part = (
        on_disk.map(stream, dtype.name, stream.tell(), (n, shape[1]))
        if dtype.isnative and not fortran
        else None
    )
    stream.seek(0)
    return None if part is None else on_disk.rows([part])


def _list(
    stream: BinaryIO, size: int, path: Path, what: str, limit: int | None, max_bytes: int
) -> np.ndarray:
    """The first `limit` ids, labels or counts in an open .npy."""
    shape, _, dtype = promised(stream, size, what, dimensions=1)
    n = rows_to_read(path, shape[0], limit)
    needed = n * (2 * dtype.itemsize + 64)
    if needed > max_bytes:
        raise SpaceError(
            f"{what}: {n:,} items take {readable(needed)}, more than max_bytes = {readable(max_bytes)}; pass"
            " limit=… to read fewer rows"
        )
    return _values(stream, dtype, n, what)


def _values(stream: BinaryIO, dtype: np.dtype, n: int, what: str) -> np.ndarray:
    content = stream.read(n * dtype.itemsize)
    if len(content) < n * dtype.itemsize:
        raise SpaceError(
            f"{what}: expected {n:,} more values, got the end of the file; copy or download it again"
        )
    return np.frombuffer(content, dtype=dtype, count=n)


def fill(rows: np.ndarray, found: np.ndarray, what: str) -> None:
    if found.dtype.kind not in "fiu":
        raise SpaceError(
            f"{what}: expected real numbers, got {found.dtype!s:.40}; save the vectors as float32"
        )
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is reported as such later
        rows[...] = found


def the_matrix(
    path: Path,
    names: Mapping[str, Any] | set[str],
    shape: Callable[[str], tuple[int, ...]],
    chosen: str | None = None,
) -> str:
    """The name of the matrix: the chosen one, else `vectors`, else the token embeddings of a model, else
    the only matrix.
    """
    if chosen is not None:
        if chosen in names and len(shape(chosen)) == 2:
            return chosen
        got = f"one of shape {shape(chosen)!s:.60}" if chosen in names else "no array of this name"
        near = quote([name for name in sorted(names) if len(shape(name)) == 2][:6]) or "none"
        raise SpaceError(
            f"{path.name}: expected a matrix named {chosen!r:.80}, got {got}; its matrices: {near}"
        )
    if "vectors" in names and len(shape("vectors")) == 2:
        return "vectors"
    if (tokens := token_matrix(names)) and len(shape(tokens)) == 2:
        return tokens
    if len(names) > _MOST_ARRAYS:
        raise SpaceError(
            f"{path.name}: expected a matrix named 'vectors' among its {len(names):,} arrays; {_CHOOSE}"
        )
    shapes = {name: shape(name) for name in sorted(names)}
    matrices = [name for name, found in shapes.items() if len(found) == 2]
    if len(matrices) == 1:
        return matrices[0]
    found = quote([f"{name:.20} {one}" for name, one in list(shapes.items())[:8]]) or "nothing"
    raise SpaceError(
        f"{path.name}: expected a matrix named 'vectors', or one matrix (n, d) alone, got {found}; {_CHOOSE}"
    )


def check_texts(path: Path, name: str, got: int, expected: int, itemsize: int) -> None:
    """Refuse ids, labels or counts of another number than the rows, or longer than any text should be."""
    check_length(path, name, got, expected)
    if itemsize > 4 * _LONGEST_TEXT:
        raise SpaceError(
            f"{path.name}: expected {name} of at most {_LONGEST_TEXT:,} characters, got longer ones; shorten"
            " them"
        )


def check_length(path: Path, name: str, got: int, expected: int) -> None:
    if got != expected:
        raise SpaceError(
            f"{path.name}: expected {expected} {name}, one per row, got {got}; write {name} and vectors from"
            " the same rows"
        )


# Where the rows of a .npy file are, for whoever reads them block by block.


@dataclass(frozen=True)
class NpyLayout:
    """Where the rows (n, d) of a .npy file begin, and how each number is written."""

    n: int
    d: int
    dtype: np.dtype
    at: int


def npy_layout(path: Path) -> NpyLayout:
    """The layout of a .npy file of real numbers, row after row, that holds all that its header promises.

    Raises
    ------
    SpaceError
        Another file, a damaged one, columns that follow each other.
    """
    with path.open("rb") as stream:
        shape, fortran, dtype = promised(stream, path.stat().st_size, path.name, dimensions=2)
        if dtype.kind not in "fiu" or 0 in shape or (fortran and 1 not in shape):
            got = f"{dtype!s:.40} of shape {shape!s:.60}{' in Fortran order' * fortran}"
            raise SpaceError(
                f"{path.name}: expected rows of real numbers, one after the other, got {got}; save them as"
                " float32"
            )
        return NpyLayout(*shape, dtype, stream.tell())
