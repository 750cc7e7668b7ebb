"""Cosine projection, 20,000 × 300 onto 300 anchors, against one matrix product."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from benchmarks.timing import Benchmark, D, N, made_up
from relcore.represent.similarity import RelativeProjection


def benchmark() -> Benchmark:
    space, _ = made_up()
    rows = np.random.default_rng(1).choice(N, D, replace=False)
    anchors = space[rows]
    out = np.empty((N, D), dtype=np.float32)
    plain, centred = (RelativeProjection(center=center).fit(space, anchors=rows) for center in (False, True))

    def normalise_then_product() -> np.ndarray:
        units = space / np.linalg.norm(space, axis=1, keepdims=True)
        return units @ (anchors / np.linalg.norm(anchors, axis=1, keepdims=True)).T

    assert np.allclose(plain.transform(space), cosine_similarity(space, anchors), atol=1e-5)
    return Benchmark(
        "Cosine projection",
        floor=(
            "floor: NumPy, X @ A.T into memory that is there",
            lambda: np.matmul(space, anchors.T, out=out),
        ),
        ours={
            "RelativeProjection(center=False).transform": (lambda: plain.transform(space), 1.6),
            "RelativeProjection(center=True).transform": (lambda: centred.transform(space), 1.6),
        },
        peers={
            "scikit-learn: cosine_similarity": lambda: cosine_similarity(space, anchors),
            "NumPy: normalise both, then the product": normalise_then_product,
        },
        rounds=41,
    )
