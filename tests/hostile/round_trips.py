"""Ids of 39 families through every format that Relscope writes and reads, and forged files of its own.

Ids of one family are written to each format; what is read must be the same ids, and what a format cannot hold
must be refused when it is written.
"""

import hashlib
import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save

from relcore import load_space
from relcore.base.records import pack, to_json
from relcore.base.report import delimited_text, json_lines
from relcore.base.text import as_lines
from relcore.catalog.encodings import load_encoding, put_space
from relcore.commands.anchors import number_or_ids
from relcore.files.links import read_links, write_links
from relcore.files.saving import save_space
from relcore.migrate.blind_test import Answer, BlindAnswers
from relcore.passport.passport import KEY, Passport, PassportCard
from relcore.runs import entries
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.universe.universe import Universe, UniverseSpec
from tests.hostile.cases import STATE, Case
from tests.hostile.json_values import ODD, places, put

Rng = np.random.Generator


def _word(rng):
    return "".join(chr(97 + int(at)) for at in rng.integers(0, 26, int(rng.integers(1, 7))))


def _around(*marks):
    """A mark before, in or after a word."""

    def draw(rng):
        word = _word(rng) + _word(rng)
        at = int(rng.integers(0, 3))
        place = (0, len(word) // 2, len(word))[at]
        return word[:place] + marks[int(rng.integers(len(marks)))] + word[place:]

    return draw


def _date(rng):
    return str(np.datetime64("1970-01-01") + int(rng.integers(0, 40_000)))


def _time(rng):
    return f"{int(rng.integers(24)):02}:{int(rng.integers(60)):02}:{int(rng.integers(60)):02}"


def _number(rng):
    return int(rng.integers(0, 10**6))


FAMILIES_OF_IDS = {
    "quote": _around('"', '""', "'"),
    "quoted": lambda rng: f'"{_word(rng)}"',
    "tab": _around("\t"),
    "line feed": _around("\n"),
    "carriage return": _around("\r"),
    "both": _around("\r\n"),
    "comma": _around(",", ",,"),
    "semicolon": _around(";"),
    "bar": _around("|"),
    "equals sign": _around("=", " = "),
    "space before": lambda rng: f" {_word(rng)}",
    "space after": lambda rng: f"{_word(rng)} ",
    "other spaces": _around("\xa0", "\u3000", "\u2003"),
    "byte order mark": lambda rng: f"\ufeff{_word(rng)}",
    "zero byte": _around("\0"),
    "date": _date,
    "time": lambda rng: f"{_date(rng)} {_time(rng)}",
    "time with a zone": lambda rng: f"{_date(rng)}T{_time(rng)}Z",
    "leading zeros": lambda rng: f"00{_number(rng)}",
    "whole number": lambda rng: str(_number(rng)),
    "fraction": lambda rng: f"{_number(rng)}.{int(rng.integers(10))}0",
    "exponent": lambda rng: f"{int(rng.integers(1, 10))}e{_number(rng)}",
    "long number": lambda rng: f"{_number(rng) + 1}{10**24 + _number(rng)}",
    "sign": lambda rng: f"{'+-−'[int(rng.integers(3))]}{_number(rng)}",
    "missing": lambda rng: str(rng.choice(["NA", "null", "nan", "None", "N/A", "NaN", "#N/A", "-nan", "NULL"])),
    "yes or no": lambda rng: str(rng.choice(["true", "false", "True", "False", "yes", "no", "on", "off"])),
    "formula": lambda rng: f"{'=@+-'[int(rng.integers(4))]}{_word(rng)}({_number(rng)})",
    "comment": lambda rng: f"{rng.choice(['#', '//', '--', '%'])!s} {_word(rng)}",
    "JSON": lambda rng: json.dumps([[_number(rng)], {_word(rng): None}, [], {}][int(rng.integers(4))]),
    "backslash": _around("\\", "\\n", "\\u0041", '\\"'),
    "emoji": _around("😀", "👩‍🔬", "🏳️‍🌈"),
    "combining": _around("e\u0301", "ﬁ", "\u0130", "ß"),
    "line separator": _around("\u2028", "\u2029", "\x85"),
    "form feed": _around("\v", "\f", "\x1c", "\x1f"),
    "control": _around("\x1b[31m", "\x07", "\x7f"),
    "direction": _around("\u202e", "\u200b", "\u2066", "\xad"),
    "other digits": lambda rng: f"{rng.choice(['0x', '١', '1_', '1,', '½'])!s}{_number(rng)}",
    "long": lambda rng: _word(rng) * 2000,
    "name of a column": lambda rng: str(
        rng.choice(["id", "ids", "source", "target", "kind", "label", "vector", "vectors", "text", "array"])
    ),
}  # fmt: skip
_BREAKS = "\n\r"


def ids_of(family, rng, n):
    """n distinct ids, drawn from this family. If it has too few, one of its ids gets numbers."""
    found = {}
    for _ in range(20 * n):
        if len(found) < n:
            found[FAMILIES_OF_IDS[family](rng)] = None
    return [*found, *(f"{next(iter(found))}{at}" for at in range(n - len(found)))]


# A format writes rows under ids into a file and returns the ids that Relscope reads.


def _links(file, ids, X):
    kinds = (["seed", "anchor", "link"] * len(ids))[: len(ids)]
    write_links(
        Path(file), pd.DataFrame({"source": ids, "target": ids[::-1], "kind": kinds, "precision": 0.5})
    )
    pairs, found = read_links(Path(file))
    assert [other for _, other in pairs] == ids[::-1]
    assert list(found) == kinds
    return [own for own, _ in pairs]


def _space(file, ids, X):
    save_space(LatentSpace(X, ids, labels=ids[::-1]), Path(file))
    found = load_space(Path(file))
    assert found.labels.tolist() == ids[::-1]
    return found.ids.tolist()


def _table(file, ids, X):
    table = pd.DataFrame(X.astype(float), columns=[f"d{at}" for at in range(X.shape[1])])
    table.insert(0, "name", ids)
    comma = "\t" if file.endswith("tsv") else ","
    if file.endswith("jsonl"):
        text = json_lines(table)
    else:
        text = delimited_text(table, comma)
    Path(file).write_bytes(text.encode())
    return load_space(Path(file), id_column="name").ids.tolist()


def _universe(file, ids, X):
    Universe.fit([LatentSpace(X, ids, name="a"), LatentSpace(X[:, ::-1], ids, name="b")]).save(file)
    found = Universe.load(file)
    kept = {*found.ids.tolist(), *found.test_ids.tolist()}
    if len(kept) == len(ids):
        return [one for one in ids if one in kept]
    return sorted(kept)


def _passport(file, ids, X):
    card = PassportCard(*ids[:2], prompt=ids[2])
    Passport.of(LatentSpace(X, ids), card).save(file)
    found = Passport.load(file)
    assert found.card == card
    return [*found.ids]


def _answers(file, ids, X):
    said = BlindAnswers("bridge", tuple(Answer(one, (one,), (ids[0],), "keep") for one in ids))
    Path(file).write_text(json.dumps(to_json(said), ensure_ascii=False), "utf-8")
    return [one.query for one in BlindAnswers.read(Path(file)).answers]


def _anchors(file, ids, X):
    Path(file).write_bytes(as_lines(ids, file, "ids", bare=True))
    return list(number_or_ids(file))


def _store(file, ids, X):
    store = Store(Path(file))
    return load_encoding(store, put_space(store, LatentSpace(X, ids))).ids.tolist()


# File → the function that writes and reads ids, and the characters that the file cannot hold.
FORMATS_OF_IDS = {
    "links.jsonl": (_links, ""),
    "links.parquet": (_links, ""),
    "links.csv": (_links, "\0"),
    "links.tsv": (_links, "\0"),
    "space.npz": (_space, ""),
    "space.parquet": (_space, ""),
    "space.safetensors": (_space, _BREAKS),
    "table.csv": (_table, "\0"),
    "table.tsv": (_table, "\0"),
    "table.jsonl": (_table, ""),
    "x.universe": (_universe, ""),
    "passport.safetensors": (_passport, _BREAKS),
    "answers.json": (_answers, ""),
    "anchors.txt": (_anchors, "\n\r\0"),
    "store": (_store, ""),
}
_FEWEST = 40  # rows of a universe and a passport


def _held(name, ids):
    """Whether a format holds these ids: a list of anchors has no breaks, and no spaces at the ends."""
    if name == "anchors.txt" and any(one != one.strip() for one in ids):
        return False
    return not any(mark in one for mark in FORMATS_OF_IDS[name][1] for one in ids)


def trip(name, label, ids, rng):
    X = rng.normal(size=(len(ids), 5)).astype(np.float32)
    told = _held(name, ids)
    through = FORMATS_OF_IDS[name][0]
    names = (name, name.split(".")[0], "a passport")
    return Case(
        f"{name}: {label}", lambda folder: through(name, ids, X), {}, ids if told else None, told, names
    )


def cases():
    for number, name in enumerate(FORMATS_OF_IDS):
        for at, family in enumerate(FAMILIES_OF_IDS):
            rng = np.random.default_rng([38, number, at])
            yield trip(name, family, ids_of(family, rng, _FEWEST), rng)
    for number in range(180):
        draw = (some_ids, a_universe, a_passport)[number % 3]
        case = draw(np.random.default_rng([STATE, number]))
        yield replace(case, name=f"drawn {number}: {case.name}")


# Cases by a random state.


def _one(rng, options):
    options = list(options)
    return options[int(rng.integers(len(options)))]


def some_ids(rng):
    """Ids of all families that the format holds; half of the time with one that it cannot hold."""
    name = _one(rng, FORMATS_OF_IDS)
    ids = list(dict.fromkeys(draw(rng) for draw in FAMILIES_OF_IDS.values()))
    odd = [one for one in ids if not _held(name, [one])]
    held = [one for one in ids if one not in odd] + [f"word {at}" for at in range(_FEWEST)]
    ids = held[: _FEWEST - 1] + (odd[:1] if rng.random() < 0.5 else [])
    return trip(name, "many", [ids[at] for at in rng.permutation(len(ids))] + ["last"], rng)


def _forged(rng, value):
    """The value, changed in one to three places: each gets another value, or the value of another place."""
    plain = [one for one in ODD if not (isinstance(one, int) and abs(one) > 2**64) and one != "x" * 100_000]
    for _ in range(int(rng.integers(1, 4))):
        every = list(places(value))
        at = _one(rng, every)
        other = value
        for step in _one(rng, every):
            other = other[step]
        value = put(value, at, other if rng.random() < 0.3 else _one(rng, plain))
    return value


def _arrays(rng, arrays):
    """One of the arrays in another shape or type, or with numbers that no map has, or none."""
    name = _one(rng, sorted(arrays))
    array = arrays[name]
    others = {key: one for key, one in arrays.items() if key != name}
    change = int(rng.integers(7))
    if change == 6:
        return others
    if change == 3 and array.size and array.dtype.kind == "f":
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = _one(rng, [np.nan, np.inf, 1e38, 0])
    elif change in (2, 3):
        array = array.astype(_one(rng, ["<f8", "<i4", "|u1"]))
    shapes = {0: array[:-1], 1: array.reshape(-1), 4: array[:0], 5: array[None]}
    return others | {name: np.ascontiguousarray(shapes.get(change, array))}


@cache
def _a_universe():
    X = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    ids = [f"row {at}" for at in range(90)]
    spaces = [LatentSpace(X, ids, labels=list("ab") * 45, name="a"), LatentSpace(X[:, ::-1], ids, name="b")]
    return pack(Universe.fit(spaces))


def a_universe(rng):
    (arrays, facts) = _a_universe()
    layout = UniverseSpec.version
    name = "facts"
    if rng.random() < 0.3:
        name = "numbers"
    if name == "numbers":
        arrays = _arrays(rng, arrays)
    if name == "facts":
        facts = _forged(rng, facts)
    version = _one(rng, [*[layout] * 6, layout + 1, None, str(layout)])

    def make(path):
        stream = io.BytesIO()
        entries.write_into(stream, arrays, json.dumps({"universe": facts, "version": version}))
        path.write_bytes(stream.getvalue())

    def read(folder):
        found = Universe.load("x.universe")
        X = np.ones((3, len(found.members[0].mean)), np.float32)
        found.translate(X, found.names[0], found.names[1])
        return bool([found.headline(), found.circumstances(), found.table(), found.report().text()])

    names = ("x.universe", "universe")
    return Case(f"universe, {name}", read, {"x.universe": make}, True, names=names, remedy=False)


def a_passport(rng):
    n = int(rng.integers(8, 40))
    drawn = list(dict.fromkeys(draw(rng) for draw in FAMILIES_OF_IDS.values()))
    ids = [one for one in drawn if rng.random() < 0.02 or not any(mark in one for mark in _BREAKS)][:n]
    ids += [f"text {at}" for at in range(n - len(ids))]
    if rng.random() < 0.1:
        ids = [ids[0]] * n
    X = rng.normal(size=(n, 6)).astype(np.float32)
    X[0] = 0 if rng.random() < 0.1 else X[0]
    raw = np.frombuffer("\n".join(ids).encode(), np.uint8)
    tensors = {"vectors": X, "gram": X @ X.T, "ids": raw}
    header = {"layout": 1, "card": {"model": ids[0]}}
    if (change := rng.random()) < 0.4:
        tensors = _arrays(rng, tensors)
    header |= {"dtype": "float32", "checksum": ""}
    for key, name in (("anchors_digest", "ids"), ("vectors_digest", "vectors")):
        header[key] = hashlib.sha256(tensors[name].tobytes() if name in tensors else b"").hexdigest()
    if change > 0.6:
        header = _forged(rng, header)

    def read(folder):
        found = Passport.load("passport.safetensors")
        return bool([found.check(found.space).sentence, found.check(found.vectors[:, ::-1]).report().text()])

    files = {"passport.safetensors": save(tensors, {KEY: json.dumps(header)})}
    return Case("passport", read, files, True, names=("passport",), remedy=False)
