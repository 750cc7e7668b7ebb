"""What scores by representation and metric say of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from relcore.base.numbers import band, short
from relcore.base.report import Report, Table
from relcore.scores.comparison import circumstances, score_notes, score_table
from relcore.scores.score import Score
from relcore.spaces.matching import Match

Scores = Mapping[str, Mapping[str, Score]]


def scores_report(
    scores: Scores,
    sentence: str = "",
    facts: Mapping[str, Any] | None = None,
    *,
    pair: Match | None = None,
    anchors: Sequence[str] = (),
    also: Sequence[str] = (),
    figures: Mapping[str, Any] | None = None,
) -> Report:
    """A table of scores with half the sampling interval, the chance level and its 95 % band, and the recall
    of approximate neighbours; the notes of the scores, and those given beside.
    """
    rows = score_table(scores)
    caption = "; ".join([*circumstances(scores), "chance level: rows of one space permuted"])
    table = Table("rows", rows, score_cells(rows), caption=f"{caption}.")
    notes = [*also, *score_notes(scores, pair, anchors)]
    return Report(sentence, (table,), facts or {}, notes, figures or {})


def score_cells(table: pd.DataFrame) -> list[list[str]]:
    """What people read of a `score_table`, the head first."""
    approximate = "recall" in table
    rows = [["representation", "metric", "score", "±", "chance level", "its 95 %"]]
    rows[0] += ["recall, its 95 %, queries"] * approximate
    for row in table.itertuples():
        cells = [row.form, row.metric.split(",")[0], short(row.score)]
        cells.append("" if pd.isna(row.low) else short((row.high - row.low) / 2))  # NaN: all rows are queries
        chance = [short(row.chance), band(row.null_low, row.null_high)]
        cells += ["", ""] if pd.isna(row.chance) else chance
        if approximate:
            interval = band(row.recall_low, row.recall_high)
            reached = f"{short(row.recall)}, {interval}, {row.recall_queries:.0f}"
            cells.append("" if pd.isna(row.recall) else reached)
        rows.append(cells)
    return rows
