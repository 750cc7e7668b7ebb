"""Does the drift matter? Every measure against its threshold, for the two situations in which a new version is deployed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES, Measure
from relcore.drift.thresholds import Thresholds
from relcore.names import Named

SITUATIONS = {
    EVERYTHING_NEW: Named("Everything is new", help="rows and queries are embedded by the new version"),
    NEW_QUERIES: Named("New queries, old vectors", help="queries of the new version search the vectors of the old version"),
}
QUANTITIES = {
    "churn": Named("churn", help="share of the nearest neighbours that changed"),
    "rho": Named("ρ", help="what remains after shift, scale and rotation"),
    "lost": Named("lost queries", help="share of new vectors that rank another old vector above that of the same row"),
}
_FALSE_ALARMS = 0.005  # of each quantity: a situation has two, and each again for the classes, which share theirs


@dataclass(frozen=True)
class Check:
    """One measure against its threshold.

    Attributes
    ----------
    measure : Measure
    sure : float
        Lower bound of value − noise, one-sided; with Bonferroni's correction where there are several classes.
    threshold : float
    alarm : bool
        Whether the bound is above the threshold.
    """

    measure: Measure
    sure: float
    threshold: float
    alarm: bool

    @property
    def name(self) -> str:
        """``"churn"``, ``"churn of class 'seven'"``."""
        of = f" of class {self.measure.group!r}" if self.measure.group else ""
        return f"{QUANTITIES[self.measure.quantity].title}{of}"


@dataclass(frozen=True)
class Verdict:
    """All checks of a drift; `impossible` names the situation that cannot work at all, with the reason."""

    checks: tuple[Check, ...]
    impossible: dict[str, str]

    def alarms(self, situation: str) -> list[Check]:
        """Those above their threshold, the largest excess first."""
        found = [check for check in self.checks if check.alarm and check.measure.situation == situation]
        return sorted(found, key=lambda check: (bool(check.measure.group), check.threshold - check.sure))

    def alarmed(self, situations: Sequence[str] = tuple(SITUATIONS)) -> bool:
        """Whether any of these situations has an alarm."""
        return any(one in self.impossible or self.alarms(one) for one in situations)

    def table(self) -> pd.DataFrame:
        """One row per check: situation, quantity, group, value, noise, sure, threshold, alarm, rows."""
        rows = [
            (
                check.measure.situation,
                check.measure.quantity,
                check.measure.group,
                check.measure.value,
                check.measure.noise,
                check.sure,
                check.threshold,
                check.alarm,
                check.measure.n,
            )
            for check in self.checks
        ]
        names = ["situation", "quantity", "group", "value", "noise", "sure", "threshold", "alarm", "rows"]
        return pd.DataFrame(rows, columns=names)


def judge(measures: Sequence[Measure], thresholds: Thresholds, widths: tuple[int, int]) -> Verdict:
    """Compare all measures with the thresholds."""
    n_groups = max(1, len({measure.group for measure in measures} - {""}))
    checks = tuple(_check(measure, thresholds, n_groups) for measure in measures)
    impossible = {}
    if widths[0] != widths[1]:
        reason = f"new queries have {widths[1]:,} dimensions and old vectors {widths[0]:,}"
        impossible[NEW_QUERIES] = f"{reason}, so they cannot be compared; embed the rows again, or map the queries"
    return Verdict(checks, impossible)


def _check(measure: Measure, thresholds: Thresholds, n_groups: int) -> Check:
    from scipy.special import stdtrit

    rate = _FALSE_ALARMS / (n_groups if measure.group else 1)
    reach = float(stdtrit(max(1, measure.n - 1), 1 - rate)) * measure.error
    sure = measure.value - measure.noise - reach
    name = f"class_{measure.quantity}" if measure.group else measure.quantity
    threshold = float(getattr(getattr(thresholds, measure.situation), name))
    return Check(measure, sure, threshold, sure > threshold)
