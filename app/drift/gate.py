"""The gate of a drift: each condition by its name, with its value, its limit, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import streamlit as st

from app.plain_text import plain
from relcore.base.numbers import counted, short
from relcore.drift.verdict import QUANTITIES, TABLES, Check, DriftVerdict

_PLAIN = {"churn": "neighbours changed", "rho": "shape changed (ρ)"}  # quantity → its name for new users
_MOST_CLASSES = 6  # number of classes with an alarm that are named


def draw_gate(verdict: DriftVerdict, situations: Sequence[str]) -> None:
    """Draw a line for each situation. Those that are not in `situations` do not decide, and are grey."""
    for name, situation in TABLES.items():
        decides = name in situations
        badges = list(conditions(verdict, name, decides))
        named, conditions_of = st.columns([1, 4], vertical_alignment="center", gap="small")
        named.markdown(f"**{situation.title}**", help=f"{_sentence(situation.help)}{_note(decides)}")
        conditions_of.markdown(" ".join(badges))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _note(decides: bool) -> str:
    if decides:
        return ""
    return " This does not decide, because the change was planned."


def conditions(verdict: DriftVerdict, situation: str, decides: bool) -> Iterator[str]:
    """The conditions of a situation as badges: those of all rows, then the classes."""
    if reason := verdict.impossible.get(situation):
        yield _badge(reason, True, decides)
    checks = [check for check in verdict.checks if check.measure.situation == situation]
    for check in checks:
        if not check.measure.group:
            yield _badge(_in_words(check), check.alarm, decides)
    of_classes = [check for check in checks if check.measure.group]
    alarms = [check for check in of_classes if check.alarm]
    for check in alarms[:_MOST_CLASSES]:
        yield _badge(_in_words(check), True, decides)
    if len(alarms) > _MOST_CLASSES:
        yield _badge(f"{len(alarms) - _MOST_CLASSES:,} more conditions of classes", True, decides)
    if of_classes and not alarms:
        yield _badge(f"{counted(len(of_classes), 'condition')} of classes", False, decides)


def quantity_name(quantity: str) -> str:
    """The name of a quantity on the page: of badges, the table and the thresholds."""
    return _PLAIN.get(quantity, QUANTITIES[quantity].title)


def _in_words(check: Check) -> str:
    measure = check.measure
    limit = measure.noise + check.threshold
    title = QUANTITIES[measure.quantity].title
    name = quantity_name(measure.quantity) + check.name.removeprefix(title)
    words = f"{name} {short(measure.value)}, allowed {short(limit)}"
    if measure.value > limit and not check.alarm:
        words += " (not surely more)"
    return words


def _badge(words: str, alarm: bool, decides: bool) -> str:
    if not decides:
        color = "gray"
    elif alarm:
        color = "red"
    else:
        color = "green"
    if alarm:
        icon = ":material/close:"
    else:
        icon = ":material/check:"
    return f":{color}-badge[{icon} {plain(words)}]"
