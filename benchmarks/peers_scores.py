"""``python -m benchmarks.peers_scores``: our scores and those of scikit-learn, PyTorch and faiss, into
benchmarks/peers.md.

Floor, ours and peers take turns in one process. The floor is the matrix products that no exact method can
avoid.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version

import faiss
import numpy as np
import torch
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

from benchmarks.__main__ import _processor, _threads
from benchmarks.peers_note import write_section
from benchmarks.timing import Benchmark, Result, measure
from relcore.represent.projection import RelativeProjection
from relcore.represent.similarity import unit_rows
from relcore.scores.cka import linear_cka
from relcore.scores.neighbours import find_neighbours

TITLE = "Scores"
D, N_ANCHORS, K, N_QUERIES, BLOCK = 128, 100, 10, 500, 65_536
SIZES = (100_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers_scores", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    sizes, parts = parser.parse_args().rows, [_heading()]
    for n in sizes:
        source, target = made_up(n)
        for make in (projection, neighbours, cka):
            benchmark = make(source, target)
            parts.append(_table(f"{benchmark.title}, {n:,} rows", benchmark, measure(benchmark)))
    write_section(TITLE, "\n\n".join(parts))


def made_up(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two row-aligned matrices (n, 128) in float32, the second a noisy rotation of the first; the same
    every time.
    """
    rng = np.random.default_rng(0)
    source = rng.standard_normal((n, D), dtype=np.float32)
    rotation, _ = np.linalg.qr(rng.standard_normal((D, D)))
    target = source @ rotation.astype(np.float32)
    for block in _blocks(n):
        target[block] += 0.5 * rng.standard_normal((block.stop - block.start, D), dtype=np.float32)
    return source, target


def projection(source: np.ndarray, target: np.ndarray) -> Benchmark:
    rows = np.random.default_rng(1).choice(len(source), N_ANCHORS, replace=False)
    anchors, out = source[rows], np.empty((len(source), N_ANCHORS), dtype=np.float32)
    ours = RelativeProjection(center=False).fit(source, anchors=rows)

    def by_torch() -> torch.Tensor:
        return _unit(source) @ _unit(anchors).T

    first = slice(0, 1000)
    assert np.allclose(ours.transform(source[first]), cosine_similarity(source[first], anchors), atol=1e-5)
    return Benchmark(
        f"Cosine projection onto {N_ANCHORS} anchors",
        floor=(
            "floor: one product, into memory that is there",
            lambda: np.matmul(source, anchors.T, out=out),
        ),
        ours={"ours: RelativeProjection.transform": (lambda: ours.transform(source), None)},
        peers={
            "scikit-learn: cosine_similarity": lambda: cosine_similarity(source, anchors),
            "PyTorch: normalize, then the product": by_torch,
        },
        rounds=_rounds(source, 9),
        note="faiss has no such function.",
    )


