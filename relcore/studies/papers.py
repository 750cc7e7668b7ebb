"""Tables and figures of papers, and the runs whose numbers appear beside them.

A run without a study was measured by an earlier version of Relscope. The run records that version and its
commit.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import STUDIES
from relcore.base.numbers import counted
from relcore.base.report import delimited_text
from relcore.base.version import __version__
from relcore.runs.store import Store
from relcore.studies.study import StudyRuns, StudySpec, study_of

FOLDER = files("relcore") / "data" / "papers"
SHIPPED = FOLDER / "ours"
SHARE = "0 … 1"
_COSINES = "−1 … 1"
_LEAST = {SHARE: 0.0, _COSINES: -1.0}
_CORRELATIONS = ("Pearson", "Spearman")


@dataclass(frozen=True)
class Number:
    """One measured number, such as ``Number("relative, Word2Vec → FastText", "Jaccard", 0.3)``.

    It is a mean over n rows. `deviation` is its sample deviation over `repeats` (random states or trainings),
    and `low` and `high` are its 95 % interval. If the run kept them, `values` are the values of the repeats
    by random state. The `baseline` is the chance level, or the value that `baseline_is` names. A `group` is
    the part of a run for one table or figure.
    """

    label: str
    metric: str
    value: float
    deviation: float | None = None
    unit: str = SHARE
    n: int | None = None
    k: int | None = None
    repeats: int = 1
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    baseline_is: str = "chance"
    group: str = ""
    values: tuple[float, ...] = ()

    def to_record(self) -> dict[str, Any]:
        return {
            part.name: value for part in fields(self) if (value := getattr(self, part.name)) != part.default
        }


@dataclass(frozen=True)
class Ours:
    """The numbers that one run measured on its `data`, with all settings as JSON values.

    `commit` is the short hash of the code that measured them, with "+" if some of it was uncommitted.
    `run_version` is the version of the `PaperRun`.
    """

    run: str
    data: str
    settings: Mapping[str, Any]
    date: str
    version: str
    seconds: float
    numbers: tuple[Number, ...] = field(default_factory=tuple)
    commit: str = ""
    run_version: int = 1

    def of_groups(self, groups: Iterable[str]) -> tuple[Number, ...]:
        wanted = set(groups)
        return tuple(number for number in self.numbers if not wanted or number.group in wanted)


@cache
def shipped_results() -> dict[str, Ours]:
    return read_ours(SHIPPED)


def read_ours(folder: Path) -> dict[str, Ours]:
    """The numbers of each run, by its name. They are read from files such as ``words.json`` in the folder.
    Raises a SpaceError for other content."""
    what = "measured numbers"
    found = {
        path.stem: records.from_json(Ours, records.parse(path.read_bytes(), str(path), what), str(path))
        for path in sorted(folder.glob("*.json"))
    }
    for run, ours in found.items():
        if ours.run != run:
            raise SpaceError(f"{run}.json: expected numbers of this run, got those of {ours.run!r}")
    return found


@dataclass(frozen=True)
class Spread:
    """The standard error of a number, its degrees of freedom (inf if the error is known), its 95 % interval,
    and a text that says how they were found."""

    error: float
    freedom: float
    low: float
    high: float
    found_from: str


def spread_of(number: Number) -> Spread | None:
    """The standard error and the 95 % interval of a number; None if no error is known.

    The first of these rules that applies is used:

    1. If the run computed an interval, `low` and `high`.
    2. For two or more different repeats, Student's interval of their mean. It covers what differs between
       repeats (anchors, weights, splits), but not the choice of fixed test rows.
    3. For a single measurement with a deviation over its n rows, that deviation ÷ √n.
    4. For a mean over n rows with values in 0 … 1, or −1 … 1, the largest possible standard error: √(v (1 −
       v) ÷ n), or √((1 − v²) ÷ n).
    """
    value = number.value
    n = number.n
    least = _LEAST.get(number.unit)
    if number.low is not None and number.high is not None:
        error = (number.high - number.low) / (2 * quantile(inf))
        return Spread(error, inf, number.low, number.high, "found by the run")
    freedom = inf
    if number.deviation and number.repeats > 1:
        error = number.deviation / sqrt(number.repeats)
        freedom = number.repeats - 1
        source = "Student's, over repeats"
    elif number.deviation and n:
        error = number.deviation / sqrt(n)
        source = "deviation over rows ÷ √n"
    elif n and least is not None and number.metric not in _CORRELATIONS:
        # The standard error of the distribution on this range that varies most.
        error = sqrt(max((1 - value) * (value - least), 0.0) / n)
        source = "at most, from n rows"
    else:
        return None
    low, high = (value + sign * quantile(freedom) * error for sign in (-1, 1))
    if least is not None:
        low = max(low, least)
        high = min(high, 1.0)
    return Spread(error, freedom, low, high, source)


def quantile(freedom: float) -> float:
    from scipy.special import ndtri, stdtrit  # importing `scipy.stats` would take longer than opening a page

    return float(ndtri(0.975) if freedom == inf else stdtrit(freedom, 0.975))


def mean_and_deviation(rows: Sequence[dict[str, Any]], **more: Any) -> tuple[Number, ...]:
    """Compute numbers from repeated rows: the mean and the sample deviation over rows with equal label and
    metric.

    Each row has label, metric and value, and may have unit, n, k and baseline. Baselines are averaged; unit,
    n and k are those of the first repeat.
    """
    numbers = []
    for (label, metric), part in pd.DataFrame(rows).groupby(["label", "metric"], sort=False):
        first = {name: value for name, value in part.iloc[0].to_dict().items() if not pd.isna(value)}
        facts = {name: kind(first[name]) for name, kind in _FACTS.items() if name in first}
        if "baseline" in first:
            facts["baseline"] = round_number(part.baseline.mean())
        values = part.value.to_numpy(dtype=np.float64)
        if len(values) > 1:
            facts |= {
                "deviation": round_number(values.std(ddof=1)),
                "values": tuple(map(round_number, values)),
            }
        numbers.append(
            Number(label, metric, round_number(values.mean()), repeats=len(values), **facts, **more)
        )
    return tuple(numbers)


_FACTS = {"unit": str, "n": int, "k": int}


def round_number(value: float) -> float:
    return round(float(value), 6)


WORDS = ("setting",)  # units of columns that hold text
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)(?: ± (\d+(?:\.\d+)?))?")


@dataclass(frozen=True)
class Cell:
    text: str
    value: float | None = None
    deviation: float | None = None


@dataclass(frozen=True)
class NumberColumn:
    name: str
    unit: str


@dataclass(frozen=True)
class PublishedTable:
    """A printed table. `labels` are the names of the columns that identify a line, and the rows are the lines
    as they are printed.

    The setting tells everything on which the numbers depend: data, anchors, k, seeds.
    """

    setting: str
    labels: tuple[str, ...]
    measures: tuple[NumberColumn, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def lines(self) -> Iterator[tuple[tuple[str, ...], tuple[Cell, ...]]]:
        """Yield the labels and the cells of each line. Raises a SpaceError for text in a column of
        numbers."""
        k = len(self.labels)
        for row in self.rows:
            entries = zip(row[k:], self.measures, strict=True)
            yield row[:k], tuple(_cell(text, measure.unit) for text, measure in entries)


def _cell(text: str, unit: str) -> Cell:
    if text in ("–", "-"):
        return Cell("–")
    if unit in WORDS:
        return Cell(text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise SpaceError(f"published: expected a number in a column of unit {unit!r}, got {text!r}")
    value, deviation = match.groups()
    return Cell(text, float(value), None if deviation is None else float(deviation))


CHANCE = "chance of "


@dataclass(frozen=True)
class Claim:
    """A claim that `more` is larger than `times` × `than` + `plus`. `says` is the claim as a sentence.

    Attributes
    ----------
    more, than : str or float
        ``"label | metric"`` names a number of the run, and ``"chance of label | metric"`` names its baseline.
        A float is a constant. A label may contain the wildcard ``*``, but must match exactly one number.
    on : str
        The data set. The claims of a row on one data set form an experiment.
    paper : bool
        Whether the threshold or margin is from the paper. If not, Relscope's authors chose it.
    """

    says: str
    run: str
    more: str | float
    than: str | float
    times: float = 1.0
    plus: float = 0.0
    on: str = ""
    paper: bool = False

    @property
    def ours(self) -> bool:
        """Whether the claim depends on a threshold or margin that is not from the paper."""
        constants = [side for side in self.sides() if not isinstance(side, str)]
        return not self.paper and (any(constants) or (self.times, self.plus) != (1, 0))

    def sides(self) -> tuple[str | float, str | float]:
        return self.more, self.than


def claims_of(records: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """The claims that records describe. A record with ``over`` gives one claim for each value in ``over``,
    which replaces ``{}`` in the record."""
    claims = []
    for record in records:
        parts = {name: part for name, part in record.items() if name != "over"}
        for value in record.get("over", [""]):
            filled = {
                name: part.replace("{}", value) if isinstance(part, str) else part
                for name, part in parts.items()
            }
            claims.append(Claim(**filled))
    return tuple(claims)


def number_of(side: str, numbers: Sequence[Number]) -> Number:
    """The number that one side of a claim names. Raises a SpaceError unless exactly one number matches."""
    label, _, metric = side.removeprefix(CHANCE).partition(" | ")
    fitting = [
        number
        for number in numbers
        if number.metric == metric
        and (number.label == label or fnmatchcase(number.label, label.replace("[", "[[]")))
    ]
    if len(fitting) != 1:
        known = quote(dict.fromkeys(f"{number.label} | {number.metric}" for number in numbers))
        raise SpaceError(
            f"claims: expected {side!r} to name one number, got {len(fitting)} that fit; there are {known}"
        )
    return fitting[0]


PAPERS = ("relative", "inverse", "bootstrapping")


@dataclass(frozen=True)
class Paper:
    id: str
    title: str
    short: str
    authors: str
    url: str


@dataclass(frozen=True)
class PaperRow:
    """A table or figure of a paper.

    Attributes
    ----------
    kind, number : "Table" or "Figure", int
    page, tab : str
        The page that computes the numbers of this row, and its tab or study.
    runs : tuple of str
        The runs that measured the row's numbers, such as ``"stitch-digits"``. ``"stitch-digits/mean"`` is one
        group of a run.
    differs, needs, why_not : str
        `differs` tells how the data here differ from the paper's. `needs` tells what the paper's data require
        and where to get them. `why_not` tells why nothing is measured here.
    repeats : str
        The id of an earlier row that shows the same experiment and has the claims.
    """

    paper: Paper
    kind: str
    number: int
    title: str
    shows: str
    page: str
    tab: str
    runs: tuple[str, ...]
    differs: str
    needs: str
    published: PublishedTable | None = None
    note: str = ""
    why_not: str = ""
    claims: tuple[Claim, ...] = ()
    repeats: str = ""

    @property
    def id(self) -> str:
        """The name of the row in addresses and commands, such as ``"relative-table-1"``."""
        return f"{self.paper.id}-{self.kind.lower()}-{self.number}"

    @property
    def name(self) -> str:
        return f"{self.kind} {self.number}"

    def run_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.partition("/")[0] for run in self.runs))

    def groups(self, run: str) -> tuple[str, ...]:
        return tuple(
            group for name, _, group in (one.partition("/") for one in self.runs) if name == run and group
        )


@cache
def load_rows() -> tuple[PaperRow, ...]:
    return tuple(row for name in PAPERS for row in _rows_of(name))


def find_row(identifier: str) -> PaperRow:
    """The row with this id. Raises a SpaceError if there is none."""
    rows = {row.id: row for row in load_rows()}
    need_one_of("row", identifier, rows)
    return rows[identifier]


def named_rows(text: str) -> tuple[PaperRow, ...]:
    """The rows, from all papers, of the table or figure that `text` names, such as "table 5" or "Fig. 3". If
    it names none, ()."""
    found = re.fullmatch(r"(table|fig)(?:ure|s)?\.? ?(\d+)", " ".join(text.lower().split()))
    kind, number = found.groups() if found else ("-", 0)
    return tuple(
        row for row in load_rows() if row.kind.lower().startswith(kind) and row.number == int(number)
    )


_CITED = re.compile(r"(Fig|Table)s?\.? (\d+(?:(?:, | and )\d+)*)")


@cache
def rows_of_study(kind: str) -> tuple[PaperRow, ...]:
    """The tables and figures of papers that a study measures: those whose `tab` is the study, and those that
    the study cites."""
    source = STUDIES[kind].paper
    if source.startswith("ours"):
        citations = ()
    else:
        citations = _CITED.findall(source)
    cited = {(what, int(number)) for what, numbers in citations for number in re.findall(r"\d+", numbers)}

    def asks(row: PaperRow) -> bool:
        return row.paper.authors in source and (row.kind.removesuffix("ure"), row.number) in cited

    return tuple(row for row in load_rows() if row.tab == kind or asks(row))


def studies_of(row: PaperRow) -> tuple[str, ...]:
    """The names of the studies that measure a table or figure. The one in its `tab` comes first."""
    found = [kind for kind in STUDIES if row in rows_of_study(kind)]
    return tuple(sorted(found, key=lambda kind: kind != row.tab))


def _rows_of(name: str) -> list[PaperRow]:
    paper = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rows = paper.pop("rows")
    for row in rows:
        row["claims"] = [records.to_json(claim) for claim in claims_of(row.get("claims", ()))]
        row["paper"] = paper
    return list(records.from_json(tuple[PaperRow, ...], rows, name))


# The rule that decides whether the pattern of a paper is reproduced here.

HOLDS = "pattern holds"
PARTLY = "pattern holds partly"
DOES_NOT = "pattern does not hold"
UNDECIDED = "pattern not decided"
YES = "holds"
NO = "fails"
OPEN = "not decided"
RULE = (
    "Each row claims which numbers are larger. A row's comparisons on one data set are an experiment."
    " A comparison holds here if the 95 % interval of the difference is above zero, fails if it is below"
    " zero, and is not decided otherwise. Numbers of the same random states are compared by their differences"
    " if the run kept them, otherwise as if they were independent. The pattern holds if all comparisons hold,"
    " and holds partly if some do. It does not hold if none does and at least one fails. Otherwise, it is not"
    " decided."
)


@dataclass(frozen=True)
class Decided:
    """A claim, the two numbers that were measured here, their difference with a 95 % interval, and whether
    the claim holds.

    `than` includes the claim's margin. If a number has no interval, the ends are NaN. `paired` says that the
    numbers were compared by their differences within the same random states.
    """

    claim: Claim
    more: float
    than: float
    low: float
    high: float
    outcome: str
    paired: bool = False

    @property
    def difference(self) -> float:
        return self.more - self.than


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict on the claims of an experiment. `word` is `HOLDS`, `PARTLY`, `DOES_NOT` or `UNDECIDED`."""

    claims: tuple[Decided, ...]

    @property
    def word(self) -> str:
        outcomes = {claim.outcome for claim in self.claims}
        if YES in outcomes:
            return HOLDS if len(outcomes) == 1 else PARTLY
        if NO in outcomes:
            return DOES_NOT
        return UNDECIDED

    @property
    def own(self) -> ClaimVerdict | None:
        """The verdict on those claims whose thresholds and margins are all from the paper; None if there are
        none."""
        own = tuple(claim for claim in self.claims if not claim.claim.ours)
        return ClaimVerdict(own) if own else None

    def counts(self) -> str:
        outcomes = [claim.outcome for claim in self.claims]
        verb = "hold"
        if len(outcomes) == 1:
            verb = "holds"
        held = f"{outcomes.count(YES)} of {counted(len(outcomes), 'comparison')} {verb}"
        return ", ".join(
            [
                held,
                *(
                    counted(outcomes.count(word), word, several)
                    for word, several in ((NO, "fail"), (OPEN, OPEN))
                    if word in outcomes
                ),
            ]
        )


