"""A hostile input: its files, how Relscope reads it, and what an independent reading of the same bytes
gives.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Content = bytes | Callable[[Path], None]
STATE = int(os.environ.get("RELSCOPE_HOSTILE_STATE", "0"))  # of the random cases


@dataclass(frozen=True)
class Case:
    """One input.

    Attributes
    ----------
    name : str
        Distinct within its format.
    read : folder → anything
        Reads the files through Relscope, in a process of its own, whose working folder it is.
    files : path in the folder → bytes, or a function that makes the file
    truth : anything
        What `read` must give if it accepts; None: it must be refused.
    accept : bool
        It must be accepted: a control, so that refusing everything does not pass.
    names : tuple of str
        One of them is in the error; default: the names of the files.
    remedy : bool
        Whether the error needs a remedy after a semicolon; settings tell it by "expected …, got …".
    allowed : tuple of str
        What Python audits as execution, and what here is none, as the cache of a compiler that is unpickled.
    """

    name: str
    read: Callable[[Path], Any]
    files: Mapping[str, Content] = field(default_factory=dict)
    truth: Any = None
    accept: bool = False
    names: tuple[str, ...] = ()
    remedy: bool = True
    allowed: tuple[str, ...] = ()


def control(name: str, read: Callable[[Path], Any], files: Mapping[str, Content], truth: Any) -> Case:
    return Case(f"control: {name}", read, files, truth, accept=True)


def each(
    read: Callable[[Path], Any],
    file: str,
    contents: Mapping[str, Content] | Iterable[tuple[str, Content]],
    truth: Callable[[Any], Any] = lambda content: None,
    label: str = "",
) -> Iterator[Case]:
    """A case for each content of a file, by its name; `truth(content)` is what is read, by default nothing."""
    for name, content in dict(contents).items():
        yield Case(label + name, read, {file: content}, truth(content))


Texts = list[str] | None


def rows(vectors: Any, ids: Texts = None, labels: Texts = None, counts: list[int] | None = None) -> dict:
    with np.errstate(over="ignore"):
        vectors = np.asarray(vectors, np.float32)
    named = [str(row) for row in range(len(vectors))] if ids is None else list(ids)
    return {"vectors": vectors, "ids": named, "labels": labels, "counts": counts}


def good(reading: dict | None) -> dict | None:
    """The reading if it can be a space: finite numbers, one distinct id per row that is not empty, counts
    from 0.
    """
    if reading is None or reading["vectors"].ndim != 2 or 0 in reading["vectors"].shape:
        return None
    n, ids, counts = len(reading["vectors"]), reading["ids"], reading["counts"]
    alike = all(column is None or len(column) == n for column in (ids, reading["labels"], counts))
    sound = np.isfinite(reading["vectors"]).all() and len(set(ids)) == n and all(one.strip() for one in ids)
    counted = counts is None or all(0 <= count < 2**63 for count in counts)
    return reading if alike and sound and counted else None


def space(name: str, **options: Any) -> Callable[[Path], dict]:

    def read(folder: Path) -> dict:
        from relcore.files.reading import load_space

        return of_space(load_space(folder / name, **options))

    return read


def of_space(found: Any) -> dict:
    columns = {what: getattr(found, what) for what in ("ids", "labels", "counts")}
    lists = {what: None if one is None else one.tolist() for what, one in columns.items()}
    return {"vectors": found.vectors} | lists


def same(got: Any, truth: Any) -> bool:
    if isinstance(truth, np.ndarray):
        got = np.asarray(got)
        return got.shape == truth.shape and np.allclose(got, truth, rtol=2e-7, atol=1e-44, equal_nan=True)
    if isinstance(truth, Mapping):
        alike = isinstance(got, Mapping) and got.keys() == truth.keys()
        return alike and all(same(got[key], truth[key]) for key in truth)
    if isinstance(truth, list | tuple):
        return isinstance(got, list | tuple) and len(got) == len(truth) and all(map(same, got, truth))
    return type(got) is type(truth) and got == truth


def spoiled(content: bytes, points: tuple[int, ...] = (), n_flips: int = 8) -> Iterator[tuple[str, bytes]]:
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


def _edited(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with some bytes removed, repeated, inserted or overwritten."""
    at, n = int(rng.integers(len(content) + 1)), int(rng.integers(1, 33))
    before, after, new = content[:at], content[at:], _TELLING[int(rng.integers(len(_TELLING)))]
    edits = (after[n:], after[:n] + after, new + after, new + after[len(new) :])
    return before + edits[int(rng.integers(4))]


def decoded(content: bytes) -> str:
    """The text of a table; Windows-1252 only where no character of UTF-8, or half of one at the end, tells of a damaged file."""
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


def csv_lines(content: bytes, comma: str) -> list[list[str]]:
    """The lines of a table that are not empty; none of a table that is damaged."""
    csv.field_size_limit(1 << 30)
    try:
        stream = io.StringIO(decoded(content), newline="")
        return [line for line in csv.reader(stream, delimiter=comma, strict=True) if line]
    except (UnicodeDecodeError, csv.Error):
        return []


def csv_table(lines: list[list[str]], comma: str = ",") -> bytes:
    stream = io.StringIO()
    csv.writer(stream, delimiter=comma, lineterminator="\n").writerows(lines)
    return stream.getvalue().encode()


def _is_text(content: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        return len(content.decode()) == 1
    return False


def encodings(plain: bytes) -> dict[str, bytes]:
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


def hole(size: int, head: bytes = b"") -> Callable[[Path], None]:

    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.write(head)
            file.truncate(size)

    return make


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def places(name: str, read: Callable[[Path], Any]) -> Iterator[Case]:
    named = (name,)
    yield Case("nothing there", read, names=named)
    yield Case("an empty file", read, {name: b""})
    yield Case("a folder", read, {name: lambda path: path.mkdir()})
    yield Case("a named pipe", read, {name: pipe})
    yield Case("a link to a device", read, {name: link("/dev/zero")})
    yield Case("a link to itself", read, {name: link(name)})
    yield Case("a link to nothing", read, {name: link("missing")})
