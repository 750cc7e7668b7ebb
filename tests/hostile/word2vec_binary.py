"""Hostile word2vec .bin files; the independent reading walks through the bytes one field at a time."""

import gzip
import re
import struct

import numpy as np

from tests.hostile.cases import TABLE, controls, each, good, hole, hurt, rows, space, spoiled
from tests.hostile.word2vec_text import WORDS, unpacked

FILE = "words.bin"


def binary(words=WORDS, vectors=TABLE, header="12 4\n", end=b"\n"):
    body = b"".join(
        word.encode() + b" " + row.astype("<f4").tobytes() + end
        for word, row in zip(words, vectors, strict=True)
    )
    return header.encode() + body


def truth(content):
    header = re.match(rb"(\d{1,15})[ \t]+(\d{1,9})[ \t]*\r?\n", content)
    if not header:
        return None
    n = int(header[1])
    d = int(header[2])
    at = header.end()
    if n > 1000 or d > 1000:
        return None
    words = []
    vectors = []
    try:
        for _ in range(n):
            space_at = content.index(b" ", at)
            words.append(content[at:space_at].lstrip(b"\n").decode("utf-8", "replace"))
            vectors.append(struct.unpack_from(f"<{d}f", content, space_at + 1))
            at = space_at + 1 + 4 * d
    except (ValueError, struct.error):
        return None
    if content[at:].strip():
        return None
    return good(rows(vectors, words))


def cases():
    read = space(FILE)
    right = rows(TABLE, WORDS)
    packed = gzip.compress(binary(), mtime=0)
    yield from controls(read, FILE, {"usual": (binary(), right), "no line ends": (binary(end=b""), right)})
    yield from controls(space("w.bin.gz"), "w.bin.gz", {"gzipped": (packed, right)})
    yield from controls(space("w.gz"), "w.gz", {"only .gz": (packed, right)})
    limited = rows(TABLE[:5], WORDS[:5])
    yield from controls(space(FILE, limit=5), FILE, {"limit": (binary(), limited)})
    headers = {
        "none": "",
        "d + 1": "12 5\n",
        "n + 1": "13 4\n",
        "n = 0": "0 4\n",
        "10¹² rows": "1000000000000 4\n",
        "10⁹ columns": "1 999999999\n",
        "no line end": "12 4",
        "a BOM before it": "\ufeff12 4\n",
    }
    contents = {name: binary(header=header) for name, header in headers.items()}
    contents["fastText's magic number"] = b"\xba\x16\x4f\x2f\x0c\0\0\0" + binary(header="")
    yield from each(read, FILE, contents, truth, "header: ")
    spoilt = TABLE.copy()
    long = ["x" * 10**6, *WORDS[1:]]
    spoilt[3, 1] = np.nan
    latin = binary().replace("naïve".encode(), "naïve".encode("latin-1"))
    contents = {
        "NaN": binary(vectors=spoilt),
        "a word twice": binary([*WORDS[:-1], WORDS[0]]),
        "a word of 1 MB": (binary(long), rows(TABLE, long)),
        "a word in Latin-1": (latin, truth(latin)),
        "no blank in 2 GB": hole(2 * 10**9, b"12 4\nword"),
        "100 million rows and 50 zero bytes of them": hole(1_600_000_000, b"100000000 3\n"),
    }
    yield from each(read, FILE, contents)
    bomb = gzip.compress(b"12 4\n") + gzip.compress(bytes(1 << 24)) * 1000
    damaged = {"a gzip of 16 GB of zeros": (bomb, None), **dict(spoiled(packed, points=(2, 10, 18)))}
    read = space("w.bin.gz")
    yield from each(read, "w.bin.gz", damaged, lambda given: truth(unpacked(given)), "gzip: ")
    yield from hurt(FILE, binary(), truth, (3, 4, 5, 8, 9, 10, 24, 25, 26), n_flips=12)
