"""Hostile .safetensors files. The independent reading follows the description of the format: eight bytes,
JSON, numbers.
"""

import json
import struct

import numpy as np

from tests.hostile.cases import (
    COUNTS,
    IDS,
    LABELS,
    TABLE,
    controls,
    each,
    first,
    good,
    hole,
    hurt,
    main_matrix,
    rows,
    space,
)

FILE = "words.safetensors"
TYPES = {f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "FIU" for size in (8, 4, 2, 1)}
TYPES = {name: kind for name, kind in TYPES.items() if name != "F8"} | {"BOOL": "|b1"}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}


def lines(texts, encoding="utf-8"):
    return np.frombuffer("\n".join(texts).encode(encoding), np.uint8)


def raw(header, body=b"", length=None):
    if isinstance(header, bytes):
        text = header
    else:
        text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def packed(arrays, metadata=None, change=None, length=None):
    """A .safetensors file of these arrays; `change` replaces entries of its header."""
    header = {} if metadata is None else {"__metadata__": metadata}
    body = b""
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        place = [len(body), len(body) + len(content)]
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": place}
        body += content
    return raw(header | (change or {}), body, length)


def truth(content):
    try:
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length].decode())
        metadata = header.pop("__metadata__", None) or {}
        body = content[8 + length :]
        arrays = {}
        for name, entry in header.items():
            start, stop = entry["data_offsets"]
            arrays[name] = np.frombuffer(body[start:stop], TYPES[entry["dtype"]]).reshape(entry["shape"])
        main = main_matrix(arrays)
        texts = {}
        for name in ("ids", "labels"):
            if name in arrays:
                text = arrays[name].tobytes().decode()
            else:
                text = metadata.get(name)
            if text is not None:
                texts[name] = text.split("\n")
        counts = arrays.get("counts")
    except Exception:
        return None
    numbers = main is not None and arrays[main].dtype.kind in "fiu"
    if not numbers or (counts is not None and counts.dtype.kind not in "iu"):
        return None
    return good(rows(arrays[main], **texts, counts=None if counts is None else counts.tolist()))


def cases():
    read = space(FILE)
    arrays = {"vectors": TABLE}
    body = TABLE.tobytes()
    full = arrays | {"ids": lines(IDS), "labels": lines(LABELS), "counts": np.array(COUNTS)}
    whole = packed(full)
    texts = {"ids": "\n".join(IDS), "labels": "\n".join(LABELS)}
    right = {
        "all columns": (whole, first()),
        "texts in the metadata": (packed(arrays, texts), rows(TABLE, IDS, LABELS)),
    }
    for kind in (np.float64, np.float16, np.int32, np.uint8):
        array = (np.abs(TABLE * 10) if kind == np.uint8 else TABLE * 10).astype(kind)
        right[kind.__name__] = packed({"x": array}), rows(array)
    yield from controls(read, FILE, right)
    yield from controls(space(FILE, limit=5), FILE, {"limit": (whole, first(5))})
    changes = {
        "ids: one missing": {"ids": lines(IDS[:-1])},
        "ids: one twice": {"ids": lines([*IDS[:-1], IDS[0]])},
        "ids: Latin-1": {"ids": lines(["ü", *IDS[1:]], "latin-1")},
        "counts: negative": {"counts": np.arange(12) - 5},
        "counts: beyond int64": {"counts": np.arange(12).astype(np.uint64) + np.uint64(2**63)},
        "counts: one missing": {"counts": np.array(COUNTS[:-1])},
        "NaN": {"vectors": TABLE * np.float32(np.nan)},
        "beyond float32": {"vectors": TABLE.astype(float) * 1e300},
    }
    yield from each(read, FILE, {name: packed(full | change) for name, change in changes.items()})
    ended = packed(full | {"ids": lines([f"{one}\r" for one in IDS])})
    two = packed({"a": TABLE, "b": TABLE})
    yield from each(read, FILE, {"ids: lines that end in CR LF": (ended, first()), "two matrices": two})
    entry = {"dtype": "F32", "shape": [12, 4], "data_offsets": [0, 192]}
    headers = {
        "10¹² rows of nothing": {"shape": [10**12, 0], "data_offsets": [0, 0]},
        "promises 10¹² numbers": {"shape": [25 * 10**10, 4]},
        "negative shape": {"shape": [-12, -4]},
        "unknown type": {"dtype": "Q9"},
        "ends before it begins": {"data_offsets": [192, 0]},
        "a key too many": {"x": 1},
    }
    contents = {name: packed(arrays, change={"vectors": entry | one}) for name, one in headers.items()}
    contents["a key too many"] = (contents["a key too many"], rows(TABLE))
    twice = json.dumps({"vectors": entry, "again": entry}).replace("again", "vectors").encode()
    contents |= {
        "not JSON": raw(b"{hello}", body),
        "nested 100,000 deep": raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, body),
        "twice the same key": (raw(twice, body), rows(TABLE)),
        "longer than the file": packed(arrays, length=10**6),
        "of 2 GB": hole(2 * 10**9 + 8, struct.pack("<Q", 2 * 10**9)),
    }
    yield from each(read, FILE, contents, label="header: ")
    huge = raw({"x": {"dtype": "I8", "shape": [3 * 10**9, 1], "data_offsets": [0, 3 * 10**9]}})
    yield from each(read, FILE, {"int8 that becomes 12 GB": hole(len(huge) + 3 * 10**9, huge)})
    yield from hurt(FILE, whole, truth, (7, 8, 9, 100, whole.index(b"}}") + 2), n_flips=12)
