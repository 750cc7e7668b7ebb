"""Map rows with an adapter of Relscope; needs only NumPy, and adapter.safetensors beside this file.

queries(x) maps rows of the new model, corpus(x) rows of the old one. Search the results by inner product,
which is their cosine.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np


@cache
def adapter():
    """The kinds of the steps of each side, and the tensors by the name of their step."""
    raw = Path(__file__).with_name("adapter.safetensors").read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:begin])
    plan = json.loads(head.pop("__metadata__")["relscope-adapter"])
    told = plan["checksum"]  # of this file, computed with zeros in this place
    content = raw.replace(told.encode(), b"0" * 32, 1)
    if hashlib.blake2b(content, digest_size=16).hexdigest() != told:
        raise ValueError("adapter.safetensors: expected the content that was written; copy it again")
    values = {
        name: np.frombuffer(raw[begin:][slice(*one["data_offsets"])], "<f4") for name, one in head.items()
    }
    return plan, {name: one.reshape(head[name]["shape"]) for name, one in values.items()}


def mapped(x, side):
    """Rows (n, d) of one side, "queries" or "corpus", after all steps."""
    (plan, tensors), x = adapter(), np.asarray(x, np.float32)
    for place, kind in enumerate(plan[side]):
        step = {
            name.split(".")[2]: one for name, one in tensors.items() if name.startswith(f"{side}.{place}.")
        }
        if kind == "unit":
            x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.float32(1e-30))
        else:
            x = x @ step["matrix"] + step["offset"]
    return x


def queries(x):
    """Rows of the new model (n, d_new), ready to search the corpus."""
    return mapped(x, "queries")


def corpus(x):
    """Rows of the old model (n, d_old), as the adapter searches them."""
    return mapped(x, "corpus")
