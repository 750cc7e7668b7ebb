"""The rows of the Papers page: a table or figure of a paper each, its published numbers and the runs that
measure it here.
"""

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
from relcore.papers.ours import FOLDER, Number

WORDS = ("setting",)  # units of columns that hold no numbers
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)(?: ± (\d+(?:\.\d+)?))?")


@dataclass(frozen=True)
class Cell:
    """One printed entry: ``"0.34 ± 0.01"``, ``"–"``, ``"ReLU, Tanh"``, and its numbers if it has any."""

    text: str
    value: float | None = None
    deviation: float | None = None


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: what it is called, and its unit or range."""

    name: str
    unit: str


@dataclass(frozen=True)
class PublishedTable:
    """One printed table.

    Attributes
    ----------
    setting : str
        Data, anchors, k, seeds: what the numbers depend on.
    labels : tuple of str
        Names of the columns that say which line it is.
    measures : tuple of NumberColumn
    rows : tuple of tuples of str
        The lines as printed: labels, then an entry for each measure.
    """

    setting: str
    labels: tuple[str, ...]
    measures: tuple[NumberColumn, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def lines(self) -> Iterator[tuple[tuple[str, ...], tuple[Cell, ...]]]:
        """Labels and cells of each line.

        Raises
        ------
        SpaceError
            A text in a column of numbers.
        """
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


# What a paper's row asserts, as comparisons between labelled numbers, kept in relcore/data/papers beside the
# row.

CHANCE = "chance of "


@dataclass(frozen=True)
class Claim:
    """One comparison: `more` is larger than `times` × `than` + `plus`.

    Attributes
    ----------
    says : str
        The same in a sentence.
    run : str
        Whose numbers these are.
    more, than : str or float
        ``"label | metric"`` of a number, ``"chance of label | metric"`` of its baseline, or a constant. A
        label may have the wildcard ``*`` where it holds a value that a run finds; it must fit one number.
    times, plus : float
        The margin. Where a paper says "about as well", it is the least favourable one in the paper's own
        table.
    """

    says: str
    run: str
    more: str | float
    than: str | float
    times: float = 1.0
    plus: float = 0.0

    def sides(self) -> tuple[str | float, str | float]:
        return self.more, self.than


def claims_of(records: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """Claims from their records; a record with ``over`` is one for each of its values, put where ``{}``
    stands.
    """
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
    """The number that one side of a claim names.

    Raises
    ------
    SpaceError
        None fits, or more than one.
    """
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
    """Which paper: "relative", "inverse" or "bootstrapping", with its names and address."""

    id: str
    title: str
    short: str
    authors: str
    url: str


@dataclass(frozen=True)
class PaperRow:
    """One table or figure.

    Attributes
    ----------
    kind, number : "Table" or "Figure", int
    title, shows : str
        Its topic in a few words; what it shows, in a sentence.
    published : PublishedTable, optional
        None where no numbers are printed; `note` then says so.
    page, tab : str
        The page that explores it, and its tab, or its study.
    runs : tuple of str
        Runs that answer it here, ``"stitch-digits"`` or, of one group of its numbers alone,
        ``"stitch-digits/mean"``.
    differs : str
        How what is measured here differs from the paper.
    needs : str
        What its own data or models take that is not here, and how to get it.
    why_not : str
        Where nothing is measured here: why, in a sentence.
    claims : tuple of Claim
        What the paper's row asserts, as comparisons between numbers of its runs.
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

    @property
    def id(self) -> str:
        """``"relative-table-1"``: what the command line takes."""
        return f"{self.paper.id}-{self.kind.lower()}-{self.number}"

    @property
    def name(self) -> str:
        """``"Table 1"``."""
        return f"{self.kind} {self.number}"

    def run_names(self) -> tuple[str, ...]:
        """Names of its runs, without their groups."""
        return tuple(dict.fromkeys(run.partition("/")[0] for run in self.runs))

    def groups(self, run: str) -> tuple[str, ...]:
        """The groups of this run's numbers that belong here; none: all of them."""
        return tuple(
            group for name, _, group in (one.partition("/") for one in self.runs) if name == run and group
        )


@cache
def load_rows() -> tuple[PaperRow, ...]:
    """All of them, paper by paper, tables before figures."""
    return tuple(row for name in PAPERS for row in _rows_of(name))


def find_row(identifier: str) -> PaperRow:
    """The row of this id.

    Raises
    ------
    SpaceError
        There is none.
    """
    rows = {row.id: row for row in load_rows()}
    need_one_of("row", identifier, rows)
    return rows[identifier]


def _rows_of(name: str) -> list[PaperRow]:
    paper = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rows = paper.pop("rows")
    for row in rows:
        row["claims"] = [records.to_json(claim) for claim in claims_of(row.get("claims", ()))]
        row["paper"] = paper
    return list(records.from_json(tuple[PaperRow, ...], rows, name))
