"""Hostile .csv and .tsv files of vectors; the independent reading is Python's csv, which looks at every
cell first.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from itertools import chain, repeat

from hypothesis import strategies as st

from tests.hostile.cases import Case, good, hole, places, rows, space, spoiled
from tests.hostile.corpus import changes
from tests.hostile.npy import TABLE
from tests.hostile.npz import COUNTS, IDS, LABELS

MISSING = ("", "nan", "na", "n/a", "null")  # labels that are none
NAMES = ["id", "x", "y", "z", "w"]
CELLS = [[one, *(f"{value:.5g}" for value in row)] for one, row in zip(IDS, TABLE.tolist(), strict=True)]
VALUES = [[float(cell) for cell in line[1:]] for line in CELLS]


def table(lines: list[list[str]], names: list[str] = NAMES, comma: str = ",", end: str = "\n") -> bytes:
    stream = io.StringIO()
    csv.writer(stream, delimiter=comma, lineterminator=end).writerows([names, *lines])
    return stream.getvalue().encode()


def is_number(cell: str) -> bool:
    try:
        return "_" not in cell and cell.strip().isascii() and math.isfinite(float(cell))
    except ValueError:
        return False


def truth(content: bytes, comma: str = ",") -> dict | None:
    """A column is numbers or text by all of its cells; one of both is nothing that may be guessed."""
    try:
        text = content.decode("utf-8-sig")
        csv.field_size_limit(1 << 30)
        lines = [
            line for line in csv.reader(io.StringIO(text, newline=""), delimiter=comma, strict=True) if line
        ]
    except (UnicodeDecodeError, csv.Error):
        return None
    names, body = (lines[0], lines[1:]) if lines else ([], [])
    if (
        not body
        or any(len(line) != len(names) for line in body)
        or any(is_number(name) and not name.strip().isdigit() for name in names)
    ):
        return None
    columns, roles, vectors, texts = list(zip(*body, strict=True)), {}, [], []
    for at, name in enumerate(names):
        for role in ("id", "label", "count"):
            if name.strip().lower() in (role, f"{role}s"):
                roles.setdefault(role, at)
    numbered = all(is_number(cell) or cell.lower() in MISSING for cell in columns[0]) and any(columns[0])
    index = (
        names[0] in ("", "Unnamed: 0", "__index_level_0__")
        and 0 not in roles.values()
        and (numbered or "id" in roles)
    )
    for at, column in enumerate(columns):
        unnamed = not names[at].strip() and not any(
            cell.strip() for cell in column
        )  # a comma at the end of each line
        if at in roles.values() or (index and not at) or unnamed:
            continue
        if all(map(is_number, column)):
            vectors.append([float(cell) for cell in column])
        elif any(map(is_number, column)) or not all(cell.strip() for cell in column):
            return None
        else:
            texts.append(at)
    ids = roles.get("id", texts[0] if texts else 0 if index else None)
    counts = columns[roles["count"]] if "count" in roles else None
    if not vectors or (
        counts is not None and not all(re.fullmatch(r"[0-9]{1,19}(\.0*)?", cell.strip()) for cell in counts)
    ):
        return None
    found = rows(
        list(zip(*vectors, strict=True)),
        None if ids is None else list(columns[ids]),
        (
            ["" if cell.lower() in MISSING else cell for cell in columns[roles["label"]]]
            if "label" in roles
            else None
        ),
        None if counts is None else [int(cell.partition(".")[0]) for cell in counts],
    )
    return good(found)


def cases() -> Iterator[Case]:
    for suffix, comma in ((".csv", ","), (".tsv", "\t")):
        yield from _usual(f"words{suffix}", comma)
    yield from _columns("words.csv")
    yield from _large("words.csv")
    yield from places("words.csv", space("words.csv"))


def _usual(file: str, comma: str) -> Iterator[Case]:
    read, right = space(file), rows(VALUES, IDS)
    whole = table(CELLS, comma=comma)
    yield Case(f"{file}: control", read, {file: whole}, right, accept=True)
    yield Case(
        f"{file}: control: limit", space(file, limit=5), {file: whole}, rows(VALUES[:5], IDS[:5]), accept=True
    )
    full = [[*line, label, str(count)] for line, label, count in zip(CELLS, LABELS, COUNTS, strict=True)]
    content = table(full, [*NAMES, "label", "count"], comma)
    yield Case(
        f"{file}: control: labels and counts",
        read,
        {file: content},
        rows(VALUES, IDS, LABELS, COUNTS),
        accept=True,
    )
    quoted = whole.replace(b"word1", b'"wo""rd\n1"', 1)
    yield Case(
        f"{file}: control: a line end in quotes", read, {file: quoted}, truth(quoted, comma), accept=True
    )
    for name, made in {
        "BOM": b"\xef\xbb\xbf" + whole,
        "CR LF": table(CELLS, comma=comma, end="\r\n"),
        "CR": table(CELLS, comma=comma, end="\r"),
        "UTF-16": whole.decode().encode("utf-16"),
        "UTF-16 without its mark": whole.decode().encode("utf-16-le"),
        "Latin-1": whole.decode().replace("word1", "wörd1", 1).encode("latin-1"),
        "Latin-1 in row 2,000": (
            table(CELLS * 200, comma=comma).decode().replace("word", "w\xf6rd").encode("latin-1")
        ),
        "zero bytes": bytes(300),
        "a zero byte in an id": whole.replace(b"word3", b"wo\0d3"),
        "a zero byte in a number": whole.replace(b"0.12573", b"0.12\x0073"),
        "blank lines between": whole.replace(b"\n", b"\n\n"),
        "no line end at the end": whole[:-1],
        "only the names": table([], comma=comma),
        "an open quote": whole.replace(b"word3", b'"word3'),
        "a quote within a cell": whole.replace(b"word3", b'wo"rd3'),
        "a cell too many": whole.replace(b"word3", f"word3{comma}1".encode()),
        "a cell too few": whole.replace(f"word3{comma}".encode(), b""),
        "semicolons": table(CELLS, comma=";"),
        "the other delimiter": table(CELLS, comma="\t" if comma == "," else ","),
        "no names": whole.partition(b"\n")[2],
    }.items():
        yield Case(f"{file}: {name}", read, {file: made}, truth(made, comma))
    for name, made in spoiled(whole, points=(1, 2, 13, 14, 20, len(whole) - 2), n_flips=10):
        yield Case(f"{file}: {name}", read, {file: made}, truth(made, comma))


def _columns(file: str) -> Iterator[Case]:
    """What a column holds, or turns out to hold."""
    read, long = space(file), [[f"w{row}", "1.5", str(row), "3"] for row in range(400)]
    for name, (rows_, first, cell) in {
        "a number column that begins with 150 words": (range(150), 2, "unknown"),
        "a number column that begins with 60 words": (range(60), 2, "unknown"),
        "a number column with a word in row 300": ([300], 2, "x"),
        "a number column with a word in row 2": ([2], 2, "x"),
        "a number column that begins with 150 blanks": (range(150), 2, ""),
        "a number column without numbers after row 150": (range(150, 400), 2, "x"),
        "a number column with NA": ([7], 2, "NA"),
        "a number column with NaN": ([7], 2, "nan"),
        "a number column with infinity": ([7], 2, "-Infinity"),
        "a number column with #N/A": ([7], 2, "#N/A"),
        "a number column with a decimal comma": ([7], 2, "1,5"),
        "a number column with a thousand's comma": ([7], 2, "1,000"),
        "a number column with an underscore": ([7], 2, "1_000"),
        "a number column with hexadecimal": ([7], 2, "0x10"),
        "a number column with other digits": ([7], 2, "٣"),
        "a number column with a unit": ([7], 2, "3 cm"),
        "a number column with true": ([7], 2, "true"),
        "a number column with a blank cell": ([7], 2, " "),
        "a number column with a date": ([7], 2, "2020-01-01"),
        "a number column with a number beyond float32": ([7], 2, "1e39"),
        "a number column with a number beyond float64": ([7], 2, "1e400"),
        "an empty id": ([7], 0, ""),
        "a blank id": ([7], 0, " "),
        "an id twice": ([7], 0, "w8"),
        "an id of NA": ([7], 0, "NA"),
        "an id of null": ([7], 0, "null"),
        "an id of 200 kB": ([7], 0, "x" * 200_000),
    }.items():
        for names in (["id", "a", "b", "c"], ["name", "a", "b", "c"]):
            lines = [
                [cell if row in rows_ and at == first else one for at, one in enumerate(line)]
                for row, line in enumerate(long)
            ]
            content = table(lines, names)
            yield Case(f"{'/'.join(names)}: {name}", read, {file: content}, truth(content))
    for name, (names, line) in {
        "all text": (["id", "a", "b"], lambda row: [f"w{row}", "x", "y"]),
        "numbers as ids": (["id", "a", "b"], lambda row: [str(row), "1", "2"]),
        "numbers as ids and another text": (
            ["id", "a", "b", "text"],
            lambda row: [str(row), "1", "2", f"t{row}"],
        ),
        "two texts": (["word", "class", "a", "b"], lambda row: [f"w{row}", "c", "1", "2"]),
        "an index without a name": (["", "a", "b"], lambda row: [str(row), "1", "2"]),
        "two columns of one name": (["id", "a", "a"], lambda row: [f"w{row}", "1", "2"]),
        "two columns of ids": (["id", "ids", "a"], lambda row: [f"w{row}", f"v{row}", "1"]),
        "names of digits": (["id", "0", "1"], lambda row: [f"w{row}", "1", "2"]),
        "names in capitals": (["ID", "LABEL", "a", "b"], lambda row: [f"w{row}", "c", "1", "2"]),
        "labels as numbers": (["id", "label", "a", "b"], lambda row: [f"w{row}", str(row % 3), "1", "2"]),
        "a label empty": (
            ["id", "label", "a", "b"],
            lambda row: [f"w{row}", "" if row == 3 else "c", "1", "2"],
        ),
        "counts with a fraction": (["id", "count", "a"], lambda row: [f"w{row}", "2.5", "1"]),
        "counts that are whole, with a point": (["id", "count", "a"], lambda row: [f"w{row}", "2.0", "1"]),
        "counts negative": (["id", "count", "a"], lambda row: [f"w{row}", "-2", "1"]),
        "counts beyond int64": (["id", "count", "a"], lambda row: [f"w{row}", "9223372036854775808", "1"]),
        "counts of 400 digits": (["id", "count", "a"], lambda row: [f"w{row}", "9" * 400, "1"]),
        "counts of 5,000 digits": (["id", "count", "a"], lambda row: [f"w{row}", "9" * 5000, "1"]),
        "counts NaN": (["id", "count", "a"], lambda row: [f"w{row}", "nan", "1"]),
        "counts empty": (["id", "count", "a"], lambda row: [f"w{row}", "", "1"]),
        "counts with an underscore": (["id", "count", "a"], lambda row: [f"w{row}", "1_0", "1"]),
        "counts in other digits": (["id", "count", "a"], lambda row: [f"w{row}", "٣", "1"]),
    }.items():
        content = table([line(row) for row in range(20)], names)
        yield Case(name, read, {file: content}, truth(content))
    yield Case("a column of ids that is not there", space(file, id_column="word"), {file: table(CELLS)})
    yield Case(
        "a column of labels that is not there", space(file, label_column="class"), {file: table(CELLS)}
    )
    by_number = space(file, id_column="x")
    yield Case(
        "ids of a number column",
        by_number,
        {file: table(CELLS)},
        rows([line[1:] for line in VALUES], [line[1] for line in CELLS]),
    )


def _large(file: str) -> Iterator[Case]:
    read = space(file)
    yield Case("one cell of 60 MB", read, {file: b"id,a\nw0," + b"1" * 60_000_000})
    yield Case("one line of 60 MB", read, {file: b"id,a\nw0" + b",1.5" * 15_000_000})
    yield Case("names of 60 MB", read, {file: b"a" * 60_000_000 + b",b\n1,2\n"})
    names = ",".join(chain(["id"], map(str, range(10**6)))).encode()
    yield Case("a million names", read, {file: names + b"\nw," + b",".join(repeat(b"1", 10**6))})
    yield Case("a quote of 2 GB", read, {file: hole(2 * 10**9, b'id,a\n"w')})
    yield Case("a line of 2 GB", read, {file: hole(2 * 10**9, b"id,a\nw0,1\nw1,")})
    yield Case(
        "30 MB of line ends", read, {file: b"id,a\nw0,1\n" + b"\n" * 30_000_000}, rows([[1.0]], ["w0"])
    )


def drawn():
    def make(name: str, content: bytes) -> Case:
        return Case(name, space("words.csv"), {"words.csv": content}, truth(content))

    cell = st.sampled_from(
        [
            "1",
            "-2.5",
            "nan",
            "",
            "x",
            "y z",
            '"',
            "1,5",
            "NA",
            "1e3",
            " 2",
            "٣",
            "1_0",
            "inf",
            "\n",
            "\r",
            "é",
        ]
    )
    names = st.lists(
        st.sampled_from(["id", "label", "count", "a", "b", "", "0", "a"]), min_size=2, max_size=4
    )
    body = names.flatmap(
        lambda heads: st.lists(
            st.lists(cell, min_size=len(heads), max_size=len(heads)), min_size=1, max_size=4
        ).map(lambda lines: table(lines, heads))
    )
    return changes(table(CELLS), make) | body.map(lambda content: make(f"drawn: {content!r}", content))
