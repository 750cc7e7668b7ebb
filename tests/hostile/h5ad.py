"""Hostile AnnData files: the truth is what they were made of; a flipped byte may change numbers, never end
this process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.hostile.cases import Case, hole, places, rows, space, spoiled
from tests.relcore.files.h5ad import CELLS, COUNTS, TYPES, VECTORS, write

FILE = "cells.h5ad"


@cache
def made(change: Callable[[Any], None] | None = None, **options: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write(Path(folder) / FILE, change=change, **options).read_bytes()


def case(name: str, content: Any, truth: Any = None, read: Any = None, **more: Any) -> Case:
    return Case(name, read or space(FILE), {FILE: content}, truth, **more)


def instead(name: str, **made_of: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file[name]
        file.create_dataset(name, **made_of)

    return change


def cases() -> Iterator[Case]:
    whole, everything = made(), rows(VECTORS, CELLS, TYPES)
    yield case("control: obsm", whole, everything, accept=True)
    yield case("control: X", whole, rows(COUNTS, CELLS, TYPES), space(FILE, matrix="X"), accept=True)
    yield case(
        "control: a sparse layer",
        whole,
        rows(COUNTS, CELLS, TYPES),
        space(FILE, matrix="counts"),
        accept=True,
    )
    yield case(
        "control: limit", whole, rows(VECTORS[:4], CELLS[:4], TYPES[:4]), space(FILE, limit=4), accept=True
    )
    matrix, names = "obsm/X_pca", "obs/_index"
    for name, change in {
        "NaN": instead(matrix, data=VECTORS * np.float32(np.nan)),
        "10¹² rows": instead(matrix, shape=(10**12, 3), dtype="f4", chunks=(1000, 3)),
        "10¹⁵ numbers": instead(matrix, shape=(20, 10**15 // 20), dtype="f4", chunks=(1, 1000)),
        "chunks of 3 GB": instead(
            matrix, shape=(20, 10**6), maxshape=(None, None), dtype="f4", chunks=(800, 10**6)
        ),
        "no ids": lambda file: file.__delitem__(names),
        "obs as a table": instead("obs", data=np.zeros(20, [("index", "S8"), ("x", "f4")])),
        "a soft link to itself": _link(matrix, h5py.SoftLink(f"/{matrix}")),
        "a link to another file": _link(matrix, h5py.ExternalLink("/etc/hostname", "/x")),
        "numbers that lie in another file": instead(
            matrix, shape=(20, 3), dtype="u1", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)]
        ),
    }.items():
        yield case(name, made(change))
    for name, where, value in (
        ("columns beyond the shape", "layers/counts/indices", 10**6),
        ("negative columns", "layers/counts/indices", -1),
        ("rows beyond the numbers", "layers/counts/indptr", 10**6),
        ("negative rows", "layers/counts/indptr", -5),
    ):
        yield case(f"sparse: {name}", made(_set(where, value)), read=space(FILE, matrix="counts"))
    yield case("sparse: 10¹² columns", made(_shape([20, 10**12])), read=space(FILE, matrix="counts"))
    yield case(
        "some kB that unpack to 16 GB",
        made(instead(matrix, shape=(4 * 10**6, 1000), dtype="f4", compression="gzip")),
    )
    yield case("a pickle", b"cos\nsystem\n(S'touch executed'\ntR.")
    yield case("4 GB of zeros", hole(4 * 10**9, b"\x89HDF\r\n\x1a\n"))
    for one in places(FILE, space(FILE)):
        yield Case(one.name, one.read, one.files, one.truth, names=one.names)
    for name, content in spoiled(whole, points=(8, 48, 96), n_flips=0):
        yield case(name, content, everything if "after it" in name else None)


def _link(name: str, link: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file[name]
        file[name] = link

    return change


def _set(name: str, value: int) -> Callable[[Any], None]:
    return lambda file: file[name].__setitem__(1, value)


def _shape(value: Any) -> Callable[[Any], None]:
    return lambda file: file["layers/counts"].attrs.__setitem__("shape", value)
