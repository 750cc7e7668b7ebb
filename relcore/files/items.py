"""Tables of items on disk, .parquet, .csv and .tsv: any rows of one column, without the rest of the file
in memory.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from relcore.base.errors import SpaceError, quote
from relcore.files import confined
from relcore.files.formats import ARROW
from relcore.files.tables import (
    ParquetFile,
    delimited_batches,
    delimited_header,
    delimited_rows,
    holds_vectors,
    is_number,
)

ColumnKind = Literal["image", "text", "number", "other"]
SUFFIXES = (".parquet", ".csv", ".tsv")
_BATCH = 128
_REMEMBERED_BYTES = 32 * 1024**2
_ROWS_TO_LOOK_AT = 100


class ItemTable:
    """Columns by name, and their rows; thread-safe. Its file is parsed where `relcore.files.confined` says.

    Attributes
    ----------
    name : str
        For errors.
    columns : dict from name to kind
        An image is {"bytes": …, "path": …}, as in Hugging Face's tables, or its bytes.
    class_names : dict from column to names
        What the numbers of a label column stand for, where the table says so.
    folder : Path or None
        What the paths of images are relative to.
    has_vectors : bool
        Whether a column holds lists of numbers.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.folder = path.parent if path.suffix.lower() == ".parquet" else None
        self._table = confined.Opened("relcore.files.items:opened", path, ARROW)
        facts = self._table.facts
        self.columns: dict[str, ColumnKind] = facts["columns"]
        self.class_names: dict[str, Sequence[str]] = facts["class_names"]
        self.has_vectors, self._n = facts["has_vectors"], facts["n"]

    def __len__(self) -> int:
        return self._n

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        """The cells of these rows."""
        return self._table.call("read", column=column, start=start, stop=stop)


class JoinedTable:
    """The parts of one parquet table, one after the other, as one `ItemTable`."""

    def __init__(self, parts: Sequence[ItemTable]) -> None:
        self._parts, first = parts, parts[0]
        self.name, self.folder, self.columns = first.name, first.folder, first.columns
        self.class_names, self.has_vectors = first.class_names, first.has_vectors
        if any(list(part.columns) != list(first.columns) for part in parts):
            raise SpaceError(
                f"{self.name}: expected the same columns in all {len(parts)} parts, got others; write them"
                " again"
            )
        self._starts = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]

    def __len__(self) -> int:
        return self._starts[-1]

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        values: list[Any] = []
        while start < stop:
            number = bisect_right(self._starts, start) - 1
            end = min(stop, self._starts[number + 1])
            first = self._starts[number]
            values += self._parts[number].read(column, start - first, end - first)
            start = end
        return values


def open_table(paths: Sequence[Path]) -> ItemTable | JoinedTable:
    """The table in a file, or in the files that one parquet table was cut into."""
    first = paths[0]
    if not first.is_file():
        raise SpaceError(
            f"expected a file, got {str(first)!r}, where there is none; check the folder and the spelling"
        )
    suffix = first.suffix.lower()
    if suffix not in SUFFIXES:
        raise SpaceError(
            f"{first.name}: expected a table that ends in {', '.join(SUFFIXES)}, got"
            f" {suffix or 'no suffix'!r}"
        )
    if len(paths) > 1 and suffix != ".parquet":
        raise SpaceError(
            f"{first.name}: expected one {suffix} file, got {len(paths)} parts; join them, or write parquet"
        )
    return ItemTable(first) if len(paths) == 1 else JoinedTable([ItemTable(path) for path in paths])


def opened(path: Path) -> _Items:
    """The table in a file, as it is parsed."""
    return (_ParquetItems if path.suffix.lower() == ".parquet" else _DelimitedItems)(path)


class _Items:
    """What a table has for `ItemTable`."""

    def confined_facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n", "columns", "class_names", "has_vectors")}


