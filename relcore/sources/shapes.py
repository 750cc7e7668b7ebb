"""What a file of vectors promises, (n, d), from its header alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from relcore.sources.annotated import h5ad_matrices, h5ad_shape, usual_matrix
from relcore.sources.arrays import npy_shape, npz_shapes, the_matrix
from relcore.sources.arrow_table import ARROW, ArrowTable
from relcore.sources.cells import delimited_rows, is_number
from relcore.sources.delimited import delimiter_of
from relcore.sources.faiss_index import faiss_shape
from relcore.sources.keyedvectors import word2vec_shape
from relcore.sources.parquet_table import holds_vectors
from relcore.sources.readers import suffix_of
from relcore.sources.series import parts_of
from relcore.sources.tensors import safetensors_shape, safetensors_shapes
from relcore.sources.torch_file import torch_shape, torch_shapes
from relcore.spaces import SpaceError


def shape_of(path: Path) -> tuple[int | None, int | None] | None:
    """(n, d) as far as the header tells it; None for a file or folder that is no space."""
    try:
        if path.is_dir():
            return _of_parts([shape_of(part) for part in parts_of(path)])
        match suffix_of(path):
            case ".npy":
                shape = npy_shape(path)
            case ".safetensors":
                shape = safetensors_shape(path)
            case ".pt" | ".pth":
                shape = torch_shape(path)
            case ".h5ad":
                shape = h5ad_shape(path)
            case ".faiss" | ".index":
                shape = faiss_shape(path)
            case ".bin" | ".bin.gz" | ".gz":
                shape = word2vec_shape(path)
            case ".vec" | ".vec.gz" | ".txt" | ".txt.gz":
                shape = word2vec_shape(path) or (_glove_shape(path) if path.suffix != ".gz" else None)
            case ".csv" | ".tsv":
                return (None, None) if _holds_numbers(path) else None
            case ".parquet" | ".arrow" | ".feather":
                return _typed_shape(path)
            case None:
                return None
            case _:
                return None, None
    except (SpaceError, OSError):
        return None
    return shape if shape is not None and len(shape) == 2 else None


def matrices_of(path: Path) -> dict[str, tuple[int, int]]:
    """(n, d) of each matrix of a file that may have several, by the names that the option `matrix` takes; else {}."""
    try:
        match suffix_of(path):
            case ".h5ad":
                shapes = h5ad_matrices(path)
            case ".npz":
                shapes = npz_shapes(path)
            case ".safetensors":
                shapes = safetensors_shapes(path)
            case ".pt" | ".pth":
                shapes = torch_shapes(path)
            case _:
                return {}
    except (SpaceError, OSError):
        return {}
    return {name: shape for name, shape in shapes.items() if len(shape) == 2 and 0 not in shape}


def usual_of(path: Path, matrices: Mapping[str, tuple[int, int]]) -> str | None:
    """The matrix of a file that is read where none is chosen; None where one has to be."""
    if suffix_of(path) == ".h5ad":
        return usual_matrix(matrices)
    try:
        return the_matrix(path, matrices, matrices.__getitem__)
    except SpaceError:
        return None


def _glove_shape(path: Path) -> tuple[None, int] | None:
    with path.open(encoding="utf-8-sig", errors="replace") as stream:
        cells = stream.readline(1 << 20).split()
    return (None, len(cells) - 1) if len(cells) > 2 and all(map(is_number, cells[1:])) else None


def _holds_numbers(path: Path) -> bool:
    rows = list(islice(delimited_rows(path, delimiter_of(path)), 2))
    return len(rows) == 2 and sum(map(is_number, rows[1][1])) >= 2


def _typed_shape(path: Path) -> tuple[int, int | None] | None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        file = ArrowTable(path) if path.suffix.lower() in ARROW else parquet.ParquetFile(path)
        floats = sum(pa.types.is_floating(field.type) for field in file.schema_arrow)
        lists = [field.type for field in file.schema_arrow if holds_vectors(field.type, of=pa.types.is_floating)]
        n = file.metadata.num_rows
    except pa.ArrowException:
        return None
    if len(lists) == 1:
        return n, lists[0].list_size if pa.types.is_fixed_size_list(lists[0]) else None
    return (n, floats) if floats >= 2 and not lists else None


def _of_parts(shapes: list[tuple[int | None, int | None] | None]) -> tuple[int | None, int | None] | None:
    """The shape of parts, one after the other."""
    if not shapes or None in shapes:
        return None
    lengths = [n for n, _ in shapes]
    return None if None in lengths else sum(lengths), shapes[0][1]
