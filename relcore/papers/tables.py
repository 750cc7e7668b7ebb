"""All numbers as one table, printed and measured: for a spreadsheet, a paper or another program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

import pandas as pd

from relcore.base import records
from relcore.papers.rows import WORDS, Decided, Number, Ours, PaperRow, spread_of, verdict_of

_NUMBER = ("value", "deviation", "unit", "repeats", "n", "k", "baseline")
_FACTS = ("data", "run", "date", "version", "commit", "seconds")  # of an Ours
COLUMNS = (
    *("paper", "row", "source", "what", "metric", "value", "deviation", "unit", "low", "high", "repeats"),
    *("n", "k", "baseline", "baseline_is", "interval_is", *_FACTS, "verdict"),
)
_PRINTED = ["row", "what", "metric", "published", "here", "commit", "verdict"]
_SIGNS = {
    "±": r"$\pm$",
    "−": "$-$",
    "→": r"$\to$",
    "×": r"$\times$",
    "≈": r"$\approx$",
    "ω": r"$\omega$",
    "δ": r"$\delta$",
    "³": "$^3$",
    "…": r"\dots{}",
}


def long_table(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> pd.DataFrame:
    """A line per number. `source` is "published" or "here"; `found` holds the results by run.

    Published numbers keep the unit in which they are printed; their `data` is the setting that the paper
    names.
    """
    return pd.DataFrame(_lines(rows, found), columns=[*COLUMNS])


def as_csv(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> bytes:
    return long_table(rows, found).to_csv(index=False, lineterminator="\n").encode()


def as_latex(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> bytes:
    """A longtable for booktabs: row, what, metric, published, here; numbers with their deviations."""
    table = pd.DataFrame(_lines(rows, found))
    table["row"] = table.get("paper", "") + ", " + table.get("row", "")
    table = table.reindex(columns=_PRINTED)
    text = table.to_latex(index=False, escape=True, na_rep="", longtable=True)
    for sign, command in _SIGNS.items():
        text = text.replace(sign, command)
    return text.encode()


def as_json(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> bytes:
    """A list of rows, each with its printed table, its results whole, and its decided claims."""
    described = []
    for row in rows:
        verdict = verdict_of(row, found)
        described.append(
            {
                "paper": row.paper.title,
                "row": row.name,
                "shows": row.shows,
                "published": records.to_json(row.published),
                "here": [records.to_json(found[name]) for name in row.run_names() if name in found],
                "verdict": verdict and verdict.word,
                "claims": [_claim(one) for one in verdict.claims] if verdict else [],
            }
        )
    return (json.dumps(described, ensure_ascii=False, indent=2) + "\n").encode()


def _lines(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> list[dict[str, Any]]:
    lines = []
    for row in rows:
        place, verdict = {"paper": row.paper.authors, "row": row.name}, verdict_of(row, found)
        word = {"verdict": verdict.word if verdict else None}
        lines += [place | line for line in _published(row)]
        for name in row.run_names():
            if ours := found.get(name):
                facts = {fact: getattr(ours, fact) for fact in _FACTS}
                numbers = ours.of_groups(row.groups(name))
                lines += [{**place, **_measured(number), **facts, **word} for number in numbers]
    return lines


def _published(row: PaperRow) -> list[dict[str, Any]]:
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
            "published": cell.text,
        }
        for labels, cells in row.published.lines
        for measure, cell in zip(row.published.measures, cells, strict=True)
    ]


def _measured(number: Number) -> dict[str, Any]:
    line = {"source": "here", "what": number.label, "metric": number.metric, "here": number.text()}
    line |= {name: getattr(number, name) for name in _NUMBER}
    line["baseline_is"] = None if number.baseline is None else number.baseline_is
    if spread := spread_of(number):
        line |= {"low": spread.low, "high": spread.high, "interval_is": spread.found_from}
    return line


def _claim(decided: Decided) -> dict[str, Any]:
    """The comparison, the difference between its sides with its 95 % interval, and the outcome."""
    usual = {"times": 1.0, "plus": 0.0}
    claim = {name: value for name, value in asdict(decided.claim).items() if value != usual.get(name)}
    ends = {} if isnan(decided.low) else {"low": decided.low, "high": decided.high}
    return {**claim, "difference": decided.difference, **ends, "outcome": decided.outcome}
