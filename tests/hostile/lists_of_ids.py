"""Hostile lists of anchors, seeds and pairs; the independent reading takes one line, or row of a table,
after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.cases import Case, csv_lines, each, encodings, hole, link, pipe, spoiled

IDS = ["river", "naïve", "水", "New York", "a,b", "x=y"]
PAIRS = [["dog", "perro"], ["cat", "gato"], ["water", "水"]]


def lines_of(content: bytes) -> list[str] | None:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def uploaded(content: bytes) -> Callable[[Path], Any]:
    def read(folder: Path) -> list[str]:
        from app.anchors.lists import read_ids

        return read_ids(content)

    return read


def from_file(folder: Path) -> list[str]:
    from relcore.commands.running import number_or_ids

    found = number_or_ids("list.txt")
    return found if isinstance(found, int) else list(found)


def seeds(folder: Path, name: str = "seeds.txt") -> list[list[str]]:
    from relcore.linking.link import known_pairs

    return [list(pair) for pair in known_pairs(Path(name))]


def pair_list(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> list[list[str]]:
        from relcore.encoders.datasets import read_pair_list

        found = read_pair_list(folder / name)
        return [list(row) for row in zip(*found.columns.values(), strict=True)]

    return read


def ids_in(content: bytes) -> list[str] | None:
    lines = lines_of(content)
    ids = [line.strip() for line in lines or () if line.strip()]
    return ids or None


def seeds_in(content: bytes) -> list[list[str]] | None:
    pairs = []
    for line in lines_of(content) or ():
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split("=", 1))]
        if line.strip() and (len(cells) < 2 or not cells[0] or not cells[1]):
            return None
        if line.strip():
            pairs.append(cells[:2])
    return pairs or None


def pairs_in(content: bytes, comma: str) -> list[list[str]] | None:
    lines = csv_lines(content, comma)
    if len(lines) < 3 or len(lines[0]) < 2 or {len(set(lines[0])), *map(len, lines)} != {len(lines[0])}:
        return None
    cells = [[" ".join(cell.split()) for cell in line] for line in lines[1:]]
    return cells if all(all(line) for line in cells) else None


def cases() -> Iterator[Case]:
    plain = "\n".join(IDS).encode()
    forms = {
        **encodings(plain),
        "control": plain,
        "blank lines": plain.replace(b"\n", b"\n \n\n"),
        "empty": b"",
        "a form feed within": plain.replace(b"New York", b"New\x0cYork"),
        "an id of 1 MB": b"x" * 10**6,
        "a pickle": b"\x80\x04cos\nsystem\n.",
    }
    for name, content in forms.items():
        right = None if b"\0" in content else ids_in(content)
        accept = name.startswith("control")
        yield Case(f"upload: {name}", uploaded(content), {}, right, accept=accept, names=("list",))
        distinct = right and list(dict.fromkeys(right))
        files, names = {"list.txt": content}, ("list.txt", "--anchors")
        yield Case(f"--anchors: {name}", from_file, files, distinct, accept=accept, names=names)
    for name, made in {
        "a folder": lambda path: path.mkdir(),
        "a named pipe": pipe,
        "a link to a device": link("/dev/zero"),
        "3 GB of zeros": hole(3 * 10**9),
    }.items():
        yield Case(f"--anchors: {name}", from_file, {"list.txt": made}, names=("list.txt", "--anchors"))
        yield Case(f"--seeds: {name}", seeds, {"seeds.txt": made}, names=("seeds.txt", "--seeds"))
        yield Case(f"pairs: {name}", pair_list("pairs.csv"), {"pairs.csv": made}, names=("pairs.csv",))
    yield from _seeds()
    yield from _pairs()


def _seeds() -> Iterator[Case]:
    plain = "\n".join("\t".join(pair) for pair in PAIRS).encode()
    for name, content in {
        **encodings(plain),
        "control": plain,
        "control: equal signs": plain.replace(b"\t", b" = "),
        "one side missing": plain + b"\nhouse\t",
        "no separator": plain + b"\nhouse casa",
        "empty": b"",
        "a line of 5 MB": b"x" * 5_000_000,
        "a form feed within": plain.replace(b"dog", b"do\x0cg"),
    }.items():
        right = None if b"\0" in content else seeds_in(content)
        files, accept = {"seeds.txt": content}, name.startswith("control")
        yield Case(f"--seeds: {name}", seeds, files, right, accept=accept, names=("seeds.txt", "--seeds"))


def _pairs() -> Iterator[Case]:
    for suffix, comma in ((".csv", ","), (".tsv", "\t")):
        file = f"pairs{suffix}"
        lines = [["english", "spanish"], *PAIRS]
        plain = "\n".join(comma.join(line) for line in lines).encode()
        for name, content in {
            **encodings(plain),
            "control": plain,
            "an empty cell": plain.replace(b"cat", b""),
            "a cell too many": plain + f"{comma}x".encode(),
            "one name twice": plain.replace(b"spanish", b"english"),
            "one column": b"english\ndog\ncat\n",
            "no rows": plain.partition(b"\n")[0],
            "empty": b"",
            "a cell of 200 kB": plain.replace(b"cat", b"x" * 200_000),
            "200,000 pairs": plain + b"".join(f"\na{row}{comma}b{row}".encode() for row in range(200_000)),
        }.items():
            right = None if name == "200,000 pairs" else pairs_in(content, comma)
            yield Case(f"{file}: {name}", pair_list(file), {file: content}, right, accept=name == "control")
            if suffix == ".csv" and right:
                yield Case(f"links: {name}", partial(seeds, name=file), {file: content}, right, accept=True)
        damaged = spoiled(plain, points=(8, 15, 16))
        yield from each(pair_list(file), file, damaged, partial(pairs_in, comma=comma), f"{file}: ")
