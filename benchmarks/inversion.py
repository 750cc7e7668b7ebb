"""Inverse relative projection: translating 20,000 × 300 against one matrix product; pruning 1,000 anchors
eight times.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import Benchmark, N, made_up
from relcore.represent.anchors import farthest_order
from relcore.represent.similarity import unit_rows
from relcore.represent.translation import InverseRelativeProjection, first_anchors

K = 1_000  # anchors


def benchmark() -> Benchmark:
    source, target = made_up()
    rows = np.random.default_rng(1).choice(N, K, replace=False)
    anchors = source[rows], target[rows]
    fitted = {omega: InverseRelativeProjection(omega=omega, delta=0.85).fit(*anchors) for omega in (1, 16)}
    matrix = np.ascontiguousarray(fitted[1].matrix_)
    units = unit_rows(anchors[1], anchors[1].mean(axis=0))

    def by_its_steps() -> np.ndarray:
        """Each pruning by itself, as the paper writes it down, and one of them only."""
        (kept,), mean = fitted[1].kept_, fitted[1].source_mean_
        relative = unit_rows(source, mean) @ unit_rows(anchors[0][kept], mean).T
        found = relative @ np.linalg.pinv(units[kept].T)
        return found * np.float32(fitted[1].scale_) + fitted[1].target_mean_

    def prune() -> list[np.ndarray]:
        similarity = np.abs(units @ units.T)
        return [farthest_order(similarity.__getitem__, K, start)[0] for start in first_anchors(K, 8)]

    assert np.allclose(fitted[1].transform(source), by_its_steps(), atol=1e-2)
    return Benchmark(
        "Inverse relative projection",
        floor=("floor: NumPy, X @ W", lambda: source @ matrix),
        ours={
            "transform, ω = 1": (lambda: fitted[1].transform(source), 1.3),
            "transform, ω = 16": (lambda: fitted[16].transform(source), 1.3),
            "farthest_order: 1,000 anchors pruned 8 times, none left out": (prune, None),
        },
        peers={"NumPy: relative rows, then the inverse, of one pruning": by_its_steps},
        rounds=41,
        note="A translation is the product and one pass over its rows: centre, length, scale, shift.",
    )
