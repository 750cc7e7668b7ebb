"""Hostile .parquet files of vectors; the independent reading is pyarrow's whole table, column by column."""

from __future__ import annotations

import decimal
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.cases import Case, good, places, rows, space, spoiled
from tests.hostile.corpus import changes
from tests.hostile.npy import TABLE
from tests.hostile.npz import COUNTS, IDS, LABELS

FILE = "words.parquet"
N = range(12)


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    names = list(columns)
    arrays = [
        column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
        for column in columns.values()
    ]
    pq.write_table(pa.Table.from_arrays(arrays, names=names), stream, **options)
    return stream.getvalue()


def dims() -> dict[str, Any]:
    return {f"d{number}": TABLE[:, number] for number in range(4)}


def truth(content: bytes) -> dict | None:
    """Number columns without gaps are the dimensions; ids, labels and counts go by name, else the first
    text is the ids.
    """
    try:
        table = pq.read_table(io.BytesIO(content), use_threads=False)
        names, vectors, roles = table.column_names, [], {}
        if len(set(names)) < len(names):
            return None
        for name in names:
            for role in ("id", "label", "count"):
                if name.strip().lower() in (role, f"{role}s"):
                    roles.setdefault(role, name)
        for name in names:
            column, kind = table[name], table[name].type
            if name in roles.values():
                continue
            if pa.types.is_integer(kind) or pa.types.is_floating(kind):
                if column.null_count:
                    return None
                vectors.append(np.asarray(column, dtype=np.float64))
            elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
                roles.setdefault("id", name)
            else:
                return None
        ids = table[roles["id"]].to_pylist() if "id" in roles else None
        labels = table[roles["label"]].to_pylist() if "label" in roles else None
        counts = table[roles["count"]].to_pylist() if "count" in roles else None
    except Exception:
        return None
    if not vectors or not all(ids is None or isinstance(one, str | int) for one in ids or ()):
        return None
    if counts is not None and not all(type(one) is int for one in counts):
        return None
    if labels is not None and not all(one is None or isinstance(one, str | int) for one in labels):
        return None
    with np.errstate(over="ignore"):
        return good(
            rows(
                np.column_stack(vectors),
                None if ids is None else [str(one) for one in ids],
                None if labels is None else ["" if one is None else str(one) for one in labels],
                counts,
            )
        )


def cases() -> Iterator[Case]:
    read, full = space(FILE), {"id": IDS, **dims(), "label": LABELS, "count": COUNTS}
    whole = parquet(full)
    yield Case("control: all columns", read, {FILE: whole}, rows(TABLE, IDS, LABELS, COUNTS), accept=True)
    limited = rows(TABLE[:5], IDS[:5], LABELS[:5], COUNTS[:5])
    yield Case("control: limit", space(FILE, limit=5), {FILE: whole}, limited, accept=True)
    yield Case(
        "control: one column of lists",
        read,
        {FILE: parquet({"id": IDS, "v": TABLE.tolist()})},
        rows(TABLE, IDS),
        accept=True,
    )
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(TABLE.ravel()), 4)
    yield Case(
        "control: lists of fixed length",
        read,
        {FILE: parquet({"id": IDS, "v": fixed})},
        rows(TABLE, IDS),
        accept=True,
    )
    grouped = parquet(full, row_group_size=5, compression="gzip")
    yield Case("control: row groups", read, {FILE: grouped}, rows(TABLE, IDS, LABELS, COUNTS), accept=True)
    yield Case(
        "control: whole numbers as ids",
        read,
        {FILE: parquet({"id": [*N], **dims()})},
        rows(TABLE, [str(row) for row in N]),
        accept=True,
    )
    yield from _columns(read)
    yield from _lists(read)
    yield from _sizes(read)
    yield from places(FILE, read)
    for name, content in spoiled(whole, points=(3, 4, 5, 20, len(whole) - 8, len(whole) - 4), n_flips=24):
        yield Case(name, read, {FILE: content}, truth(content))


