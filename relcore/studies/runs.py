"""The runs of a study as jobs: which are finished, how long the others take, and their table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.runs.entries import Entry, FinishedGroup, digest_of, plugins_in
from relcore.runs.jobs import Job, JobQueue, JobStatus
from relcore.runs.store import Store
from relcore.runs.work import Context, Progress
from relcore.studies.study import Settings, Study, StudySpec

AFTER_OTHERS = -1  # a grid takes minutes, so jobs that somebody waits for run first
_STATES = ("running", "queued", "failed", "cancelled")
_RUNS_BEFORE = 3
_MOST_SHOWN = 40  # number of characters of a list in the table of runs


def run_key(study: Study, settings: Settings) -> str:
    used = plugins_in(study.kind, dict(settings))
    return digest_of("study run", study.kind, study.version, dict(settings), *used)


def run_job(context: Context, *, study: Study, settings: dict[str, Any]) -> None:
    if not context.store.has(context.key):  # else its worker died after storing the result
        _run(study, settings, context.store, context.report)


def finished_run(study: Study, settings: Settings, store: Store, report: Progress) -> Entry:
    """The stored result of a run that other runs need. If it is missing, it is computed and stored."""
    key = run_key(study, settings)
    if (entry := store.get(key)) is not None:
        return entry
    _run(study, settings, store, report)
    return store.get(key)


def _run(study: Study, settings: Settings, store: Store, report: Progress) -> None:
    began = time.perf_counter()
    result = study.measure(settings, store, report)
    facts = {
        "study": study.kind,
        "version": study.version,
        "settings": dict(settings),
        "values": result.values,
    }
    seconds = round(time.perf_counter() - began, 3)
    store.put(run_key(study, settings), result.arrays, {**facts, "seconds": seconds, "finished": time.time()})


@dataclass(frozen=True)
class StudyProgress:
    done: int
    running: int
    waiting: int
    failed: tuple[str, ...]
    total: int
    seconds_left: float | None = None
    message: str = ""
    stopped: bool = False
    begun: float = 0.0  # sum of the finished shares of the running runs
    part: float = 0.0  # finished share of the step that `message` names
    seconds_so_far: float = 0.0  # of the running run that began first

    @property
    def under_way(self) -> bool:
        return self.running + self.waiting > 0

    @property
    def complete(self) -> bool:
        return self.done == self.total


class StudyRuns:
    """All runs of a study with the options of `spec`. Their results are in the store, and their jobs are in
    the job queue."""

    def __init__(self, study: Study, spec: StudySpec) -> None:
        self.study = study
        self.spec = spec
        self.settings = study.runs(spec.settings)

    def __len__(self) -> int:
        return len(self.settings)

    @cached_property
    def keys(self) -> list[str]:
        return [run_key(self.study, settings) for settings in self.settings]

    def missing(self, store: Store, own: bool = False) -> list[dict[str, Any]]:
        runs = zip(self.settings, self.keys, strict=True)
        return [settings for settings, key in runs if not store.has(key, own)]

    def bundled_group(self, store: Store) -> FinishedGroup | None:
        """A group of bundled results that contains some of these runs; None if all were computed here."""
        return next((made for key in self.keys if (made := store.bundled_group(key))), None)

    def pace(self, store: Store) -> float:
        """The smoothed ratio of measured to estimated seconds of a run. It is a weighted mean of two ratios:
        the ratio of the bundled runs (1 if there are none), which counts as `_RUNS_BEFORE` runs, and the
        median ratio of the runs that were computed here."""
        came = []
        here = []
        for key in self.keys:
            if entry := store.summary(key):
                lasted = entry.metadata["seconds"]
                plan = self.study.seconds(entry.metadata["settings"])
                if plan and store.bundled_group(key) is None:
                    here.append((lasted, plan))
                elif plan:
                    came.append((lasted, plan))
        before = 1.0
        if came:
            before = sum(lasted for lasted, _ in came) / sum(plan for _, plan in came)
        # The median, because the mean is raised by the first runs, which also load libraries and train models
        # that all runs use.
        now = 1.0
        if here:
            now = float(np.median([lasted / plan for lasted, plan in here]))
        return (_RUNS_BEFORE * before + len(here) * now) / (_RUNS_BEFORE + len(here))

    def expected(self, store: Store, n_workers: int = 1, own: bool = False) -> float:
        """The estimated seconds of the missing runs, before they are multiplied by `pace`. With `own`,
        bundled results count as missing."""
        missing = [self.study.seconds(settings) for settings in self.missing(store, own)]
        return max(sum(missing) / n_workers, max(missing, default=0.0))

    def start(self, queue: JobQueue, here: bool = False) -> None:
        """Submit or resume the missing runs. With `here`, runs with bundled results count as missing."""
        for number, (settings, key) in enumerate(zip(self.settings, self.keys, strict=True), start=1):
            if not queue.store.has(key, own=here):
                title = f"{self.study.title}: run {number} of {len(self)}"
                arguments = {"study": self.study, "settings": settings}
                queue.submit(key, run_job, title=title, priority=AFTER_OTHERS, here=here, **arguments)

    def stop(self, queue: JobQueue) -> None:
        for job in reversed(self._jobs(queue)):
            if not job.status().ended:
                job.cancel()

    def progress(self, queue: JobQueue) -> StudyProgress:
        known = [(job, job.status()) for job in self._jobs(queue)]
        states = {state: [pair for pair in known if pair[1].state == state] for state in _STATES}
        running = [pair for pair in states["running"] if not queue.store.has(pair[0].key, own=True)]
        under_way = [job for job, _ in running + states["queued"]]
        here = any(job.here for job in under_way)
        done = sum(queue.store.has(key, own=here) for key in self.keys)
        left = None
        if under_way:
            left = self._left(queue, here, running)
        return StudyProgress(
            done,
            len(running),
            len(states["queued"]),
            tuple(f"{job.title}: {status.error}" for job, status in states["failed"]),
            len(self),
            left,
            running[0][1].message if running else "",
            bool(states["cancelled"]),
            sum(share for share, _ in self._shares(queue, running)),
            _counted_share(running[0][1]) if running else 0.0,
            max((status.seconds for _, status in running), default=0.0),
        )

    def _left(self, queue: JobQueue, here: bool, running: Sequence[tuple[Job, JobStatus]]) -> float:
        begun = sum(share * plan for share, plan in self._shares(queue, running))
        expected = self.expected(queue.store, queue.n_workers, own=here)
        return max(0.0, expected * self.pace(queue.store) - begun / queue.n_workers)

    def _shares(
        self, queue: JobQueue, running: Sequence[tuple[Job, JobStatus]]
    ) -> Iterator[tuple[float, float]]:
        """For each run that is computed now, yield the share that is done, at most .9, and its expected
        seconds. The share is estimated by the clock and by the run's own count; the larger estimate counts.
        """
        pace = self.pace(queue.store)
        seconds = [self.study.seconds(settings) for settings in self.settings]
        planned = dict(zip(self.keys, seconds, strict=True))
        for job, status in running:
            plan = planned[job.key] * pace
            yield min(0.9, max(_counted_share(status), status.seconds / max(plan, 1e-9))), plan

    def wait(self, queue: JobQueue, pause: float = 0.2, report: Progress | None = None) -> StudyProgress:
        while True:
            progress = self.progress(queue)
            if report:
                report(progress.done, progress.total, progress.message)
            if not progress.under_way:
                return progress
            time.sleep(pause)

    def finish(self, queue: JobQueue, report: Progress | None = None) -> pd.DataFrame:
        """Compute the missing runs, and return the `table` of all runs. Raises a SpaceError if a run fails.
        Call it again to resume.
        """
        if self.missing(queue.store):
            self.start(queue)
        progress = self.wait(queue, report=report)
        if not progress.complete:
            why = "it was stopped"
            if progress.failed:
                why = progress.failed[0]
            raise SpaceError(f"{self.study.title}: {progress.done} of {len(self)} runs are done; {why}")
        return self.table(queue.store)

    def table(self, store: Store) -> pd.DataFrame:
        """The table of the finished runs, indexed by run number. Its columns are settings, results, seconds
        and key."""
        rows = {number: row for number, key in enumerate(self.keys) if (row := run_row(key, store))}
        return pd.DataFrame.from_dict(rows, orient="index")

    def bundled_table(self, store: Store) -> pd.DataFrame:
        """The `table` of those runs that came with Relscope, although they may have been run here since."""
        rows = {}
        if store.finished is not None:
            summaries = [(number, key, store.finished.summary(key)) for number, key in enumerate(self.keys)]
            rows = {number: _row_of(entry.metadata, key) for number, key, entry in summaries if entry}
        return pd.DataFrame.from_dict(rows, orient="index")

    def _jobs(self, queue: JobQueue) -> list[Job]:
        known = {job.key: job for job in queue.jobs() if job.function is run_job}
        return [known[key] for key in self.keys if key in known]


def run_row(key: str, store: Store) -> dict[str, Any] | None:
    if (entry := store.summary(key)) is None:
        return None
    return _row_of(entry.metadata, key)


def _row_of(facts: Mapping[str, Any], key: str) -> dict[str, Any]:
    settings = {name: _short_value(value) for name, value in facts["settings"].items()}
    return {**settings, **facts["values"], "seconds": facts["seconds"], "key": key}


def _short_value(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    text = ", ".join(map(str, value))
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}… ({len(value)})"


def _counted_share(status: JobStatus) -> float:
    if status.total:
        return min(1.0, status.done / status.total)
    return 0.0
