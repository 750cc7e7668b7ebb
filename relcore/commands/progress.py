"""Run the jobs of a command, and show their progress."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from relcore.base.text import visible

if TYPE_CHECKING:
    from relcore.runs.jobs import Job, JobQueue

_WIDTH = 20  # characters of a bar
_ERASE = "\r\x1b[2K"  # erases the line in the terminal
_EVERY = 30.0  # seconds between lines, if stderr is no terminal


@dataclass
class Bar(AbstractContextManager):
    """A progress bar on stderr, which is erased at the end. If stderr is no terminal, as in a job's log, a
    line is printed every half minute. With --quiet, nothing is printed.
    """

    options: argparse.Namespace
    drawn: bool = False
    _next: float = field(default_factory=lambda: time.monotonic() + _EVERY)

    def show(self, done: float, total: float, text: str = "", *_) -> None:
        """Show which share of the work is done, and a text."""
        if self.options.quiet:
            return
        share = min(1.0, done / total) if total else 0.0
        if not sys.stderr.isatty():
            if (now := time.monotonic()) >= self._next:
                self._next = now + _EVERY
                print(f"relscope: {share:4.0%}  {visible(text)}", file=sys.stderr, flush=True)
            return
        line = f"[{'=' * round(_WIDTH * share):<{_WIDTH}}] {share:4.0%}  {visible(text)}"
        self.drawn, line = True, line[: shutil.get_terminal_size().columns - 1]
        print(f"{_ERASE}{line}", end="", file=sys.stderr, flush=True)

    def event(self, event: Mapping[str, Any]) -> None:
        """Show the progress in an event that a job sent."""
        self.show(event["done"], event["total"], event["message"])

    def __exit__(self, *_) -> None:
        if self.drawn:
            print(_ERASE, end="", file=sys.stderr, flush=True)


def say(options: argparse.Namespace, text: str) -> None:
    """Print a line about the work on stderr. With --quiet, nothing is printed."""
    if not options.quiet:
        print(f"relscope: {visible(text)}", file=sys.stderr, flush=True)


AT_ONCE_SECONDS = 2.0  # a shorter job runs in this process, because another process takes seconds to start


@contextmanager
def queue(options: argparse.Namespace, n_jobs: int | None = None) -> Iterator[JobQueue]:
    """Open a job queue on the cluster of --scheduler or, without that option, on this machine with at most
    one process per job. Without a cluster, a single job runs in this process, and so do all jobs if Dask (the
    extra ``cluster``) is not installed. Shards are then computed in threads.
    """
    from relcore.runs.jobs import JobQueue, QueueInPlace

    cluster = JobQueue(options.scheduler)
    # Compute here, because another process would take seconds to start and to import the libraries.
    if (n_jobs == 1 or find_spec("distributed") is None) and not cluster.address:
        with Bar(options) as bar:
            yield QueueInPlace(bar.event)
        return
    cluster.n_workers = min(cluster.n_workers, n_jobs or cluster.n_workers)
    try:
        with Bar(options) as bar:
            bar.show(0, 1, "starting")
            cluster.start()
        yield cluster
    except KeyboardInterrupt:
        # In a terminal, the other processes also received the signal and may be partly closed. Their errors
        # do not matter.
        with Bar(options) as bar, suppress(Exception):
            bar.show(0, 1, "stopping")
            cluster.close()
        raise
    finally:
        cluster.close()


def follow(queue: JobQueue, jobs: Sequence[Job], options: argparse.Namespace, pause: float = 0.1) -> None:
    """Wait for jobs and show a progress bar. Ctrl-C stops the jobs.

    Raises
    ------
    JobQueueError
        A job failed.
    """
    with Bar(options) as bar:
        try:
            while not all(job.status().ended for job in jobs):
                bar.show(*_standing(jobs))
                time.sleep(pause)
        except KeyboardInterrupt:
            if queue.address:  # processes of this machine end with the queue
                for job in jobs:
                    job.cancel()
            raise
    for job in jobs:
        job.result()


def _standing(jobs: Sequence[Job]) -> tuple[float, float, str]:
    """Summarise the jobs for a progress bar: the number of finished jobs, where a running job counts as a
    fraction; the number of all jobs; and a text with the message and the time left of the first running
    job."""
    known = [(job, job.status()) for job in jobs]
    shares = [status.done / status.total for _, status in known if status.total and not status.ended]
    ended = sum(status.ended for _, status in known)
    job, status = next(((job, status) for job, status in known if status.state == "running"), known[0])
    left = ""
    if status.time_left:
        left = f" · {status.time_left}"
    number = ""
    if len(jobs) > 1 and ended < len(jobs):
        number = f"{ended + 1} of {len(jobs)} · "
    return ended + sum(shares), len(jobs), f"{number}{status.message or job.title}{left}"