def _columns(read) -> Iterator[Case]:
    decimals = pa.array([decimal.Decimal(row) / 4 for row in N], pa.decimal128(10, 2))
    numbers = [row / 4 for row in N]
    text = pa.array(IDS).dictionary_encode()
    by_row = {"row": np.arange(12)}
    for name, (columns, right) in {
        "decimals beside floats": (
            {"id": IDS, "a": TABLE[:, 0], "b": decimals},
            rows(np.column_stack([TABLE[:, 0], numbers]), IDS),
        ),
        "decimals alone": ({"id": IDS, "b": decimals}, rows(np.array(numbers)[:, None], IDS)),
        "truth values beside floats": ({"id": IDS, "a": TABLE[:, 0], "b": TABLE[:, 1] > 0}, None),
        "dates beside floats": (
            {"id": IDS, "a": TABLE[:, 0], "b": np.arange(12).astype("datetime64[s]")},
            rows(TABLE[:, :1], IDS),
        ),
        "dictionary of ids": ({"id": text, **dims()}, rows(TABLE, IDS)),
        "dictionary of ids, of another name": ({"word": text, **dims()}, rows(TABLE, IDS)),
        "dictionary of labels": (
            {"id": IDS, **dims(), "label": pa.array(LABELS).dictionary_encode()},
            rows(TABLE, IDS, LABELS),
        ),
        "dictionary of numbers": (
            {"id": IDS, "a": TABLE[:, 0], "b": pa.array([float(row % 3) for row in N]).dictionary_encode()},
            rows(np.column_stack([TABLE[:, 0], [row % 3 for row in N]]), IDS),
        ),
        "ids: fractions": ({"id": [row + 0.5 for row in N], **dims()}, None),
        "ids: whole numbers as floats": (
            {"id": [float(row) for row in N], **dims()},
            rows(TABLE, [str(row) for row in N]),
        ),
        "ids: bytes of UTF-8": ({"id": [one.encode() for one in IDS], **dims()}, rows(TABLE, IDS)),
        "ids: bytes of UTF-8, of another name": (
            {"word": [one.encode() for one in IDS], **dims()},
            rows(TABLE, IDS),
        ),
        "ids: bytes of nothing": ({"id": [bytes([255, row]) for row in N], **dims()}, None),
        "ids: truth values": ({"id": [row > 5 for row in N], **dims()}, None),
        "ids: dates": (
            {"id": np.arange(12).astype("datetime64[D]"), **dims()},
            rows(TABLE, [str(np.datetime64(row, "D")) for row in N]),
        ),
        "ids: lists": ({"id": [[row] for row in N], **dims()}, None),
        "ids: structs": ({"id": [{"x": row} for row in N], **dims()}, None),
        "ids: one missing": ({"id": [None, *IDS[1:]], **dims()}, None),
        "ids: all missing": ({"id": pa.nulls(12, pa.string()), **dims()}, None),
        "ids: of no type": ({"id": pa.nulls(12), **dims()}, None),
        "ids: one empty": ({"id": ["", *IDS[1:]], **dims()}, None),
        "ids: one twice": ({"id": [*IDS[:-1], IDS[0]], **dims()}, None),
        "ids: beyond int64": (
            {"id": pa.array([2**63 + row for row in N], pa.uint64()), **dims()},
            rows(TABLE, [str(2**63 + row) for row in N]),
        ),
        "ids: large strings": ({"id": pa.array(IDS, pa.large_string()), **dims()}, rows(TABLE, IDS)),
        "ids: views": (
            {
                "id": pa.array(IDS).cast(pa.string_view()) if hasattr(pa, "string_view") else pa.array(IDS),
                **dims(),
            },
            rows(TABLE, IDS),
        ),
        "labels: NaN": (
            {"id": IDS, **dims(), "label": [np.nan, *([1.0] * 11)]},
            rows(TABLE, IDS, ["", *["1"] * 11]),
        ),
        "labels: whole numbers as floats": (
            {"id": IDS, **dims(), "label": [1.0] * 12},
            rows(TABLE, IDS, ["1"] * 12),
        ),
        "labels: whole numbers": ({"id": IDS, **dims(), "label": [1] * 12}, rows(TABLE, IDS, ["1"] * 12)),
        "labels: fractions": ({"id": IDS, **dims(), "label": [0.5] * 12}, rows(TABLE, IDS, ["0.5"] * 12)),
        "labels: truth values": (
            {"id": IDS, **dims(), "label": [True] * 12},
            rows(TABLE, IDS, ["True"] * 12),
        ),
        "labels: bytes": ({"id": IDS, **dims(), "label": [b"a"] * 12}, rows(TABLE, IDS, ["a"] * 12)),
        "labels: lists": ({"id": IDS, **dims(), "label": [["a"]] * 12}, None),
        "labels: missing": (
            {"id": IDS, **dims(), "label": pa.nulls(12, pa.string())},
            rows(TABLE, IDS, [""] * 12),
        ),
        "labels: of no type": ({"id": IDS, **dims(), "label": pa.nulls(12)}, rows(TABLE, IDS, [""] * 12)),
        "counts: fractions": ({"id": IDS, **dims(), "count": [2.5] * 12}, None),
        "counts: whole numbers as floats": (
            {"id": IDS, **dims(), "count": [2.0] * 12},
            rows(TABLE, IDS, counts=[2] * 12),
        ),
        "counts: negative": ({"id": IDS, **dims(), "count": [-2] * 12}, None),
        "counts: beyond int64": ({"id": IDS, **dims(), "count": pa.array([2**63] * 12, pa.uint64())}, None),
        "counts: NaN": ({"id": IDS, **dims(), "count": [np.nan] * 12}, None),
        "counts: infinity": ({"id": IDS, **dims(), "count": [np.inf] * 12}, None),
        "counts: missing": ({"id": IDS, **dims(), "count": [None, *[1] * 11]}, None),
        "counts: text": ({"id": IDS, **dims(), "count": ["3"] * 12}, rows(TABLE, IDS, counts=[3] * 12)),
        "counts: truth values": ({"id": IDS, **dims(), "count": [True] * 12}, None),
        "counts: decimals": ({"id": IDS, **dims(), "count": decimals}, None),
        "numbers: one missing": ({"id": IDS, **dims(), "e": [None, *[1.5] * 11]}, None),
        "numbers: all missing": ({"id": IDS, **dims(), "e": pa.nulls(12, pa.float32())}, None),
        "numbers: whole, one missing": ({"id": IDS, **dims(), "e": [None, *[1] * 11]}, None),
        "numbers: NaN": ({"id": IDS, **dims(), "e": [np.nan] * 12}, None),
        "numbers: beyond float32": ({"id": IDS, **dims(), "e": [1e300] * 12}, None),
        "numbers: float16": (
            {"id": IDS, "a": TABLE[:, 0].astype(np.float16), "b": TABLE[:, 1]},
            rows(np.column_stack([TABLE[:, 0].astype(np.float16), TABLE[:, 1]]), IDS),
        ),
        "numbers as text beside floats": (
            {"id": IDS, "a": TABLE[:, 0], "b": [str(value) for value in TABLE[:, 1]]},
            None,
        ),
        "no numbers": ({"id": IDS, "text": IDS}, None),
        "no columns of a name that fits": ({"": IDS, " ": TABLE[:, 0]}, rows(TABLE[:, :1], IDS)),
        "one name twice, with capitals": ({"id": IDS, "ID": IDS[::-1], **dims()}, rows(TABLE, IDS)),
        "an index of pandas": ({"__index_level_0__": IDS, **dims()}, rows(TABLE, IDS)),
        "a name of 1 MB": ({"id": IDS, "x" * 10**6: TABLE[:, 0]}, rows(TABLE[:, :1], IDS)),
        "a name with a line end": ({"id": IDS, "a\nb\0\x1b[31m": TABLE[:, 0]}, rows(TABLE[:, :1], IDS)),
        "rows without ids": (by_row, rows(np.arange(12)[:, None])),
        "no rows": ({"id": IDS[:0], "a": np.empty(0, np.float32)}, None),
    }.items():
        yield Case(name, read, {FILE: parquet(columns)}, right)
    stream = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays(
            [pa.array(IDS), pa.array(TABLE[:, 0]), pa.array(TABLE[:, 1])], names=["id", "a", "a"]
        ),
        stream,
    )
    yield Case("one name twice", read, {FILE: stream.getvalue()})
    stream = io.BytesIO()
    pq.write_table(pa.table({}), stream)
    yield Case("no columns", read, {FILE: stream.getvalue()})


