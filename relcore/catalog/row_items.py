"""The texts and pictures of a space that was loaded as vectors: columns of its own table, or of its
metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, ignored_columns
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.images import decode_image, image_file
from relcore.files.columns import OPTIONS, Choices, Columns
from relcore.files.items import ItemTable, open_table
from relcore.files.metadata import SUFFIXES, metadata_columns
from relcore.files.reading import column_roles
from relcore.files.rows import checked_ids
from relcore.spaces.space import LatentSpace


def row_items(spec: SpaceSpec, space: LatentSpace) -> list[Dataset]:
    """The texts and the pictures of the rows, under the ids of the space; nothing where there are none.

    Where a space is paired by row order and has no texts, its ids before are the texts.

    Raises
    ------
    SpaceError
        The table cannot be read, or whoever asks may not read it.
    """
    if spec.source != "file" and spec.rows_of == spec:
        return []
    found = _of_table(spec, space) if spec.source == "file" else _of_dataset(spec.rows_of.dataset, space)
    if space.payload is not None and not any(dataset.kind == "texts" for dataset in found):
        names = space.payload
        found.append(
            Dataset(lambda start, stop: list(names[start:stop]), space.ids, name=space.name, kind="texts")
        )
    return found


def _of_dataset(spec: DatasetSpec | None, space: LatentSpace) -> list[Dataset]:
    """The items that were encoded, under the row numbers that now are the ids."""
    if spec is None or spec.source == "planetoid":
        return []
    dataset = load_dataset(spec)
    return (
        [Dataset(dataset.items, space.ids, name=dataset.name, kind=dataset.kind)]
        if len(dataset) == len(space)
        else []
    )


def _of_table(spec: SpaceSpec, space: LatentSpace) -> list[Dataset]:
    path, columns = described_table(spec)
    if columns is None:
        return []
    text, pictures = columns.place("text"), columns.place("pictures")
    if text is None and pictures is None:
        return []
    table = open_table([path])
    names = list(table.columns)
    reader = _Cells(table, path, table_ids(spec, space, table, columns))
    found = (
        [] if text is None else [Dataset(reader.texts(names[text]), reader.ids, name=path.name, kind="texts")]
    )
    if pictures is not None:
        found.append(Dataset(reader.pictures(names[pictures]), reader.ids, name=path.name, kind="images"))
    return found


def described_table(spec: SpaceSpec) -> tuple[Path, Columns | None]:
    """The table that tells something about the rows of a file, and what its columns are for; None for a file
    without one.

    Raises
    ------
    SpaceError
        The table cannot be read, or whoever asks may not read it.
    """
    path = access.allowed(spec.option("metadata") or spec.name)
    if path.suffix.lower() not in SUFFIXES:
        return path, None
    chosen: dict[str, Any] = {
        option: spec.option(option) for option in OPTIONS.values() if option in dict(spec.options)
    }
    choices = Choices(**chosen, ignore=ignored_columns(spec))
    return path, metadata_columns(path, choices) if spec.option("metadata") else column_roles(path, choices)


def table_ids(spec: SpaceSpec, space: LatentSpace, table: ItemTable, columns: Columns) -> Sequence[str]:
    """The id of each row of the table, also of those that the space leaves out."""
    n = min(len(table), spec.limit or len(table))
    if len(space) == n:
        return space.ids
    place = columns.place("ids")
    if spec.option("ids") == "rows" or place is None:
        return [str(row) for row in range(n)]
    return checked_ids(table.read(list(table.columns)[place], 0, n), table.name)


class _Cells:
    """Cells of a table's columns by the rows of a space."""

    def __init__(self, table: ItemTable, path: Path, ids: Sequence[str]) -> None:
        self._table, self._path, self.ids = table, path, ids

    def texts(self, column: str) -> Callable[[int, int], list[str]]:
        def read(start: int, stop: int) -> list[str]:
            return ["" if one is None else str(one) for one in self._table.read(column, start, stop)]

        return read

    def pictures(self, column: str) -> Callable[[int, int], list[Any]]:
        def read(start: int, stop: int) -> list[Any]:
            cells = zip(range(start, stop), self._table.read(column, start, stop), strict=True)
            return [
                decode_image(self._bytes(cell, row), f"{self._table.name}, row {row}") for row, cell in cells
            ]

        return read

    def _bytes(self, cell: Any, row: int) -> bytes | None:
        """The bytes in a cell, or those of the picture file that it names, beside the table or by its full
        path.
        """
        if isinstance(cell, dict):
            cell = cell.get("bytes") or cell.get("path")
        if not isinstance(cell, str) or not cell:
            return cell or None
        try:
            place = access.allowed(self._path.parent / cell)
            return image_file(place) if place.exists() else place.read_bytes()
        except (OSError, SpaceError) as error:
            where, got = f"{self._table.name}, row {row}", getattr(error, "strerror", None) or error
            raise SpaceError(
                f"{where}: expected the picture {cell!r:.200}, got {got}; copy it beside the table"
            ) from error


# The texts behind the rows of two spaces, from the datasets that they encode or the tables that came with
# them.

_AT_ONCE = 256
Texts = Callable[[Sequence[str]], list[str]]


def row_texts(specs: Sequence[SpaceSpec], load: Callable[[SpaceSpec], LatentSpace]) -> Texts | None:
    """What reads the texts of ids, "" where an id has none; None where the rows have no texts. Errors as
    in `row_items`.
    """
    found: list[Dataset] = []
    for spec in specs:
        datasets = row_items(spec, load(spec)) if spec.source == "file" else _encoded(spec)
        found += [dataset for dataset in datasets if dataset.kind == "texts"]
    if not found:
        return None
    return lambda ids: [
        " ".join(dict.fromkeys(texts)) for texts in zip(*(_texts(one, ids) for one in found), strict=True)
    ]


def _encoded(spec: SpaceSpec) -> list[Dataset]:
    dataset = spec.dataset
    return [load_dataset(dataset)] if dataset is not None and dataset.source != "planetoid" else []


def _texts(dataset: Dataset, ids: Sequence[str]) -> list[str]:
    rows = pd.Index(dataset.ids, dtype=object).get_indexer(pd.Index(list(ids), dtype=object))
    texts: dict[int, str] = {}
    for start in np.unique(rows[rows >= 0] // _AT_ONCE) * _AT_ONCE:
        block = dataset.items(int(start), min(int(start) + _AT_ONCE, len(dataset.ids)))
        texts.update(enumerate(block, start=int(start)))
    return [texts.get(int(row), "") for row in rows]
