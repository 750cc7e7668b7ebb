"""Study: a question, what can be chosen, and the runs that answer it, each a job whose result is kept."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import FORMER_STUDIES, STUDIES
from relcore.base.records import need_plain
from relcore.base.settings import Setting, complete
from relcore.figures.charts import Lines, Matrices, PictureGrid
from relcore.figures.export import Exportable, chart_exportable
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry, FinishedGroup
from relcore.runs.jobs import Engine, Job
from relcore.runs.progress import Context, Expected, Report, expect, note_pace
from relcore.runs.store import Store
from relcore.studies.statistics import findings_over, findings_table
from relcore.tasks.recipe import Recipe

Settings = Mapping[str, Any]  # plain JSON, the random state among it
Chart = Lines | Matrices | PictureGrid


def Option(
    name: str,
    label: str,
    choices: tuple,
    default: Any,
    many: bool = False,
    help: str = "",
    names: Iterable[str] = (),
) -> Setting:
    """A setting that the user chooses: one of the choices, or several where `many`; without choices, any list
    of strings (such as ids). `names` are shown for the choices.
    """
    named = dict(zip(choices, names or map(str, choices), strict=True))
    item = type(choices[0]) if choices else str
    given = Setting(label=label, choices=named, help=help, distinct=many and bool(choices))
    return complete(given, name, tuple[item, ...] if many else item, default)


def states(draws: str, default: int = 3, choices: tuple[int, ...] = (3, 5, 10)) -> Setting:
    return Option("n_states", "Random states", choices, default, help=f"Each draws {draws}.")


@dataclass(frozen=True)
class RunResult:
    """What one run found: numbers (and words) by name, and curves by epoch or other arrays."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class Study(ABC):
    """`kind` is its name among `names.STUDIES`. Raise `version` when a run would give another result. A
    `table` is `StudyRuns.table` of one finished run or more.

    Attributes
    ----------
    by, measures, names
        Of the usual findings: the column that is varied, the measured columns with their names, and the
        names of the values of `by`, where they are no numbers.
    cost : seconds, or by data
        Of a run on one core, where `seconds` does not compute them.
    """

    version: ClassVar[int] = 1
    options: ClassVar[tuple[Setting, ...]]
    by: ClassVar[str] = ""
    measures: ClassVar[Mapping[str, str]] = {}
    names: ClassVar[Mapping[Any, str]] = {}
    cost: ClassVar[float | Mapping[str, float]] = 5.0

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def title(self) -> str:
        return STUDIES[self.kind].title

    @abstractmethod
    def runs(self, options: Settings) -> list[dict[str, Any]]:
        """The settings of every run, in the order in which they start; see `grid`."""

    @abstractmethod
    def measure(self, settings: Settings, store: Store, report: Report) -> RunResult:
        """One run; equal settings give an equal result."""

    def seconds(self, settings: Settings) -> float:
        return self.cost[settings["data"]] if isinstance(self.cost, Mapping) else self.cost

    @abstractmethod
    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Chart]:
        """What to draw, by name; empty while there is too little."""

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        """The answer in numbers. Columns: what, value, low, high (95 %), n, interval (how it was found)."""
        return findings_table(findings_over(table, self.by, self.measures, self.names))

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        """The finding in one sentence, with its 95 % interval; "" while too few runs are done to say it."""
        return ""


