"""Spaces whose rows are split into several files, the shards of a folder. All files have one format. They are
on this machine, or at an address that fsspec can open, and are read in blocks of rows."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.names import FORMATS
from relcore.base.numbers import counted
from relcore.base.text import visible
from relcore.catalog.catalog import is_address
from relcore.files.formats import checked_ids, checked_labels, readable
from relcore.files.numpy_files import npy_layout, npy_rows
from relcore.files.parts import natural
from relcore.files.table_formats import ARROW_SUFFIXES
from relcore.files.vector_cells import decode_array, vectors_of
from relcore.runs.entries import digest_of
from relcore.sharded.places import READABLE, beside, filesystem, list_files, naming_place, open_url
from relcore.stores.index import id_column, vector_column

BLOCK_BYTES = 32 * 2**20  # bytes of a block of one space; two spaces are read together


@dataclass(frozen=True, eq=False)
class ShardBlock:
    """Consecutive rows of a shard: vectors (m, width) as float32, and ids and labels if they are read.
    `first` is the number of the block's first row within the shard.
    """

    first: int
    vectors: np.ndarray
    ids: list[str] | None = None
    labels: list[str] | None = None


@dataclass(frozen=True)
class Shard:
    """One file of a sharded space. Each format has a subclass with two methods: `read` yields blocks of rows;
    `header` reads the properties of a file without its rows, given the names of the files beside it.

    Attributes
    ----------
    name, url : str
        The name of the file, such as "part-00003.npy", and its path or fsspec address.
    start : int
        The number of the shard's first row in the whole space. If rows have no ids, their numbers are the
        ids.
    stamp : str
        A digest of the size and modification time of the files, to notice when they are written again.
    ids, labels : str
        The column, or the address of the file beside the shard, that has the ids or the labels; "" if there
        is none.
    vectors : str
        The name of the column of vectors, if the shard is a table.
    """

    name: str
    url: str
    n: int
    width: int
    start: int = 0
    stamp: str = ""
    ids: str = ""
    labels: str = ""
    vectors: str = ""
    written: ClassVar[str] = "npy"  # format in which mapped rows are written

    def blocks(self, rows: int = 0, labels: bool = False) -> Iterator[ShardBlock]:
        """Yield all rows in order, in blocks of `rows` rows. By default a block has 32 MB."""
        n = 0
        self.need_unchanged()
        for block in self.read(rows or rows_at_once(self.width), labels):
            yield block
            n += len(block.vectors)
        self.need_unchanged()
        if n != self.n:
            raise SpaceError(
                f"{self.name}: expected {self.n:,} rows, as its header says, got {n:,}; copy the shard again"
            )

    @property
    def files(self) -> tuple[str, ...]:
        """The addresses of all files that are read for this shard."""
        return (self.url,)

    def stamped(self) -> Self:
        """A copy of the shard with the present `stamp`."""
        return replace(self, stamp=digest_of([_stamp_of(url) for url in self.files]))

    def need_unchanged(self) -> None:
        """Raise a SpaceError if the shard was written again after it was opened, because results are stored
        under a key of the old content.
        """
        if self.stamped() != self:
            raise SpaceError(
                f"{self.name}: expected a shard that stays as it was when its folder was opened, got one"
                " that was written again; run the command again"
            )

    def holding(
        self, rows: np.ndarray, labels: bool = False
    ) -> Iterator[tuple[ShardBlock, np.ndarray, np.ndarray]]:
        """Find rows by their numbers, counted from the shard's first row. Yield each block that contains some
        of them, which of `rows` it contains, and their positions in the block."""
        if not len(rows):
            return
        for block in self.blocks(labels=labels):
            which = np.flatnonzero((rows >= block.first) & (rows < block.first + len(block.vectors)))
            yield block, which, rows[which] - block.first

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (m, width) of these rows. Rows are counted from the shard's first row, and may have any
        order."""
        out = np.empty((len(rows), self.width), dtype=np.float32)
        for block, which, places in self.holding(rows):
            out[which] = block.vectors[places]
        return out

    def ids_of(self, block: ShardBlock) -> np.ndarray:
        first = self.start + block.first
        ids = block.ids or [str(row) for row in range(first, first + len(block.vectors))]
        return np.array(ids, dtype=object)


