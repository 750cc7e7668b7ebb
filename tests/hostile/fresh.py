"""New inputs, drawn by a random state: each run may have others. `FAMILIES` lists how they are drawn; the judge is
that of the corpus, and the truth is known from how an input was made, or from another library's reading of it.
"""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile import command_lines, round_trips, safetensors
from tests.hostile.cases import Case, of_space, rows, space
from tests.hostile.judge import Verdict, judged
from tests.hostile.npy import headed, npy, shaped

Rng = np.random.Generator
_AT_ONCE = 250  # small ones, which one process reads
ODD = (
    *(
        "\ufeffking",
        "king\0",
        "05",
        "5",
        "5.0",
        "1e5",
        "NA",
        "null",
        "nan",
        "true",
        "None",
        " left",
        "right ",
    ),
    *(
        "a,b",
        'a"b',
        "=1+1",
        "#id=x",
        "a::b",
        "../x",
        "水",
        "e\u0301",
        "é",
        "\u202eabc",
        "😀",
        "\u2028",
        "\x85x",
    ),
    *(
        "a\nb",
        "a\rb",
        "\x1b[31m",
        "x" * 5000,
        "{}",
        "[1]",
        "0x10",
        "١",
        "ﬁ",
        "\u200b",
        "id",
        "-0",
        "+5",
        "5 ",
    ),
    "0f0e0d0c-0b0a-4908-8706-050403020100",
    str(uuid.uuid5(uuid.NAMESPACE_OID, "plain")),
)
BREAKS = ("\n", "\r", "\0")
BEYOND = (1e39, -1e300, float("inf"), float("-inf"), float("nan"))


def one(rng: Rng, options: Any) -> Any:
    options = list(options)
    return options[int(rng.integers(len(options)))]


def ids_of(rng: Rng, n: int, without: tuple[str, ...] = ()) -> list[str]:
    """n distinct ids, some of them odd, none with these characters."""
    odd = [item for item in ODD if not any(mark in item for mark in without)]
    some = [odd[at] for at in rng.permutation(len(odd))[: int(rng.integers(0, 6))]]
    return [*some, *(f"w{at}" for at in range(n))][:n]


def matrix(rng: Rng, n: int = 0, d: int = 0) -> np.ndarray:
    return rng.normal(size=(n or int(rng.integers(2, 12)), d or int(rng.integers(1, 6)))).astype(np.float32)


def flipped(rng: Rng, content: bytes, most: int = 3) -> bytes:
    changed = bytearray(content)
    for at in rng.integers(0, len(content), int(rng.integers(1, most + 1))):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed) if rng.random() < 0.8 else bytes(changed[: int(rng.integers(len(changed)))])


# Stores: copied to another one by `relscope adapt none`, which is then read by another library.


def table_of(ids: list[str], vectors: np.ndarray, payload: dict[str, list] | None = None) -> Any:
    import pyarrow as pa

    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table({"id": pa.array(ids, pa.string()), **(payload or {}), "vector": values})


def parquet(table: Any) -> bytes:
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(table, stream, compression="none")
    return stream.getvalue()


def lance(table: Any) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        import lancedb

        lancedb.connect(str(path)).create_table("t", table)

    return make


