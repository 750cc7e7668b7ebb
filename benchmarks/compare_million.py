"""``python -m benchmarks.compare_million``: the scores of a million made-up rows in four representations, and
their products.

`compare` runs in a process of its own, as a function and as a command, in turn with two sums of matrix
products: those that the scores take from whole matrices (n × k relative rows, their Gram matrices, the
searches), and those that the pass over blocks still forms. Every product is measured in blocks of 8,192 rows,
into memory that is there, on all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.million import peak_bytes

BLOCK, QUERIES = 8192, 300
Product = tuple[
    str, int, int
]  # "map": (block, a) @ (a, b); "gram": (block, a)ᵀ (block, b); "own": (block, a)ᵀ itself


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare_million", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--anchors", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the two spaces fit; default: the temporary folder")
    parser.add_argument("--one", nargs=2, metavar=("SOURCE", "TARGET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(scored(*options.one, options.anchors)))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        files = write_spaces(Path(folder), options.rows, options.width)
        size = options.rows, options.width, options.anchors
        runs = [one_run(files, *size) for _ in range(options.runs)]
    print(table(runs, *size))
    return 0


def write_spaces(folder: Path, n: int, d: int) -> list[str]:
    """Two noisy views of 16 hidden numbers, the same every time, block by block."""
    rng = np.random.default_rng(0)
    maps = [rng.standard_normal((16, d), dtype=np.float32) for _ in range(2)]
    paths = [folder / f"{name}.npy" for name in ("first", "second")]
    streams = [path.open("wb") for path in paths]
    for stream in streams:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f4", "fortran_order": False, "shape": (n, d)}
        )
    for start in range(0, n, BLOCK):
        hidden = rng.standard_normal((min(BLOCK, n - start), 16), dtype=np.float32)
        for stream, turn in zip(streams, maps, strict=True):
            stream.write((hidden @ turn + rng.standard_normal((len(hidden), d), dtype=np.float32)).data)
    for stream in streams:
        stream.close()
    return list(map(str, paths))


def one_run(files: list[str], n: int, d: int, k: int) -> dict[str, float]:
    """Seconds of products, function and command, one after the other."""
    found = {}
    for name, products in (("whole", whole(d, k)), ("pass", passed(d, k))):
        found[name], found[f"{name} processor"] = seconds_of(products, n)
    python = [sys.executable, "-m"]
    answer = ran([*python, "benchmarks.compare_million", "--anchors", str(k), "--one", *files])
    found |= json.loads(answer.splitlines()[-1])
    started = time.perf_counter()
    ran([*python, "relcore", "compare", *files, "--anchors", str(k), "--json"])
    return found | {"command": time.perf_counter() - started}


def ran(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def scored(source: str, target: str, n_anchors: int) -> dict[str, float]:
    """Seconds and peak memory of loading and of scoring."""
    from relcore.files.reading import load_space
    from relcore.represent.anchors import select_anchors
    from relcore.scores.comparison import LIVE_QUERIES, REPRESENTATIONS, ProjectionSpec
    from relcore.scores.passes import score_forms
    from relcore.spaces.space import match

    started = time.perf_counter()
    pair = match(load_space(source), load_space(target))
    anchors = tuple(select_anchors(pair.source, n_anchors))
    loaded, used = time.perf_counter(), time.process_time()
    score_forms(pair, REPRESENTATIONS, anchors, ProjectionSpec(), n_queries=LIVE_QUERIES)
    done = {
        "load": loaded - started,
        "scores": time.perf_counter() - loaded,
        "processor": time.process_time() - used,
    }
    return done | {"peak": peak_bytes()}


def whole(d: int, k: int) -> Iterator[Product]:
    """The products of `comparison.score_pair` on `comparison.represent`, of all four representations."""
    yield from [("map", d, k)] * 4  # relative and whitened rows of both spaces
    yield ("map", d, d)  # Procrustes
    for width in (d, k, k, d):
        yield from [("own", width, width)] * 4  # linear CKA, and the chance level of the mean cosine
        yield ("gram", width, width)
        yield ("map", width, 2 * QUERIES)


def passed(d: int, k: int) -> Iterator[Product]:
    """The products of `block_scores`."""
    width = min(d, k)
    yield from [("map", d, width)] * 2
    yield ("map", d, d)
    for shared in (d, d, width):  # linear CKA: absolute, Procrustes, relative and whitened together
        yield from [("own", shared, shared)] * 2
        yield ("gram", shared, shared)
    for each in (d, width, width, d):
        yield from [("own", each, each)] * 2
        yield ("map", each, 2 * QUERIES)
    yield from [("gram", width, width)] * 2  # the mean cosine of relative and of whitened rows


def seconds_of(products: Iterator[Product], n: int) -> tuple[float, float]:
    """Seconds and processor seconds of the products over n rows: each on one block, the least of 12 times,
    times the number of blocks."""
    rng, total = np.random.default_rng(0), np.zeros(2)
    for (kind, a, b), times in Counter(products).items():
        left, right = (rng.standard_normal((BLOCK, width), dtype=np.float32) for width in (a, b))
        weights = rng.standard_normal((a, b), dtype=np.float32)
        out = np.empty((BLOCK, b) if kind == "map" else (a, b), np.float32)
        operands = {"map": (left, weights), "gram": (left.T, right), "own": (left.T, left)}[kind]
        took = np.empty((12, 2))
        for turn in range(len(took)):
            started = time.perf_counter(), time.process_time()
            np.matmul(*operands, out=out)
            took[turn] = time.perf_counter() - started[0], time.process_time() - started[1]
        total += took.min(axis=0) * n / BLOCK * times
    return tuple(map(float, total))


def table(runs: list[dict[str, float]], n: int, d: int, k: int) -> str:
    lines = [
        (
            f"{n:,} × {d}, {k} anchors, {QUERIES} queries; load {os.getloadavg()[0]:.1f} on {os.cpu_count()}"
            " cores\n"
        ),
        (
            "| run | products of whole matrices, s | products of the pass, s | load, s | scores, s |"
            " processor, s | scores ÷ whole | scores ÷ pass | the same, processor | command, s | peak, GB |"
        ),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for number, run in enumerate(runs, 1):
        ratios = [run["scores"] / run[name] for name in ("whole", "pass")] + [
            run["processor"] / run["pass processor"]
        ]
        numbers = [
            *(run[name] for name in ("whole", "pass", "load", "scores", "processor")),
            *ratios,
            run["command"],
        ]
        lines.append(
            f"| {number} | {' | '.join(f'{one:.2f}' for one in numbers)} | {run['peak'] / 1e9:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
