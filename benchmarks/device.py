"""``python -m benchmarks.device``: the steps of a pass on the GPU, against its own matrix products, into
benchmarks/device.md.

10⁶ × 768 rows on a GPU. Where there is none, fewer rows as tensors on the CPU, which measures the same code
and no GPU.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from benchmarks.__main__ import _processor
from benchmarks.timing import Benchmark, Result, measure
from relcore.represent.similarity import row_blocks, unit_rows
from relcore.scores.device import TorchDevice
from relcore.scores.scoring import BLOCK_ROWS
from relcore.scores.search import gpu_name
from relcore.scores.sums import TopRows

RESULTS = Path(__file__).parent / "device.md"
N_ANCHORS, N_QUERIES, K, BLOCK = 300, 600, 10, BLOCK_ROWS  # the blocks of the passes
ON_GPU, ON_CPU = (1_000_000, 768), (50_000, 128)


class Steps:
    """Rows (n, d) on the device and in memory, with what a pass needs on the device."""

    def __init__(self, kind: str, n: int, d: int) -> None:
        rng = np.random.default_rng(0)
        self.device = TorchDevice(kind)
        self.rows = rng.standard_normal((n, d), dtype=np.float32)
        self.blocks = list(row_blocks(n, BLOCK))
        self.there = [self.device.block(self.rows[block], 0) for block in self.blocks]
        chosen = rng.choice(n, N_QUERIES, replace=False)
        self.mean = self.device.put(np.full(d, 0.01, dtype=np.float32))
        self.queries = self.device.put(unit_rows(self.rows[chosen]))
        self.anchors = self.device.put(np.ascontiguousarray(unit_rows(self.rows[chosen[:N_ANCHORS]]).T))
        self.kind = kind

    def each(self, step: Callable, *, moved: bool = False) -> Callable[[], None]:
        """The step on each block; with `moved`, the block comes from memory first. It ends when the device
        has finished.
        """

        def run() -> None:
            with self.device.exact():
                for block, rows in zip(self.blocks, self.there, strict=True):
                    step(self.device.block(self.rows[block], 0) if moved else rows, block)
            if self.kind != "cpu":
                torch.cuda.synchronize()

        return run

    def benchmark(self, title: str, floor: Callable, ours: Callable, note: str) -> Benchmark:
        calls = {
            "ours, rows on the device": (self.each(ours), None),
            "ours, rows from memory": (self.each(ours, moved=True), None),
        }
        return Benchmark(
            title, ("floor: the product, rows on the device", self.each(floor)), calls, {}, 9, note
        )

    def all(self) -> list[Benchmark]:
        device, tops = self.device, []
        total = device.zeros(self.rows.shape[1], self.rows.shape[1])

        def unit(rows: torch.Tensor) -> torch.Tensor:
            return device.directions(rows, self.mean, "unit")

        def search(rows: torch.Tensor, block: slice) -> None:
            if not block.start:  # each round finds the neighbours again
                tops[:] = [TopRows(N_QUERIES, K)]
            tops[0].add(
                device,
                device.product(self.queries, unit(rows).T, "scores"),
                np.arange(block.start, block.stop),
            )

        def moments(rows: torch.Tensor, block: slice) -> None:
            centred = device.centred(rows, self.mean, "centred")
            total.add_(centred.T @ centred)

        return [
            self.benchmark(
                f"Projection onto {N_ANCHORS} anchors",
                lambda rows, block: rows @ self.anchors,
                lambda rows, block: device.product(unit(rows), self.anchors, "relative"),
                "Ours centres and normalises the rows, too.",
            ),
            self.benchmark(
                f"Neighbours of {N_QUERIES} queries, k = {K}",
                lambda rows, block: self.queries @ rows.T,
                search,
                "Ours centres and normalises the rows, too, and keeps the nearest in memory.",
            ),
            self.benchmark(
                "Moments",
                lambda rows, block: rows.T @ rows,
                moments,
                "Ours centres the rows, too, and sums in float64.",
            ),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument(
        "--rows", type=int, help="write no file; default: 1,000,000 on a GPU, 50,000 on the CPU"
    )
    chosen, name = parser.parse_args().rows, gpu_name()
    n, d = ON_GPU if name else ON_CPU
    n = chosen or n
    steps = Steps("cuda" if name else "cpu", n, d)
    where = (
        name
        or f"Tensors on the CPU ({_processor()}, {torch.get_num_threads()} threads): **not measured on a GPU**"
    )
    heading = (
        f"# The steps of a pass on a device\n\n`python -m benchmarks.device`, {date.today()}: {n:,} × {d}"
        f" float32 rows in blocks of {BLOCK:,}; TF32 and autocast off. Floor and ours take turns in one run;"
        f" a ratio is the median over rounds, its middle half in brackets.\n\n{where}. Python"
        f" {platform.python_version()}, torch {version('torch')}.\n"
    )
    parts = [heading, *(_table(benchmark, measure(benchmark)) for benchmark in steps.all())]
    if not chosen:
        RESULTS.write_text("\n".join(parts), encoding="utf-8")
    print("\n".join(parts))


def _table(benchmark: Benchmark, results: list[Result]) -> str:
    lines = [f"## {benchmark.title}\n", "| | ratio to the product on the device |", "|---|---:|"]
    lines += [
        f"| {result.name} | {result.ratio:.2f} ({result.low:.2f}–{result.high:.2f}) |"
        for result in results[1:]
    ]
    return "\n".join([*lines, "", f"{benchmark.note} {benchmark.rounds} rounds.", ""])


if __name__ == "__main__":
    main()
