import os
import signal
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import ClassVar

import numpy as np
import pytest

from benchmarks.shards import MadeShard, made
from relcore.base.errors import SpaceError
from relcore.represent.representations import ProjectionSpec
from relcore.runs.entries import StoreError
from relcore.runs.jobs import QueueInPlace
from relcore.runs.store import Store
from relcore.sharded.comparison import compare_shards
from relcore.sharded.runner import FAN, Runner, ShardTotal, ShardWork
from relcore.sharded.space import ShardedSpace, shard_pairs
from relcore.sharded.survey import Survey
from relcore.sharded.threads import run_in_threads
from relcore.sharded.writing import project_shards
from tests.relcore.sharded.folders import X, whole, write_npy, write_parquet


@dataclass(frozen=True)
class Sums(ShardWork):
    """Sums of the rows; leaves a line for each shard that is computed, and kills its process once in one
    of them.
    """

    kind: ClassVar[str] = "sums of a test"

    log: str
    dies_in: str = ""
    fails_in: str = ""

    def start(self, store, report=lambda *told: None):
        return SumsTotal(self)


class SumsTotal(ShardTotal):
    def __init__(self, work):
        self.work = work
        self.sum = 0
        self.n = 0

    def add(self, shards):
        log = Path(self.work.log)
        name = shards[0].name
        with log.open("a") as file:
            file.write(f"{name}\n")
        if name == self.work.fails_in and log.read_text().count(name) == 1:
            raise SpaceError(f"{name}: broken")
        if name == self.work.dies_in and log.read_text().count(name) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        self.sum = self.sum + sum(block.vectors.sum(axis=0, dtype=np.float64) for block in shards[0].blocks())
        self.n += shards[0].n

    def merge(self, other):
        self.sum = self.sum + other.sum
        self.n += other.n

    def result(self):
        return {"sum": self.sum}, {"n": self.n}

    def restore(self, arrays, facts):
        self.sum = arrays["sum"]
        self.n = facts["n"]


@pytest.fixture(scope="module")
def queue(two_workers, tmp_path_factory):
    two_workers.store = Store(tmp_path_factory.mktemp("store"))
    return two_workers


def space_of(n_shards, rows=400):
    return made(rows=rows, width=3, shards=n_shards)


def computed(log):
    if Path(log).exists():
        return sorted(Path(log).read_text().split())
    return []


@pytest.mark.slow
def test_a_killed_worker_costs_one_shard(queue, tmp_path):
    space = space_of(12)
    log = str(tmp_path / "log")
    work = Sums(log, dies_in=space.shards[5].name)
    found = Runner(queue.store, queue).run(work, space.alone, "")
    names = [shard.name for shard in space.shards]
    assert computed(log) == sorted([*names, names[5]])
    np.testing.assert_allclose(
        found.arrays["sum"], whole(space).vectors.sum(axis=0, dtype=np.float64), rtol=1e-12
    )
    assert (found.facts["n"], found.computed, [one.shard for one in found.ran]) == (400, 12, names)
    assert all(one.peak_mb > 0 for one in found.ran)


@dataclass(frozen=True)
class DyingShard(MadeShard):
    """A shard that kills its process when it is read for the second time, after the survey."""

    log: str = ""

    def read(self, rows, labels):
        with open(self.log, "a") as file:
            file.write(f"{self.name}\n")
        if Path(self.log).read_text().count(self.name) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().read(rows, labels)


@pytest.mark.slow
def test_scores_of_two_workers_of_which_one_is_killed_have_the_digits_of_threads(queue, tmp_path):
    spaces = [made(rows=3000, width=8, shards=7, side=side) for side in (0, 1)]
    log = str(tmp_path / "log")
    shards = [*spaces[0].shards]
    shards[4] = DyingShard(**vars(shards[4]), log=log)
    mortal = replace(spaces[0], shards=tuple(shards)), spaces[1]
    found = []
    for runner, pair in ((Runner(queue.store, queue), mortal), (Runner(Store(tmp_path / "own")), spaces)):
        scores = compare_shards(*pair, 20, runner, n_queries=40).scores
        found.append(
            {(form, name): repr(score) for form, each in scores.items() for name, score in each.items()}
        )
    assert computed(log) == 3 * [shards[4].name]
    assert found[0] == found[1]
    assert len(found[0]) > 10


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_run_that_failed_resumes_with_shards_that_are_missing(tmp_path, threads):
    space = space_of(6)
    names = [shard.name for shard in space.shards]
    log = str(tmp_path / "log")
    work = Sums(log, fails_in=names[4])
    store = Store(tmp_path / "store")
    with pytest.raises(SpaceError, match=f"^{names[4]}: broken$"):
        Runner(store, threads=threads).run(work, space.alone, "")
    began = computed(log)
    assert set(names[:5]) <= set(began)
    found = Runner(store, threads=threads).run(work, space.alone, "")
    assert found.computed == 7 - len(began)
    assert computed(log) == sorted([*names, names[4]])
    again = Runner(store, threads=threads).run(work, space.alone, "")
    assert (again.computed, len(computed(log))) == (0, 7)
    np.testing.assert_array_equal(again.arrays["sum"], found.arrays["sum"])


def test_error_is_that_of_the_first_shard_that_fails(tmp_path):
    """The second shard fails while the first, which fails later, still runs."""
    space = space_of(3)
    second_failed = Event()

    def failing(context, number):
        if number == 0:
            assert second_failed.wait(60)
            raise SpaceError("first")
        second_failed.set()
        raise SpaceError("second")

    jobs = [(f"{number:016x}", partial(failing, number=number)) for number in range(len(space.shards))]
    with pytest.raises(SpaceError, match="first"):
        run_in_threads(jobs, Store(tmp_path / "store"), lambda waiting, left: None, threads=2)


