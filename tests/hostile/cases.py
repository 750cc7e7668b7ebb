"""A hostile input: its files, how Relscope reads it, and what an independent reading of the same bytes
gives.
"""

import csv
import io
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from relcore import load_space

Content = bytes | Callable[[Path], None]
STATE = int(os.environ.get("RELSCOPE_HOSTILE_STATE", "0"))  # of the random cases
TABLE = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
IDS = [f"word{row}" for row in range(12)]
LABELS = ["a", "b", "", "ü"] * 3
COUNTS = list(range(12, 0, -1))
PICKLE = b"cos\nsystem\n(S'touch executed'\ntR."


@dataclass(frozen=True)
class Case:
    """One input.

    `read` reads the `files` through Relscope, in a separate process whose working folder has them. If it
    accepts them, it must return the `truth`, which may be a function that finds it: most cases of a sample are
    never judged. Without a `truth`, it must refuse them. With `accept`, it must
    accept them, so that a reader that refuses everything fails. The error must contain one of `names`, by
    default those of the files, and a `remedy` after a semicolon. For settings, "expected …, got …" is enough.
    `allowed` are events that Python audits as execution but that are harmless here, such as unpickling a
    compiler's cache.
    """

    name: str
    read: Callable[[Path], Any]
    files: Mapping[str, Content] = field(default_factory=dict)
    truth: Any = None
    accept: bool = False
    names: tuple[str, ...] = ()
    remedy: bool = True
    allowed: tuple[str, ...] = ()


def each(read, file, contents, truth=lambda content: None, label="", **more):
    """A case for each content of a file. `contents` maps names of cases to a content, whose expected reading
    is `truth(content)` (by default a refusal), or to a content and its expected reading.
    """
    for name, content in dict(contents).items():
        if isinstance(content, tuple):
            content, right = content
        else:
            right = partial(truth, content)
        yield Case(label + name, read, {file: content}, right, **more)


def controls(read, file, contents, label=""):
    yield from each(read, file, contents, label=f"{label}control: ", accept=True)


Texts = list[str] | None


def rows(vectors, ids=None, labels=None, counts=None):
    with np.errstate(over="ignore"):
        vectors = np.asarray(vectors, np.float32)
    if ids is None:
        named = [str(row) for row in range(len(vectors))]
    else:
        named = list(ids)
    return {"vectors": vectors, "ids": named, "labels": labels, "counts": counts}


def first(n=12):
    """The first rows of `TABLE` with all their columns."""
    return rows(TABLE[:n], IDS[:n], LABELS[:n], COUNTS[:n])


def good(reading):
    """The reading if it can be a space: finite numbers, one distinct id per row that is not empty, counts
    from 0.
    """
    if reading is None or reading["vectors"].ndim != 2 or 0 in reading["vectors"].shape:
        return None
    n = len(reading["vectors"])
    ids = reading["ids"]
    counts = reading["counts"]
    alike = all(column is None or len(column) == n for column in (ids, reading["labels"], counts))
    sound = np.isfinite(reading["vectors"]).all() and len(set(ids)) == n and all(one.strip() for one in ids)
    counted = counts is None or all(0 <= count < 2**63 for count in counts)
    if alike and sound and counted:
        return reading
    return None


def space(name, **options):

    def read(folder):
        return of_space(load_space(folder / name, **options))

    return read


def of_space(found):
    columns = {what: getattr(found, what) for what in ("ids", "labels", "counts")}
    lists = {what: None if one is None else one.tolist() for what, one in columns.items()}
    return {"vectors": found.vectors} | lists


def same(got, truth):
    if isinstance(truth, np.ndarray):
        got = np.asarray(got)
        return got.shape == truth.shape and np.allclose(got, truth, rtol=2e-7, atol=1e-44, equal_nan=True)
    if isinstance(truth, Mapping):
        alike = isinstance(got, Mapping) and got.keys() == truth.keys()
        return alike and all(same(got[key], truth[key]) for key in truth)
    if isinstance(truth, list | tuple):
        return isinstance(got, list | tuple) and len(got) == len(truth) and all(map(same, got, truth))
    return type(got) is type(truth) and got == truth


def main_matrix(arrays):
    """The name of the matrix that is read: "vectors", or the only one; None if it is ambiguous."""
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "vectors" in matrices:
        return "vectors"
    if len(matrices) == 1:
        return matrices[0]
    return None


