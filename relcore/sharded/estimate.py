"""What a job over shards will take, from a trial of the whole job on its first shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from relcore.base.numbers import counted
from relcore.files.formats import readable
from relcore.sharded.passes import Runner
from relcore.sharded.space import ShardedSpace, filesystem

SHARE = 20  # a trial takes at most one shard of this many, where nobody asked for it
FEWEST_ROWS = 1_000_000  # below, a job has ended before its trial is worth it
MERGE_SECONDS = 0.02  # of a shard's result, in the process of the command; benchmarks/shards.md


@dataclass(frozen=True)
class Forecast:
    """Seconds of the clock, peak memory of a worker in MB, bytes that are read and written by all together;
    from `trial_rows` rows in `trial_shards` shards.
    """

    rows: int
    shards: int
    workers: int
    seconds: float
    worker_mb: float
    read_bytes: int
    written_bytes: int
    trial_rows: int
    trial_shards: int

    def sentence(self) -> str:
        long = f"{self.seconds:,.0f} s" if self.seconds < 120 else f"{self.seconds / 60:,.0f} min"
        long = f"{self.seconds / 3600:,.1f} h" if self.seconds >= 7200 else long
        written = f", {readable(self.written_bytes)} to write" if self.written_bytes else ""
        return (
            f"Estimate for {self.rows:,} rows: {long} with {counted(self.workers, 'worker')},"
            f" {self.worker_mb:,.0f} MB a worker, {readable(self.read_bytes)} to read{written}; from"
            f" {self.trial_rows:,} rows in {counted(self.trial_shards, 'shard')}"
        )


def trial_shards(n_shards: int, n_rows: int, workers: int, asked: bool) -> int:
    """On how many shards to try: two for each worker, so that the second finds it warm; 0 for no trial."""
    if asked:
        return min(2 * workers, n_shards)
    return min(2 * workers, n_shards // SHARE) if n_rows >= FEWEST_ROWS else 0


def estimate(
    trial: Callable[..., object], runner: Runner, spaces: Sequence[ShardedSpace], n_trial: int, workers: int
) -> Forecast:
    """``trial(runner, *spaces)`` does the job on the first shards, and returns its numbers per written row.

    A pass takes each row once and does the same for all (benchmarks/shards.md), so its time grows with the
    rows; so do bytes, while the memory of a worker does not. What the passes find stays in the store.
    """
    first = [replace(space, shards=space.shards[:n_trial]) for space in spaces]
    tried = Runner(runner.store, runner.queue, runner.report)
    width = trial(tried, *first) or 0
    n, n_first = spaces[0].n, first[0].n
    seconds, busy = 0.0, min(workers, len(spaces[0].shards))
    for title, result in tried.done:
        paces = [shard.seconds / max(1, shard.rows) for shard in result.ran]
        warm = paces[len(paces) // 2 :]
        work = sum(shard.seconds for shard in result.ran)
        grows = n if title != "gather rows" else n_first  # of which there are as many as before
        seconds += grows * median(warm) / busy + MERGE_SECONDS * len(spaces[0].shards)
        if result.computed == len(result.ran):  # what starting and waiting took, once
            seconds += max(0.0, result.seconds - work / min(busy, len(result.ran)))
    passes = sum(title != "gather rows" for title, _ in tried.done)
    bytes_read = sum(_bytes(space, part) for space, part in zip(spaces, first, strict=True)) * passes
    peak = max(tried.peaks.values(), default=0.0)
    return Forecast(
        n,
        len(spaces[0].shards),
        busy,
        seconds,
        peak,
        bytes_read,
        4 * n * width,
        n_first,
        n_trial,
    )


def _bytes(space: ShardedSpace, first: ShardedSpace) -> int:
    sizes = [files.size(path) for shard in first.shards for files, path in map(filesystem, shard.files)]
    return round(sum(sizes) / first.n * space.n)
