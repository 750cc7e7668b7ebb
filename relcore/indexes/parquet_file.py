"""A .parquet file as an index: a column with a vector per row, a column of ids, and all others as payload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from relcore import access
from relcore.indexes.columns import block_of, id_column, tables_of, vector_column
from relcore.indexes.index import BLOCK, Block, Target, VectorIndex
from relcore.indexes.npy_file import replacing
from relcore.progress import Report, silent
from relcore.sources.index_place import Place
from relcore.sources.rows import readable
from relcore.sources.tables import opened_table
from relcore.spaces import SpaceError

_MOST_GROUP = 1 << 30  # a row group is unpacked as a whole


class ParquetIndex(VectorIndex):
    """Reads row groups one after the other; those before `start` are not unpacked."""

    def __init__(self, path: Path, column: str) -> None:
        self.path, self.name = access.regular_file(path), column or path.stem
        with opened_table(path) as file:
            schema, facts = file.schema_arrow, file.metadata
            self._vectors, self._ids = vector_column(path.name, schema, column), id_column(schema)
            self.n = facts.num_rows
            groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
            largest = max((group.total_byte_size for group in groups), default=0)
            if largest > _MOST_GROUP or not self.n:
                got = f"one of {readable(largest)}" if self.n else "a file without rows"
                raise SpaceError(
                    f"{path.name}: expected row groups of at most {readable(_MOST_GROUP)}, got {got}; write the file again, "
                    "with row_group_size=16384"
                )
            self._starts = [sum(group.num_rows for group in groups[:number]) for number in range(len(groups))]
            first = next(file.iter_batches(1, columns=[self._vectors], use_threads=False))
            value = first.column(0)[0].as_py()
        self.width = len(value or ())
        if not self.width:
            raise SpaceError(f"{path.name}: expected a vector in the first row, got an empty one; mend or remove the row")

    @classmethod
    def open(cls, place: Place) -> ParquetIndex:
        return cls(place.path, place.table)

    def blocks(self, size: int = BLOCK, start: int = 0) -> Iterator[Block]:
        whole = [number for number, first in enumerate(self._starts) if first <= start][-1]
        row = self._starts[whole]
        with opened_table(self.path) as file:
            groups = list(range(whole, len(self._starts)))
            for batch in file.iter_batches(size, row_groups=groups, use_threads=False):
                block = batch.slice(max(0, start - row))
                row += batch.num_rows
                if block.num_rows:
                    yield block_of(self.path.name, block, row - block.num_rows, self._vectors, self._ids, self.width)

    @classmethod
    def write(cls, place: Place, blocks: Iterable[Block], target: Target, report: Report = silent) -> None:
        import pyarrow.parquet as parquet

        cls.need_target(place, target)
        path, tables = place.path, tables_of(place.path.name, blocks)
        first = next(tables)
        # Vectors hardly shrink: dictionaries and compression would cost more time than they save space.
        settings = {"use_dictionary": False, "compression": "none"}
        with replacing(path) as stream, parquet.ParquetWriter(stream, first.schema, **settings) as writer:
            for table in chain([first], tables):
                writer.write_table(table)
