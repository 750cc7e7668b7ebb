"""Vectors of large tables on disk: of an .arrow file where they lie, of a .parquet file decoded once into the store."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from relcore.mapped import MappedRows
from relcore.sources.arrow_table import ArrowTable
from relcore.sources.on_disk import OnDisk
from relcore.store import StoreError


def mapped_column(table: ArrowTable, name: str, n: int, on_disk: OnDisk) -> MappedRows | None:
    """The first n vectors of a column of lists as maps, one per batch; None where they are no such floats, or some are missing.

    Raises
    ------
    pyarrow.ArrowException
        A damaged file.
    """
    parts, rows = [], 0
    for column in table.mapped_batches(name):
        part = _matrix(column)
        if part is None or (parts and part.shape[1] != parts[0].shape[1]):
            return None
        parts.append(part[: n - rows])
        rows += len(parts[-1])
        if rows == n:
            break
    return on_disk.rows(parts, name) if rows else None


def decoded(
    path: Path, names: tuple[str, ...], shape: tuple[int, int], blocks: Iterable[np.ndarray], on_disk: OnDisk
) -> MappedRows | None:
    """The vectors (n, d) of these columns as a map of an entry of the store, which is written from `blocks` the first time.

    None where the store cannot keep them. An error of the blocks is raised; then nothing is kept.
    """
    key = on_disk.decoded_key(names, shape)
    if not key or 8 * shape[0] * shape[1] > on_disk.store.limit_bytes:
        return None
    with suppress(StoreError):
        if (found := on_disk.store.mapped(key)) is None:
            on_disk.store.put_matrix(key, blocks, shape, {"rows of": path.name})
            on_disk.need_unchanged()
            found = on_disk.store.mapped(key)
        if found is not None and found.arrays["vectors"].shape == shape:
            return on_disk.copied_rows([found.arrays["vectors"].view(np.ndarray)], "decoded", names)
    return None


def _matrix(column: Any) -> np.ndarray | None:
    """The lists of an Arrow array as a matrix (m, d) in its own memory, where all have one length and nothing is missing."""
    import pyarrow as pa

    kind = column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not lists or not pa.types.is_floating(kind.value_type) or column.null_count or not len(column):
        return None
    values = column.flatten()
    lengths = {kind.list_size} if pa.types.is_fixed_size_list(kind) else set(np.diff(column.offsets.to_numpy()).tolist())
    if values.null_count or len(lengths) > 1 or lengths == {0}:
        return None
    found = values.to_numpy(zero_copy_only=True).reshape(len(column), lengths.pop())
    return found if found.flags.aligned else None
