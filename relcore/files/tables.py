"""Read tables (.csv, .tsv, .jsonl, .txt, .parquet, .arrow, .feather) with pyarrow in the confined process.

`relcore.files.reading` opens them from other processes. In .csv and .tsv files the first line names the
columns. A .txt file is read as a table with one column, `text`, that holds its lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as compute
from pyarrow import types

from relcore.base.errors import quote
from relcore.files.columns import Choices, Columns, ColumnValues, assign, assign_metadata
from relcore.files.formats import Regions
from relcore.files.vector_cells import NUMBER_TEXT, decode_array, is_list_type, is_number_type, is_vectors

ColumnKind = Literal["image", "text", "number", "other"]
BATCH_ROWS = 4096
ROWS_TO_LOOK_AT = 100
# number of rows and columns of a table of metadata that are examined
_FIRST_ROWS = 256
FIRST_COLUMNS = 64
_HELD_BYTES = 32 << 20
Batch = dict[int, Any]  # number of a column → Arrow array


class OpenedTable:
    """A table on disk.

    Attributes
    ----------
    names : list of str
    schema : Arrow's types of the columns
    n : int or None
        The number of rows; None if only the beginning of the file was read.
    starts : list of int
        The first row of each row group, and at the end the number of rows. `group(column, group)` returns the
        cells of a group.
    class_names : dict from label column to the names of its numbers
    missing : tuple of str
        Cells that stand for "no label".
    note, encoding : str
        A note on unusual properties of the file, and its text encoding; "" if there is none.
    """

    missing: tuple[str, ...] = ()
    note = encoding = ""
    n: int | None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = OrderedDict()
        self.class_names = {}

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        """Yield blocks of the cells of these columns, with at most `rows` rows each if the file allows it.
        Columns in `texts` are left as text."""
        raise NotImplementedError

    @property
    def starts(self) -> list[int]:
        return [0, self.n]

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """The kind of each column. "image" means cells of bytes, or cells {"bytes": …, "path": …} as in
        Hugging Face's tables.
        """
        return {name: _arrow_kind(field.type) for name, field in zip(self.names, self.schema, strict=True)}

    def values(self) -> list[ColumnValues]:
        """The kind of values in each column. Texts and bytes are judged by the first rows."""
        values = [
            ColumnValues(name, *_held(kind.type)) for name, kind in zip(self.names, self.schema, strict=True)
        ]
        places = [i for i, item in enumerate(values) if item.holds == "text" or item.note == _BYTES]
        if places:
            head = next(self.batches(places, ROWS_TO_LOOK_AT), {})
            for place, cells in head.items():
                values[place] = _text_values(values[place], cells)
        return values

    def roles(self, choices: Choices) -> Columns:
        columns = assign(self.path.name, self.values(), choices)
        place = columns.place("dimension")
        if place is None:
            width = None
        else:
            width = fixed_width(self.schema.field(place).type)
        return replace(columns, n=self.n, width=width, note=self.note)

    def width(self, columns: Columns) -> int:
        """The length of the vectors; 0 if the first row has no vector."""
        if columns.dimension:
            return columns.dimension
        place = columns.place("dimension")
        first = next((batch[place] for batch in self.batches([place], 1) if len(batch[place])), None)
        if first is None:
            return 0
        return compute.list_value_length(decode_array(first))[0].as_py() or 0

    def regions(self, columns: Columns, n: int) -> Regions | None:
        return None

    def first(self, places: Sequence[int], n: int) -> dict[int, list[Any]]:
        cells: dict[int, list[Any]] = {place: [] for place in places}
        if not places:
            return cells
        for batch in at_most(self.batches((), min(n, BATCH_ROWS), places), n):
            for place, some in batch.items():
                cells[place] += some.to_pylist()
        return cells

    def confined_facts(self) -> dict[str, Any]:
        facts = {"n": self.starts[-1], "columns": self.kinds, "class_names": self.class_names}
        return facts | {"encoding": self.encoding}

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        values: list[Any] = []
        while start < min(stop, self.starts[-1]):
            group = bisect_right(self.starts, start) - 1
            some = self._cells(column, group).slice(start - self.starts[group], stop - start)
            values += some.to_pylist()
            start += len(some)
        return values

    def _cells(self, column: str, group: int) -> Any:
        key = (column, group)
        held = self._held
        if key not in held:
            held[key] = self.group(column, group)
            while len(held) > 1 and sum(item.nbytes for item in held.values()) > _HELD_BYTES:
                held.popitem(last=False)
        held.move_to_end(key)
        return held[key]

    def metadata(self, choices: Choices) -> Columns:
        kinds = self.kinds
        name = self.path.name
        names = list(kinds)
        some = [i for i, item in enumerate(names[:FIRST_COLUMNS]) if kinds[item] in ("text", "number")]
        head = self.first(some, _FIRST_ROWS)
        columns = assign_metadata(name, kinds, head, lambda place: self._is_distinct(names[place]), choices)
        return replace(columns, n=self.starts[-1], note=self.note)

    def _is_distinct(self, column: str) -> bool:
        """Whether the cells of a column may be ids: none is empty or a fraction, and no two are equal."""
        parts = []
        for group in range(len(self.starts) - 1):
            part = self.group(column, group)
            if isinstance(part, pa.ChunkedArray):
                parts += part.chunks
            else:
                parts.append(part)
        cells = pa.chunked_array(parts)
        if types.is_floating(cells.type) or cells.null_count:
            return False
        if types.is_string(cells.type):
            blank = compute.equal(compute.utf8_trim_whitespace(cells), "")
            if compute.any(blank).as_py():
                return False
        return compute.count_distinct(cells).as_py() == len(cells)


def at_most(batches: Iterable[Batch], limit: int | None) -> Iterator[Batch]:
    for batch in batches:
        if limit is None:
            some = batch
        else:
            some = {place: cells.slice(0, limit) for place, cells in batch.items()}
        yield some
        if limit is not None:
            limit -= len(next(iter(some.values())))
            if not limit:
                return


def number_in_text(cell: str) -> str:
    return f"expected text as in other rows, got the number {quote([cell])}"


_BYTES = "bytes that are no text"


def fixed_width(kind: Any) -> int | None:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if types.is_fixed_size_list(kind):
        return kind.list_size
    return None


def _held(kind: Any) -> tuple[str, str]:
    if isinstance(kind, pa.BaseExtensionType):
        shape = getattr(kind, "shape", None)
        if shape is not None and len(shape) > 1:
            return "mixed", f"expected a vector per row, got an array of shape {tuple(shape)}"
        return _held(kind.storage_type)
    if types.is_dictionary(kind):
        return _held(kind.value_type)
    if is_list_type(kind) and (is_list_type(kind.value_type) or types.is_boolean(kind.value_type)):
        return "mixed", f"expected numbers or one list of numbers per row, got {kind}"
    for held, tests in (
        ("numbers", (is_number_type,)),
        ("text", (types.is_string, types.is_large_string, types.is_string_view)),
        ("flags", (types.is_boolean,)),
        ("vectors", (is_vectors,)),
    ):
        if any(test(kind) for test in tests):
            return held, ""
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "other", _BYTES
    return "other", f"of type {kind!s:.40}"


def _text_values(values: ColumnValues, cells: Any) -> ColumnValues:
    """The kind of values in a column of texts or bytes, judged by these cells. Older writers do not mark
    text, so bytes that are valid UTF-8 count as text."""
    cells = decode_array(cells)
    try:
        if values.note == _BYTES:
            cells = cells.cast(pa.large_binary())
        return _judged_texts(values, cells.cast(pa.large_string()))
    except pa.ArrowInvalid:  # no UTF-8; columns that are marked as text are checked only when they are read
        return values


def _judged_texts(values: ColumnValues, texts: Any) -> ColumnValues:
    """Whole numbers as text may be ids; fractions as text make the column unclear."""
    if texts.null_count == len(texts):
        return values
    texts = compute.utf8_trim_whitespace(texts)
    numbers = compute.match_substring_regex(texts, f"^({NUMBER_TEXT})$")
    fractions = compute.and_(numbers, compute.match_substring_regex(texts, "[^0-9]"))
    row = compute.index(fractions, True).as_py()
    if row >= 0:
        return ColumnValues(values.name, "mixed", number_in_text(texts[row].as_py()), f"row {row + 1}")
    return ColumnValues(values.name, "text", whole=compute.all(numbers).as_py())


def _arrow_kind(kind: Any) -> ColumnKind:
    if types.is_dictionary(kind):
        return _arrow_kind(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return "number"
    if types.is_struct(kind):
        content = kind.get_field_index("bytes")
        path = kind.get_field_index("path")
        inner = None
        if content >= 0:
            inner = kind.field(content).type
        only_paths = inner is not None and types.is_null(inner) and path >= 0
        if only_paths or (inner is not None and _arrow_kind(inner) == "image"):
            return "image"
        return "other"
    if types.is_binary(kind) or types.is_large_binary(kind):
        return "image"
    return "other"
