"""Hostile word2vec .bin files; the independent reading walks through the bytes one field at a time."""

from __future__ import annotations

import gzip
import re
import struct
from collections.abc import Iterator

import numpy as np

from tests.hostile.cases import Case, control, each, good, hole, places, rows, space, spoiled
from tests.hostile.npy import TABLE
from tests.hostile.word2vec_text import WORDS, unpacked

FILE = "words.bin"


def binary(
    words: list[str] = WORDS, vectors: np.ndarray = TABLE, header: str = "12 4\n", end: bytes = b"\n"
) -> bytes:
    body = b"".join(
        word.encode() + b" " + row.astype("<f4").tobytes() + end
        for word, row in zip(words, vectors, strict=True)
    )
    return header.encode() + body


def truth(content: bytes) -> dict | None:
    header = re.match(rb"(\d{1,15})[ \t]+(\d{1,9})[ \t]*\r?\n", content)
    if not header:
        return None
    n, d, at = int(header[1]), int(header[2]), header.end()
    if n > 1000 or d > 1000:
        return None
    words, vectors = [], []
    try:
        for _ in range(n):
            space_at = content.index(b" ", at)
            words.append(content[at:space_at].lstrip(b"\n").decode("utf-8", "replace"))
            vectors.append(struct.unpack_from(f"<{d}f", content, space_at + 1))
            at = space_at + 1 + 4 * d
    except (ValueError, struct.error):
        return None
    return None if content[at:].strip() else good(rows(vectors, words))


def cases() -> Iterator[Case]:
    read, right = space(FILE), rows(TABLE, WORDS)
    yield Case("control", read, {FILE: binary()}, right, accept=True)
    yield control("no line ends", read, {FILE: binary(end=b"")}, right)
    yield control("gzipped", space("w.bin.gz"), {"w.bin.gz": gzip.compress(binary())}, right)
    yield control("only .gz", space("w.gz"), {"w.gz": gzip.compress(binary())}, right)
    yield control("limit", space(FILE, limit=5), {FILE: binary()}, rows(TABLE[:5], WORDS[:5]))
    for name, header in {
        "none": "",
        "d + 1": "12 5\n",
        "n + 1": "13 4\n",
        "n = 0": "0 4\n",
        "10¹² rows": "1000000000000 4\n",
        "10⁹ columns": "1 999999999\n",
        "no line end": "12 4",
        "a BOM before it": "﻿12 4\n",
        "fastText's magic number": "",
    }.items():
        start = b"\xba\x16\x4f\x2f\x0c\0\0\0" if name.startswith("fastText") else b""
        content = start + binary(header=header)
        yield Case(f"header: {name}", read, {FILE: content}, truth(content))
    spoilt, long = TABLE.copy(), ["x" * 10**6, *WORDS[1:]]
    spoilt[3, 1] = np.nan
    yield Case("NaN", read, {FILE: binary(vectors=spoilt)})
    yield Case("a word twice", read, {FILE: binary([*WORDS[:-1], WORDS[0]])})
    yield Case("a word of 1 MB", read, {FILE: binary(long)}, rows(TABLE, long))
    latin = binary().replace("naïve".encode(), "naïve".encode("latin-1"))
    yield Case("a word in Latin-1", read, {FILE: latin}, truth(latin))
    yield Case("no blank in 2 GB", read, {FILE: hole(2 * 10**9, b"12 4\nword")})
    many = {FILE: hole(1_600_000_000, b"100000000 3\n")}
    yield Case("100 million rows and 50 zero bytes of them", read, many)
    bomb = {"w.bin.gz": gzip.compress(b"12 4\n") + gzip.compress(bytes(1 << 24)) * 1000}
    yield Case("a gzip of 16 GB of zeros", space("w.bin.gz"), bomb)
    yield from places(FILE, read)
    damaged = spoiled(binary(), points=(3, 4, 5, 8, 9, 10, 24, 25, 26), n_flips=12)
    yield from each(read, FILE, damaged, truth)
    damaged = spoiled(gzip.compress(binary(), mtime=0), points=(2, 10, 18))
    yield from each(space("w.bin.gz"), "w.bin.gz", damaged, lambda given: truth(unpacked(given)), "gzip: ")
