"""Farthest-point sampling of 300 of 20,000 unit rows, against its 299 matrix-vector products."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.timing import Benchmark, D, N, made_up
from relcore.represent.anchors import farthest_points
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

    assert np.array_equal(farthest_points(directions, D, 0), by_torch())
    return Benchmark(
        "Farthest-point anchors, 300 of 20,000",
        floor=("floor: NumPy, 299 matrix-vector products", products),
        ours={"farthest_points": (lambda: farthest_points(directions, D, 0), None)},
        peers={"PyTorch: distances by differences, as in point-cloud code": by_torch},
        rounds=3,
    )
