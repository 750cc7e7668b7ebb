"""Hostile .parquet files of vectors; the independent reading is pyarrow's whole table, column by column."""

import decimal
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.cases import (
    COUNTS,
    IDS,
    LABELS,
    TABLE,
    controls,
    each,
    first,
    good,
    hurt,
    role_of,
    rows,
    space,
)

FILE = "words.parquet"
N = range(12)
DIMS = {f"d{number}": TABLE[:, number] for number in range(4)}


def parquet(columns, **options):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns) if isinstance(columns, dict) else columns, stream, **options)
    return stream.getvalue()


def truth(content):
    """Columns of numbers without gaps are the dimensions. Ids, labels and counts are found by name. If no
    column has the name of ids, they are the first column of texts.
    """
    try:
        table = pq.read_table(io.BytesIO(content), use_threads=False)
        vectors = []
        roles = {}
        if len(set(table.column_names)) < len(table.column_names):
            return None
        for name in table.column_names:
            if role_of(name) in ("id", "label", "count"):
                roles.setdefault(role_of(name), name)
        for name in table.column_names:
            column = table[name]
            kind = table[name].type
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
        ids, labels, counts = (
            table[roles[role]].to_pylist() if role in roles else None for role in ("id", "label", "count")
        )
    except Exception:
        return None
    sound = vectors and all(isinstance(one, str | int) for one in ids or ())
    sound = sound and all(one is None or isinstance(one, str | int) for one in labels or ())
    if not sound or not all(type(one) is int for one in counts or ()):
        return None
    with np.errstate(over="ignore"):
        ids = ids and [str(one) for one in ids]
        labels = labels and ["" if one is None else str(one) for one in labels]
        return good(rows(np.column_stack(vectors), ids, labels, counts))


def cases():
    read = space(FILE)
    full = {"id": IDS, **DIMS, "label": LABELS, "count": COUNTS}
    whole = parquet(full)
    right = {
        "all columns": (whole, first()),
        "one column of lists": (parquet({"id": IDS, "v": TABLE.tolist()}), rows(TABLE, IDS)),
        "row groups": (parquet(full, row_group_size=5, compression="gzip"), first()),
    }
    yield from controls(read, FILE, right)
    yield from controls(space(FILE, limit=5), FILE, {"limit": (whole, first(5))})
    columns = {name: (parquet({"id": IDS} | one), true) for name, (one, true) in _columns().items()}
    yield from each(read, FILE, columns)
    one = TABLE[:, 0]
    long = ["x" * 10**7, "y"]
    wide = pa.array(np.zeros(9 * 10**6, np.float32))
    wide = pa.ListArray.from_arrays(np.arange(4, dtype=np.int32) * 3 * 10**6, wide)
    many = {f"d{number}": np.zeros(2, np.float32) for number in range(20_000)}
    twice = pa.Table.from_arrays([pa.array(IDS), pa.array(one), pa.array(one)], names=["id", "a", "a"])
    contents = {
        "one name twice": parquet(twice),
        "100 million rows in some kilobytes": _write_many,
        "three rows of 3 million numbers": (parquet({"v": wide}), rows(np.zeros((3, 3 * 10**6)))),
        "an id of 10 MB": (parquet({"id": long, "a": [1.0, 2.0]}), rows([[1], [2]], long)),
        "20,000 columns": (parquet(many), rows(np.zeros((2, 20_000)))),
    }
    yield from each(read, FILE, contents)
    yield from hurt(FILE, whole, truth, (3, 4, 5, 20, len(whole) - 8, len(whole) - 4), n_flips=24)


def _columns():
    """The columns of a table and what is read."""
    one = {"a": TABLE[:, 0]}
    whole = rows(TABLE, IDS)
    beyond = [2**63 + row for row in N]
    quarters = pa.array([decimal.Decimal(row) / 4 for row in N], pa.decimal128(10, 2))
    coded = pa.array([float(row % 3) for row in N]).dictionary_encode()
    vectors = TABLE.tolist()
    floats = pa.list_(pa.float32())
    single = rows(TABLE[:, :1], IDS)
    decimals = pa.array([[decimal.Decimal(1)]] * 12, pa.list_(pa.decimal128(5, 2)))

    def with_a(column):
        return rows(np.column_stack([TABLE[:, 0], column]), IDS)

    return {
        "beside floats: decimals": (one | {"b": quarters}, with_a([row / 4 for row in N])),
        "beside floats: a dictionary": (one | {"b": coded}, with_a([row % 3 for row in N])),
        "beside floats: numbers as text": (one | {"b": [str(value) for value in TABLE[:, 1]]}, None),
        "beside floats: one missing": (one | {"b": [None, *[1.5] * 11]}, None),
        "beside floats: NaN": (one | {"b": [np.nan] * 12}, None),
        "ids: a dictionary": ({"id": pa.array(IDS).dictionary_encode()} | DIMS, whole),
        "ids: fractions": ({"id": [row + 0.5 for row in N]} | DIMS, None),
        "ids: whole numbers as floats": ({"id": [float(row) for row in N]} | DIMS, rows(TABLE)),
        "ids: bytes of UTF-8": ({"id": [one.encode() for one in IDS]} | DIMS, whole),
        "ids: lists": ({"id": [[row] for row in N]} | DIMS, None),
        "ids: one missing": ({"id": [None, *IDS[1:]]} | DIMS, None),
        "ids: beyond int64": (
            {"id": pa.array(beyond, pa.uint64())} | DIMS,
            rows(TABLE, list(map(str, beyond))),
        ),
        "labels: NaN": (DIMS | {"label": [np.nan, *[1.0] * 11]}, rows(TABLE, IDS, ["", *["1"] * 11])),
        "labels: lists": (DIMS | {"label": [["a"]] * 12}, None),
        "labels: missing": (DIMS | {"label": pa.nulls(12, pa.string())}, rows(TABLE, IDS, [""] * 12)),
        "counts: whole numbers as floats": (DIMS | {"count": [2.0] * 12}, rows(TABLE, IDS, counts=[2] * 12)),
        "counts: beyond int64": (DIMS | {"count": pa.array([2**63] * 12, pa.uint64())}, None),
        "counts: missing": (DIMS | {"count": [None, *[1] * 11]}, None),
        "no numbers": ({"text": IDS}, None),
        "one name twice, with capitals": ({"ID": IDS[::-1]} | DIMS, whole),
        "a name of 1 MB": ({"x" * 10**6: TABLE[:, 0]}, single),
        "a name with a line end": ({"a\nb\0\x1b[31m": TABLE[:, 0]}, single),
        "lists: one shorter": ({"v": [vectors[0][:3], *vectors[1:]]}, None),
        "lists: all empty": ({"v": pa.array([[]] * 12, floats)}, None),
        "lists: one missing": ({"v": [None, *vectors[1:]]}, None),
        "lists: lists of decimals": ({"v": decimals}, rows(np.ones((12, 1)), IDS)),
        "lists: two columns": ({"v": vectors, "u": vectors}, None),
    }


def _write_many(path):
    many = pa.table({"a": np.zeros(10**7, np.float32)})
    with pq.ParquetWriter(path, many.schema) as writer:
        for _ in range(10):
            writer.write_table(many, row_group_size=10**7)