class _ParquetItems(_Items):
    """Row groups are read batch by batch; the last batches are remembered, up to 32 MB, so that reading on
    is cheap.
    """

    def __init__(self, path: Path) -> None:
        parquet = ParquetFile(path)
        self._file, schema, self.n = parquet.file, parquet.schema, parquet.n_rows
        self.columns = {field.name: _arrow_kind(field.type) for field in schema}
        self.class_names = _class_names(schema.metadata or {})
        self.has_vectors = any(holds_vectors(field.type) for field in schema)
        self._starts = [0]  # the first row of each group, and the number of rows
        for group in range(self._file.num_row_groups):
            self._starts.append(self._starts[-1] + self._file.metadata.row_group(group).num_rows)
        self._open: tuple[str, int, int, Iterator[Any]] | None = None  # column, group, next batch, batches
        self._batches: OrderedDict[tuple[str, int, int], Any] = OrderedDict()

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        values: list[Any] = []
        while start < stop:
            group = bisect_right(self._starts, start) - 1
            number, skip = divmod(start - self._starts[group], _BATCH)
            taken = self._batch(column, group, number).slice(skip, stop - start)
            values += taken.to_pylist()
            start += len(taken)
        return values

    def _batch(self, column: str, group: int, number: int) -> Any:
        key = (column, group, number)
        if key in self._batches:
            self._batches.move_to_end(key)
            return self._batches[key]
        place = self._open
        if place is None or place[:2] != key[:2] or place[2] > number:
            some = self._file.iter_batches(_BATCH, row_groups=[group], columns=[column], use_threads=False)
            place = (column, group, 0, some)
        while True:
            _, _, following, batches = place
            batch = next(batches).column(0)
            self._open = place = (column, group, following + 1, batches)
            self._batches[column, group, following] = batch
            while len(self._batches) > 1 and sum(map(_bytes, self._batches.values())) > _REMEMBERED_BYTES:
                self._batches.popitem(last=False)
            if following == number:
                return batch


def _bytes(batch: Any) -> int:
    return batch.nbytes


class _DelimitedItems(_Items):
    """UTF-8 text, the first line names the columns. The column that was read last is kept."""

    has_vectors = False

    def __init__(self, path: Path) -> None:
        self._path, self.class_names = path, {}
        _, self._names, sample = delimited_header(path)
        with path.open("rb") as stream:
            if sum(block.count(b'"') for block in iter(lambda: stream.read(1 << 20), b"")) % 2:
                raise SpaceError(
                    f"{path.name}: expected cells in pairs of quotes, got an open one; mend the table, or"
                    " write it as parquet"
                )
        if not self._names or len(set(self._names)) < len(self._names):
            raise SpaceError(
                f"{path.name}: expected distinct column names in the first line, got"
                f" {quote(self._names[:8])}; name each column"
            )
        rows = [cells for _, cells in sample]
        self.columns = {name: _text_kind([row[i] for row in rows]) for i, name in enumerate(self._names)}
        self._column, self._cells = "", None
        self.n = len(self._of(self._names[0]))

    def _of(self, column: str) -> Any:
        import pyarrow as pa

        if self._cells is None or column != self._column:
            place = self._names.index(column)
            batches = [one.column(0) for one in delimited_batches(self._path, {place: pa.string()})]
            self._column, self._cells = column, pa.chunked_array(batches, pa.string())
        return self._cells

    def read(self, column: str, start: int, stop: int) -> list[str]:
        return self._of(column).slice(start, max(0, stop - start)).to_pylist()


def delimited_columns(path: Path) -> dict[str, ColumnKind]:
    """The columns of a .csv or .tsv by its first rows, without reading on; {} for a file that is no table."""
    with suppress(SpaceError, OSError):
        lines = delimited_rows(path)
        _, names = next(lines, (0, []))
        rows = [row for _, row in islice(lines, _ROWS_TO_LOOK_AT) if len(row) == len(names)]
        return {name: _text_kind([row[i] for row in rows]) for i, name in enumerate(names)} if rows else {}
    return {}


def _text_kind(cells: Sequence[str]) -> ColumnKind:
    filled = [cell for cell in cells if cell.strip()]
    return "number" if filled and all(map(is_number, filled)) else "text"


def _arrow_kind(kind: Any) -> ColumnKind:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _arrow_kind(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return "number"
    if pa.types.is_struct(kind):
        content, path = kind.get_field_index("bytes"), kind.get_field_index("path")
        if content < 0:
            return "other"
        only_paths = pa.types.is_null(kind.field(content).type) and path >= 0
        return "image" if only_paths or _arrow_kind(kind.field(content).type) == "image" else "other"
    return "image" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "other"


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, Sequence[str]]:
    """What Hugging Face's `datasets` writes into a parquet file about its label columns."""
    with suppress(ValueError, AttributeError, TypeError):
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        named = {
            column: feature.get("names") for column, feature in features.items() if isinstance(feature, dict)
        }
        return {column: names for column, names in named.items() if isinstance(names, list)}
    return {}
