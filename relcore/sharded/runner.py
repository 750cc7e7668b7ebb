"""Passes over shards: partial results by shard, in threads of this process or on a cluster,
and their total."""

from __future__ import annotations

import os
import resource
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from relcore.base import records
from relcore.base.errors import SpaceError, extra
from relcore.base.numbers import counted
from relcore.base.rows import row_blocks
from relcore.engine.device import device_of
from relcore.runs.entries import digest_of
from relcore.runs.store import Store, in_use
from relcore.runs.work import Context, Progress, silent
from relcore.sharded.space import Shard, ShardBlock, aligned_blocks
from relcore.sharded.threads import run_in_threads

if TYPE_CHECKING:
    from relcore.runs.jobs import JobQueue


FAN = 16  # number of shards after which their sum is stored and replaces their results
_PAUSE = 0.05
Arrays = dict[str, np.ndarray]
Shards = tuple[Shard, ...]  # the shards that one job reads together, one from each space
Partial = tuple[Arrays, dict[str, Any]]  # arrays of limited size, and data as JSON


class ShardTotal(ABC):
    """What a pass collects: an `Accumulator` whose parts are shards, and whose result can be stored and read
    again by another process."""

    @abstractmethod
    def add(self, shards: Shards, /) -> None:
        """Add one shard of each space."""

    @abstractmethod
    def merge(self, other: Any, /) -> None:
        """Add what another total collected from later shards."""

    @abstractmethod
    def result(self) -> Partial: ...

    @abstractmethod
    def restore(self, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]) -> None:
        """Take over the stored `result` of another total. This total must be empty."""


