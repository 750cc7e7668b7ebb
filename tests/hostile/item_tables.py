"""Hostile tables of texts and pictures; the independent reading is Python's csv, pyarrow's whole table,
and Pillow.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.hostile.cases import Case, hole, link, pipe, places, spoiled
from tests.hostile.corpus import changes
from tests.hostile.parquet import parquet
from tests.hostile.picture_bytes import picture, pixels

TEXTS = [
    "one, two",
    'he said "no"',
    "ü 水",
    "two\nlines",
    "  blanks  ",
    "=1+1",
    "![x](http://e.x/y.png)",
    "<b>",
    "$x$",
    "NA",
]
LABELS = ["a", "b"] * 5
LINES = [["text", "label"], *map(list, zip(TEXTS, LABELS, strict=True))]


def table(lines: list[list[str]] = LINES, comma: str = ",", end: str = "\n") -> bytes:
    stream = io.StringIO()
    csv.writer(stream, delimiter=comma, lineterminator=end).writerows(lines)
    return stream.getvalue().encode()


def dataset(name: str, **spec: Any) -> Callable[[Path], dict]:
    """All items of a table or folder, with ids and labels."""

    def read(folder: Path) -> dict:
        from relcore.encoders.dataset import DatasetSpec
        from relcore.encoders.datasets import load_dataset

        source = spec.pop("source", "file")
        found = load_dataset(DatasetSpec(source, str(folder / name), **spec))
        items = found.items(0, len(found))
        found.digest  # noqa: B018, reads all bytes
        labels = None if found.labels is None else found.labels.tolist()
        return {
            "items": items if found.kind == "texts" else [pixels(item) for item in items],
            "labels": labels,
        }

    return read


def truth(content: bytes, comma: str = ",") -> dict | None:
    """The column "text", else the first that is not the labels, of a table without empty texts."""
    try:
        text = content.decode("utf-8-sig")
        lines = [
            line for line in csv.reader(io.StringIO(text, newline=""), delimiter=comma, strict=True) if line
        ]
    except (UnicodeDecodeError, csv.Error):
        return None
    names, body = (lines[0], lines[1:]) if lines else ([], [])
    if not body or len(set(names)) < len(names) or any(len(line) != len(names) for line in body):
        return None
    columns = dict(zip(names, map(list, zip(*body, strict=True)), strict=True))
    labels = columns.pop("label", None)
    items = columns.get("text") or next(iter(columns.values()), None)
    return {"items": items, "labels": labels} if items and all(cell.strip() for cell in items) else None


def cases() -> Iterator[Case]:
    for suffix, comma in ((".csv", ","), (".tsv", "\t")):
        yield from _texts(f"items{suffix}", comma)
    yield from _parquet("items.parquet")
    yield from _pictures("items.parquet")


def _texts(file: str, comma: str) -> Iterator[Case]:
    read, whole = dataset(file), table(comma=comma)
    right = {"items": TEXTS, "labels": LABELS}
    yield Case(f"{file}: control", read, {file: whole}, right, accept=True)
    yield Case(
        f"{file}: control: limit",
        dataset(file, limit=3),
        {file: whole},
        {"items": TEXTS[:3], "labels": LABELS[:3]},
        accept=True,
    )
    many = [LINES[0], *[[f"row {row}", str(row % 7)] for row in range(5000)]]
    yield Case(
        f"{file}: control: 5,000 rows",
        read,
        {file: table(many, comma)},
        truth(table(many, comma), comma),
        accept=True,
    )
    for name, content in {
        "BOM": b"\xef\xbb\xbf" + whole,
        "CR LF": table(comma=comma, end="\r\n"),
        "CR": table(comma=comma, end="\r"),
        "UTF-16": whole.decode().encode("utf-16"),
        "Latin-1": whole.decode().replace("水", "é").encode("latin-1"),
        "zero bytes": bytes(300),
        "a zero byte in a text": whole.replace(b"two", b"t\0o"),
        "blank lines": whole.replace(b"\n", b"\n\n"),
        "an open quote": whole.replace(b'"one, two"', b'"one, two').replace(b"one, two", b'"one, two', 1),
        "a cell too many": whole + comma.join(["x", "y", "z"]).encode() + b"\n",
        "a cell too few": whole + b"x\n",
        "an empty text": table([*LINES, ["", "a"]], comma),
        "a blank text": table([*LINES, [" \t ", "a"]], comma),
        "a text of a zero-width blank": table([*LINES, ["\u200b", "a"]], comma),
        "only names": table(LINES[:1], comma),
        "one name twice": table([["text", "text"], *LINES[1:]], comma),
        "only numbers": table([["x", "y"], ["1", "2"], ["3", "4"]], comma),
        "a text of 200 kB": table([*LINES, ["x" * 200_000, "a"]], comma),
        "a text of 20 MB": table([*LINES, ["x" * 20_000_000, "a"]], comma),
        "a line of 60 MB of delimiters": whole + comma.encode() * 60_000_000,
        "a name of 10 MB": table([["x" * 10**7, "text"], ["a", "b"]], comma),
        "control characters": table([*LINES, ["\x1b[31m\x07\x08", "a"]], comma),
        "a surrogate": whole.replace("水".encode(), b"\xed\xa0\x80"),
    }.items():
        yield Case(f"{file}: {name}", read, {file: content}, truth(content, comma))
    yield Case(f"{file}: 2 GB of zeros", read, {file: hole(2 * 10**9)})
    yield Case(f"{file}: a text of 2 GB", read, {file: hole(2 * 10**9, b'text\n"')})
    dropped = {"items": TEXTS, "labels": LABELS}
    yield Case(
        f"{file}: empty texts dropped",
        dataset(file, options=(("empty", "drop"),)),
        {file: table([*LINES, ["", "a"]], comma)},
        dropped,
    )
    for name, spec in {
        "a column that is not there": {"column": "body"},
        "labels that are not there": {"label_column": "class"},
        "an unknown option": {"options": (("speed", "fast"),)},
        "an unknown value": {"options": (("empty", "maybe"),)},
    }.items():
        yield Case(
            f"{file}: {name}",
            dataset(file, **spec),
            {file: whole},
            names=(file, "options", "empty"),
            remedy=False,
        )
    for one in places(file, dataset(file)):
        yield Case(f"{file}: {one.name}", one.read, one.files, names=(file,))
    for name, content in spoiled(whole, points=(3, 4, 9, 10)):
        yield Case(f"{file}: {name}", dataset(file), {file: content}, truth(content, comma))


def _of_parquet(content: bytes) -> dict | None:
    try:
        found = pq.read_table(io.BytesIO(content), use_threads=False)
        texts, labels = (
            found["text"].to_pylist(),
            (found["label"].to_pylist() if "label" in found.column_names else None),
        )
    except Exception:
        return None
    sound = texts and all(isinstance(one, str) and one.strip() for one in texts)
    return (
        {"items": texts, "labels": labels and ["" if one is None else str(one) for one in labels]}
        if sound
        else None
    )


def _parquet(file: str) -> Iterator[Case]:
    read, columns = dataset(file), {"text": TEXTS, "label": LABELS}
    whole = parquet(columns)
    yield Case("parquet: control", read, {file: whole}, {"items": TEXTS, "labels": LABELS}, accept=True)
    for name, (change, right) in {
        "labels as whole numbers": ({"label": [1] * 10}, ["1"] * 10),
        "labels as floats": ({"label": [1.0] * 10}, ["1"] * 10),
        "labels NaN": ({"label": [float("nan")] * 10}, [""] * 10),
        "labels missing": ({"label": pa.nulls(10, pa.string())}, [""] * 10),
        "labels as a dictionary": ({"label": pa.array(LABELS).dictionary_encode()}, LABELS),
        "texts as a dictionary": ({"text": pa.array(TEXTS).dictionary_encode()}, LABELS),
    }.items():
        yield Case(
            f"parquet: {name}", read, {file: parquet(columns | change)}, {"items": TEXTS, "labels": right}
        )
    for name, change in {
        "a text missing": {"text": [None, *TEXTS[1:]]},
        "texts of no type": {"text": pa.nulls(10)},
        "texts as lists": {"text": [[one] for one in TEXTS]},
        "texts as numbers": {"text": [*range(10)]},
        "no rows": {"text": pa.array([], pa.string()), "label": pa.array([], pa.string())},
    }.items():
        content = parquet(columns | change)
        yield Case(
            f"parquet: {name}",
            read,
            {file: content},
            None if name != "texts as numbers" else {"items": LABELS, "labels": None},
        )
    for name, content in spoiled(whole, points=(4, 30, len(whole) - 8), n_flips=16):
        yield Case(f"parquet: {name}", read, {file: content}, _of_parquet(content))


def _pictures(file: str) -> Iterator[Case]:
    read, png = dataset(file), picture("PNG")
    right = {"items": [pixels(png)], "labels": None}
    yield Case("pictures: control", read, {file: parquet({"image": [png]})}, right, accept=True)
    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])

    def stored(**value: Any) -> bytes:
        return parquet({"image": pa.array([value], struct)})

    yield Case(
        "pictures: control: with a path", read, {file: stored(bytes=png, path="x.png")}, right, accept=True
    )
    yield Case(
        "pictures: control: a path beside it",
        read,
        {file: stored(path="x.png"), "x.png": png},
        right,
        accept=True,
    )
    for name, path in {
        "missing": "missing.png",
        "a folder": ".",
        "empty": "",
        "a device": "/dev/zero",
        "the account's users": "/etc/passwd",
        "above the folder": "../../../etc/passwd",
        "of an unknown user": "~nosuchuser/x.png",
        "with a zero byte": "x\0.png",
        "of 5,000 letters": "x" * 5000,
        "an address": "http://127.0.0.1:1/x.png",
    }.items():
        yield Case(f"pictures: path: {name}", read, {file: stored(path=path)}, names=(file, "items"))
    yield Case(
        "pictures: path: a named pipe", read, {file: stored(path="x.png"), "x.png": pipe}, names=(file,)
    )
    yield Case(
        "pictures: path: a link to a device",
        read,
        {file: stored(path="x.png"), "x.png": link("/dev/zero")},
        names=(file,),
    )
    yield Case(
        "pictures: path: 3 GB",
        read,
        {file: stored(path="x.png"), "x.png": hole(3 * 10**9, png)},
        names=(file,),
    )
    for name, content in {
        "nothing": b"",
        "text": b"hello",
        "half": png[: len(png) // 2],
        "zeros": bytes(500),
    }.items():
        yield Case(f"pictures: {name}", read, {file: parquet({"image": [content]})})
    yield Case("pictures: missing", read, {file: parquet({"image": pa.array([None, png], pa.binary())})})


def drawn():
    cell = st.sampled_from(["a", "", " ", '"', ",", "\n", "\r", "ü", "\0", "1", "'", "﻿", "\u2028"])
    text = st.lists(cell, max_size=4).map("".join)
    lines = st.lists(st.tuples(text, text).map(list), min_size=1, max_size=4)
    file = "items.csv"

    def make(name: str, content: bytes) -> Case:
        return Case(name, dataset(file), {file: content}, truth(content))

    written = lines.map(lambda body: table([["text", "label"], *body]))
    return changes(table(), make) | written.map(lambda content: make(f"drawn: {content!r}", content))
