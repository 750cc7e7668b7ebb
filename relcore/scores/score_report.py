"""The report of scores: table, sentence and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import quote
from relcore.base.names import METRICS
from relcore.base.numbers import and_list, band, counted, short, short_chance
from relcore.base.report import Report, Table
from relcore.base.rows import unit_rows
from relcore.engine.engine import Engine
from relcore.represent.diagnostics import coinciding_anchors
from relcore.represent.similarity import mean_of
from relcore.scores.cka import decisive_rows
from relcore.scores.score import Score, titled
from relcore.spaces.ids import AuditedIds, scored_rows
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

# The changes that `unchanged_by` may name: rotation or reflection, scale, offset, and any invertible linear
# map.
CHANGES = ("rotation", "scale", "shift", "affine")
# Number of queries for scores that must appear immediately. Their interval is ± .02.
LIVE_QUERIES = 300


def score_table(scores: Mapping[str, Mapping[str, Score]]) -> pd.DataFrame:
    """A long table of scores, one row per representation and metric, with the settings and the
    chance level.

    Columns: metric, form, score, null_low and null_high (95 % band of the chance level), low and high
    (sampling interval; NaN if all rows are queries), chance (mean of the chance level), convention, k, n,
    queries.
    """
    rows = []
    for representation, by_metric in scores.items():
        for metric, score in by_metric.items():
            row = {"metric": titled(metric, score.k), "form": representation, "convention": score.convention}
            rows.append(row | score.to_row())
    # The column is named "form" in CSV and JSON files since version 0.1.0.
    columns = ["metric", "form", "score", "null_low", "null_high", "low", "high", "chance", "convention"]
    return pd.DataFrame(rows).filter([*columns, "k", "n", "queries"])


def score_notes(
    scores: Mapping[str, Mapping[str, Score]], match: Match | None = None, anchor_ids: Sequence[str] = ()
) -> list[str]:
    """The notes of the scores. Each note appears once and names the scores that have it. With `match`,
    warnings follow of long rows and of coinciding anchors, because these can dominate relative scores."""
    places: dict[str, list[str]] = {}
    for representation, by_metric in scores.items():
        for metric, score in by_metric.items():
            if score.note:
                places.setdefault(score.note, []).append(f"{METRICS[metric].title} ({representation})")
    notes = []
    if match is not None and isinstance(match.ids, AuditedIds):
        removed = int(np.count_nonzero(~scored_rows(match.ids)))
        if removed:
            notes.append(f"{counted(removed, 'row is', 'rows are')} not scored: suspects of an audit.")
    for note, where in places.items():
        notes.append(f"{', '.join(where)}: {note}")
    if match and len(anchor_ids):
        for space in (match.source, match.target):
            notes.append(long_rows(space) or coinciding_anchors(space, anchor_ids))
    return list(filter(None, notes))


_MOVED = 0.25  # minimum shift of the mean by long rows, in spreads of the other rows


def long_rows(space: LatentSpace) -> str:
    """A warning if a few long rows (at most 10 and at most 2 %) shift the mean of a space and thus change all
    scores that are centred by it; otherwise "".

    The warning appears for none of 26 spaces of texts, words and pictures, and for 1 of 420 synthetic spaces.
    In 65 spaces, 1 to 8 rows were made 10 to 500 times as long. There the warning appeared whenever the score
    of the pruned inverse changed by .05, and whenever the inverse failed.
    """
    mean = mean_of(space)
    far = Engine().lengths(space.vectors, mean).astype(np.float64)
    n = len(space)
    if n < 3 or not far.any():
        return ""
    far /= far.max()
    rows = decisive_rows((far * far,))
    if not len(rows):
        rows = np.array([far.argmax()])
    units = unit_rows(space.vectors[rows], mean).astype(np.float64)
    # The offsets of all rows from the mean add up to 0, so this is how far the mean of the others moved.
    moved = float(np.linalg.norm(far[rows] @ units)) / (n - len(rows))
    others = np.delete(far, rows)
    spread = np.sqrt(max(float(np.mean(others**2)) - moved**2, 0))
    if moved <= _MOVED * spread:
        return ""
    more = ""
    if len(rows) > 3:
        more = ", …"
    named = quote(space.ids[rows[:3]]) + more
    move = f"{len(rows)} long rows, {named}, move"
    decide = "they decide"
    them = "them"
    if len(rows) == 1:
        move = f"One long row, {named}, moves"
        decide = "it decides"
        them = "it"
    return (
        f"{move} the mean of {quote([space.name])} by {short(moved / max(spread, 1e-9), 1)} times the spread"
        f" of the other rows, so {decide} centred scores. Leave {them} out."
    )


def _drawn_queries(scores: Mapping[str, Score]) -> str:
    """A phrase such as ``, 300 of them as queries (± …)``; "" if all rows are queries. If the number of
    queries differs between representations, the phrase gives each number."""
    if not any(score.interval for score in scores.values()):
        return ""
    by_number: dict[str, list[str]] = {}
    for representation, score in scores.items():
        some = "all"
        if score.interval:
            some = f"{score.n_queries:,} of"
        by_number.setdefault(f"{some} {counted(score.n, 'row')}", []).append(representation)
    first = next(iter(scores.values()))
    text = f"{first.n_queries:,} of them as queries"
    # "of them" means the rows named first, so representations with other numbers of queries
    # are listed separately.
    if any((score.n_queries, bool(score.interval)) != (first.n_queries, True) for score in scores.values()):
        text = "queries: " + ", ".join(f"{rows} ({', '.join(named)})" for rows, named in by_number.items())
    return f", {text} (± is the 95 % sampling interval)"


def circumstances(scores: Mapping[str, Mapping[str, Score]]) -> list[str]:
    """The settings of scores in words: first the rows, then the neighbours and queries, then the samples. For
    example:

    ``n = 19,700 held-out rows, no anchor among them (absolute: all 20,000 rows)``, ``Jaccard and MRR: k = 10,
    paper convention (Moschella et al. 2023), 300 of them as queries (± …)``, ``RSA: 1,000 of the rows, drawn
    by their ids``.
    """
    absolute = ""
    others = ""
    listed: dict[tuple[int, str], tuple[dict[str, None], dict[str, Score]]] = {}
    sampled: dict[int, dict[str, None]] = {}
    for representation, by_metric in scores.items():
        n = max(score.drawn_from or score.n for score in by_metric.values())
        if representation == "absolute":
            absolute = counted(n, "row")
        else:
            others = others or counted(n, "held-out row")
        for name, score in by_metric.items():
            if score.k:
                titles, queries = listed.setdefault((score.k, score.convention), ({}, {}))
                titles[METRICS[name].title] = None
                queries[representation] = score
            if score.drawn_from:
                sampled.setdefault(score.n, {})[METRICS[name].title] = None
    of_absolute = ""
    if absolute:
        of_absolute = f" (absolute: all {absolute})"
    rows = f"n = {others}, no anchor among them{of_absolute}"
    parts = [rows if others else f"n = {absolute}"]
    for (k, convention), (titles, queries) in listed.items():
        source = ""
        if convention == "paper":
            source = " (Moschella et al. 2023)"
        text = f"{convention} convention{source}"
        parts.append(f"{and_list(titles)}: k = {k}, {text}{_drawn_queries(queries)}")
    for n, titles in sampled.items():
        parts.append(f"{and_list(titles)}: {n:,} of the rows, drawn by their ids")
    return parts


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
    head: str = "representation",
) -> Report:
    """A report with a table of scores. Beside each score are half of its sampling interval, its chance level,
    and the 95 % band of the chance level. The notes of the scores follow, then the notes in `also`. `head` is
    the title of the column that names what is scored."""
    rows = score_table(scores)
    caption = "; ".join([*circumstances(scores), "chance level: rows of one space permuted"])
    table = Table("rows", rows, score_cells(rows, head), caption=f"{caption}.")
    notes = [*also, *score_notes(scores, pair, anchors)]
    return Report(sentence, (table,), facts or {}, notes, figures or {})


def score_cells(table: pd.DataFrame, head: str = "representation") -> list[list[str]]:
    """The cells of a `score_table` as texts for people. The first row has the titles of the columns."""
    rows = [[head, "n", "metric", "score", "±", "chance level", "chance, 95 %"]]
    for row in table.itertuples():
        half_width = ""
        if not pd.isna(row.low):  # it is missing if all rows are queries
            half_width = short((row.high - row.low) / 2)
        cells = [row.form, f"{row.n:,}", row.metric.split(",")[0], short(row.score), half_width]
        if pd.isna(row.chance):
            cells += ["", ""]
        else:
            cells += [short_chance(row.chance), band(row.null_low, row.null_high)]
        rows.append(cells)
    if table["n"].nunique() > 1:
        return rows
    return [[name, *cells] for name, _, *cells in rows]
