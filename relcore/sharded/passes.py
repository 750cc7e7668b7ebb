"""A pass over all shards: one job for each, small partial results in the store, merged in a tree.

A worker that dies costs the shard that it had in work. A command that is stopped, or whose machine restarts,
continues with the shards that have no result yet: a result is found by the digest of the shard's stamp and of
the settings.
"""

from __future__ import annotations

import os
import resource
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from relcore.base.errors import SpaceError
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Context, Report, silent
from relcore.runs.store import Store, in_use
from relcore.sharded.shard import Shard

if TYPE_CHECKING:
    from relcore.runs.jobs import Engine, Job


FAN = 16  # partial results that are merged at once
_PAUSE = 0.05
Arrays = dict[str, np.ndarray]
Shards = tuple[Shard, ...]  # the shards that one job reads side by side: one of each space


class ShardWork(ABC):
    """What is done with one shard, and how two partial results become one. Subclasses are frozen dataclasses
    of small settings.

    Arrays that all jobs need, such as anchors, are put into the store once, and a field holds their key.

    Attributes
    ----------
    kind : str
        Names it in the store.
    version : int
        Raise it when a partial result would come out differently.
    writes : bool
        Whether it writes files. Then the small result of each shard is kept after they were merged, so that a
        file that is missing later costs its own shard only.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    writes: ClassVar[bool] = False

    @abstractmethod
    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        """A partial result: arrays whose size does not depend on the number of rows, and JSON values."""

    @abstractmethod
    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        """The partial result of the shards of both, those of `first` before those of `second`."""

    def holds(self, facts: dict[str, Any]) -> bool:
        """Whether a partial result is still good: work that writes files looks whether they are there."""
        return True

    def key(self, parts: Sequence[Shards]) -> str:
        """Of the result of these shards; one shard's if there is one."""
        stamps = [[(one.url, one.n, one.width, one.start, one.stamp) for one in part] for part in parts]
        return digest_of("shards", self.kind, self.version, self, stamps)


@dataclass(frozen=True)
class Ran:
    """One shard that was computed: by which process, seconds of the processor and of the clock, rows, and the
    peak of memory that the process had reached by its end, in MB (``ru_maxrss``)."""

    worker: str
    shard: str
    rows: int
    cpu: float
    seconds: float
    peak_mb: float


@dataclass(frozen=True)
class PassResult:
    """What a pass found.

    Attributes
    ----------
    arrays, facts : dict
        The merged result.
    ran : tuple of Ran
        Every shard of the space, with its measurements, also of those that an earlier run computed.
    computed : int
        Shards that this run computed; the others were found in the store.
    seconds : float
        Of the clock, for this run.
    """

    arrays: Arrays
    facts: dict[str, Any]
    ran: tuple[Ran, ...]
    computed: int
    seconds: float


def shard_job(context: Context, *, work: ShardWork, shards: Shards) -> None:
    """One shard as a job of the engine."""
    if context.store.has(
        context.key, own=True
    ):  # by a worker that died after it had kept the result, before it said so
        return
    cpu, clock = time.process_time(), time.monotonic()
    arrays, facts = work.of_shard(shards, context.store, context.report)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kilobytes on Linux
    worker = f"{socket.gethostname()}:{os.getpid()}"
    ran = [worker, shards[0].name, shards[0].n, time.process_time() - cpu, time.monotonic() - clock, peak]
    context.put(arrays, {"facts": facts, "ran": [ran]})


