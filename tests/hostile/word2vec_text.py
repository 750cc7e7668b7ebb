"""Hostile .vec and .txt files, plain and gzipped; the independent reading splits lines at blanks."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

import numpy as np

from tests.hostile.cases import STATE, Case, control, each, good, hole, places, rows, space, spoiled

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
    number = re.compile(r"[-+.\d]+(e[-+]?\d+)?|[-+]?(nan|inf)")
    if d < 1 or len(cells) <= d + 1 or any(map(number.fullmatch, cells[1:-d])):
        return cells
    return [re.sub(rf"([ \t]+\S+){{{d}}}$", "", line.strip(" \t\r")), *cells[-d:]]


def unpacked(content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except Exception:
        return b""


def cases() -> Iterator[Case]:
    read, right = space(FILE), rows(VALUES, WORDS)
    for name, lines in {"with a header": HEADED, "without a header": PLAIN}.items():
        content = text(lines)
        yield control(f"{name}", read, {FILE: content}, right)
        yield control(f"{name}, CR LF", read, {FILE: text(lines, "\r\n")}, right)
        blanks, limited = text(lines, " \n"), rows(VALUES[:5], WORDS[:5])
        yield control(f"{name}, a blank at each end", read, {FILE: blanks}, right)
        yield control(f"{name}, limit", space(FILE, limit=5), {FILE: content}, limited)
        for file in ("w.txt.gz", "w.gz"):
            packed = {file: gzip.compress(content)}
            yield control(f"{name}, {file}", space(file), packed, right)
        yield Case(f"{name}, BOM", read, {FILE: b"\xef\xbb\xbf" + content}, right, accept=True)
        for encoding in ("utf-16", "utf-16-le", "utf-32"):
            yield Case(f"{name}, {encoding}", read, {FILE: content.decode().encode(encoding)})
        latin = content.decode().replace("水", "é").encode("latin-1")
        yield Case(f"{name}, Latin-1", read, {FILE: latin}, truth(latin))
        forms = {
            "lines end in CR": text(lines, "\r"),
            "tabs": content.replace(b" ", b"\t"),
            "two blanks": content.replace(b" ", b"  "),
            "blank lines between": content.replace(b"\n", b"\n\n"),
        }
        yield from each(read, FILE, forms, lambda _: right, f"{name}, ")
        zero = {FILE: content.replace(b"the", b"t\0e")}
        yield Case(f"{name}, a zero byte in a word", read, zero, right | {"ids": ["t\0e", *WORDS[1:]]})
        yield Case(f"{name}, no line end at the end", read, {FILE: content[:-1]}, right, accept=True)
        others = " ".join(NUMBERS[0][1:])
        wrong = {one: f"the {one} {others}" for one in ("x", "1,5", "٣", "nan", "1e39")} | {
            "one number more": f"the {' '.join(NUMBERS[0])} 1.5",
            "one number less": f"the {others}",
            "only a word": "the",
            "a word twice": " ".join(["of", *NUMBERS[0]]),
            "an empty number": f"the  {others}",
        }
        for broken, line in wrong.items():
            for at in (0, 6):
                changed = [*PLAIN[:at], line, *PLAIN[at + 1 :]]
                if broken == "a word twice":
                    changed[3] = line
                content = text([*lines[: len(lines) - 12], *changed])
                yield Case(f"{name}, row {at + 1}: {broken}", read, {FILE: content})
    headers = {
        "d + 1": "12 5",
        "n + 1": "13 4",
        "n = 0": "0 4",
        "10¹² rows": "1000000000000 4",
        "30 digits": "9" * 30 + " 4",
    }
    contents = {name: text([header, *PLAIN]) for name, header in headers.items()}
    yield from each(read, FILE, contents, truth, "header: ")
    phrases = text(["12 4", PLAIN[0].replace("the", "New York"), *PLAIN[1:]])
    named = rows(VALUES, ["New York", *WORDS[1:]])
    yield Case("a word with a blank in it", read, {FILE: phrases}, named)
    yield Case("one line of 60 MB", read, {FILE: b"the" + b" 0.123456" * 6_700_000})
    yield Case("one line of 2 GB without a blank", read, {FILE: hole(2 * 10**9, b"the 1 2")})
    block = {one: gzip.compress(one * (1 << 24)) * 1000 for one in (b"\0", b" ")}
    yield Case("a gzip of 16 GB of zeros", space("w.vec.gz"), {"w.vec.gz": block[b"\0"]})
    yield Case("a gzip of 16 GB of blanks", space("w.gz"), {"w.gz": gzip.compress(b"2 2\n") + block[b" "]})
    yield Case("not gzipped", space("w.vec.gz"), {"w.vec.gz": text(HEADED)})
    yield Case("gzipped, but called .vec", read, {FILE: gzip.compress(text(HEADED))})
    yield from places(FILE, read)
    packed = gzip.compress(text(HEADED), mtime=0)
    damaged = spoiled(packed, points=(2, 10, 18))
    yield from each(space("w.vec.gz"), "w.vec.gz", damaged, lambda given: truth(unpacked(given)), "gzip: ")
    damaged = spoiled(text(HEADED), points=(2, 4, 5, 8, 9, 40, len(text(HEADED)) - 2))
    yield from each(read, FILE, damaged, truth)
    cells = ["1", "-2.5", "1e3", "nan", "x", "", "1_0", "٣", "1,5", "inf", "+.5", "1e", "--1", "1 2", "\xa01"]
    for number in range(60):
        rng = np.random.default_rng([STATE, number])
        body = [
            " ".join([f"w{row}", *rng.choice(cells, rng.integers(6))]) for row in range(rng.integers(1, 5))
        ]
        drawn = "\n".join([str(rng.choice(["3 2", "2 2", "3 3", "", "\ufeff3 2"])), *body]).encode()
        yield Case(f"drawn {number}: {drawn!r}", read, {FILE: drawn}, truth(drawn))
