"""Jobs on the command line: an engine that runs them, a progress bar, and Ctrl-C, which stops them."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from relcore.commands.output import Bar

if TYPE_CHECKING:
    from relcore.catalog.catalog import SpaceSpec
    from relcore.runs.jobs import Engine, Job
    from relcore.spaces.space import LatentSpace
    from relcore.tasks.task import Result, Task

AT_ONCE_SECONDS = 2.0  # starting processes takes longer


@contextmanager
def engine(options: argparse.Namespace, n_jobs: int | None = None) -> Iterator[Engine]:
    """An engine on the cluster of --scheduler, else with processes of this machine, not more than there are
    jobs.

    Without Dask, which the extra ``cluster`` brings, jobs run one after the other in this process.
    """
    from relcore.runs.jobs import Engine

    cluster = Engine(options.scheduler)
    if find_spec("distributed") is None and not cluster.address:
        with Bar(options) as bar:
            yield _in_place(bar)
        return
    cluster.n_workers = min(cluster.n_workers, n_jobs or cluster.n_workers)
    try:
        with Bar(options) as bar:
            bar.show(0, 1, "starting")
            cluster.start()
        yield cluster
    except KeyboardInterrupt:
        # In a terminal the processes heard it, too, and may be half closed: whatever they answer, the
        # interrupt is what counts.
        with Bar(options) as bar, suppress(Exception):
            bar.show(0, 1, "stopping")
            cluster.close()
        raise
    finally:
        cluster.close()


def _in_place(bar: Bar) -> Engine:
    """An engine whose `submit` runs the job before it returns."""
    from relcore.runs.jobs import Engine
    from relcore.runs.progress import Context

    class InPlace(Engine):
        def submit(self, key: str, function: Callable[..., None], *, title: str, **settings) -> Job:
            for scheduling in ("priority", "expected"):
                settings.pop(scheduling, None)
            if not self.store.has(key):
                with Context(key, self.store, bar.event).sending() as context:
                    function(context, **settings)
            return self.job(key)

    return InPlace()


def interrupted(engine: Engine, stop: Callable[[], None]) -> None:
    """After Ctrl-C: `stop` what runs on a cluster; processes of this machine end with the engine."""
    if engine.address:
        stop()


def follow(engine: Engine, jobs: Sequence[Job], options: argparse.Namespace, pause: float = 0.1) -> None:
    """Wait for jobs, with a bar; Ctrl-C stops them.

    Raises
    ------
    EngineError
        One failed.
    """
    with Bar(options) as bar:
        try:
            while not all(job.status().ended for job in jobs):
                bar.show(*_standing(jobs))
                time.sleep(pause)
        except KeyboardInterrupt:
            interrupted(engine, lambda: [job.cancel() for job in jobs])
            raise
    for job in jobs:
        job.result()


def _standing(jobs: Sequence[Job]) -> tuple[float, float, str]:
    """Done, total, and a text: the message and the time left of the first job that runs."""
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
    """The result of a task: from the store, at once where it is quick, else by a job."""
    return all_computed([task], specs, spaces, options)[0]


def all_computed(
    tasks: Sequence[Task[Result]],
    specs: Sequence[SpaceSpec],
    spaces: Sequence[LatentSpace],
    options: argparse.Namespace,
) -> list[Result]:
    """`computed` for each of some tasks on the same spaces; their jobs run beside each other."""
    from relcore.runs.digest import StoreError
    from relcore.runs.store import Store
    from relcore.tasks.task import inputs_of, task_job

    store, keys = Store(), [task.key(spaces) for task in tasks]
    entries = [store.get(key) for key in keys]
    results = {key: task.read(entry) for key, task, entry in zip(keys, tasks, entries, strict=True) if entry}
    missing = {key: task for key, task in zip(keys, tasks, strict=True) if key not in results}
    seconds = sum(task.seconds(spaces) for task in missing.values())
    at_once = seconds < AT_ONCE_SECONDS and not options.scheduler
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
        with engine(options, n_jobs=len(missing)) as cluster:
            inputs = inputs_of(store, specs, spaces)
            jobs = {
                key: cluster.submit(key, task_job, title=task.title, task=task, inputs=inputs)
                for key, task in missing.items()
            }
            follow(cluster, list(jobs.values()), options)
            results |= {key: missing[key].read(job.result()) for key, job in jobs.items()}
    return [results[key] for key in keys]
