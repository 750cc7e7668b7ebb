"""Hostile files of torch.save; the truth is what torch was given."""

import io
import os
import pickle
import zipfile

import numpy as np

from tests.hostile.cases import IDS, LABELS, TABLE, controls, each, hole, hurt, rows, space

FILE = "words.pt"


class Calls:
    """An object that calls a function when it is unpickled."""

    def __init__(self, *call):
        self._call = call

    def __reduce__(self):
        return self._call[0], self._call[1:]


class _Tensor:
    """A tensor as torch pickles it, with a description that may be wrong."""

    def __init__(self, offset=0, shape=(12, 4), key="0"):
        self.facts = key, offset, shape

    def __reduce__(self):
        import torch

        key, offset, shape = self.facts
        storage = _Storage(("storage", torch.FloatStorage, key, "cpu", 48))
        return torch._utils._rebuild_tensor_v2, (storage, offset, shape, (4, 1), False, {})


class _Storage(tuple):
    """A reference from a pickle to data outside of it, as torch writes it."""


class _Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, _Storage):
            return tuple(value)
        return None


def zipped(content, method=zipfile.ZIP_STORED, **more):
    if not isinstance(content, bytes):
        stream = io.BytesIO()
        _Pickler(stream, 2).dump(content)
        content = stream.getvalue()
    members = {"data.pkl": content, "byteorder": b"little", "data/0": TABLE.tobytes(), "version": b"3\n"}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, member in (members | more).items():
            archive.writestr(f"x/{name}", member)
    return stream.getvalue()


def by_torch(value):
    import torch

    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def cases():
    import torch

    read = space(FILE)
    everything = rows(TABLE, IDS, LABELS)
    tensor = torch.tensor(TABLE)
    whole = by_torch({"vectors": tensor, "ids": IDS, "labels": LABELS})
    itself = {}
    itself["vectors"] = itself
    right = {
        "a dict": (whole, everything),
        "a tensor": (by_torch(tensor), rows(TABLE)),
        "as made here": (zipped(_Tensor()), rows(TABLE)),
    }
    yield from controls(read, FILE, right)
    limited = rows(TABLE[:5], IDS[:5], LABELS[:5])
    yield from controls(space(FILE, limit=5), FILE, {"limit": (whole, limited)})
    harmful = pickle.dumps(Calls(os.system, "touch executed"), 2)
    deflated = zipfile.ZIP_DEFLATED
    contents = {
        "more rows than numbers": zipped(_Tensor(shape=(13, 4))),
        "rows beyond 64 bits": zipped(_Tensor(shape=(2**62 + 3, 4))),
        "negative rows": zipped(_Tensor(shape=(-12, 4))),
        "an offset beyond the numbers": zipped(_Tensor(offset=4)),
        "a storage that is missing": zipped(_Tensor(key="7")),
        "a storage above the archive": zipped(_Tensor(key="../../0")),
        "a pickle that runs a command": zipped(harmful),
        "a pickle alone": harmful,
        "a model": by_torch(torch.nn.Linear(4, 4)),
        "an array": by_torch({"vectors": TABLE}),
        "numbers that are compressed": zipped(_Tensor(), deflated),
        "a pickle that unpacks to 200 MB": zipped(b"\x80\x02" + b"N0" * 10**8, deflated),
        "big-endian numbers": zipped(_Tensor(), byteorder=b"big"),
        "an empty archive": b"PK\x05\x06" + bytes(18),
        "an id twice": by_torch({"vectors": tensor, "ids": [*IDS[:-1], IDS[0]]}),
        "NaN": by_torch(tensor * np.nan),
        "a dict of itself": zipped(itself),
        "4 GB of zeros": hole(4 * 10**9, b"PK\x03\x04"),
        "two pickles": (zipped(_Tensor(), **{"../y/data.pkl": b"N."}), rows(TABLE)),
    }
    yield from each(read, FILE, contents)
    yield from hurt(FILE, whole, lambda _: everything, (4, 30, 100), n_flips=24)
