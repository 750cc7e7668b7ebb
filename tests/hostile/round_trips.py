"""Ids of 39 families through every format that Relscope writes and reads, and forged files of its own.

Ids of one family are written to each format; what is read must be the same ids, and what a format cannot hold
must be refused when it is written. `RANDOM` lists what is drawn by a random state.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.hostile.cases import STATE, Case, link
from tests.hostile.json_values import ODD, places, put

Rng = np.random.Generator


def _word(rng: Rng) -> str:
    return "".join(chr(97 + int(at)) for at in rng.integers(0, 26, int(rng.integers(1, 7))))


def _around(*marks: str) -> Callable[[Rng], str]:
    """A mark before, in or after a word."""

    def draw(rng: Rng) -> str:
        word, at = _word(rng) + _word(rng), int(rng.integers(0, 3))
        place = (0, len(word) // 2, len(word))[at]
        return word[:place] + marks[int(rng.integers(len(marks)))] + word[place:]

    return draw


def _date(rng: Rng) -> str:
    return str(np.datetime64("1970-01-01") + int(rng.integers(0, 40_000)))


def _time(rng: Rng) -> str:
    return f"{int(rng.integers(24)):02}:{int(rng.integers(60)):02}:{int(rng.integers(60)):02}"


def _number(rng: Rng) -> int:
    return int(rng.integers(0, 10**6))


FAMILIES_OF_IDS: dict[str, Callable[[Rng], str]] = {
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
_BREAKS = ("\n", "\r")


def ids_of(family: str, rng: Rng, n: int) -> list[str]:
    """n distinct ids, of this family as many as there are."""
    found: dict[str, None] = {}
    for _ in range(20 * n):
        if len(found) < n:
            found[FAMILIES_OF_IDS[family](rng)] = None
    return [*found, *(f"{next(iter(found))}{at}" for at in range(n - len(found)))]


# A format writes rows under ids into the working folder and returns the ids that Relscope reads.


def _links(suffix: str) -> Callable[[list[str], np.ndarray], Any]:
    def through(ids: list[str], X: np.ndarray) -> Any:
        import pandas as pd

        from relcore.linking.link import read_links, write_links

        kinds = ["seed", "anchor", "link"] * len(ids)
        table = pd.DataFrame(
            {"source": ids, "target": ids[::-1], "kind": kinds[: len(ids)], "precision": 0.5}
        )
        write_links(Path(f"links{suffix}"), table)
        pairs, found = read_links(Path(f"links{suffix}"))
        assert [other for _, other in pairs] == ids[::-1]
        assert list(found) == kinds[: len(ids)]
        return [own for own, _ in pairs]

    return through


def _space(suffix: str) -> Callable[[list[str], np.ndarray], Any]:
    def through(ids: list[str], X: np.ndarray) -> Any:
        from relcore.files.reading import load_space, write_space
        from relcore.spaces.space import LatentSpace

        write_space(LatentSpace(X, ids, labels=ids[::-1]), Path(f"space{suffix}"))
        found = load_space(Path(f"space{suffix}"))
        assert found.labels.tolist() == ids[::-1]
        return found.ids.tolist()

    return through


def _table(suffix: str) -> Callable[[list[str], np.ndarray], Any]:
    def through(ids: list[str], X: np.ndarray) -> Any:
        import pandas as pd

        from relcore.base.report import delimited_text, json_lines
        from relcore.files.reading import load_space

        table = pd.DataFrame(X.astype(float), columns=[f"d{at}" for at in range(X.shape[1])])
        table.insert(0, "name", ids)
        text = (
            json_lines(table)
            if suffix == ".jsonl"
            else delimited_text(table, "\t" if suffix == ".tsv" else ",")
        )
        Path(f"table{suffix}").write_bytes(text.encode())
        return load_space(Path(f"table{suffix}"), id_column="name").ids.tolist()

    return through


def _universe(ids: list[str], X: np.ndarray) -> Any:
    from relcore.spaces.space import LatentSpace
    from relcore.universe.universe import Universe

    Universe.fit([LatentSpace(X, ids, name="a"), LatentSpace(X[:, ::-1], ids, name="b")]).save("x.universe")
    found = Universe.load("x.universe")
    kept = {*found.ids.tolist(), *found.test_ids.tolist()}
    return [one for one in ids if one in kept] if len(kept) == len(ids) else sorted(kept)


def _passport(ids: list[str], X: np.ndarray) -> Any:
    from relcore.passport.passport import Passport, PassportCard
    from relcore.spaces.space import LatentSpace

    card = PassportCard(*ids[:2], prompt=ids[2])
    Passport.of(LatentSpace(X, ids), card).save("passport.safetensors")
    found = Passport.load("passport.safetensors")
    assert found.card == card
    return [*found.ids]


def _answers(ids: list[str], X: np.ndarray) -> Any:
    from relcore.base import records
    from relcore.migrate.measurements import Answer, BlindAnswers

    said = BlindAnswers("bridge", tuple(Answer(one, (one,), (ids[0],), "keep") for one in ids))
    Path("answers.json").write_text(json.dumps(records.to_json(said), ensure_ascii=False), "utf-8")
    return [one.query for one in BlindAnswers.read(Path("answers.json")).answers]


def _anchors(ids: list[str], X: np.ndarray) -> Any:
    from relcore.base.text import as_lines
    from relcore.commands.running import number_or_ids

    Path("anchors.txt").write_bytes(as_lines(ids, "anchors.txt", "ids", bare=True))
    return list(number_or_ids("anchors.txt"))


def _store(ids: list[str], X: np.ndarray) -> Any:
    from relcore.catalog.catalog import load_encoding, put_space
    from relcore.runs.store import Store
    from relcore.spaces.space import LatentSpace

    store = Store(Path("kept"))
    return load_encoding(store, put_space(store, LatentSpace(X, ids))).ids.tolist()


FORMATS_OF_IDS: dict[str, tuple[Callable[[list[str], np.ndarray], Any], tuple[str, ...]]] = {
    **{f"links{suffix}": (_links(suffix), ()) for suffix in (".jsonl", ".parquet")},
    **{f"links{suffix}": (_links(suffix), ("\0",)) for suffix in (".csv", ".tsv")},
    **{f"space{suffix}": (_space(suffix), ()) for suffix in (".npz", ".parquet")},
    "space.safetensors": (_space(".safetensors"), _BREAKS),
    **{f"table{suffix}": (_table(suffix), ("\0",)) for suffix in (".csv", ".tsv")},
    "table.jsonl": (_table(".jsonl"), ()),
    "x.universe": (_universe, ()),
    "passport.safetensors": (_passport, _BREAKS),
    "answers.json": (_answers, ()),
    "anchors.txt": (_anchors, ("\n", "\r", "\0")),
    "store": (_store, ()),
}
_FEWEST = 40  # rows of a universe and a passport


def _held(name: str, ids: list[str]) -> bool:
    """Whether a format holds these ids: a list of anchors has no breaks, and no spaces at the ends."""
    if name == "anchors.txt" and any(one != one.strip() for one in ids):
        return False
    return not any(mark in one for mark in FORMATS_OF_IDS[name][1] for one in ids)


def trip(name: str, label: str, ids: list[str], rng: Rng) -> Case:
    X, told = rng.normal(size=(len(ids), 5)).astype(np.float32), _held(name, ids)
    through = FORMATS_OF_IDS[name][0]
    truth, names = (ids if told else None), (name, name.split(".")[0], "a passport")
    return Case(f"{name}: {label}", lambda folder: through(ids, X), {}, truth, told, names)


def cases() -> Iterator[Case]:
    for number, name in enumerate(FORMATS_OF_IDS):
        for at, family in enumerate(FAMILIES_OF_IDS):
            rng = np.random.default_rng([38, number, at])
            yield trip(name, family, ids_of(family, rng, _FEWEST), rng)
    for number in range(60 * len(RANDOM)):
        draw = RANDOM[number % len(RANDOM)]
        case = draw(np.random.default_rng([STATE, number]))
        yield replace(case, name=f"drawn {number}: {case.name}")


# Cases by a random state.


def _one(rng: Rng, options: Any) -> Any:
    options = list(options)
    return options[int(rng.integers(len(options)))]


def some_ids(rng: Rng) -> Case:
    """Ids of one family, or of all that the format holds; half of the time with one that it cannot hold."""
    name = _one(rng, FORMATS_OF_IDS)
    if rng.random() < 0.5:
        family = _one(rng, FAMILIES_OF_IDS)
        return trip(name, family, ids_of(family, rng, _FEWEST), rng)
    ids = list(dict.fromkeys(draw(rng) for draw in FAMILIES_OF_IDS.values()))
    odd = [one for one in ids if not _held(name, [one])]
    held = [one for one in ids if one not in odd] + [f"word {at}" for at in range(_FEWEST)]
    ids = held[: _FEWEST - 1] + (odd[:1] if rng.random() < 0.5 else [])
    return trip(name, "many", [ids[at] for at in rng.permutation(len(ids))] + ["last"], rng)


def _usable(read: Callable[[], Any]) -> Callable[[Path], bool]:
    return lambda folder: read() is not None


@cache
def _a_universe() -> tuple[dict[str, np.ndarray], Any]:
    from relcore.base.records import pack
    from relcore.spaces.space import LatentSpace
    from relcore.universe.universe import Universe

    X = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
    ids = [f"row {at}" for at in range(90)]
    spaces = [LatentSpace(X, ids, labels=list("ab") * 45, name="a"), LatentSpace(X[:, ::-1], ids, name="b")]
    return pack(Universe.fit(spaces))


def _forged(rng: Rng, value: Any) -> Any:
    """The value with one to three places that hold something else, are gone, or hold what is elsewhere."""
    for _ in range(int(rng.integers(1, 4))):
        every = list(places(value))
        at = every[int(rng.integers(len(every)))]
        other: Any = value
        for step in every[int(rng.integers(len(every)))]:
            other = other[step]
        plain = [
            one for one in ODD if not (isinstance(one, int) and abs(one) > 2**64) and one != "x" * 100_000
        ]
        value = put(value, at, other if rng.random() < 0.3 else plain[int(rng.integers(len(plain)))])
    return value


def _arrays(rng: Rng, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One of the arrays in another shape or type, or with numbers that no map has."""
    name, changed = _one(rng, sorted(arrays)), dict(arrays)
    array = changed[name]
    change = int(rng.integers(7))
    if change == 0:
        array = array[:-1]
    elif change == 1:
        array = array.reshape(-1)
    elif change == 2:
        array = array.astype(_one(rng, ["<f8", "<i4", "|u1"]))
    elif change == 3 and array.size and array.dtype.kind == "f":
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = _one(rng, [np.nan, np.inf, 1e38, 0])
    elif change == 4:
        array = np.zeros((0, *array.shape[1:]), array.dtype)
    elif change == 5:
        array = array[None]
    else:
        del changed[name]
        return changed
    return changed | {name: np.ascontiguousarray(array)}


