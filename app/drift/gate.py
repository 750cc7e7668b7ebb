"""The gate of a drift: each condition by its name, with its value, its limit, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import streamlit as st

from app.plain_text import plain
from relcore.base.numbers import counted, short
from relcore.drift.verdict import QUANTITIES, TABLES, Check, DriftVerdict

_MOST_CLASSES = 3  # maximum number of classes with an alarm that are named for each quantity


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
    """The conditions of a situation as badges: those of all rows, then a badge of each quantity for the
    classes."""
    if reason := verdict.impossible.get(situation):
        yield _badge(reason, True, decides)
    checks = [check for check in verdict.checks if check.measure.situation == situation]
    of_classes: dict[str, list[Check]] = {}
    for check in checks:
        if check.measure.group:
            of_classes.setdefault(check.measure.quantity, []).append(check)
        else:
            yield _badge(_in_words(check), check.alarm, decides)
    for quantity, its_checks in of_classes.items():
        alarms = sorted((check for check in its_checks if check.alarm), key=lambda check: -check.sure)
        yield _badge(_classes_in_words(quantity, alarms, len(its_checks)), bool(alarms), decides)


def _in_words(check: Check) -> str:
    measure = check.measure
    limit = measure.noise + check.threshold
    words = f"{check.name} {short(measure.value)}, allowed {short(limit)}"
    if measure.value > limit and not check.alarm:
        words += " (not surely more)"
    return words


def _classes_in_words(quantity: str, alarms: Sequence[Check], n_classes: int) -> str:
    """How many classes exceed the limit of a quantity, and the names of the worst ones."""
    title = QUANTITIES[quantity].title
    if not alarms:
        return f"{title} in each of {counted(n_classes, 'class', 'classes')}"
    worst = [f"{check.measure.group!r} {short(check.measure.value)}" for check in alarms[:_MOST_CLASSES]]
    more = ""
    if len(alarms) > len(worst):
        more = ", …"
    return f"{title} in {len(alarms):,} of {n_classes:,} classes: {', '.join(worst)}{more}"


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
