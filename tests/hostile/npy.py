"""Hostile .npy files; the independent reading is numpy.load."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

import numpy as np

from tests.hostile.cases import Case, good, hole, places, rows, space, spoiled
from tests.hostile.corpus import changes

FILE = "words.npy"
TABLE = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)


def npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    return stream.getvalue()


def headed(header: str | bytes, body: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    """A .npy with this header, right or wrong."""
    text = header.encode("latin-1") if isinstance(header, str) else header
    told = len(text) if length is None else length
    return (
        b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", told) + text + body
    )


def shaped(shape: str, descr: str = "'<f4'", fortran: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def truth(content: bytes) -> dict | None:
    """By numpy.load, which reads no more than there is."""
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
        "float16": TABLE.astype(np.float16),
        "int8": np.arange(-4, 4, dtype=np.int8).reshape(4, 2),
        "uint64": np.array([[2**64 - 1, 0], [1, 2]], np.uint64),
        "big-endian": TABLE.astype(">f4"),
        "Fortran order": np.asfortranarray(TABLE),
        "one number": TABLE[:1, :1],
        "subnormal numbers": TABLE * np.float32(1e-42),
    }.items():
        yield Case(f"control: {name}", read, {FILE: npy(array)}, rows(array), accept=True)
    yield Case("control: version 2", read, {FILE: npy(TABLE, (2, 0))}, rows(TABLE), accept=True)
    yield Case("control: version 3", read, {FILE: npy(TABLE, (3, 0))}, rows(TABLE))
    yield Case("control: limit", space(FILE, limit=5), {FILE: whole}, rows(TABLE[:5]), accept=True)
    yield Case(
        "control: limit, Fortran order",
        space(FILE, limit=5),
        {FILE: npy(np.asfortranarray(TABLE))},
        rows(TABLE[:5]),
    )
    for name, array in {
        "no rows": TABLE[:0],
        "no columns": TABLE[:, :0],
        "one dimension": TABLE[0],
        "three dimensions": TABLE[None],
        "no dimension": TABLE[0, 0],
        "complex": TABLE.astype(complex),
        "bool": TABLE > 0,
        "strings": TABLE.astype(str),
        "dates": np.zeros((2, 2), "datetime64[s]"),
        "records": np.zeros((2, 2), [("a", "f4"), ("b", "i4")]),
        "empty strings": np.zeros((2, 2), "V0"),
        "NaN": np.where(TABLE[3, 1] == TABLE, np.nan, TABLE),
        "infinity": np.where(TABLE[3, 1] == TABLE, -np.inf, TABLE),
        "beyond float32": TABLE.astype(np.float64) * 1e300,
        "only NaN": TABLE * np.nan,
    }.items():
        yield Case(name, read, {FILE: npy(array)})
    dropped = np.where(TABLE[3, 1] == TABLE, np.nan, TABLE)
    kept = np.delete(np.arange(12), 3)
    yield Case(
        "NaN dropped",
        space(FILE, invalid="drop"),
        {FILE: npy(dropped)},
        rows(TABLE[kept], [str(row) for row in kept]),
        accept=True,
    )
    yield Case(
        "only NaN, dropped", space(FILE, invalid="drop"), {FILE: npy(TABLE * np.nan)}, names=("words",)
    )
    yield from _headers(read)
    yield from places(FILE, read)
    for name, content in spoiled(whole, points=(5, 6, 8, 9, 10, 40, 127, 128, 129)):
        yield Case(name, read, {FILE: content}, truth(content))


def _headers(read) -> Iterator[Case]:
    body = TABLE.tobytes()
    for name, header in {
        "10¹² rows of nothing": shaped("(1000000000000, 0)"),
        "nothing of 10¹² columns": shaped("(0, 1000000000000)"),
        "10¹² rows of strings without bytes": shaped("(1000000000000, 4)", "'|S0'"),
        "10¹² rows of records without bytes": shaped("(1000000000000, 4)", "'|V0'"),
        "more rows than fit in 63 bits": shaped("(9223372036854775808, 4)"),
        "rows times columns beyond 64 bits": shaped("(4294967296, 4294967296)"),
        "promises 10¹² numbers": shaped("(250000000000, 4)"),
        "promises one more row": shaped("(13, 4)"),
        "negative shape": shaped("(-12, 4)"),
        "both negative": shaped("(-12, -4)"),
        "shape of true and false": shaped("(True, True)"),
        "shape of fractions": shaped("(12.0, 4)"),
        "shape of strings": shaped("('12', '4')"),
        "shape is a list": shaped("[12, 4]"),
        "shape is a number": shaped("12"),
        "shape is none": shaped("None"),
        "a number of 5,000 digits": shaped(f"({'9' * 5000}, 4)"),
        "calls a function": shaped("__import__('os').system('touch executed')"),
        "unknown type": shaped("(12, 4)", "'<q9'"),
        "a type of its own": shaped("(12, 4)", "[('a', '<f4'), ('a', '<f4')]"),
        "type is a number": shaped("(12, 4)", "7"),
        "type is empty": shaped("(12, 4)", "''"),
        "a type within a type": shaped("(3,)", "('<f4', (4, 4))"),
        "order is a string": shaped("(12, 4)", fortran="'yes'"),
        "no type": "{'fortran_order': False, 'shape': (12, 4)}\n",
        "one key too many": "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 4), 'x': 1}\n",
        "not a dictionary": "(12, 4)\n",
        "nested 2,000 deep": "(" * 2000 + ")" * 2000 + "\n",
        "nested 30,000 deep": "[" * 30000 + "]" * 30000 + "\n",
        "an open string": "{'descr': '<f4\n",
        "only blanks": " " * 118 + "\n",
        "zero bytes": "\0" * 118,
        "not ASCII": "{'descr': '<f4', 'fortran_order': False, 'shapé': (12, 4)}\n",
    }.items():
        yield Case(f"header: {name}", read, {FILE: headed(header, body)})
    yield Case("header: longer than the file", read, {FILE: headed(shaped("(12, 4)"), body, length=65535)})
    yield Case(
        "header: promises 4 GB", read, {FILE: headed(shaped("(12, 4)"), body, version=2, length=2**32 - 1)}
    )
    yield Case("header: of 3 GB", read, {FILE: hole(3 * 10**9, headed("", version=2, length=2 * 10**9))})
    yield Case("header: version 9", read, {FILE: headed(shaped("(12, 4)"), body, version=9)})
    yield Case("header: no length", read, {FILE: b"\x93NUMPY\x01\x00"})
    bytes_of = headed(shaped("(3000000000, 1)", "'|i1'"))
    yield Case("int8 that becomes 12 GB", read, {FILE: hole(len(bytes_of) + 3 * 10**9, bytes_of)})
    doubles = headed(shaped("(2000000000, 1)", "'<f8'"))
    yield Case("16 GB of float64", read, {FILE: hole(len(doubles) + 16 * 10**9, doubles)})
    objects = io.BytesIO()
    np.save(objects, np.array([_Harmful(), 1], dtype=object), allow_pickle=True)
    yield Case("pickled objects", read, {FILE: objects.getvalue()})


class _Harmful:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        import os

        return os.system, ("touch executed",)


def drawn():
    return changes(npy(TABLE), lambda name, content: Case(name, space(FILE), {FILE: content}, truth(content)))