def copied(source: str, target: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        from relcore.base.errors import SpaceError

        try:
            command_lines.run(["adapt", "none", source, target, "--quiet"])(folder)
        except SpaceError:
            left = [item.name for item in folder.iterdir() if item.name.split("#")[0].startswith("out")]
            if left:
                raise AssertionError(f"a refused copy left {left}") from None
            raise
        return dict(zip(*stored_in(folder, target), strict=True))

    return read


def stored_in(folder: Path, target: str) -> tuple[list[str], np.ndarray]:
    """Ids and vectors, by another library than Relscope."""
    if target == "out.npy":
        text = (folder / "out.ids.txt").read_bytes().decode("utf-8-sig")
        return text.removesuffix("\n").split("\n"), np.load(folder / "out.npy")
    if target == "out.parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(folder / "out.parquet")
    else:
        import lancedb

        table = lancedb.connect(str(folder / "out")).open_table("t").to_arrow()
    return table.column("id").to_pylist(), np.array(table.column("vector").to_pylist(), np.float32)


def a_store(rng: Rng) -> Case:
    kind, target = (
        one(rng, ("npy", "parquet", "lance")),
        one(rng, ("out.npy", "out.parquet", "lancedb:out#t")),
    )
    ids, X = ids_of(rng, 8, BREAKS if kind == "npy" else ()), matrix(rng, 8)
    defect = one(rng, ("none", "twice", "beyond", "flip", "payload", "blank"))
    if kind == "npy" and ids[0].startswith("\ufeff"):
        ids.reverse()
    if defect == "twice":
        ids[5] = ids[2]
    elif defect == "blank":
        ids[4] = one(rng, ("", " ", "\t"))
    elif defect == "beyond":
        X = X.astype(np.float64)
        X[3, 0] = one(rng, BEYOND[:-1])  # LanceDB itself takes no NaN
    payload = {"other": ["p"] * 8, "t": list(range(8))} if defect == "payload" else None
    if kind == "npy":
        files = {"in.npy": npy(X), "in.ids.txt": ("\n".join(ids) + "\n").encode()}
        source = "in.npy"
    elif kind == "parquet":
        source, files = "in.parquet", {"in.parquet": parquet(table_of(ids, X, payload))}
    else:
        source, files = "lancedb:q#t", {"q": lance(table_of(ids, X, payload))}
    if defect == "flip":
        name = one(rng, [name for name, content in files.items() if isinstance(content, bytes)] or ["q"])
        if name == "q":
            files = {"q": flipped_folder(rng, files["q"])}
        else:
            files |= {name: flipped(rng, files[name])}
    truth = None
    if defect in ("none", "payload"):
        vectors = np.asarray(X, np.float32)
        refused = target == "out.npy" and any(mark in item for item in ids for mark in BREAKS)
        refused |= len(set(ids)) != len(ids)
        truth = None if refused else dict(zip(ids, vectors, strict=True))
    name = f"{kind} to {target}, {defect}"
    names = ("in", "t", "out", "q", target)
    read = copied(source, target)
    if (
        defect == "flip"
    ):  # what is read of damaged bytes is for the libraries to say: no crash, nothing partial
        return Case(name, lambda folder: bool(read(folder)), files, True, False, names, False, _CLIENT)
    return Case(name, read, files, truth, truth is not None, names=names, allowed=_CLIENT)


_CLIENT = ("pickle.find_class", "socket.connect")


def flipped_folder(rng: Rng, make: Callable[[Path], None]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        make(path)
        inside = sorted(item for item in path.rglob("*") if item.is_file())
        chosen = one(rng, inside)
        chosen.write_bytes(flipped(rng, chosen.read_bytes() or b"\0"))

    return spoil


def some_shards(rng: Rng) -> Case:
    kind, n_shards, d = one(rng, ("npy", "npy", "parquet", "arrow")), int(rng.integers(2, 5)), 3
    sizes = rng.integers(1, 6, n_shards).tolist()
    ids = ids_of(rng, sum(sizes), BREAKS if kind == "npy" else ()) if rng.random() < 0.7 else None
    X, start, files, parts = matrix(rng, sum(sizes), d), 0, {}, []
    names = [f"part-{at}" for at in sorted(rng.permutation(120)[:n_shards].tolist())]
    labels = [one(rng, ("x", "y", "")) for _ in range(len(X))] if rng.random() < 0.5 else None
    for name, size in zip(names, sizes, strict=True):
        some = slice(start, start + size)
        start += size
        if kind == "npy":
            files[f"s/{name}.npy"] = npy(X[some].astype(one(rng, ("<f4", "<f8", ">f4"))))
            for what, column in (("ids", ids), ("labels", labels)):
                if column:
                    mark = "\ufeff" * column[some][0].startswith("\ufeff")
                    files[f"s/{name}.{what}.txt"] = (mark + "\n".join(column[some]) + "\n").encode()
        else:
            columns = {} if labels is None else {"label": labels[some]}
            table = table_of(ids[some] if ids else [""] * size, X[some], columns)
            table = table if ids else table.drop_columns("id")
            files[f"s/{name}.{kind}"] = parquet(table) if kind == "parquet" else _arrow(table)
        parts.append(name)
    defect = one(
        rng,
        (
            "none",
            "none",
            "width",
            "rewritten",
            "cut",
            "lies",
            "no ids",
            "a line more",
            "text",
            "twice",
            "colons",
        ),
    )
    path, truth = f"s/{one(rng, names)}.{kind}", rows(X, ids, labels)
    again: dict[str, bytes] = {}
    if defect == "width":
        files[path], truth = (
            (npy(matrix(rng, 3, 4)), None)
            if kind == "npy"
            else (
                files[path] if kind == "arrow" else parquet(table_of(["z"] * 3, matrix(rng, 3, 4))),
                truth if kind == "arrow" else None,
            )
        )
    elif defect == "rewritten":
        again, truth = {path: files[path] + b"\0"}, None
    elif defect == "cut":
        files[path], truth = files[path][: int(rng.integers(len(files[path])))], None
    elif defect == "lies" and kind == "npy":
        n = one(rng, (10**12, 10**4, 2**63, -1))
        files[path], truth = headed(shaped(f"({n}, 3)"), X[:2].tobytes()), None
    elif defect in ("no ids", "a line more", "text") and kind == "npy" and ids:
        beside = path.replace(".npy", ".ids.txt")
        if defect == "no ids":
            del files[beside]
        else:
            files[beside] += b"one more\n" if defect == "a line more" else b"\xff\xfe"
        truth = None
    elif defect == "twice" and ids:
        for name, content in list(files.items()):
            files[name.replace("part-", "again-")] = content
        truth = None
    elif defect == "colons":
        files = {name.replace("s/", "s::v2/"): content for name, content in files.items()}
    folder = next(iter(files)).split("/")[0]

    def read(place: Path) -> dict:
        from relcore.sharded.space import ShardedSpace

        opened = ShardedSpace.open(folder)
        for name, content in again.items():
            (place / name).write_bytes(content)
        return of_space(opened.whole())

    told = ("part-", "again-", folder, "shards")
    return Case(f"{kind}, {defect}", read, files, truth, truth is not None, names=told)


def _arrow(table: Any) -> bytes:
    import pyarrow as pa

    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


# Metadata.


def a_join(rng: Rng) -> Case:
    kind = one(rng, ("npz", "parquet", "csv", "pt", "npy", "bare", "safetensors"))
    form = one(rng, ("csv", "tsv", "parquet"))
    marks = ("\n", "\r", "\0") if form != "parquet" or kind in ("npy", "safetensors", "csv", "npz") else ()
    n, change = 9, one(rng, ("order", "more", "same", "fewer", "other", "twice", "no ids", "numbers", "mark"))
    ids, X = ids_of(rng, n, marks), matrix(rng, n, 3)
    if change == "numbers":
        ids = list(map(str, rng.permutation(50)[:n]))
    if kind == "npy" and ids[0].startswith("\ufeff"):
        ids.reverse()
    labels = ["x", "y", *(one(rng, ("x", "y", "z", "")) for _ in range(n - 2))]
    order = rng.permutation(n).tolist() if change != "same" else list(range(n))
    table = [(ids[at], labels[at]) for at in order]
    if change == "more":
        table.insert(int(rng.integers(n)), ("extra", "y"))
    elif change == "fewer":
        table.pop()
    elif change == "other":
        table = [(f"other {at}", label) for at, (_, label) in enumerate(table)]
    elif change == "twice":
        table[3] = (table[5][0], "x")
    content = _table(form, table, change == "no ids", change == "mark")
    vectors = {
        "npz": lambda: _npz(vectors=X, ids=np.array(ids, str)),
        "parquet": lambda: parquet(table_of(ids, X)),
        "csv": lambda: _csv(
            [
                ["id", "d0", "d1", "d2"],
                *([key, *map(str, row)] for key, row in zip(ids, X.tolist(), strict=True)),
            ]
        ),
        "pt": lambda: _torch({"vectors": X, "ids": ids}),
        "npy": lambda: npy(X),
        "bare": lambda: npy(X),
        "safetensors": lambda: safetensors.packed({"vectors": X}, {"ids": "\n".join(ids)}),
    }[kind]()
    name = f"v.{'npy' if kind == 'bare' else kind}"
    files = {name: vectors, f"m.{form}": content}
    if kind == "npy":
        files["v.ids.txt"] = "\n".join(ids).encode()
    own, told = kind != "bare", change != "no ids"
    if own and told:  # by id
        of_id = dict(table)
        lost = set(ids) - of_id.keys() or len(of_id) < len(table)
        truth = None if lost else rows(X, ids, [of_id[key] for key in ids])
    elif len(table) != n or (told and len({key for key, _ in table}) < n):
        truth = None
    else:  # by row order
        named = [key for key, _ in table] if told else ids if own else None
        truth = rows(X, named, [label for _, label in table])
    read = space(name, metadata=f"m.{form}", id_column="id" if told else None, label_column="label")
    return Case(
        f"{kind} and {form}, {change}", read, files, truth, truth is not None, names=("m.", "v", "v.")
    )


def _csv(lines: list, tab: bool = False) -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter="\t" if tab else ",", quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        lines
    )
    return stream.getvalue().encode()


def _table(form: str, table: list[tuple[str, str]], plain: bool, mark: bool) -> bytes:
    if form == "parquet":
        import pyarrow as pa

        columns = {"label": [label for _, label in table]} | (
            {} if plain else {"id": [key for key, _ in table]}
        )
        return parquet(pa.table(columns))
    lines = [
        ["label"] if plain else ["id", "label"],
        *([label] if plain else [key, label] for key, label in table),
    ]
    return b"\xef\xbb\xbf" * mark + _csv(lines, form == "tsv")


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _torch(content: dict) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(
        {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in content.items()}, stream
    )
    return stream.getvalue()


FAMILIES: dict[str, Callable[[Rng], Case]] = {
    "stores": a_store,
    "shards": some_shards,
    "metadata": a_join,
    **round_trips.NEW,
}


def cases(n: int, state: int) -> Iterator[tuple[str, Case]]:
    """n cases, family after family, each with a random stream of its own."""
    for number in range(n):
        family = list(FAMILIES)[number % len(FAMILIES)]
        yield family, FAMILIES[family](np.random.default_rng([state, number]))


def fresh_verdicts(n: int, state: int) -> dict[str, list[Verdict]]:
    """Verdicts by family of n new inputs, drawn by this state."""
    drawn = list(cases(n, state))
    found: dict[str, list[Verdict]] = {}
    for (family, _), verdict in zip(drawn, judged((case for _, case in drawn), _AT_ONCE), strict=True):
        found.setdefault(family, []).append(verdict)
    return found
