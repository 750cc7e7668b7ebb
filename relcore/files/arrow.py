"""Arrow tables on disk, .arrow, as Hugging Face's `datasets` saves them: the stream form, or the file form
around it.

Version 2 of Feather, .feather, is the file form.

The headers of all messages are read first, with plain Python: they tell the number of rows, and that every
size fits the file. A compressed message could unpack to any size, and `datasets` writes none, so those are
refused; pandas writes them unless told.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from relcore.base.errors import SpaceError
from relcore.files.columns import Columns
from relcore.files.parquet import stored
from relcore.files.rows import check_size, readable

_FILE_FORM = b"ARROW1\0\0"
_NEXT = b"\xff\xff\xff\xff"
_LONGEST_HEADER = 1 << 24
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
_AGAIN = "write it again, or save it as parquet"
ARROW = (".arrow", ".feather")
_FEATHER_1 = b"FEA1"


@dataclass(frozen=True)
class Account:
    """What the headers promise: the number of rows, the bytes of the largest message, and where the
    messages begin.
    """

    num_rows: int
    largest: int
    begin: int


class ArrowTable:
    """An Arrow file with what reading needs of a `pyarrow.parquet.ParquetFile`: schema, number of rows,
    batches.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path, self.metadata = path, account(path)
        with pa.OSFile(str(path)) as file:
            file.seek(self.metadata.begin)
            self.schema_arrow = pa.ipc.open_stream(file).schema

    def iter_batches(self, at_once: int, columns: Sequence[str], use_threads: bool = False) -> Iterator[Any]:
        """Batches of at most this many rows, of these columns; their offsets and indices are checked
        first.
        """
        import pyarrow as pa

        with pa.OSFile(str(self.path)) as file:
            file.seek(self.metadata.begin)
            for batch in pa.ipc.open_stream(file):
                wanted = batch.select(list(columns))
                wanted.validate(full=True)
                for start in range(0, len(wanted), at_once):
                    yield wanted.slice(start, at_once)

    def mapped_batches(self, column: str) -> Iterator[Any]:
        """This column of each batch, in the memory of a map of the file; offsets and indices are checked
        first.
        """
        import pyarrow as pa

        place = self.schema_arrow.get_field_index(column)
        with pa.memory_map(str(self.path)) as file:
            file.seek(self.metadata.begin)
            for batch in pa.ipc.open_stream(file, options=pa.ipc.IpcReadOptions(included_fields=[place])):
                batch.validate(full=True)
                yield batch.column(0)


def check_account(
    path: Path, file: ArrowTable, columns: Columns, limit: int | None, max_bytes: int, on_disk: bool = False
) -> int:
    """The width of the vectors, once it is known that they, unless they stay on disk, and their texts fit
    into memory.
    """
    import pyarrow.compute as compute

    n = file.metadata.num_rows if limit is None else min(file.metadata.num_rows, limit)
    places = columns.places("dimension")
    width = columns.dimension or 0
    if not width and n:
        first = next(file.iter_batches(1, [columns.columns[places[0]].name])).column(0)
        width = compute.list_value_length(stored(first))[0].as_py() or 0
    if n and not on_disk:
        check_size(path, n, max(1, width), max_bytes)
    if not on_disk and file.metadata.largest > max_bytes:
        raise SpaceError(
            f"{path.name}: expected batches that fit into memory, got one of"
            f" {readable(file.metadata.largest)}, more than max_bytes = {readable(max_bytes)}; write it in"
            " smaller batches, or allow more memory (max_bytes) if you trust the file"
        )
    texts = [
        columns.columns[place].name
        for role in ("ids", "labels")
        if (place := columns.place(role)) is not None
    ]
    size, rows = 0, 0
    for batch in file.iter_batches(1 << 16, texts) if texts else ():
        size += sum(_unpacked(column, path) for column in batch.columns)
        rows += len(batch)
        if 3 * size > max_bytes:  # unpacked, in Arrow's form and as Python's strings
            raise SpaceError(
                f"{path.name}: ids and labels of more than {readable(size)} take {readable(3 * size)}, more"
                f" than max_bytes = {readable(max_bytes)}; read fewer rows (limit), or allow more"
                " memory (max_bytes) if you trust the file"
            )
        if rows >= n:
            break
    return max(1, width)


