"""All numbers as one table, printed and measured: for a spreadsheet, a paper or another program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

import pandas as pd

from relcore.base import records as record
from relcore.papers.ours import Number, Ours, spread_of
from relcore.papers.published import WORDS
from relcore.papers.rows import PaperRow
from relcore.papers.verdict import Decided, verdict_of

COLUMNS = [
    "paper",
    "row",
    "source",
    "what",
    "metric",
    "value",
    "deviation",
    "unit",
    "low",
    "high",
    "repeats",
    "n",
    "k",
    "baseline",
]
_FIELDS = ["metric", "value", "deviation", "unit", "repeats", "n", "k", "baseline"]  # of a Number
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
_FACTS = ["data", "run", "date", "version", "commit", "seconds"]  # of an Ours
MORE = ["baseline_is", "interval_is", *_FACTS, "verdict"]


def long_table(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> pd.DataFrame:
    """A line per number. `source` is "published" or "here"; `found` holds the results by run.

    Published numbers keep the unit in which they are printed; their `data` is the setting that the paper
    names.
    """
    lines = [line for row in rows for line in (*_published(row), *_measured(row, found))]
    return pd.DataFrame(lines, columns=[*COLUMNS, *MORE])


def printed_table(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> pd.DataFrame:
    """The printed form: row, what, metric, published, here; numbers with their deviations."""
    lines = []
    for row in rows:
        place = {"row": f"{row.paper.authors}, {row.name}"}
        verdict = verdict_of(row, found)
        for line in _published(row):
            lines.append({**place, "what": line["what"], "metric": line["metric"], "published": line["text"]})
        for name in row.run_names():
            for number in found[name].of_groups(row.groups(name)) if name in found else ():
                told = {
                    "here": number.text(),
                    "commit": found[name].commit,
                    "verdict": verdict.word if verdict else None,
                }
                lines.append({**place, "what": number.label, "metric": number.metric, **told})
    return pd.DataFrame(lines, columns=["row", "what", "metric", "published", "here", "commit", "verdict"])


def as_csv(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> bytes:
    return long_table(rows, found).to_csv(index=False, lineterminator="\n").encode()


def as_latex(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> bytes:
    """A longtable for booktabs."""
    text = printed_table(rows, found).to_latex(index=False, escape=True, na_rep="", longtable=True)
    for sign, command in _SIGNS.items():
        text = text.replace(sign, command)
    return text.encode()


def as_json(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> bytes:
    """A list of rows, each with its printed lines and its results whole."""
    records = [
        {
            "paper": row.paper.title,
            "row": row.name,
            "shows": row.shows,
            "published": [
                {name: value for name, value in line.items() if value is not None} for line in _published(row)
            ],
            "here": [record.to_json(found[name]) for name in row.run_names() if name in found],
            **_judged(row, found),
        }
        for row in rows
    ]
    return (json.dumps(records, ensure_ascii=False, indent=2) + "\n").encode()


def _published(row: PaperRow) -> list[dict[str, Any]]:
    if row.published is None:
        return []
    return [
        {
            "paper": row.paper.authors,
            "row": row.name,
            "source": "published",
            "what": ", ".join(labels),
            "metric": measure.name,
            "value": cell.text if measure.unit in WORDS else cell.value,
            "deviation": cell.deviation,
            "unit": measure.unit,
            "data": row.published.setting,
            "text": cell.text,
        }
        for labels, cells in row.published.lines
        for measure, cell in zip(row.published.measures, cells, strict=True)
    ]


def _measured(row: PaperRow, found: Mapping[str, Ours]) -> list[dict[str, Any]]:
    lines, verdict = [], verdict_of(row, found)
    for name in row.run_names():
        if name not in found:
            continue
        ours = found[name]
        facts = {name: getattr(ours, name) for name in _FACTS} | {
            "verdict": verdict.word if verdict else None
        }
        for number in ours.of_groups(row.groups(name)):
            place = {"paper": row.paper.authors, "row": row.name, "source": "here", "what": number.label}
            own = {key: getattr(number, key) for key in _FIELDS} | _interval(number)
            lines.append(
                {
                    **place,
                    **own,
                    **facts,
                    "baseline_is": number.baseline_is if number.baseline is not None else None,
                }
            )
    return lines


def _interval(number: Number) -> dict[str, Any]:
    spread = spread_of(number)
    return {"low": spread.low, "high": spread.high, "interval_is": spread.found_from} if spread else {}


def _judged(row: PaperRow, found: Mapping[str, Ours]) -> dict[str, Any]:
    verdict = verdict_of(row, found)
    if verdict is None:
        return {"verdict": None, "claims": []}
    return {"verdict": verdict.word, "claims": [_claim(one) for one in verdict.claims]}


def _claim(decided: Decided) -> dict[str, Any]:
    """The comparison, the difference between its sides with its 95 % interval, and the outcome."""
    asked = {
        name: value
        for name, value in asdict(decided.claim).items()
        if value != {"times": 1.0, "plus": 0.0}.get(name)
    }
    ends = {} if isnan(decided.low) else {"low": decided.low, "high": decided.high}
    return {**asked, "difference": decided.difference, **ends, "outcome": decided.outcome}
