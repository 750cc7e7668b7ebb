"""Metadata: a table with one row per vector of another file, which gives ids, labels, counts, texts and
pictures.

Nothing in such a table is a dimension, so no column of it is unclear: what is neither chosen, nor named, nor
clearly of one kind is left out. Ids are guessed only where the whole column holds distinct ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.text import visible
from relcore.files.columns import (
    INDEX,
    NO_CHOICES,
    TEXT_NAMES,
    WORDS,
    Choices,
    Column,
    Columns,
    Role,
    chosen_roles,
)
from relcore.files.items import ItemTable, delimited_columns, open_table
from relcore.files.rows import checked_counts, checked_ids, checked_labels, readable
from relcore.files.tables import MISSING, delimited_rows

SUFFIXES = (".csv", ".tsv", ".parquet")
_LABEL_NAMES = (
    "class",
    "category",
    "target",
    "topic",
    "genre",
    "species",
    "language",
    "lang",
    "cluster",
    "group",
    "type",
)
_COUNT_NAMES = ("freq", "frequency", "occurrences")
_PICTURE = re.compile(r".+\.(png|jpe?g|webp|gif|bmp|tiff?)", re.IGNORECASE)
_ROWS_TO_LOOK_AT = 256
_COLUMNS_TO_LOOK_AT = 64
_AT_ONCE = 128
_LONG = 25  # characters of a text that is more than a name
_MOST_CLASSES = 50
_SHOWN = 60  # characters of a cell in a preview
_SERIES = 3  # columns named d0, d1, d2
_MANY_NUMBERS = 16


@dataclass(frozen=True)
class Metadata:
    """What a table tells about n rows; None where it has no such column."""

    ids: list[str] | None
    labels: list[str] | None
    counts: np.ndarray | None


def holds_vectors(path: Path) -> bool:
    """Whether a table looks like vectors rather than like metadata: a column of lists, a series of number
    columns, or many.

    Of a .csv or .tsv only the first rows are read. Errors as in `open_table`.
    """
    table = open_table([path]) if path.suffix.lower() == ".parquet" else None
    columns = table.columns if table else delimited_columns(path)
    if table and table.has_vectors:
        return True
    numbers = [name for name, kind in columns.items() if kind == "number"]
    series = Counter(re.sub(r"\d+$", "", name) for name in numbers if name[-1:].isdigit())
    return len(numbers) >= _MANY_NUMBERS or max(series.values(), default=0) >= _SERIES


def metadata_columns(path: Path, choices: Choices = NO_CHOICES) -> Columns:
    """The role of each column of a table of metadata, and why.

    Raises
    ------
    SpaceError
        No such table, choices that are no columns, two columns for one role.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "meta.csv"
    >>> _ = path.write_text("code,genre,year\\nr1,jazz,1959\\nr2,rock,1971\\nr3,jazz,1960\\nr4,rock,1975\\n")
    >>> [(column.name, column.role) for column in metadata_columns(path).columns]
    [('code', 'ids'), ('genre', 'labels'), ('year', 'left out')]
    """
    table = open_table([path])
    names = [name.strip() for name in table.columns]
    roles = chosen_roles(path.name, names, choices)
    looked_at = _Looked(table, roles)
    for role, guess in (
        ("pictures", looked_at.pictures),
        ("text", looked_at.text),
        ("ids", looked_at.ids),
        ("labels", looked_at.labels),
        ("counts", looked_at.counts),
    ):
        if not any(taken == role for taken, _ in roles.values()) and (found := guess()):
            roles[found[0]] = (role, found[1])
    held = {"number": "numbers", "text": "texts", "image": "pictures", "other": "neither numbers nor texts"}
    kinds = list(table.columns.values())
    columns = [
        Column(name, *roles.get(place, ("left out", held[kinds[place]]))) for place, name in enumerate(names)
    ]
    return Columns(tuple(columns), n=len(table))


def first_cells(path: Path, n: int = 3) -> dict[str, list[str]]:
    """The first n cells of each of the first columns, as short texts for a preview; {} for a table that
    cannot be read.

    Of a .csv or .tsv only these rows are read.
    """
    with suppress(SpaceError, OSError):
        if path.suffix.lower() == ".parquet":
            table = open_table([path])
            names = list(table.columns)[:_COLUMNS_TO_LOOK_AT]
            return {name: [_short(one) for one in table.read(name, 0, min(n, len(table)))] for name in names}
        rows = delimited_rows(path)
        _, names = next(rows, (0, []))
        some = [cells for _, cells in islice(rows, n) if len(cells) == len(names)]
        return {
            name.strip(): [_short(row[i]) for row in some]
            for i, name in enumerate(names[:_COLUMNS_TO_LOOK_AT])
        }
    return {}


def _short(cell: Any) -> str:
    """A cell in few characters; of a list the first numbers, of a picture where it is."""
    if isinstance(cell, dict):
        return visible(cell.get("path") or "(picture)", _SHOWN)
    if isinstance(cell, bytes):
        return "(bytes)"
    if isinstance(cell, list):
        some = [f"{one:.3g}" if isinstance(one, float) else str(one) for one in cell[:3]]
        return visible(", ".join(some) + " …" * (len(cell) > len(some)), _SHOWN)
    return "" if cell is None else visible(f"{cell:.6g}" if isinstance(cell, float) else cell, _SHOWN)


class _Looked:
    """Guesses by the names and the first rows of the columns that have no role yet."""

    def __init__(self, table: ItemTable, roles: dict[int, Any]) -> None:
        self._table, self._roles = table, roles
        self._kinds = list(table.columns.items())
        n = min(len(table), _ROWS_TO_LOOK_AT)
        self._samples = {
            place: table.read(name, 0, n)
            for place, (name, kind) in enumerate(self._kinds[:_COLUMNS_TO_LOOK_AT])
            if kind in ("text", "number")
        }

    def _free(self, *kinds: str) -> list[tuple[int, str]]:
        return [
            (place, name.strip().lower())
            for place, (name, kind) in enumerate(self._kinds)
            if kind in kinds and place not in self._roles
        ]

    def _texts(self, place: int) -> list[str]:
        return [one for one in self._samples.get(place, ()) if isinstance(one, str) and one.strip()]

    def pictures(self) -> tuple[int, str] | None:
        for place, _ in self._free("image"):
            return place, "pictures"
        for place, _ in self._free("text"):
            texts = self._texts(place)
            if texts and all(map(_PICTURE.fullmatch, texts)):
                return place, "names of picture files"
        return None

    def text(self) -> tuple[int, str] | None:
        free = self._free("text")
        for place, name in free:
            if name in TEXT_NAMES:
                return place, f"named {name!r}"
        for place, _ in free:
            texts = self._texts(place)
            spaced = sum(" " in one.strip() for one in texts)
            if texts and sum(map(len, texts)) >= _LONG * len(texts) and 2 * spaced > len(texts):
                return place, "long texts"
        return None

    def ids(self) -> tuple[int, str] | None:
        free = self._free("text", "number")
        named = [one for one in free if one[1] in WORDS or one[1].endswith(("_id", "uuid", "uid"))]
        texts = [
            one
            for one in self._free("text")
            if len(set(self._texts(one[0]))) == len(self._samples.get(one[0], "x"))
        ]
        index = [one for one in free[:1] if one[0] == 0 and self._kinds[0][0].strip() in INDEX]
        for found, reason in ((named, "named as ids"), (texts, "distinct texts"), (index, "an index")):
            for place, _ in found:
                if self._distinct(place):
                    return place, reason
        return None

    def labels(self) -> tuple[int, str] | None:
        for place, name in self._free("text", "number"):
            if name in _LABEL_NAMES or name.endswith(("_label", "_class", "_category")):
                return place, f"named {name!r}"
        for place, _ in self._free("text"):
            texts = self._texts(place)
            if 2 <= len(set(texts)) <= min(_MOST_CLASSES, len(texts) // 2):
                return place, "few distinct texts"
        return None

    def counts(self) -> tuple[int, str] | None:
        return next(
            ((place, f"named {name!r}") for place, name in self._free("number") if name in _COUNT_NAMES), None
        )

    def _distinct(self, place: int) -> bool:
        seen: set[Any] = set()
        name, n = self._kinds[place][0], len(self._table)
        for start in range(0, n, _AT_ONCE):
            values = self._table.read(name, start, min(start + _AT_ONCE, n))
            if not all(isinstance(one, int) or (isinstance(one, str) and one.strip()) for one in values):
                return False
            seen.update(values)
            if len(seen) < start + len(values):
                return False
        return True


def read_metadata(
    path: Path, n: int, *, of: str, limit: int | None, max_bytes: int, choices: Choices
) -> Metadata:
    """What a table tells about the n vectors that were read from the file named `of`.

    Raises
    ------
    SpaceError
        Another number of rows, ids that are empty, counts that are no counts; more than `max_bytes` of text.
    """
    table = open_table([path])
    if len(table) != n and not (limit == n < len(table)):
        raise SpaceError(
            f"{path.name}: expected {n:,} rows, one per vector of {of}, got {len(table):,}; save both from"
            " the same rows"
        )
    columns = metadata_columns(path, choices)

    def cells(role: Role) -> list[Any] | None:
        place = columns.place(role)
        return None if place is None else column_values(table, list(table.columns)[place], n, max_bytes)

    ids, labels, counts = cells("ids"), cells("labels"), cells("counts")
    if labels is not None:
        names = table.class_names.get(columns.columns[columns.place("labels")].name)
        labels = checked_labels([_label(one, names) for one in labels], path.name)
    return Metadata(
        None if ids is None else checked_ids(ids, path.name),
        labels,
        None if counts is None else checked_counts(counts, path.name),
    )


def column_values(table: ItemTable, name: str, n: int, max_bytes: int) -> list[Any]:
    """The first n cells of a column, refused where their texts take more than `max_bytes`."""
    values: list[Any] = []
    taken = 0
    for start in range(0, n, _AT_ONCE):
        some = table.read(name, start, min(start + _AT_ONCE, n))
        taken += sum(len(one) for one in some if isinstance(one, str | bytes))
        if taken > max_bytes:
            raise SpaceError(
                f"{table.name}, column {name!r:.80}: expected texts of at most {readable(max_bytes)}, got"
                " more; choose another column"
            )
        values += some
    return values


def _label(value: Any, names: Sequence[str] | None) -> Any:
    if isinstance(value, str) and value in MISSING:
        return ""
    if names and isinstance(value, int) and not isinstance(value, bool):
        return names[value] if 0 <= value < len(names) else ""
    return value
