"""Tables and figures of papers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from relcore.base import records
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import STUDIES
from relcore.studies.published import CHANCE, FOLDER, WORDS, Number

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
            texts = {name: part.replace("{}", value) for name, part in parts.items() if isinstance(part, str)}
            claims.append(Claim(**parts | texts))
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
    if not found:
        return ()
    kind, number = found.groups()
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
