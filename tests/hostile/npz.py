"""Hostile .npz archives; the independent reading is numpy.load."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.hostile.cases import Case, control, each, good, places, rows, space, spoiled
from tests.hostile.npy import TABLE, headed, npy, shaped

FILE = "words.npz"
IDS = [f"word{row}" for row in range(12)]
LABELS = ["a", "b", "", "ü"] * 3
COUNTS = list(range(12, 0, -1))
PICKLE = b"cos\nsystem\n(S'touch executed'\ntR."


def npz(*, compress: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(stream, **arrays)
    return stream.getvalue()


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def bomb(head: bytes, size: int) -> bytes:
    """An archive whose `vectors.npy` is `head` and then `size` blanks, in some kilobytes: one compressed
    block, repeated.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("vectors.npy", head)
    plain = stream.getvalue()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = 1 << 24
    again = packer.compress(b" " * block) + packer.flush(zlib.Z_FULL_FLUSH)
    body = first + again * (size // block) + b"\x03\x00"
    total, name = len(head) + size // block * block, b"vectors.npy"
    sizes = (0).to_bytes(4, "little") + len(body).to_bytes(4, "little") + total.to_bytes(4, "little")
    local = plain[:14] + sizes + plain[26:30] + name + body
    directory = plain.index(b"PK\x01\x02")
    central = plain[directory : directory + 16] + sizes + plain[directory + 28 : directory + 46] + name
    end = b"PK\x05\x06" + bytes(4) + b"\x01\x00\x01\x00" + len(central).to_bytes(4, "little")
    return local + central + end + len(local).to_bytes(4, "little") + bytes(2)


def truth(content: bytes) -> dict | None:
    try:
        with np.lib.npyio.NpzFile(io.BytesIO(content)) as file:
            found = {name: file[name] for name in file.files}
        matrices = [name for name, array in found.items() if array.ndim == 2]
        main = "vectors" if "vectors" in matrices else matrices[0] if len(matrices) == 1 else None
        vectors, counts = found[main], found.get("counts")
        texts = {
            name: [one.decode() if isinstance(one, bytes) else str(one) for one in found[name].tolist()]
            for name in ("ids", "labels")
            if name in found
        }
    except Exception:
        return None
    counted = counts is None or (counts.dtype.kind in "iu" and counts.ndim == 1)
    if vectors.dtype.kind not in "fiu" or not counted:
        return None
    return good(rows(vectors, **texts, counts=None if counts is None else counts.tolist()))


def cases() -> Iterator[Case]:
    read, all_of_it = space(FILE), {"vectors": TABLE, "ids": IDS, "labels": LABELS, "counts": COUNTS}
    whole = npz(**all_of_it)
    right, numbers = rows(TABLE, IDS, LABELS, COUNTS), np.arange(12) + 5
    yield control("all columns", read, {FILE: whole}, right)
    yield control("compressed", read, {FILE: npz(compress=True, **all_of_it)}, right)
    named = rows(TABLE, list(map(str, numbers)))
    yield control("whole numbers as ids", read, {FILE: npz(vectors=TABLE, ids=numbers)}, named)
    limited = rows(TABLE[:3], IDS[:3], LABELS[:3], COUNTS[:3])
    yield control("limit", space(FILE, limit=3), {FILE: whole}, limited)
    changes = {
        "one id missing": {"ids": IDS[:-1]},
        "an id twice": {"ids": [*IDS[:-1], IDS[0]]},
        "fractions as ids": {"ids": np.arange(12) + 0.5},
        "bytes that are not UTF-8": {"ids": np.array([b"\xff\xfe", *[one.encode() for one in IDS[1:]]])},
        "counts with fractions": {"counts": np.arange(12) / 3},
        "counts beyond int64": {"counts": np.arange(12).astype(np.uint64) + 2**63},
        "NaN": {"vectors": TABLE * np.nan},
        "objects as ids": {"ids": np.array(IDS, dtype=object)},
    }
    yield from each(read, FILE, {name: npz(**(all_of_it | change)) for name, change in changes.items()})
    yield Case("two matrices", read, {FILE: npz(a=TABLE, b=TABLE)})
    yield from _archives(read, whole)
    yield from places(FILE, read)
    points = (4, 30, 50, whole.index(b"PK\x01\x02"), whole.rindex(b"PK\x05\x06"))
    yield from each(read, FILE, spoiled(whole, points), truth)


def _archives(read, whole: bytes) -> Iterator[Case]:
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("../vectors.npy", npy(TABLE))
    yield Case("a member above the folder", read, {FILE: other.getvalue()}, rows(TABLE))
    twice = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(twice, "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("vectors.npy", npy(TABLE))
        archive.writestr("vectors.npy", npy(2 * TABLE))
    yield Case("a member twice", read, {FILE: twice.getvalue()}, rows(2 * TABLE))
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.index(b"PK\x01\x02") + 8] |= 1
    yield Case("encrypted", read, {FILE: bytes(locked)})
    nothing, pickled = headed(shaped("(1000000000000,)", "'|S0'")), headed(shaped("(1,)", "'|O'"), PICKLE)
    contents = {
        "10¹² rows of nothing": zipped(vectors=headed(shaped("(1000000000000, 0)"))),
        "10¹² ids without bytes": zipped(vectors=npy(TABLE), ids=nothing),
        "a header of 2 GB": bomb(headed("", version=2, length=2 * 10**9), 2 * 10**9),
        "16 MB that become 3 GB": bomb(headed(shaped("(3000000000, 1)", "'|i1'")), 3 * 10**9),
        "pickled ids": zipped(vectors=npy(TABLE), ids=pickled),
    }
    yield from each(read, FILE, contents)
