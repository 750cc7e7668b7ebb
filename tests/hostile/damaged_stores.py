"""Damaged entries of a store: each counts as absent, or is what was written."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.cases import Case, control, hole, link, pipe, same, spoiled
from tests.hostile.corpus import changes
from tests.hostile.npy import TABLE
from tests.hostile.npz import IDS
from tests.hostile.safetensors import packed, raw

KEY = "ab" * 16
ARRAYS = {"vectors": TABLE, "ids": np.frombuffer(json.dumps(IDS).encode(), np.uint8)}
METADATA = {"name": "words", "digest": "", "facts": [1, 2.5, None, "ü"]}


def entry(arrays: dict[str, Any] | None = None, metadata: Any = None) -> tuple[str, bytes]:
    """The file of an entry, below the store's folder, and its bytes, as the store itself writes them."""
    from relcore.runs.store import Store

    with tempfile.TemporaryDirectory() as folder:
        Store(folder).put(
            KEY, ARRAYS if arrays is None else arrays, METADATA if metadata is None else metadata
        )
        path = next(Path(folder).glob(f"**/*{KEY}*"))
        return str(path.relative_to(folder)), path.read_bytes()


def got(folder: Path) -> str:
    from relcore.runs.store import Store

    store = Store(folder / "store")
    summary, found = store.summary(KEY), store.get(KEY)
    store.summaries(), store.size(), store.entries()
    if found is None:
        store.put(KEY, ARRAYS, METADATA)  # which damage must not prevent
        return "absent" if store.get(KEY) is not None else "cannot be written again"
    whole = same(dict(found.arrays), ARRAYS) and found.metadata == METADATA
    return (
        "whole"
        if whole and (summary is None or summary.metadata == METADATA)
        else "other than what was written"
    )


def absent(folder: Path) -> bool:
    return got(folder) in ("absent", "whole")


def cases() -> Iterator[Case]:
    path, whole = entry()
    path = f"store/{path}"
    yield Case("control", got, {path: whole}, "whole", accept=True)
    yield control("nothing there", got, {}, "absent")
    header = int.from_bytes(whole[:8], "little")
    for name, content in spoiled(whole, points=(7, 8, 8 + header, 9 + header), n_flips=60):
        yield Case(name, absent, {path: content}, True, accept=True)
    for name, made in {
        "empty": b"",
        "a named pipe": pipe,
        "a link to nothing": link("missing"),
        "2 GB of zeros": hole(2 * 10**9),
        "another program's file": packed({"x": TABLE}),
        "metadata nested 100,000 deep": packed(ARRAYS, {"relscope": "[" * 100_000}),
        "a header nested 100,000 deep": raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    }.items():
        yield Case(name, absent, {path: made}, True, names=(KEY, "the entry"))
    yield from _encodings(path)


def _encodings(path: str) -> Iterator[Case]:

    def load(folder: Path) -> dict:
        from relcore.catalog.catalog import load_encoding
        from relcore.runs.store import Store

        found = load_encoding(Store(folder / "store"), KEY)
        return {"vectors": found.vectors, "ids": found.ids.tolist()}

    right = {"vectors": TABLE, "ids": IDS}
    yield Case("encoding: control", load, {path: entry()[1]}, right, accept=True)
    text = np.frombuffer(b"hello", np.uint8)
    for name, (arrays, metadata) in {
        "no vectors": ({"ids": ARRAYS["ids"]}, METADATA),
        "ids that are not JSON": (ARRAYS | {"ids": text}, METADATA),
        "vectors of NaN": (ARRAYS | {"vectors": TABLE * np.float32(np.nan)}, METADATA),
        "negative counts": (ARRAYS | {"counts": np.arange(12) - 5}, METADATA),
    }.items():
        yield Case(
            f"encoding: {name}",
            load,
            {path: entry(arrays, metadata)[1]},
            names=(KEY[:8], "words", "encoding"),
            remedy=False,
        )
    yield Case("encoding: absent", load, {}, names=(KEY[:8],))


def drawn():
    path, whole = entry()
    return changes(
        whole, lambda name, content: Case(name, absent, {f"store/{path}": content}, True, accept=True)
    )
