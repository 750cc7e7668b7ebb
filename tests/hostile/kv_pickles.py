"""Hostile gensim .kv pickles: nothing may be executed, and what is accepted is what gensim saved."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from tests.hostile.cases import Case, good, places, rows, space, spoiled
from tests.hostile.corpus import changes
from tests.hostile.npy import TABLE, npy
from tests.hostile.npz import COUNTS, IDS

FILE = "words.kv"


class KeyedVectors:
    """Pickled under the name of gensim's class, which need not be installed."""


def pickled(state: Any, protocol: int = 4, module: str = "gensim.models.keyedvectors") -> bytes:
    parts = module.split(".")
    names = [".".join(parts[: n + 1]) for n in range(len(parts))]
    made = {name: ModuleType(name) for name in names if name not in sys.modules}
    made[module].KeyedVectors = KeyedVectors
    KeyedVectors.__module__ = module
    sys.modules |= made
    try:
        one = KeyedVectors()
        one.__dict__ = state
        return pickle.dumps(one, protocol=protocol)
    finally:
        for name in made:
            del sys.modules[name]


def state(**change: Any) -> dict:
    usual = {"vectors": TABLE, "index_to_key": IDS, "key_to_index": dict(zip(IDS, range(12), strict=True))}
    usual |= {
        "vector_size": 4,
        "expandos": {"count": np.array(COUNTS)},
        "__numpys": [],
        "__ignoreds": ["vectors_norm"],
    }
    return {name: value for name, value in (usual | change).items() if value is not None}


class _Calls:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = function, arguments

    def __reduce__(self):
        return self.made


def _unpickled(content: bytes) -> dict | None:
    """By Python's own unpickler, which here knows NumPy and an empty class, and nothing else.

    Where it gives up at damage in a part that vectors do not need, the truth is what was saved.
    """

    class Loader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module.startswith("gensim."):
                return KeyedVectors
            if module.split(".")[0] == "numpy" and name in (
                "_reconstruct",
                "_frombuffer",
                "ndarray",
                "dtype",
                "scalar",
            ):
                return super().find_class(module, name)
            raise pickle.UnpicklingError(name)

    try:
        found = Loader(io.BytesIO(content)).load().__dict__
        vectors, counts = np.asarray(found["vectors"]), found.get("expandos", {}).get("count")
        counts = (
            counts.tolist()
            if isinstance(counts, np.ndarray) and counts.dtype.kind in "iu" and counts.ndim == 1
            else None
        )
        if vectors.dtype.kind not in "fiu":
            return None
        with np.errstate(over="ignore"):
            return good(rows(vectors, [str(one) for one in found["index_to_key"]], counts=counts))
    except Exception:
        return None


