"""Jaccard and MRR of two 20,000 × 300 spaces, k = 10, every row asked, against the two 20,000 × 20,000
products.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors

from benchmarks.timing import Benchmark, K, N, made_up
from relcore.represent.similarity import row_blocks, unit_rows
from relcore.scores.neighbours import find_neighbours


def benchmark() -> Benchmark:
    source, target = made_up()
    units = unit_rows(source), unit_rows(target)
    out = np.empty((4096, N), dtype=np.float32)

    def two_products() -> None:
        for queries in units:
            for block in row_blocks(N):
                np.matmul(queries[block], units[1].T, out=out[: block.stop - block.start])

    def ours() -> tuple[float, float]:
        found = find_neighbours(source, target, K)
        return found.jaccard(0), found.mrr(0)

    def by_torch() -> tuple[float, float]:
        base = torch.from_numpy(units[1]).T
        lists = [
            torch.cat(
                [
                    torch.topk(torch.from_numpy(queries[block]) @ base, K, dim=1).indices
                    for block in row_blocks(N)
                ]
            )
            for queries in (units[1], units[0])
        ]
        return scores_of(*(found.numpy() for found in lists))

    def by_scikit_learn() -> tuple[float, float]:
        search = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(units[1])
        return scores_of(
            *(search.kneighbors(queries, return_distance=False) for queries in (units[1], units[0]))
        )

    assert np.allclose(ours(), by_torch(), atol=1e-5)
    return Benchmark(
        "Jaccard and MRR, k = 10",
        floor=("floor: NumPy, both products in blocks of 4,096 rows", two_products),
        ours={"find_neighbours, jaccard and mrr": (ours, 1.2)},
        peers={
            "PyTorch: product and topk in the same blocks": by_torch,
            "scikit-learn: NearestNeighbors, brute": by_scikit_learn,
        },
        rounds=3,
        note="Ours normalises the rows too, the floor and the peers get them normalised.",
    )


def scores_of(own: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Jaccard and MRR from neighbour lists (n, k), the plain way."""
    shared = (own[:, :, None] == other[:, None, :]).sum(axis=(1, 2))
    found = other == np.arange(len(other))[:, None]
    ranks = np.where(found.any(axis=1), 1 / (1 + found.argmax(axis=1)), 0)
    return float((shared / (2 * own.shape[1] - shared)).mean()), float(ranks.mean())
