"""Compare, project and adapt spaces that are too large for memory, and are split into files (shards) of a
folder. A pass computes a partial result for each shard, and merges these."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
import pandas as pd

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import METRICS, SIMILARITIES, Named
from relcore.base.numbers import counted
from relcore.base.report import Report
from relcore.base.rows import mean_row, row_blocks
from relcore.base.text import as_lines
from relcore.base.writing import disk_errors, finish_folder
from relcore.catalog.catalog import SpaceSpec, folder_stamp, is_address, put_encoding
from relcore.engine.device import Device, on_device
from relcore.engine.engine import need_k
from relcore.files.reading import OF_VECTORS, write_parquet
from relcore.represent.translation import REPRESENTATIONS, ProjectionSpec
from relcore.runs.entries import Entry, digest_of
from relcore.runs.store import Context, Progress, Store, in_use, silent
from relcore.scores.comparison import LIVE_QUERIES, groups_of, metrics_of_a_pair, scores_of, scores_report
from relcore.scores.neighbours import CONVENTIONS
from relcore.scores.passes import (
    NO_ROWS,
    AlignedPair,
    Plan,
    RowPair,
    RowRoles,
    ScoreRequest,
    SeveralSums,
    Sums,
    needed_rows,
    to_full_index,
    to_kept_index,
)
from relcore.scores.score import Score
from relcore.sharded.space import (
    Shard,
    ShardBlock,
    ShardedSpace,
    aligned_blocks,
    beside,
    filesystem,
    finite,
    is_sharded,
    list_files,
    need_same_ids,
    open_url,
    replacing,
    shard_pairs,
)
from relcore.spaces.space import LatentSpace, distinct_names
from relcore.spaces.split import row_keys

if TYPE_CHECKING:
    from relcore.runs.jobs import JobQueue

FAN = 16  # number of shards after which their sum is stored and replaces their results
_PAUSE = 0.05
Arrays = dict[str, np.ndarray]
Shards = tuple[Shard, ...]  # the shards that one job reads together, one from each space
Partial = tuple[Arrays, dict[str, Any]]  # arrays of limited size, and data as JSON


class ShardWork(ABC):
    """The base class of computations in one pass over shards. A subclass computes the partial result of a
    shard, and merges two partial results.

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
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    writes: ClassVar[bool] = False

    @abstractmethod
    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        """Compute the partial result for one shard of each space."""

    @abstractmethod
    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        """Merge two partial results. The shards of `first` come before those of `second`."""

    def holds(self, facts: dict[str, Any]) -> bool:
        """Whether a partial result is still valid, for example because its files still exist."""
        return True

    def key(self, parts: Sequence[Shards]) -> str:
        stamps = [
            [(shard.url, shard.n, shard.width, shard.start, shard.stamp) for shard in part] for part in parts
        ]
        return digest_of("shards", self.kind, self.version, self, stamps)


class ShardRun(NamedTuple):
    """A record of one computed shard: its process, name and number of rows, the CPU time and the elapsed time
    in seconds, and the peak memory in MB."""

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
    cpu = time.process_time()
    clock = time.monotonic()
    arrays, facts = work.of_shard(shards, context.store, context.report)
    # In megabytes; ru_maxrss is in kilobytes on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    worker = f"{socket.gethostname()}:{os.getpid()}"
    ran = [worker, shards[0].name, shards[0].n, time.process_time() - cpu, time.monotonic() - clock, peak]
    context.put(arrays, {"facts": facts, "ran": [ran]})


