"""The folder that mapped shards are written to: one file for each shard, whole or not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress

import numpy as np

from relcore.sharded.files import beside, filesystem, listed, opened, replacing
from relcore.sharded.shard import Block, Shard
from relcore.spaces import SpaceError, need_one_of

FORMATS = ("npy", "parquet")
MARK = "_relscope.json"  # which work writes into the folder; a name with _ is no shard


def default_format(shard: Shard) -> str:
    """That of the source, and parquet for Arrow."""
    return "npy" if shard.kind in (".npy", ".made") else "parquet"


def need_folder(place: str, key: str) -> None:
    """Make the folder, or find that the same work began to write there.

    Raises
    ------
    SpaceError
        It holds something else.
    """
    files, path = filesystem(place)
    mark = beside(place, MARK)
    if files.exists(path):
        marked = files.exists(beside(path, MARK))
        if marked:
            with opened(mark) as stream, suppress(ValueError):  # a damaged one is of other work
                found = json.loads(stream.read())
                if isinstance(found, dict) and found.get("key") == key:
                    return
        if marked or listed(place):
            raise SpaceError(
                f"{place!r:.200}: expected a new or empty folder for the shards, got one with files; choose another"
            )
    files.makedirs(path, exist_ok=True)
    with replacing(mark) as stream:
        stream.write(json.dumps({"key": key}).encode())


def write_shard(place: str, shard: Shard, kind: str, blocks: Iterable[Block], width: int) -> list[str]:
    """Write the blocks as one file, named after their shard, and return what was written: addresses.

    Ids and labels go with the rows, as `ShardedSpace.open` reads them again.
    """
    need_one_of("format", kind, FORMATS)
    stem = shard.name.rsplit(".", 1)[0]
    return (_npy if kind == "npy" else _parquet)(beside(place, f"{stem}.{kind}"), shard, blocks, width)


def are_there(urls: Iterable[str]) -> bool:
    """Whether all these files exist."""
    found = (filesystem(url) for url in urls)
    return all(files.exists(path) for files, path in found)


def _npy(url: str, shard: Shard, blocks: Iterable[Block], width: int) -> list[str]:
    stem = url.rsplit(".", 1)[0]
    columns = [what for what in ("ids", "labels") if getattr(shard, what)]
    urls = {what: f"{stem}.{what}.txt" for what in columns}
    with ExitStack() as open_files:  # the vectors are closed last, so that their file is there once all are
        stream = open_files.enter_context(replacing(url))
        texts = {what: open_files.enter_context(replacing(one)) for what, one in urls.items()}
        header = {"descr": "<f4", "fortran_order": False, "shape": (shard.n, width)}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            for what, text in texts.items():
                text.write(_lines(shard.name, what, getattr(block, what)))
    return [url, *urls.values()]


def _lines(name: str, what: str, column: list[str]) -> bytes:
    text = "\n".join(column)
    if text.count("\n") != len(column) - 1 or "\r" in text:
        raise SpaceError(f"{name}: expected {what} without line breaks, got one with a line break; write parquet instead")
    return f"{text}\n".encode()


def _parquet(url: str, shard: Shard, blocks: Iterable[Block], width: int) -> list[str]:
    import pyarrow.parquet as parquet

    tables = _tables(blocks, width)
    first = next(tables)
    # Vectors hardly shrink: dictionaries and compression would cost more time than they save space.
    settings = {"use_dictionary": False, "compression": "none"}
    with replacing(url) as stream, parquet.ParquetWriter(stream, first.schema, **settings) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    return [url]


def _tables(blocks: Iterable[Block], width: int) -> Iterator:
    import pyarrow as pa

    for block in blocks:
        texts = {"id": block.ids, "label": block.labels}
        columns = {name: pa.array(column, pa.string()) for name, column in texts.items() if column is not None}
        values = pa.array(np.ascontiguousarray(block.vectors, np.float32).ravel())
        yield pa.table({**columns, "vector": pa.FixedSizeListArray.from_arrays(values, width)})
