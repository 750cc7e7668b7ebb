"""Hostile faiss indexes; the truth is what faiss itself was given, or an independent reading of a flat
index's bytes.
"""

import struct

import numpy as np

from tests.hostile.cases import PICKLE, TABLE, controls, each, good, hole, hurt, rows, space

FILE = "words.faiss"
_HEAD = "<iqqq?i"
NUMBERS = np.arange(12) * 5 + 2


def header(kind=b"IxF2", d=4, n=12, metric=1):
    return kind + struct.pack(_HEAD, d, n, 1 << 20, 1 << 20, True, metric)


def flat(vectors=TABLE, length=None, **head):
    content = vectors.astype("<f4").tobytes()
    return header(**head) + struct.pack("<Q", len(content) // 4 if length is None else length) + content


def with_ids(inner, ids=NUMBERS, length=None, **head):
    told = struct.pack("<Q", len(ids) if length is None else length)
    return header(b"IxMp", **head) + inner + told + ids.astype("<i8").tobytes()


def truth(content):
    try:
        if content[:4] not in (b"IxF2", b"IxFI", b"IxFl"):
            return None
        d, n, _, _, _, metric = struct.unpack_from(_HEAD, content, 4)
        at = 4 + struct.calcsize(_HEAD) + 4 * (metric > 1)
        (length,) = struct.unpack_from("<Q", content, at)
        numbers = np.frombuffer(content[at + 8 :], "<f4")
    except (struct.error, ValueError):
        return None
    if n > 0 and d > 0 and length == n * d == len(numbers):
        return good(rows(numbers.reshape(n, d)))
    return None


def cases():
    read = space(FILE)
    named = [str(one) for one in NUMBERS]
    right = {"flat": flat(), "flat, as faiss writes it": _by_faiss("Flat"), "HNSW": _by_faiss("HNSW4,Flat")}
    right = {name: (content, rows(TABLE)) for name, content in right.items()}
    yield from controls(read, FILE, right | {"ids": (with_ids(flat()), rows(TABLE, named))})
    limited = rows(TABLE[:5], named[:5])
    yield from controls(space(FILE, limit=5), FILE, {"limit": (with_ids(flat()), limited)})
    contents = {
        "NaN": flat(TABLE * np.float32(np.nan)),
        "negative rows": flat(n=-12),
        "more rows than numbers": flat(n=13),
        "a list longer than the file": flat(length=10**12),
        "rows beyond 64 bits in bytes": flat(length=0, n=2**62, d=4),
        "IVF": flat(kind=b"IwFl"),
        "a pickle": PICKLE,
        "ids: one missing": with_ids(flat(), NUMBERS[:-1]),
        "ids: a list longer than the file": with_ids(flat(), length=10**15),
        "nested 10,000 deep": header(b"IxMp") * 10_000 + flat(),
        "HNSW: nothing inside": _by_faiss("HNSW4,Flat")[: -(48 * 4 + 8 + 37)],
        "12 GB of zeros": hole(12 * 10**9 + 45, header(d=1000, n=3 * 10**6) + struct.pack("<Q", 3 * 10**9)),
    }
    yield from each(read, FILE, contents)
    yield from hurt(FILE, flat(), truth, (3, 4, 8, 40, 41, 44), n_flips=16)


def _by_faiss(description):
    import faiss

    index = faiss.index_factory(4, description)
    index.add(TABLE.astype(np.float32))
    return faiss.serialize_index(index).tobytes()
