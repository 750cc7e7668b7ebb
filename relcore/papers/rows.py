"""The rows of the Papers page: a table or figure of a paper each, its published numbers and the runs that
measure it here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.papers.ours import Number
from relcore.papers.published import FOLDER, PublishedTable

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
    return tuple(
        Claim(
            **{
                name: part.replace("{}", value) if isinstance(part, str) else part
                for name, part in record.items()
                if name != "over"
            }
        )
        for record in records
        for value in record.get("over", [""])
    )


def number_of(side: str, numbers: Sequence[Number]) -> Number:
    """The number that one side of a claim names.

    Raises
    ------
    SpaceError
        None fits, or more than one.
    """
    label, _, metric = side.removeprefix(CHANCE).partition(" | ")
    found = [number for number in numbers if number.metric == metric and _fits(number.label, label)]
    if len(found) != 1:
        known = quote(dict.fromkeys(f"{number.label} | {number.metric}" for number in numbers))
        raise SpaceError(
            f"claims: expected {side!r} to name one number, got {len(found)} that fit; there are {known}"
        )
    return found[0]


def _fits(label: str, pattern: str) -> bool:
    return label == pattern or fnmatchcase(label, pattern.replace("[", "[[]"))


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
    published: PublishedTable | None
    note: str
    page: str
    tab: str
    runs: tuple[str, ...]
    differs: str
    needs: str
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
    record = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rows = record.pop("rows")
    paper = Paper(**record)
    return [
        PaperRow(
            **{
                "note": "",
                **row,
                "paper": paper,
                "runs": tuple(row["runs"]),
                "published": PublishedTable.from_json(row["published"]) if row.get("published") else None,
                "claims": claims_of(row.get("claims", ())),
            }
        )
        for row in rows
    ]
