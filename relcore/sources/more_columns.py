"""More columns: what the table that came with a space tells about its rows beside ids, labels, counts and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from relcore.sources.catalog import SpaceSpec
from relcore.sources.cells import MISSING
from relcore.sources.item_tables import ItemTable, open_table
from relcore.sources.places import dataset_place
from relcore.sources.row_items import described_table, table_ids
from relcore.sources.table_dataset import label_columns
from relcore.spaces import LatentSpace, SpaceError, quote

_MOST = 200  # columns on offer
_AT_ONCE = 4096
_TABLES = (".parquet", ".csv", ".tsv")


def more_columns(spec: SpaceSpec) -> tuple[str, ...]:
    """The columns that can colour the rows of a space: those of its metadata, its own table, or the table that it encodes.

    Ids, labels, counts, texts, pictures and dimensions are not among them.

    Raises
    ------
    SpaceError
        The table cannot be read, or whoever asks may not read it.
    """
    if dataset := _dataset_table(spec):
        used = {spec.dataset.column, spec.dataset.label_column}
        return tuple(name for name in label_columns(dataset.columns) if name not in used)[:_MOST]
    if spec.source != "file":
        return ()
    path, columns = described_table(spec)
    if columns is None or not columns.places("left out"):
        return ()
    table = open_table([path])
    kinds = list(table.columns.values())
    return tuple(columns.columns[i].name for i in columns.places("left out") if kinds[i] in ("number", "text"))[:_MOST]


def read_column(spec: SpaceSpec, space: LatentSpace, name: str) -> pd.Series:
    """The cells of a column by the ids of its rows; None where one is empty. `space` is what the spec loads, with all its rows.

    Raises
    ------
    SpaceError
        No such column, a table that cannot be read.
    """
    if name not in (known := more_columns(spec)):
        raise SpaceError(f"column: expected one of {quote(known) or 'none'} for {space.name!r}, got {name!r:.80}")
    if dataset := _dataset_table(spec):
        rows = [int(one.rpartition("/")[2]) for one in space.ids]
        cells = _cells(dataset, name, max(rows) + 1)
        return pd.Series([cells[row] for row in rows], index=space.ids, dtype=object)
    path, columns = described_table(spec)
    table = open_table([path])
    ids = table_ids(spec, space, table, columns)
    return pd.Series(_cells(table, name, len(ids)), index=pd.Index(ids, dtype=object), dtype=object)


def _dataset_table(spec: SpaceSpec) -> ItemTable | None:
    """The table that an encoding was made of; the ids of its rows end in their number."""
    dataset = spec.dataset
    if dataset is None or dataset.source != "file":
        return None
    path = dataset_place(dataset)
    return open_table([path]) if path.suffix.lower() in _TABLES else None


def _cells(table: ItemTable, name: str, n: int) -> list[Any]:
    column = next(one for one in table.columns if one.strip() == name or one == name)
    names: Sequence[str] | None = table.class_names.get(column)
    cells: list[Any] = []
    for start in range(0, n, _AT_ONCE):
        cells += table.read(column, start, min(start + _AT_ONCE, n))
    if names:
        cells = [names[one] if isinstance(one, int) and 0 <= one < len(names) else None for one in cells]
    return [None if one is None or (isinstance(one, str) and one.strip() in MISSING) else one for one in cells]
