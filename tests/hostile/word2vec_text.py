"""Hostile .vec and .txt files, plain and gzipped; the independent reading splits lines at blanks."""

import gzip
import re

import numpy as np

from tests.hostile.cases import STATE, Case, each, good, hole, hurt, rows, space, spoiled

FILE = "words.vec"
WORDS = ["the", "of", "naïve", "水", "a.b", "x_1", "42", "1.5", "'", '"', "@", "-"]
NUMBERS = [[f"{(row * 4 + column) / 7 - 3:.4f}" for column in range(4)] for row in range(12)]
VALUES = [[float(cell) for cell in line] for line in NUMBERS]
PLAIN = [" ".join([word, *line]) for word, line in zip(WORDS, NUMBERS, strict=True)]
HEADED = ["12 4", *PLAIN]


def text(lines, end="\n"):
    return "".join(line + end for line in lines).encode()


def truth(content):
    """The strict reading: a header of two numbers or none, then a word and d numbers per line. A word that is
    not UTF-8 may show "�".
    """
    try:
        lines = [line for line in content.decode("utf-8-sig", "replace").split("\n") if line.strip()]
        cells = [re.split(r"[ \t]+", line.strip(" \t\r")) for line in lines]
        header = re.fullmatch(r"\d+[ \t]+\d+[ \t]*\r?", lines[0])
        body = cells[1:] if header else cells
        if header:
            d = int(cells[0][1])
        else:
            d = len(cells[0]) - 1
        first = 1 if header else 0
        body = [_joined(line, lines[first + at], d) if header or at else line for at, line in enumerate(body)]
        if (header and int(cells[0][0]) != len(body)) or any(len(line) != d + 1 for line in body):
            return None
        if any("_" in cell or not cell.isascii() for line in body for cell in line[1:]):
            return None
        return good(rows([[float(cell) for cell in line[1:]] for line in body], [line[0] for line in body]))
    except (ValueError, IndexError, OverflowError):
        return None


def _joined(cells, line, d):
    """A word with blanks in it, as GloVe has some, is one field, unless a later part of it is a number."""
    number = re.compile(r"[-+.\d]+(e[-+]?\d+)?|[-+]?(nan|inf)")
    if d < 1 or len(cells) <= d + 1 or any(map(number.fullmatch, cells[1:-d])):
        return cells
    return [re.sub(rf"([ \t]+\S+){{{d}}}$", "", line.strip(" \t\r")), *cells[-d:]]


def unpacked(content):
    try:
        return gzip.decompress(content)
    except Exception:
        return b""


def cases():
    read = space(FILE)
    for name, lines in {"with a header": HEADED, "without a header": PLAIN}.items():
        yield from _usual(read, f"{name}, ", lines)
    headers = {
        "d + 1": "12 5",
        "n + 1": "13 4",
        "n = 0": "0 4",
        "10¹² rows": "1000000000000 4",
        "30 digits": "9" * 30 + " 4",
    }
    contents = {name: text([header, *PLAIN]) for name, header in headers.items()}
    yield from each(read, FILE, contents, truth, "header: ")
    phrases = text(HEADED).replace(b"\nthe", b"\nNew York")
    headed = text(HEADED)
    contents = {
        "a word with a blank in it": (phrases, rows(VALUES, ["New York", *WORDS[1:]])),
        "one line of 60 MB": b"the" + b" 0.123456" * 6_700_000,
        "one line of 2 GB without a blank": hole(2 * 10**9, b"the 1 2"),
        "gzipped, but called .vec": gzip.compress(headed),
    }
    yield from each(read, FILE, contents)
    blanks = gzip.compress(b"2 2\n") + gzip.compress(b" " * (1 << 24)) * 1000
    yield from each(space("w.gz"), "w.gz", {"a gzip of 16 GB of blanks": blanks})
    damaged = {
        "16 GB of zeros": (gzip.compress(bytes(1 << 24)) * 1000, None),
        "not gzipped": headed,
        **dict(spoiled(gzip.compress(headed, mtime=0), points=(2, 10, 18))),
    }
    zipped = space("w.vec.gz")
    yield from each(zipped, "w.vec.gz", damaged, lambda given: truth(unpacked(given)), "gzip: ")
    yield from hurt(FILE, headed, truth, (2, 4, 5, 8, 9, 40, len(headed) - 2))
    cells = ["1", "-2.5", "1e3", "nan", "x", "", "1_0", "٣", "1,5", "inf", "+.5", "1e", "--1", "1 2", "\xa01"]
    for number in range(60):
        rng = np.random.default_rng([STATE, number])
        body = [
            " ".join([f"w{row}", *rng.choice(cells, rng.integers(6))]) for row in range(rng.integers(1, 5))
        ]
        drawn = "\n".join([str(rng.choice(["3 2", "2 2", "3 3", "", "\ufeff3 2"])), *body]).encode()
        yield Case(f"drawn {number}: {drawn!r}", read, {FILE: drawn}, truth(drawn))


def _usual(read, label, lines):
    content = text(lines)
    right = rows(VALUES, WORDS)
    forms = {
        "usual": content,
        "CR LF": text(lines, "\r\n"),
        "a blank at each end": text(lines, " \n"),
        "BOM": b"\xef\xbb\xbf" + content,
        "no line end at the end": content[:-1],
    }
    yield from each(read, FILE, forms, lambda _: right, label, accept=True)
    limited = {"limit": (content, rows(VALUES[:5], WORDS[:5]))}
    yield from each(space(FILE, limit=5), FILE, limited, label=label, accept=True)
    for file in ("w.txt.gz", "w.gz"):
        yield from each(space(file), file, {file: (gzip.compress(content), right)}, label=label, accept=True)
    forms = {
        "lines end in CR": text(lines, "\r"),
        "tabs": content.replace(b" ", b"\t"),
        "two blanks": content.replace(b" ", b"  "),
        "blank lines between": content.replace(b"\n", b"\n\n"),
    }
    yield from each(read, FILE, forms, lambda _: right, label)
    latin = content.decode().replace("水", "é").encode("latin-1")
    zero = content.replace(b"the", b"t\0e")
    forms = {one: content.decode().encode(one) for one in ("utf-16", "utf-16-le", "utf-32")} | {
        "Latin-1": (latin, truth(latin)),
        "a zero byte in a word": (zero, right | {"ids": ["t\0e", *WORDS[1:]]}),
    }
    yield from each(read, FILE, forms, label=label)
    first, *others = NUMBERS[0]
    wrong = {one: ["the", one, *others] for one in ("x", "1,5", "٣", "nan", "1e39")} | {
        "one number more": ["the", first, *others, "1.5"],
        "one number less": ["the", *others],
        "only a word": ["the"],
        "a word twice": ["a.b", first, *others],
        "an empty number": ["the", "", *others],
    }
    for at in (0, 6):
        made = {name: [*PLAIN[:at], " ".join(line), *PLAIN[at + 1 :]] for name, line in wrong.items()}
        contents = {name: text([*lines[:-12], *body]) for name, body in made.items()}
        yield from each(read, FILE, contents, label=f"{label}row {at + 1}: ")
