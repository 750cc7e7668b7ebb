"""Hostile .npy files; the independent reading is numpy.load."""

import io
import os
import struct

import numpy as np

from tests.hostile.cases import TABLE, Case, controls, each, good, hole, hurt, rows, space

FILE = "words.npy"


def npy(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    return stream.getvalue()


def headed(header, body=b"", version=1, length=None):
    told = struct.pack("<H" if version == 1 else "<I", len(header) if length is None else length)
    return b"\x93NUMPY" + bytes([version, 0]) + told + header.encode() + body


def shaped(shape, descr="'<f4'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"


def truth(content):
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "fiu":
        return None
    with np.errstate(over="ignore"):
        return good(rows(array))


def cases():
    read = space(FILE)
    whole = npy(TABLE)
    right = {
        "float32": TABLE,
        "float64": TABLE.astype(np.float64),
        "big-endian": TABLE.astype(">f4"),
        "Fortran order": np.asfortranarray(TABLE),
    }
    yield from controls(read, FILE, {name: (npy(array), rows(array)) for name, array in right.items()})
    yield from controls(read, FILE, {"version 2": (npy(TABLE, (2, 0)), rows(TABLE))})
    yield Case("version 3", read, {FILE: npy(TABLE, (3, 0))}, rows(TABLE))
    yield from controls(space(FILE, limit=5), FILE, {"limit": (whole, rows(TABLE[:5]))})
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
    dropped = {"NaN dropped": (npy(wrong["NaN"]), rows(TABLE[kept], list(map(str, kept))))}
    yield from each(space(FILE, invalid="drop"), FILE, dropped, accept=True)
    body = TABLE.tobytes()
    huge = headed(shaped("(3000000000, 1)", "'|i1'"))
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
        "one key too many": shaped("(12, 4), 'x': 1"),
        "nested 30,000 deep": "[" * 30000 + "]" * 30000 + "\n",
    }
    contents = {name: headed(header, body) for name, header in headers.items()} | {
        "longer than the file": headed(shaped("(12, 4)"), body, length=65535),
        "of 3 GB": hole(3 * 10**9, headed("", version=2, length=2 * 10**9)),
    }
    yield from each(read, FILE, contents, label="header: ")
    objects = io.BytesIO()
    np.save(objects, np.array([Harmful(), 1], dtype=object), allow_pickle=True)
    int8 = hole(len(huge) + 3 * 10**9, huge)
    yield from each(read, FILE, {"int8 that becomes 12 GB": int8, "pickled objects": objects.getvalue()})
    yield from hurt(FILE, whole, truth, (5, 6, 8, 9, 10, 40, 127, 128, 129))


class Harmful:
    """An object that writes a file when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch executed",)
