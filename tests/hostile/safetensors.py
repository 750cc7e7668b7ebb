"""Hostile .safetensors files; the independent reading follows the format's description: eight bytes, JSON,
numbers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.hostile.cases import Case, control, each, good, hole, places, rows, space, spoiled
from tests.hostile.npy import TABLE
from tests.hostile.npz import COUNTS, IDS, LABELS

FILE = "words.safetensors"
TYPES = {f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "FIU" for size in (8, 4, 2, 1)}
TYPES = {name: kind for name, kind in TYPES.items() if name != "F8"} | {"BOOL": "|b1"}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}


def lines(texts: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def packed(
    arrays: dict[str, np.ndarray], metadata: Any = None, change: dict | None = None, length: int | None = None
) -> bytes:
    """A .safetensors file of these arrays; `change` replaces entries of its header."""
    header, body = {} if metadata is None else {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        place = [len(body), len(body) + len(content)]
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": place}
        body += content
    text = json.dumps(header | (change or {})).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def raw(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + body


def truth(content: bytes) -> dict | None:
    try:
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length].decode())
        metadata = header.pop("__metadata__", None) or {}
        body, arrays = content[8 + length :], {}
        for name, entry in header.items():
            start, stop = entry["data_offsets"]
            arrays[name] = np.frombuffer(body[start:stop], TYPES[entry["dtype"]]).reshape(entry["shape"])
        matrices = [name for name, array in arrays.items() if array.ndim == 2]
        main = "vectors" if "vectors" in matrices else matrices[0] if len(matrices) == 1 else None
        texts = {}
        for name in ("ids", "labels"):
            text = arrays[name].tobytes().decode() if name in arrays else metadata.get(name)
            if text is not None:
                texts[name] = text.split("\n")
        counts = arrays.get("counts")
    except Exception:
        return None
    numbers = main is not None and arrays[main].dtype.kind in "fiu"
    if not numbers or (counts is not None and counts.dtype.kind not in "iu"):
        return None
    return good(rows(arrays[main], **texts, counts=None if counts is None else counts.tolist()))


def cases() -> Iterator[Case]:
    read = space(FILE)
    full = {"vectors": TABLE, "ids": lines(IDS), "labels": lines(LABELS), "counts": np.array(COUNTS)}
    whole = packed(full)
    yield control("all columns", read, {FILE: whole}, rows(TABLE, IDS, LABELS, COUNTS))
    told = packed({"vectors": TABLE}, {"ids": "\n".join(IDS), "labels": "\n".join(LABELS)})
    yield control("texts in the metadata", read, {FILE: told}, rows(TABLE, IDS, LABELS))
    limited = rows(TABLE[:5], IDS[:5], LABELS[:5], COUNTS[:5])
    yield control("limit", space(FILE, limit=5), {FILE: whole}, limited)
    for kind in (np.float64, np.float16, np.int32, np.uint8):
        array = (TABLE * 10).astype(kind) if kind != np.uint8 else np.abs(TABLE * 10).astype(kind)
        yield control(f"{kind.__name__}", read, {FILE: packed({"x": array})}, rows(array))
    changes = {
        "ids: one missing": {"ids": lines(IDS[:-1])},
        "ids: one twice": {"ids": lines([*IDS[:-1], IDS[0]])},
        "ids: Latin-1": {"ids": np.frombuffer("\n".join(["ü", *IDS[1:]]).encode("latin-1"), np.uint8)},
        "counts: negative": {"counts": np.arange(12) - 5},
        "counts: beyond int64": {"counts": np.arange(12).astype(np.uint64) + np.uint64(2**63)},
        "counts: one missing": {"counts": np.array(COUNTS[:-1])},
        "NaN": {"vectors": TABLE * np.float32(np.nan)},
        "beyond float32": {"vectors": TABLE.astype(float) * 1e300},
    }
    yield from each(read, FILE, {name: packed(full | change) for name, change in changes.items()})
    ended = packed(full | {"ids": lines([f"{one}\r" for one in IDS])})
    yield Case("ids: lines that end in CR LF", read, {FILE: ended}, rows(TABLE, IDS, LABELS, COUNTS))
    yield Case("two matrices", read, {FILE: packed({"a": TABLE, "b": TABLE})})
    yield from _headers(read)
    yield from places(FILE, read)
    damaged = spoiled(whole, points=(7, 8, 9, 100, whole.index(b"}}") + 2), n_flips=12)
    yield from each(read, FILE, damaged, truth)


def _headers(read) -> Iterator[Case]:
    arrays, body = {"vectors": TABLE}, TABLE.tobytes()
    entry = {"dtype": "F32", "shape": [12, 4], "data_offsets": [0, 192]}
    for name, change in {
        "10¹² rows of nothing": {"shape": [10**12, 0], "data_offsets": [0, 0]},
        "promises 10¹² numbers": {"shape": [25 * 10**10, 4]},
        "negative shape": {"shape": [-12, -4]},
        "unknown type": {"dtype": "Q9"},
        "ends before it begins": {"data_offsets": [192, 0]},
        "a key too many": {"x": 1},
    }.items():
        content = packed(arrays, change={"vectors": entry | change})
        right = truth(content) if name == "a key too many" else None
        yield Case(f"header: {name}", read, {FILE: content}, right)
    twice = json.dumps({"vectors": entry, "again": entry}).replace("again", "vectors").encode()
    contents = {
        "not JSON": raw(b"{hello}", body),
        "nested 100,000 deep": raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, body),
        "twice the same key": raw(twice, body),
    }
    yield from each(read, FILE, contents, truth, "header: ")
    yield Case("header: longer than the file", read, {FILE: packed(arrays, length=10**6)})
    yield Case("header: of 2 GB", read, {FILE: hole(2 * 10**9 + 8, struct.pack("<Q", 2 * 10**9))})
    entry = {"dtype": "I8", "shape": [3 * 10**9, 1], "data_offsets": [0, 3 * 10**9]}
    huge = raw(json.dumps({"x": entry}).encode())
    yield Case("int8 that becomes 12 GB", read, {FILE: hole(len(huge) + 3 * 10**9, huge)})
