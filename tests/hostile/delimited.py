"""Hostile .csv and .tsv files of vectors; the independent reading is Python's csv, which looks at every
cell first.
"""

import math
import re
from functools import partial

import numpy as np

from tests.hostile.cases import (
    COUNTS,
    IDS,
    LABELS,
    STATE,
    TABLE,
    Case,
    csv_lines,
    csv_table,
    each,
    encodings,
    good,
    hole,
    places,
    rows,
    space,
    spoiled,
)

MISSING = ("", "nan", "na", "n/a", "null")  # these cells have no label
NAMES = ["id", "x", "y", "z", "w"]
CELLS = [[one, *(f"{value:.5g}" for value in row)] for one, row in zip(IDS, TABLE.tolist(), strict=True)]
VALUES = [[float(cell) for cell in line[1:]] for line in CELLS]


def table(lines, names=NAMES, comma=","):
    return csv_table([names, *lines], comma)


def is_number(cell):
    try:
        return "_" not in cell and cell.strip().isascii() and math.isfinite(float(cell))
    except ValueError:
        return False


def truth(content, comma=","):
    """All cells of a column decide whether it has numbers or text. If it has both, its kind must not be
    guessed."""
    names, *body = csv_lines(content, comma) or [[]]
    numbers = any(is_number(name) and not name.strip().isdigit() for name in names)
    if not body or any(len(line) != len(names) for line in body) or numbers:
        return None
    columns = list(zip(*body, strict=True))
    roles = {}
    vectors = []
    texts = []
    for at, name in enumerate(names):
        for role in ("id", "label", "count"):
            if name.strip().lower() in (role, f"{role}s"):
                roles.setdefault(role, at)
    numbered = all(is_number(cell) or cell.lower() in MISSING for cell in columns[0]) and any(columns[0])
    unnamed = names[0] in ("", "Unnamed: 0", "__index_level_0__")
    index = unnamed and 0 not in roles.values() and (numbered or "id" in roles)
    for at, column in enumerate(columns):
        trailing = not names[at].strip() and not any(
            cell.strip() for cell in column
        )  # a comma ends each line
        if at in roles.values() or (index and not at) or trailing:
            continue
        if all(map(is_number, column)):
            vectors.append([float(cell) for cell in column])
        elif any(map(is_number, column)) or not all(cell.strip() for cell in column):
            return None
        else:
            texts.append(at)
    usual = 0 if index else None
    ids = roles.get("id", texts[0] if texts else usual)
    counts = None
    if "count" in roles:
        counts = columns[roles["count"]]
    if not vectors or not all(re.fullmatch(r"[0-9]{1,19}(\.0*)?", cell.strip()) for cell in counts or ()):
        return None
    if ids is None:
        named = None
    else:
        named = list(columns[ids])
    labels = None
    if "label" in roles:
        labels = columns[roles["label"]]
    labels = labels and ["" if cell.lower() in MISSING else cell for cell in labels]
    counts = counts and [int(cell.partition(".")[0]) for cell in counts]
    return good(rows(list(zip(*vectors, strict=True)), named, labels, counts))


def cases():
    for suffix, comma in ((".csv", ","), (".tsv", "\t")):
        yield from _usual(f"words{suffix}", comma)
    yield from _columns("words.csv")
    yield from _large("words.csv")
    yield from places("words.csv", space("words.csv"))
    cells = ["1", "-2.5", "nan", "", "x", "y z", '"', "1,5", "NA", "1e3", " 2", "٣", "1_0", "inf"]
    cells += ["\n", "\r", "é"]
    heads = ["id", "label", "count", "a", "b", "", "0", "a"]
    for number in range(60):
        rng = np.random.default_rng([STATE, number])
        width, length = rng.integers((2, 1), (5, 5))
        drawn = table(rng.choice(cells, (length, width)).tolist(), rng.choice(heads, width).tolist())
        yield Case(f"drawn {number}: {drawn!r}", space("words.csv"), {"words.csv": drawn}, truth(drawn))