@dataclass
class Runner:
    """Runs passes over shards and records their time and memory. If there is a queue, its workers run them,
    otherwise this process."""

    store: Store
    queue: JobQueue | None = None
    report: Progress = silent
    done: list[tuple[str, PassResult]] = field(default_factory=list)

    def run(self, work: ShardWork, parts: Sequence[Shards], title: str) -> PassResult:
        """Run one pass: compute the partial results that are not in the store, and merge all."""
        started = time.monotonic()
        with in_use():
            total = _Total(work, list(parts), self.store)
            missing = total.missing()
            if self.queue is None:
                for number, part in enumerate(missing):
                    self._tell(total, len(missing) - number, title, part[0].name)
                    shard_job(Context(work.key([part]), self.store), work=work, shards=part)
            else:
                self._on_workers(work, missing, title, total)
            total.add(())
            self._tell(total, 0, title, "")
        facts = total.entry.metadata
        ran = tuple(ShardRun(*row) for row in facts["ran"])
        seconds = time.monotonic() - started
        result = PassResult(dict(total.entry.arrays), facts["facts"], ran, len(missing), seconds)
        self.done.append((title, result))
        return result

    def _tell(self, total: _Total, left: float, title: str, text: str) -> None:
        n = len(total.parts)
        self.report(n - left, n, f"{title}: {text}" if text else title)

    def _on_workers(self, work: ShardWork, missing: list[Shards], title: str, total: _Total) -> None:
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
            lines.append(f"Largest memory of a worker: {most}, among {len(peaks):,} processes")
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
        self.entry = None
        self._added = []
        ends = [len(parts), *range(len(parts) // FAN * FAN, 0, -FAN)]
        kept = ((n, work.key(parts[:n])) for n in ends)
        if known := next((place for place in kept if self._is_good(place[1])), None):
            self.n = known[0]
            self.entry = store.get(known[1])
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
            if self.entry is not None:
                ran = [*self.entry.metadata["ran"], *entry.metadata["ran"]]
                arrays, facts = self.work.merged(self.entry, entry, self.store)
                entry = Entry(arrays, {"facts": facts, "ran": ran})
            self.n += 1
            self.entry = entry
            self._added.append(key)
            if self.n > 1 and (self.n % FAN == 0 or self.n == len(self.parts)):
                whole = self.work.key(self.parts[: self.n])
                self.store.put(whole, entry.arrays, entry.metadata)
                for part in () if self.work.writes else self._added:
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
        known = _read[kind] = key, records.unpack(kind, entry.arrays, entry.metadata)
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


# The first pass computes means, and finds rows without direction, anchors and queries.

_MOST_DROPPED = 1_000_000  # number of dropped rows; their row numbers take 8 MB
_MOST_CLASSES = 100_000


@dataclass(frozen=True)
class Survey(ShardWork):
    """The first pass over two spaces: sum the rows that are not zero in any space, and draw candidates for
    queries.

    The result has these arrays. sums_0 and sums_1 (d,) are the sums of the columns of each space. dropped
    (m,) are the numbers of the zero rows. keys (n_candidates,) are the smallest `row_keys`, ascending, and
    rows (n_candidates,) their row numbers. wanted (2, m) has positions in the ids `wanted`, and the row
    numbers of these ids. Its facts are n, the number of rows that are not zero; and classes, the number of
    rows with each label in the space `classes_of` (−1 for no space), or None for more than 100,000 labels.

    `n_candidates` is the number of queries to draw plus the number of anchors. `stream` and `random_state`
    are those of `Split`.
    """

    kind: ClassVar[str] = "survey"
    version: ClassVar[int] = 5

    n_candidates: int = 0
    stream: str = "queries"
    random_state: int = 0
    wanted: tuple[str, ...] = ()
    classes_of: int = -1

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        n = 0
        sums = [np.zeros(shard.width) for shard in shards]
        dropped = []
        classes = Counter()
        wanted = pd.Index(self.wanted, dtype=object)
        places = []
        smallest = np.empty(0), np.empty(0, np.int64)
        for blocks, alive, rows, vectors in live_rows(shards, report, labels=self.classes_of >= 0):
            need_same_ids(shards, blocks)
            for shard, block, side, X in zip(shards, blocks, sums, vectors, strict=True):
                finite(shard, block)
                side += X.sum(axis=0, dtype=np.float64)
            n += len(rows)
            first = shards[0].start + blocks[0].first
            every = np.arange(first, first + len(blocks[0].vectors))
            dropped.append(np.setdiff1d(every, rows, assume_unique=True))
            ids = None
            if self.n_candidates or len(wanted):
                ids = shards[0].ids_of(blocks[0])
            if ids is not None and shards[0].ids:
                index = pd.Index(ids, dtype=object)
                if not index.is_unique:
                    twice = index[index.duplicated()].unique()
                    raise SpaceError(
                        f"{shards[0].name}: ids must be distinct, {len(twice):,} occur more than once, first"
                        f" {quote(twice[:3])}; mend them"
                    )
                if len(wanted):
                    where = wanted.get_indexer(ids)
                else:
                    where = np.full(len(ids), -1)
                places.append(np.stack([where, every])[:, where >= 0])
            if self.n_candidates:
                keys = row_keys(ids[alive], self.stream, self.random_state)
                smallest = self._smallest(smallest, (keys, rows))
            if self.classes_of >= 0 and len(classes) <= _MOST_CLASSES:
                labels = blocks[self.classes_of].labels
                classes.update(labels[row] for row in alive if labels[row])
        arrays = {f"sums_{side}": total for side, total in enumerate(sums)}
        arrays |= {"keys": smallest[0], "rows": smallest[1]}
        arrays["dropped"] = _few(np.concatenate([*dropped, np.empty(0, np.int64)]))
        arrays["wanted"] = np.concatenate([*places, np.empty((2, 0), np.int64)], axis=1)
        return arrays, {"n": n, "classes": _few_classes(classes)}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        pairs = {name: (array, second.arrays[name]) for name, array in first.arrays.items()}
        keys, rows = self._smallest(*zip(pairs.pop("keys"), pairs.pop("rows"), strict=True))
        arrays = {"keys": keys, "rows": rows, "dropped": _few(np.concatenate(pairs.pop("dropped")))}
        arrays["wanted"] = np.concatenate(pairs.pop("wanted"), axis=1)
        for name, (sums, more) in pairs.items():
            arrays[name] = sums + more
        facts = first.metadata["facts"]
        more = second.metadata["facts"]
        classes = None
        if None not in (facts["classes"], more["classes"]):
            classes = _few_classes(Counter(facts["classes"]) + Counter(more["classes"]))
        return arrays, {"n": facts["n"] + more["n"], "classes": classes}

    def _smallest(
        self, held: tuple[np.ndarray, np.ndarray], more: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        keys, rows = more
        if 0 < len(held[0]) == self.n_candidates:
            near = keys < held[0][-1]
            keys = keys[near]
            rows = rows[near]
        keys = np.concatenate([held[0], keys])
        rows = np.concatenate([held[1], rows])
        order = np.argsort(keys, kind="stable")[: self.n_candidates]
        return keys[order], rows[order]


def need_distinct_ids(space: ShardedSpace, survey: PassResult) -> None:
    """Raise a SpaceError if two candidates for queries have the same id. Keys are hashes of ids, sorted, so
    only neighbours can be equal.
    """
    keys = survey.arrays["keys"]
    rows = survey.arrays["rows"]
    pairs = np.flatnonzero(np.diff(keys) == 0)[:3]
    if not len(pairs) or not space.shards[0].ids:
        return
    first = rows[pairs]
    second = rows[pairs + 1]
    same = np.flatnonzero(np.array(space.ids_of(first)) == np.array(space.ids_of(second)))
    if len(same):
        rows = int(first[same[0]]), int(second[same[0]])
        names = [next(shard.name for shard in space.shards if row < shard.start + shard.n) for row in rows]
        raise SpaceError(
            f"{space.name}: ids must be distinct, {quote(space.ids_of(first[same[:1]]))} occurs more than"
            f" once, in {names[0]!r} and in {names[1]!r}; leave out rows that were written twice"
        )


def _few_classes(classes: Counter[str]) -> dict[str, int] | None:
    if len(classes) <= _MOST_CLASSES:
        return dict(classes)
    return None


def _few(dropped: np.ndarray) -> np.ndarray:
    if len(dropped) > _MOST_DROPPED:
        raise SpaceError(
            f"expected at most {_MOST_DROPPED:,} zero vectors, got {len(dropped):,} in some shards; leave"
            " zero vectors out when you write the shards"
        )
    return dropped


@dataclass(frozen=True, eq=False)
class RowList:
    """The rows that `Gather` reads, as ascending row numbers (m,) in the whole space."""

    rows: np.ndarray


@dataclass(frozen=True)
class Gather(ShardWork):
    """Read the vectors of some rows in every space. `wanted` is the key under which `keep` stored their
    `RowList`.

    The arrays of the result are rows (m,), ascending, and vectors_0 and vectors_1 (m, d). With `texts`, its
    facts are the ids and the labels of the first space; each is None if a shard lacks them.
    """

    kind: ClassVar[str] = "gather"
    version: ClassVar[int] = 3

    wanted: str
    texts: bool = False
    vectors: bool = True

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        shard = shards[0]
        rows = read(store, self.wanted, RowList).rows
        here = rows[(rows >= shard.start) & (rows < shard.start + shard.n)]
        arrays = {"rows": here}
        ids = []
        labels = []
        if self.vectors:
            arrays |= {f"vectors_{side}": part.take(here - shard.start) for side, part in enumerate(shards)}
        if not self.texts:
            return arrays, {}
        for block, _, places in shard.holding(here - shard.start, labels=True):
            ids += shard.ids_of(block)[places].tolist()
            if shard.labels:
                labels += [block.labels[place] for place in places]
        return arrays, {"ids": ids, "labels": labels if shard.labels else None}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        arrays = {name: np.concatenate([rows, second.arrays[name]]) for name, rows in first.arrays.items()}
        pairs = {
            name: (texts, second.metadata["facts"][name]) for name, texts in first.metadata["facts"].items()
        }
        return arrays, {name: None if None in pair else pair[0] + pair[1] for name, pair in pairs.items()}


def gather(
    runner: Runner, parts: Sequence[Shards], rows: np.ndarray, texts: bool = False, vectors: bool = True
) -> PassResult:
    """The result of `Gather` for these rows. A row that is given twice is read once."""
    key = keep(runner.store, RowList(np.unique(np.asarray(rows, dtype=np.int64))))
    return runner.run(Gather(key, texts, vectors), parts, "gather rows")


def wanted_ids(space: ShardedSpace, anchors: int | Sequence[str]) -> tuple[str, ...]:
    """The ids of anchors whose rows must be searched while shards are read. () if no search is needed: the
    ids are row numbers, or anchors are drawn at random."""
    if isinstance(anchors, int) or not space.shards[0].ids:
        return ()
    return tuple(anchors)


def chosen_anchors(
    space: ShardedSpace, survey: PassResult, anchors: int | Sequence[str], random_state: int = 0
) -> np.ndarray:
    """The row numbers of the anchors. `anchors` are ids, whose order is kept, or a number of rows to draw.
    The drawn rows are those that `select_anchors` would draw from the whole space with the strategy "random".
    """
    dropped = survey.arrays["dropped"]
    if isinstance(anchors, int):
        alive = space.n - len(dropped)
        if not 1 <= anchors <= alive:
            raise SpaceError(
                f"anchors: expected 1 … {alive:,}, the rows that have a direction, got {anchors:,}"
            )
        drawn = np.random.default_rng(random_state).choice(alive, anchors, replace=False)
        return to_full_index(drawn, dropped)
    ids = list(anchors)
    n_ids = len(set(anchors))
    if not ids or n_ids < len(ids):
        raise SpaceError(
            f"anchors: expected distinct ids, at least one, got {len(ids)}, {n_ids} of them distinct"
        )
    rows = np.full(len(ids), -1, dtype=np.int64)
    if space.shards[0].ids:
        places, numbers = survey.arrays["wanted"]
        rows[places] = numbers
        if several := [ids[place] for place in np.flatnonzero(np.bincount(places, minlength=1) > 1)]:
            raise SpaceError(
                f"anchors: expected ids of one row each, {len(several)} occur more than once in"
                f" {space.name!r}, first {quote(several[:3])}; make the ids distinct"
            )
    else:
        rows[:] = [
            int(id_) if id_.isdecimal() and f"{int(id_)}" == id_ and int(id_) < space.n else -1 for id_ in ids
        ]
    if unknown := [id_ for id_, row in zip(ids, rows, strict=True) if row < 0]:
        raise SpaceError(
            f"anchors: expected ids of {space.name!r}, got {len(unknown)} unknown: {quote(unknown[:3])}"
        )
    if zero := [ids[place] for place in np.flatnonzero(np.isin(rows, dropped))]:
        raise SpaceError(
            f"anchors: {quote(zero[:3])} are zero vectors in a space and have no direction; remove them"
        )
    return rows


MOST_ROWS = 1_000_000  # number of rows that four panes can draw
SAMPLE = 200_000
_SERIES = re.compile(r"step|epoch|iter|checkpoint|ckpt|layer", re.IGNORECASE)


def sample_spec(space: ShardedSpace, n_rows: int) -> SpaceSpec:
    """The spec to load the sample that `sample_job` draws. Its key changes if a shard is written again."""
    rows = min(n_rows, space.n)
    key = digest_of("sample of shards", 1, space.place, space.digest, rows)
    return SpaceSpec("sample", space.place, options=(("key", key), ("rows", f"{rows}"), ("of", f"{space.n}")))


def sample_job(context: Context, *, place: str, n_rows: int) -> None:
    """Draw a sample, and store it under the context's key."""
    stamp = folder_stamp(place)
    space = ShardedSpace.open(place)
    drawn = sample_shards(space, n_rows, Runner(context.store, report=context.report))
    put_encoding(context.store, context.key, drawn, {"sample of": space.place, "stamp": stamp})


sample_job.on_cpu = True  # no need to wait for a GPU


def too_large(place: str) -> ShardedSpace | None:
    """If the app can open a folder of shards only as a sample of its rows, the space in this folder;
    otherwise None. A sample is needed if the space has more rows than the app can draw, or is at an address.

    Folders of separate spaces, such as checkpoints of a model, give None. They are recognised by the names of
    their files, or by equal ids in two files.
    """
    if not is_sharded(place):
        return None
    space = ShardedSpace.open(place)
    if is_address(place):
        return space
    if space.n <= MOST_ROWS or any(_SERIES.search(shard.name) for shard in space.shards):
        return None
    first, second = (next(shard.blocks(1)).ids for shard in space.shards[:2])
    if first is not None and first == second:
        return None
    return space


def sample_shards(space: ShardedSpace, n_rows: int, runner: Runner, also: Sequence[str] = ()) -> LatentSpace:
    """Draw a sample of `n_rows` rows that are not zero, with ids and labels, in the order of the shards. If
    there are fewer, all are taken.

    Rows are drawn by a hash of their ids, so spaces with the same ids get the same rows, even if their rows
    are distributed differently over shards. Rows with the ids `also`, such as seed pairs, are always
    included.
    """
    if n_rows < 1:
        raise SpaceError(f"n_rows: expected 1 row or more, got {n_rows}")
    work = Survey(min(n_rows, space.n), "sample", wanted=wanted_ids(space, also))
    survey = runner.run(work, space.alone, "survey")
    rows = survey.arrays["rows"]
    if also:
        rows = np.union1d(rows, chosen_anchors(space, survey, also))
    drawn = gather(runner, space.alone, rows, texts=True)
    vectors = drawn.arrays["vectors_0"]
    texts = drawn.facts
    return LatentSpace(vectors, texts["ids"], name=space.name, labels=texts["labels"])


_ROWS = 8192  # rows per block, which are wider as relative rows than in their space
MOST_QUERIES = 2048  # the similarities of these queries and a block take 32 MB in each of two searches
_MOST_MUTUAL = 20_000_000  # number of rows, because the chance level of "mutual" permutes all row numbers


@dataclass(frozen=True, eq=False)
class Plans:
    """The searches to run in one pass. Their row numbers do not count the `dropped` rows (m,), which are zero
    in some space. `labels_of` is the index of the space whose labels are the classes; −1 for none.
    """

    each: tuple[Plan, ...]
    dropped: np.ndarray
    labels_of: int = -1


@dataclass(frozen=True)
class BlockWork(ShardWork):
    kind: ClassVar[str] = "compare"
    version: ClassVar[int] = 4

    plans: str

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        return on_device(lambda where: self._summed(shards, store, report, where)).to_arrays(), {}

    def _summed(self, shards: Shards, store: Store, report: Progress, where: Device) -> SeveralSums:
        plans = read(store, self.plans, Plans)
        labelled = None
        sums = SeveralSums(plans.each, where)
        classes_of = plans.labels_of
        for blocks, alive, rows, vectors in live_rows(shards, report, _ROWS, labels=classes_of >= 0):
            if classes_of >= 0:
                labels = blocks[classes_of].labels
                labelled = np.array([labels[row] != "" for row in alive], dtype=bool)
            sums.add(*vectors, to_kept_index(rows, plans.dropped), labelled)
        return sums

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        plans = read(store, self.plans, Plans).each
        sums, more = (SeveralSums.from_arrays(plans, entry.arrays) for entry in (first, second))
        sums.merge(more)
        return sums.to_arrays(), {}


@dataclass(frozen=True)
class ShardedScores:
    """The scores of two spaces by each representation and metric. `n` is the number of rows that are scored,
    and `n_zero` the number of rows that are left out because they are zero in a space. `anchors` (k,) are row
    numbers.
    """

    scores: dict[str, dict[str, Score]]
    n: int
    n_zero: int
    anchors: np.ndarray

    def report(self, passes: dict[str, Any], source: ShardedSpace, target: ShardedSpace) -> Report:
        """The report of every score with its chance level. `passes` are facts on the time and memory that the
        passes over the rows used."""
        names = distinct_names((source, target))
        sentence = f"{names[0]} and {names[1]}, {counted(len(self.anchors), 'anchor')}"
        sentence += f", {counted(len(source.shards), 'shard')} each."
        facts = {"source": names[0], "target": names[1], "n": self.n}
        facts |= {"anchors": source.ids_of(self.anchors), **passes}
        return scores_report(self.scores, sentence, facts, also=passes["passes"])


def compare_shards(
    source: ShardedSpace,
    target: ShardedSpace,
    anchors: int | Sequence[str],
    runner: Runner,
    spec: ProjectionSpec | None = None,
    *,
    k: int = 10,
    convention: str = "paper",
    n_queries: int = LIVE_QUERIES,
    random_state: int = 0,
) -> ShardedScores:
    """Score how similar two spaces are, by all representations that `score_forms` compares, without loading a
    space into memory. `anchors` are ids, or a number of random rows; 0 means no anchors.

    Up to rounding, the numbers equal those for spaces in memory. Class agreement needs at most 100,000
    classes. Metrics that need all vectors at once are left out.
    """
    need_one_of("convention", convention, CONVENTIONS)
    if not 1 <= n_queries <= MOST_QUERIES:
        raise SpaceError(
            f"n_queries: expected 1 … {MOST_QUERIES:,} queries by shard, got {n_queries:,}; take a sample"
        )
    if convention == "mutual" and source.n > _MOST_MUTUAL:
        raise SpaceError(
            f"convention: expected 'paper' above {_MOST_MUTUAL:,} rows, got 'mutual'; choose 'paper'"
        )
    spaces = (source, target)
    parts = shard_pairs(source, target)
    # As in `comparison.class_labels`, the classes are the labels of the source, or of the target if the
    # source has none.
    classes_of = next((side for side in (0, 1) if all(shard.labels for shard in spaces[side].shards)), -1)
    n_candidates = n_queries + (anchors if isinstance(anchors, int) else len(anchors))
    work = Survey(n_candidates, wanted=wanted_ids(source, anchors), classes_of=classes_of)
    survey = runner.run(work, parts, "survey")
    need_distinct_ids(source, survey)
    if anchors == 0:
        chosen = NO_ROWS
    else:
        chosen = chosen_anchors(source, survey, anchors, random_state)
    rows = ShardedPair(spaces, parts, survey, classes_of, runner)
    requests = []
    for group in groups_of(REPRESENTATIONS if len(chosen) else ("absolute",)):
        if group[0] == "absolute":
            fitted = NO_ROWS
        else:
            fitted = to_kept_index(chosen, rows.dropped)
        roles = RowRoles(rows.n, fitted, rows.queries(n_queries, fitted), np.sort(fitted), rows.labelled)
        of = f" of {source.name!r} and {target.name!r}"
        need_k(k, len(roles), len(roles) - (convention == "mutual"), of)
        requests.append((ScoreRequest(group, spec or ProjectionSpec(), k, convention), roles))
    pairs = [
        AlignedPair.passed(rows, form, seen) for seen in rows.sums_of(requests) for form in seen.plan.forms
    ]
    rows.gather_listed(pairs)
    metrics = [name for name in metrics_of_a_pair() if METRICS[name].load().reads != "rows"]
    scores = {pair.form: scores_of(pair, metrics) for pair in pairs}
    return ShardedScores(scores, rows.n, len(rows.dropped), chosen)


class ShardedPair(RowPair):
    """Two spaces, to be scored, whose rows are read by shard. As in a `Match`, rows that are zero in one of
    the spaces are left out.

    If most rows have no label, or if there are too many classes, classes are ignored.
    """

    def __init__(
        self,
        spaces: Sequence[ShardedSpace],
        parts: Sequence[Shards],
        survey: PassResult,
        classes_of: int,
        runner: Runner,
    ) -> None:
        self.spaces = spaces
        self.parts = parts
        self.survey = survey
        self.runner = runner
        self.n = survey.facts["n"]
        self.dropped = survey.arrays["dropped"]
        self._classes_of = classes_of
        self._rows = NO_ROWS
        self._vectors = [np.empty((0, space.width), np.float32) for space in spaces]
        self._sizes = survey.facts["classes"] or {}
        labelled = sum(self._sizes.values())
        if 2 * labelled <= self.n:
            self.labelled = ""
        elif labelled == self.n:
            self.labelled = "all"
        else:
            self.labelled = "some"
        self._numbers = {"": -1} | {label: number for number, label in enumerate(self._sizes)}

    def __len__(self) -> int:
        return self.n

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        return tuple(self.survey.arrays[f"sums_{side}"] / self.n for side in (0, 1))

    def queries(self, n_queries: int, anchors: np.ndarray) -> np.ndarray:
        rows = to_kept_index(self.survey.arrays["rows"], self.dropped)
        return np.sort(rows[~np.isin(rows, anchors)][:n_queries])

    def take(self, side: int, rows: np.ndarray) -> np.ndarray:
        self.gather(rows)
        return self._vectors[side][np.searchsorted(self._rows, rows)]

    def gather(self, rows: np.ndarray) -> None:
        """Read the rows that are not yet in memory. One pass reads them from both spaces."""
        missing = np.setdiff1d(rows, self._rows)
        if not len(missing):
            return
        arrays = gather(self.runner, self.parts, to_full_index(missing, self.dropped)).arrays
        order = np.argsort(together := np.concatenate([self._rows, missing]))
        self._rows = together[order]
        for side in (0, 1):
            self._vectors[side] = np.concatenate([self._vectors[side], arrays[f"vectors_{side}"]])[order]

    def gather_listed(self, pairs: Sequence[AlignedPair]) -> None:
        """Read in advance what notes and scores by class need: the vectors of the last two neighbours in each
        list, and the classes of all rows in the lists."""
        plans = [pair.searched.plan for pair in pairs]
        tops = [
            top.rows for pair in pairs for name, top in pair.searched.tops.items() if "/longest/" not in name
        ]
        self.gather(np.unique(np.concatenate([NO_ROWS, *(rows[:, -2:].ravel() for rows in tops)])))
        if not self.labelled:
            return
        more = [rows for plan in plans for rows in (plan.roles.queries, plan.roles.anchors)]
        rows = np.unique(np.concatenate([*more, *(rows.ravel() for rows in tops)]))
        self._labelled_rows = rows[rows >= 0]
        of = self.spaces[self._classes_of].alone
        numbers = to_full_index(self._labelled_rows, self.dropped)
        labels = gather(self.runner, of, numbers, texts=True, vectors=False).facts["labels"]
        self._classes = np.array([self._numbers[label] for label in labels])

    def names(self, rows: np.ndarray) -> Sequence[str]:
        return self.spaces[0].ids_of(to_full_index(rows, self.dropped))

    def classes_of(self, rows: np.ndarray) -> np.ndarray:
        return self._classes[np.searchsorted(self._labelled_rows, rows)]

    def class_sizes(self, left_out: np.ndarray) -> np.ndarray:
        classes = self.classes_of(left_out)
        sizes = np.array(list(self._sizes.values()), np.int64)
        sizes -= np.bincount(classes[classes >= 0], minlength=len(sizes))
        return sizes[sizes > 0]

    def plan(self, question: ScoreRequest, roles: RowRoles) -> Plan:
        self.gather(np.unique(np.concatenate(list(needed_rows(question, roles).values()))))
        return super().plan(question, roles)

    def one_pass(self, plans: Sequence[Plan]) -> list[Sums]:
        together = Plans(tuple(plans), self.dropped, self._classes_of if self.labelled == "some" else -1)
        work = BlockWork(keep(self.runner.store, together))
        return SeveralSums.from_arrays(plans, self.runner.run(work, self.parts, "compare").arrays).each


# Maps that are applied to rows before they are written. The map is stored once, and each worker fits it once.

RowMap = Callable[[np.ndarray], np.ndarray]  # (m, d) → (m, e) float32


class StoredMap(Protocol):
    """A dataclass that can be stored for workers, each of which computes its function once."""

    @property
    def function(self) -> RowMap: ...


@dataclass(frozen=True, eq=False)
class ProjectionMap:
    """The relative projection on anchors (k, d) of a space with the mean row `mean` (d,), in a form that can
    be stored for workers."""

    anchors: np.ndarray
    mean: np.ndarray
    spec: ProjectionSpec
    whiten: bool = False

    @cached_property
    def function(self) -> RowMap:
        return self.spec.projection(self.whiten).fit_from(self.mean, self.anchors, self.anchors).transform


# Name of a map's class → the place of that class.
_MAPS = {
    "ProjectionMap": Named("", ".sharded.operations:ProjectionMap"),
    "AdapterMap": Named("", ".migrate.by_shard:AdapterMap"),
}

# The folder of mapped shards has one file per shard, which is complete or missing.

MARK = "_relscope.json"  # describes the work in the folder; files whose names begin with _ are no shards
_MAPPED_ROWS = 16384  # number of rows that are mapped at once


@dataclass(frozen=True)
class WriteRows(ShardWork):
    """Map every row and write it with its id and label into the folder `goal`. The facts of the result are
    files, the names of written files by shard, and rows and width, the size of what was written.
    """

    kind: ClassVar[str] = "write rows"
    version: ClassVar[int] = 3
    writes: ClassVar[bool] = True

    map: str
    of: str
    goal: str
    format: str

    def of_shard(self, shards: Shards, store: Store, report: Progress = silent) -> Partial:
        (shard,) = shards
        function = read(store, self.map, _MAPS[self.of].load()).function
        width = function(np.ones((1, shard.width), dtype=np.float32)).shape[1]
        url = beside(_written_to(self.goal), f"{shard.name.rsplit('.', 1)[0]}.{self.format}")
        blocks = self._mapped(shard, function, report)
        urls = (_write_npy if self.format == "npy" else _write_parquet)(url, shard, blocks, width)
        files = [url.rsplit("/", 1)[1] for url in urls]
        return {}, {"files": {shard.name: files}, "rows": shard.n, "width": width}

    def merged(self, first: Entry, second: Entry, store: Store) -> Partial:
        facts = first.metadata["facts"]
        more = second.metadata["facts"]
        return {}, facts | {"files": facts["files"] | more["files"], "rows": facts["rows"] + more["rows"]}

    def holds(self, facts: dict) -> bool:
        files, path = filesystem(_written_to(self.goal))
        return all(files.exists(beside(path, name)) for names in facts["files"].values() for name in names)

    @staticmethod
    def _mapped(shard: Shard, function: RowMap, report: Progress) -> Iterator[ShardBlock]:
        for block in shard.blocks(labels=True):
            vectors = finite(shard, block)
            for part in row_blocks(len(vectors), _MAPPED_ROWS):
                texts = [None if column is None else column[part] for column in (block.ids, block.labels)]
                yield ShardBlock(block.first + part.start, function(vectors[part]), *texts)
                report(block.first + part.stop, shard.n, shard.name)


def _write_npy(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    stem = url.rsplit(".", 1)[0]
    urls = {what: f"{stem}.{what}.txt" for what in ("ids", "labels") if getattr(shard, what)}
    # The vectors are closed last, so that their file appears only after all others.
    with ExitStack() as open_files:
        stream = open_files.enter_context(replacing(url))
        texts = {what: open_files.enter_context(replacing(text)) for what, text in urls.items()}
        header = {"descr": "<f4", "fortran_order": False, "shape": (shard.n, width)}
        np.lib.format.write_array_header_1_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block.vectors, "<f4").data)
            for what, text in texts.items():
                text.write(as_lines(getattr(block, what), shard.name, what, first=not block.first))
    return [url, *urls.values()]


def _write_parquet(url: str, shard: Shard, blocks: Iterable[ShardBlock], width: int) -> list[str]:
    import pyarrow as pa

    names = [name for name, column in (("id", shard.ids), ("label", shard.labels)) if column]
    fields = [(name, pa.string()) for name in names]
    schema = pa.schema([*fields, ("vector", pa.list_(pa.float32(), width))])

    def table(block: ShardBlock) -> Any:
        values = pa.array(np.ascontiguousarray(block.vectors, np.float32).ravel())
        texts = {"id": block.ids, "label": block.labels}
        columns = {name: pa.array(texts[name], pa.string()) for name in names}
        columns["vector"] = pa.FixedSizeListArray.from_arrays(values, width)
        return pa.table(columns, schema)

    with replacing(url) as stream:
        write_parquet(stream, schema, map(table, blocks), **OF_VECTORS)
    return [url]


def _written_to(goal: str) -> str:
    """The folder to which shards are written until all are complete. It is a folder beside `goal`. At an
    address, it is a folder within `goal`."""
    path = filesystem(goal)[1].rstrip("/")
    if is_address(goal) or os.path.exists(beside(path, MARK)):
        return goal
    return f"{path}.partial"


def _need_folder(goal: str, key: str) -> None:
    """Make the folder to which shards are written. If it exists, check that the same computation began to
    write it."""
    written_to = _written_to(goal)
    for place in dict.fromkeys((goal, written_to)):
        if _begun_by(place) == key:
            return
        if _begun_by(place) or (filesystem(place)[0].exists(filesystem(place)[1]) and list_files(place)):
            raise SpaceError(
                f"{place!r:.200}: expected a new or empty folder for the shards, got one with files; choose"
                " another, or remove it"
            )
    files, path = filesystem(written_to)
    files.makedirs(path, exist_ok=True)
    with replacing(beside(written_to, MARK)) as stream:
        stream.write(json.dumps({"key": key}).encode())


def _begun_by(place: str) -> str:
    files, path = filesystem(place)
    if not files.exists(beside(path, MARK)):
        return ""
    with open_url(beside(place, MARK)) as stream, suppress(ValueError, TypeError, KeyError):
        return json.loads(stream.read())["key"]
    return "damaged"


@dataclass(frozen=True)
class Written:
    """A summary of what was written to a folder: the number of rows, their width, and the row numbers of the
    anchors (k,) in the source."""

    n: int
    width: int
    anchors: np.ndarray


def write_mapped(
    source: ShardedSpace,
    rows: StoredMap,
    goal: str,
    runner: Runner,
    title: str,
    anchors: Sequence[int] = (),
) -> Written:
    """Map all rows and write them into a folder. A relative path starts at the working folder of this
    process, and not at a worker's. A stopped run resumes with the first missing shard.
    """
    if not is_address(goal):
        goal = filesystem(goal)[1]
    work = WriteRows(keep(runner.store, rows), type(rows).__name__, goal, source.shards[0].written)
    _need_folder(goal, work.key(source.alone))
    facts = runner.run(work, source.alone, title).facts
    path = filesystem(goal)[1].rstrip("/")
    if (written_to := _written_to(goal)) not in (goal, path):
        with disk_errors(path):
            finish_folder(Path(written_to), Path(path))
    return Written(facts["rows"], facts["width"], np.asarray(anchors, dtype=np.int64))


def project_shards(
    source: ShardedSpace,
    anchors: int | Sequence[str],
    goal: str,
    runner: Runner,
    spec: ProjectionSpec | None = None,
    *,
    whiten: bool = False,
    random_state: int = 0,
) -> Written:
    """Write the relative coordinates (n, k) of all rows, with ids and labels. `anchors` are ids, or a number
    of random rows.

    The coordinates are those of `RelativeProjection` fitted on all rows.
    """
    spec = spec or ProjectionSpec()
    if SIMILARITIES[spec.similarity].load().learns:
        raise SpaceError(
            f"similarity: expected one that needs the anchors alone, got {spec.similarity!r}; it is not"
            " offered by shard"
        )
    survey = runner.run(Survey(wanted=wanted_ids(source, anchors)), source.alone, "survey")
    chosen = chosen_anchors(source, survey, anchors, random_state)
    arrays = gather(runner, source.alone, chosen).arrays
    vectors = arrays["vectors_0"][np.searchsorted(arrays["rows"], chosen)]
    mean = mean_row(vectors, survey.arrays["sums_0"] / source.n)
    return write_mapped(source, ProjectionMap(vectors, mean, spec, whiten), goal, runner, "project", chosen)
