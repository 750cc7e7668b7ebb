"""Whether a paper's pattern is seen here, by a rule.

A claim (relcore.papers.rows), such as "stitched ≥ .85 × not stitched", is decided on our numbers. With the
difference D = more − (times × than + plus), its standard error from those of both numbers (taken as
independent, which is too wide rather than too narrow where both were measured on the same rows), and
Student's quantile t at 95 % with Welch's degrees of freedom, the claim holds where D − t × error > 0, fails
where D + t × error < 0, and is not decided otherwise, or where a number has no interval. Claims whose runs
were not made are left out. No correction is made for the number of claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.papers.ours import Number, Ours, quantile, spread_of
from relcore.papers.rows import CHANCE, Claim, PaperRow, number_of

HOLDS, PARTLY, DOES_NOT = "pattern holds", "pattern holds partly", "pattern does not hold"
YES, NO, OPEN = "holds", "fails", "not decided"
RULE = (
    "Each row asserts comparisons between numbers. A comparison holds here if the difference is above zero"
    " beyond its standard error at 95 %, fails if it is below zero beyond it, and is not decided otherwise."
    " The pattern holds if all comparisons hold, holds partly if some do, and does not hold if none does."
)


@dataclass(frozen=True)
class Decided:
    """A claim with the two sides here, their difference with its 95 % interval, and whether it "holds",
    "fails" or is open.

    `than` has the claim's margin in it already. NaN ends: a number has no interval.
    """

    claim: Claim
    more: float
    than: float
    low: float
    high: float
    outcome: str

    @property
    def difference(self) -> float:
        return self.more - self.than


@dataclass(frozen=True)
class ClaimVerdict:
    """What a row's claims come to: `word` is "pattern holds", "… partly" or "… does not hold"."""

    word: str
    claims: tuple[Decided, ...]

    def counts(self) -> str:
        """``"3 of 4 comparisons hold, 1 not decided"``."""
        outcomes = [one.outcome for one in self.claims]
        verb = "holds" if len(outcomes) == 1 else "hold"
        held = f"{outcomes.count(YES)} of {counted(len(outcomes), 'comparison')} {verb}"
        return ", ".join([held, *(f"{outcomes.count(one)} {one}" for one in (NO, OPEN) if one in outcomes)])


def verdict_of(row: PaperRow, found: Mapping[str, Ours]) -> ClaimVerdict | None:
    """The verdict on what was measured so far; None if no claim of the row can be decided yet.

    A claim on a number that an older result of the store lacks is left out, like one whose run was not made.
    """
    decided = []
    for claim in row.claims:
        if claim.run not in found:
            continue
        try:
            decided.append(decide(claim, found[claim.run].of_groups(row.groups(claim.run))))
        except SpaceError:
            continue
    if not decided:
        return None
    held = sum(one.outcome == YES for one in decided)
    return ClaimVerdict(HOLDS if held == len(decided) else PARTLY if held else DOES_NOT, tuple(decided))


def decide(claim: Claim, numbers: Sequence[Number]) -> Decided:
    """One claim on the numbers of its run.

    Raises
    ------
    SpaceError
        A side names no number, or several.
    """
    (more, more_error, more_freedom), (than, than_error, than_freedom) = (
        _side(side, numbers) for side in claim.sides()
    )
    than, than_error = claim.times * than + claim.plus, abs(claim.times) * than_error
    error = sqrt(more_error**2 + than_error**2)
    parts = ((more_error, more_freedom), (than_error, than_freedom))
    shared = sum(one**4 / freedom for one, freedom in parts)  # Welch and Satterthwaite; 0 of a known error
    reach = quantile(error**4 / shared if shared > 0 else inf) * error
    low, high = more - than - reach, more - than + reach
    return Decided(claim, more, than, low, high, YES if low > 0 else NO if high < 0 else OPEN)


def _side(side: str | float, numbers: Sequence[Number]) -> tuple[float, float, float]:
    """Value, standard error (NaN: unknown) and degrees of freedom."""
    if not isinstance(side, str):
        return float(side), 0.0, inf
    number = number_of(side, numbers)
    if side.startswith(CHANCE):
        if number.baseline is None:
            raise SpaceError(f"claims: {side!r}: expected a number with a baseline, got one without")
        return number.baseline, 0.0, inf
    spread = spread_of(number)
    return (number.value, spread.error, spread.freedom) if spread else (number.value, float("nan"), inf)
