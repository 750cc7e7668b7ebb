"""Hostile files of torch.save; the truth is what torch was given."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.hostile.cases import Case, control, each, hole, places, rows, space, spoiled
from tests.hostile.npy import TABLE
from tests.hostile.npz import IDS, LABELS

FILE = "words.pt"


class Calls:
    """Calls a function where it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


class _Storage:
    """What a pickle refers to outside itself, as torch does it."""

    def __init__(self, *facts: Any) -> None:
        self.facts = facts


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        return value.facts if isinstance(value, _Storage) else None


class _Tensor:
    """A tensor as torch pickles it, of facts that may be wrong."""

    def __init__(self, offset: Any = 0, shape: Any = (12, 4), strides: Any = (4, 1), key: Any = "0") -> None:
        import torch

        storage = _Storage("storage", torch.FloatStorage, key, "cpu", 48)
        self.facts = (storage, offset, shape, strides, False, {})

    def __reduce__(self) -> Any:
        import torch

        return torch._utils._rebuild_tensor_v2, self.facts


def zipped(
    content: Any, numbers: bytes = TABLE.tobytes(), method: int = zipfile.ZIP_STORED, **more: bytes
) -> bytes:
    if not isinstance(content, bytes):
        stream = io.BytesIO()
        _Pickler(stream, 2).dump(content)
        content = stream.getvalue()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, member in {
            "data.pkl": content,
            "byteorder": b"little",
            "data/0": numbers,
            "version": b"3\n",
            **more,
        }.items():
            archive.writestr(f"x/{name}", member)
    return stream.getvalue()


def by_torch(value: Any) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def cases() -> Iterator[Case]:
    import torch

    read, everything, tensor = space(FILE), rows(TABLE, IDS, LABELS), torch.tensor(TABLE)
    whole = by_torch({"vectors": tensor, "ids": IDS, "labels": LABELS})
    yield control("a dict", read, {FILE: whole}, everything)
    yield control("a tensor", read, {FILE: by_torch(tensor)}, rows(TABLE))
    yield control("as made here", read, {FILE: zipped(_Tensor())}, rows(TABLE))
    limited = rows(TABLE[:5], IDS[:5], LABELS[:5])
    yield control("limit", space(FILE, limit=5), {FILE: whole}, limited)
    for name, facts in {
        "more rows than numbers": {"shape": (13, 4)},
        "rows beyond 64 bits": {"shape": (2**62 + 3, 4)},
        "negative rows": {"shape": (-12, 4)},
        "an offset beyond the numbers": {"offset": 4},
        "a storage that is missing": {"key": "7"},
        "a storage above the archive": {"key": "../../0"},
    }.items():
        yield Case(name, read, {FILE: zipped(_Tensor(**facts))})
    harmful = pickle.dumps(Calls(os.system, "touch executed"), 2)
    contents = {
        "a pickle that runs a command": zipped(harmful),
        "a pickle alone": harmful,
        "a model": by_torch(torch.nn.Linear(4, 4)),
        "an array": by_torch({"vectors": TABLE}),
        "numbers that are compressed": zipped(_Tensor(), method=zipfile.ZIP_DEFLATED),
        "a pickle that unpacks to 200 MB": zipped(b"\x80\x02" + b"N0" * 10**8, method=zipfile.ZIP_DEFLATED),
        "big-endian numbers": zipped(_Tensor(), byteorder=b"big"),
        "an empty archive": b"PK\x05\x06" + bytes(18),
        "an id twice": by_torch({"vectors": tensor, "ids": [*IDS[:-1], IDS[0]]}),
        "NaN": by_torch(tensor * np.nan),
        "a dict of itself": zipped(_of_itself()),
        "4 GB of zeros": hole(4 * 10**9, b"PK\x03\x04"),
    }
    yield from each(read, FILE, contents)
    yield Case("two pickles", read, {FILE: zipped(_Tensor(), **{"../y/data.pkl": b"N."})}, rows(TABLE))
    yield from places(FILE, read)
    yield from each(read, FILE, spoiled(whole, points=(4, 30, 100), n_flips=24), lambda _: everything)


def _of_itself() -> dict:
    found: dict = {}
    found["vectors"] = found
    return found
