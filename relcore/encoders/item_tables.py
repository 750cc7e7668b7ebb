"""Tables of texts or pictures as datasets: their columns, ids and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.pictures import decode_image, image_file
from relcore.files.columns import names_ids
from relcore.files.formats import checked_ids, checked_labels
from relcore.files.item_rows import ItemTable, open_table
from relcore.files.tables import ColumnKind

_TEXT_NAMES = ("text", "sentence", "content")
_LABEL_NAMES = ("label", "labels", "class", "category", "target")
_BLOCK = 256
_GAP = 16  # if the numbers of two wanted rows differ by at most this, one call reads both
_READ_AT_ONCE = 4096


def table_dataset(table: ItemTable, spec: DatasetSpec, name: str, **defaults: Any) -> Dataset:
    """The items in one column of a table. The ids are those of the option `id_column`. By default they are
    `name/row`, so that two columns of one table have equal ids."""
    settings = spec.settings(empty="error", id_column="", **defaults)
    empty = settings["empty"]
    id_column = settings["id_column"]
    need_one_of("empty", empty, ("error", "drop"))
    n = min(len(table), spec.limit or len(table))
    items = item_columns(table.columns)
    named = _named_labels(table)
    label = next((column for column in named if column != spec.column), None)
    label = _chosen_column(table, "label_column", spec.label_column, label_columns(table.columns), label)
    free = [column for column in items if column != label]
    free.sort(key=lambda column: (table.columns[column] != "image", column.lower() not in _TEXT_NAMES))
    column = _chosen_column(table, "column", spec.column, items, free[0] if free else None)
    if column is None:
        raise SpaceError(
            f"{table.name}: expected a column of images or text, got only {quote(table.columns)}; add one"
        )
    _chosen_column(table, "id_column", id_column, label_columns(table.columns), None)
    are_images = table.columns[column] == "image"
    if are_images:
        rows = np.arange(n)
    else:
        rows = _filled_rows(table, column, n, drop=empty == "drop")
    if id_column:
        of_table = table_ids(table, id_column, n)
        ids = [of_table[row] for row in rows]
    else:
        ids = [f"{name}/{row}" for row in rows]
    labels = None
    if label is not None:
        labels = _labels(table, label, n)[rows]
    if len(set(items) - {label, *named} | {column}) > 1:
        name = f"{name} · {column}"
    reader = ItemRows(table, column, rows)
    if are_images:
        return Dataset(reader.images, ids, name=name, kind="images", labels=labels, content=reader.content)
    return Dataset(reader.texts, ids, name=name, kind="texts", labels=labels)


class ItemRows:
    """Reads the items of a dataset from one column of a table. Item i is in row `rows[i]` of the table."""

    def __init__(self, table: ItemTable, column: str, rows: np.ndarray) -> None:
        self._table = table
        self._column = column
        self._rows = rows

    def _cells(self, start: int, stop: int) -> list[tuple[str, Any]]:
        """The cells of these rows. Before each cell stands the name of its place, for error messages."""
        cells: dict[int, Any] = {}
        rows = self._rows[start:stop]
        if not len(rows):
            return []
        # Read only nearby rows together, because the rows between them are read too, and pictures are large.
        parts = np.split(np.sort(rows), np.flatnonzero(np.diff(np.sort(rows)) > _GAP) + 1)
        for some in parts:
            read = self._table.read(self._column, int(some[0]), int(some[-1]) + 1)
            cells.update(enumerate(read, int(some[0])))
        return [(f"{self._table.name}, row {row}", cells[row]) for row in rows]

    def texts(self, start: int, stop: int) -> list[str]:
        return ["" if value is None else str(value) for _, value in self._cells(start, stop)]

    def images(self, start: int, stop: int) -> list[Any]:
        return [decode_image(self._bytes(value, where), where) for where, value in self._cells(start, stop)]

    def content(self) -> Iterator[bytes]:
        for start in range(0, len(self._rows), _BLOCK):
            for where, value in self._cells(start, start + _BLOCK):
                yield self._bytes(value, where) or b""

    def _bytes(self, value: Any, where: str) -> bytes | None:
        """The bytes of a picture: the cell has them, or the path of the picture's file relative to the
        table."""
        if isinstance(value, str):
            value = {"path": value}
        if not isinstance(value, dict):
            return value
        path = value.get("path")
        if value.get("bytes") or not path:
            return value.get("bytes")
        try:
            place = access.readable_path((self._table.folder or Path()) / path)
            if place.exists():
                return image_file(place)
            return place.read_bytes()
        except (OSError, SpaceError) as error:
            got = getattr(error, "strerror", None) or error
            raise SpaceError(
                f"{where}: expected the image {path!r:.200}, got {got}; copy it beside the table"
            ) from error


def item_columns(columns: dict[str, ColumnKind]) -> list[str]:
    """The names of the columns that can be encoded: first images, then texts."""
    return [name for kind in ("image", "text") for name in columns if columns[name] == kind]


def label_columns(columns: dict[str, ColumnKind]) -> list[str]:
    return [name for name, kind in columns.items() if kind in ("number", "text")]


def _named_labels(table: ItemTable) -> list[str]:
    choices = label_columns(table.columns)
    exact = [name for name in choices if name.lower() in _LABEL_NAMES]
    return exact + [name for name in choices if name.lower().endswith(("_label", "_class", "_category"))]


def _chosen_column(
    table: ItemTable, setting: str, column: str, choices: list[str], usual: str | None
) -> str | None:
    if column and column not in choices:
        known = "none, because no column of the table fits"
        if choices:
            known = f"one of {quote(choices)}"
        raise SpaceError(f"{table.name}: {setting}: expected {known}, got {column!r}")
    return column or usual


def _cells(table: ItemTable, column: str, n: int) -> Iterator[Any]:
    for start in range(0, n, _READ_AT_ONCE):
        yield from table.read(column, start, min(start + _READ_AT_ONCE, n))


def table_ids(table: ItemTable, column: str, n: int) -> list[str]:
    """The first n ids of a column. Raises a SpaceError if one is empty, invalid or repeated."""
    ids = checked_ids(list(_cells(table, column, n)), f"{table.name}, column {column!r}")
    if len(set(ids)) < n:
        twice = Counter(ids).most_common(1)[0][0]
        raise SpaceError(
            f"{table.name}: id_column: expected distinct ids in {column!r}, got {twice!r:.80} more than once;"
            " choose another column, or none, so that rows are numbered"
        )
    return ids


def typical_id_column(table: ItemTable) -> str:
    """The first column that has distinct values and a name that is typical of ids; "" if there is none."""
    named = [name for name in label_columns(table.columns) if names_ids(name)]
    for column in sorted(named, key=lambda name: name.strip().lower() not in ("id", "ids")):
        with suppress(SpaceError):
            table_ids(table, column, len(table))
            return column
    return ""


def _filled_rows(table: ItemTable, column: str, n: int, drop: bool) -> np.ndarray:
    """The numbers of the rows that have a text. Unless `drop`, raises a SpaceError if one has none."""
    empty = np.array([not (text and text.strip()) for text in _cells(table, column, n)], dtype=bool)
    if empty.any() and not drop:
        rows = ", ".join(map(str, np.flatnonzero(empty)[:5]))
        raise SpaceError(
            f"{table.name}: expected text in every row of {column!r}, got {empty.sum()} empty of {n} (rows"
            f" {rows}, counted from 0); fill these rows, or leave them out with the option empty='drop'"
        )
    return np.flatnonzero(~empty)


def _labels(table: ItemTable, column: str, n: int) -> np.ndarray:
    """The labels in a column, as texts. The cells 3 and 3.0 give the same class. A row with a missing value
    has no class."""
    names = dict(enumerate(table.class_names.get(column) or ()))
    if names:
        names |= {None: "", -1: ""}
    else:
        names |= {None: ""}
    labels = np.full(n, "", dtype=object)
    for row, value in enumerate(_cells(table, column, n)):
        if value == value:  # false for NaN
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            labels[row] = names.get(value, str(value))
    return labels


# Lists of pairs, for example sentences with their translations, or ids of two spaces.

_MOST_PAIRS = 100_000


@dataclass(frozen=True)
class PairList:
    """Columns of equal length, by name. Row i of every column describes the same item."""

    name: str
    columns: dict[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def pairs(self, first: str, second: str) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.columns[first], self.columns[second], strict=True))


def read_pair_list(path: Path) -> PairList:
    """Read the text columns of a .csv or .tsv file. If it has fewer than two, all columns are read.

    Raises
    ------
    SpaceError
        The file is not a table, has fewer than two columns or rows, or has empty cells.
    """
    path = Path(path)
    table = open_table([path])
    names = [name for name, kind in table.columns.items() if kind == "text"]
    if len(names) <= 1:
        names = label_columns(table.columns)
    if len(names) < 2:
        signs = "commas"
        if path.suffix.lower() == ".tsv":
            signs = "tabs"
        raise SpaceError(
            f"{path.name}: expected two columns, one per language, got {quote(table.columns) or 'none'}; name"
            f" them in the first line and separate cells by {signs}"
        )
    n = len(table)
    if not 2 <= n <= _MOST_PAIRS:
        raise SpaceError(
            f"{path.name}: expected 2 to {_MOST_PAIRS:,} pairs below the line of column names, got {n:,};"
            " add or remove lines"
        )
    columns = {}
    for name in names:
        cells = checked_labels(table.read(name, 0, n), f"{path.name}, column {name!r}")
        columns[name] = tuple(" ".join(cell.split()) for cell in cells)
        if empty := [row for row, cell in enumerate(columns[name]) if not cell]:
            raise SpaceError(
                f"{path.name}: expected text in every cell of {name!r}, got {len(empty)} empty, the first in"
                f" row {empty[0]}; fill these cells, or delete their rows"
            )
    return PairList(path.stem, columns)