def _lists(read) -> Iterator[Case]:
    vectors = TABLE.tolist()
    for name, column in {
        "one shorter": [vectors[0][:3], *vectors[1:]],
        "one longer": [*vectors[:-1], [*vectors[-1], 1.0]],
        "one empty": [[], *vectors[1:]],
        "all empty": pa.array([[]] * 12, pa.list_(pa.float32())),
        "one missing": [None, *vectors[1:]],
        "a number missing": [[None, *vectors[0][1:]], *vectors[1:]],
        "NaN": [[float("nan"), *vectors[0][1:]], *vectors[1:]],
        "lists of lists": [[row] for row in vectors],
        "lists of text": [["a", "b"]] * 12,
        "lists of truth values": [[True, False]] * 12,
        "lists of fixed length, one missing": pa.array([None, *vectors[1:]], pa.list_(pa.float32(), 4)),
        "lists of length 0": pa.array([[]] * 12, pa.list_(pa.float32(), 0)),
        "lists of decimals": pa.array([[decimal.Decimal(1)]] * 12, pa.list_(pa.decimal128(5, 2))),
        "structs": [{"x": 1.0}] * 12,
        "maps": pa.array([[("x", 1.0)]] * 12, pa.map_(pa.string(), pa.float32())),
    }.items():
        right = rows(np.ones((12, 1)), IDS) if name == "lists of decimals" else None
        yield Case(f"lists: {name}", read, {FILE: parquet({"id": IDS, "v": column})}, right)
    yield Case("lists: two columns", read, {FILE: parquet({"id": IDS, "v": vectors, "u": vectors})})