def _usual(file, comma):
    read = space(file)
    right = rows(VALUES, IDS)
    whole = table(CELLS, comma=comma)
    yield Case(f"{file}: control", read, {file: whole}, right, accept=True)
    limited = space(file, limit=5)
    yield Case(f"{file}: control: limit", limited, {file: whole}, rows(VALUES[:5], IDS[:5]), accept=True)
    full = [[*line, label, str(count)] for line, label, count in zip(CELLS, LABELS, COUNTS, strict=True)]
    content = table(full, [*NAMES, "label", "count"], comma)
    every = rows(VALUES, IDS, LABELS, COUNTS)
    yield Case(f"{file}: control: labels and counts", read, {file: content}, every, accept=True)
    quoted = whole.replace(b"word1", b'"wo""rd\n1"', 1)
    found = truth(quoted, comma)
    yield Case(f"{file}: control: a line end in quotes", read, {file: quoted}, found, accept=True)
    contents = {
        **encodings(whole),
        "blank lines between": whole.replace(b"\n", b"\n\n"),
        "an open quote": whole.replace(b"word3", b'"word3'),
        "a cell too many": whole.replace(b"word3", f"word3{comma}1".encode()),
        "no names": whole.partition(b"\n")[2],
        **dict(spoiled(whole, points=(1, 2, 13, 14, 20, len(whole) - 2), n_flips=10)),
    }
    yield from each(read, file, contents, partial(truth, comma=comma), f"{file}: ")


def _columns(file):
    read = space(file)
    long = [[f"w{row}", "1.5", str(row), "3"] for row in range(400)]
    for name, (rows_, first, cell) in {
        "numbers that begins with 150 words": (range(150), 2, "unknown"),
        "numbers with a word in row 300": ([300], 2, "x"),
        "numbers that begins with 150 blanks": (range(150), 2, ""),
        "numbers with NaN": ([7], 2, "nan"),
        "numbers with a decimal comma": ([7], 2, "1,5"),
        "numbers with an underscore": ([7], 2, "1_000"),
        "numbers with other digits": ([7], 2, "٣"),
        "numbers with a number beyond float32": ([7], 2, "1e39"),
        "an empty id": ([7], 0, ""),
        "an id twice": ([7], 0, "w8"),
        "an id of 200 kB": ([7], 0, "x" * 200_000),
    }.items():
        for names in (["id", "a", "b", "c"], ["name", "a", "b", "c"]):
            lines = [list(line) for line in long]
            for row in rows_:
                lines[row][first] = cell
            yield from each(read, file, {f"{'/'.join(names)}: {name}": table(lines, names)}, truth)
    for name, (names, line) in {
        "numbers as ids": (["id", "a", "b"], lambda row: [str(row), "1", "2"]),
        "numbers as ids and another text": (
            ["id", "a", "b", "text"],
            lambda row: [str(row), "1", "2", f"t{row}"],
        ),
        "two columns of one name": (["id", "a", "a"], lambda row: [f"w{row}", "1", "2"]),
        "counts beyond int64": (["id", "count", "a"], lambda row: [f"w{row}", "9223372036854775808", "1"]),
        "counts of 5,000 digits": (["id", "count", "a"], lambda row: [f"w{row}", "9" * 5000, "1"]),
    }.items():
        yield from each(read, file, {name: table([line(row) for row in range(20)], names)}, truth)
    printed = b'id,vector\na,"[ 1.5  2. ]"\nb,"[.5\n -1e0]"\n'
    yield from each(
        read, file, {"vectors as NumPy prints them": (printed, rows([[1.5, 2], [0.5, -1]], "ab"))}
    )
    for cell in (b"[1 ... 2]", b"[nan 1]", b"[1 2 3]", b"", b"text"):
        name = f"vectors as texts, and {cell.decode() or 'an empty cell'}"
        yield from each(
            read, file, {name: printed + b'c,"' + cell + b'"\n' + printed[10:].replace(b"a,", b"d,")}
        )
    yield Case("a column of ids that is not there", space(file, id_column="word"), {file: table(CELLS)})
    right = rows([line[1:] for line in VALUES], [line[1] for line in CELLS])
    yield Case("ids of a number column", space(file, id_column="x"), {file: table(CELLS)}, right)


def _large(file):
    read = space(file)
    yield Case("one line of 60 MB", read, {file: b"id,a\nw0" + b",1.5" * 15_000_000})
    yield Case("a line of 2 GB", read, {file: hole(2 * 10**9, b"id,a\nw0,1\nw1,")})
    blank = {file: b"id,a\nw0,1\n" + b"\n" * 30_000_000}
    yield Case("30 MB of line ends", read, blank, rows([[1.0]], ["w0"]))
