"""``python -m benchmarks.million``: a million made-up rows of width 384 through each adapter, into
benchmarks/million.md.

Each adapter is measured in a process of its own, so that its peak of memory is known.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.steps import processor
from relcore.base.names import ADAPTERS
from relcore.migrate.adapters import adapt
from relcore.migrate.estimators import Adapter
from relcore.stores.index import BLOCK, StorePlace

RESULTS = Path(__file__).parent / "million.md"
N, D, PAIRS = 1_000_000, 384, 1_000
GOALS = ("npy", "parquet", "faiss", "lancedb")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--rows", type=int, default=N)
    parser.add_argument("--folder", type=Path, help="where 5 kB per row fit; default: the temporary folder")
    parser.add_argument("--one", nargs=3, metavar=("ADAPTER", "SIDE", "GOAL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(*options.one, options.rows, options.folder)))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write_rows(Path(folder), options.rows)
        kinds = kinds_of_adapters()
        cases = [(name, "queries", "npy") for name in kinds]
        cases += [(next(name for name, projects in kinds.items() if projects), "corpus", "npy")]
        cases += [(next(iter(kinds)), "queries", goal) for goal in GOALS[1:]]
        found = [in_a_process(case, options.rows, folder) for case in cases]
    RESULTS.write_text(table(cases, found, options.rows), encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))
    return 0


def write_rows(folder: Path, n: int) -> None:
    """Made-up rows of both models, the same every time, block by block."""
    rng = np.random.default_rng(0)
    with (folder / "rows.npy").open("wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f4", "fortran_order": False, "shape": (n, D)}
        )
        for first in range(0, n, BLOCK):
            stream.write(rng.standard_normal((min(BLOCK, n - first), D), dtype=np.float32).data)


def kinds_of_adapters() -> dict[str, bool]:
    """The first adapter with each sequence of steps, and whether it projects the corpus: others take as
    long.
    """
    kinds: dict[tuple[tuple[type, ...], ...], str] = {}
    for name in ADAPTERS:
        adapter = fitted(name)
        steps = tuple(tuple(map(type, side)) for side in (adapter.query_steps_, adapter.corpus_steps_))
        kinds.setdefault(steps, name)
    return {name: len(corpus) > 1 for (_, corpus), name in kinds.items()}


def fitted(name: str) -> Adapter:
    """This adapter, learned from made-up pairs: two bent views of 16 numbers, for which a network learns
    something.
    """
    rng = np.random.default_rng(1)
    hidden = rng.standard_normal((PAIRS, 16), dtype=np.float32)
    new, old = (np.tanh(hidden @ rng.standard_normal((16, D), dtype=np.float32)) for _ in range(2))
    return ADAPTERS[name].load()().fit(new, old)


def in_a_process(case: tuple[str, str, str], n: int, folder: str) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.million",
        "--rows",
        str(n),
        "--folder",
        folder,
        "--one",
        *case,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(case)}: {ran.stderr}")
    print(*case, ran.stdout.strip(), flush=True)
    return json.loads(ran.stdout)


def measured(name: str, side: str, goal: str, n: int, folder: Path) -> dict[str, float]:
    """Seconds per million rows of the product, of mapping in memory, and of the whole stream; the peak of
    memory in bytes.
    """
    adapter = fitted(name)
    mapped = adapter.transform if side == "queries" else adapter.corpus
    rows = np.random.default_rng(2).standard_normal((BLOCK, D), dtype=np.float32)
    weights = np.ones((D, D), np.float32)
    out = np.empty((BLOCK, D), np.float32)
    product, mapping = paired(lambda: np.matmul(rows, weights, out=out), lambda: mapped(rows))
    where = StorePlace(goal, str(folder / f"out.{goal}"), "rows" if goal == "lancedb" else "")
    started = time.perf_counter()
    adapt(adapter, StorePlace("npy", str(folder / "rows.npy")), where, side=side)
    whole = time.perf_counter() - started
    peak = peak_bytes()
    _remove(Path(where.where))
    found = {
        "product": product / BLOCK * 1e6,
        "mapping": mapping / BLOCK * 1e6,
        "whole": whole / n * 1e6,
        "peak": peak,
    }
    return {name: float(one) for name, one in found.items()}


def peak_bytes() -> int:
    """The most memory that this process has held; ru_maxrss alone counts that of the parent before it
    began, too.
    """
    status = Path("/proc/self/status")
    told = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return 1024 * (int(told[1]) if told else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def paired(floor: Callable[[], object], ours: Callable[[], object], times: int = 60) -> tuple[float, float]:
    """Median seconds of each, called in turn."""
    seconds = np.empty((times, 2))
    for turn in range(times):
        for column, call in enumerate((floor, ours)):
            started = time.perf_counter()
            call()
            seconds[turn, column] = time.perf_counter() - started
    return tuple(np.median(seconds, axis=0))


def table(cases: list[tuple[str, str, str]], found: list[dict[str, float]], n: int) -> str:
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores, OMP_NUM_THREADS={threads}"
    lines = [
        "# A million rows through an adapter\n",
        (
            f"`python -m benchmarks.million`, {date.today()}: {n:,} × {D} made-up float32 rows from .npy, one"
            f" adapter for each sequence of steps, learned from {PAIRS:,} made-up pairs. The floor is one"
            f" matrix product per row, {D} × {D}, in blocks of {BLOCK:,} rows into memory that is there."
            " Mapping is `Adapter.transform` or `Adapter.corpus` of a block in memory, in turn with the"
            " floor; its ratio is one of rows per second. Streaming is `relscope adapt` from file to file:"
            " it reads, maps, keeps the blocks for a resumed run, and writes the target. Peak memory is of"
            " the whole process.\n"
        ),
        f"{processor()}; at the end of the run {load}.\n",
        (
            "| adapter | rows | target | rows per s, mapping | ratio to the product | rows per s, streaming |"
            " ratio to the product | peak memory, MB |"
        ),
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for (name, side, goal), one in zip(cases, found, strict=True):
        mapping, whole, product = (1e6 / one[key] for key in ("mapping", "whole", "product"))
        lines.append(
            f"| {name} | {side} | {goal} | {mapping:,.0f} | {mapping / product:.2f} | {whole:,.0f} |"
            f" {whole / product:.2f} | {one['peak'] / 1e6:,.0f} |"
        )
    return "\n".join([*lines, ""])


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.with_name(f"{path.stem}.ids.txt").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
