"""Stitching as a job: what it costs, and its result in the store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.names import METHODS
from relcore.progress import Context
from relcore.sources.encodings import load_encoding
from relcore.spaces import LatentSpace, distinct_names
from relcore.stitching.classification import SharedRows, Stitching, share_rows
from relcore.stitching.result import StitchResult
from relcore.stitching.spec import StitchSpec
from relcore.store import Entry, digest_of

# Seconds a row, column and class of a logistic head; a row, epoch and weight of a network: measured on two cores of 2026.
_LOGISTIC, _NETWORK, _BATCH = 2e-8, 3e-10, 1.2e-3
_EPOCHS, _WIDTH = 30, 256


def stitching_key(spaces: Sequence[LatentSpace], spec: StitchSpec, version: int = 3) -> str:
    """The store's key of a result: the same rows, names and choices give the same."""
    content = tuple(zip((space.digest for space in spaces), distinct_names(spaces), strict=True))
    return digest_of("stitching", version, content, spec)


def estimated_seconds(shared: SharedRows, spec: StitchSpec) -> float:
    """Roughly how long all random states take on two cores; heads are nearly all of it."""
    n, n_classes = len(shared.targets) * (1 - spec.test_fraction), len(shared.classes)
    n_anchors = len(spec.anchors) or spec.n_anchors
    total = 0.0
    for kind in {METHODS[method].heads for method in spec.methods}:
        widths = [
            space.dimension if kind == "absolute" else n_anchors * (4 if kind == "product" else 1) for space in shared.spaces
        ]
        total += sum(_head_seconds(n, width, n_classes, spec.head) for width in widths)
    carried = sum(METHODS[method].heads == "absolute" for method in spec.methods)
    total += carried * len(shared.spaces) ** 2 * (0.002 + n_anchors * max(space.dimension for space in shared.spaces) * 2e-7)
    return total * len(spec.random_states)


def _head_seconds(n: float, width: int, n_classes: int, head: str) -> float:
    if head == "logistic":
        return 0.01 + n * width * n_classes * _LOGISTIC
    return 0.2 + _EPOCHS * n * (_BATCH / 128 + _NETWORK * (width + _WIDTH + n_classes) * _WIDTH)


def stitching_job(context: Context, *, inputs: Sequence[str], spec: StitchSpec) -> None:
    """`stitch_matrix` as a job of the Engine, under `stitching_key`; `inputs` are keys of encodings or of `put_space`."""
    spaces = [load_encoding(context.store, key) for key in inputs]
    shared = share_rows(spaces, spec.order)
    n_states, runs = len(spec.random_states), []
    for number, state in enumerate(spec.random_states):

        def report(done: int, total: int, message: str, number: int = number, state: int = state) -> None:
            context.report(number * total + done, total * n_states, message + (f", state {state}" if n_states > 1 else ""))

        runs.append(Stitching(shared, spec, state, report=report).run())
    put_stitching(context, StitchResult(spec, tuple(distinct_names(spaces)), shared.classes, tuple(runs)))


def put_stitching(context: Context, result: StitchResult) -> None:
    """Keep a result as that of a job."""
    arrays, facts = result.pack()
    context.put({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {"stitching": facts})


def stitching_of(entry: Entry) -> StitchResult:
    """Back from `put_stitching`."""
    return StitchResult.unpack(entry.arrays, entry.metadata["stitching"])
