"""Hostile lists of anchors, seeds and pairs; the independent reading takes one line, or row of a table,
after the other.
"""

from functools import partial
from pathlib import Path

from app.anchors.lists import read_ids
from relcore.commands.anchors import number_or_ids
from relcore.encoders.item_tables import read_pair_list
from relcore.files.links import known_pairs
from tests.hostile.cases import ODD_PLACES, Case, controls, csv_lines, each, encodings, hole, spoiled

IDS = ["river", "naïve", "水", "New York", "a,b", "x=y"]
PAIRS = [["dog", "perro"], ["cat", "gato"], ["water", "水"]]


def lines_of(content):
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def from_file(folder):
    found = number_or_ids("list.txt")
    if isinstance(found, int):
        return found
    return list(found)


def seeds(folder, name="seeds.txt"):
    return [list(pair) for pair in known_pairs(Path(name))]


def pair_list(name):
    def read(folder):
        return [list(row) for row in zip(*read_pair_list(folder / name).columns.values(), strict=True)]

    return read


def ids_in(content):
    lines = lines_of(content)
    ids = [line.strip() for line in lines or () if line.strip()]
    return ids or None


def seeds_in(content):
    pairs = []
    for line in lines_of(content) or ():
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split("=", 1))]
        if line.strip() and (len(cells) < 2 or not cells[0] or not cells[1]):
            return None
        if line.strip():
            pairs.append(cells[:2])
    return pairs or None


def pairs_in(content, comma):
    lines = csv_lines(content, comma)
    if len(lines) < 3 or len(lines[0]) < 2 or {len(set(lines[0])), *map(len, lines)} != {len(lines[0])}:
        return None
    cells = [[" ".join(cell.split()) for cell in line] for line in lines[1:]]
    if all(all(line) for line in cells):
        return cells
    return None


def cases():
    plain = "\n".join(IDS).encode()
    seeded = "\n".join("\t".join(pair) for pair in PAIRS).encode()
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
        accept = name == "control"
        upload = lambda _, content=content: read_ids(content)  # noqa: E731
        yield Case(f"upload: {name}", upload, {}, right, accept, ("list",))
        distinct = right and list(dict.fromkeys(right))
        names = ("list.txt", "--anchors")
        yield Case(f"--anchors: {name}", from_file, {"list.txt": content}, distinct, accept, names)
    odd = ODD_PLACES | {"3 GB of zeros": hole(3 * 10**9)}
    yield from each(from_file, "list.txt", odd, label="--anchors: ", names=("list.txt", "--anchors"))
    yield from each(pair_list("pairs.csv"), "pairs.csv", odd, label="pairs: ")
    forms = {
        **encodings(seeded),
        "one side missing": seeded + b"\nhouse\t",
        "no separator": seeded + b"\nhouse casa",
        "empty": b"",
        "a line of 5 MB": b"x" * 5_000_000,
        "a form feed within": seeded.replace(b"dog", b"do\x0cg"),
    }
    forms = {name: (one, None if b"\0" in one else seeds_in(one)) for name, one in forms.items()}
    names = {"label": "--seeds: ", "names": ("seeds.txt", "--seeds")}
    yield from each(seeds, "seeds.txt", forms | odd, **names)
    usual = {"control": seeded, "control: equal signs": seeded.replace(b"\t", b" = ")}
    yield from each(seeds, "seeds.txt", usual, seeds_in, accept=True, **names)
    for file, comma in (("pairs.csv", ","), ("pairs.tsv", "\t")):
        lines = [["english", "spanish"], *PAIRS]
        truth = partial(pairs_in, comma=comma)
        plain = "\n".join(comma.join(line) for line in lines).encode()
        many = b"".join(f"\na{row}{comma}b{row}".encode() for row in range(200_000))
        forms = {
            **encodings(plain),
            "an empty cell": plain.replace(b"cat", b""),
            "a cell too many": plain + f"{comma}x".encode(),
            "one name twice": plain.replace(b"spanish", b"english"),
            "one column": b"english\ndog\ncat\n",
            "no rows": plain.partition(b"\n")[0],
            "empty": b"",
            "a cell of 200 kB": plain.replace(b"cat", b"x" * 200_000),
            "200,000 pairs": (plain + many, None),
        }
        yield from controls(pair_list(file), file, {"pairs": (plain, truth(plain))}, f"{file}: ")
        yield from each(pair_list(file), file, forms, truth, f"{file}: ")
        yield from each(pair_list(file), file, spoiled(plain, points=(8, 15, 16)), truth, f"{file}: ")
        if comma == ",":
            forms = {name: one for name, one in forms.items() if type(one) is bytes and truth(one)}
            read = partial(seeds, name=file)
            yield from each(read, file, forms | {"control": plain}, truth, "links: ", accept=True)
