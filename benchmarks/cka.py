"""Linear CKA of two 20,000 × 300 spaces, with its chance level, against its three products."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import Benchmark, D, made_up
from relcore.scores.cka import linear_cka

GRAM_ROWS = 5_000


def benchmark() -> Benchmark:
    source, target = made_up()
    out = np.empty((D, D), dtype=np.float32)
    fewer = source[:GRAM_ROWS], target[:GRAM_ROWS]

    def products() -> None:
        for left, right in ((source, source), (target, target), (source, target)):
            np.matmul(left.T, right, out=out)

    assert np.isclose(linear_cka(*fewer), gram_cka(*fewer), atol=1e-3)  # float32 products of 5,000 terms
    return Benchmark(
        "Linear CKA with its chance level",
        floor=("floor: NumPy, XᵀX, YᵀY and XᵀY", products),
        ours={"linear_cka": (lambda: linear_cka(source, target), 1.4)},
        peers={
            "NumPy: centre, then the three products": lambda: feature_cka(source, target),
            f"NumPy: Gram form, on {GRAM_ROWS:,} rows only": lambda: gram_cka(*fewer),
        },
        rounds=15,
        note=(
            f"The Gram form takes n × n matrices, 1.6 GB each at 20,000 rows: it gets {GRAM_ROWS:,}, a 16th"
            " of the work."
        ),
    )


def feature_cka(X: np.ndarray, Y: np.ndarray) -> float:
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    return float(np.linalg.norm(X.T @ Y) ** 2 / (np.linalg.norm(X.T @ X) * np.linalg.norm(Y.T @ Y)))


def gram_cka(X: np.ndarray, Y: np.ndarray) -> float:
    grams = []
    for Z in (X, Y):
        gram = Z @ Z.T
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1, keepdims=True)
        grams.append(gram.ravel())
    return float(grams[0] @ grams[1] / np.sqrt((grams[0] @ grams[0]) * (grams[1] @ grams[1])))