def account(path: Path) -> Account:
    """What the headers of an .arrow file promise.

    Raises
    ------
    SpaceError
        Another file, one that was cut short, compressed batches.
    """
    with path.open("rb") as stream:
        return account_of(stream, path.stat().st_size, path.name)


def account_of(stream: BinaryIO, size: int, name: str) -> Account:
    """`account` of an open file of `size` bytes, which need not be on this machine."""
    stream.seek(0)
    start = stream.read(len(_FILE_FORM))
    begin = len(_FILE_FORM) if start == _FILE_FORM else 0
    if start.startswith(_FEATHER_1):
        raise SpaceError(f"{name}: expected version 2 of Feather, an Arrow table, got version 1; {_AGAIN}")
    stream.seek(begin)
    rows, largest, n_messages = 0, 0, 0
    while message := _message(name, stream, size):
        left = size - stream.tell()
        if not 0 <= message.body <= left:
            raise SpaceError(
                f"{name}: a batch promises {readable(message.body)}, but only {readable(left)} follow; it was"
                " cut short, copy or download it again"
            )
        if message.compressed:
            raise SpaceError(
                f"{name}: expected batches that are not compressed, got compressed ones; {_AGAIN} "
                "(of pandas: to_feather(path, compression='uncompressed'))"
            )
        rows, largest, n_messages = rows + message.rows, max(largest, message.body), n_messages + 1
        stream.seek(message.body, 1)
    if not n_messages:
        raise _other(name)
    return Account(rows, largest, begin)


@dataclass(frozen=True)
class _Message:
    """The header of a message: its number of rows (0 if it holds no records), the bytes of its body, and
    their form.
    """

    rows: int
    body: int
    compressed: bool


def _message(name: str, stream: BinaryIO, size: int) -> _Message | None:
    """The header that begins here, with the stream behind it; None after the last message."""
    start = stream.read(8)
    if start in (b"", _NEXT + bytes(4)):
        return None
    length = int.from_bytes(start[4:], "little")
    if len(start) < 8 or start[:4] != _NEXT or length > min(_LONGEST_HEADER, size - stream.tell()):
        raise _other(name)
    content = stream.read(length)
    try:
        message = _Table(content, struct.unpack_from("<I", content)[0])
        kind, body, inner = message.number("<B", 1), message.number("<q", 3), message.table(2)
        batch = inner.table(1) if inner and kind == _DICTIONARY else inner if kind == _RECORDS else None
        if batch is None:
            return _Message(0, body, False)
        rows = batch.number("<q", 0) if kind == _RECORDS else 0
        return _Message(max(0, rows), body, batch.table(3) is not None)
    except struct.error as error:
        raise _other(name) from error


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer, by the place where it begins; struct.error where it leads out of the
    buffer.
    """

    content: bytes
    at: int

    def number(self, form: str, field: int) -> int:
        place = self._place(field)
        return struct.unpack_from(form, self.content, place)[0] if place else 0

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        return (
            _Table(self.content, place + struct.unpack_from("<I", self.content, place)[0]) if place else None
        )

    def _place(self, field: int) -> int:
        """Where a field is, 0 where the table has none."""
        directory = self.at - struct.unpack_from("<i", self.content, self.at)[0]
        if directory < 0:
            raise struct.error("a table before the buffer")
        (length,) = struct.unpack_from("<H", self.content, directory)
        entry = 4 + 2 * field
        (offset,) = struct.unpack_from("<H", self.content, directory + entry) if entry < length else (0,)
        return self.at + offset if offset else 0


def _other(name: str) -> SpaceError:
    return SpaceError(
        f"{name}: expected an Arrow table as datasets.save_to_disk writes it, got another file or a damaged"
        f" one; {_AGAIN}"
    )


def _unpacked(column: Any, path: Path) -> int:
    """The bytes of the texts in a column once each row has its own."""
    import pyarrow as pa
    import pyarrow.compute as compute

    if pa.types.is_dictionary(column.type):
        try:
            lengths = compute.binary_length(column.dictionary).take(column.indices)
        except pa.ArrowNotImplementedError:  # of numbers
            return 8 * len(column)
        return compute.sum(lengths).as_py() or 0
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        raise SpaceError(
            f"{path.name}: expected ids and labels as plain strings, got {column.type}; {_AGAIN}"
        )
    return column.nbytes
