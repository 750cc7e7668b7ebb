"""``python -m benchmarks.shards``: compare two sharded spaces on the workers of this machine; their rows are
made, not stored.

It prints seconds, rows a second and worker, the peak of memory of each worker, and the ratio to the matrix
products. With ``--table`` it measures a grid of rows × workers and writes benchmarks/shards.md, with a fitted
model of the time and its prediction for 10⁹ rows. With ``--threads`` it compares without a cluster, in one
thread and in two, and on two workers, and writes the last section of benchmarks/shards.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.steps import processor
from relcore.base.numbers import counted
from relcore.represent.representations import REPRESENTATIONS
from relcore.runs.entries import digest_of
from relcore.runs.jobs import JobQueue
from relcore.runs.store import Store
from relcore.scores.score_report import LIVE_QUERIES
from relcore.sharded.comparison import compare_shards
from relcore.sharded.runner import Runner
from relcore.sharded.space import Shard, ShardBlock, ShardedSpace

RESULTS = Path(__file__).parent / "shards.md"
ROWS_PER_SHARD = 250_000
FEWEST_SHARDS = 4
GRID = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_BLOCK = 8192  # rows per random generator, so that a row does not depend on how it is read


@dataclass(frozen=True)
class Measured:
    """One comparison. `cpu` and `products` are processor seconds of the pass that sums up, and of its matrix
    products alone; `making` those of making its rows, which a folder of files would not need."""

    rows: int
    shards: int
    workers: int
    seconds: float
    cpu: float
    making: float
    products: float
    survey: float
    peaks: tuple[float, ...]
    scores: str

    @property
    def pace(self) -> float:
        """Rows a second and worker."""
        return self.rows / self.seconds / self.workers

    @property
    def ratio(self) -> float:
        return (self.cpu - self.making) / self.products


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shards", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--shards", type=int, help="default: one for every 250,000 rows, at least 4")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--anchors", type=int, default=100)
    parser.add_argument(
        "--table", action="store_true", help="measure the grid, and write benchmarks/shards.md"
    )
    parser.add_argument(
        "--most", type=int, default=GRID[-1], metavar="ROWS", help="with --table: the most rows"
    )
    parser.add_argument(
        "--threads", action="store_true", help="measure threads of this process, and write their section"
    )
    options = parser.parse_args()
    os.environ.update(dict.fromkeys(THREADS, "1"))  # a worker uses one core, even if it is the only worker
    threadpool_limits(1)  # the products of this process, too
    if options.threads:
        section = threads_section(
            options.rows, options.width, options.shards or shards_of(options.rows), options.anchors
        )
        text = RESULTS.read_text(encoding="utf-8").partition(_THREADS_TITLE)[0].rstrip()
        RESULTS.write_text(f"{text}\n\n{section}\n", encoding="utf-8")
        print(section)
        return 0
    if not options.table:
        shards = options.shards or shards_of(options.rows)
        print(
            told(
                measure(options.rows, options.width, shards, options.workers, options.anchors),
                options.anchors,
            )
        )
        return 0
    grid = [(rows, workers) for rows in GRID if rows <= options.most for workers in (1, 2)]
    found = []
    for rows, workers in grid:
        found.append(measure(rows, options.width, shards_of(rows), workers, options.anchors))
        print(told(found[-1], options.anchors), flush=True)
    _, title, threads = RESULTS.read_text(encoding="utf-8").partition(_THREADS_TITLE)
    text = document(found, options.width, options.anchors)
    if title:
        text += f"\n{title}{threads}"
    RESULTS.write_text(text, encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))
    return 0


def shards_of(rows: int) -> int:
    return max(FEWEST_SHARDS, rows // ROWS_PER_SHARD)


def measure(rows: int, width: int, shards: int, workers: int, n_anchors: int) -> Measured:
    """Compare, with workers that have started and an empty store."""
    spaces = [made(rows=rows, width=width, shards=shards, side=side) for side in (0, 1)]
    with tempfile.TemporaryDirectory() as folder:
        queue = JobQueue(n_workers=workers, store=Store(folder))
        queue.start()
        try:
            run, started = Runner(queue.store, queue), time.monotonic()
            found = compare_shards(*spaces, n_anchors, run)
            seconds = time.monotonic() - started
        finally:
            queue.close()
    passes = {title: sum(one.cpu for one in result.ran) for title, result in run.done}
    jaccard, cka = (found.scores["relative"][name] for name in ("jaccard", "cka"))
    return Measured(
        rows,
        shards,
        workers,
        seconds,
        passes["compare"],
        rows * seconds_of_making(spaces),
        rows * seconds_of_products(width, n_anchors),
        passes["survey"],
        tuple(sorted(run.peaks.values())),
        f"relative Jaccard {jaccard:.4f}, linear CKA {cka:.4f}",
    )


_THREADS_TITLE = "## Without a cluster"
_ROUNDS = 2


def threads_section(rows: int, width: int, shards: int, n_anchors: int) -> str:
    """The section on threads: the least seconds of three alternating rounds, and whether the sums are the
    same to the last digit."""
    seconds: dict[str, list[float]] = {}
    sums = []
    peaks = {}
    spaces = [made(rows=rows, width=width, shards=shards, side=side) for side in (0, 1)]
    for _ in range(_ROUNDS):
        for threads in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                run = Runner(Store(folder), threads=threads)
                started = time.monotonic()
                compare_shards(*spaces, n_anchors, run)
                way = counted(threads, "thread")
                seconds.setdefault(way, []).append(time.monotonic() - started)
            sums.append(dict(run.done)["compare"].arrays)
            peaks.setdefault(way, max(run.peaks.values()))
        found = measure(rows, width, shards, 2, n_anchors)
        seconds.setdefault("2 workers", []).append(found.seconds)
        peaks.setdefault("2 workers", max(found.peaks))
    same = all(np.array_equal(each[name], sums[0][name]) for each in sums for name in sums[0])
    lines = [
        _THREADS_TITLE,
        "",
        (
            f"`python -m benchmarks.shards --threads --rows {rows}`, {date.today()}, {processor()},"
            f" {os.cpu_count()} cores: {rows:,} rows of width {width} in {shards} shards, {n_anchors} anchors."
            f" Seconds by the clock, the least of {_ROUNDS} alternating rounds (in brackets the most)."
            " A thread computes a shard, with matrix products in one thread. Peaks are of the process, or of"
            " each worker; those of threads include making and scoring, and the first round only."
        ),
        "",
        "| computed in | seconds | peak, MB |",
        "|---|---:|---:|",
    ]
    lines += [
        f"| {way} | {min(each):.1f} ({max(each):.1f}) | {peaks[way]:,.0f} |" for way, each in seconds.items()
    ]
    differ = ""
    if not same:
        differ = "not "
    lines += ["", f"The sums of all rounds are {differ}the same to the last digit."]
    return "\n".join(lines)


def seconds_of_making(spaces: list[ShardedSpace]) -> float:
    """Processor seconds that a row of both spaces takes to be made; the least of three."""
    some = [space.shards[0] for space in spaces]
    rows = np.arange(min(4 * _BLOCK, some[0].n))
    return least(lambda: [shard.take(rows) for shard in some]) / len(rows)


def seconds_of_products(width: int, n_anchors: int) -> float:
    """Processor seconds a row of the products that a comparison of four representations cannot avoid.

    Per space the product with the anchors, in the fewest coordinates; the Gram matrices of rows and of
    relative rows, and those of unit rows for four representations; one rotation; two lists of neighbours for
    each query and representation.
    """
    w = min(width, n_anchors)
    rng = np.random.default_rng(0)
    X, U = (rng.standard_normal((_BLOCK, d), dtype=np.float32) for d in (width, w))
    turn, square, queries = (
        rng.standard_normal(shape, dtype=np.float32) for shape in ((width, w), (width, width), (w, 2))
    )
    wide = {d: np.ascontiguousarray(np.resize(queries, (d, 2 * LIVE_QUERIES))) for d in (width, w)}
    outs = {
        name: np.empty((_BLOCK, m), np.float32)
        for name, m in (("w", w), ("d", width), ("q", 2 * LIVE_QUERIES))
    }

    def products() -> None:
        for _ in range(2):
            np.matmul(X, turn, out=outs["w"])
        np.matmul(X, square, out=outs["d"])
        for rows, times in (
            (X, 3 + 4),
            (U, 3 + 4),
        ):  # moments of both and between, and unit rows of two representations
            for _ in range(times):
                rows.T @ rows
        for rows, d in ((X, width), (U, w)):
            for _ in range(len(REPRESENTATIONS) // 2):
                np.matmul(rows, wide[d], out=outs["q"])

    return least(products) / _BLOCK


def least(work, times: int = 3) -> float:
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def told(one: Measured, n_anchors: int) -> str:
    peaks = " and ".join(f"{peak:,.0f}" for peak in one.peaks)
    return (
        f"{one.rows:,} rows, {one.shards} shards, {n_anchors} anchors, {one.workers} workers:"
        f" {one.seconds:.1f} s, {one.pace:,.0f} rows a second and worker, peak {peaks} MB a worker;"
        f" processor: survey {one.survey:.1f} s, compare {one.cpu:.1f} s, of which making rows"
        f" {one.making:.1f} s, products {one.products:.1f} s: {one.ratio:.2f} × its products; {one.scores}"
    )


def fitted(found: list[Measured]) -> tuple[float, float]:
    """a and b of seconds = a + b · rows / workers, by least squares of relative errors."""
    seconds = np.array([one.seconds for one in found])
    terms = np.array([[1.0, one.rows / one.workers] for one in found]) / seconds[:, None]
    a, b = np.linalg.lstsq(terms, np.ones(len(found)), rcond=None)[0]
    return float(a), float(b)


def document(found: list[Measured], width: int, n_anchors: int) -> str:
    a, b = fitted(found)
    lines = [
        "# Comparisons by shard",
        "",
        (
            f"`python -m benchmarks.shards --table`, {date.today()}, {processor()}, {os.cpu_count()} cores:"
            f" two spaces of width {width}, {n_anchors} anchors, four representations, {LIVE_QUERIES}"
            " queries. Rows are made block by block and never stored. A worker is a process with one core."
            " Seconds are by the clock, from the first pass to the scores, with workers that have started."
            " Peaks are `ru_maxrss` of each worker. The ratio is processor time of the pass that sums up,"
            " less that of making its rows, over that of its matrix products alone."
        ),
        "",
        (
            "| rows | shards | workers | seconds | a + b · n / w | rows / s, worker | peak of a worker, MB |"
            " ratio to products |"
        ),
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {one.rows:,} | {one.shards} | {one.workers} | {one.seconds:.1f} |"
        f" {a + b * one.rows / one.workers:.1f} | {one.pace:,.0f} | {max(one.peaks):,.0f} | {one.ratio:.2f} |"
        for one in found
    ]
    worst = max(abs(a + b * one.rows / one.workers - one.seconds) / one.seconds for one in found)
    row_bytes = 4 * width * 2
    billion = 1_000_000_000
    lines += [
        "",
        (
            f"Fit: seconds = {a:.1f} + {1e6 * b:.2f} · n / w, n in million rows, by least squares of relative"
            f" errors; the largest error is {100 * worst:.0f} %."
        ),
        "",
        "## 10⁹ rows",
        "",
        "| workers | minutes by the fit | GB a second that all workers read together |",
        "|---:|---:|---:|",
    ]
    for workers in (2, 16, 64, 256):
        seconds = a + b * billion / workers
        lines.append(f"| {workers} | {seconds / 60:.0f} | {2 * billion * row_bytes / seconds / 1e9:.2f} |")
    lines += ["", *reasons(found, a, b, row_bytes)]
    return "\n".join(lines) + "\n"


def reasons(found: list[Measured], a: float, b: float, row_bytes: int) -> list[str]:
    """Why the fit may be extrapolated, and what it does not tell."""
    peaks = [max(one.peaks) for one in found]
    return [
        "Why the line may be drawn so far:",
        "",
        (
            "- Every pass reads each row once and does the same work for each: nothing grows faster than n."
            " The rows are read twice, for means and queries and for sums and neighbours, and some thousand"
            " of them a third time."
        ),
        (
            "- A worker holds blocks of at most 32 MB of each space and a partial result whose size depends"
            f" on width, anchors and queries alone: its peak went from {peaks[0]:,.0f} to {max(peaks):,.0f}"
            f" MB while n grew from {found[0].rows:,} to {found[-1].rows:,}."
        ),
        (
            "- Partial results are merged sixteen at a time as soon as a group is there, in the process that"
            " runs the command: 4,000 shards of 250,000 rows take 3,999 merges, while the workers compute:"
            f" with 256 of these some {1e3 * (a + b * 1e9 / 256) / 3999:.0f} ms are left for each, which was"
            " not measured."
        ),
        (
            f"- A worker takes {row_bytes:,} bytes a row and pass, {2 * row_bytes / b / 1e6:,.0f} MB a"
            " second, less than a disk or a store of objects gives to one reader. With many workers the"
            " store has to give the sum, in the last column."
        ),
        "",
        (
            "What it does not tell: reading, as rows are made here; more than two workers, or workers on"
            " several machines. A shard is the work of one worker, so there should be several for each."
        ),
    ]


def made(
    rows: int = 100_000, width: int = 64, shards: int = 4, seed: int = 0, side: int = 0, noise: int = 1
) -> ShardedSpace:
    """Spaces of one seed and two `side`s have the same rows in different coordinates, with noise of their own
    where `noise` is not 0."""
    bounds = np.linspace(0, rows, shards + 1).astype(np.int64).tolist()
    stamp = digest_of("made", rows, width, shards, seed, side, noise)
    made = (
        MadeShard(
            f"made-{place:05}",
            f"made#{place}",
            stop - start,
            width,
            start,
            stamp,
            "",
            "",
            "",
            place,
            seed,
            side,
            noise,
        )
        for place, (start, stop) in enumerate(pairwise(bounds))
    )
    return ShardedSpace("made", f"made {stamp}", tuple(shard for shard in made if shard.n))


@dataclass(frozen=True)
class MadeShard(Shard):
    """Rows z R + e: z (m, d / 2) belongs to the rows, R (d / 2, d) and the noise e to the side."""

    place: int = 0
    seed: int = 0
    side: int = 0
    noise: int = 1

    @cached_property
    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """R, and where the rows lie."""
        rng = np.random.default_rng((self.seed, 1, self.side))
        latent = max(1, self.width // 2)
        matrix = rng.standard_normal((latent, self.width), dtype=np.float32) / np.float32(np.sqrt(latent))
        return matrix, rng.standard_normal(self.width, dtype=np.float32)

    def stamped(self) -> MadeShard:
        return self  # it has no file

    def read(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        n = self.n
        out = None
        filled = 0
        first = 0
        for number in range(-(-n // _BLOCK)):
            part = self._made(number)
            while len(part):
                if out is None:
                    out = np.empty((min(rows, n - first), self.width), dtype=np.float32)
                    filled = 0
                m = min(len(part), len(out) - filled)
                out[filled : filled + m] = part[:m]
                part = part[m:]
                filled += m
                if filled == len(out):
                    yield ShardBlock(first, out)
                    out = None
                    first += filled

    def take(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), self.width), dtype=np.float32)
        for number in np.unique(rows // _BLOCK):
            here = rows // _BLOCK == number
            out[here] = self._made(int(number))[rows[here] - number * _BLOCK]
        return out

    def _made(self, number: int) -> np.ndarray:
        matrix, shift = self.coordinates
        m = min(_BLOCK, self.n - number * _BLOCK)
        common = np.random.default_rng((self.seed, 2, self.place, number)).standard_normal(
            (m, len(matrix)), dtype=np.float32
        )
        found = common @ matrix
        found += shift
        if self.noise:
            own = np.random.default_rng((self.seed, 3, self.side, self.place, number))
            found += np.float32(0.5 * self.noise) * own.standard_normal(found.shape, dtype=np.float32)
        return found


if __name__ == "__main__":
    from benchmarks.shards import main as imported_main  # workers load its classes by the module's name

    raise SystemExit(imported_main())
