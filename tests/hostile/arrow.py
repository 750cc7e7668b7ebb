"""Hostile .arrow tables and folders of saved datasets; the independent reading is pyarrow's whole table,
column by column.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tests.hostile.cases import Case, control, each, good, hole, link, places, rows, space, spoiled
from tests.hostile.npy import TABLE
from tests.hostile.npz import IDS, LABELS, PICKLE

FILE, FOLDER = "words.arrow", "saved"
PART = "data-00000-of-00001.arrow"


def arrow(columns: dict[str, Any], form: Any = pa.ipc.new_stream, rows: int = 5, **options: Any) -> bytes:
    table = pa.table(columns)
    stream = io.BytesIO()
    with form(stream, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return stream.getvalue()


def full(**change: Any) -> dict[str, Any]:
    return {"id": IDS, "label": LABELS, "vector": pa.array(list(TABLE), pa.list_(pa.float32(), 4))} | change


def truth(content: bytes) -> dict | None:
    """Of a table of ids, labels and vectors, in this order; what pyarrow reads but cannot validate is
    damaged.
    """
    try:
        begin = 8 if content[:8] == b"ARROW1\0\0" else 0
        with pa.ipc.open_stream(content[begin:]) as reader:
            table = reader.read_all()
        table.validate(full=True)
        named = {
            name.strip().lower().removesuffix("s"): column.to_pylist()
            for name, column in zip(table.column_names, table, strict=True)
        }
        vectors = np.array(table.column(2).to_pylist(), np.float32)
        # By another name it is still the first column of texts.
        ids = named.get("id", table.column(0).to_pylist())
        found = good(rows(vectors, ids, named.get("label")))  # of a label by another name nothing is known
    except Exception:
        return None
    return found


def cases() -> Iterator[Case]:
    read, everything = space(FILE), rows(TABLE, IDS, LABELS)
    whole = arrow(full())
    yield control("a stream", read, {FILE: whole}, everything)
    yield control("a file", read, {FILE: arrow(full(), pa.ipc.new_file)}, everything)
    loose = full(vector=pa.array(list(TABLE), pa.list_(pa.float64())))
    yield control("lists of float64", read, {FILE: arrow(loose)}, everything)
    named = full(id=pa.array(IDS).dictionary_encode())
    yield control("a dictionary of ids", read, {FILE: arrow(named)}, everything)
    limited = rows(TABLE[:6], IDS[:6], LABELS[:6])
    yield control("limit", space(FILE, limit=6), {FILE: whole}, limited)
    changes = {
        "NaN": {"vector": list(TABLE * np.float32(np.nan))},
        "a missing vector": {"vector": [*list(TABLE[:-1]), None]},
        "a shorter vector": {"vector": [*list(TABLE[:-1]), [1.0]]},
        "vectors of text": {"vector": [["a", "b"]] * 12},
        "two columns of vectors": {"other": list(TABLE)},
        "an id twice": {"id": [*IDS[:-1], IDS[0]]},
    }
    yield from each(read, FILE, {name: arrow(full(**change)) for name, change in changes.items()})
    no_rows = {name: pa.array(column)[:0] for name, column in full().items()}
    yield Case("no rows", read, {FILE: arrow(no_rows)})
    yield Case("no batches", read, {FILE: arrow(full())[: _first_batch(whole)] + b"\xff\xff\xff\xff\0\0\0\0"})
    for method in ("zstd", "lz4"):
        packed = arrow(full(), options=pa.ipc.IpcWriteOptions(compression=method))
        yield control(f"compressed by {method}", read, {FILE: packed}, everything)
    views = full(id=pa.array(IDS, pa.string_view()))
    yield control("ids as views", read, {FILE: arrow(views)}, everything)
    zeros, squeezed = np.zeros(10**7, np.float32), pa.ipc.IpcWriteOptions(compression="zstd")
    bomb = arrow({"x": zeros, "y": zeros}, rows=10**7, options=squeezed)
    yield Case("some kB that unpack to 80 MB", read, {FILE: bomb})
    million = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**5, np.int32)), pa.array(["x" * 10**6]))
    numbers = np.zeros(10**5, np.int8)
    named = arrow({"id": million, "x": numbers, "y": numbers}, rows=10**6)
    yield Case("one id of 1 MB for 10⁵ rows", read, {FILE: named})
    header = b"\xff\xff\xff\xff" + struct.pack("<I", 2 * 10**9 - 8)
    yield Case("a header of 2 GB", read, {FILE: hole(2 * 10**9, header)})
    yield Case("a pickle", read, {FILE: PICKLE})
    yield from places(FILE, read)
    points = (4, 8, _first_batch(whole), _first_batch(whole) + 8)
    yield from each(read, FILE, spoiled(whole, points, n_flips=40), truth)
    yield from _folders(whole)


def _folders(whole: bytes) -> Iterator[Case]:
    read, everything = space(FOLDER), rows(TABLE, IDS, LABELS)
    state = {"_data_files": [{"filename": PART}]}

    def case(name: str, state: Any, part: Any = whole, **more: Any) -> Case:
        files = {
            f"{FOLDER}/{PART}": part,
            f"{FOLDER}/state.json": state if callable(state) else json.dumps(state).encode(),
        }
        return Case(f"folder: {name}", read, files, names=(FOLDER, PART, "state.json"), **more)

    yield case("control", state, truth=everything, accept=True)
    twice = {"_data_files": [{"filename": PART}, {"filename": PART}]}
    yield case("a part twice", twice)
    for name, listed in {"a part above it": ["../" + PART], "a part that is missing": ["gone.arrow"]}.items():
        yield case(name, {"_data_files": [{"filename": one} for one in listed]})
    yield case("parts as text", {"_data_files": PART})
    yield case("a state of 3 GB", hole(3 * 10**9, b"{"))
    yield case("a part that is a device", state, link("/dev/zero"))


def _first_batch(whole: bytes) -> int:
    return 8 + int.from_bytes(whole[4:8], "little")