class ShardWork(ABC):
    """The base class of computations in one pass over shards.

    Subclasses are frozen dataclasses whose fields are small settings. Large values are stored by `keep`, and
    a field has their key.

    Attributes
    ----------
    kind : str
        The name of this computation in the keys of stored results.
    version : int
        Increase this number whenever a change of the code changes partial results.
    writes : bool
        Whether the computation writes files. If so, the result of each shard is stored, so that after the
        loss of a file only its shard is computed again.
    on_device : bool
        Whether it computes on the device that the user chose. If so, the device limits the threads of a pass.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    writes: ClassVar[bool] = False
    on_device: ClassVar[bool] = False

    @abstractmethod
    def start(self, store: Store, report: Progress = silent) -> ShardTotal:
        """An empty total, which calls `report` while it adds a shard."""

    def holds(self, facts: dict[str, Any]) -> bool:
        """Whether a partial result is still valid, for example because its files still exist."""
        return True

    def key(self, parts: Sequence[Shards]) -> str:
        stamps = [
            [(shard.url, shard.n, shard.width, shard.start, shard.stamp) for shard in part] for part in parts
        ]
        return digest_of("shards", self.kind, self.version, self, stamps)


class ShardRun(NamedTuple):
    """A record of one computed shard: its process, name and number of rows, the CPU time of its thread,
    the elapsed time in seconds, and the peak memory of the process in MB."""

    worker: str
    shard: str
    rows: int
    cpu: float
    seconds: float
    peak_mb: float


class PassResult(NamedTuple):
    """The merged result of a pass. `ran` has measurements of every shard, `computed` is the number of shards
    that this run computed, and `seconds` is its duration.
    """

    arrays: Arrays
    facts: dict[str, Any]
    ran: tuple[ShardRun, ...]
    computed: int
    seconds: float


def shard_job(context: Context, *, work: ShardWork, shards: Shards) -> None:
    if context.store.has(context.key, own=True):  # a worker stored the result, but died before it said so
        return
    cpu = time.thread_time()
    clock = time.monotonic()
    total = work.start(context.store, context.report)
    total.add(shards)
    arrays, facts = total.result()
    # In megabytes; ru_maxrss is in kilobytes on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    worker = f"{socket.gethostname()}:{os.getpid()}"
    ran = [worker, shards[0].name, shards[0].n, time.thread_time() - cpu, time.monotonic() - clock, peak]
    context.put(arrays, {"facts": facts, "ran": [ran]})


@dataclass
class Runner:
    """Runs passes over shards and records their time and memory. If there is a queue with other processes,
    these run them, otherwise `threads` of this process, by default as many as matrix products use.

    The results are the same to the last digit for any number of threads or workers.
    """

    store: Store
    queue: JobQueue | None = None
    report: Progress = silent
    threads: int | None = None
    done: list[tuple[str, PassResult]] = field(default_factory=list)

    def run(self, work: ShardWork, parts: Sequence[Shards], title: str) -> PassResult:
        """Run one pass: compute the partial results that are not in the store, and merge all."""
        started = time.monotonic()
        with in_use():
            total = _Total(work, list(parts), self.store)
            missing = total.missing()
            if self.queue is None or self.queue.in_place:
                self._in_threads(work, missing, title, total)
            else:
                self._on_workers(work, missing, title, total)
            total.add(())
            self._tell(total, 0, title, "")
        arrays, facts = total.merged.result()
        ran = tuple(ShardRun(*row) for row in total.ran)
        seconds = time.monotonic() - started
        result = PassResult(arrays, facts, ran, len(missing), seconds)
        self.done.append((title, result))
        return result

    def _tell(self, total: _Total, left: float, title: str, text: str) -> None:
        n = len(total.parts)
        self.report(n - left, n, f"{title}: {text}" if text else title)

    def _in_threads(self, work: ShardWork, missing: list[Shards], title: str, total: _Total) -> None:
        jobs = [(work.key([part]), partial(shard_job, work=work, shards=part)) for part in missing]
        n = len(total.parts)

        def told(waiting: Collection[str], left: float) -> None:
            total.add(waiting)
            self._tell(total, left, title, f"{n - len(waiting):,} of {n:,} shards")

        most = None
        if work.on_device:
            most = device_of().threads
        if jobs:
            self.store.require_writable()  # fail before a shard is computed
        with extra():
            run_in_threads(jobs, self.store, told, self.threads, most)

    def _on_workers(self, work: ShardWork, missing: list[Shards], title: str, total: _Total) -> None:
        assert self.queue is not None, "a pass on workers has their queue"
        jobs = {}
        for part in missing:
            key = work.key([part])
            name = f"{title or work.kind}: {part[0].name}"
            jobs[key] = self.queue.submit(key, shard_job, title=name, work=work, shards=part)
        try:
            waiting, n = dict(jobs), len(total.parts)
            while waiting:
                statuses = {key: job.status() for key, job in waiting.items()}
                for status in statuses.values():
                    if status.state in ("failed", "cancelled"):
                        again = "a shard was cancelled; run the same command again to resume"
                        raise SpaceError(status.error or again)
                waiting = {key: job for key, job in waiting.items() if not statuses[key].ended}
                total.add(waiting)
                running = [
                    status.done / status.total
                    for status in statuses.values()
                    if status.state == "running" and status.total
                ]
                self._tell(total, len(waiting) - sum(running), title, f"{n - len(waiting):,} of {n:,} shards")
                if waiting:
                    time.sleep(_PAUSE)
        except BaseException:
            for job in reversed(jobs.values()):
                if not job.status().ended:
                    job.cancel()
            raise

    @property
    def peaks(self) -> dict[str, float]:
        """The peak memory of each worker over all passes, in MB."""
        shards = [shard for _, result in self.done for shard in result.ran]
        return {shard.worker: shard.peak_mb for shard in sorted(shards, key=lambda shard: shard.peak_mb)}

    def describe(self) -> list[str]:
        lines = []
        for title, result in self.done:
            rows = sum(shard.rows for shard in result.ran)
            seconds = sum(shard.seconds for shard in result.ran)
            kept = len(result.ran) - result.computed
            found = ""
            if kept:
                found = f", {kept:,} of them found in the store"
            lines.append(
                f"{title}: {len(result.ran):,} shards{found},"
                f" {result.seconds:.1f} s, {rows / max(seconds, 1e-9):,.0f} rows per second and worker"
            )
        if peaks := self.peaks:
            most = f"{max(peaks.values()):,.0f} MB"
            lines.append(
                f"Largest memory of a worker: {most}, among {counted(len(peaks), 'process', 'processes')}"
            )
        return lines


class _Total:
    """Merges the partial results of the first shards. They are merged in order, because rounding depends on
    the order. After every 16 shards, the merged result is stored, and the partial results in it are removed.
    """

    def __init__(self, work: ShardWork, parts: list[Shards], store: Store) -> None:
        self.work = work
        self.parts = parts
        self.store = store
        self.n = 0
        self.merged = work.start(store)
        self.ran: list[list[Any]] = []
        self._added: list[str] = []
        ends = [len(parts), *range(len(parts) // FAN * FAN, 0, -FAN)]
        kept = ((n, work.key(parts[:n])) for n in ends)
        if known := next((place for place in kept if self._is_good(place[1])), None):
            self.n = known[0]
            entry = store.get(known[1])
            assert entry is not None, "the store has just said that it has it"
            self.merged.restore(entry.arrays, entry.metadata["facts"])
            self.ran = entry.metadata["ran"]
            self._added = [known[1]]

    def missing(self) -> list[Shards]:
        keys = {self.work.key([part]): part for part in self.parts[self.n :]}
        missing = {key: part for key, part in keys.items() if not self._is_good(key)}
        for key in missing:  # the entry is damaged, or its files are missing
            self.store.remove(key)
        return list(missing.values())

    def add(self, waiting: Container[str]) -> None:
        """Merge the results of the next shards, up to the first shard that is still `waiting`."""
        while self.n < len(self.parts) and (key := self.work.key([self.parts[self.n]])) not in waiting:
            entry = self.store.get(key)
            if entry is None:
                name = self.parts[self.n][0].name
                raise SpaceError(
                    f"{name}: expected its result in the store, got none; run the same command again"
                )
            shard = self.work.start(self.store)
            shard.restore(entry.arrays, entry.metadata["facts"])
            if self.n:
                self.merged.merge(shard)
            else:
                self.merged = shard
            self.n += 1
            self.ran = [*self.ran, *entry.metadata["ran"]]
            self._added.append(key)
            if self.n > 1 and (self.n % FAN == 0 or self.n == len(self.parts)):
                whole = self.work.key(self.parts[: self.n])
                arrays, facts = self.merged.result()
                self.store.put(whole, arrays, {"facts": facts, "ran": self.ran})
                if not self.work.writes:
                    for part in self._added:
                        self.store.remove(part)
                self._added = [whole]

    def _is_good(self, key: str) -> bool:
        summary = None
        if self.store.has(key):
            summary = self.store.summary(key)
        return summary is not None and self.work.holds(summary.metadata["facts"])


# Data that all jobs of a pass need, such as anchors, and that are too large for settings.

T = TypeVar("T")
_read: dict[type, tuple[str, Any]] = {}


def keep(store: Store, value: Any) -> str:
    """Store a dataclass of arrays and settings for workers. Returns the key with which they `read` it."""
    arrays, record = records.pack(value)
    key = digest_of("for workers", type(value).__name__, arrays, record)
    if not store.has(key):
        store.put(key, arrays, record)
    return key


def read(store: Store, key: str, kind: type[T]) -> T:
    """Read a value that `keep` stored. The last value is cached, so a process reads it once for all its
    shards."""
    known = _read.get(kind)
    if known is None or known[0] != key:
        entry = store.get(key)
        if entry is None:
            raise SpaceError(f"expected {kind.__name__} in the store, got none; run the same command again")
        known = (key, records.unpack(kind, entry.arrays, entry.metadata))
        _read[kind] = known
    return known[1]


def live_rows(
    shards: Shards, report: Progress, size: int = 0, labels: bool = False
) -> Iterator[tuple[tuple[ShardBlock, ...], np.ndarray, np.ndarray, list[np.ndarray]]]:
    """Yield the rows that are not zero in any space, in parts of at most `size` rows. Each part has four
    items: the blocks of all spaces; the positions of the rows in these blocks; the numbers of the rows in the
    whole space; and their vectors in each space.
    """
    for blocks in aligned_blocks(shards, labels):
        for part in row_blocks(len(blocks[0].vectors), size or len(blocks[0].vectors)):
            vectors = [block.vectors[part] for block in blocks]
            alive = np.flatnonzero(np.logical_and.reduce([rows.any(axis=1) for rows in vectors]))
            if len(alive) < part.stop - part.start:
                vectors = [rows[alive] for rows in vectors]
            alive += part.start
            yield blocks, alive, shards[0].start + blocks[0].first + alive, vectors
            report(blocks[0].first + part.stop, shards[0].n, shards[0].name)