@dataclass(frozen=True)
class StudySpec:
    """Which study with which choices: hashes, and goes to JSON and back."""

    kind: str
    options: tuple[tuple[str, Any], ...]
    version: int = 1

    @classmethod
    def of(cls, study: Study, options: Settings | None = None) -> StudySpec:
        """The spec of these choices; what is not chosen takes its default.

        Raises
        ------
        SpaceError
            An option that the study does not have, or no such choice.
        """
        given, known = dict(options or {}), {option.name: option for option in study.options}
        if unknown := sorted(set(given) - set(known)):
            raise SpaceError(f"{study.kind}: expected options among {quote(known)}, got {quote(unknown)}")
        chosen = {}
        for name, option in known.items():
            value = given.get(name, option.default)
            chosen[name] = tuple(value) if option.is_tuple and isinstance(value, list) else value
            replace(option, name=f"{study.kind}: {name}").check(chosen[name])
        return cls(study.kind, tuple(chosen.items()), study.version)

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.options)

    def to_json(self) -> dict[str, Any]:
        options = {name: list(value) if isinstance(value, tuple) else value for name, value in self.options}
        return {"study": self.kind, "version": self.version, "options": options}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], known: Callable[[str], Study] | None = None) -> StudySpec:
        """Back from JSON; `known` finds a study by its name, default those of Relscope.

        Raises
        ------
        SpaceError
            Not a study, one of another version, options that it does not have.
        """
        need_plain(record, "study file")
        if (
            not isinstance(record, Mapping)
            or set(record) - {"study", "version", "options"}
            or not isinstance(record.get("study"), str)
            or not isinstance(options := record.get("options", {}), Mapping)
        ):
            raise SpaceError(
                f"study file: expected a JSON object of 'study', 'version' and 'options', got {record!r:.80}"
            )
        study, version = (known or study_of)(record["study"]), record.get("version")
        if version != study.version or isinstance(version, bool):
            raise SpaceError(
                f"study file: expected version {study.version} of {study.kind!r}, got {version!r:.80}; choose"
                " its options again on the Studies page, or use the Relscope that wrote it"
            )
        return cls.of(study, options)


def grid(options: Settings, shared: str, **varied: Iterable) -> list[dict[str, Any]]:
    """Settings of a run for each random state and each combination of what is varied, the last varied
    fastest; with the options named in `shared`.
    """
    named = {name: options[name] for name in shared.split()}
    same = {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}
    return [
        {**same, **dict(zip(varied, chosen, strict=True)), "random_state": state}
        for state, *chosen in itertools.product(range(options["n_states"]), *varied.values())
    ]


def study_of(kind: str) -> Study:
    """The study of this name.

    Raises
    ------
    SpaceError
        There is none.
    """
    if kind in FORMER_STUDIES:
        now = FORMER_STUDIES[kind]
        raise SpaceError(f"study {kind}: version 0.1.0 of Relscope opens it; now it is part of {now!r}")
    need_one_of("study", kind, STUDIES)
    return STUDIES[kind].load()(kind)


# Every run is a job of its own, whose result is in the store the moment it is done.

AFTER_OTHERS = -1  # a grid takes minutes: what somebody waits for goes before its next run
_STATES = ("running", "queued", "failed")
_MOST_SHOWN = 40  # letters of a list in the run table


def run_key(study: Study, settings: Settings) -> str:
    """The store's key of a run: what is changed in its settings, or in the study's code, gives another."""
    return digest_of("study run", study.kind, study.version, dict(settings))