def rows_at_once(*widths: int) -> int:
    """The largest number of rows for which a block of rows of each of these widths takes at most 32 MB."""
    return max(1, BLOCK_BYTES // (4 * max(widths)))


def aligned_blocks(shards: tuple[Shard, ...], labels: bool = False) -> Iterator[tuple[ShardBlock, ...]]:
    rows = rows_at_once(*(shard.width for shard in shards))
    return zip(*(shard.blocks(rows, labels) for shard in shards), strict=True)


def finite(shard: Shard, block: ShardBlock) -> np.ndarray:
    """The vectors of a block. If some are NaN or infinite, raises a SpaceError that names their rows."""
    with np.errstate(invalid="ignore"):
        if np.isfinite(block.vectors.sum(dtype=np.float64)):
            return block.vectors
    bad = np.flatnonzero(~np.isfinite(block.vectors).all(axis=1))
    if len(bad):
        raise SpaceError(
            f"{shard.name}, row {block.first + bad[0] + 1:,}: expected finite numbers, got NaN or infinite"
            f" values in {counted(len(bad), 'row')} of its block, first"
            f" {quote(shard.ids_of(block)[bad[:3]])}; drop or mend these rows in this shard, the results of"
            " the other shards are kept"
        )
    return block.vectors


# The files of shards, which lie on this machine or at an fsspec address.

_CHANGED = ("mtime", "LastModified", "last_modified", "updated", "ETag", "etag", "md5Hash", "created")


def _stamp_of(url: str) -> list[str]:
    files, path = filesystem(url)
    with naming_place(url, *READABLE):
        if not is_address(url):
            about = os.stat(path)  # os.stat follows links
            return [str(about.st_size), str(about.st_mtime_ns)]
        files.invalidate_cache()
        facts = files.info(path)
        return [str(facts[what]) for what in ("size", *_CHANGED) if what in facts]


# .npy files. Their ids and labels are in ``<stem>.ids.txt`` and ``<stem>.labels.txt`` beside each file, one
# per line.

_READ_ALONE = 64  # if fewer than one row in 64 of a shard is needed, each row is read by itself


@dataclass(frozen=True)
class NpyShard(Shard):
    """A shard in a .npy file. It is read block by block or, if only a few rows are needed, row by row."""

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.url, self.ids, self.labels)))

    @staticmethod
    def header(url: str, names: Sequence[str]) -> dict[str, Any]:
        folder, name = url.rsplit("/", 1)
        with open_url(url) as stream:
            (n, width), _, _ = npy_layout(stream, stream.seek(0, 2), name)
        texts = {what: f"{name.rsplit('.', 1)[0]}.{what}.txt" for what in ("ids", "labels")}
        columns = {what: beside(folder, text) for what, text in texts.items() if text in names}
        return {"n": n, "width": width, **columns}

    def read(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        columns = [
            _lines(url) if url and wanted else None
            for url, wanted in ((self.ids, True), (self.labels, labels))
        ]
        with open_url(self.url) as stream:
            shape, dtype, at = npy_layout(stream, stream.seek(0, 2), self.name)
            stream.seek(at)
            for first in range(0, shape[0], rows):
                m = min(rows, shape[0] - first)
                texts = [_next_lines(column, m) for column in columns]
                if any(text is not None and len(text) < m for text in texts):
                    raise self._unpaired("fewer")
                if "" in (texts[0] or ()):
                    raise SpaceError(
                        f"{self.name}, row {first + texts[0].index('') + 1:,}: expected an id, got an empty"
                        " line; write an id for every row"
                    )
                yield ShardBlock(first, npy_rows(stream, m, shape, dtype, self.name), *texts)
        if any(column is not None and next(column, None) is not None for column in columns):
            raise self._unpaired("more")

    def take(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) * _READ_ALONE > self.n:
            return super().take(rows)
        self.need_unchanged()
        out = np.empty((len(rows), self.width), dtype=np.float32)
        with open_url(self.url) as stream:
            shape, dtype, at = npy_layout(stream, stream.seek(0, 2), self.name)
            for place in np.argsort(rows, kind="stable"):
                stream.seek(at + int(rows[place]) * self.width * dtype.itemsize)
                out[place] = npy_rows(stream, 1, shape, dtype, self.name)
        self.need_unchanged()
        return out

    def _unpaired(self, got: str) -> SpaceError:
        return SpaceError(
            f"{self.name}: expected {self.n:,} ids or labels beside it, one per row, got {got}; write both"
            " again"
        )


def _next_lines(column: Iterator[str] | None, m: int) -> list[str] | None:
    if column is None:
        return None
    return list(islice(column, m))


def _lines(url: str) -> Iterator[str]:
    with open_url(url) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline=None) as lines:
        try:
            for line in lines:
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise SpaceError(
                f"{url!r:.200}: expected UTF-8 text, got {error.reason}; save it as UTF-8"
            ) from None


