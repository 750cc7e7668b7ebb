"""Hostile files of ids and labels beside an .npy; the independent reading takes one line per row."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hostile.cases import Case, encodings, hole, link, pipe, rows, space
from tests.hostile.npy import TABLE, npy

FILE, IDS, LABELS = "words.npy", "words.ids.txt", "words.labels.txt"
NAMES = [f"naïve {row}" for row in range(12)]
CLASSES = ["a", "", "水", "b"] * 3


def read_lines(content: bytes) -> list[str] | None:
    """One item per line; a byte order mark, line ends of other systems and empty lines after twelve are no
    part of it.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    return lines if any(lines[12:]) else lines[:12]


def truth(ids: bytes, labels: bytes | None = None) -> dict | None:
    named, classes = read_lines(ids), None if labels is None else read_lines(labels)
    wrong = named is None or len(named) != 12 or len(set(named)) < 12 or not all(one.strip() for one in named)
    if wrong or (labels is not None and (classes is None or len(classes) != 12)):
        return None
    return rows(TABLE, named, classes)


def case(name: str, ids: bytes, labels: bytes | None = None, accept: bool = False) -> Case:
    beside = {IDS: ids} | ({} if labels is None else {LABELS: labels})
    return Case(name, space(FILE), {FILE: npy(TABLE), **beside}, truth(ids, labels), accept=accept)


def cases() -> Iterator[Case]:
    ids, labels = "\n".join(NAMES).encode(), "\n".join(CLASSES).encode()
    yield case("control: ids", ids, accept=True)
    yield case("control: ids and labels", ids + b"\n", labels + b"\n", accept=True)
    for what, make in {"ids": lambda content: (content,), "labels": lambda content: (ids, content)}.items():
        right = ids if what == "ids" else labels
        text = right.decode()
        for name, content in {
            **encodings(right),
            "UTF-16 without its mark": text.encode("utf-16-le"),
            "empty": b"",
            "one line missing": text.rpartition("\n")[0].encode(),
            "one line too many": right + b"\nmore\n",
            "a line separator of Unicode": text.replace("\n", "\u2028", 1).encode(),
            "cut within a letter": right.replace("ï".encode(), b"\xc3").replace("水".encode(), b"\xe6"),
        }.items():
            yield case(f"{what}: {name}", *make(content))
        beside = IDS if what == "ids" else LABELS
        others = {FILE: npy(TABLE)} | ({IDS: ids} if what == "labels" else {})
        plain = rows(TABLE, NAMES if what == "labels" else None)
        for name, made in {
            "a folder": lambda path: path.mkdir(),
            "a named pipe": pipe,
            "a link to a device": link("/dev/zero"),
            "a link to nothing": link("missing"),
        }.items():
            yield Case(f"{what}: {name}", space(FILE), others | {beside: made}, plain)
        for name, head in {"of zeros": b"", "after the right lines": right + b"\n"}.items():
            files = others | {beside: hole(3 * 10**9, head)}
            yield Case(f"{what}: 3 GB {name}", space(FILE), files)
    twice = "\n".join([*NAMES[:-1], NAMES[0]]).encode()
    yield case("an id twice", twice)
    yield case("a blank id", "\n".join(["  ", *NAMES[1:]]).encode())
    yield case("an id of 1 MB", "\n".join(["x" * 10**6, *NAMES[1:]]).encode())
    first = Case("duplicates: the first", space(FILE, duplicates="first"), {FILE: npy(TABLE), IDS: twice})
    yield Case(first.name, first.read, first.files, rows(TABLE[:11], NAMES[:11]), accept=True)
