"""Whether runs of ours confirm the claims of papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.base.report import delimited_text
from relcore.studies.papers import Claim, PaperRow, number_of
from relcore.studies.published import CHANCE, WORDS, Number, Ours, quantile, spread_of

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
        """How many comparisons hold, fail and are open: ``"2 of 3 comparisons hold, 1 fails"``."""
        outcomes = [claim.outcome for claim in self.claims]
        verb = "hold"
        if len(outcomes) == 1:
            verb = "holds"
        parts = [f"{outcomes.count(YES)} of {counted(len(outcomes), 'comparison')} {verb}"]
        if NO in outcomes:
            parts.append(counted(outcomes.count(NO), NO, "fail"))
        if OPEN in outcomes:
            parts.append(counted(outcomes.count(OPEN), OPEN, OPEN))
        return ", ".join(parts)


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
    more_side, than_side = claim.sides()
    more, more_error, more_freedom, first = _side(more_side, numbers)
    than, than_error, than_freedom, second = _side(than_side, numbers)
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