def run_job(context: Context, *, study: Study, settings: dict[str, Any]) -> None:
    if not context.store.has(context.key):  # a worker that dies before its report is given the run again
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
    """The status of a study: counts of runs, their errors, seconds left if known, and why it waits."""

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
    """The runs of one spec: start, stop, status and table. All that lasts is in the store and the engine, so
    another object of the same spec sees the same runs.
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
        runs = zip(self.settings, self.keys, strict=True)
        return [settings for settings, key in runs if not store.has(key, own)]

    def made(self, store: Store) -> FinishedGroup | None:
        """Where the runs come from that came with Relscope; None if all are the store's own."""
        return next((made for key in self.keys if (made := store.made(key))), None)

    def seconds(self, store: Store, n_workers: int = 1, own: bool = False) -> float:
        return self.expected(store, n_workers, own).likely

    def expected(self, store: Store, n_workers: int = 1, own: bool = False) -> Expected:
        """Roughly how long the missing runs take, `n_workers` at a time, by the pace of the runs that are
        done, else of the study's last runs of other settings.
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
        for job in reversed(self._jobs(engine)):
            if not job.status().ended:
                job.cancel()

    def standing(self, engine: Engine) -> Standing:
        done = sum(map(engine.store.has, self.keys))
        known = [(job, job.status()) for job in self._jobs(engine)]
        states = {state: [pair for pair in known if pair[1].state == state] for state in _STATES}
        running = [pair for pair in states["running"] if not engine.store.has(pair[0].key, own=True)]
        under_way = [job for job, _ in running + states["queued"]]
        here = any(job.here for job in under_way)
        return Standing(
            done,
            len(running),
            len(states["queued"]),
            tuple(f"{job.title}: {status.error}" for job, status in states["failed"]),
            len(self),
            self.seconds(engine.store, engine.n_workers, own=here) if under_way else None,
            running[0][1].message if running else "",
        )

    def wait(self, engine: Engine, pause: float = 0.2, report: Report | None = None) -> Standing:
        """Wait until nothing is under way any more."""
        while True:
            standing = self.standing(engine)
            if report:
                report(standing.done, standing.total, standing.message)
            if not standing.under_way:
                return standing
            time.sleep(pause)

    def finish(self, engine: Engine, report: Report | None = None) -> pd.DataFrame:
        """Do what is missing and wait for it; `table` of the whole.

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
        """A row per finished run: its settings, results, seconds and key; the index is the run's number."""
        rows = {number: row for number, key in enumerate(self.keys) if (row := run_row(key, store))}
        return pd.DataFrame.from_dict(rows, orient="index")

    def _jobs(self, engine: Engine) -> list[Job]:
        known = {job.key: job for job in engine.jobs() if job.function is run_job}
        return [known[key] for key in self.keys if key in known]


def run_row(key: str, store: Store) -> dict[str, Any] | None:
    """One row of `StudyRuns.table`; lists by their first letters; None where the store has no such run."""
    entry = store.summary(key)
    if entry is None:
        return None
    facts = entry.metadata
    settings = {name: _shown(value) for name, value in facts["settings"].items()}
    return {**settings, **facts["values"], "seconds": facts["seconds"], "key": key}


def _shown(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    text = ", ".join(map(str, value))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(value)})"


# Figures of studies from their recipes: the runs come from the store, and what is missing is computed.


@dataclass(frozen=True)
class StudyChart(Recipe):
    """One of a study's charts, default its first, of the finished runs; the study's conclusion stands above
    the chart.

    The result is the table of the runs; without it, all runs are computed. The findings are what LaTeX
    prints.
    """

    figure: ClassVar[str] = "study"

    study: dict[str, Any]  # of `StudySpec.to_json`
    chart: str = ""

    def draw(self, result: pd.DataFrame | None = None) -> Exportable:
        """
        Raises
        ------
        SpaceError
            No chart of this name, a run that fails, nothing finished in the table.
        """
        spec = StudySpec.from_json(self.study)
        study, settings = study_of(spec.kind), spec.settings
        table = result
        if table is None:
            from relcore.runs.jobs import Engine  # only what is missing needs processes

            with closing(Engine()) as engine:
                table = StudyRuns(study, spec).finish(engine)
        charts = study.charts(settings, table) if len(table) else {}
        if not charts:
            raise SpaceError(f"{study.title}: expected a run that has finished training, got none")
        chart = self.chart or next(iter(charts))
        need_one_of("chart", chart, charts)
        drawn = charts[chart]
        conclusion = study.conclusion(settings, table)
        if conclusion and isinstance(drawn, Lines):
            drawn = replace(drawn, note=f"{conclusion}\n{drawn.note}".rstrip())
        name = f"relscope-{study.kind}-{chart.replace(' ', '-')}"
        recipe = replace(self, chart=chart).to_json()
        return chart_exportable(drawn, recipe, name, lambda: study.findings(settings, table))
