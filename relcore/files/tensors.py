"""Tensor files, .safetensors: of vectors with their ids, or of a model with its token embeddings."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.files.arrays import (
    bfloat16_rows,
    check_length,
    check_texts,
    fill,
    tensor_begin,
    the_matrix,
    token_ids,
)
from relcore.files.on_disk import OnDisk
from relcore.files.pickled import PERSISTENT, Kind, Made, Name, read_pickle_as_data
from relcore.files.rows import Rows, check_size, check_width, readable, rows_to_read

_BLOCK = 1 << 24
_KINDS = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}


def read_safetensors(
    path: Path,
    *,
    limit: int | None = None,
    max_bytes: int,
    matrix: str | None = None,
    on_disk: OnDisk | None = None,
) -> Rows:
    """Tensor `matrix`, else `vectors`, a model's token embeddings, or the only matrix; texts and counts of
    its rows.

    With `on_disk` it is mapped, where it is one of floating-point numbers.

    `ids` and `labels` are UTF-8 text, one line per row, in uint8 tensors or in the metadata; `counts` are
    integers. The ids of token embeddings come from a vocabulary beside the file. With a limit only the first
    rows are read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names, metadata = set(file.keys()), file.metadata() or {}

            def shape(name: str) -> tuple[int, ...]:
                return tuple(file.get_slice(name).get_shape())

            main = the_matrix(path, names, shape, matrix)
            in_file, d = shape(main)
            n = rows_to_read(path, in_file, limit)
            rows = file.get_slice(main)
            part = None if on_disk is None else _part(path, main, rows.get_dtype(), (n, d), on_disk)
            if part is None:
                check_size(path, n, d, max_bytes)

            def lines(name: str) -> list[str] | None:
                if name in names:
                    check_texts(path, name, in_file, in_file, math.prod(shape(name)) // max(in_file, 1))
                text = file.get_tensor(name).tobytes().decode() if name in names else metadata.get(name)
                if text is None:
                    return None
                found = text.replace("\r\n", "\n").removesuffix("\r").split("\n")
                check_length(path, name, len(found), in_file)
                return found[:n]

            counts = file.get_slice("counts")[:n] if "counts" in names else None
            vectors = _read(path, main, rows, n, d) if part is None else on_disk.rows([part], main)
            ids = lines("ids")
            if ids is None and (tokens := token_ids(path, main, in_file)):
                ids = tokens[:n]
            return Rows(vectors, ids, lines("labels"), counts)
    except (SafetensorError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise SpaceError(
            f"{path.name}: expected a safetensors file of bfloat16, float16, float32 or float64 vectors and"
            f" UTF-8 ids, got one that cannot be read ({visible(error, 200)}); write it again, or save the"
            " vectors as float32"
        ) from error


def safetensors_shape(path: Path) -> tuple[int, ...]:
    """The shape of the matrix in a safetensors file, from its header alone."""
    shapes = safetensors_shapes(path)
    return shapes[the_matrix(path, shapes, shapes.__getitem__)]


def safetensors_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor in a safetensors file, from its header alone."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in set(file.keys())}
    except SafetensorError as error:
        raise SpaceError(
            f"{path.name}: expected a safetensors file, got one that cannot be read ({visible(error, 200)}); "
            "write or copy it again"
        ) from error


def _part(path: Path, tensor: str, kind: str, shape: tuple[int, int], on_disk: OnDisk) -> np.ndarray | None:
    """The first rows of a tensor as a map, None where none can be."""
    check_width(path, *shape)
    with path.open("rb") as stream:
        return on_disk.map(stream, _KINDS.get(kind, kind), tensor_begin(stream, tensor), shape)


def _read(path: Path, tensor: str, rows: Any, n: int, d: int) -> np.ndarray:
    """The first n rows of a tensor in memory, read block by block."""
    vectors = np.empty((n, d), dtype=np.float32)
    halves = rows.get_dtype() == "BF16"  # which NumPy does not have
    step = max(1, _BLOCK // (8 * d))
    for start in range(0, n, step):
        stop = min(start + step, n)
        found = bfloat16_rows(path, tensor, start, stop, d) if halves else rows[start:stop]
        fill(vectors[start:stop], found, f"{path.name}, tensor {tensor!r:.60}")
    vectors.flags.writeable = False
    return vectors


# Tensors that torch.save wrote, .pt and .pth: a zip of a pickle, which is read as data, and of numbers,
# without torch.
#
# See `pickled` for how a pickle is read without unpickling. Whatever is not a tensor, a dict, a list or text
# is refused.

_SAVE = 'where you trust the file, save the tensor alone: torch.save(tensor.contiguous().cpu(), "vectors.pt")'
_KIND = Kind(
    "tensors written by torch.save",
    _SAVE,
    re.compile(r"torch\._utils\._rebuild_(tensor_v2|parameter)|torch\.\w+Storage|collections\.OrderedDict"),
)
_TYPES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
}
_LONGEST_PICKLE = 64 << 20
_TORCH_FILE_BLOCK = 1 << 24
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError),
    *(ValueError, IndexError, TypeError, AttributeError, KeyError, OverflowError),
)


