"""Reports of the drift gate for machines: one JSON object, Markdown for a comment, JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from relcore import __version__
from relcore.base.numbers import short
from relcore.base.text import visible
from relcore.drift.check import (
    SITUATIONS,
    Check,
    Drift,
    DriftVerdict,
    cautions,
    circumstances,
    excess,
    headline,
    shares_told,
    told,
)
from relcore.drift.measures import STEPS

_MOST_ROWS = 40  # of a Markdown table: classes with an alarm first
_LEAST = 1e-3  # a threshold may be zero


def facts(drift: Drift, verdict: DriftVerdict, situations: Sequence[str]) -> dict[str, Any]:
    """All numbers but the table of checks; `situations` are those that decide."""
    names = "widths n k n_queries only_old only_new n_zero shift scale spread turn rho chance_rho"
    names += " chance_churn churn_uncentred reciprocal_rank"
    return {
        "relscope": __version__,
        "old": drift.names[0],
        "new": drift.names[1],
        "alarm": verdict.alarmed(situations),
        "decided_by": list(situations),
        "alarms": {one: verdict.alarmed([one]) for one in SITUATIONS},
        "headline": headline(drift, verdict),
        "cautions": cautions(drift, verdict),
        **{name: getattr(drift, name) for name in names.split()},
        "shares": shares_told(drift) or None,
    }


def ordered(verdict: DriftVerdict) -> list[Check]:
    """All checks: of all rows first, then of classes, those with an alarm first, then by their excess in
    thresholds.
    """

    return sorted(
        verdict.checks,
        key=lambda one: (bool(one.measure.group), not one.alarm, -one.sure / max(one.threshold, _LEAST)),
    )


def markdown(drift: Drift, verdict: DriftVerdict, situations: Sequence[str]) -> str:
    """The verdict as GitHub's Markdown, for a step summary or a comment. Names are code: none is a mention
    or a link.
    """
    old, new = (_code(name) for name in drift.names)
    lines = [f"## {'❌ Drift' if verdict.alarmed(situations) else '✅ No drift'}: {old} → {new}", ""]
    lines += [
        f"- {_safe(told(drift, verdict, one))}{'' if one in situations else ' (does not decide)'}"
        for one in SITUATIONS
    ]
    lines += [f"- {_safe(one)}" for one in cautions(drift, verdict)]
    shares = shares_told(drift)
    if shares:
        lines += ["", "| of the change | " + " | ".join(STEPS) + " |", "|---" * 5 + "|"]
        lines += ["| share | " + " | ".join(short(shares[step]) for step in STEPS) + " |"]
    lines += [
        "",
        "| situation | quantity | class | value | noise level | threshold | |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    checks = ordered(verdict)
    for check in checks[:_MOST_ROWS]:
        one = check.measure
        numbers = map(short, (one.value, one.noise, check.threshold))
        named = (SITUATIONS[one.situation].title, one.quantity, _code(one.group) if one.group else "all rows")
        lines.append(f"| {' | '.join((*named, *numbers, '**alarm**' if check.alarm else 'ok'))} |")
    left = len(checks) - _MOST_ROWS
    lines += ["", f"{left:,} more rows are in the JSON report."] if left > 0 else []
    return "\n".join([*lines, "", _safe(circumstances(drift)), ""])


def junit(drift: Drift, verdict: DriftVerdict, situations: Sequence[str]) -> str:
    """JUnit XML: a suite per situation, a case per check. Situations that do not decide are skipped."""
    root = ElementTree.Element(
        "testsuites", name=f"relscope drift: {_xml(drift.names[0])} to {_xml(drift.names[1])}"
    )
    for situation in SITUATIONS:
        checks = [check for check in ordered(verdict) if check.measure.situation == situation]
        suite = ElementTree.SubElement(root, "testsuite", name=SITUATIONS[situation].title)
        decides = situation in situations
        if situation in verdict.impossible:
            _case(suite, situation, "widths", verdict.impossible[situation], decides)
        for check in checks:
            _case(suite, situation, check.name, excess(check) if check.alarm else "", decides)
        _count(suite)
        ElementTree.SubElement(suite, "system-out").text = _xml(told(drift, verdict, situation))
    _count(root)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, situation: str, name: str, failure: str, decides: bool) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=f"relscope.drift.{situation}", name=_xml(name))
    if not decides:
        ElementTree.SubElement(case, "skipped", message="this situation does not decide")
    elif failure:
        ElementTree.SubElement(case, "failure", message=_xml(failure), type="drift")


def _count(element: ElementTree.Element) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
        element.set(name, str(len(element.findall(f".//{tag}"))))


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 cannot hold even as references; the library escapes the others."""
    return "".join(
        sign if sign not in "\ufffe\uffff" else "\N{REPLACEMENT CHARACTER}" for sign in visible(text)
    )


def _code(name: str) -> str:
    """A name as inline code, also in a table."""
    return f"`{_safe(visible(name, 120)).replace('`', 'ˋ')}`"


def _safe(text: str) -> str:
    """Without what could end a cell, begin HTML, or mention someone."""
    for sign, other in (("|", "¦"), ("<", "‹"), (">", "›"), ("@", "＠")):
        text = text.replace(sign, other)
    return visible(text)
