"""Hostile .npy files; the independent reading is numpy.load."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator

import numpy as np

from tests.hostile.cases import Case, control, each, good, hole, places, rows, space, spoiled

FILE = "words.npy"
TABLE = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)


def npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    return stream.getvalue()


def headed(header: str | bytes, body: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    text = header.encode("latin-1") if isinstance(header, str) else header
    told = len(text) if length is None else length
    return (
        b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", told) + text + body
    )


def shaped(shape: str, descr: str = "'<f4'", fortran: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def truth(content: bytes) -> dict | None:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "fiu":
        return None
    with np.errstate(over="ignore"):
        return good(rows(array))


def cases() -> Iterator[Case]:
    read = space(FILE)
    whole = npy(TABLE)
    for name, array in {
        "float32": TABLE,
        "float64": TABLE.astype(np.float64),
        "big-endian": TABLE.astype(">f4"),
        "Fortran order": np.asfortranarray(TABLE),
    }.items():
        yield control(f"{name}", read, {FILE: npy(array)}, rows(array))
    yield control("version 2", read, {FILE: npy(TABLE, (2, 0))}, rows(TABLE))
    yield Case("control: version 3", read, {FILE: npy(TABLE, (3, 0))}, rows(TABLE))
    yield control("limit", space(FILE, limit=5), {FILE: whole}, rows(TABLE[:5]))
    wrong = {
        "no rows": TABLE[:0],
        "no columns": TABLE[:, :0],
        "one dimension": TABLE[0],
        "strings": TABLE.astype(str),
        "NaN": np.where(TABLE[3, 1] == TABLE, np.nan, TABLE),
        "beyond float32": TABLE.astype(np.float64) * 1e300,
        "subnormal numbers": TABLE * np.float32(1e-42),
    }
    yield from each(read, FILE, {name: npy(array) for name, array in wrong.items()})
    kept = np.delete(np.arange(12), 3)
    right, dropping = rows(TABLE[kept], [str(row) for row in kept]), space(FILE, invalid="drop")
    yield Case("NaN dropped", dropping, {FILE: npy(wrong["NaN"])}, right, accept=True)
    yield from _headers(read)
    yield from places(FILE, read)
    yield from each(read, FILE, spoiled(whole, points=(5, 6, 8, 9, 10, 40, 127, 128, 129)), truth)


def _headers(read) -> Iterator[Case]:
    body = TABLE.tobytes()
    headers = {
        "10¹² rows of nothing": shaped("(1000000000000, 0)"),
        "more rows than fit in 63 bits": shaped("(9223372036854775808, 4)"),
        "promises 10¹² numbers": shaped("(250000000000, 4)"),
        "negative shape": shaped("(-12, 4)"),
        "shape of true and false": shaped("(True, True)"),
        "a number of 5,000 digits": shaped(f"({'9' * 5000}, 4)"),
        "calls a function": shaped("__import__('os').system('touch executed')"),
        "unknown type": shaped("(12, 4)", "'<q9'"),
        "a type of its own": shaped("(12, 4)", "[('a', '<f4'), ('a', '<f4')]"),
        "one key too many": "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 4), 'x': 1}\n",
        "nested 30,000 deep": "[" * 30000 + "]" * 30000 + "\n",
    }
    contents = {name: headed(header, body) for name, header in headers.items()}
    yield from each(read, FILE, contents, label="header: ")
    yield Case("header: longer than the file", read, {FILE: headed(shaped("(12, 4)"), body, length=65535)})
    yield Case("header: of 3 GB", read, {FILE: hole(3 * 10**9, headed("", version=2, length=2 * 10**9))})
    bytes_of = headed(shaped("(3000000000, 1)", "'|i1'"))
    yield Case("int8 that becomes 12 GB", read, {FILE: hole(len(bytes_of) + 3 * 10**9, bytes_of)})
    objects = io.BytesIO()
    np.save(objects, np.array([_Harmful(), 1], dtype=object), allow_pickle=True)
    yield Case("pickled objects", read, {FILE: objects.getvalue()})


class _Harmful:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch executed",)
