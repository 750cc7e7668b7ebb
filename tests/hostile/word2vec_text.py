"""Hostile .vec and .txt files, plain and gzipped; the independent reading splits lines at blanks."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

from hypothesis import strategies as st

from tests.hostile.cases import Case, good, hole, places, rows, space, spoiled
from tests.hostile.corpus import changes

FILE = "words.vec"
WORDS = ["the", "of", "naïve", "水", "a.b", "x_1", "42", "1.5", "'", '"', "@", "-"]
NUMBERS = [[f"{(row * 4 + column) / 7 - 3:.4f}" for column in range(4)] for row in range(12)]
VALUES = [[float(cell) for cell in line] for line in NUMBERS]
PLAIN = [" ".join([word, *line]) for word, line in zip(WORDS, NUMBERS, strict=True)]
HEADED = ["12 4", *PLAIN]


def text(lines: list[str], end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


def truth(content: bytes) -> dict | None:
    """Strictly: a header of two numbers or none, then a word and d numbers per line. A word that is not
    UTF-8 may show "�".
    """
    try:
        lines = [line for line in content.decode("utf-8-sig", "replace").split("\n") if line.strip()]
        cells = [re.split(r"[ \t]+", line.strip(" \t\r")) for line in lines]
        header = re.fullmatch(r"\d+[ \t]+\d+[ \t]*\r?", lines[0])
        body = cells[1:] if header else cells
        d = int(cells[0][1]) if header else len(cells[0]) - 1
        first = 1 if header else 0
        body = [_joined(line, lines[first + at], d) if header or at else line for at, line in enumerate(body)]
        if (header and int(cells[0][0]) != len(body)) or any(len(line) != d + 1 for line in body):
            return None
        if any("_" in cell or not cell.isascii() for line in body for cell in line[1:]):
            return None
        return good(rows([[float(cell) for cell in line[1:]] for line in body], [line[0] for line in body]))
    except (ValueError, IndexError, OverflowError):
        return None


def _joined(cells: list[str], line: str, d: int) -> list[str]:
    """A word with blanks in it, as GloVe has some, is one field, unless a later part of it is a number."""
    if (
        d < 1
        or len(cells) <= d + 1
        or any(re.fullmatch(r"[-+.\d]+(e[-+]?\d+)?|[-+]?(nan|inf)", part) for part in cells[1:-d])
    ):
        return cells
    return [re.sub(rf"([ \t]+\S+){{{d}}}$", "", line.strip(" \t\r")), *cells[-d:]]


def cases() -> Iterator[Case]:
    read, right = space(FILE), rows(VALUES, WORDS)
    for name, lines in {"with a header": HEADED, "without a header": PLAIN}.items():
        content = text(lines)
        yield Case(f"control: {name}", read, {FILE: content}, right, accept=True)
        yield Case(f"control: {name}, CR LF", read, {FILE: text(lines, "\r\n")}, right, accept=True)
        yield Case(
            f"control: {name}, a blank at each end", read, {FILE: text(lines, " \n")}, right, accept=True
        )
        yield Case(
            f"control: {name}, limit",
            space(FILE, limit=5),
            {FILE: content},
            rows(VALUES[:5], WORDS[:5]),
            accept=True,
        )
        yield Case(
            f"control: {name}, gzipped",
            space("w.txt.gz"),
            {"w.txt.gz": gzip.compress(content)},
            right,
            accept=True,
        )
        yield Case(
            f"control: {name}, only .gz", space("w.gz"), {"w.gz": gzip.compress(content)}, right, accept=True
        )
        yield Case(f"{name}, BOM", read, {FILE: b"\xef\xbb\xbf" + content}, right, accept=True)
        yield Case(
            f"{name}, BOM, gzipped",
            space("w.vec.gz"),
            {"w.vec.gz": gzip.compress(b"\xef\xbb\xbf" + content)},
            right,
        )
        for encoding in ("utf-16", "utf-16-le", "utf-32"):
            yield Case(f"{name}, {encoding}", read, {FILE: content.decode().encode(encoding)})
        latin = content.decode().replace("水", "é").encode("latin-1")
        yield Case(f"{name}, Latin-1", read, {FILE: latin}, truth(latin))
        yield Case(f"{name}, lines end in CR", read, {FILE: text(lines, "\r")}, right)
        yield Case(f"{name}, tabs", read, {FILE: content.replace(b" ", b"\t")}, right)
        yield Case(f"{name}, two blanks", read, {FILE: content.replace(b" ", b"  ")}, right)
        yield Case(f"{name}, blank lines between", read, {FILE: content.replace(b"\n", b"\n\n")}, right)
        yield Case(
            f"{name}, a zero byte in a word",
            read,
            {FILE: content.replace(b"the", b"t\0e")},
            right | {"ids": ["t\0e", *WORDS[1:]]},
        )
        yield Case(f"{name}, no line end at the end", read, {FILE: content[:-1]}, right, accept=True)
        for broken, line in {
            "one number more": f"the {' '.join(NUMBERS[0])} 1.5",
            "two numbers more": f"the {' '.join(NUMBERS[0])} 1.5 2.5",
            "one number less": f"the {' '.join(NUMBERS[0][:-1])}",
            "only a word": "the",
            "only numbers": " ".join(NUMBERS[0]),
            "only numbers after a blank": " " + " ".join(NUMBERS[0]),
            "a word instead of a number": f"the x {' '.join(NUMBERS[0][1:])}",
            "a decimal comma": f"the 1,5 {' '.join(NUMBERS[0][1:])}",
            "an underscore in a number": f"the 1_5 {' '.join(NUMBERS[0][1:])}",
            "a hexadecimal number": f"the 0x10 {' '.join(NUMBERS[0][1:])}",
            "other digits": f"the ٣ {' '.join(NUMBERS[0][1:])}",
            "NaN": f"the nan {' '.join(NUMBERS[0][1:])}",
            "infinity": f"the -inf {' '.join(NUMBERS[0][1:])}",
            "beyond float32": f"the 1e39 {' '.join(NUMBERS[0][1:])}",
            "beyond float64": f"the 1e999 {' '.join(NUMBERS[0][1:])}",
            "a word twice": " ".join(["of", *NUMBERS[0]]),
            "a quoted number": f'the "1.5" {" ".join(NUMBERS[0][1:])}',
            "true": f"the true {' '.join(NUMBERS[0][1:])}",
            "an empty number": f"the  {' '.join(NUMBERS[0][1:])}",
        }.items():
            for at in (0, 6):
                changed = [*PLAIN[:at], line, *PLAIN[at + 1 :]]
                if broken == "a word twice":
                    changed[3] = line
                if broken == "only numbers" and not at and lines is PLAIN:
                    continue  # a GloVe file of three dimensions, whose second line then is wrong; below
                yield Case(
                    f"{name}, row {at + 1}: {broken}",
                    read,
                    {FILE: text([*lines[: len(lines) - 12], *changed])},
                )
    for name, header in {
        "d - 1": "12 3",
        "d + 1": "12 5",
        "n - 1": "11 4",
        "n + 1": "13 4",
        "d = 0": "12 0",
        "n = 0": "0 4",
        "10¹² rows": "1000000000000 4",
        "10⁹ columns": "12 1000000000",
        "negative": "-12 4",
        "a fraction": "12.0 4",
        "three numbers": "12 4 1",
        "one number": "12",
        "words": "rows columns",
        "30 digits": "9" * 30 + " 4",
    }.items():
        content = text([header, *PLAIN])
        yield Case(f"header: {name}", read, {FILE: content}, truth(content))
    phrases = [PLAIN[0].replace("the", "New York"), *PLAIN[1:]]
    yield Case(
        "a word with a blank in it",
        read,
        {FILE: text(["12 4", *phrases])},
        rows(VALUES, ["New York", *WORDS[1:]]),
    )
    yield Case("one line of 60 MB", read, {FILE: b"the" + b" 0.123456" * 6_700_000})
    yield Case("one line of 2 GB without a blank", read, {FILE: hole(2 * 10**9, b"the 1 2")})
    yield Case(
        "a gzip of 16 GB of zeros", space("w.vec.gz"), {"w.vec.gz": gzip.compress(bytes(1 << 24)) * 1000}
    )
    yield Case(
        "a gzip of 16 GB of blanks",
        space("w.gz"),
        {"w.gz": gzip.compress(b"2 2\n") + gzip.compress(b" " * (1 << 24)) * 1000},
    )
    yield Case("not gzipped", space("w.vec.gz"), {"w.vec.gz": text(HEADED)})
    yield Case("gzipped, but called .vec", read, {FILE: gzip.compress(text(HEADED))})
    yield from places(FILE, read)
    packed = gzip.compress(text(HEADED), mtime=0)
    for name, content in spoiled(packed, points=(2, 10, 18)):
        try:
            unpacked = gzip.decompress(content)
        except Exception:
            unpacked = b""
        yield Case(f"gzip: {name}", space("w.vec.gz"), {"w.vec.gz": content}, truth(unpacked))
    for name, content in spoiled(text(HEADED), points=(2, 4, 5, 8, 9, 40, len(text(HEADED)) - 2)):
        yield Case(name, read, {FILE: content}, truth(content))


def drawn():
    whole = text(HEADED)

    def make(name: str, content: bytes) -> Case:
        return Case(name, space(FILE), {FILE: content}, truth(content))

    cell = st.sampled_from(
        ["1", "-2.5", "1e3", "nan", "x", "", "1_0", "٣", "1,5", "inf", "+.5", "1e", "--1", "1 2", "\xa01"]
    )
    line = st.lists(cell, min_size=0, max_size=5).map(" ".join)
    lines = st.tuples(
        st.sampled_from(["3 2", "2 2", "3 3", "", "﻿3 2"]), st.lists(line, min_size=1, max_size=4)
    )
    written = lines.map(
        lambda one: "\n".join([one[0], *(f"w{row} {cells}" for row, cells in enumerate(one[1]))]).encode()
    )
    return changes(whole, make) | written.map(lambda content: make(f"drawn: {content!r}", content))