def neighbours(source: np.ndarray, target: np.ndarray) -> Benchmark:
    queries = np.random.default_rng(2).choice(len(source), N_QUERIES, replace=False)
    units = unit_rows(source), unit_rows(target)
    out = np.empty((N_QUERIES, BLOCK), dtype=np.float32)

    def products() -> None:
        for space in units:
            for block in _blocks(len(space)):
                np.matmul(space[queries], units[1][block].T, out=out[:, : block.stop - block.start])

    def lists_of(search: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, ...]:
        return tuple(search(space[queries]) for space in units)

    def by_torch() -> tuple[np.ndarray, ...]:
        base = torch.from_numpy(units[1])
        return lists_of(lambda asked: torch.topk(torch.from_numpy(asked) @ base.T, K, dim=1).indices.numpy())

    def by_faiss() -> tuple[np.ndarray, ...]:
        # Its own default sends 500 queries past BLAS, which takes several times as long. Ours sets this for
        # its searches, too.
        settings = faiss.cvar
        usual, settings.distance_compute_blas_threshold = settings.distance_compute_blas_threshold, 20
        index = faiss.IndexFlatIP(D)
        index.add(units[1])
        found = lists_of(lambda asked: index.search(asked, K)[1])
        settings.distance_compute_blas_threshold = usual
        return found

    def by_scikit_learn() -> tuple[np.ndarray, ...]:
        search = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(units[1])
        return lists_of(lambda asked: search.kneighbors(asked, return_distance=False))

    def ours() -> tuple[np.ndarray, ...]:
        found = find_neighbours(source, target, K, queries=queries)
        return found.jaccard(0), found.mrr(0)

    assert np.mean(by_torch()[0] == by_faiss()[0]) > 0.999  # ties and rounding
    return Benchmark(
        f"Neighbours of {N_QUERIES} queries in both spaces, k = {K}",
        floor=("floor: both products, in blocks", products),
        ours={"ours: find_neighbours, jaccard and mrr": (ours, None)},
        peers={
            "faiss: IndexFlatIP, built and searched": by_faiss,
            "PyTorch: product of all rows, then topk": by_torch,
            "scikit-learn: NearestNeighbors, brute": by_scikit_learn,
        },
        rounds=_rounds(source, 5),
        note=(
            "Ours normalises all rows and gives the scores, too; floor and peers get normalised rows and stop"
            " at the lists. faiss uses BLAS from 20 queries on, which is not its default."
        ),
    )


def cka(source: np.ndarray, target: np.ndarray) -> Benchmark:
    out = np.empty((D, D), dtype=np.float32)

    def products() -> None:
        for left, right in ((source, source), (target, target), (source, target)):
            np.matmul(left.T, right, out=out)

    def by_torch() -> float:
        first, second = (
            torch.from_numpy(space) - torch.from_numpy(space).mean(0) for space in (source, target)
        )
        own = [torch.linalg.norm(space.T @ space) for space in (first, second)]
        return float(torch.linalg.norm(first.T @ second) ** 2 / (own[0] * own[1]))

    ours = linear_cka(source, target)
    assert abs(float(getattr(ours, "value", ours)) - by_torch()) < 1e-4
    return Benchmark(
        "Linear CKA",
        floor=("floor: XᵀX, YᵀY and XᵀY", products),
        ours={"ours: linear_cka, with its exact chance level": (lambda: linear_cka(source, target), None)},
        peers={"PyTorch: centre, then the three products": by_torch},
        rounds=_rounds(source, 9),
        note="scikit-learn and faiss have no such function. The peer gives no chance level.",
    )


def _unit(rows: np.ndarray) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.from_numpy(rows))


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def _rounds(rows: np.ndarray, usual: int) -> int:
    return usual if len(rows) <= SIZES[0] else 3


def _heading() -> str:
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "torch", "faiss-cpu")
    )
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores before it began"
    return (
        f"`python -m benchmarks.peers_scores`, {date.today()}: made-up float32 rows of width {D}. Floor, ours"
        " and peers take turns in one process; a ratio is the median over rounds of a call's time to the"
        f" floor's of the same round, its middle half in brackets.\n\n{_processor()}; {load}; {_threads()};"
        f" Python {platform.python_version()}, {libraries}."
    )


def _table(title: str, benchmark: Benchmark, results: list[Result]) -> str:
    """Ratios, and what a peer does better."""
    lines = [f"### {title}\n", "| | ratio to the floor |", "|---|---:|"]
    lines += [
        f"| {result.name} | {result.ratio:.2f} ({result.low:.2f}–{result.high:.2f}) |"
        for result in results[1:]
    ]
    ours, *peers = results[1:]
    faster = [
        f"{peer.name.partition(':')[0]} ({ours.ratio / peer.ratio:.2f} ×)"
        for peer in peers
        if peer.ratio < ours.ratio
    ]
    verdict = f"Faster than ours: {', '.join(faster)}." if faster else "No peer is faster than ours."
    return "\n".join([*lines, "", f"{verdict} {benchmark.note} {benchmark.rounds} rounds."])


if __name__ == "__main__":
    main()