def test_stop_ends_running_shards_at_their_next_report(tmp_path):
    """The caller is interrupted while progress is reported, as by Ctrl-C. The job would run forever."""
    ended = []
    running = Event()

    def endless(context):
        try:
            while True:
                running.set()
                context.report(1, 2)
                time.sleep(0.001)
        finally:
            ended.append(context.key)

    def interrupted(waiting, left):
        if running.is_set():
            raise KeyboardInterrupt

    jobs = [(f"{number:016x}", endless) for number in range(3)]
    with pytest.raises(KeyboardInterrupt):
        run_in_threads(jobs, Store(tmp_path / "store"), interrupted, threads=1)
    assert ended == [jobs[0][0]]


def test_scores_have_the_same_digits_for_any_number_of_threads(tmp_path):
    spaces = [made(rows=3000, width=8, shards=7, side=side) for side in (0, 1)]
    found = []
    for threads in (1, 2, 4):
        runner = Runner(Store(tmp_path / f"{threads} threads"), threads=threads)
        scores = compare_shards(*spaces, 20, runner, n_queries=40).scores
        found.append(
            {(form, name): repr(score) for form, each in scores.items() for name, score in each.items()}
        )
        sums = dict(runner.done)["compare"].arrays
        if threads == 1:
            first = sums
        for name, array in first.items():
            np.testing.assert_array_equal(sums[name], array, err_msg=name)
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize("n_shards", [1, 2 * FAN + 5])
def test_groups_are_merged_to_last_bit_alike_and_leave_one_result(tmp_path, n_shards):
    space = space_of(n_shards)
    store = Store(tmp_path / "store")
    work = Sums(str(tmp_path / "log"))
    reports = []
    runner = Runner(store, report=lambda done, total, text: reports.append((done, total)))
    found = runner.run(work, space.alone, "add")
    np.testing.assert_allclose(
        found.arrays["sum"], whole(space).vectors.sum(axis=0, dtype=np.float64), rtol=1e-12
    )
    assert [one.shard for one in found.ran] == [shard.name for shard in space.shards]
    assert store.entries() == [work.key(space.alone)]
    assert reports[-1] == (n_shards, n_shards)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)


def test_shard_that_was_written_again_is_computed_again(tmp_path):
    write_npy(tmp_path / "s", X, (60, 40))
    store = Store(tmp_path / "store")
    work = Sums(str(tmp_path / "log"))
    before = Runner(store).run(work, ShardedSpace.open(tmp_path / "s").alone, "")
    np.save(tmp_path / "s" / "part-00001.npy", 2 * X[60:])
    after = Runner(store).run(work, ShardedSpace.open(tmp_path / "s").alone, "")
    assert not np.allclose(before.arrays["sum"], after.arrays["sum"])


def pair_in_folders(tmp_path, ids=None, sizes=(30, 50, 20), change=None):
    Y = X @ np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    A = X.copy()
    A[[3, 35]] = 0
    Y[[35, 70]] = 0
    if change:
        change(A, Y)
    write_npy(tmp_path / "a", A, sizes, ids=ids)
    write_parquet(tmp_path / "b", Y, sizes, ids=ids)
    return ShardedSpace.open(tmp_path / "a"), ShardedSpace.open(tmp_path / "b")


def test_ids_in_another_order_are_found(tmp_path):
    ids = [f"row-{row}" for row in range(100)]
    pair = pair_in_folders(tmp_path, ids)
    ids[40], ids[41] = ids[41], ids[40]
    write_npy(tmp_path / "a", X, (30, 50, 20), ids=ids)
    pair = ShardedSpace.open(tmp_path / "a"), pair[1]
    with pytest.raises(
        SpaceError, match=r"row 11: expected the same id in both, got 'row-41', 'row-40'; sort"
    ):
        Runner(Store(tmp_path / "store")).run(Survey(), shard_pairs(*pair), "")


@pytest.mark.parametrize("scale", [1, 1e-12])
def test_the_mean_is_that_of_all_rows_at_any_scale(tmp_path, scale):
    """The rows lie far from the origin, so that only a mean in float64 keeps their digits."""
    rows = (scale * (1e4 + np.random.default_rng(2).normal(size=(100, 6)))).astype(np.float32)
    space = ShardedSpace.open(write_npy(tmp_path / "s", rows, (60, 40)))
    written = project_shards(space, 9, str(tmp_path / "goal"), Runner(Store(tmp_path / "store")))
    projection = ProjectionSpec().projection().fit(rows, anchors=written.anchors)
    found = whole(ShardedSpace.open(tmp_path / "goal")).vectors
    np.testing.assert_allclose(found, projection.transform(rows), atol=1e-5)


def test_queue_without_processes_computes_in_threads_and_needs_a_writable_store(tmp_path, monkeypatch):
    space = space_of(3)
    queue = QueueInPlace(print)
    queue.store = Store(tmp_path / "store")
    found = Runner(queue.store, queue).run(Sums(str(tmp_path / "log")), space.alone, "")
    assert found.computed == 3

    def refuse():
        raise StoreError("read-only")

    monkeypatch.setattr(queue.store, "require_writable", refuse)
    with pytest.raises(StoreError, match="read-only"):
        Runner(queue.store, queue).run(Sums(str(tmp_path / "other")), space.alone, "")
    assert not computed(tmp_path / "other")
