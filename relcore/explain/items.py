"""Texts, pictures and columns of rows, by id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.row_tables import TableColumns, row_items, texts_at
from relcore.encoders.dataset import Dataset
from relcore.encoders.datasets import load_dataset
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    from PIL.Image import Image

_AT_ONCE = 256
_MOST_PICTURES = 20_000  # reading more takes minutes


@dataclass
class RowItems:
    """What is known of rows besides their vectors.

    Attributes
    ----------
    text_tables, picture_tables : datasets
    cells : column → cells, indexed by id
    """

    text_tables: list[Dataset] = field(default_factory=list)
    picture_tables: list[Dataset] = field(default_factory=list)
    cells: dict[str, pd.Series] = field(default_factory=dict)

    def add(
        self,
        space: LatentSpace,
        texts: Sequence[str] | None = None,
        columns: pd.DataFrame | Mapping[str, Any] | None = None,
    ) -> None:
        """Add texts and columns of the rows of a space. Raises a SpaceError for another number of rows."""
        if texts is None and space.payload and all(isinstance(one, str) for one in space.payload):
            texts = space.payload
        if texts is not None:
            strings = [str(text) for text in texts]
            _need_rows("texts", strings, space)
            read = lambda start, stop: strings[start:stop]  # noqa: E731
            self.text_tables.append(Dataset(read, space.ids.tolist(), name=space.name, kind="texts"))
        for name, cells in dict(columns if columns is not None else {}).items():
            values = list(cells)
            _need_rows(f"column {name!r}", values, space)
            self.cells[str(name)] = pd.Series(values, index=space.index, dtype=object)

    def texts(self, ids: Sequence[str]) -> list[str] | None:
        """The text of each id, on one line; None if no id has one."""
        if not self.text_tables:
            return None
        dataset = self.text_tables[0]
        texts = texts_at(dataset, _places(dataset, ids))
        if not any(texts):
            return None
        return [" ".join(text.split()) for text in texts]

    def pictures(self, ids: Sequence[str]) -> Iterator[Image] | None:
        """The picture of each id, read when they are used; None if an id has none, or if there are too many
        to read."""
        if not self.picture_tables or not 0 < len(ids) <= _MOST_PICTURES:
            return None
        dataset = self.picture_tables[0]
        places = _places(dataset, ids)
        if places.min() < 0:
            return None
        return _read(dataset, places)

    def columns(self, ids: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
        """Each column, with its cells for the ids."""
        for name, cells in self.cells.items():
            unique = cells[~cells.index.duplicated()]
            yield name, unique.reindex(pd.Index(ids, dtype=object)).tolist()


def items_of(specs: Sequence[SpaceSpec]) -> RowItems:
    """The texts, pictures and columns that belong to these spaces. What cannot be read is left out."""
    items = RowItems()
    for spec in specs:
        space = load(spec)
        with suppress(SpaceError):
            for dataset in _datasets(spec, space):
                known = items.text_tables if dataset.kind == "texts" else items.picture_tables
                known.append(dataset)
        with suppress(SpaceError):
            table = TableColumns(spec)
            for name in table.names:
                items.cells.setdefault(name, table.read(name, space))
    return items


def _datasets(spec: SpaceSpec, space: LatentSpace) -> list[Dataset]:
    """The texts and pictures of a file's table, or the dataset that was encoded."""
    if spec.source != "file" and spec.dataset is not None:
        return [load_dataset(spec.dataset)]
    return row_items(spec, space)


def _need_rows(what: str, values: Sequence[Any], space: LatentSpace) -> None:
    if len(values) != len(space):
        raise SpaceError(f"{what}: expected {len(space)}, one per row of {space.name!r}, got {len(values)}")


def _places(dataset: Dataset, ids: Sequence[str]) -> np.ndarray:
    return pd.Index(dataset.ids, dtype=object).get_indexer(pd.Index(list(ids), dtype=object))


def _read(dataset: Dataset, places: np.ndarray) -> Iterator[Image]:
    """The pictures at these places, in this order. Consecutive rows are read together."""
    for run in np.split(places, np.flatnonzero(np.diff(places) != 1) + 1):
        for start in range(0, len(run), _AT_ONCE):
            part = run[start : start + _AT_ONCE]
            yield from dataset.items(int(part[0]), int(part[-1]) + 1)