@dataclass(frozen=True)
class _Tensor:
    """Where the numbers of a tensor are: the member of the zip, its type, the first number, and the steps
    between numbers.
    """

    member: str
    storage: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch(path: Path, *, limit: int | None = None, max_bytes: int, matrix: str | None = None) -> Rows:
    """A tensor (n, d), or that of a dict: `matrix`, else `vectors`, else the only one; `ids` and `labels` are
    lists beside it.

    Raises
    ------
    SpaceError
        Other objects in the file, rows that are not contiguous, sizes that the file does not hold, damage.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found, texts = _contents(path, archive)
            main = the_matrix(path, found, lambda name: found[name].shape, matrix)
            tensor = found[main]
            n = rows_to_read(path, tensor.shape[0], limit)
            check_size(path, n, tensor.shape[1], max_bytes)
            return Rows(_numbers(path, archive, tensor, n), texts.get("ids"), texts.get("labels"))
    except SpaceError:
        raise
    except _BROKEN as error:
        said = f"got a file that cannot be read ({visible(error, 200)})"
        raise SpaceError(f"{path.name}: expected tensors written by torch.save, {said}; {_SAVE}") from error


def torch_shape(path: Path) -> tuple[int, ...] | None:
    """The shape of the tensor that is read where none is chosen, without its numbers."""
    shapes = torch_shapes(path)
    try:
        return shapes[the_matrix(path, shapes, shapes.__getitem__)]
    except SpaceError:
        return None


def torch_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor, without its numbers; {} for another file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: tensor.shape for name, tensor in _contents(path, archive)[0].items()}
    except _BROKEN:  # a SpaceError is a ValueError
        return {}


def _contents(path: Path, archive: zipfile.ZipFile) -> tuple[dict[str, _Tensor], dict[str, list[str]]]:
    """The tensors of the file by name, "vectors" for one alone, and its lists of texts."""
    pickles = [one for one in archive.infolist() if re.fullmatch(r"[^/]+/data\.pkl", one.filename)]
    if len(pickles) != 1 or pickles[0].file_size > _LONGEST_PICKLE:
        raise SpaceError(f"{path.name}: expected tensors written by torch.save, got another archive; {_SAVE}")
    root = pickles[0].filename.partition("/")[0]
    if f"{root}/byteorder" in archive.namelist() and archive.read(f"{root}/byteorder")[:8] != b"little":
        raise SpaceError(f"{path.name}: expected little-endian numbers, got others; {_SAVE}")
    whole = read_pickle_as_data(archive.read(pickles[0]), path, _KIND)
    items = whole if isinstance(whole, dict) else {"vectors": whole}
    tensors = {
        name: found
        for name, value in items.items()
        if isinstance(name, str) and (found := _tensor(value, root))
    }
    texts = {
        name: value
        for name, value in items.items()
        if name in ("ids", "labels")
        and isinstance(value, list)
        and all(isinstance(one, str | int) for one in value)
    }
    return tensors, texts


def _tensor(value: Any, root: str) -> _Tensor | None:
    """The tensor that a record describes; None for another value."""
    if isinstance(value, Made) and value.maker == Name("torch._utils", "_rebuild_parameter"):
        value = value.arguments[0]
    if not isinstance(value, Made) or value.maker != Name("torch._utils", "_rebuild_tensor_v2"):
        return None
    stored, offset, shape, strides = value.arguments[:4]
    if not isinstance(stored, Made) or stored.maker != PERSISTENT or stored.arguments[0] != "storage":
        return None
    numbers = (offset, *shape, *strides)
    if any(type(one) is not int or one < 0 for one in numbers) or len(shape) != len(strides):
        return None
    return _Tensor(
        f"{root}/data/{stored.arguments[2]}", stored.arguments[1].name, offset, tuple(shape), tuple(strides)
    )


def _numbers(path: Path, archive: zipfile.ZipFile, tensor: _Tensor, n: int) -> np.ndarray:
    """The first n rows of a tensor (m, d) as float32."""
    d, what = tensor.shape[1], f"{path.name}, tensor of shape {tensor.shape}"
    if tensor.storage not in _TYPES:
        raise SpaceError(
            f"{what}: expected real numbers, got {tensor.storage!s:.40}; save it with tensor.float()"
        )
    if tensor.strides[0] != d or (tensor.strides[1] != 1 and d > 1):
        raise SpaceError(f"{what}: expected rows that follow each other, got another layout; {_SAVE}")
    dtype, member = np.dtype(_TYPES[tensor.storage]), archive.getinfo(tensor.member)
    needed = (tensor.offset + tensor.shape[0] * d) * dtype.itemsize
    if needed > member.file_size or member.compress_type != zipfile.ZIP_STORED:
        raise SpaceError(
            f"{what}: expected {readable(needed)} of numbers that are not compressed, got"
            f" {readable(member.file_size)}; copy or save it again"
        )
    vectors = np.empty((n, d), dtype=np.float32)
    step = max(1, _TORCH_FILE_BLOCK // (8 * d))
    with archive.open(member) as stream:
        if tensor.offset:  # a seek would leave out the check of the checksum
            stream.seek(tensor.offset * dtype.itemsize)
        for start in range(0, n, step):
            block = vectors[start : start + step]
            found = np.frombuffer(stream.read(block.size * dtype.itemsize), dtype).reshape(block.shape)
            halves = tensor.storage == "BFloat16Storage"
            with np.errstate(
                over="ignore"
            ):  # too large for float32 becomes infinite, and is reported as such later
                block[...] = (found.astype(np.uint32) << 16).view(np.float32) if halves else found
    vectors.flags.writeable = False
    return vectors
