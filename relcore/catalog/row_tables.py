"""Read tables about the rows of a space: texts, pictures and further columns. Decide which table belongs to
which vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.catalog.catalog import SpaceSpec, listed, load, numbered_spec
from relcore.encoders.dataset import Dataset, DatasetSpec, dataset_place
from relcore.encoders.datasets import load_dataset
from relcore.encoders.item_tables import ItemRows, label_columns, table_ids
from relcore.files.columns import OPTIONS, Choices, Columns
from relcore.files.item_rows import (
    OF_TEXTS,
    SUFFIXES,
    ItemTable,
    cell_content,
    is_metadata,
    open_table,
    rows_by_id,
)
from relcore.files.reading import column_roles, description_of, shape_of
from relcore.spaces.ids import RowNumbers
from relcore.spaces.space import LatentSpace, ids_of

Texts = Callable[[Sequence[str]], list[str]]
_MOST = 200  # number of columns that rows can be coloured by
_AT_ONCE = 256


def _n_rows(spec: SpaceSpec) -> int | None:
    """The number of rows that the header tells; None if it does not, or if the file cannot be read."""
    path = Path(spec.name)
    if (shape := shape_of(path)) is not None and shape[0] is not None:
        return shape[0]
    description = description_of(path)
    shapes = description.choosable
    if usual := shapes.get(description.usual):
        lengths = {usual[0]}
    else:
        lengths = {n for n, _ in shapes.values()}
    if len(lengths) == 1 and not spec.option("matrix"):
        return lengths.pop()
    with suppress(SpaceError):  # loading the space raises the same error
        if path.suffix.lower() in SUFFIXES:
            return len(open_table([path], spec.option("encoding") or ""))
        return len(load(spec))
    return None


def with_their_tables(specs: Sequence[SpaceSpec], *, in_order: bool = True) -> list[SpaceSpec]:
    """Join files of vectors and the tables of metadata that belong to them. Returns the specs of the spaces,
    in order.

    A table without vectors can belong only to earlier files of vectors that have as many rows. If some of
    these files have the table's name, it belongs to the last of them. Otherwise it belongs to every .npy
    file. If there is no .npy file, or if `in_order`, it belongs to the last file as well. A table that
    belongs to no file is a space.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> np.save(folder / "a.npy", np.eye(2))
    >>> _ = (folder / "meta.csv").write_text("id,genre\\nr1,jazz\\nr2,rock\\n")
    >>> (space,) = with_their_tables([SpaceSpec("file", str(folder / one)) for one in ("a.npy", "meta.csv")])
    >>> Path(space.name).name, Path(space.option("metadata")).name
    ('a.npy', 'meta.csv')
    """
    spaces: list[SpaceSpec] = []
    for spec in specs:
        plain_file = spec.source == "file" and not spec.options
        owners = []
        if spaces and plain_file and is_metadata(Path(spec.name)):
            owners = _owners(spaces, spec, in_order)
        for place, item in enumerate(spaces):
            if item in owners:
                spaces[place] = _with_metadata(item, spec.name)
        if not owners:
            spaces.append(spec)
    return spaces


def _owners(before: Sequence[SpaceSpec], table: SpaceSpec, in_order: bool) -> list[SpaceSpec]:
    stem = Path(table.name).stem
    try:
        n = len(open_table([Path(table.name)]))
    except SpaceError:  # loading the space raises the same error
        return []
    fit = [
        item
        for item in before
        if item.source == "file" and not item.option("metadata") and _n_rows(item) == n
    ]
    if same := [item for item in fit if stem.startswith(Path(item.name).stem)]:
        return same[-1:]
    owners = [item for item in fit if Path(item.name).suffix.lower() == ".npy"]
    if in_order or not owners:
        owners += fit[-1:]
    return list(dict.fromkeys(owners))


def _with_metadata(spec: SpaceSpec, path: str) -> SpaceSpec:
    of_table = ("ignore", "metadata", "ids", *OPTIONS.values())
    kept = [(name, value) for name, value in spec.options if name not in of_table]
    return replace(spec, options=(*kept, ("metadata", path)))


def by_rows(source: SpaceSpec, target: SpaceSpec) -> tuple[SpaceSpec, SpaceSpec]:
    """The specs of both spaces, changed so that row numbers are their ids and rows are paired by order."""
    return numbered_spec(source), numbered_spec(target)


def is_numbered(space: LatentSpace) -> bool:
    n = len(space)
    return space.ids[-1] == str(n - 1) and np.array_equal(space.ids, np.arange(n).astype(str))


def pairs_in_order(specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace]) -> bool:
    """Whether spaces are paired by row order alone, because none is an encoding and none has ids."""
    numbered = (isinstance(ids_of(space), RowNumbers) for space in spaces)
    return all(numbered) and not any(spec.dataset for spec in specs)


def is_pairing_unknown(specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace]) -> bool:
    """Whether spaces are paired by row order alone, and the user has not confirmed that pairing."""
    return any(spec.option("ids") != "rows" for spec in specs) and pairs_in_order(specs, spaces)


def pairs_by_rows(source: LatentSpace, target: LatentSpace) -> bool:
    """Whether row order is the likely pairing: both spaces have the same number of rows, and exactly one has
    ids of its own."""
    return len(source) == len(target) and is_numbered(source) != is_numbered(target)


def _table_and_roles(spec: SpaceSpec) -> tuple[Callable[[], ItemTable], Columns] | None:
    """Return a function that opens the table about a file's rows, and what each of its columns holds (its
    role, such as ids or labels). None if there is no table."""
    path = access.readable_path(spec.option("metadata") or spec.name)
    if path.suffix.lower() not in SUFFIXES:
        return None
    chosen: dict[str, Any] = {name: value for name, value in spec.options if name in OPTIONS.values()}
    choices = Choices(**chosen, ignore=listed(spec, "ignore"), encoding=spec.option("encoding") or "")
    if spec.option("metadata"):
        table = open_table([path], choices.encoding)
        return lambda: table, table.roles(choices)
    return lambda: open_table([path], choices.encoding), column_roles(path, choices)


def _encoded_table(spec: SpaceSpec) -> ItemTable | None:
    dataset = spec.dataset
    if dataset is None or dataset.source != "file":
        return None
    path = dataset_place(dataset)
    encoding = dict(dataset.options).get("encoding", "")
    if path.suffix.lower() in OF_TEXTS:
        return open_table([path], encoding)
    return None


def _rows_encoded(dataset: DatasetSpec, table: ItemTable, ids: Sequence[str]) -> list[int]:
    """For each row of an encoding, its row number in the table. It is found in the table's column of ids or,
    without such a column, is the number at the end of the id."""
    if not (column := dict(dataset.options).get("id_column")):
        return [int(item.rpartition("/")[2]) for item in ids]
    known = table_ids(table, column, min(len(table), dataset.limit or len(table)))
    rows = pd.Index(known, dtype=object).get_indexer(pd.Index(ids, dtype=object))
    if (rows < 0).any():
        raise SpaceError(f"{table.name}: expected the ids that were encoded, got others; encode it again")
    return rows.tolist()


def _table_rows(spec: SpaceSpec, space: LatentSpace, table: ItemTable, columns: Columns) -> np.ndarray:
    """The row number in the table for each row of the space, (n,)."""
    place = columns.place("ids")
    by_number = spec.option("ids") == "rows"
    whole = len(space) == min(len(table), spec.limit or len(table))
    if whole and (place is None or not spec.option("metadata")):
        return np.arange(len(space))
    if place is not None:
        if by_number and space.payload is not None:
            ids = space.payload
        else:
            ids = space.ids
        return rows_by_id(table, list(table.columns)[place], ids, space.name)
    if by_number:
        numbered = space
    else:
        numbered = load(numbered_spec(spec))
    if len(numbered) != len(space):
        raise SpaceError(
            f"{table.name}: expected a column of ids, because rows are left out, got none; choose one"
            " (id_column)"
        )
    return numbered.ids.astype(np.int64)


class TableColumns:
    """The columns of a space's table that can colour its rows. Columns with another use, such as ids, are
    left out.

    `names` lists these columns. The table is opened, and its rows are matched, only once. Raises a SpaceError
    if the table cannot be read.
    """

    names: tuple[str, ...] = ()

    def __init__(self, spec: SpaceSpec) -> None:
        self._spec = spec
        self._rows = cache(self._rows_of)
        encoded = _encoded_table(spec)
        described = None
        if encoded is None and spec.source == "file":
            described = _table_and_roles(spec)
        if encoded is not None:
            dataset = spec.dataset
            self._table = encoded
            used = {dataset.column, dataset.label_column, dict(dataset.options).get("id_column")}
            self.names = tuple(name for name in label_columns(encoded.columns) if name not in used)
        elif described is not None:
            opened, self._columns = described
            if left_out := self._columns.places("left out"):
                self._table = opened()
                kinds = list(self._table.columns.values())
                usable = (place for place in left_out if kinds[place] in ("number", "text"))
                self.names = tuple(self._columns.columns[place].name for place in usable)
        self.names = self.names[:_MOST]

    def _rows_of(self, space: LatentSpace) -> np.ndarray:
        if self._spec.source == "file":
            return _table_rows(self._spec, space, self._table, self._columns)
        return np.array(_rows_encoded(self._spec.dataset, self._table, space.ids))

    def read(self, name: str, space: LatentSpace) -> pd.Series:
        """The cells of a column, indexed by row id; None for an empty cell. `space` is the whole space of the
        spec.

        Raises a SpaceError if the column is unknown or if the table cannot be read.
        """
        if name not in self.names:
            raise SpaceError(
                f"column: expected one of {quote(self.names) or 'none'} for {space.name!r}, got {name!r:.80}"
            )
        table = self._table
        rows = self._rows(space)
        column = next(item for item in table.columns if item.strip() == name or item == name)
        cells = np.array([*table.cells(column, int(rows.max()) + 1), None], dtype=object)[rows]
        names = table.class_names.get(column)
        codes, distinct = pd.factorize(cells)
        cells = np.array([*(cell_content(item, names) for item in distinct), None], dtype=object)[codes]
        return pd.Series(cells, index=space.index, dtype=object)


def row_items(spec: SpaceSpec, space: LatentSpace) -> list[Dataset]:
    """The datasets of the texts and of the pictures of the rows, with the ids of the space.

    If the space was renamed to row numbers, its previous ids are the texts. Raises a SpaceError if the table
    cannot be read.
    """
    if spec.source != "file" and spec.rows_of == spec:
        return []
    if spec.source == "file":
        items = _items_of_table(spec, space)
    else:
        items = [
            Dataset(dataset.items, space.ids, name=dataset.name, kind=dataset.kind)
            for dataset in _datasets_of(spec.rows_of)
            if len(dataset) == len(space)
        ]
    if space.payload is not None and not any(dataset.kind == "texts" for dataset in items):
        names = list(space.payload)
        items.append(Dataset(lambda *rows: names[slice(*rows)], space.ids, name=space.name, kind="texts"))
    return items


def _datasets_of(spec: SpaceSpec) -> list[Dataset]:
    if spec.dataset is None:
        return []
    return [load_dataset(spec.dataset)]


def _items_of_table(spec: SpaceSpec, space: LatentSpace) -> list[Dataset]:
    described = _table_and_roles(spec)
    if described is None or not {"text", "pictures"} & {item.role for item in described[1].columns}:
        return []
    opened, columns = described
    table = opened()
    names = list(table.columns)
    numbers = _table_rows(spec, space, table, columns)
    items = []
    for role, kind in (("text", "texts"), ("pictures", "images")):
        if (place := columns.place(role)) is not None:
            rows = ItemRows(table, names[place], numbers)
            items.append(Dataset(getattr(rows, kind), space.ids, name=table.name, kind=kind))
    return items


def row_texts(specs: Sequence[SpaceSpec], load: Callable[[SpaceSpec], LatentSpace]) -> Texts | None:
    """A function that maps ids to their texts, "" for an id without text. None if no row has a text."""
    datasets: list[Dataset] = []
    for spec in specs:
        if spec.source == "file":
            datasets += row_items(spec, load(spec))
        else:
            datasets += _datasets_of(spec)
    datasets = [dataset for dataset in datasets if dataset.kind == "texts"]
    if not datasets:
        return None
    return lambda ids: [
        " ".join(dict.fromkeys(texts))
        for texts in zip(*(_texts(item, ids) for item in datasets), strict=True)
    ]


def _texts(dataset: Dataset, ids: Sequence[str]) -> list[str]:
    return texts_at(
        dataset, pd.Index(dataset.ids, dtype=object).get_indexer(pd.Index(list(ids), dtype=object))
    )


def texts_at(dataset: Dataset, rows: np.ndarray) -> list[str]:
    """The text of each row number (m,); "" for −1. Texts are read in blocks of consecutive rows."""
    texts: dict[int, str] = {}
    for start in np.unique(rows[rows >= 0] // _AT_ONCE) * _AT_ONCE:
        block = dataset.items(int(start), min(int(start) + _AT_ONCE, len(dataset.ids)))
        texts.update(enumerate(block, start=int(start)))
    return [texts.get(row, "") for row in rows.tolist()]