def a_universe(rng: Rng) -> Case:
    arrays, facts = _a_universe()
    name = "numbers" if rng.random() < 0.3 else "facts"
    arrays = _arrays(rng, arrays) if name == "numbers" else arrays
    facts = _forged(rng, facts) if name == "facts" else facts
    version = _one(rng, [1, 1, 1, 1, 1, 1, 2, None, "1"])

    def make(path: Path) -> None:
        from relcore.runs import entries

        stream = io.BytesIO()
        entries.write_into(stream, arrays, json.dumps({"universe": facts, "version": version}))
        path.write_bytes(stream.getvalue())

    def read() -> Any:
        from relcore.universe.universe import Universe

        found = Universe.load("x.universe")
        X = np.ones((3, len(found.members[0].mean)), np.float32)
        found.translate(X, found.names[0], found.names[1])
        return found.headline(), found.circumstances(), found.table(), found.report().text()

    return Case(f"universe, {name}", _usable(read), {"x.universe": make}, True, names=("x.universe", "universe"), remedy=False)  # fmt: skip


def a_passport(rng: Rng) -> Case:
    import hashlib

    n = int(rng.integers(8, 40))
    drawn = list(dict.fromkeys(draw(rng) for draw in FAMILIES_OF_IDS.values()))
    ids = [one for one in drawn if rng.random() < 0.02 or not any(mark in one for mark in _BREAKS)][:n]
    ids += [f"text {at}" for at in range(n - len(ids))]
    ids = [ids[0]] * n if rng.random() < 0.1 else ids
    X = rng.normal(size=(n, 6)).astype(np.float32)
    X[0] = 0 if rng.random() < 0.1 else X[0]
    raw = "\n".join(ids).encode()
    tensors = {"vectors": X, "gram": X @ X.T, "ids": np.frombuffer(raw, np.uint8).copy()}
    header: Any = {"layout": 1, "card": {"model": ids[0]}, "dtype": "float32", "checksum": ""}
    if (change := rng.random()) < 0.4:
        tensors = _arrays(rng, tensors)
    digest = [hashlib.sha256(tensors[name].tobytes() if name in tensors else b"").hexdigest() for name in ("ids", "vectors")]  # fmt: skip
    header |= {"anchors_digest": digest[0], "vectors_digest": digest[1]}
    header = _forged(rng, header) if change > 0.6 else header

    def make(path: Path) -> None:
        from safetensors.numpy import save

        from relcore.passport.passport import KEY

        path.write_bytes(save(tensors, {KEY: json.dumps(header)}))

    def read() -> Any:
        from relcore.passport.passport import Passport

        found = Passport.load("passport.safetensors")
        return found.check(found.space).sentence, found.check(found.vectors[:, ::-1]).report().text()

    return Case("passport", _usable(read), {"passport.safetensors": make}, True, names=("passport",), remedy=False)  # fmt: skip


