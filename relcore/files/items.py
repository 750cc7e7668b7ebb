"""Tables of items on disk, .parquet, .csv and .tsv: any rows of one column, without the rest of the file
in memory.
"""

from __future__ import annotations

import csv
import json
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from relcore.base.errors import SpaceError, quote
from relcore.base.text import visible
from relcore.files.delimited import LONGEST_LINE, delimited_rows, is_number

ColumnKind = Literal["image", "text", "number", "other"]
SUFFIXES = (".parquet", ".csv", ".tsv")
_BATCH = 128
_REMEMBERED_BYTES = 32 * 1024**2
_ROWS_TO_LOOK_AT = 100


class ItemTable(Protocol):
    """Columns by name, and their rows; thread-safe.

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
    """

    name: str
    columns: dict[str, ColumnKind]
    class_names: dict[str, Sequence[str]]
    folder: Path | None

    def __len__(self) -> int: ...

    def read(self, column: str, start: int, stop: int) -> list[Any]: ...


def open_table(paths: Sequence[Path]) -> ItemTable:
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
    return ParquetTable(paths) if suffix == ".parquet" else DelimitedTable(first)


class ParquetTable:
    """Row groups are read batch by batch; the last batches are remembered, up to 32 MB, so that reading on
    is cheap.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        self.name, self.folder = paths[0].name, paths[0].parent
        self._broken = pa.ArrowException
        try:
            # Buffered, or a row group's column would be read whole before its first row.
            self._files = [parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False) for path in paths]
            schema = self._files[0].schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise SpaceError(
                f"{self.name}: expected a parquet file, got one that cannot be read ({visible(error, 200)});"
                " copy it again"
            ) from error
        if any(file.schema_arrow.names != schema.names for file in self._files):
            raise SpaceError(
                f"{self.name}: expected the same columns in all {len(paths)} parts, got others; write them"
                " again"
            )
        self.columns = {field.name: _arrow_kind(field.type) for field in schema}
        self.class_names = _class_names(schema.metadata or {})
        self._groups = [(file, group) for file in self._files for group in range(file.num_row_groups)]
        self._starts = [0]  # the first row of each group, and the number of rows
        for file, group in self._groups:
            self._starts.append(self._starts[-1] + file.metadata.row_group(group).num_rows)
        self._lock = threading.Lock()
        self._open: tuple[str, int, int, Iterator[Any]] | None = (
            None  # column, group, next batch's number, batches
        )
        self._batches: OrderedDict[tuple[str, int, int], Any] = OrderedDict()
        self._remembered = 0

    def __len__(self) -> int:
        return self._starts[-1]

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        values: list[Any] = []
        with self._lock:
            while start < stop:
                group = bisect_right(self._starts, start) - 1
                number, skip = divmod(start - self._starts[group], _BATCH)
                try:
                    batch = self._batch(column, group, number)
                except (self._broken, OSError) as error:
                    raise SpaceError(
                        f"{self.name}, row {start}: expected parquet data, got damaged ones"
                        f" ({visible(error, 200)}); copy it again"
                    ) from error
                taken = batch.slice(skip, stop - start)
                values += taken.to_pylist()
                start += len(taken)
        return values

    def _batch(self, column: str, group: int, number: int) -> Any:
        key = (column, group, number)
        if key in self._batches:
            self._batches.move_to_end(key)
            return self._batches[key]
        opened = self._open
        if opened is None or opened[:2] != key[:2] or opened[2] > number:
            file, local = self._groups[group]
            opened = (
                column,
                group,
                0,
                file.iter_batches(_BATCH, row_groups=[local], columns=[column], use_threads=False),
            )
        while True:
            column, group, following, batches = opened
            batch = next(batches).column(0)
            self._open = opened = (column, group, following + 1, batches)
            self._remember((column, group, following), batch)
            if following == number:
                return batch

    def _remember(self, key: tuple[str, int, int], batch: Any) -> None:
        known = self._batches.pop(key, None)
        self._remembered += batch.nbytes - (0 if known is None else known.nbytes)
        self._batches[key] = batch
        while self._remembered > _REMEMBERED_BYTES and len(self._batches) > 1:
            self._remembered -= self._batches.popitem(last=False)[1].nbytes


class DelimitedTable:
    """UTF-8 text, the first line names the columns. One pass finds where every 128th row begins; no row is
    kept.
    """

    folder = None
    class_names: dict[str, Sequence[str]] = {}  # noqa: RUF012, never filled

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        self._offsets: list[int] = []
        sample: list[list[str]] = []
        with path.open("rb") as stream:
            lines = _Lines(stream, 0, self.name)
            rows = csv.reader(lines, delimiter=self._delimiter, strict=True)
            try:
                self._names = self._header(next(rows, []))
            except csv.Error as error:
                raise self._no_row("line 1", error) from error
            self._n = 0
            offset = lines.offset
            for row in self._checked(rows, 0):
                if self._n % _BATCH == 0:
                    self._offsets.append(offset)
                if self._n < _ROWS_TO_LOOK_AT:
                    sample.append(row)
                self._n += 1
                offset = lines.offset
        self.columns = {name: _text_kind([row[i] for row in sample]) for i, name in enumerate(self._names)}

    def __len__(self) -> int:
        return self._n

    def read(self, column: str, start: int, stop: int) -> list[str]:
        if start >= stop:
            return []
        position = self._names.index(column)
        number = start // _BATCH
        with self._path.open("rb") as stream:
            stream.seek(self._offsets[number])
            rows = csv.reader(
                _Lines(stream, self._offsets[number], self.name), delimiter=self._delimiter, strict=True
            )
            checked = zip(range(number * _BATCH, stop), self._checked(rows, number * _BATCH), strict=False)
            return [cells[position] for row, cells in checked if row >= start]

    def _header(self, names: list[str]) -> list[str]:
        if not names or len(set(names)) < len(names):
            what = quote(names[:8]) if names else "an empty file"
            raise SpaceError(
                f"{self.name}: expected distinct column names in the first line, got {what}; name each column"
            )
        return names

    def _checked(self, rows: Iterator[list[str]], first: int) -> Iterator[list[str]]:
        """The rows that are not blank; each must have a cell for every column."""
        row = first
        try:
            for cells in rows:
                if not cells:
                    continue
                if len(cells) != len(self._names):
                    raise SpaceError(
                        f"{self.name}, row {row}: expected {len(self._names)} cells"
                        f" ({quote(self._names[:6])}), got {len(cells)}; put cells that hold"
                        f" {self._delimiter!r} into quotes"
                    )
                yield cells
                row += 1
        except csv.Error as error:
            raise self._no_row(f"row {row}", error) from error

    def _no_row(self, where: str, error: csv.Error) -> SpaceError:
        return SpaceError(
            f"{self.name}, {where}: expected cells in pairs of quotes and lines that end in a line feed, got"
            f" {error}; mend the table, or write it as parquet"
        )


class _Lines:
    """Lines of a file as text, and how many bytes of it they took so far."""

    def __init__(self, stream: Any, offset: int, name: str) -> None:
        self._stream, self.offset, self._name = stream, offset, name

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._stream.readline(LONGEST_LINE)
        if not line:
            raise StopIteration
        if len(line) == LONGEST_LINE or b"\0" in line:
            fault = "a zero byte" if b"\0" in line else f"{LONGEST_LINE:,} bytes or more"
            raise SpaceError(
                f"{self._name}, byte {self.offset}: expected a line of text, got {fault}; is it a table in"
                " UTF-8?"
            )
        text = line.removeprefix(b"\xef\xbb\xbf") if self.offset == 0 else line
        self.offset += len(line)
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            where = f"{self._name}, byte {self.offset - len(line) + error.start}"
            raise SpaceError(
                f"{where}: expected UTF-8, got another encoding; save the table as UTF-8"
            ) from error


def delimited_columns(path: Path) -> dict[str, ColumnKind]:
    """The columns of a .csv or .tsv by its first rows, without reading on; {} for a file that is no table."""
    with suppress(SpaceError, OSError):
        lines = delimited_rows(path, "\t" if path.suffix.lower() == ".tsv" else ",")
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
