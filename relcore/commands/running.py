"""Jobs on the command line: an engine that runs them, a progress bar, and Ctrl-C, which stops them."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from relcore.base.text import visible

if TYPE_CHECKING:
    from relcore.catalog.catalog import SpaceSpec
    from relcore.runs.jobs import Engine, Job
    from relcore.runs.store import Store
    from relcore.spaces.space import LatentSpace
    from relcore.tasks.task import Result, Task

AT_ONCE_SECONDS = 2.0  # starting processes takes longer
_WIDTH = 20
_CLEAR = "\r\x1b[2K"


def add_scheduler(parser: argparse.ArgumentParser) -> None:
    """--scheduler."""
    parser.add_argument(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help=(
            "run on this Dask cluster, whose workers share the store's folder (default: $RELSCOPE_SCHEDULER,"
            " or processes of this machine)"
        ),
    )
    parser.add_argument(
        "--local-if-lost",
        action="store_true",
        help=(
            "if the scheduler of the cluster does not answer, continue on this machine instead of waiting"
            " for it"
        ),
    )


class Bar:
    """A progress bar on stderr; nothing if stderr is not a terminal, or with --quiet."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._shown = not options.quiet and sys.stderr.isatty()

    def show(self, done: float, total: float, text: str = "", *_) -> None:
        """Draw how much is done, and a text."""
        if not self._shown:
            return
        share = min(1.0, done / total) if total else 0.0
        filled = round(_WIDTH * share)
        line = f"[{'=' * filled}{' ' * (_WIDTH - filled)}] {share:4.0%}  {visible(text)}"
        sys.stderr.write(_CLEAR + line[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


@contextmanager
def bar(options: argparse.Namespace) -> Iterator[Bar]:
    """A bar that is erased at the end."""
    line = Bar(options)
    try:
        yield line
    finally:
        line.clear()


@contextmanager
def engine(options: argparse.Namespace, n_jobs: int | None = None) -> Iterator[Engine]:
    """An engine on the cluster of --scheduler, else with processes of this machine, not more than there are
    jobs.

    Without Dask, which the extra ``cluster`` brings, jobs run one after the other in this process.
    """
    from relcore.runs.jobs import Engine

    made = Engine(options.scheduler)
    if find_spec("distributed") is None and not made.address:
        with bar(options) as line:
            yield _in_place(line)
        return
    made.on_lost = partial(_lost, made, options)
    made.n_workers = min(made.n_workers, n_jobs or made.n_workers)
    try:
        with bar(options) as line:
            line.show(0, 1, "starting")
            _start(made, options)
        yield made
    except KeyboardInterrupt:
        # In a terminal the processes heard it, too, and may be half closed: whatever they answer, the
        # interrupt is what counts.
        with bar(options) as line, suppress(Exception):
            line.show(0, 1, "stopping")
            made.close()
        raise
    finally:
        made.close()


def _start(engine: Engine, options: argparse.Namespace) -> None:
    from relcore.runs.jobs import EngineError

    try:
        engine.start()
    except EngineError as error:
        if not options.local_if_lost:
            raise
        _say(f"{error}; continuing on this machine")
        engine.continue_here()
        engine.start()


def _lost(engine: Engine, options: argparse.Namespace, why: str) -> None:
    """The scheduler died, or does not answer."""
    here = engine.address and options.local_if_lost
    _say(f"{why}{'; continuing on this machine' if here else ''}")
    if here:
        engine.continue_here()


def _say(text: str) -> None:
    print(f"relscope: {text}", file=sys.stderr, flush=True)


def _in_place(line: Bar) -> Engine:
    """An engine whose `submit` runs the job before it returns."""
    from relcore.runs.jobs import Engine
    from relcore.runs.progress import Context

    class InPlace(Engine):
        def submit(self, key: str, function: Callable[..., None], *, title: str, **settings) -> Job:
            settings = {
                name: value for name, value in settings.items() if name not in ("priority", "expected")
            }
            show = lambda event: line.show(event["done"], event["total"], event["message"] or title)  # noqa: E731
            if not self.store.has(key):
                with Context(key, self.store, show).sending() as context:
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
    with bar(options) as line:
        try:
            while not all(job.status().ended for job in jobs):
                line.show(*_standing(jobs))
                time.sleep(pause)
        except KeyboardInterrupt:
            interrupted(engine, lambda: [job.cancel() for job in jobs])
            raise
    for job in jobs:
        job.result()


def computed(
    task: Task[Result], specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace], options: argparse.Namespace
) -> Result:
    """What a task finds: from the store, at once where it is quick, else by a job."""
    return all_computed([task], specs, spaces, options)[0]


def all_computed(
    tasks: Sequence[Task[Result]],
    specs: Sequence[SpaceSpec],
    spaces: Sequence[LatentSpace],
    options: argparse.Namespace,
) -> list[Result]:
    """What each of some tasks on the same spaces finds, as `computed`; their jobs run beside each other."""
    from relcore.runs.store import Store
    from relcore.tasks.task import inputs_of, task_job

    store, keys = Store(), [task.key(spaces) for task in tasks]
    found = {
        key: task.read(kept)
        for key, task in zip(keys, tasks, strict=True)
        if (kept := store.get(key)) is not None
    }
    missing = {key: task for key, task in zip(keys, tasks, strict=True) if key not in found}
    seconds = sum(task.seconds(spaces) for task in missing.values())
    if missing and ((seconds < AT_ONCE_SECONDS and not options.scheduler) or not _writable(store)):
        with bar(options) as line:
            found |= {
                key: task.compute(store, spaces, warnings.warn, line.show) for key, task in missing.items()
            }
    elif missing:
        with engine(options, n_jobs=len(missing)) as made:
            settings = {"inputs": inputs_of(store, specs, spaces)}
            jobs = {
                key: made.submit(key, task_job, title=task.title, task=task, **settings)
                for key, task in missing.items()
            }
            follow(made, list(jobs.values()), options)
            found |= {key: missing[key].read(job.result()) for key, job in jobs.items()}
    return [found[key] for key in keys]


def _writable(store: Store) -> bool:
    """Whether a job can save its result; if not, it is computed in this process, which prints it."""
    from relcore.runs.digest import StoreError

    try:
        store.require_writable()
    except StoreError:
        return False
    return True


def _standing(jobs: Sequence[Job]) -> tuple[float, float, str]:
    """Done, total, and a text: the message and the time left of the first job that runs."""
    known = [(job, job.status()) for job in jobs]
    done = sum(
        1.0 if status.ended else status.done / status.total if status.total else 0.0 for _, status in known
    )
    running = next(((job, status) for job, status in known if status.state == "running"), known[0])
    job, status = running
    left = f" · {status.time_left}" if status.time_left else ""
    ended = sum(status.ended for _, status in known)
    number = f"{ended + 1} of {len(jobs)} · " if len(jobs) > 1 and ended < len(jobs) else ""
    return done, len(jobs), f"{number}{status.message or job.title}{left}"
