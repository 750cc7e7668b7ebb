"""What a drift means, in sentences: the first thing that the page, the command and the reports show."""

from __future__ import annotations

from relcore.drift.drift_check import Drift
from relcore.drift.measures import EVERYTHING_NEW, NEW_QUERIES
from relcore.drift.verdict import QUANTITIES, SITUATIONS, Check, Verdict
from relcore.numbers import general, short

_LENIENT = 0.5  # ρ of unrelated rows: below it, a rotation explains them better than not


def headline(drift: Drift, verdict: Verdict) -> str:
    """One sentence: what may be deployed."""
    old, new = (repr(name) for name in drift.names)
    alarms = {situation: verdict.alarmed([situation]) for situation in SITUATIONS}
    if drift.unrelated:
        return f"{new} and {old} have no more neighbours in common than rows that are paired at random."
    if not any(alarms.values()):
        return f"No drift beyond the thresholds: {new} can replace {old}, for queries alone or for everything."
    if not alarms[EVERYTHING_NEW]:
        return f"{new} can replace {old} once all rows are embedded again; until then its queries miss the vectors of {old}."
    if not alarms[NEW_QUERIES]:
        return f"Drift: {new} has other neighbourhoods than {old}, although its queries still rank the old vectors alike."
    return f"Drift: {new} has other neighbourhoods than {old}, and its queries rank the vectors of {old} in another order."


def told(drift: Drift, verdict: Verdict, situation: str) -> str:
    """One sentence on a situation: its numbers without an alarm, else the largest excess."""
    title = SITUATIONS[situation].title
    if situation in verdict.impossible:
        return f"{title}: alarm. {verdict.impossible[situation][0].upper()}{verdict.impossible[situation][1:]}."
    alarms = verdict.alarms(situation)
    if not alarms:
        return f"{title}: no alarm, {_numbers(drift, situation)}."
    more = f", and {len(alarms) - 1:,} more" if len(alarms) > 1 else ""
    return f"{title}: alarm, {excess(alarms[0])}{more}."


def excess(check: Check) -> str:
    """``"churn .547, threshold .050 above the noise level of .001"``."""
    value, noise = short(check.measure.value), _low(check.measure.noise)
    return f"{check.name} {value}, threshold {short(check.threshold)} above the noise level of {noise}"


def cautions(drift: Drift, verdict: Verdict) -> list[str]:
    """What the numbers do not show by themselves, a sentence each."""
    found = []
    if drift.unrelated:
        found.append("Check that both files have the same rows under the same ids: rows in another order look like this.")
    if drift.chance_rho < _LENIENT:
        found.append(
            f"{drift.n:,} rows of {max(drift.widths):,} dimensions are few: a rotation explains much even of rows paired "
            f"at random (ρ {short(drift.chance_rho)}). Judge by the neighbours, or compare more rows."
        )
    centred = drift.of(EVERYTHING_NEW, "churn")
    threshold = next(check.threshold for check in verdict.checks if check.measure is centred)
    if drift.churn_uncentred - centred.noise > threshold >= centred.value - centred.noise:
        found.append(
            "Rows are centred before neighbours are searched. An index that does not centre would see a churn of "
            f"{short(drift.churn_uncentred)}: there the shift matters even if everything is new."
        )
    if drift.only_old or drift.only_new:
        found.append(f"Left out: {drift.only_old:,} rows only in the old version, {drift.only_new:,} only in the new one.")
    if drift.n_zero:
        found.append(f"Left out: {drift.n_zero:,} rows that are zero in either version.")
    if drift.left_out:
        found.append(f"Classes with too few queries for a churn of their own: {drift.left_out:,}.")
    return found


def circumstances(drift: Drift) -> str:
    """On how many rows, with what chance and noise level."""
    queries = "all of them" if drift.n_queries == drift.n else f"{drift.n_queries:,} of them"
    return (
        f"{drift.n:,} rows, {queries} as queries, k = {drift.k}. Chance level: churn {short(drift.chance_churn)}, "
        f"ρ {short(drift.chance_rho)}. Noise level: two runs of the old version that differ by numeric noise."
    )


def _numbers(drift: Drift, situation: str) -> str:
    quantities = ("churn", "rho") if situation == EVERYTHING_NEW else ("lost", "churn")
    values = [drift.of(situation, quantity) for quantity in quantities]
    return ", ".join(f"{QUANTITIES[one.quantity].title} {_low(one.value)} (noise level {_low(one.noise)})" for one in values)


def _low(value: float) -> str:
    """A share that may be far below .001."""
    return short(value) if value >= 0.001 or value == 0 else "< .001" if value < 1e-4 else general(value, 1)
