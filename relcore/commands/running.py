"""Jobs and passes over shards on the command line, with a progress bar; Ctrl-C stops them."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

from relcore.base.errors import SpaceError
from relcore.base.libraries import extra
from relcore.base.report import Report
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Result, Task, inputs_of, task_job
from relcore.commands.arguments import by_shard, number_or_ids, spaces_of, suspects_of
from relcore.commands.output import Bar
from relcore.represent.similarity import usual_anchors
from relcore.runs.digest import StoreError
from relcore.runs.jobs import Job, JobQueue
from relcore.runs.progress import Context
from relcore.runs.store import Store, in_use
from relcore.sharded.space import Runner, ShardedSpace, sample_shards
from relcore.spaces.space import LatentSpace

AT_ONCE_SECONDS = 2.0  # starting processes takes longer


class InPlace(JobQueue):
    """A job queue in this process: `submit` runs the job before it returns."""

    def __init__(self, bar: Bar) -> None:
        super().__init__(n_workers=1)
        self._bar = bar

    def submit(
        self, key: str, function: Callable[..., None], title: str, priority: int = 0, **settings
    ) -> Job:
        if not self.store.has(key):
            with in_use(), extra(), Context(key, self.store, self._bar.event).sending() as context:
                self.store.require_writable()
                function(context, **settings)
        return self.job(key)


@contextmanager
def queue(options: argparse.Namespace, n_jobs: int | None = None) -> Iterator[JobQueue]:
    """A job queue: on the cluster of --scheduler, else with at most one process per job on this machine. A
    single job, and all jobs without Dask (the extra ``cluster``), run in this process.
    """
    cluster = JobQueue(options.scheduler)
    # Another process takes seconds to start and to import the libraries again.
    if (n_jobs == 1 or find_spec("distributed") is None) and not cluster.address:
        with Bar(options) as bar:
            yield InPlace(bar)
        return
    cluster.n_workers = min(cluster.n_workers, n_jobs or cluster.n_workers)
    try:
        with Bar(options) as bar:
            bar.show(0, 1, "starting")
            cluster.start()
        yield cluster
    except KeyboardInterrupt:
        # In a terminal the processes received the signal, too, and may be half closed. Whatever they answer,
        # the interrupt decides.
        with Bar(options) as bar, suppress(Exception):
            bar.show(0, 1, "stopping")
            cluster.close()
        raise
    finally:
        cluster.close()


def follow(queue: JobQueue, jobs: Sequence[Job], options: argparse.Namespace, pause: float = 0.1) -> None:
    """Wait for jobs, with a bar; Ctrl-C stops them.

    Raises
    ------
    JobQueueError
        One failed.
    """
    with Bar(options) as bar:
        try:
            while not all(job.status().ended for job in jobs):
                bar.show(*_standing(jobs))
                time.sleep(pause)
        except KeyboardInterrupt:
            for job in jobs if queue.address else ():  # processes of this machine end with the queue
                job.cancel()
            raise
    for job in jobs:
        job.result()


def _standing(jobs: Sequence[Job]) -> tuple[float, float, str]:
    """The work done, the total, and a text: message and time left of the first running job."""
    known = [(job, job.status()) for job in jobs]
    shares = (status.done / status.total if status.total else 0.0 for _, status in known if not status.ended)
    ended = sum(status.ended for _, status in known)
    job, status = next(((job, status) for job, status in known if status.state == "running"), known[0])
    left = f" · {status.time_left}" if status.time_left else ""
    number = f"{ended + 1} of {len(jobs)} · " if len(jobs) > 1 and ended < len(jobs) else ""
    return ended + sum(shares), len(jobs), f"{number}{status.message or job.title}{left}"


def computed(
    task: Task[Result], specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], options: argparse.Namespace
) -> Result:
    """The result of a task: from the store, computed here if that is quick, else by a job."""
    return all_computed([task], specs, spaces, options)[0]


def all_computed(
    tasks: Sequence[Task[Result]],
    specs: Sequence[SpaceSpec],
    spaces: Sequence[LatentSpace],
    options: argparse.Namespace,
) -> list[Result]:
    """`computed` for several tasks on the same spaces; their jobs run in parallel."""
    store, known = Store(), {task.key(spaces): task for task in tasks}
    results = {key: task.read(entry) for key, task in known.items() if (entry := store.get(key))}
    missing = {key: task for key, task in known.items() if key not in results}
    at_once = (
        not options.scheduler and sum(task.seconds(spaces) for task in missing.values()) < AT_ONCE_SECONDS
    )
    if missing and not at_once:
        try:
            store.require_writable()
        except StoreError:  # no job could save its result
            at_once = True
    if missing and at_once:
        with Bar(options) as bar:
            for key, task in missing.items():
                results[key] = task.compute(store, spaces, warnings.warn, bar.show)
    elif missing:
        with queue(options, n_jobs=len(missing)) as cluster:
            inputs = inputs_of(store, specs, spaces)
            jobs = {
                key: cluster.submit(key, task_job, title=task.title, task=task, inputs=inputs)
                for key, task in missing.items()
            }
            follow(cluster, list(jobs.values()), options)
            results |= {key: missing[key].read(job.result()) for key, job in jobs.items()}
    return [results[key] for key in known]


# Folders of shards.


@contextmanager
def shards(options: argparse.Namespace, *places: str) -> Iterator[tuple[Runner, *tuple[ShardedSpace, ...]]]:
    """A runner of passes over shards, with a progress bar, and the spaces at these places.

    Raises
    ------
    SpaceError
        Options that shards do not support: a recipe, because a figure cannot load shards, and pairing by row
        order.
    """
    if getattr(options, "recipe", None):
        raise SpaceError(
            "--recipe: expected spaces that a figure can load, got folders of shards; leave --recipe out"
        )
    if getattr(options, "pair_by_row", False) or getattr(options, "links", None):
        option = "--pair-by-row" if options.pair_by_row else "--links"
        raise SpaceError(
            f"{option}: expected other spaces than folders of shards, which pair by id, got such folders;"
            " write the same ids into both, or none, so that row numbers are the ids"
        )
    spaces = [ShardedSpace.open(place) for place in places]
    most = max(len(space.shards) for space in spaces)
    with queue(options, n_jobs=most) as cluster, Bar(options) as bar:
        yield Runner(cluster.store, cluster, bar.show), *spaces


def over_shards(
    options: argparse.Namespace,
    places: Sequence[str],
    job: Callable[..., Any],
    report: Callable[..., Report],
    anchored: bool = True,
) -> Report:
    """The report of a job on folders of shards: ``report(result, facts about the passes, *spaces)`` of the
    result of `job(runner, anchors, *spaces)`.
    """
    with shards(options, *places) as (run, *spaces):
        result = job(run, anchors_by_shard(options, spaces[0]) if anchored else 0, *spaces)
    return report(result, {"passes": run.describe(), "worker_mb": run.peaks}, *spaces)


def anchors_by_shard(options: argparse.Namespace, space: ShardedSpace) -> int | tuple[str, ...]:
    """The anchors of --anchors for a space that is read shard by shard: a number to draw, or ids.

    Raises
    ------
    SpaceError
        Another strategy than "random", which needs all rows at once.
    """
    if options.strategy != "random":
        raise SpaceError(
            f"--strategy: expected 'random', which shards are read for, got {options.strategy!r}; choose"
            " anchors in a sample of the rows, and name their ids with --anchors"
        )
    if suspects_of(options):
        raise SpaceError(
            "--anchors: expected no suspects of an audit with folders of shards, which would score them;"
            " remove their rows from both folders"
        )
    return number_or_ids(options.anchors, usual_anchors(space.n))


def samples(
    options: argparse.Namespace, places: Sequence[str], also: Sequence[Sequence[str]] = ()
) -> tuple[list[SpaceSpec], list[LatentSpace], list[str]]:
    """The spaces at these places in memory, as samples if they are folders of shards; and sentences about the
    samples.

    Raises
    ------
    SpaceError
        Folders of shards beside other spaces: a sample would share hardly any rows with them.
    """
    sharded = [by_shard(options, place) for place in places]
    if not any(sharded):
        return *spaces_of(options, places), []
    if not all(sharded):
        raise SpaceError(
            "expected folders of shards only, or none, got both; write all spaces in shards, or none"
        )
    with shards(options, *places) as (run, *spaces):
        drawn = [
            sample_shards(space, options.sample, run, ids)
            for space, ids in zip_longest(spaces, also, fillvalue=())
        ]
    pairs = zip(drawn, spaces, strict=True)
    sizes = ", ".join(f"{len(sample):,} of {space.n:,} rows of {space.name}" for sample, space in pairs)
    return (
        [SpaceSpec("file", place) for place in places],
        drawn,
        [f"On a sample: {sizes}.", "", *run.describe()],
    )
