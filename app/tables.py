"""Tables with selectable rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from app import messages, session
from app.compute import cached
from app.glossary.card import caption
from app.glossary.terms import linked_html
from app.plain_text import plain_html
from relcore.base.names import METRICS
from relcore.base.numbers import MINUS, band, short
from relcore.base.report import Table
from relcore.represent.diagnostics import coinciding_anchors
from relcore.runs.entries import digest_of
from relcore.scores.score import ChanceLevel, Score
from relcore.scores.score_report import circumstances, long_rows, score_notes
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace

# A click on a cell selects its row, too.
_ONE = ("single-row", "single-cell")
_SEVERAL = ("multi-row", "single-cell")


def chosen_rows(
    table: pd.DataFrame,
    key: str,
    *,
    several: bool = False,
    hide_index: bool = True,
    places: int | None = None,
    **look: Any,
) -> list[int]:
    """Draw a table, and return the numbers of the selected rows. With `places`, its numbers are drawn as by
    `short_numbers`. `look` is passed to `st.dataframe`."""
    look |= {"selection_mode": _SEVERAL if several else _ONE, "hide_index": hide_index}
    shown = table
    if places is not None:
        shown = short_numbers(table, places)
    state = st.dataframe(shown, key=key, on_select="rerun", **look)
    # Ignore rows beyond the end, because the selection may come from an earlier, longer table.
    return [row for row in rows_of_state(state) if row < len(table)]


def rows_of_state(state: Any) -> list[int]:
    """The numbers of the ticked rows, and of the row whose cell was clicked."""
    return list(dict.fromkeys([*state.selection.rows, *(row for row, _ in state.selection.cells)]))


def brushing_table(table: pd.DataFrame, key: str, places: int = 3, **look: Any) -> None:
    """Draw a table with a column "id", and its numbers with `places` decimals. Rows that are selected in the
    table are also selected in the panes."""
    place = f"{key}-{digest_of(table['id'].tolist())[:8]}"

    def brush() -> None:
        session.select(tuple(table["id"].iloc[rows_of_state(st.session_state[place])]))

    shown = short_numbers(table, places)
    st.dataframe(shown, key=place, hide_index=True, on_select=brush, selection_mode=_SEVERAL, **look)


EXPLANATIONS = {
    "absolute": "the unchanged vectors",
    "relative": "similarities to the anchors",
    "whitened": "similarities, decorrelated over the anchors (our variant)",
    "procrustes": "reference: one space rotated onto the other; needs both spaces",
}


def score_table(scores: Mapping[str, Mapping[str, Score]], head: str = "Representation") -> None:
    """Draw a table with a row for each representation (or `head`) and a column for each metric. The notes of
    the scores stand below."""
    metrics = [metric for metric in METRICS if any(metric in by_metric for by_metric in scores.values())]
    columns = "".join(f'<th scope="col">{linked_html(METRICS[metric].title)}</th>' for metric in metrics)
    body = "".join(
        f'<tr class="{escape(representation)}"><th scope="row">{linked_html(plain_html(representation))}'
        f"<small>{EXPLANATIONS.get(representation, '')}{_rows_scored(scores, representation)}"
        f"{_why_none(by_metric, metrics)}</small></th>"
        + "".join(_cell(METRICS[metric].title, by_metric.get(metric)) for metric in metrics)
        + "</tr>"
        for representation, by_metric in scores.items()
    )
    st.html(
        f'<table class="relscope-scores"><thead><tr><th scope="col">{head}</th>'
        f"{columns}</tr></thead><tbody>{body}</tbody></table>"
    )
    chance = "mean score after permuting the rows of one space; hover for the 95 % band"
    caption(" · ".join([*circumstances(scores), f"chance level: {chance}"]))
    for told in score_notes(scores):
        messages.warning(told)


def _rows_scored(scores: Mapping[str, Mapping[str, Score]], representation: str) -> str:
    """The number of scored rows as HTML: ``<br>n = 480``. Returns "" if it is the same for all
    representations."""
    n = {one: max(score.n for score in by_metric.values()) for one, by_metric in scores.items() if by_metric}
    if representation in n and len(set(n.values())) > 1:
        return f"<br>n = {n[representation]:,}"
    return ""


def _why_none(by_metric: Mapping[str, Score], metrics: Sequence[str]) -> str:
    """Why scores of a representation are missing, as HTML. Returns "" if it has all metrics."""
    if by_metric and any(metric not in by_metric for metric in metrics):
        return "<br>the other scores need equal dimensions"
    return ""


def short_numbers(table: pd.DataFrame, places: int = 3) -> Styler:
    """The table for `st.dataframe`, with numbers as in our sentences: ``.975``, ``−.021``, ``20,000``. The
    browser shows them so in columns without a format of their own, and sorts them as numbers."""
    whole = dict.fromkeys(table.select_dtypes("integer"), _whole_number)
    broken = dict.fromkeys(table.select_dtypes("float"), partial(short, places=places))
    return table.style.format(whole | broken)


def _whole_number(number: int) -> str:
    return f"{number:,}".replace("-", MINUS)


def report_table(table: Table) -> None:
    """Draw a table of a report, with readable numbers and its caption."""
    st.html(f'<div class="relscope-report">{linked_html(table.html())}</div>')


def show_cautions(pair: Match, anchors: tuple[str, ...]) -> None:
    if not anchors:
        return
    for space in (pair.source, pair.target):
        if caution := _caution(space, anchors):
            messages.warning(caution)


@cached(32)
def _caution(space: LatentSpace, anchors: tuple[str, ...]) -> str:
    return long_rows(space) or coinciding_anchors(space, anchors)


def chance_html(null: ChanceLevel) -> str:
    """The chance level as HTML, such as ``chance .052``. A tooltip shows its 95 % band."""
    ends = band(null.low, null.high, null.places)
    return f'<small title="95 % band of the chance level: {ends}">chance {null}</small>'


def _cell(metric: str, score: Score | None) -> str:
    if score is None:
        return f'<td class="none" data-metric="{metric}" title="needs spaces of equal dimension">–</td>'
    parts = [f"<b>{short(score)}</b>"]
    if score.interval:
        parts.append(f"<span>± {short((score.interval[1] - score.interval[0]) / 2)}</span>")
    if score.null:
        parts.append(chance_html(score.null))
    filled = max(0.0, min(1.0, float(score)))
    parts.append(f'<i style="width: {100 * filled:.1f}%"></i>')
    return f'<td data-metric="{metric}" title="{escape(score.describe())}">{"".join(parts)}</td>'


def bars(
    title: str,
    values: Mapping[str, Sequence[float]],
    limit: float,
    models: Sequence[str],
    row: int | None = None,
) -> str:
    """A bar chart as HTML, with a bar for each model under each name. Negative bars extend to the left.

    `row` is the number of the row whose similarities to the anchors are drawn. While an anchor is dragged,
    the panes change these bars.
    """
    shown = "".join(
        f"<div><span>{plain_html(name)}</span>{''.join(_bar(value, limit) for value in pair)}</div>"
        for name, pair in values.items()
    )
    legend = "".join(f"<span><i></i>{plain_html(name)}</span>" for name in models)
    if row is None:
        followed = ""
    else:
        followed = f' data-row="{row}"'
    return f'<section class="relscope-bars"{followed}><h4>{title}</h4><p>{legend}</p>{shown}</section>'


def _bar(value: float, limit: float) -> str:
    share = float(np.clip(value / limit, -1, 1)) * 50
    place = f"left:{50 + min(share, 0):.1f}%;width:{abs(share):.1f}%"
    return f'<em><i style="{place}"></i></em><b>{short(value, 2)}</b>'
