"""``python -m benchmarks.umap_of_many_rows``: UMAP of many rows. It prints processor seconds by stage and the
peak of memory.

The rows come from a file that is mapped, as the job of
a pane reads them from the store.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from relcore.maps.reduction import ReductionSpec, n_fitted, put_blocks, reduce_job, reduction_seconds
from relcore.runs.digest import digest_of
from relcore.runs.progress import Context
from relcore.runs.store import Store

BLOCK = 10_000


def made(n: int, d: int):
    """Rows (n, d) around 40 centres, in blocks."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(40, d))
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        yield (centres[rng.integers(40, size=m)] + rng.normal(size=(m, d))).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.umap_of_many_rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=250_000, help="default: %(default)s")
    parser.add_argument("--width", type=int, default=64, help="default: %(default)s")
    options = parser.parse_args()
    n, d = options.rows, options.width
    spec, started = ReductionSpec("umap"), {}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        key, result = digest_of("rows", n, d), digest_of("map", n, d)
        put_blocks(store, key, made(n, d), (n, d))
        context = Context(result, store)
        context.report = lambda done, total, message: started.setdefault(
            message.split(":")[0].split(" · ")[0], time.process_time()
        )
        before = peak()
        expected, begun = reduction_seconds([(n, d)], spec), time.process_time()
        reduce_job(context, spec=spec, inputs=[key])
        seconds = time.process_time() - begun
        finite = np.isfinite(store.get(result).arrays["coordinates_0"]).all()
    print(f"{n:,} × {d}, fitted on {n_fitted(n, spec):,}; all finite: {finite}")
    print(f"{seconds:.1f} s of a processor, expected {expected:.1f} s")
    times = [*started.values(), begun + seconds]
    for name, start, end in zip(started, times, times[1:], strict=False):
        print(f"  {name}: {end - start:.1f} s")
    print(f"peak of memory {peak():.2f} GB, {before:.2f} GB before the job")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
