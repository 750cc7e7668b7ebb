"""Hostile files of ids and labels beside an .npy; the independent reading takes one line per row."""

from tests.hostile.cases import ODD_PLACES, TABLE, Case, encodings, hole, link, rows, space
from tests.hostile.npy import npy

FILE = "words.npy"
IDS = "words.ids.txt"
LABELS = "words.labels.txt"
NAMES = [f"naïve {row}" for row in range(12)]
CLASSES = ["a", "", "水", "b"] * 3


def read_lines(content):
    """One item per line. A byte order mark, line ends of other systems, and empty lines after the twelfth are
    ignored.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    return lines if any(lines[12:]) else lines[:12]


def truth(ids, labels=None):
    named = read_lines(ids)
    classes = None if labels is None else read_lines(labels)
    wrong = named is None or len(named) != 12 or len(set(named)) < 12 or not all(one.strip() for one in named)
    if wrong or (labels is not None and (classes is None or len(classes) != 12)):
        return None
    return rows(TABLE, named, classes)


def case(name, ids, labels=None, accept=False):
    beside = {IDS: ids} | ({} if labels is None else {LABELS: labels})
    return Case(name, space(FILE), {FILE: npy(TABLE), **beside}, truth(ids, labels), accept=accept)


def cases():
    ids = "\n".join(NAMES).encode()
    labels = "\n".join(CLASSES).encode()
    table = {FILE: npy(TABLE)}
    yield case("control: ids", ids, accept=True)
    yield case("control: ids and labels", ids + b"\n", labels + b"\n", accept=True)
    for beside, right in ((IDS, ids), (LABELS, labels)):
        text = right.decode()
        what = beside.split(".")[1]
        for name, content in {
            **encodings(right),
            "UTF-16 without its mark": text.encode("utf-16-le"),
            "empty": b"",
            "one line missing": text.rpartition("\n")[0].encode(),
            "one line too many": right + b"\nmore\n",
            "a line separator of Unicode": text.replace("\n", "\u2028", 1).encode(),
            "cut within a letter": right.replace("ï".encode(), b"\xc3").replace("水".encode(), b"\xe6"),
        }.items():
            yield case(f"{what}: {name}", *((content,) if beside == IDS else (ids, content)))
        others = table | ({IDS: ids} if beside == LABELS else {})
        plain = rows(TABLE, NAMES if beside == LABELS else None)
        for name, made in (ODD_PLACES | {"a link to nothing": link("missing")}).items():
            yield Case(f"{what}: {name}", space(FILE), others | {beside: made}, plain)
        for name, head in {"of zeros": b"", "after the right lines": right + b"\n"}.items():
            files = others | {beside: hole(3 * 10**9, head)}
            yield Case(f"{what}: 3 GB {name}", space(FILE), files)
    twice = "\n".join([*NAMES[:-1], NAMES[0]]).encode()
    yield case("an id twice", twice)
    for name, first in {"a blank id": "  ", "an id of 1 MB": "x" * 10**6}.items():
        yield case(name, "\n".join([first, *NAMES[1:]]).encode())
    right = rows(TABLE[:11], NAMES[:11])
    read = space(FILE, duplicates="first")
    yield Case("duplicates: the first", read, table | {IDS: twice}, right, accept=True)
