"""Hostile .arrow tables and folders of saved datasets; the independent reading is pyarrow's whole table,
column by column.
"""

import io
import json
import struct

import numpy as np
import pyarrow as pa

from tests.hostile.cases import (
    IDS,
    LABELS,
    PICKLE,
    TABLE,
    Case,
    controls,
    each,
    good,
    hole,
    hurt,
    link,
    rows,
    space,
)

FILE = "words.arrow"
FOLDER = "saved"
PART = "data-00000-of-00001.arrow"


def arrow(columns, form=pa.ipc.new_stream, rows=5, **options):
    table = pa.table(columns)
    stream = io.BytesIO()
    with form(stream, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return stream.getvalue()


def full(**change):
    return {"id": IDS, "label": LABELS, "vector": pa.array(list(TABLE), pa.list_(pa.float32(), 4))} | change


def truth(content):
    """The reading of a table of ids, labels and vectors, in this order. A table that pyarrow reads but cannot
    validate is damaged.
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


def cases():
    read = space(FILE)
    everything = rows(TABLE, IDS, LABELS)
    whole = arrow(full())
    zstd = pa.ipc.IpcWriteOptions(compression="zstd")
    right = {
        "a stream": whole,
        "a file": arrow(full(), pa.ipc.new_file),
        "lists of float64": arrow(full(vector=pa.array(list(TABLE), pa.list_(pa.float64())))),
        "a dictionary of ids": arrow(full(id=pa.array(IDS).dictionary_encode())),
        "compressed by zstd": arrow(full(), options=zstd),
        "compressed by lz4": arrow(full(), options=pa.ipc.IpcWriteOptions(compression="lz4")),
        "ids as views": arrow(full(id=pa.array(IDS, pa.string_view()))),
    }
    yield from controls(read, FILE, {name: (content, everything) for name, content in right.items()})
    limited = rows(TABLE[:6], IDS[:6], LABELS[:6])
    yield from controls(space(FILE, limit=6), FILE, {"limit": (whole, limited)})
    changes = {
        "NaN": {"vector": list(TABLE * np.float32(np.nan))},
        "a missing vector": {"vector": [*list(TABLE[:-1]), None]},
        "a shorter vector": {"vector": [*list(TABLE[:-1]), [1.0]]},
        "vectors of text": {"vector": [["a", "b"]] * 12},
        "two columns of vectors": {"other": list(TABLE)},
        "an id twice": {"id": [*IDS[:-1], IDS[0]]},
    }
    zeros = np.zeros(10**7, np.float32)
    numbers = np.zeros(10**5, np.int8)
    million = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**5, np.int32)), pa.array(["x" * 10**6]))
    begin = 8 + int.from_bytes(whole[4:8], "little")  # of the first batch
    contents = {name: arrow(full(**change)) for name, change in changes.items()} | {
        "no rows": arrow({name: pa.array(column)[:0] for name, column in full().items()}),
        "no batches": whole[:begin] + b"\xff\xff\xff\xff\0\0\0\0",
        "some kB that unpack to 80 MB": arrow({"x": zeros, "y": zeros}, rows=10**7, options=zstd),
        "one id of 1 MB for 10⁵ rows": arrow({"id": million, "x": numbers, "y": numbers}, rows=10**6),
        "a header of 2 GB": hole(2 * 10**9, b"\xff\xff\xff\xff" + struct.pack("<I", 2 * 10**9 - 8)),
        "a pickle": PICKLE,
    }
    yield from each(read, FILE, contents)
    yield from hurt(FILE, whole, truth, (4, 8, begin, begin + 8), n_flips=40)
    usual = [{"filename": PART}]
    for name, listed, part in (
        ("control", usual, whole),
        ("a part twice", 2 * usual, whole),
        ("a part above it", [{"filename": "../" + PART}], whole),
        ("a part that is missing", [{"filename": "gone.arrow"}], whole),
        ("parts as text", PART, whole),
        ("a state of 3 GB", None, whole),
        ("a part that is a device", usual, link("/dev/zero")),
    ):
        if listed:
            state = json.dumps({"_data_files": listed}).encode()
        else:
            state = hole(3 * 10**9, b"{")
        files = {f"{FOLDER}/{PART}": part, f"{FOLDER}/state.json": state}
        names = (FOLDER, PART, "state.json")
        right = None
        if name == "control":
            right = everything
        yield Case(f"folder: {name}", space(FOLDER), files, right, name == "control", names)
