"""Hostile .parquet files of vectors; the independent reading is pyarrow's whole table, column by column."""

from __future__ import annotations

import decimal
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.cases import Case, control, each, good, places, rows, space, spoiled
from tests.hostile.npy import TABLE
from tests.hostile.npz import COUNTS, IDS, LABELS

FILE = "words.parquet"
N = range(12)


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, **options)
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
        ids = ids and [str(one) for one in ids]
        labels = labels and ["" if one is None else str(one) for one in labels]
        return good(rows(np.column_stack(vectors), ids, labels, counts))


def cases() -> Iterator[Case]:
    read, full = space(FILE), {"id": IDS, **dims(), "label": LABELS, "count": COUNTS}
    whole = parquet(full)
    yield control("all columns", read, {FILE: whole}, rows(TABLE, IDS, LABELS, COUNTS))
    limited = rows(TABLE[:5], IDS[:5], LABELS[:5], COUNTS[:5])
    yield control("limit", space(FILE, limit=5), {FILE: whole}, limited)
    lists = parquet({"id": IDS, "v": TABLE.tolist()})
    yield control("one column of lists", read, {FILE: lists}, rows(TABLE, IDS))
    grouped = parquet(full, row_group_size=5, compression="gzip")
    yield control("row groups", read, {FILE: grouped}, rows(TABLE, IDS, LABELS, COUNTS))
    yield from _columns(read)
    yield from _lists(read)
    yield from _sizes(read)
    yield from places(FILE, read)
    points = (3, 4, 5, 20, len(whole) - 8, len(whole) - 4)
    yield from each(read, FILE, spoiled(whole, points, n_flips=24), truth)


def _columns(read) -> Iterator[Case]:
    first, whole, numbers = TABLE[:, 0], rows(TABLE, IDS), [row / 4 for row in N]
    decimals = pa.array([decimal.Decimal(row) / 4 for row in N], pa.decimal128(10, 2))
    coded = pa.array([float(row % 3) for row in N]).dictionary_encode()
    beyond = [2**63 + row for row in N]
    for name, (column, right) in {
        "decimals": (decimals, rows(np.column_stack([first, numbers]), IDS)),
        "a dictionary": (coded, rows(np.column_stack([first, [row % 3 for row in N]]), IDS)),
        "numbers as text": ([str(value) for value in TABLE[:, 1]], None),
        "one missing": ([None, *[1.5] * 11], None),
        "NaN": ([np.nan] * 12, None),
    }.items():
        files = {FILE: parquet({"id": IDS, "a": first, "b": column})}
        yield Case(f"beside floats: {name}", read, files, right)
    for name, (ids, right) in {
        "a dictionary": (pa.array(IDS).dictionary_encode(), whole),
        "fractions": ([row + 0.5 for row in N], None),
        "whole numbers as floats": ([float(row) for row in N], rows(TABLE)),
        "bytes of UTF-8": ([one.encode() for one in IDS], whole),
        "lists": ([[row] for row in N], None),
        "one missing": ([None, *IDS[1:]], None),
        "beyond int64": (pa.array(beyond, pa.uint64()), rows(TABLE, list(map(str, beyond)))),
    }.items():
        yield Case(f"ids: {name}", read, {FILE: parquet({"id": ids, **dims()})}, right)
    for name, (labels, right) in {
        "NaN": ([np.nan, *([1.0] * 11)], ["", *["1"] * 11]),
        "lists": ([["a"]] * 12, None),
        "missing": (pa.nulls(12, pa.string()), [""] * 12),
    }.items():
        content = parquet({"id": IDS, **dims(), "label": labels})
        yield Case(f"labels: {name}", read, {FILE: content}, right and rows(TABLE, IDS, right))
    for name, (counts, right) in {
        "whole numbers as floats": ([2.0] * 12, rows(TABLE, IDS, counts=[2] * 12)),
        "beyond int64": (pa.array([2**63] * 12, pa.uint64()), None),
        "missing": ([None, *[1] * 11], None),
    }.items():
        yield Case(f"counts: {name}", read, {FILE: parquet({"id": IDS, **dims(), "count": counts})}, right)
    for name, (columns, right) in {
        "no numbers": ({"id": IDS, "text": IDS}, None),
        "one name twice, with capitals": ({"id": IDS, "ID": IDS[::-1], **dims()}, whole),
        "a name of 1 MB": ({"id": IDS, "x" * 10**6: first}, rows(TABLE[:, :1], IDS)),
        "a name with a line end": ({"id": IDS, "a\nb\0\x1b[31m": first}, rows(TABLE[:, :1], IDS)),
    }.items():
        yield Case(name, read, {FILE: parquet(columns)}, right)
    stream, arrays = io.BytesIO(), [pa.array(IDS), pa.array(first), pa.array(first)]
    pq.write_table(pa.Table.from_arrays(arrays, names=["id", "a", "a"]), stream)
    yield Case("one name twice", read, {FILE: stream.getvalue()})


def _lists(read) -> Iterator[Case]:
    vectors = TABLE.tolist()
    for name, column in {
        "one shorter": [vectors[0][:3], *vectors[1:]],
        "all empty": pa.array([[]] * 12, pa.list_(pa.float32())),
        "one missing": [None, *vectors[1:]],
        "lists of decimals": pa.array([[decimal.Decimal(1)]] * 12, pa.list_(pa.decimal128(5, 2))),
    }.items():
        right = rows(np.ones((12, 1)), IDS) if name == "lists of decimals" else None
        yield Case(f"lists: {name}", read, {FILE: parquet({"id": IDS, "v": column})}, right)
    yield Case("lists: two columns", read, {FILE: parquet({"id": IDS, "v": vectors, "u": vectors})})


def _sizes(read) -> Iterator[Case]:
    yield Case("100 million rows in some kilobytes", read, {FILE: _write_many})
    wide = pa.array(np.zeros(9 * 10**6, np.float32))
    wide = pa.ListArray.from_arrays(np.arange(4, dtype=np.int32) * 3 * 10**6, wide)
    content = parquet({"v": wide})
    yield Case("three rows of 3 million numbers", read, {FILE: content}, rows(np.zeros((3, 3 * 10**6))))
    long = parquet({"id": ["x" * 10**7, "y"], "a": [1.0, 2.0]})
    yield Case("an id of 10 MB", read, {FILE: long}, rows([[1], [2]], ["x" * 10**7, "y"]))
    many = parquet({f"d{number}": np.zeros(2, np.float32) for number in range(20_000)})
    yield Case("20,000 columns", read, {FILE: many}, rows(np.zeros((2, 20_000))))


def _write_many(path: Path) -> None:
    many = pa.table({"a": np.zeros(10**7, np.float32)})
    with pq.ParquetWriter(path, many.schema) as writer:
        for _ in range(10):
            writer.write_table(many, row_group_size=10**7)
