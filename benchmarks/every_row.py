"""``python -m benchmarks.every_row``: neighbours of every row, exact, IVF and HNSW, in turns; prints a
Markdown table.

Each search is timed as a job runs it: reading the rows, building the index, choosing its setting and
searching every query, with the same made-up spaces. Processor time is printed beside wall time, so that a
busy machine shows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from relcore.base.names import SEARCHES
from relcore.compare.exact import TARGET_RECALL
from relcore.scores.approximate import UnitRows
from relcore.scores.lists import NeighbourLists, Parts
from relcore.scores.neighbours import jaccard_rows
from relcore.scores.plan import searches_of
from relcore.scores.score import Recall

K, CENTRES, ROUNDS = 10, 2_000, 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.every_row", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--width", type=int, default=128, help="default: %(default)s")
    options = parser.parse_args()
    n, width = options.rows, options.width
    spaces = made_up(n, width)
    searches = searches_of("paper", K, True, "")
    wall, processor = {name: [] for name in SEARCHES}, {name: [] for name in SEARCHES}
    scores: dict[str, tuple[float, Recall | None]] = {}
    for _ in range(ROUNDS):
        for name in SEARCHES:
            began = time.perf_counter(), time.process_time()
            lists, recall = NeighbourLists(
                spaces, searches, np.arange(0), name, TARGET_RECALL, Parts(None)
            ).search(lambda *told: None)
            wall[name].append(time.perf_counter() - began[0])
            processor[name].append(time.process_time() - began[1])
            scores[name] = float(jaccard_rows(lists["own"], lists["forward"]).mean()), recall
    print(
        f"{n:,} rows × {width}, k = {K}, two lists for every row, target recall {TARGET_RECALL}, {ROUNDS}"
        " rounds in turns\n"
    )
    print(
        "| search | seconds | ratio to exact | processor time, ratio | recall@10 (95 %, queries) | Jaccard |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for name in SEARCHES:
        seconds, of_exact, of_processor = (
            min(wall[name]),
            min(wall[name]) / min(wall["exact"]),
            min(processor[name]) / min(processor["exact"]),
        )
        score, recall = scores[name]
        told = f"{recall.value:.3f} ({recall.low:.3f}–{recall.high:.3f}, {recall.n})" if recall else "1"
        setting = f", {recall.setting}" if recall else ""
        print(
            f"| {name}{setting} | {seconds:.1f} | {of_exact:.2f} | {of_processor:.2f} | {told} |"
            f" {score:.4f} |"
        )


def made_up(n: int, width: int) -> tuple[UnitRows, UnitRows]:
    """Two spaces whose rows lie in clusters, as embeddings do, the second with noise; the same every time."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CENTRES, width), dtype=np.float32)
    source = centres[rng.integers(CENTRES, size=n)] + 0.6 * rng.standard_normal((n, width), dtype=np.float32)
    target = source + 0.4 * rng.standard_normal((n, width), dtype=np.float32)
    return tuple(UnitRows(X, np.asarray, np.arange(n)) for X in (source, target))


if __name__ == "__main__":
    main()
