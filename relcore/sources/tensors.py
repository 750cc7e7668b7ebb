"""Tensor files, .safetensors: of vectors with their ids, or of a model with its token embeddings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from relcore.plain_text import visible
from relcore.sources.arrays import check_length, check_texts, fill, the_matrix
from relcore.sources.embedding_tensors import bfloat16_rows, tensor_begin, token_ids
from relcore.sources.on_disk import OnDisk
from relcore.sources.rows import Rows, check_size, check_width, rows_to_read
from relcore.spaces import SpaceError

_BLOCK = 1 << 24
_KINDS = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16"}


def read_safetensors(
    path: Path, *, limit: int | None = None, max_bytes: int, matrix: str | None = None, on_disk: OnDisk | None = None
) -> Rows:
    """Tensor `matrix`, else `vectors`, a model's token embeddings, or the only matrix; texts and counts of its rows.

    With `on_disk` it is mapped, where it is one of floating-point numbers.

    `ids` and `labels` are UTF-8 text, one line per row, in uint8 tensors or in the metadata; `counts` are integers. The ids of
    token embeddings come from a vocabulary beside the file. With a limit only the first rows are read.
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
            f"{path.name}: expected a safetensors file of bfloat16, float16, float32 or float64 vectors and UTF-8 ids, got one "
            f"that cannot be read ({visible(error, 200)}); write it again, or save the vectors as float32"
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
