"""``python -m benchmarks [name …]``: measure, print a table, and write all of them to
benchmarks/results.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from datetime import date
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.timing import Benchmark, D, N, Result, measure

NAMES = ("projection", "inversion", "neighbours", "farthest_point", "cka")
RESULTS = Path(__file__).parent / "results.md"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Ours against floors and peers, in one run."
    )
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"only these, and write no file: {', '.join(NAMES)}"
    )
    chosen = parser.parse_args().names
    if unknown := set(chosen) - set(NAMES):
        parser.error(f"expected names among {', '.join(NAMES)}, got {', '.join(sorted(unknown))}")
    parts, missed = [heading()], []
    print(parts[0])
    for name in chosen or NAMES:
        benchmark = import_module(f"benchmarks.{name}").benchmark()
        results = measure(benchmark)
        parts.append(table(benchmark, results))
        missed += [
            f"{result.name}: {result.ratio:.2f} × its floor, target {result.target}"
            for result in results
            if result.missed
        ]
        print(parts[-1], flush=True)
    if not chosen:
        RESULTS.write_text("\n".join(parts), encoding="utf-8")
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


def heading() -> str:
    """What was measured, how, and on what machine."""
    libraries = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "faiss-cpu", "torch")
    )
    return (
        f"# Benchmarks\n\n`make bench`, {date.today()}: n = {N:,} rows, width and anchors {D}, float32, a"
        " fixed seed. The floor is the matrix products that nothing can avoid. Floor, ours and peers take"
        " turns in one run; a ratio is the median over rounds of a call's time to the floor's of the same"
        f" round, its middle half in brackets.\n\n{_processor()}, {os.cpu_count()} cores; {_threads()};"
        f" Python {platform.python_version()}, {libraries}.\n"
    )


def table(benchmark: Benchmark, results: list[Result]) -> str:
    """One benchmark as a Markdown table."""
    lines = [f"## {benchmark.title}\n", "| | seconds | ratio to the floor | target |", "|---|---:|---:|---:|"]
    for number, result in enumerate(results):
        ratio = "1" if number == 0 else f"{result.ratio:.2f} ({result.low:.2f}–{result.high:.2f})"
        target = "" if result.target is None else f"≤ {result.target}{', missed' if result.missed else ''}"
        lines.append(f"| {result.name} | {result.seconds:.4f} | {ratio} | {target} |")
    note = f"{benchmark.note} {benchmark.rounds} rounds.".lstrip()
    return "\n".join([*lines, "", note, ""])


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def _threads() -> str:
    """Threads of NumPy, faiss and PyTorch; the comparison is fair only where they are equal."""
    import faiss
    import torch
    from threadpoolctl import threadpool_info

    numpy_threads = next(pool["num_threads"] for pool in threadpool_info() if "numpy" in pool["filepath"])
    counts = {
        "NumPy": numpy_threads,
        "faiss": faiss.omp_get_max_threads(),
        "PyTorch": torch.get_num_threads(),
    }
    if len(set(counts.values())) > 1:
        raise SystemExit(f"expected the same number of threads everywhere, got {counts}; set OMP_NUM_THREADS")
    return f"{numpy_threads} threads each for NumPy, faiss and PyTorch"


if __name__ == "__main__":
    sys.exit(main())
