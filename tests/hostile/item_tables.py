"""Hostile tables of texts and pictures; the independent reading is Python's csv, pyarrow's whole table,
and Pillow.
"""

import io
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from tests.hostile.cases import (
    Case,
    controls,
    csv_lines,
    csv_table,
    each,
    encodings,
    hole,
    link,
    pipe,
    places,
    spoiled,
)
from tests.hostile.parquet import parquet
from tests.hostile.picture_bytes import picture, pixels

TEXTS = ["one, two", 'he said "no"', "ü 水", "two\nlines", "  blanks  ", "=1+1", "![x](http://e.x/y.png)"]
TEXTS += ["<b>", "$x$", "NA"]
LABELS = ["a", "b"] * 5
LINES = [["text", "label"], *map(list, zip(TEXTS, LABELS, strict=True))]


def dataset(name, **spec):

    def read(folder):
        source = spec.pop("source", "file")
        found = load_dataset(DatasetSpec(source, str(folder / name), **spec))
        items = found.items(0, len(found))
        found.digest  # noqa: B018, reads all bytes
        if found.labels is None:
            labels = None
        else:
            labels = found.labels.tolist()
        return {"items": items if found.kind == "texts" else list(map(pixels, items)), "labels": labels}

    return read


def truth(content, comma=","):
    """The texts of a table: its column "text" or, without one, its first column that has no labels. None if a
    text is empty."""
    names, *body = csv_lines(content, comma) or [[]]
    if not body or len(set(names)) < len(names) or any(len(line) != len(names) for line in body):
        return None
    columns = dict(zip(names, map(list, zip(*body, strict=True)), strict=True))
    labels = columns.pop("label", None)
    items = columns.get("text") or next(iter(columns.values()), None)
    if items and all(cell.strip() for cell in items):
        return {"items": items, "labels": labels}
    return None


def cases():
    for suffix, comma in ((".csv", ","), (".tsv", "\t")):
        yield from _texts(f"items{suffix}", comma)
    yield from _parquet("items.parquet")
    yield from _pictures("items.parquet")


def _texts(file, comma):
    read = dataset(file)
    whole = csv_table(LINES, comma)
    told = partial(truth, comma=comma)
    right = {"items": TEXTS, "labels": LABELS}
    many = csv_table([LINES[0], *[[f"row {row}", str(row % 7)] for row in range(5000)]], comma)
    usual = {"items": (whole, right), "5,000 rows": (many, told(many))}
    yield from controls(read, file, usual, f"{file}: ")
    few = {"items": TEXTS[:3], "labels": LABELS[:3]}
    yield from controls(dataset(file, limit=3), file, {"limit": (whole, few)}, f"{file}: ")
    contents = {
        **encodings(whole),
        "blank lines": whole.replace(b"\n", b"\n\n"),
        "an open quote": whole.replace(b'"one, two"', b'"one, two').replace(b"one, two", b'"one, two', 1),
        "a cell too many": whole + comma.join(["x", "y", "z"]).encode() + b"\n",
        "an empty text": csv_table([*LINES, ["", "a"]], comma),
        **dict(spoiled(whole, points=(3, 4, 9, 10))),
    }
    yield from each(read, file, contents, told, f"{file}: ")
    large = {  # Python's reader refuses the first two as well, but needs seconds and gigabytes for it
        "a text of 20 MB": whole + b"x" * 20_000_000 + comma.encode() + b"a\n",
        "a line of 60 MB of delimiters": whole + comma.encode() * 60_000_000,
        "2 GB of zeros": hole(2 * 10**9),
        "a text of 2 GB": hole(2 * 10**9, b'text\n"'),
    }
    yield from each(read, file, large, label=f"{file}: ")
    dropping = dataset(file, options=(("empty", "drop"),))
    yield Case(f"{file}: empty texts dropped", dropping, {file: contents["an empty text"]}, right)
    no_body = dataset(file, column="body")
    yield Case(f"{file}: a column that is not there", no_body, {file: whole}, remedy=False)
    for one in places(file, dataset(file)):
        yield Case(f"{file}: {one.name}", one.read, one.files, names=(file,))


def _of_parquet(content):
    try:
        found = pq.read_table(io.BytesIO(content), use_threads=False)
        texts = found["text"].to_pylist()
        if "label" in found.column_names:
            labels = found["label"].to_pylist()
        else:
            labels = None
    except Exception:
        return None
    named = labels and ["" if one is None else str(one) for one in labels]
    sound = texts and all(isinstance(one, str) and one.strip() for one in texts)
    if sound:
        return {"items": texts, "labels": named}
    return None


def _parquet(file):
    read = dataset(file)
    columns = {"text": TEXTS, "label": LABELS}
    whole = parquet(columns)
    yield from controls(read, file, {"items": (whole, {"items": TEXTS, "labels": LABELS})}, "parquet: ")
    floats = parquet(columns | {"label": [1.0] * 10})
    missing = parquet(columns | {"label": [float("nan")] * 10})
    contents = {
        "labels as floats": (floats, {"items": TEXTS, "labels": ["1"] * 10}),
        "labels NaN": (missing, {"items": TEXTS, "labels": [""] * 10}),
        "texts: one missing": (parquet(columns | {"text": [None, *TEXTS[1:]]}), None),
        "texts: lists": (parquet(columns | {"text": [[one] for one in TEXTS]}), None),
        **dict(spoiled(whole, points=(4, 30, len(whole) - 8), n_flips=16)),
    }
    yield from each(read, file, contents, _of_parquet, "parquet: ")


def _pictures(file):
    read = dataset(file)
    png = picture("PNG")
    right = {"items": [pixels(png)], "labels": None}
    yield from controls(read, file, {"bytes": (parquet({"image": [png]}), right)}, "pictures: ")
    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    paths = {
        "missing": "missing.png",
        "a device": "/dev/zero",
        "the account's users": "/etc/passwd",
        "above the folder": "../../../etc/passwd",
        "an address": "http://127.0.0.1:1/x.png",
        "beside it": "x.png",
    }
    stored = {name: parquet({"image": pa.array([{"path": path}], struct)}) for name, path in paths.items()}
    beside = stored.pop("beside it")
    yield from each(read, file, stored, label="pictures: path: ", names=(file, "items"))
    for name, made in {"control": png, "a named pipe": pipe, "a link to a device": link("/dev/zero")}.items():
        files = {file: beside, "x.png": made}
        accept = name == "control"
        yield Case(f"pictures: path: {name}", read, files, right if accept else None, accept, (file,))
    cells = {"nothing": b"", "half": png[: len(png) // 2]}
    files = {name: parquet({"image": [content]}) for name, content in cells.items()}
    yield from each(read, file, files, label="pictures: ")
