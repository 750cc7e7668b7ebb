"""`Study`, a question with its options, runs, numbers, charts and sentences, and functions that studies
share."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.earlier import refuse_study
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import PLUGIN_STUDIES, STUDIES
from relcore.base.numbers import band, counted, short
from relcore.base.records import need_plain, parse
from relcore.base.report import Report, Table
from relcore.base.settings import Setting, complete
from relcore.catalog.catalog import SpaceSpec, encode, load
from relcore.catalog.task import Recipe
from relcore.encoders.encoder import DatasetSpec, Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.vision import SmallVision, held_out_rows
from relcore.figures.charts import Line, Lines, Matrices
from relcore.figures.export import Exportable, chart_exportable
from relcore.runs.entries import Entry, FinishedGroup, bundled_results, digest_of, plugins_in
from relcore.runs.jobs import Job, JobQueue, JobStatus
from relcore.runs.store import Context, Progress, Store
from relcore.scores.score import Z95, share_interval
from relcore.spaces.space import LatentSpace, Match, match
from relcore.stitch.stitching import StitchSpec, stitch_matrix

NAMES = {"pearson": "Pearson", "spearman": "Spearman"}


@dataclass(frozen=True)
class Estimate:
    """A number that is estimated from n values, with its 95 % interval. With too few values, the ends of the
    interval are NaN.

    ``f"{estimate:2}"`` gives ``.93 (95 %: .90 to .95)``; ``f"{estimate}"`` has three decimals.
    """

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n: int = 0

    @classmethod
    def around(cls, value: float, half_width: float, n: int) -> Estimate:
        return cls(float(value), float(value - half_width), float(value + half_width), n)

    @property
    def has_interval(self) -> bool:
        return not np.isnan(self.low)

    def __format__(self, digits: str) -> str:
        value, low, high = (short(number, int(digits or 3)) for number in (self.value, self.low, self.high))
        if self.has_interval:
            return f"{value} (95 %: {low} to {high})"
        return value


def _known_pairs(*sides: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    x, y = (np.asarray(side, dtype=float) for side in sides)
    if x.shape != y.shape or x.ndim != 1:
        raise SpaceError(f"correlation: expected pairs of numbers, got {x.shape} and {y.shape}")
    known = ~(np.isnan(x) | np.isnan(y))
    return x[known], y[known]


def correlation(x: Sequence[float], y: Sequence[float], kind: str = "pearson") -> Estimate:
    """The correlation of paired numbers, −1 … 1. Pairs with a NaN are left out.

    The interval is Fisher's: tanh(artanh r ± 1.96 s), with s = 1 / √(n − 3) for Pearson and s = √((1 + r² /
    2) / (n − 3)) for Spearman (Bonett and Wright 2000). The result is NaN if n is below 4, or if x or y is
    constant.
    """
    need_one_of("correlation", kind, NAMES)
    x, y = _known_pairs(x, y)
    n = len(x)
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Estimate(n=n)
    if kind == "spearman":
        x, y = (pd.Series(values).rank().to_numpy() for values in (x, y))
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))
    if n < 4:
        return Estimate(r, n=n)
    s = np.sqrt((1 + r * r / 2 if kind == "spearman" else 1) / (n - 3))
    with np.errstate(divide="ignore"):  # for r = ±1, the interval has no width
        low, high = np.tanh(np.arctanh(r) + np.array([-Z95, Z95]) * s)
    return Estimate(r, float(low), float(high), n)


def mean(values: Iterable[float], bounded: bool = False, among: int = 1) -> Estimate:
    """The mean of values, with Student's 95 % interval. For `bounded` values, such as correlations, the
    interval is computed from 2,000 bootstrap samples.

    NaN and None are left out. The mean of a single value has no interval. If this is one of several means,
    `among` is their number, and the interval is wider, so that all intervals hold at once (Bonferroni).
    """
    values = np.array(list(values), dtype=float)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 2:
        return Estimate(float(values[0]) if n else np.nan, n=n)
    if bounded:
        resampled = np.random.default_rng(0).choice(values, (2000, n)).mean(axis=1)
        return Estimate(float(values.mean()), *np.quantile(resampled, [0.025, 0.975]).tolist(), n)
    from scipy.special import stdtrit  # equals `scipy.stats.t.ppf`, but is imported faster

    return Estimate.around(
        values.mean(), stdtrit(n - 1, 1 - 0.025 / among) * values.std(ddof=1) / np.sqrt(n), n
    )


def mean_score(values: Iterable[float]) -> Estimate:
    """The `mean` of scores. Its interval is cut to 0 … 1; if a score is negative, to −1 … 1."""
    values = np.array(list(values), dtype=float)
    estimate = mean(values)
    least = np.nanmin(values, initial=0)
    most = np.nanmax(values, initial=0)
    cut = {"low": max(estimate.low, -1.0 if least < 0 else 0.0), "high": min(estimate.high, 1.0)}
    if most > 1:
        return estimate
    return replace(estimate, **cut)


def slope(x: Sequence[float], y: Sequence[float]) -> Estimate:
    """The least-squares slope of y on x, with Student's 95 % interval. NaN if there are fewer than three
    pairs or x is constant."""
    x, y = _known_pairs(x, y)
    n = len(x)
    if n < 3 or np.ptp(x) == 0:
        return Estimate(n=n)
    from scipy.stats import linregress, t

    line = linregress(x, y)
    return Estimate.around(line.slope, t.ppf(0.975, n - 2) * line.stderr, n)


def share(flags: Iterable[bool]) -> Estimate:
    flags = np.array(list(flags), dtype=bool)
    n = len(flags)
    if not n:
        return Estimate()
    p = float(flags.mean())
    return Estimate(p, *share_interval(p, n), n)


STUDENT = "Student's t over random states"


def average(table: pd.DataFrame, column: str) -> float:
    return float(table[column].astype(float).mean())


def mean_at(table: pd.DataFrame, by: str, value: Any, column: str) -> Estimate:
    if column in table:
        return mean_score(table.loc[table[by] == value, column])
    return Estimate()


def gains(table: pd.DataFrame, by: str, base: Any, column: str) -> dict[Any, Estimate]:
    """For each value of the column `by`, the mean gain of `column` over the value `base` in the same random
    state.

    The intervals hold for all values at once (Bonferroni), so that the best value can be named. Values whose
    mean has no interval are left out.
    """
    wide = table.pivot(index="random_state", columns=by, values=column).astype(float)
    others = [value for value in dict.fromkeys(table[by]) if value != base and base in wide]
    changes = {value: mean(wide[value] - wide[base], among=len(others)) for value in others}
    return {value: change for value, change in changes.items() if change.has_interval}


def sentence(text: str, *estimates: Estimate) -> str:
    """The text with its {} replaced by the estimates; "" unless each estimate has an interval."""
    if all(estimate.has_interval for estimate in estimates):
        return text.format(*estimates)
    return ""


def finding(what: str, estimate: Estimate, interval: str = STUDENT) -> dict[str, Any]:
    return {"what": what, **vars(estimate), "interval": interval if estimate.has_interval else ""}


def findings_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "value", "low", "high", "n", "interval"])


def findings_over(
    table: pd.DataFrame, by: str, measures: Mapping[str, str], names: Mapping[Any, str] | None = None
) -> list[dict[str, Any]]:
    """The findings for each value of the column `by` and each measured column. Without `names`, the values of
    `by` are numbers.
    """
    noun = by.removeprefix("n_")
    return [
        finding(f"{names[value] if names else f'{noun} {value:g}'}, {name}", mean_score(part[column]))
        for value, part in table.groupby(by, sort=not names)
        for column, name in measures.items()
        if column in part and part[column].notna().any()
    ]


def lines_over(table: pd.DataFrame, x: str, measures: Mapping[str, str]) -> list[Line]:
    """A line for each measured column, over the numbers in column x. Columns without values are left out."""
    lines = []
    for column, name in measures.items():
        if column in table:
            part = table[[x, column]].astype(float).dropna()
        else:
            part = table.iloc[:0]
        means = []
        if len(part):
            means = [mean_score(values) for _, values in part.groupby(x)[column]]
        ends = ([getattr(value, end) for value in means] for end in ("value", "low", "high"))
        if means:
            lines.append(Line(name, sorted(set(part[x])), *ends))
    return lines


def chart(
    table: pd.DataFrame,
    lines: Sequence[Line],
    titles: tuple[str, str],
    rows: str,
    baselines: Mapping[str, str] | None = None,
    **look: Any,
) -> Lines:
    """A chart of lines or points, with axis titles (x, y).

    `rows` is a text about the rows behind the numbers. `baselines` are the names and columns of means that
    are drawn as baselines.
    """
    drawn = "bands"
    if look.get("kind") == "points":
        drawn = "bars"
    note = f"{rows}; {drawn}: 95 % over {table.random_state.nunique()} random states"
    levels = tuple((name, average(table, column)) for name, column in (baselines or {}).items())
    return Lines(tuple(lines), *titles, baselines=levels, note=note, **look)


def points_chart(
    table: pd.DataFrame,
    by: str,
    names: Mapping[Any, str],
    measures: Mapping[str, str],
    *more: Any,
    **look: Any,
) -> Lines:
    """A `chart` over categories. x is the index among `names`, and the measures stand side by side."""
    choices = [choice for choice in names if choice in set(table[by])]
    lines = lines_over(table.assign(place=table[by].map(choices.index)), "place", measures)
    width = look.pop("width", 0.12)
    lines = [
        replace(line, x=line.x + (number - (len(lines) - 1) / 2) * width) for number, line in enumerate(lines)
    ]
    return chart(table, lines, *more, kind="points", x_names=tuple(map(names.get, choices)), **look)


def count_of(table: pd.DataFrame, noun: str = "test rows", column: str = "test rows") -> str:
    return f"{table[column].mean():,.0f} {noun}"


Settings = Mapping[str, Any]  # plain JSON values, including the random state
Chart = Lines | Matrices


def Option(
    name: str,
    label: str,
    choices: tuple,
    default: Any,
    many: bool = False,
    help: str = "",
    names: Iterable[str] = (),
) -> Setting:
    """A setting that the user chooses. It is one of the choices; if `many`, it may be several. Without
    choices, it is any list of strings. `names` are the labels of the choices.
    """
    item = type((*choices, "")[0])
    named = dict(zip(choices, names or map(str, choices), strict=True))
    given = Setting(label=label, choices=named, help=help, distinct=many and bool(choices))
    return complete(given, name, tuple[item, ...] if many else item, default)


def states(draws: str, default: int = 3, choices: tuple[int, ...] = (3, 5, 10)) -> Setting:
    return Option("n_states", "Random states", choices, default, help=f"Each draws {draws}.")


@dataclass(frozen=True)
class RunResult:
    values: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class Study(ABC):
    """The base class of studies. `kind` is the name in `names.STUDIES`. Increase `version` when results
    change.

    The class of a plugin's study has the attributes `title`, `question` and `paper` (the source of the
    question). It may have `topic`, the group in which the page lists the study.

    A `table` is the result of `StudyRuns.table`, with at least one finished run. Pages show the docstring of
    a study.

    Attributes
    ----------
    by, measures, names
        The default findings use these: the varied column, the measured columns with their names, and names
        for the values of `by` if these are not numbers.
    shared, varied
        The default runs use these: `shared` names the options that are settings of every run, and `varied`
        gives the values of each further setting, or the name of the option that has these values.
    reading : str
        A sentence that says how to read the charts.
    cost : seconds, or by the value of a setting
        The time of a run on one core in seconds, or this time for each value of a setting. Not needed if the
        study overrides `seconds`.
    """

    version: ClassVar[int] = 1
    options: ClassVar[tuple[Setting, ...]]
    shared: ClassVar[str] = ""
    varied: ClassVar[Mapping[str, str | Iterable]] = {}
    by: ClassVar[str] = ""
    measures: ClassVar[Mapping[str, str]] = {}
    names: ClassVar[Mapping[Any, str]] = {}
    reading: ClassVar[str] = ""
    cost: ClassVar[float | Mapping[str, float]] = 5.0

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def title(self) -> str:
        return STUDIES[self.kind].title

    @property
    def question(self) -> str:
        return STUDIES[self.kind].help

    @property
    def paper(self) -> str:
        return STUDIES[self.kind].paper

    @property
    def topic(self) -> str:
        return STUDIES[self.kind].topic

    def runs(self, options: Settings) -> list[dict[str, Any]]:
        """The settings of every run, in the order in which runs start (see `grid`)."""
        chosen = {name: options[of] if isinstance(of, str) else of for name, of in self.varied.items()}
        return grid(options, self.shared, **chosen)

    @abstractmethod
    def measure(self, settings: Settings, store: Store, report: Progress) -> RunResult:
        """Compute one run. Equal settings give equal results."""

    def seconds(self, settings: Settings) -> float:
        cost = self.cost
        given = map(str, settings.values())
        if isinstance(cost, Mapping):
            return next(cost[value] for value in given if value in cost)
        return cost

    @abstractmethod
    def charts(self, options: Settings, table: pd.DataFrame) -> dict[str, Chart]:
        """The charts by name. There are none if the table has too little to draw."""

    def findings(self, options: Settings, table: pd.DataFrame) -> pd.DataFrame:
        """The findings as a table with the columns what, value, low, high (the 95 % interval), n, and
        interval (how it was computed)."""
        return findings_table(findings_over(table, self.by, self.measures, self.names))

    def conclusion(self, options: Settings, table: pd.DataFrame) -> str:
        """The main finding in one sentence, with its 95 % interval; "" if too few runs are done."""
        return ""


@dataclass(frozen=True)
class StudySpec:
    """A study with its options. It is hashable, and can be converted to JSON and back."""

    kind: str
    options: tuple[tuple[str, Any], ...]
    version: int = 1

    @classmethod
    def of(cls, study: Study, options: Settings | None = None) -> StudySpec:
        """The spec of a study with these options. Missing options have their defaults. Raises a SpaceError
        for an unknown option or choice."""
        given = dict(options or {})
        known = {option.name: option for option in study.options}
        if unknown := sorted(set(given) - set(known)):
            raise SpaceError(f"{study.kind}: expected options among {quote(known)}, got {quote(unknown)}")
        chosen = {}
        for name, option in known.items():
            value = given.get(name, option.default)
            if option.is_tuple and isinstance(value, list):
                chosen[name] = tuple(value)
            else:
                chosen[name] = value
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
        """Read a spec from JSON. `known` returns the study with a given name, by default one of Relscope's
        studies.

        Raises a SpaceError if the study has another version or lacks one of the options.
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
        study = (known or study_of)(record["study"])
        version = record.get("version")
        if version != study.version or isinstance(version, bool):
            raise SpaceError(
                f"study file: expected version {study.version} of {study.kind!r}, got {version!r:.80}; choose"
                " its options again in Research, Studies, or use the Relscope that wrote it"
            )
        return cls.of(study, options)


