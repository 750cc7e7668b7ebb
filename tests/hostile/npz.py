"""Hostile .npz archives; the independent reading is numpy.load."""

import io
import os
import pickle
import warnings
import zipfile
import zlib

import numpy as np

from tests.hostile.cases import (
    COUNTS,
    IDS,
    LABELS,
    PICKLE,
    TABLE,
    controls,
    each,
    first,
    good,
    hurt,
    main_matrix,
    rows,
    space,
)
from tests.hostile.npy import headed, npy, shaped

FILE = "words.npz"


class Runs:
    def __reduce__(self):
        return os.system, ("touch executed",)


def npz(save=np.savez, **arrays):
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()


def zipped(*members):
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # two of the same name
        for name, content in members:
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def bomb(head, size):
    """An archive whose `vectors.npy` is `head` and then `size` blanks, in some kilobytes: one compressed
    block, repeated.
    """
    plain = zipped(("vectors", head))
    name = b"vectors.npy"
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = 1 << 24
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(b" " * block) + packer.flush(zlib.Z_FULL_FLUSH)
    body = first + again * (size // block) + b"\x03\x00"
    total = len(head) + size // block * block
    sizes = b"".join(one.to_bytes(4, "little") for one in (0, len(body), total))
    local = plain[:14] + sizes + plain[26:30] + name + body
    directory = plain.index(b"PK\x01\x02")
    central = plain[directory : directory + 16] + sizes + plain[directory + 28 : directory + 46] + name
    end = b"PK\x05\x06" + bytes(4) + b"\x01\x00\x01\x00" + len(central).to_bytes(4, "little")
    return local + central + end + len(local).to_bytes(4, "little") + bytes(2)


def truth(content):
    try:
        with np.lib.npyio.NpzFile(io.BytesIO(content)) as file:
            found = {name: file[name] for name in file.files}
        vectors, counts = found[main_matrix(found)], found.get("counts")
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


def cases():
    read = space(FILE)
    full = {"vectors": TABLE, "ids": IDS, "labels": LABELS, "counts": COUNTS}
    whole = npz(**full)
    objects = {**full, **{name: np.array(full[name], dtype=object) for name in ("ids", "labels")}}
    numbers = np.arange(12) + 5
    right = {
        "all columns": (whole, first()),
        "compressed": (npz(np.savez_compressed, **full), first()),
        "objects as ids and labels": (npz(**objects), first()),
        "objects, compressed": (npz(np.savez_compressed, **objects), first()),
        "whole numbers as ids": (npz(vectors=TABLE, ids=numbers), rows(TABLE, list(map(str, numbers)))),
    }
    yield from controls(read, FILE, right)
    yield from controls(space(FILE, limit=3), FILE, {"limit": (whole, first(3))})
    changes = {
        "one id missing": {"ids": IDS[:-1]},
        "an id twice": {"ids": [*IDS[:-1], IDS[0]]},
        "fractions as ids": {"ids": np.arange(12) + 0.5},
        "bytes that are not UTF-8": {"ids": np.array([b"\xff\xfe", *[one.encode() for one in IDS[1:]]])},
        "counts with fractions": {"counts": np.arange(12) / 3},
        "counts beyond int64": {"counts": np.arange(12).astype(np.uint64) + 2**63},
        "NaN": {"vectors": TABLE * np.nan},
        "numbers as objects": {"ids": np.arange(12).astype(object)},
        "an id is missing": {"ids": np.array([*IDS[:-1], None], dtype=object)},
        "an id in bytes": {"ids": np.array([*IDS[:-1], b"x"], dtype=object)},
        "half a surrogate pair": {"ids": np.array([*IDS[:-1], "\ud800"], dtype=object)},
        "an object that runs code": {"ids": np.array([*IDS[:-1], Runs()], dtype=object)},
        "a class among the ids": {"ids": np.array([*IDS[:-1], zipfile.ZipFile], dtype=object)},
        "objects as counts": {"counts": np.array(COUNTS, dtype=object)},
        "objects as vectors": {"vectors": TABLE.astype(object)},
    }
    yield from each(read, FILE, {name: npz(**(full | change)) for name, change in changes.items()})
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.index(b"PK\x01\x02") + 8] |= 1
    table = ("vectors", npy(TABLE))
    nothing = headed(shaped("(1000000000000,)", "'|S0'"))
    contents = {
        "two matrices": npz(a=TABLE, b=TABLE),
        "a member above the folder": (zipped(("../vectors", npy(TABLE))), rows(TABLE)),
        "a member twice": (zipped(table, ("vectors", npy(2 * TABLE))), rows(2 * TABLE)),
        "encrypted": bytes(locked),
        "10¹² rows of nothing": zipped(("vectors", headed(shaped("(1000000000000, 0)")))),
        "10¹² ids without bytes": zipped(table, ("ids", nothing)),
        "a header of 2 GB": bomb(headed("", version=2, length=2 * 10**9), 2 * 10**9),
        "16 MB that become 3 GB": bomb(headed(shaped("(3000000000, 1)", "'|i1'")), 3 * 10**9),
        "pickled ids": zipped(table, ("ids", headed(shaped("(1,)", "'|O'"), PICKLE))),
    }
    yield from each(read, FILE, contents)
    texts = pickle.dumps(np.array(IDS, dtype=object), 4)
    begin = texts[: texts.index(b"]")]
    pickles = {
        "cut short": texts[:-20],
        "other texts after it": texts[:-1] + texts,
        "a text of 2⁶⁰ bytes": begin + b"](\x8d" + (1 << 60).to_bytes(8, "little"),
        "without an end": begin + b"](" + 10**6 * b"h\x00",
        "10⁶ lists in each other": begin + 10**6 * b"]",
        "a memo that refers to a class": texts.replace(b"\x8c\x05word0", b"h\x02", 1),
        "a name of another module": texts.replace(b"_reconstruct", b"_frombuffer_", 1),
        "another class": texts.replace(b"\x8c\x07ndarray", b"\x8c\x07memmap_", 1),
        "a persistent object": begin + b"P1\n.",
        "an extension": begin + b"\x82\x01.",
        "the memo of texts in a loop": texts.replace(b"]\x94", b"]\x94h\x12", 1),
    }
    head = headed(shaped("(12,)", "'|O'"))
    archives = {f"pickle, {name}": zipped(table, ("ids", head + one)) for name, one in pickles.items()}
    yield from each(read, FILE, archives)
    points = (4, 30, 50, whole.index(b"PK\x01\x02"), whole.rindex(b"PK\x05\x06"))
    yield from hurt(FILE, whole, truth, points)