def _sizes(read) -> Iterator[Case]:
    many, stream = pa.table({"a": np.zeros(10**7, np.float32)}), io.BytesIO()
    with pq.ParquetWriter(stream, many.schema) as writer:
        for _ in range(10):
            writer.write_table(many, row_group_size=10**7)
    yield Case("100 million rows in some kilobytes", read, {FILE: stream.getvalue()})
    wide = parquet({"v": pa.array([[0.0] * 3 * 10**6] * 3, pa.list_(pa.float32()))})
    yield Case("three rows of 3 million numbers", read, {FILE: wide}, rows(np.zeros((3, 3 * 10**6))))
    yield Case(
        "an id of 10 MB",
        read,
        {FILE: parquet({"id": ["x" * 10**7, "y"], "a": [1.0, 2.0]})},
        rows([[1], [2]], ["x" * 10**7, "y"]),
    )
    yield Case(
        "20,000 columns",
        read,
        {FILE: parquet({f"d{number}": np.zeros(2, np.float32) for number in range(20_000)})},
        rows(np.zeros((2, 20_000))),
    )


def drawn():
    whole = parquet({"id": IDS, **dims(), "label": LABELS, "count": COUNTS}, compression="none")
    return changes(whole, lambda name, content: Case(name, space(FILE), {FILE: content}, truth(content)))
