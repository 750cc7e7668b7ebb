"""Runs: every run of a study a job of its own, whose result is in the store the moment it is done, and
never computed twice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.charts.lines import Line
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry, FinishedGroup
from relcore.runs.jobs import Engine, Job
from relcore.runs.progress import Context, Expected, Report, expect, note_pace
from relcore.runs.store import Store
from relcore.studies.statistics import Estimate, mean
from relcore.studies.study import Settings, Study, StudySpec, finding

AFTER_OTHERS = -1  # a grid takes minutes: what somebody waits for goes before its next run
_MOST_SHOWN = 40  # letters of a list in the run table


def run_key(study: Study, settings: Settings) -> str:
    """The store's key of a run: what is changed in its settings, or in the study's code, gives another."""
    return digest_of("study run", study.kind, study.version, dict(settings))


def run_job(context: Context, *, study: Study, settings: dict[str, Any]) -> None:
    """One run as a job of the Engine, under `run_key`."""
    if not context.store.has(
        context.key
    ):  # a worker that dies between result and report is given the same run again
        _run(study, settings, context.store, context.report)


def finished_run(study: Study, settings: Settings, store: Store, report: Report) -> Entry:
    """A run that another one needs, from the store, else computed now and kept."""
    key = run_key(study, settings)
    if (entry := store.get(key)) is not None:
        return entry
    _run(study, settings, store, report)
    return store.get(key)


def _run(study: Study, settings: Settings, store: Store, report: Report) -> None:
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
    note_pace(store, _kind(study), study.seconds(settings), seconds)


def _kind(study: Study) -> str:
    return f"study/{study.kind}"


@dataclass(frozen=True)
class Standing:
    """The status of a study: counts of runs, seconds left if known, errors, one per run, and why it waits,
    if it does.
    """

    done: int
    running: int
    waiting: int
    failed: tuple[str, ...]
    total: int
    seconds_left: float | None = None
    message: str = ""

    @property
    def under_way(self) -> bool:
        return self.running + self.waiting > 0

    @property
    def complete(self) -> bool:
        return self.done == self.total


class StudyRuns:
    """The runs of one spec: which are done, which are under way, start, stop, and the table of what they
    found.

    Whoever makes it again for the same spec sees the same runs: all that lasts is in the store and in the
    engine.
    """

    def __init__(self, study: Study, spec: StudySpec) -> None:
        self.study, self.spec = study, spec
        self.settings = study.runs(spec.settings)

    def __len__(self) -> int:
        return len(self.settings)

    @cached_property
    def keys(self) -> list[str]:
        return [run_key(self.study, settings) for settings in self.settings]

    def missing(self, store: Store, own: bool = False) -> list[dict[str, Any]]:
        """Settings of the runs that the store does not have; `own` as in `Store.has`."""
        return [
            settings
            for settings, key in zip(self.settings, self.keys, strict=True)
            if not store.has(key, own)
        ]

    def made(self, store: Store) -> FinishedGroup | None:
        """When the runs were computed that came with Relscope; None where there are none, or where all are
        the store's own.
        """
        return next((made for key in self.keys if (made := store.made(key))), None)

    def seconds(self, store: Store, n_workers: int = 1, own: bool = False) -> float:
        """Roughly how long the missing runs take, `n_workers` at a time; see `expected`."""
        return self.expected(store, n_workers, own).likely

    def expected(self, store: Store, n_workers: int = 1, own: bool = False) -> Expected:
        """The same with its pace: that of the runs that are done, else of the study's last runs of other
        settings.
        """
        missing = [self.study.seconds(settings) for settings in self.missing(store, own)]
        seconds = max(sum(missing) / n_workers, max(missing, default=0.0))
        known = [entry.metadata for entry in map(store.summary, self.keys) if entry]
        expected = sum(self.study.seconds(facts["settings"]) for facts in known)
        if not expected:
            return expect(store, _kind(self.study), seconds)
        slower = sum(facts["seconds"] for facts in known) / expected
        return Expected(_kind(self.study), seconds, slower, len(known))

    def start(self, engine: Engine, here: bool = False) -> None:
        """Submit the missing runs; this also resumes a stopped study. With `here`, those that came with
        Relscope, too.
        """
        for number, (settings, key) in enumerate(zip(self.settings, self.keys, strict=True), start=1):
            if not engine.store.has(key, own=here):
                title = f"{self.study.title}: run {number} of {len(self)}"
                arguments = {"study": self.study, "settings": settings}
                engine.submit(key, run_job, title=title, priority=AFTER_OTHERS, here=here, **arguments)

    def stop(self, engine: Engine) -> None:
        """Cancel all runs under way: the last first, so that none begins meanwhile. What is done stays."""
        for job in reversed(self._jobs(engine)):
            if not job.status().ended:
                job.cancel()

    def standing(self, engine: Engine) -> Standing:
        done = sum(map(engine.store.has, self.keys))
        known = [(job, job.status()) for job in self._jobs(engine)]
        running = [
            one for one in known if one[1].state == "running" and not engine.store.has(one[0].key, own=True)
        ]
        waiting = [job for job, status in known if status.state == "queued"]
        failed = [f"{job.title}: {status.error}" for job, status in known if status.state == "failed"]
        here = any(job.here for job, _ in running) or any(job.here for job in waiting)
        left = self.seconds(engine.store, engine.n_workers, own=here) if running or waiting else None
        message = running[0][1].message if running else ""
        return Standing(done, len(running), len(waiting), tuple(failed), len(self), left, message)

    def wait(self, engine: Engine, pause: float = 0.2, report: Report | None = None) -> Standing:
        """Wait until nothing is under way any more; `report` is called as ``report(done, total,
        message)``.
        """
        while (standing := self.standing(engine)).under_way:
            if report:
                report(standing.done, standing.total, standing.message)
            time.sleep(pause)
        if report:
            report(standing.done, standing.total, "")
        return standing

    def finish(self, engine: Engine, report: Report | None = None) -> pd.DataFrame:
        """Do what is missing and wait for it; `run_table` of the whole.

        Raises
        ------
        SpaceError
            A run failed or was stopped: the others are kept, and the same call resumes.
        """
        if self.missing(engine.store):
            self.start(engine)
        standing = self.wait(engine, report=report)
        if not standing.complete:
            why = standing.failed[0] if standing.failed else "it was stopped"
            raise SpaceError(f"{self.study.title}: {standing.done} of {len(self)} runs are done; {why}")
        return self.table(engine.store)

    def table(self, store: Store) -> pd.DataFrame:
        """`run_table` of what is done."""
        return run_table(self.keys, store)

    def _jobs(self, engine: Engine) -> list[Job]:
        known = {job.key: job for job in engine.jobs() if job.function is run_job}
        return [known[key] for key in self.keys if key in known]


def run_table(keys: Sequence[str], store: Store) -> pd.DataFrame:
    """A row per finished run: its settings, its findings, its seconds and its key; lists by their first
    letters.

    The index is the run's number, from 0.
    """
    rows = {number: row for number, key in enumerate(keys) if (row := run_row(key, store))}
    return pd.DataFrame.from_dict(rows, orient="index")


def run_row(key: str, store: Store) -> dict[str, Any] | None:
    """One row of `run_table`; None where the store has no such run."""
    entry = store.summary(key)
    if entry is None:
        return None
    facts = entry.metadata
    settings = {name: _shown(value) for name, value in facts["settings"].items()}
    return {**settings, **facts["values"], "seconds": facts["seconds"], "key": key}


def _shown(value: Any) -> Any:
    if isinstance(value, list | tuple | dict):
        told = ", ".join(map(str, value)) if not isinstance(value, dict) else str(value)
        return told if len(told) <= _MOST_SHOWN else f"{told[:_MOST_SHOWN]}… ({len(value)})"
    return value


# From runs to lines: the mean over random states of what was measured, with its 95 % interval, by what was
# varied.

STUDENT = "Student's t over random states"


def lines_over(table: pd.DataFrame, x: str, measures: Mapping[str, str]) -> list[Line]:
    """A line for each measured column, under its name, over the numbers of column x; columns nowhere
    measured are left out.
    """
    return [line for column, name in measures.items() if len(line := _line(table, x, column, name))]


def points_over(
    table: pd.DataFrame, by: str, choices: Sequence[Any], measures: Mapping[str, str], width: float = 0.12
) -> list[Line]:
    """The same over choices that are no numbers: x is the place among `choices`, the measures side by
    side.
    """
    placed = table.assign(place=[choices.index(value) for value in table[by]])
    lines = lines_over(placed, "place", measures)
    shifts = (np.arange(len(lines)) - (len(lines) - 1) / 2) * width
    return [
        Line(line.name, line.x + shift, line.y, line.low, line.high)
        for line, shift in zip(lines, shifts, strict=True)
    ]


def _line(table: pd.DataFrame, x: str, column: str, name: str) -> Line:
    found = {}
    if column in table:
        measured = table[[x, column]].astype({column: float}).dropna()
        found = {float(value): mean(part[column]) for value, part in measured.groupby(x)}
    low, high = ([getattr(one, end) for one in found.values()] for end in ("low", "high"))
    return Line(name, list(found), [one.value for one in found.values()], low, high)


def findings_over(
    table: pd.DataFrame, by: str, measures: Mapping[str, str], names: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """A finding for each value of column `by` and each measured column; `names` are what people call the
    values.
    """
    rows = []
    for value, part in table.groupby(by, sort=False):
        told = names[value] if names else f"{by.replace('_', ' ')} {value:g}"
        for column, name in measures.items():
            if column in part and part[column].notna().any():
                estimate = mean(part[column].astype(float))
                rows.append(finding(f"{told}, {name}", estimate, STUDENT))
    return rows


def circumstances(table: pd.DataFrame, told: str, drawn: str = "bands") -> str:
    """The note of a chart: what each number rests on, and what its bands (or bars) are."""
    return f"{told}; {drawn}: 95 % over {table.random_state.nunique()} random states"


def average(table: pd.DataFrame, column: str) -> float:
    """The mean of a column over all runs."""
    return float(table[column].astype(float).mean())


def means_at(table: pd.DataFrame, by: str, value: Any, columns: Sequence[str]) -> list[Estimate]:
    """The mean of each column over the runs with this value; empty unless every one of them has an
    interval.
    """
    part = table[table[by] == value] if by in table else table.iloc[:0]
    found = [mean(part[column].astype(float)) for column in columns if column in part]
    return found if len(found) == len(columns) and all(one.has_interval for one in found) else []


def differences(table: pd.DataFrame, by: str, value: Any, other: Any, column: str) -> Estimate:
    """Mean over random states of this column at one value less that at another, in the same state."""
    first, second = (
        table[table[by] == one].set_index("random_state")[column].astype(float) for one in (value, other)
    )
    return mean((first - second).dropna())


def listed(names: Sequence[Any]) -> str:
    """``words, digits and sentences``."""
    names = [str(name) for name in names]
    return " and ".join(([", ".join(names[:-1])] if len(names) > 1 else []) + names[-1:])
