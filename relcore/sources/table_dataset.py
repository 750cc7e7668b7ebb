"""A table becomes a dataset: which column holds the items, which the labels, and which rows count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relcore.access import allowed
from relcore.sources.dataset import BLOCK, Dataset, DatasetSpec
from relcore.sources.images import decode_image, image_file
from relcore.sources.item_tables import ColumnKind, ItemTable
from relcore.spaces import SpaceError, quote

_TEXT_NAMES = ("text", "sentence", "content")
_LABEL_NAMES = ("label", "labels", "class", "category", "target")
_READ_AT_ONCE = 4096


def table_dataset(table: ItemTable, spec: DatasetSpec, name: str, **defaults: Any) -> Dataset:
    """The items of a table; ids are `name/row`, so two columns of one table match each other and nothing else.

    Raises
    ------
    SpaceError
        A column that is not there or holds neither images nor text, rows with empty text, no rows.
    """
    settings = spec.settings(empty="error", **defaults)
    if settings["empty"] not in ("error", "drop"):
        raise SpaceError(f"empty: expected 'error' or 'drop', got {settings['empty']!r}")
    n = min(len(table), spec.limit or len(table))
    if not n:
        raise SpaceError(f"{table.name}: expected at least one row, got none; add rows")
    label_column = _chosen_label(table, spec)
    column = _chosen_item(table, spec, label_column)
    rows = np.arange(n)
    if table.columns[column] == "text":
        rows = _filled(table, column, n, drop=settings["empty"] == "drop")
    labels = None if label_column is None else _labels(table, label_column, n)[rows]
    shared = len(set(item_columns(table.columns)) - {label_column, *_label_names(table)} | {column}) > 1
    reader = _Rows(table, column, rows)
    images = table.columns[column] == "image"
    return Dataset(
        reader.images if images else reader.values,
        [f"{name}/{row}" for row in rows],
        name=f"{name} · {column}" if shared else name,
        kind="images" if images else "texts",
        labels=labels,
        content=reader.content if images else None,
    )


def item_columns(columns: dict[str, ColumnKind]) -> list[str]:
    """What can be encoded: images first, then texts."""
    return [name for kind in ("image", "text") for name, found in columns.items() if found == kind]


def label_columns(columns: dict[str, ColumnKind]) -> list[str]:
    return [name for name, kind in columns.items() if kind in ("number", "text")]


class _Rows:
    """Rows of one column by their place among those that count."""

    def __init__(self, table: ItemTable, column: str, rows: np.ndarray) -> None:
        self._table, self._column, self._rows = table, column, rows

    def values(self, start: int, stop: int) -> list[Any]:
        rows = self._rows[start:stop]
        if not len(rows):
            return []
        values = self._table.read(self._column, int(rows[0]), int(rows[-1]) + 1)
        return [values[row] for row in rows - rows[0]]

    def images(self, start: int, stop: int) -> list[Any]:
        values = zip(self._rows[start:stop], self.values(start, stop), strict=True)
        return [decode_image(self._bytes(value, row), f"{self._table.name}, row {row}") for row, value in values]

    def content(self) -> Iterator[bytes]:
        for start in range(0, len(self._rows), BLOCK):
            values = zip(
                self._rows[start : start + BLOCK], self.values(start, min(start + BLOCK, len(self._rows))), strict=True
            )
            for row, value in values:
                yield self._bytes(value, row) or b""

    def _bytes(self, value: Any, row: int) -> bytes | None:
        if not isinstance(value, dict):
            return value
        path = value.get("path")
        if value.get("bytes") or not path:
            return value.get("bytes")
        try:
            place = allowed((self._table.folder or Path()) / path)
            return image_file(place) if place.exists() else place.read_bytes()
        except (OSError, SpaceError) as error:
            where, got = f"{self._table.name}, row {row}", getattr(error, "strerror", None) or error
            raise SpaceError(f"{where}: expected the image {path!r:.200}, got {got}; store its bytes instead") from error


def _chosen_item(table: ItemTable, spec: DatasetSpec, label_column: str | None) -> str:
    choices = item_columns(table.columns)
    if spec.column:
        if spec.column not in choices:
            held = {"number": "numbers", "other": "something else"}.get(table.columns.get(spec.column, ""), "")
            got = f"{spec.column!r}, which holds {held}" if held else repr(spec.column)
            raise SpaceError(f"{table.name}: column: expected one with images or text, {_listed(choices)}, got {got}")
        return spec.column
    free = [name for name in choices if name != label_column]
    images = [name for name in free if table.columns[name] == "image"]
    named = [name for name in free if name.lower() in _TEXT_NAMES]
    if not free:
        raise SpaceError(f"{table.name}: expected a column of images or text, got only {quote(table.columns)}; add one")
    return (images or named or free)[0]


def _chosen_label(table: ItemTable, spec: DatasetSpec) -> str | None:
    choices = label_columns(table.columns)
    if spec.label_column:
        if spec.label_column not in choices:
            raise SpaceError(
                f"{table.name}: label_column: expected one with text or numbers, {_listed(choices)}, got {spec.label_column!r}"
            )
        return spec.label_column
    return next((name for name in _label_names(table) if name != spec.column), None)


def _label_names(table: ItemTable) -> list[str]:
    """Columns that are called labels, the plainest name first."""
    choices = label_columns(table.columns)
    exact = [name for name in choices if name.lower() in _LABEL_NAMES]
    return exact + [name for name in choices if name.lower().endswith(("_label", "_class", "_category"))]


def _listed(names: Sequence[str]) -> str:
    names = list(names)
    return f"of {quote(names)}" if names else "and the table has none"


def _filled(table: ItemTable, column: str, n: int, drop: bool) -> np.ndarray:
    """Numbers of the rows with text; empty ones are an error that names them, unless they are dropped."""
    empty = np.zeros(n, dtype=bool)
    for start in range(0, n, _READ_AT_ONCE):
        texts = table.read(column, start, min(start + _READ_AT_ONCE, n))
        empty[start : start + len(texts)] = [not (text and text.strip()) for text in texts]
    if empty.any() and not drop:
        rows = ", ".join(map(str, np.flatnonzero(empty)[:5]))
        raise SpaceError(
            f"{table.name}: expected text in every row of {column!r}, got {empty.sum()} empty of {n} (rows {rows}, counted "
            "from 0); fill them, or leave them out with the option empty='drop'"
        )
    return np.flatnonzero(~empty)


def _labels(table: ItemTable, column: str, n: int) -> np.ndarray:
    names = table.class_names.get(column)
    labels = np.empty(n, dtype=object)
    for start in range(0, n, _READ_AT_ONCE):
        values = table.read(column, start, min(start + _READ_AT_ONCE, n))
        labels[start : start + len(values)] = [_label(value, names) for value in values]
    return labels


def _label(value: Any, names: Sequence[str] | None) -> str:
    """3 and 3.0 are one class; missing values have none."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if names and isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return "" if names and value == -1 else str(value)