@dataclass
class ShardPass:
    """One work on all shards, on an engine's workers; without an engine, one shard after the other in this
    process.

    Parameters
    ----------
    work : ShardWork
    parts : sequence of tuple of Shard
        What each job reads.
    store : Store
        That of the engine, where there is one.
    """

    work: ShardWork
    parts: Sequence[Shards]
    store: Store
    engine: Engine | None = None
    report: Report = silent
    title: str = ""
    computed: int = field(default=0, init=False)

    def run(self) -> PassResult:
        """Do what is missing, and merge.

        Raises
        ------
        SpaceError
            A shard failed, named in the message; what the others found is kept, and the same call continues.
        """
        started = time.monotonic()
        with in_use():
            parts = list(self.parts)
            if not self._kept(parts):
                self._compute(self._missing(parts))
            found = self._tree(parts)
        return PassResult(
            dict(found.arrays),
            found.metadata["facts"],
            tuple(Ran(*one) for one in found.metadata["ran"]),
            self.computed,
            time.monotonic() - started,
        )

    def _kept(self, parts: Sequence[Shards]) -> bool:
        """Whether the store has the result of these shards, with the files that it tells of."""
        key = self.work.key(parts)
        found = self.store.summary(key) if self.store.has(key) else None
        return found is not None and self.work.holds(found.metadata["facts"])

    def _missing(self, parts: list[Shards]) -> list[Shards]:
        """The shards without a result, neither their own nor in one of a group."""
        if self._kept(parts):
            return []
        self.store.remove(self.work.key(parts))  # a damaged one, or one whose files are gone
        return parts if len(parts) == 1 else [one for group in _groups(parts) for one in self._missing(group)]

    def _compute(self, missing: list[Shards]) -> None:
        done = len(self.parts) - len(missing)
        self._tell(done, "")
        if self.engine is None:
            for number, part in enumerate(missing, start=done):
                with Context(
                    self.work.key([part]), self.store, partial(self._hear, number, part[0].name)
                ).sending() as context:
                    shard_job(context, work=self.work, shards=part)
                self.computed += 1
                self._tell(number + 1, part[0].name)
            return
        jobs = {self.work.key([part]): self._submitted(part) for part in missing}
        try:
            self._follow(jobs)
        except BaseException:
            for job in reversed(jobs.values()):
                if not job.status().ended:
                    job.cancel()
            raise

    def _submitted(self, part: Shards) -> Job:
        title = f"{self.title or self.work.kind}: {part[0].name}"
        return self.engine.submit(self.work.key([part]), shard_job, title=title, work=self.work, shards=part)

    def _follow(self, jobs: dict[str, Job]) -> None:
        """Wait for the jobs; groups that are whole are merged meanwhile, so that few results wait in the
        store.
        """
        waiting = dict(jobs)
        groups = (
            [list(self.parts[at : at + FAN]) for at in range(0, len(self.parts), FAN)]
            if len(self.parts) > FAN
            else []
        )
        needed = {number: {self.work.key([part]) for part in group} for number, group in enumerate(groups)}
        while waiting:
            statuses = {key: job.status() for key, job in waiting.items()}
            for status in statuses.values():
                if status.state in ("failed", "cancelled"):
                    raise SpaceError(
                        status.error or "a shard was cancelled; run the same command again to resume"
                    )
            waiting = {key: job for key, job in waiting.items() if not statuses[key].ended}
            self.computed = len(jobs) - len(waiting)
            for number in [number for number, keys in needed.items() if keys.isdisjoint(waiting)]:
                self._tree(groups[number])
                del needed[number]
            running = [status for status in statuses.values() if status.state == "running" and status.total]
            part = sum(status.done / status.total for status in running)
            done = len(self.parts) - len(waiting)
            self._tell(done + part, f"{done:,} of {len(self.parts):,} shards")
            if waiting:
                time.sleep(_PAUSE)

    def _tell(self, done: float, text: str) -> None:
        self.report(
            done, len(self.parts), f"{self.title}: {text}" if self.title and text else self.title or text
        )

    def _hear(self, done: int, name: str, event: dict[str, Any]) -> None:
        self._tell(done + event["done"] / max(1, event["total"]), name)

    def _tree(self, parts: list[Shards]) -> Entry:
        """The merged result of these shards, which is kept; the results that it was made of are removed.

        The groups depend on the order of the shards alone, and not on which one was ready first: so the sums
        come out the same to the last bit each time.
        """
        key = self.work.key(parts)
        if (kept := self.store.get(key)) is not None:
            return kept
        if len(parts) == 1:
            raise SpaceError(
                f"{parts[0][0].name}: expected its result in the store, got none; run the same command again"
            )
        groups = _groups(parts)
        found = self._tree(groups[0])
        for group in groups[1:]:
            other = self._tree(group)
            arrays, facts = self.work.merged(found, other, self.store)
            found = Entry(arrays, {"facts": facts, "ran": [*found.metadata["ran"], *other.metadata["ran"]]})
        self.store.put(key, found.arrays, found.metadata)
        for group in groups if not self.work.writes else ():
            self.store.remove(self.work.key(group))
        return found


def _groups(parts: Sequence[Shards]) -> list[list[Shards]]:
    """At most `FAN` groups of consecutive shards, each a power of `FAN` but for the last."""
    size = 1
    while size * FAN < len(parts):
        size *= FAN
    return [list(parts[start : start + size]) for start in range(0, len(parts), size)]


# Runner: where the passes of an operation run, and what they took.


@dataclass
class Runner:
    """Runs passes on an engine's workers, or in this process without one, and keeps their measurements.

    Parameters
    ----------
    store : Store
        That of the engine, where there is one.
    """

    store: Store
    engine: Engine | None = None
    report: Report = silent
    done: list[tuple[str, PassResult]] = field(default_factory=list)

    def run(self, work: ShardWork, parts: Sequence[Shards], title: str) -> PassResult:
        """One pass; errors as `ShardPass.run`."""
        found = ShardPass(work, parts, self.store, self.engine, self.report, title).run()
        self.done.append((title, found))
        return found

    @property
    def peaks(self) -> dict[str, float]:
        """Worker → the most memory that it ever had, in MB, over all passes, by ``ru_maxrss``."""
        found: dict[str, float] = {}
        for ran in (ran for _, one in self.done for ran in one.ran):
            found[ran.worker] = max(found.get(ran.worker, 0.0), ran.peak_mb)
        return found

    def told(self) -> list[str]:
        """A line for each pass, and one for the memory."""
        lines = []
        for title, one in self.done:
            rows, seconds = sum(ran.rows for ran in one.ran), sum(ran.seconds for ran in one.ran)
            resumed = (
                f", {len(one.ran) - one.computed:,} of them found in the store"
                if one.computed < len(one.ran)
                else ""
            )
            pace = f"{rows / max(seconds, 1e-9):,.0f} rows a second and worker"
            lines.append(f"{title}: {len(one.ran):,} shards{resumed}, {one.seconds:.1f} s, {pace}")
        if self.peaks:
            lines.append(
                f"Most memory of a worker: {max(self.peaks.values()):,.0f} MB, of {len(self.peaks):,}"
                " processes"
            )
        return lines


# What a process makes of an entry of the store once, for all shards that it works on one after the other.

T = TypeVar("T")


def made_once(kept: dict[str, T], store: Store, key: str, make: Callable[[Entry], T], what: str) -> T:
    """``make(entry)`` of the entry under a key, from `kept` where it is there; `kept` holds the last one
    only.

    Raises
    ------
    SpaceError
        The store has no such entry; the message calls it `what`.
    """
    found = kept.get(key)  # another thread may clear what is kept at any time
    if found is None:
        entry = store.get(key)
        if entry is None:
            raise SpaceError(f"expected {what} in the store, got none; run the same command again")
        found = make(entry)
        kept.clear()
        kept[key] = found
    return found
