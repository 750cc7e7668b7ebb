"""The verdict on a drift: every measured value is compared with its threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from relcore.base.families import Named
from relcore.base.junit import GateCase
from relcore.base.numbers import beside, counted, general, short
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES, ROWS, Measure

SITUATIONS = {
    EVERYTHING_NEW: Named("All embedded again", help="rows and queries are embedded by the new version"),
    NEW_QUERIES: Named(
        "New queries, old vectors", help="queries of the new version search the vectors of the old version"
    ),
}
TABLES = {
    **SITUATIONS,
    ROWS: Named(
        "Broken rows",
        help="rows that were fine and are now missing, zero, repeated, or no longer fit their place; constant"
        " dimensions",
    ),
}
QUANTITIES = {
    "churn": Named("changed neighbours", help="share of the nearest neighbours that changed"),
    "rho": Named("changed shape", help="what remains after shift, scale and rotation"),
    "lost": Named(
        "lost queries",
        help="share of the queries that rank another row's old vector above the own row's",
    ),
    "missing": Named("missing rows", help="share of the old rows that the new version lacks"),
    "zero": Named("zero rows", help="share of the rows that are zero vectors"),
    "repeated": Named(
        "repeated rows",
        help="share of the rows with another row's vector, if the two rows differ in the other version",
    ),
    "moved": Named(
        "rows that no longer fit their place",
        help="share of the rows whose direction or length did not change as that of most rows did; 0 if most"
        " rows changed",
    ),
    "constant": Named("constant dimensions", help="share of the dimensions with the same number in all rows"),
}


def counted_broken(n: int, quantity: str) -> str:
    """A number of broken rows or dimensions in words: ``1 zero row``, ``3 rows that no longer fit their
    place``."""
    things = QUANTITIES[quantity].title
    if quantity == "moved":
        return counted(n, "row that no longer fits its place", things)
    return counted(n, things.replace("rows", "row").replace("dimensions", "dimension"), things)


@dataclass(frozen=True)
class Check:
    """The comparison of one measured value with its threshold.

    `sure` is the lower bound of a one-sided confidence interval for the value minus its noise level. For
    classes, the confidence level has a Bonferroni correction. An alarm needs a `sure` above the threshold.
    """

    measure: Measure
    sure: float
    threshold: float
    alarm: bool

    @property
    def name(self) -> str:
        of = ""
        if self.measure.group:
            of = f" of class {self.measure.group!r}"
        return f"{QUANTITIES[self.measure.quantity].title}{of}"


@dataclass(frozen=True)
class DriftVerdict:
    """The outcome of all checks of a drift. If no search can work in a situation, `impossible` maps its name
    to the reason."""

    checks: tuple[Check, ...]
    impossible: dict[str, str]

    def alarms(self, situation: str) -> list[Check]:
        # Alarms of broken rows come first, because these rows count in both situations.
        alarms = [one for one in self.checks if one.alarm and one.measure.situation in (ROWS, situation)]
        return sorted(
            alarms,
            key=lambda one: (
                one.measure.situation != ROWS,
                bool(one.measure.group),
                one.measure.quantity == "moved",  # last, because repeated rows are often also out of place
                one.threshold - one.sure,
            ),
        )

    def alarmed(self, situations: Sequence[str] = tuple(SITUATIONS)) -> bool:
        return any(name in self.impossible or self.alarms(name) for name in (ROWS, *situations))

    def table(self) -> pd.DataFrame:
        columns = ("situation", "quantity", "group", "value", "noise", "sure", "threshold", "alarm", "n")
        rows = [[(vars(check.measure) | vars(check))[name] for name in columns] for check in self.checks]
        return pd.DataFrame(rows, columns=[*columns[:-1], "rows"])


def excess(check: Check) -> str:
    """A text with the measured and the allowed value of a check: ``"churn .547 (share of …; allowed: .050
    above the noise level, .001)"``."""
    usual = "the noise level"
    if check.measure.situation == ROWS:
        usual = "what was broken before"
    value, noise = printed(check)
    more = ""
    if not check.alarm and check.measure.value - check.measure.noise > check.threshold:
        more = f"; surely only {beside(check.sure, check.threshold)[0]} above it"
    return (
        f"{check.name} {value} ({QUANTITIES[check.measure.quantity].help}; allowed:"
        f" {short(check.threshold)} above {usual}, {noise}{more})"
    )


def printed(check: Check) -> tuple[str, str]:
    """The value and the noise level, with as many decimals as an alarm needs so that the printed numbers show
    it: one lost row of 5,000 is .0002, where .000 is allowed."""
    measure = check.measure
    for places in range(3, 10):
        above = round(measure.value, places) - round(measure.noise, places)
        if not check.alarm or above > check.threshold + 1e-12:
            break
    if places == 3:
        return short(measure.value), small(measure.noise)
    return short(measure.value, places), short(measure.noise, places)


def small(value: float) -> str:
    if value >= 0.001 or value == 0:
        return short(value)
    if value < 1e-4:
        return "< .001"
    return general(value, 1)


_LEAST = 1e-3  # minimum divisor of `by_severity`, because a threshold may be 0


def cases_of(verdict: DriftVerdict, situations: Sequence[str]) -> list[GateCase]:
    """All checks as conditions of a gate. Those of other situations than the given ones are not judged."""
    text = "The chosen gate does not decide by this."
    cases = []
    for check in by_severity(verdict):
        situation = check.measure.situation
        judged = situation in (ROWS, *situations)
        cases.append(GateCase(situation, check.name, excess(check), check.alarm, "" if judged else text))
    for situation, reason in verdict.impossible.items():
        judged = situation in situations
        cases.append(GateCase(situation, "dimensions", reason, True, "" if judged else text))
    return cases


def by_severity(verdict: DriftVerdict) -> list[Check]:
    return sorted(
        verdict.checks,
        key=lambda check: (
            bool(check.measure.group),
            not check.alarm,
            -check.sure / max(check.threshold, _LEAST),
        ),
    )