def verdicts_of(row: PaperRow, found: Mapping[str, Ours]) -> dict[str, ClaimVerdict]:
    """The verdict on each experiment of a row, by its data; {} if no claim can be decided yet.

    If an older result lacks a number, claims on this number are left out.
    """
    decided: dict[str, list[Decided]] = {}
    for claim in row.claims:
        if claim.run in found:
            with suppress(SpaceError):
                one = decide(claim, found[claim.run].of_groups(row.groups(claim.run)))
                decided.setdefault(claim.on, []).append(one)
    return {on: ClaimVerdict(tuple(claims)) for on, claims in decided.items()}


def decide(claim: Claim, numbers: Sequence[Number]) -> Decided:
    """Decide a claim by the numbers of its run. Raises a SpaceError unless each side of the claim matches
    exactly one number.

    If both sides have values for the same random states, Student's test of their differences decides.
    Otherwise Welch's test decides.
    """
    (more, more_error, more_freedom, first), (than, than_error, than_freedom, second) = (
        _side(side, numbers) for side in claim.sides()
    )
    than = claim.times * than + claim.plus
    than_error = abs(claim.times) * than_error
    if paired := 1 < len(first) == len(second):
        differences = np.array(first) - claim.times * np.array(second)
        error = float(differences.std(ddof=1)) / sqrt(len(first))
        freedom = len(first) - 1
    else:
        error = sqrt(more_error**2 + than_error**2)
        parts = ((more_error, more_freedom), (than_error, than_freedom))
        # The degrees of freedom of Welch and Satterthwaite; 0 if both errors are known exactly.
        shared = sum(one**4 / some for one, some in parts)
        freedom = error**4 / shared if shared > 0 else inf
    half_width = quantile(freedom) * error
    low = more - than - half_width
    high = more - than + half_width
    if low > 0:
        outcome = YES
    elif high < 0:
        outcome = NO
    else:
        outcome = OPEN
    return Decided(claim, more, than, low, high, outcome, paired)