# .parquet, .arrow and .feather files. They have one column of vectors, and columns of ids and labels.

_MOST_GROUP = 1 << 29  # maximum bytes of a row group or batch, which can only be unpacked as a whole
_MAGIC = b"ARROW1"  # stands at both ends of an Arrow file, but not of an Arrow stream


@dataclass(frozen=True)
class TableShard(Shard):
    """A shard in a table, whose row groups (Parquet) or batches (Arrow) are read one after the other."""

    written: ClassVar[str] = "parquet"

    @staticmethod
    def header(url: str, names: Sequence[str]) -> dict[str, Any]:
        name = url.rsplit("/", 1)[1]
        with _table(url) as table:
            sizes = table.sizes()
            if (largest := max((n_bytes for _, n_bytes in sizes), default=0)) > _MOST_GROUP:
                raise SpaceError(
                    f"{name}: expected row groups or batches of at most {readable(_MOST_GROUP)}, got one of "
                    f"{readable(largest)}; write the file again, with row_group_size=16384"
                )
            vectors = vector_column(name, table.schema, "")
            n = sum(rows for rows, _ in sizes)
            width = 0
            if n:
                first = next(batch for batch in table.batches(1, [vectors]) if batch.num_rows)
                width = len(first.column(0)[0].as_py() or ())
                if not width:
                    raise SpaceError(f"{name}, row 1: expected a vector, got none; mend or remove the row")
            labels = next((label for label in ("label", "labels") if label in table.schema.names), "")
            ids = id_column(table.schema)
        return {"n": n, "width": width, "vectors": vectors, "ids": ids, "labels": labels}

    def read(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        import pyarrow as pa

        first = 0
        held = []
        n_held = 0
        with _table(self.url) as table:
            for batch in table.batches(rows, self._columns(labels)):
                held.append(batch)
                n_held += batch.num_rows
                while n_held >= rows:
                    whole = pa.Table.from_batches(held)
                    yield self._block(whole.slice(0, rows), first)
                    first += rows
                    held = whole.slice(rows).to_batches()
                    n_held -= rows
            if n_held:
                yield self._block(pa.Table.from_batches(held), first)

    def _columns(self, labels: bool) -> list[str]:
        columns = [self.vectors, self.ids]
        if labels:
            columns.append(self.labels)
        # One column can have two roles; a role without a column has the name "".
        return [name for name in dict.fromkeys(columns) if name]

    def _block(self, table: Any, first: int) -> ShardBlock:
        vectors = vectors_of([table.column(self.vectors).combine_chunks()], self.name, first, self.width)
        ids = None
        if self.ids:
            ids = checked_ids(table.column(self.ids).to_pylist(), self.name)
        labels = None
        if self.labels in table.column_names:
            texts = decode_array(table.column(self.labels).combine_chunks())
            labels = checked_labels(texts.to_pylist(), self.name)
        return ShardBlock(first, vectors, ids, labels)


_KINDS = {"array": NpyShard, "table": TableShard}
SHARDS = {suffix: _KINDS[entry.shard] for suffix, entry in FORMATS.own.items() if entry.shard}


class _Parquet:
    def __init__(self, file: Any) -> None:
        self._file = file
        self.schema = file.schema_arrow

    def sizes(self) -> list[tuple[int, int]]:
        facts = self._file.metadata
        groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
        return [(group.num_rows, group.total_byte_size) for group in groups]

    def batches(self, rows: int, columns: list[str]) -> Iterator[Any]:
        return self._file.iter_batches(rows, columns=columns, use_threads=False)


class _Arrow:
    """Reads the batches of an Arrow file in stream format or in file format. After its first eight bytes, a
    file in file format is a stream as well."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._begin = 8 if stream.read(6) == _MAGIC else 0
        if self._begin:  # a truncated Arrow file would lose batches without an error
            stream.seek(-len(_MAGIC), 2)
            if stream.read() != _MAGIC:
                raise ValueError("the end of the file before its last batch")
        self.schema = self._reader().schema

    def _reader(self) -> Any:
        import pyarrow as pa

        self._stream.seek(self._begin)
        return pa.ipc.open_stream(pa.PythonFile(self._stream))

    def sizes(self) -> list[tuple[int, int]]:
        return [(batch.num_rows, batch.nbytes) for batch in self._reader()]

    def batches(self, rows: int, columns: list[str]) -> Iterator[Any]:
        for batch in self._reader():
            wanted = batch.select(columns)
            wanted.validate(full=True)
            for start in range(0, len(wanted), rows):
                yield wanted.slice(start, rows)


@contextmanager
def _table(url: str) -> Iterator[_Parquet | _Arrow]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    name = url.rsplit("/", 1)[1]
    with open_url(url) as stream:
        try:
            if name.lower().endswith(ARROW_SUFFIXES):
                yield _Arrow(stream)
            else:  # with pre_buffer, every row group would stay in memory
                with parquet.ParquetFile(stream, pre_buffer=False) as file:
                    yield _Parquet(file)
        except SpaceError:
            raise
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise SpaceError(
                f"{name}: expected a table, got one that cannot be read ({visible(error, 200)}); write or"
                " copy it again"
            ) from error


_AT_ONCE = 16  # number of headers that are read at once


@dataclass(frozen=True)
class ShardedSpace:
    """The rows of all shards of a folder. The shards are in the order of their names ("part-2" before
    "part-10"). Empty shards are left out.

    `place` is the path or address of the folder, and `name` is its last part.
    """

    name: str
    place: str
    shards: tuple[Shard, ...]

    @classmethod
    def open(cls, place: str) -> ShardedSpace:
        """Open a folder of .npy, .parquet, .arrow or .feather files, given by its path or fsspec address."""
        if not is_address(str(place)):
            place = filesystem(str(place))[1]
        files = list_files(place)
        kinds = {name: kind for name in files for kind in SHARDS if name.lower().endswith(kind)}
        if not kinds:
            raise SpaceError(
                f"{place!r:.200}: expected a folder with shards ({', '.join(SHARDS)}), got none; name"
                " another folder"
            )
        if len(set(kinds.values())) > 1:
            raise SpaceError(
                f"{place!r:.200}: expected shards of one format, got"
                f" {', '.join(sorted(set(kinds.values())))}; keep one of them in this folder"
            )
        stems = {name.rsplit(".", 1)[0].lower(): name for name in sorted(kinds)}
        # Shards with the same name would have the same file of ids and the same file of results.
        if alike := sorted(kinds.keys() - stems.values()):
            pair = quote([alike[0], stems[alike[0].rsplit(".", 1)[0].lower()]])
            raise SpaceError(f"expected shards whose names differ, not only in case, got {pair}; rename one")

        def shard(name: str) -> Shard:
            kind = SHARDS[kinds[name]]
            url = beside(place, name)
            header = kind.header(url, files.keys())
            return kind(name, url, **header).stamped()

        # If numbers are equal, names are compared as text, so that "part-01" and "part-1" have a fixed order.
        names = sorted(kinds, key=lambda name: (natural(Path(name)), name))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shards = _with_first_rows(place, list(pool.map(shard, names)))
        return cls(place.rstrip("/").rsplit("/", 1)[-1] or "shards", place, shards)

    @property
    def n(self) -> int:
        return self.shards[-1].start + self.shards[-1].n

    @property
    def width(self) -> int:
        return self.shards[0].width

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.width

    @cached_property
    def digest(self) -> str:
        """A digest that changes when a shard is written again. It is computed from the `stamp` of each shard,
        so no rows are read."""
        return digest_of(
            "sharded", [(shard.name, shard.n, shard.width, shard.stamp) for shard in self.shards]
        )

    @property
    def alone(self) -> list[tuple[Shard, ...]]:
        return [(shard,) for shard in self.shards]

    def ids_of(self, rows: np.ndarray) -> list[str]:
        if not self.shards[0].ids:
            return [str(row) for row in rows]
        ids = np.empty(len(rows), dtype=object)
        for shard in self.shards:
            here = np.flatnonzero((rows >= shard.start) & (rows < shard.start + shard.n))
            for block, which, places in shard.holding(rows[here] - shard.start):
                ids[here[which]] = [block.ids[place] for place in places]
        return ids.tolist()


def is_sharded(place: str) -> bool:
    """Whether a path or an address names a folder of at least two shards with the same format and the same
    width."""
    if not is_address(place):  # two files of one format suffice, because the extra fsspec may be missing
        try:
            kinds = Counter(path.suffix.lower() for path in access.readable_path(place).iterdir())
        except OSError:
            return False
        if not any(kinds[kind] > 1 for kind in SHARDS):
            return False
    filesystem(place)  # the error says how to install fsspec
    try:
        return len(ShardedSpace.open(place).shards) > 1
    except SpaceError:
        return False


def _with_first_rows(place: str, shards: list[Shard]) -> tuple[Shard, ...]:
    """The shards that have rows, with the number of the first row of each. Raises a SpaceError if they do not
    belong together, for example because their widths differ."""
    full = [shard for shard in shards if shard.n]
    if not full:
        raise SpaceError(
            f"{place!r:.200}: expected shards with rows, got {len(shards):,} without any; write them again"
        )
    first = full[0]
    for shard in full[1:]:
        if shard.width != first.width:
            raise SpaceError(
                f"{place!r:.200}: expected shards of one width, got {first.width:,} in {first.name!r} and"
                f" {shard.width:,} in {shard.name!r}; move one of them to another folder, or open the files"
                " one by one"
            )
        if bool(shard.ids) != bool(first.ids):
            without = shard.name
            if shard.ids:
                without = first.name
            raise SpaceError(
                f"{place!r:.200}: expected ids in all shards or in none, {quote([without])} has none; write"
                " its ids, too"
            )
    starts = np.cumsum([0, *(shard.n for shard in full)]).tolist()
    return tuple(replace(shard, start=start) for shard, start in zip(full, starts, strict=False))


def _described(shard: Shard | None, space: ShardedSpace) -> str:
    if shard is None:
        return f"none of {space.name!r}"
    return f"{shard.n:,} rows in {shard.name!r} of {space.name!r}"


def shard_pairs(source: ShardedSpace, target: ShardedSpace) -> list[tuple[Shard, ...]]:
    """The pairs of shards to read together in a pass over two spaces. Shard i must have the same rows in the
    same order in both spaces. The ids are compared later, while the shards are read.
    """
    for first, second in zip_longest(source.shards, target.shards):
        if first is None or second is None or first.n != second.n:
            raise SpaceError(
                "expected shards with the same rows in the same order, got"
                f" {_described(first, source)} and {_described(second, target)}; write both with the same"
                " rows per shard, sorted by id"
            )
    return list(zip(source.shards, target.shards, strict=True))


def need_same_ids(shards: tuple[Shard, ...], blocks: tuple[ShardBlock, ...]) -> None:
    """Raise a SpaceError that names the first row whose ids differ between the shards."""
    if all(block.ids is None for block in blocks) and len({shard.start for shard in shards}) == 1:
        return
    ids_of_shards = [shard.ids_of(block) for shard, block in zip(shards, blocks, strict=True)]
    first = ids_of_shards[0]
    for shard, ids in zip(shards[1:], ids_of_shards[1:], strict=True):
        if len(differ := np.flatnonzero(ids != first)):
            row = int(differ[0])
            raise SpaceError(
                f"{shards[0].name!r} and {shard.name!r}, row {blocks[0].first + row + 1:,}: expected the same"
                f" id in both, got {quote([first[row], ids[row]])}; sort the rows of both spaces by id before"
                " they are written in shards"
            )