def a_zip(rng: Rng) -> Case:
    parts = ["c0", "C0", "x.png", "y.png", "X.PNG", "d", "x.png.d", "水", "a b"]
    names = []
    for _ in range(int(rng.integers(1, 7))):
        path = "/".join(_one(rng, parts) for _ in range(int(rng.integers(0, 4))))
        names.append(f"{path}/{_one(rng, ['x.png', 'y.png', 'X.png', 'z.jpg', 'n.txt'])}".lstrip("/"))
    odd = rng.random()
    if odd < 0.1:
        names.append(_one(rng, ["../x.png", "/x.png", "c0/../../x.png", "c0//x.png", "c:/x.png", "./x.png"]))
    from PIL import Image

    contents = []
    for at in range(len(names)):
        stream = io.BytesIO()
        Image.new("RGB", (2, 2), (at, 0, 0)).save(stream, "PNG")
        contents.append(stream.getvalue())
    stream = io.BytesIO()
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")  # two of the same name
        for name, content in zip(names, contents, strict=True):
            archive.writestr(name, content)
    wanted = {PurePosixPath(name): content for name, content in zip(names, contents, strict=True) if not name.endswith("txt")}  # fmt: skip
    every = [PurePosixPath(name) for name in names if not name.endswith("txt")]
    folded = [str(one).casefold() for one in every]
    above = {str(folder).casefold() for one in every for folder in one.parents}
    wrong = odd < 0.1 or not every or len({*folded}) < len(folded) or bool({*folded} & above)
    heads = {one.parts[0] for one in wanted}
    deep = len(heads) == 1 and all(len(one.parts) > 2 for one in wanted)
    truth = {"/".join(one.parts[deep:]): content for one, content in wanted.items()}

    def read(folder: Path) -> Any:
        from relcore.encoders.encoder import SUFFIXES
        from relcore.files.arrays import unpack

        (folder / "out").mkdir()
        unpack(folder / "a.zip", folder / "out", SUFFIXES)
        found = [one for one in (folder / "out").rglob("*") if one.is_file()]
        return {one.relative_to(folder / "out").as_posix(): one.read_bytes() for one in found}

    return Case(
        f"zip of {len(names)}", read, {"a.zip": stream.getvalue()}, None if wrong else truth, not wrong
    )