def _side(side: str | float, numbers: Sequence[Number]) -> tuple[float, float, float, tuple[float, ...]]:
    if not isinstance(side, str):
        return float(side), 0.0, inf, ()
    number = number_of(side, numbers)
    if side.startswith(CHANCE):
        if number.baseline is None:
            raise SpaceError(f"claims: {side!r}: expected a number with a baseline, got one without")
        return number.baseline, 0.0, inf, ()
    spread = spread_of(number)
    if spread:
        error = spread.error
        freedom = spread.freedom
    else:
        error = float("nan")
        freedom = inf
    return number.value, error, freedom, number.values


_WRITTEN = ("value", "deviation", "unit", "repeats", "n", "k", "baseline")
_RUN_FACTS = ("data", "run", "date", "version", "commit", "seconds")  # fields of `Ours`
COLUMNS = (
    *("paper", "row", "source", "what", "metric", "value", "deviation", "unit", "low", "high", "repeats"),
    *("n", "k", "baseline", "baseline_is", "interval_is", *_RUN_FACTS, "verdict"),
)


def as_csv(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> bytes:
    """The rows as CSV, with one line per number. `source` is "published" or "here". `found` holds the results
    by run.

    Published numbers keep their printed unit, and their `data` is the setting of the paper.
    """
    return delimited_text(pd.DataFrame(_lines(rows, found), columns=[*COLUMNS])).encode()


def _lines(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> list[dict[str, Any]]:
    lines = []
    for row in rows:
        place = {"paper": row.paper.authors, "row": row.name}
        verdicts = verdicts_of(row, found)
        words = [f"{on}: {verdict.word}" for on, verdict in verdicts.items()]
        word = {"verdict": "; ".join(words) or None}
        lines += [place | line for line in _published_records(row)]
        for name in row.run_names():
            if ours := found.get(name):
                facts = {fact: getattr(ours, fact) for fact in _RUN_FACTS}
                numbers = ours.of_groups(row.groups(name))
                lines += [{**place, **_measured_record(number), **facts, **word} for number in numbers]
    return lines


def _published_records(row: PaperRow) -> list[dict[str, Any]]:
    if row.published is None:
        return []
    return [
        {
            "source": "published",
            "what": ", ".join(labels),
            "metric": measure.name,
            "value": cell.text if measure.unit in WORDS else cell.value,
            "deviation": cell.deviation,
            "unit": measure.unit,
            "data": row.published.setting,
        }
        for labels, cells in row.published.lines
        for measure, cell in zip(row.published.measures, cells, strict=True)
    ]


def _measured_record(number: Number) -> dict[str, Any]:
    line = {"source": "here", "what": number.label, "metric": number.metric}
    line |= {name: getattr(number, name) for name in _WRITTEN}
    if number.baseline is None:
        line["baseline_is"] = None
    else:
        line["baseline_is"] = number.baseline_is
    if spread := spread_of(number):
        line |= {"low": spread.low, "high": spread.high, "interval_is": spread.found_from}
    return line


@dataclass(frozen=True)
class PaperRun:
    """One run in the list relcore/data/papers/runs.json.

    The settings are options of its study. `study` is "" for runs of an earlier version of Relscope. `words`
    says that it ran on the bundled word spaces, so that it can be opened on a page. `version` is raised
    whenever the same settings give other numbers than before.
    """

    title: str
    data: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    study: str = ""
    words: bool = False
    version: int = 1


RUNS = records.from_json(
    dict[str, PaperRun], json.loads((FOLDER / "runs.json").read_text(encoding="utf-8")), "runs.json"
)


def study_runs(name: str) -> StudyRuns | None:
    run = RUNS[name]
    if not run.study:
        return None
    study = study_of(run.study)
    return StudyRuns(study, StudySpec.of(study, run.settings))


def result_of(name: str, store: Store) -> Ours | None:
    """The numbers of a run of a paper's study: from the runs in this store if all are there, otherwise the
    bundled numbers."""
    runs = study_runs(name)
    if runs and not runs.missing(store, own=True):
        return ours_of(name, runs, store)
    known = shipped_results().get(name)
    if known and is_current(known):
        return known
    return None


def is_current(ours: Ours) -> bool:
    run = RUNS.get(ours.run)
    return run is not None and (ours.settings, ours.run_version) == (dict(run.settings), run.version)


def ours_of(name: str, runs: StudyRuns, store: Store, commit: str = "") -> Ours:
    run = RUNS[name]
    table = runs.table(store)
    seconds = round(float(table.seconds.sum()), 1)
    today = date.today().isoformat()
    numbers = NUMBERS[run.study](runs, table)
    return Ours(name, run.data, dict(run.settings), today, __version__, seconds, numbers, commit, run.version)


def _training(runs: StudyRuns, table: pd.DataFrame) -> tuple[Number, ...]:
    forms = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened (ours)"}
    columns = ["F1", "accuracy", *(name for name in table if name.startswith("F1 of "))]
    encoders = {name: name.partition(" of ")[2].partition(" · ")[0] for name in columns}
    return mean_and_deviation(
        [
            {
                "label": f"{forms[run['features']]}, {encoders[column] or 'mean of 4 encoders'}",
                "metric": "accuracy" if column == "accuracy" else "weighted F1",
                "value": run[column],
                "n": run["test rows"],
                "baseline": run["chance"],
            }
            for run in table.to_dict("records")
            for column in columns
        ],
        baseline_is="chance (accuracy)",
    )


def _similarity(runs: StudyRuns, table: pd.DataFrame) -> tuple[Number, ...]:
    numbers = []
    for line in runs.study.findings(runs.spec.settings, table).to_dict("records"):
        metric = "Pearson"
        if "Spearman" in line["what"]:
            metric = "Spearman"
        ends = {end: round_number(line[end]) for end in ("low", "high") if not pd.isna(line[end])}
        facts = {"unit": "−1 … 1", "n": int(line["n"]), "baseline": 0.0, "baseline_is": "unrelated"}
        label = line["what"].replace(f"{metric} ", "")
        numbers.append(Number(label, metric, round_number(line["value"]), **facts, **ends))
    return tuple(numbers)


def _by_count(*measures: str) -> Callable[[StudyRuns, pd.DataFrame], tuple[Number, ...]]:
    def numbers(runs: StudyRuns, table: pd.DataFrame) -> tuple[Number, ...]:
        return mean_and_deviation(
            [
                {
                    "label": f"{run['n_anchors']} anchors",
                    "metric": f"{measure}: accuracy",
                    "value": run[measure],
                    "n": run["test rows"],
                    "baseline": run["chance"],
                }
                for run in table.sort_values("n_anchors").to_dict("records")
                for measure in measures
            ]
        )

    return numbers


NUMBERS = {
    "training": _training,
    "similarity-performance": _similarity,
    "anchor-count": _by_count(
        "relative, same space", "relative, stitched", "whitened, same space", "whitened, stitched"
    ),
    "trained-count": _by_count("relative, same space", "relative, stitched", "absolute"),
}


_PROJECT = Path(__file__).parents[2]


def commit_of(project: Path = _PROJECT) -> str:
    """The short hash of HEAD, with "+" if tracked files below relcore differ from HEAD.

    "" if git is not installed or the folder is not the root of a checkout. A folder inside another checkout
    is not a root.
    """
    try:
        if Path(_git(project, "rev-parse", "--show-toplevel")).resolve() != project.resolve():
            return ""
        changed = _git(project, "status", "--porcelain", "--untracked-files=no", "--", "relcore")
        return _git(project, "rev-parse", "--short=7", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()