def grid(options: Settings, shared: str, **varied: Iterable) -> list[dict[str, Any]]:
    """The settings of each run: all combinations of random states and `varied` values. Each run also has the
    options that `shared` names.
    """
    named = {name: options[name] for name in shared.split()}
    same = {name: list(value) if isinstance(value, tuple) else value for name, value in named.items()}
    return [
        {**same, **dict(zip(varied, chosen, strict=True)), "random_state": state}
        for state, *chosen in product(range(options["n_states"]), *varied.values())
    ]


def study_of(kind: str) -> Study:
    """The study with this name. Raises a SpaceError for an unknown name."""
    refuse_study(kind)
    if kind in PLUGIN_STUDIES and kind not in STUDIES:
        raise SpaceError(
            f"study {kind}: expected the package relscope-studies, which has it, got none; install the folder"
            " plugins/studies of Relscope's source: pip install ./plugins/studies"
        )
    need_one_of("study", kind, STUDIES)
    study = STUDIES[kind].load()(kind)
    if STUDIES[kind].plugin and (where := getattr(sys.modules[type(study).__module__], "__file__", "")):
        bundled_results().add(Path(where).parent / "finished")
    return study


AFTER_OTHERS = -1  # a grid takes minutes, so jobs that somebody waits for run first
_STATES = ("running", "queued", "failed", "cancelled")
_RUNS_BEFORE = 10
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
                if plan:
                    (here if store.bundled_group(key) is None else came).append((lasted, plan))
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
        return StudyProgress(
            done,
            len(running),
            len(states["queued"]),
            tuple(f"{job.title}: {status.error}" for job, status in states["failed"]),
            len(self),
            self._left(queue, here, running) if under_way else None,
            running[0][1].message if running else "",
            bool(states["cancelled"]),
            sum(share for share, _ in self._shares(queue, running)),
            _counted_share(running[0][1]) if running else 0.0,
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
        planned = dict(zip(self.keys, map(self.study.seconds, self.settings), strict=True))
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

    def _jobs(self, queue: JobQueue) -> list[Job]:
        known = {job.key: job for job in queue.jobs() if job.function is run_job}
        return [known[key] for key in self.keys if key in known]


def run_row(key: str, store: Store) -> dict[str, Any] | None:
    if (entry := store.summary(key)) is None:
        return None
    facts = entry.metadata
    settings = {name: _short_value(value) for name, value in facts["settings"].items()}
    return {**settings, **facts["values"], "seconds": facts["seconds"], "key": key}


def _short_value(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    text = ", ".join(map(str, value))
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}… ({len(value)})"


@dataclass(frozen=True)
class StudyChart(Recipe, figure="study"):
    """The recipe of a chart of a study, by default its first one, with the study's conclusion. In LaTeX, the
    findings are printed instead.

    The result is the table of the runs. Without it, all runs are computed.
    """

    study: dict[str, Any]  # as returned by `StudySpec.to_json`
    chart: str = ""

    def draw(self, result: pd.DataFrame | None = None) -> Exportable:
        """Draw the chart. Raises a SpaceError if the chart is unknown, a run fails, or the table is empty."""
        spec = StudySpec.from_json(self.study)
        study = study_of(spec.kind)
        settings = spec.settings
        if (table := result) is None:
            with closing(JobQueue()) as queue:
                table = StudyRuns(study, spec).finish(queue)
        charts = {}
        if len(table):
            charts = study.charts(settings, table)
        if not charts:
            raise SpaceError(f"{study.title}: expected a run that has finished training, got none")
        chart = self.chart or next(iter(charts))
        need_one_of("chart", chart, charts)
        figure = charts[chart]
        conclusion = study.conclusion(settings, table)
        if conclusion and isinstance(figure, Lines):
            figure = replace(figure, note=f"{conclusion}\n{figure.note}".rstrip())
        name = f"relscope-{study.kind}-{chart.replace(' ', '-')}"
        recipe = replace(self, chart=chart).to_json()
        return chart_exportable(figure, recipe, name, lambda: study.findings(settings, table))


# The data of studies. Anchors are never test rows.

LABELLED = ("digits", "sentences")
DATA = Option(
    "data",
    "Encoders of",
    LABELLED,
    "digits",
    help=(
        "Digits: an MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on."
        " Sentences of 16 Wikipedia articles: TF-IDF + SVD and MiniLM's layers 2, 4 and 6. The first run"
        " encodes them, which takes a minute or two."
    ),
)
SPACES = Option(
    "spaces", "The session's two spaces", (), (), many=True, help="Instead of the two bundled word spaces."
)
_WORDS = (SpaceSpec("bundled", "word2vec-novels"), SpaceSpec("bundled", "fasttext-novels"))


def dataset_of(data: str) -> DatasetSpec:
    if data == "digits":
        return DatasetSpec("digits")
    return DatasetSpec("wikipedia", limit=2000, options=(("articles", 16), ("per_article", 400)))


def encoders_of(data: str) -> tuple[Encoder, ...]:
    if data == "digits":
        return tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit"))
    from relcore.encoders.transformers import MiniLM

    return TfidfSvd(), MiniLM((2, 4, 6))


def labelled_spaces(data: str, store: Store, report: Progress) -> list[LatentSpace]:
    encoders = encoders_of(data)
    dataset = dataset_of(data)
    return [space for encoder in encoders for space in encode(dataset, encoder, store, report)]


def test_ids_of(data: str, space: LatentSpace) -> tuple[str, ...]:
    """The ids of the rows on which the encoders were not trained; () if the encoders are trained without
    labels."""
    if data == "digits":
        return tuple(space.ids[held_out_rows(len(space))])
    return ()


def _specs_and_digests(spaces: Sequence[str]) -> list[tuple[SpaceSpec, str]]:
    if not spaces:
        return [(spec, "") for spec in _WORDS]
    try:
        records = [dict(parse(text, "spaces")) for text in spaces]
        digests = [record.pop("digest", "") for record in records]
        specs = [SpaceSpec.from_json(record) for record in records]
    except (ValueError, AttributeError, TypeError) as error:
        raise SpaceError(f"spaces: expected two spaces as JSON, got something else ({error})") from error
    if len(specs) != 2:
        raise SpaceError(f"spaces: expected two, a source and a target, got {len(specs)}")
    return list(zip(specs, digests, strict=True))


def word_pair(spaces: Sequence[str], store: Store) -> Match:
    """Match two word spaces by id. `spaces` are descriptions as JSON from a session; if it is empty, the
    bundled spaces are used.

    Raises a SpaceError if a description is invalid or a space has changed since.
    """
    loaded = []
    for spec, digest in _specs_and_digests(spaces):
        space = load(spec, store)
        if digest and space.digest != digest:
            got = f"{space.digest[:8]}: it has changed since"
            raise SpaceError(f"{space.name!r}: expected the content {digest[:8]}, got {got}")
        loaded.append(space)
    return match(*loaded)


OWN = "absolute, same space"
MEASURES = {
    "relative, same space": "relative, same space",
    "relative, stitched": "relative, stitched",
    "whitened, same space": "whitened, same space",
    "whitened, stitched": "whitened, stitched",
}
BASELINES = {"absolute, not stitched": OWN, "chance": "chance"}


def stitched_values(spaces: list[LatentSpace], spec: StitchSpec) -> dict[str, Any]:
    """The mean accuracy of each method: ``"<method>, same space"`` is the mean over encoders, and
    ``"<method>, stitched"`` is the mean over pairs.

    Missing values are None. "chance" is the accuracy of always predicting the most frequent class.
    """
    result = stitch_matrix(spaces, spec)
    values = {}
    stitched = ~np.eye(len(spaces), dtype=bool)
    for method in spec.methods:
        scores = result.matrix(method, "accuracy")[0]
        pairs = scores[stitched]
        values[f"{method}, same space"] = float(scores[~stitched].mean())
        if np.isnan(pairs).all():
            values[f"{method}, stitched"] = None
        else:
            values[f"{method}, stitched"] = float(np.nanmean(pairs))
    return values | {"chance": result.chance(), "test rows": result.n_test}


def _counted_share(status: JobStatus) -> float:
    if status.total:
        return min(1.0, status.done / status.total)
    return 0.0


def study_report(runs: StudyRuns, table: pd.DataFrame, store: Store, chart: str = "") -> Report:
    """The report of a study. It has the conclusion and the findings. If runs are missing, it tells on how
    many runs they rest."""
    study = runs.study
    spec = runs.spec
    findings = table
    if len(table):
        findings = study.findings(spec.settings, table)
    conclusion = ""
    if len(table):
        conclusion = study.conclusion(spec.settings, table)
    notes = []
    bundled = None
    if groups := [group for key in runs.keys if (group := store.bundled_group(key))]:
        bundled = {"runs": len(groups), "date": groups[0].date, "commit": groups[0].commit}
        bundled["made"] = groups[0].in_words
        notes.append(f"{len(groups):,} of these runs came with Relscope. {groups[0].in_words}")
    shown = [["finding", "value", "95 %", "n", "interval"]]
    for row in findings.itertuples() if len(findings) else ():
        if row.low != row.low:
            interval = ""
        else:
            interval = band(row.low, row.high)
        shown.append([row.what, short(row.value), interval, f"{row.n:,}", row.interval])
    sentence = conclusion or "No finding yet."
    if len(table) < len(runs):
        sentence += f" So far: {len(table):,} of {counted(len(runs), 'run')}."
    return Report(
        sentence,
        [Table("rows", table), Table("findings", findings, shown if len(findings) else ())],
        {"study": spec.to_json(), "came_with_relscope": bundled, "conclusion": conclusion},
        notes,
        {"study": lambda: StudyChart(study=spec.to_json(), chart=chart).draw(table)},
    )
