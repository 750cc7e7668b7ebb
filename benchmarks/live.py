"""``python -m benchmarks.live``: how long a dragged anchor takes until the maps of both models, and their
scores, have followed.

``--server`` measures without a browser: a moved anchor to both maps as float16, and all scores, on the chosen
device. Each line is a name and a value.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from relcore import LatentSpace, match
from relcore.base.environment import described, resolve
from relcore.compare.live import LiveComparison, LiveRows
from relcore.maps.pane_maps import OWN, pca_pair
from relcore.maps.reduction import ReductionSpec
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import Match

SIZES = (20_000, 100), (250_000, 128)
ON_A_GPU = (1_000_000, 384)
ANCHORS = (2, 8, 300)
MOVES, LEVEL = 200, 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--server", action="store_true", help="without a browser, on the chosen device")
    parser.add_argument("--rows", type=int, help="with --width: this size instead of the usual ones")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--moves", type=int, default=MOVES)
    options = parser.parse_args()
    on_a_gpu = resolve().startswith("cuda")
    sizes = [(options.rows, options.width)] if options.rows else [*SIZES, *[ON_A_GPU] * on_a_gpu]
    print("device", described(), flush=True)
    for n, d in sizes:
        server(made_up(n, d), options.moves)
    return 0


def made_up(n: int, d: int) -> Match:
    """Two models of the same n rows: 48 hidden numbers of each, mixed by two matrices, with noise."""
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((n, 48), dtype=np.float32)
    sides = []
    for name in ("one", "other"):
        rows = hidden @ rng.standard_normal((48, d), dtype=np.float32)
        rows += 3 * rng.standard_normal((n, d), dtype=np.float32)
        sides.append(LatentSpace(rows, np.arange(n).astype(str), name=name))
    return match(*sides)


def server(pair: Match, moves: int) -> None:
    """A moved anchor to both maps as float16, and to all scores, of 300 and of 2,000 queries."""
    rows, rng = np.arange(len(pair)), np.random.default_rng(1)
    size = f"{len(pair)}x{pair.source.dimension}"
    apart = ReductionSpec()
    reference = pca_pair(pair, rows, OWN, (), ProjectionSpec(), apart)[0][0]
    began = time.perf_counter()
    held = LiveRows(pair, rows, reference=reference)
    say(f"{size}_rows_to_device_s", time.perf_counter() - began)
    for k in ANCHORS:
        anchors = rng.choice(len(pair), k, replace=False).tolist()
        live = LiveComparison(held, anchors)

        def moved(live: LiveComparison = live, anchors: list[int] = anchors) -> None:
            anchors[rng.integers(len(anchors))] = int(rng.integers(len(rows)))
            live.become(list(dict.fromkeys(anchors)))

        def framed(live: LiveComparison = live, moved: Callable[[], None] = moved) -> list[bytes]:
            moved()
            return live.frame()

        name = f"{size}_anchors_{k}"
        spread(f"{name}_picture_ms", timed(framed, moves))
        for n_queries in (300, 2000):
            work = lambda live=live, n=n_queries: live.scores(n_queries=n)  # noqa: E731
            spread(f"{name}_scores_of_{n_queries}_queries_ms", timed(work, 9))
        say(f"{name}_bytes_a_frame", sum(map(len, live.frame())))
    before = memory()
    for _ in range(LEVEL):
        framed()
    say(f"{size}_memory_mb_before_{LEVEL}_drags", before)
    say(f"{size}_memory_mb_after_{LEVEL}_drags", memory())


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each call after two that are not counted; the results are on the host."""
    work(), work()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(1e3 * (time.perf_counter() - began))
    return found


def memory() -> float:
    """Megabytes that torch has on the card; without one, that this process has."""
    if resolve().startswith("cuda"):
        import torch

        return torch.cuda.memory_allocated() / 1e6
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * 4096 / 1e6


def spread(name: str, values: Sequence[float]) -> None:
    say(f"{name}_median", float(np.median(values)))
    say(f"{name}_p95", float(np.quantile(values, 0.95)))


def say(name: str, value: float) -> None:
    print(name, f"{value:.4g}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