def cases() -> Iterator[Case]:
    read, right = space(FILE), rows(TABLE, IDS, counts=COUNTS)
    for protocol in (2, 3, 4, 5):
        content = pickled(state(), protocol)
        yield Case(f"control: protocol {protocol}", read, {FILE: content}, right, accept=True)
    limited = rows(TABLE[:5], IDS[:5], counts=COUNTS[:5])
    yield Case("control: limit", space(FILE, limit=5), {FILE: pickled(state())}, limited, accept=True)
    beside = {FILE: pickled(state(vectors=None) | {}), f"{FILE}.vectors.npy": npy(TABLE)}
    beside[FILE] = pickled(state(vectors=None, __numpys=["vectors"]))
    yield Case("control: vectors beside it", read, beside, right, accept=True)
    yield Case("vectors beside it are missing", read, {FILE: beside[FILE]})
    yield Case("vectors beside it are others", read, beside | {f"{FILE}.vectors.npy": npy(TABLE[:5])})
    harmful = pickle.dumps(_Calls(os.system, "touch executed"))
    yield Case("vectors beside it are a pickle", read, beside | {f"{FILE}.vectors.npy": harmful})
    for name, call in {
        "os.system": _Calls(os.system, "touch executed"),
        "eval": _Calls(eval, "open('executed', 'w')"),
        "exec": _Calls(exec, "open('executed', 'w')"),
        "open": _Calls(open, "executed", "w"),
        "a method of a string": _Calls(getattr, "x", "upper"),
        "bytes of 10 GB": _Calls(bytes, 10**10),
        "bytearray of 10 GB": _Calls(bytearray, 10**10),
    }.items():
        yield Case(f"calls {name}", read, {FILE: pickle.dumps(call)})
        yield Case(
            f"calls {name} among the words", read, {FILE: pickled(state(index_to_key=[call, *IDS[1:]]))}
        )
        yield Case(f"calls {name} as vectors", read, {FILE: pickled(state(vectors=call))})
        yield Case(
            f"calls {name} as counts",
            read,
            {FILE: pickled(state(expandos={"count": call}))},
            rows(TABLE, IDS),
        )
    for name, change in {
        "a word missing": {"index_to_key": IDS[:-1]},
        "a word twice": {"index_to_key": [*IDS[:-1], IDS[0]]},
        "an empty word": {"index_to_key": ["", *IDS[1:]]},
        "words are none": {"index_to_key": None},
        "words are one text": {"index_to_key": "abcdefghijkl"},
        "words are numbers with fractions": {"index_to_key": [float(row) for row in range(12)]},
        "words are true": {"index_to_key": [True] * 12},
        "no words": {"index_to_key": [], "vectors": TABLE[:0]},
        "vectors are none": {"vectors": None},
        "vectors are a list": {"vectors": TABLE.tolist()},
        "vectors are a row": {"vectors": TABLE[0]},
        "vectors are strings": {"vectors": TABLE.astype(str)},
        "vectors are objects": {"vectors": TABLE.astype(object)},
        "vectors are complex": {"vectors": TABLE * 1j},
        "vectors are NaN": {"vectors": TABLE * np.nan},
        "vectors are records": {"vectors": np.zeros((12, 4), [("a", "f4")])},
        "counts are negative": {"expandos": {"count": np.arange(12) - 5}},
    }.items():
        yield Case(name, read, {FILE: pickled(state(**change))})
    short = pickled(state(expandos={"count": np.array(COUNTS[:5])}))
    yield Case("counts of five words", read, {FILE: short}, rows(TABLE, IDS))
    yield Case(
        "counts beyond int64",
        read,
        {FILE: pickled(state(expandos={"count": np.arange(12).astype(np.uint64) + 2**63}))},
    )
    for module in (
        "gensim.models.word2vec",
        "gensim.models.fasttext",
        "gensimx",
        "gensim_models",
        "numpyx.core",
        "builtinsx",
    ):
        yield Case(
            f"a class of {module}",
            read,
            {FILE: pickled(state(), module=module)},
            right if "fasttext" in module else None,
        )
    yield from _programs(read)
    yield from places(FILE, read)
    content = pickled(state())
    points = [at for _, _, at in pickletools.genops(content)]
    for name, changed in spoiled(content, points=tuple(points[:: len(points) // 20]), n_flips=24):
        yield Case(name, read, {FILE: changed}, _unpickled(changed) or right)


def _programs(read) -> Iterator[Case]:
    """Pickles written by hand, one instruction at a time."""
    for name, program in {
        "runs a command, protocol 0": b"cos\nsystem\n(S'touch executed'\ntR.",
        "runs a command, INST": b"(S'touch executed'\nios\nsystem\n.",
        "runs a command, OBJ": b"(cos\nsystem\nS'touch executed'\no.",
        "runs a command, NEWOBJ_EX": b"\x80\x04cos\nsystem\n(\x8c\x0etouch executedt}\x92.",
        "an extension": b"\x80\x02\x82\x01.",
        "a persistent name": b"Ptouch executed\n.",
        "a million marks": b"\x80\x04" + b"(" * 10**6 + b".",
        "a list within a list, 100,000 deep": b"\x80\x04" + b"]" * 10**5 + b"a" * (10**5 - 1) + b".",
        "tuples that double, 200 deep": b"\x80\x04)" + b"\x942\x86" * 200 + b".",
        "tuples that double as a key": b"\x80\x04})" + b"2\x86" * 200 + b"Ns.",
        "a list of itself": b"\x80\x04]q\x00h\x00a.",
        "bytes of 8 exabytes": b"\x80\x04\x8e" + (2**63 - 1).to_bytes(8, "little") + b"x.",
        "text of 4 GB": b"\x80\x04X\xff\xff\xff\xffx.",
        "a number of 16 million digits": b"I" + b"9" * 16_000_000 + b"\n.",
        "a number of 2 MB": b"\x80\x02\x8b" + (2 * 10**6).to_bytes(4, "little") + b"\x7f" * 2 * 10**6 + b".",
        "takes from an empty stack": b"\x80\x04a.",
        "gets what was never put": b"\x80\x04h\x07.",
        "puts at 4 billion": b"\x80\x04Nr\xff\xff\xff\xff.",
        "nothing but a stop": b".",
        "no stop": b"\x80\x04N",
        "protocol 200": b"\x80\xc8N.",
        "a frame longer than the file": b"\x80\x04\x95" + (10**12).to_bytes(8, "little") + b"N.",
        "fills a text": b"\x80\x04\x8c\x01x}b.",
        "sets an item of a list": b"\x80\x04]K\x01K\x02s.",
        "a text": b"hello world\n",
    }.items():
        yield Case(f"program: {name}", read, {FILE: program})


def drawn():
    right = rows(TABLE, IDS, counts=COUNTS)
    whole = pickled(state())

    def make(name: str, content: bytes) -> Case:
        return Case(name, space(FILE), {FILE: content}, _unpickled(content) or right)

    return changes(
        whole, make, most=1
    )  # of two, one could keep Python from reading what the other did to a number