_VALUES = {
    "compare": ["--anchors", "--links"], "link": ["--pairs"], "drift": ["--thresholds"],
    "migrate": ["--answers", "--queries-old", "--qrels"], "available": ["--data"], "passport": [],
}  # fmt: skip


def an_agent(rng: Rng) -> Case:
    """A call of an agent in a folder with links in it: what lies outside stays closed, and its answer is the
    same whether or not something is there."""
    X = rng.normal(size=(60, 4)).astype(np.float32)
    out = _one(rng, ["out", "deep/out", "chain", "loop", "circle", "nowhere"])
    tool = _one(rng, _VALUES)
    option = _one(rng, [*_VALUES[tool], ""]) if tool != "passport" else ""
    inside = rng.random() < 0.25
    beside = _one(rng, ["loop", "circle", "out/ids.txt", "missing"])

    def make(folder: Path) -> None:
        import pandas as pd

        (folder / "deep").mkdir(parents=True)
        outside = folder.parent / "outside"
        outside.mkdir()
        for place in (folder, outside):
            for name in ("first.npy", "second.npy"):
                np.save(place / name, X)
        (outside / "ids.txt").write_text("\n".join(map(str, range(60))))
        pd.DataFrame({"source": ["1"], "target": ["1"]}).to_csv(outside / "l.csv", index=False)
        for name, target in (("out", outside), ("deep/out", "../../outside"), ("chain", "out"), ("loop", "loop"), ("circle", "elcric"), ("elcric", "circle"), ("nowhere", "/no/such/place")):  # fmt: skip
            link(str(target))(folder / name)
        (folder / "first.ids.txt").symlink_to(beside)

    def call(arguments: list[str]) -> tuple[int, str]:
        from relcore.base import access
        from relcore.commands import servers as mcp

        err = io.StringIO()
        try:
            with redirect_stderr(err), redirect_stdout(io.StringIO()):
                code = mcp.answer([*arguments, "--quiet"])
        finally:
            access.set_asker(None)
        return code, err.getvalue()

    def read(folder: Path) -> Any:
        from relcore.commands import servers as mcp

        with patch.dict(os.environ, mcp._environment([str(folder / "open")])):
            os.environ.pop("RELSCOPE_DATA", None)
            os.chdir(folder / "open")
            if inside:
                code, err = call(["compare", "first.npy", "second.npy", "--anchors", "1,2,3,4", "--json"])
                return [code, "Traceback" in err]
            found = []
            for name in ("first.npy", "missing.npy", "l.csv", "ids.txt"):
                where = f"{out}/{name}"
                places = [where] if tool == "available" else [where, "second.npy"]
                if tool == "passport":
                    places = ["check", where, "second.npy"]
                if option:
                    places = (["first.npy", "second.npy"] if tool != "available" else []) + [option, where]
                code, err = call([tool, *places])
                found.append((code, err.count("\n"), err.replace(name, "NAME")))
            same = len({told for *_, told in found}) == 1
            return [*found[0][:2], same and "is not open to this session" in found[0][2]]

    truth = [0, False] if inside else [2, 1, True]
    return Case(
        f"agent, {'inside' if inside else f'{tool} {option} {out}'}", read, {"open": make}, truth, True
    )


RANDOM = (some_ids, a_universe, a_passport, a_zip, an_agent)
