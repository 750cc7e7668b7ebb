"""Tables of Parquet, Arrow and Feather."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from relcore.files.columns import Columns
from relcore.files.formats import MAPPED, Regions
from relcore.files.tables import Batch, OpenedTable, fixed_width
from relcore.files.vector_cells import is_list_type


def _of_names(table: OpenedTable, places: Sequence[int], batches: Iterable[Any]) -> Iterator[Batch]:
    for batch in batches:
        yield {place: batch.column(table.names[place]) for place in places}


class ParquetTable(OpenedTable):
    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as parquet

        super().__init__(path)
        # Without pre_buffer, which would keep every row group in memory.
        self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        self.schema = self.file.schema_arrow
        self.names = self.schema.names
        self.n = self.file.metadata.num_rows
        self.class_names = _class_names(self.schema.metadata or {})

    @cached_property
    def starts(self) -> list[int]:
        facts = self.file.metadata
        sizes = (facts.row_group(group).num_rows for group in range(facts.num_row_groups))
        return list(accumulate(sizes, initial=0))

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        places = (*places, *texts)
        names = [self.names[place] for place in places]
        return _of_names(self, places, self.file.iter_batches(rows, columns=names, use_threads=False))

    def group(self, column: str, group: int) -> Any:
        rows = max(1, self.starts[group + 1] - self.starts[group])
        some = self.file.iter_batches(rows, row_groups=[group], columns=[column], use_threads=False)
        return pa.chunked_array([batch.column(0) for batch in some])

    def regions(self, columns: Columns, n: int) -> Regions | None:
        names = tuple(columns.columns[place].name for place in columns.places("dimension"))
        return Regions([], names, decoded=(n, max(1, self.width(columns))))


class ArrowTable(OpenedTable):
    """An .arrow file (in stream or file form) or a file of Feather version 2, as a memory map."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with pa.memory_map(str(path)) as file:
            self._whole = file.read_buffer()
        self._in_file = self._whole[:6].to_pybytes() == b"ARROW1"
        self.schema = self._reader().schema
        self.names = self.schema.names
        self.n = sum(batch.num_rows for batch in self._all())

    def _reader(self) -> Any:
        if self._in_file:
            return pa.ipc.open_file(self._whole)
        return pa.ipc.open_stream(self._whole)

    def _all(self) -> Iterator[Any]:
        reader = self._reader()
        if self._in_file:
            return (reader.get_batch(number) for number in range(reader.num_record_batches))
        return iter(reader)

    def batches(self, places: Sequence[int], rows: int, texts: Sequence[int] = ()) -> Iterator[Batch]:
        # With rows=0, batches have any size. Offsets and indices are validated first.
        places = (*places, *texts)
        for batch in self._all():
            selected = batch.select([self.names[place] for place in places])
            selected.validate(full=True)
            step = rows or max(1, len(selected))
            parts = (selected.slice(start, step) for start in range(0, len(selected), step))
            yield from _of_names(self, places, parts)

    def regions(self, columns: Columns, n: int) -> Regions | None:
        places = columns.places("dimension")
        if len(places) != 1:
            return None
        parts = []
        rows = 0
        width = None
        for batch in self.batches(places, 0):
            part = self._region(batch[places[0]])
            if part is None:
                return None
            at, kind, (m, d) = part
            if width is not None and d != width:
                return None
            width = d
            m = min(m, n - rows)
            parts.append((at, kind, (m, d)))
            rows += m
            if rows == n:
                break
        if rows:
            return Regions(parts, (self.names[places[0]],))
        return None

    def _region(self, column: Any) -> tuple[int, str, tuple[int, int]] | None:
        """The position, in the mapped file, of the lists of a column; None if they cannot be mapped."""
        kind = column.type
        if not is_list_type(kind) or not types.is_floating(kind.value_type) or column.null_count:
            return None
        values = column.flatten()
        width = fixed_width(kind)
        if width is not None:
            lengths = {width}
        else:
            lengths = set(np.diff(column.offsets.to_numpy()).tolist())
        dtype = np.dtype(values.type.to_pandas_dtype())
        if values.null_count or len(lengths) != 1 or lengths == {0} or dtype.name not in MAPPED:
            return None
        at = values.buffers()[1].address + values.offset * dtype.itemsize - self._whole.address
        inside = at >= 0 and at + len(values) * dtype.itemsize <= self._whole.size
        if inside:
            return (at, dtype.name, (len(column), lengths.pop()))
        return None


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, Sequence[str]]:
    # In a parquet file, the metadata of Hugging Face's `datasets` contains the class names.
    with suppress(ValueError, AttributeError, TypeError):
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        named = {name: item.get("names") for name, item in features.items() if isinstance(item, dict)}
        return {column: names for column, names in named.items() if isinstance(names, list)}
    return {}
