"""Farthest-point sampling of 300 of 20,000 unit rows, against its 299 matrix-vector products."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import Benchmark, D, N, made_up
from relcore.represent.anchors import farthest_order
from relcore.represent.similarity import unit_rows


def benchmark() -> Benchmark:
    directions = unit_rows(made_up()[0])
    out = np.empty(N, dtype=np.float32)

    def products() -> None:
        for row in range(1, D):
            np.matmul(directions, directions[row], out=out)

    def by_torch() -> np.ndarray:
        rows = torch.from_numpy(directions)
        chosen = torch.zeros(D, dtype=torch.int64)
        farthest = torch.full((N,), torch.inf)
        for step in range(1, D):
            farthest = torch.minimum(farthest, (rows - rows[chosen[step - 1]]).square().sum(dim=1))
            chosen[step] = farthest.argmax()
        return chosen.numpy()

    def ours() -> np.ndarray:
        return farthest_order(lambda row: directions @ directions[row], N, 0, 1e-6, D)[0]

    assert np.array_equal(ours(), by_torch())
    return Benchmark(
        "Farthest-point anchors, 300 of 20,000",
        floor=("floor: NumPy, 299 matrix-vector products", products),
        ours={"farthest_order": (ours, None)},
        peers={"PyTorch: distances by differences, as in point-cloud code": by_torch},
        rounds=3,
    )