def spoiled(content, points=(), n_flips=8):
    """The content cut at `points` and evenly, with bytes flipped, wrapped as other programs would, and edited at random."""
    size = len(content)
    cuts = {0, 1, size // 4, size // 2, size - 1, *(point for point in points if 0 <= point < size)}
    for at in sorted(cuts):
        yield f"cut at {at}", content[:at]
    for number in range(n_flips):
        at = (2 * number + 1) * size // (2 * n_flips)
        flipped = content[:at] + bytes([content[at] ^ (1 << number % 8)]) + content[at + 1 :]
        yield f"byte {at} flipped", flipped
    yield "only zeros", bytes(size)
    yield "reversed", content[::-1]
    yield "shifted by a byte", b"\0" + content
    yield "another file after it", content + content
    yield "half of it missing in the middle", content[: size // 3] + content[2 * size // 3 :]
    rng = np.random.default_rng([STATE, size])
    for number in range(12):
        made = content
        for _ in range(int(rng.integers(1, 4))):
            made = _edited(made, rng)
        yield f"edit {number}", made


_TELLING = (b"\0", b"\xff" * 4, b"\xff" * 8, b"\x7f", b"\n", b" ", b"9", b"-", b"\xef\xbb\xbf", b"\x80")


def _edited(content, rng):
    """The content with some bytes removed, repeated, inserted or overwritten."""
    at = int(rng.integers(len(content) + 1))
    n = int(rng.integers(1, 33))
    before = content[:at]
    after = content[at:]
    new = _TELLING[int(rng.integers(len(_TELLING)))]
    edits = (after[n:], after[:n] + after, new + after, new + after[len(new) :])
    return before + edits[int(rng.integers(4))]


def decoded(content):
    """The text of a table. It is read as Windows-1252 only if no character of UTF-8, nor half a character at
    the end, shows that the file is a damaged UTF-8 file."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise
        western = content.decode("cp1252")
        high = [at for at, byte in enumerate(content) if byte > 127]
        if any(_is_text(content[at : at + n]) for at in high for n in (2, 3)):
            raise
        return western


def csv_lines(content, comma):
    """The lines of a table that are not empty; none of a table that is damaged."""
    csv.field_size_limit(1 << 30)
    try:
        stream = io.StringIO(decoded(content), newline="")
        return [line for line in csv.reader(stream, delimiter=comma, strict=True) if line]
    except (UnicodeDecodeError, csv.Error):
        return []


def csv_table(lines, comma=","):
    stream = io.StringIO()
    csv.writer(stream, delimiter=comma, lineterminator="\n").writerows(lines)
    return stream.getvalue().encode()


def _is_text(content):
    with suppress(UnicodeDecodeError):
        return len(content.decode()) == 1
    return False


def encodings(plain):
    text = plain.decode()
    return {
        "BOM": b"\xef\xbb\xbf" + plain,
        "CR LF": plain.replace(b"\n", b"\r\n"),
        "CR": plain.replace(b"\n", b"\r"),
        "UTF-16": text.encode("utf-16"),
        "Latin-1": text.replace("水", "é").replace("word1", "wörd1").encode("latin-1"),
        "zero bytes": bytes(100),
        "binary": bytes(range(256)),
    }


def hole(size, head=b""):

    def make(path):
        with path.open("wb") as file:
            file.write(head)
            file.truncate(size)

    return make


def pipe(path):
    os.mkfifo(path)


def link(target):
    return lambda path: path.symlink_to(target)


def folder(path):
    path.mkdir()


ODD_PLACES = {"a folder": folder, "a named pipe": pipe, "a link to a device": link("/dev/zero")}


def places(name, read):
    yield Case("nothing there", read, names=(name,))
    links = {"a link to itself": link(name), "a link to nothing": link("missing")}
    yield from each(read, name, {"an empty file": b""} | ODD_PLACES | links)


def hurt(file, whole, truth, points, n_flips=8):
    """A file of a space at odd places, and its damages."""
    yield from places(file, space(file))
    yield from each(space(file), file, spoiled(whole, tuple(points), n_flips), truth)


def role_of(name):
    """What a column is by its name: ids, labels, counts or nothing of these."""
    return {"ids": "id", "labels": "label", "counts": "count"}.get(name := name.strip().lower(), name)
