"""All numbers as one table, printed and measured: for a spreadsheet, a paper or another program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from relcore.papers.ours import Ours
from relcore.papers.published import WORDS
from relcore.papers.rows import PaperRow

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
MORE = ["baseline_is", "data", "run", "date", "version", "commit", "seconds"]


def long_table(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> pd.DataFrame:
    """A line a number. `source` is "published" or "here"; `found` holds the results by run.

    Published numbers keep the unit in which they are printed; their `data` is the setting that the paper names.
    """
    lines = [line for row in rows for line in (*_published(row), *_measured(row, found))]
    return pd.DataFrame(lines, columns=[*COLUMNS, *MORE])


def printed_table(rows: Sequence[PaperRow], found: Mapping[str, Ours]) -> pd.DataFrame:
    """The same as one prints it: row, what, metric, published, here; numbers with their deviations."""
    lines = []
    for row in rows:
        place = {"row": f"{row.paper.authors}, {row.name}"}
        for line in _published(row):
            lines.append({**place, "what": line["what"], "metric": line["metric"], "published": line["text"]})
        for name in row.run_names():
            for number in found[name].of_groups(row.groups(name)) if name in found else ():
                lines.append(
                    {
                        **place,
                        "what": number.label,
                        "metric": number.metric,
                        "here": number.text(),
                        "commit": found[name].commit,
                    }
                )
    return pd.DataFrame(lines, columns=["row", "what", "metric", "published", "here", "commit"])


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
            "published": [{name: value for name, value in line.items() if value is not None} for line in _published(row)],
            "here": [found[name].to_json() for name in row.run_names() if name in found],
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
    lines = []
    for name in row.run_names():
        if name not in found:
            continue
        ours = found[name]
        facts = {name: getattr(ours, name) for name in MORE[1:]}
        for number in ours.of_groups(row.groups(name)):
            place = {"paper": row.paper.authors, "row": row.name, "source": "here", "what": number.label}
            own = {key: getattr(number, key) for key in (*COLUMNS[4:], "baseline_is")}
            lines.append({**place, **own, **facts, "baseline_is": number.baseline_is if number.baseline is not None else None})
    return lines
